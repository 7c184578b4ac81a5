//! What there is to do in the background: one trait, one file each.

mod command;
mod parity;
mod scrub;
mod verification;

pub use command::Command;
pub use parity::ParityUpdates;
pub use scrub::Scrub;
pub use verification::WriteVerification;

use rand::SeedableRng;
use rand_distr::{Distribution, Exp1, Gamma};
use rand_pcg::Pcg64Mcg;

use crate::cdh::Cdh;
use crate::disk::{DiskModel, Interference};
use crate::{Bytes, Nanos, TotalTime};

/// Background work, served one request after the other in the idle intervals that a policy picks.
pub trait Work {
    /// A foreground WRITE at this place completed at this time of the trace's clock.
    fn foreground_wrote(&mut self, at: Nanos, offset: Bytes) {
        let _ = (at, offset);
    }

    /// Foreground work came: a job that was stopped half way begins again.
    fn foreground_arrived(&mut self) {}

    /// The trace ended at this time.
    fn ended(&mut self, at: Nanos) {
        let _ = at;
    }

    /// Whether there is anything to serve.
    fn waits(&self) -> bool;

    /// Serves up to `count` requests of `size` (where the work has a size) back to back, from `began` on the trace's clock;
    /// none starts after `room`, at least 1, but one that started completes.
    fn serve(&mut self, began: Nanos, size: Bytes, count: u64, room: Nanos) -> Served;

    /// The same for as many as begin before `until`, counted from `began`; it may end after any.
    fn serve_until(&mut self, began: Nanos, size: Bytes, until: Nanos, room: Nanos) -> Served {
        let _ = until;
        self.serve(began, size, 1, room)
    }

    /// The same with a `pause` between a request and the next; it may end after any.
    fn serve_paced(&mut self, began: Nanos, size: Bytes, pause: Nanos, room: Nanos) -> Served {
        let _ = pause;
        self.serve(began, size, 1, room)
    }

    /// What was done so far.
    fn tally(&self) -> Tally;

    /// What else there is to say of it; nothing for most.
    fn detail(&self) -> Detail {
        Detail::default()
    }
}

/// What some work tells besides its tally.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Detail {
    /// Times from a job's coming to its completion; of a scrub those that its passes took.
    pub times: Cdh,
    /// Updates of parity that one, two, and so on, WRITEs had made necessary.
    pub hits: Vec<u64>,
    /// Sum over segments of the times for which their parity was dirty.
    pub dirty: TotalTime,
    /// Of a command: how long it was at work for what need not be done again.
    pub useful: TotalTime,
}

impl Detail {
    /// Counts an update that so many WRITEs, at least one, had made necessary.
    fn hit(&mut self, writes: usize) {
        let Some(index) = writes.checked_sub(1) else { return };
        self.hits.resize(self.hits.len().max(writes), 0);
        self.hits[index] += 1;
    }

    /// Adds that of another disk.
    pub fn add(&mut self, other: &Self) {
        self.times.merge(&other.times);
        self.dirty += other.dirty;
        self.useful += other.useful;
        self.hits.resize(self.hits.len().max(other.hits.len()), 0);
        self.hits.iter_mut().zip(&other.hits).for_each(|(sum, hits)| *sum += hits);
    }
}

/// What was served in one go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Requests.
    pub requests: u64,
    /// What they read.
    pub bytes: Bytes,
    /// How long they took together; more than the room if the last one overran it.
    pub time: Nanos,
    /// How much of it was between them.
    pub paused: Nanos,
    /// How much of the last one a foreground request waits for that arrives meanwhile.
    pub interference: Interference,
}

/// Background work so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Jobs that came; none where work has no end.
    pub came: u64,
    /// Jobs, or requests of endless work, that completed.
    pub completed: u64,
    /// Jobs lost because the buffer was full.
    pub lost: u64,
    /// Sum of the times from a job's coming to its completion.
    pub response_sum: TotalTime,
}

/// From so many exponential times on their sum is drawn: it is far from twice its mean.
const MANY: u64 = 1 << 12;

/// How long a background request takes.
#[derive(Clone, Debug)]
pub enum Service {
    /// What the disk takes to verify its size.
    OfSize(DiskModel),
    /// Exponentially distributed around a mean, whatever its size (SIGMETRICS 2009, section 4.1).
    Exponential {
        /// The mean.
        mean: Nanos,
        /// Where the draws come from.
        random: Pcg64Mcg,
    },
}

impl Service {
    /// Exponentially distributed, always with the same draws.
    pub fn exponential(mean: Nanos) -> Self {
        Self::seeded(mean, 2009)
    }

    /// Exponentially distributed, with the draws of a seed.
    pub fn seeded(mean: Nanos, seed: u64) -> Self {
        Self::Exponential { mean, random: Pcg64Mcg::seed_from_u64(seed) }
    }

    /// The next request's, at least a nanosecond.
    fn next(&mut self, size: Bytes) -> u64 {
        match self {
            Self::OfSize(model) => model.verify_time(size).0.max(1),
            Self::Exponential { mean, random } => {
                let draw: f64 = Exp1.sample(random);
                ((draw * mean.0 as f64).round() as u64).max(1)
            }
        }
    }

    /// How much of a request a foreground request waits for; for all of it on the server of the papers.
    fn interference(&self, size: Bytes) -> Interference {
        match self {
            Self::OfSize(model) => model.timing(size).interference,
            Self::Exponential { .. } => Interference::FULL,
        }
    }

    /// Some requests, up to `most`, of which none begins after `room`, with a `pause` behind each: how many, and how long they
    /// take without the pauses. As few calls fill a room of centuries as one of hours.
    fn some(&mut self, size: Bytes, pause: u64, most: u64, room: u64) -> (u64, u64) {
        match self {
            Self::OfSize(_) => {
                let each = self.next(size);
                let many = room.div_ceil(each.saturating_add(pause)).min(most);
                // Sizes and times beyond all reason end at the largest number, not in a circle.
                (many, many.saturating_mul(each))
            }
            Self::Exponential { mean, random } => {
                // Half of those that fit on average surely fit, and exponential times together are one of the gamma distribution.
                let half = (room / mean.0.max(1).saturating_add(pause) / 2).min(most);
                match Gamma::new(half as f64, mean.0 as f64) {
                    Ok(sum) if half >= MANY => (half, (sum.sample(random).round() as u64).max(half)),
                    _ => (1, self.next(size)),
                }
            }
        }
    }
}
