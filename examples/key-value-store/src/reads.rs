//! The reads: one client that thinks before each, in bursts with long pauses between them.

use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1, LogNormal};
use rand_pcg::Pcg64;

/// Reads of a burst, on average.
const BURST: f64 = 10.0;
/// Mean time to think within a burst.
const THINK: Duration = Duration::from_millis(5);
/// Median pause between bursts, and the standard deviation of its logarithm.
const PAUSE: (Duration, f64) = (Duration::from_millis(300), 1.2);

/// What a client does: how long it thinks, then which profile it reads.
pub struct Reads {
    random: Pcg64,
    pauses: LogNormal<f64>,
    profiles: u64,
}

impl Reads {
    /// The same seed gives the same reads, of so many profiles.
    pub fn new(seed: u64, profiles: u64) -> Self {
        let pauses = LogNormal::new(PAUSE.0.as_secs_f64().ln(), PAUSE.1).expect("a finite deviation");
        Self { random: Pcg64::seed_from_u64(seed), pauses, profiles }
    }
}

impl Iterator for Reads {
    type Item = (Duration, u64);

    fn next(&mut self) -> Option<Self::Item> {
        let think = if self.random.random_bool(1.0 / BURST) {
            Duration::from_secs_f64(self.pauses.sample(&mut self.random))
        } else {
            let think: f64 = Exp1.sample(&mut self.random);
            THINK.mul_f64(think)
        };
        Some((think, self.random.random_range(0..self.profiles)))
    }
}
