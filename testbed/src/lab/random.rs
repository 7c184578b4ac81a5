//! Random numbers that the same seed gives again (SplitMix64: Steele, Lea and Flood, OOPSLA 2014).

use std::time::Duration;

/// A sequence of random numbers.
pub struct Random(u64);

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A whole number below `end`, each as likely.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// An exponentially distributed time.
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        // Above zero and at most one, in the 53 bits that a double holds.
        let share = ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        mean.mul_f64(-share.ln())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_its_sequence_and_the_mean_that_was_asked_for() {
        // The first number of seed 0 as published with SplitMix64.
        assert_eq!(Random::new(0).next(), 0xe220_a839_7b1d_cdaf);
        let (mut random, mean) = (Random::new(1), Duration::from_millis(100));
        let sum: f64 = (0..20_000).map(|_| random.exponential(mean).as_secs_f64()).sum();
        assert!((sum / 20_000.0 - 0.1).abs() < 0.003, "{sum}");
        assert!((0..1_000).all(|_| random.below(7) < 7));
    }
}
