//! What a schedule costs the foreground, as the search weighs it.

use super::goal::Allowed;
use crate::TotalTime;
use crate::simulate::Outcome;

/// What the foreground suffers, to hold against what is allowed.
#[derive(Clone, Copy)]
pub struct Cost {
    /// Sum of delays.
    pub delay: TotalTime,
    /// Requests delayed by more than the 99th percentile.
    pub slowed: u64,
}

/// One cost over another.
#[derive(Clone, Copy)]
pub struct Ratio {
    /// Of the sums.
    pub delay: f64,
    /// Of the counts.
    pub slowed: f64,
}

impl Default for Ratio {
    fn default() -> Self {
        Self { delay: 1.0, slowed: 1.0 }
    }
}

impl Cost {
    /// Of an outcome whose requests were counted beyond the 99th percentile.
    pub fn of(outcome: &Outcome) -> Self {
        Self { delay: outcome.delay_sum, slowed: outcome.slowed }
    }

    /// Whether that is allowed.
    pub fn is_within(&self, allowed: &Allowed) -> bool {
        self.delay <= allowed.delay_sum && self.slowed <= allowed.slowed
    }

    /// So many times as much, and not less.
    pub fn times(&self, ratio: Ratio) -> Self {
        let (delay, slowed) = (self.delay.0 as f64 * ratio.delay, self.slowed as f64 * ratio.slowed);
        Self { delay: TotalTime(delay.ceil() as u128), slowed: slowed.ceil() as u64 }
    }

    /// This over another one.
    pub fn over(&self, other: &Self) -> Ratio {
        let slowed = self.slowed as f64 / other.slowed.max(1) as f64;
        Ratio { delay: self.delay.0 as f64 / (other.delay.0 as f64).max(1.0), slowed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_half_can_be_too_much() {
        let allowed = Allowed { delay_sum: TotalTime(100), slowed: 2 };
        let cost = |delay, slowed| Cost { delay: TotalTime(delay), slowed };
        assert!(cost(100, 2).is_within(&allowed));
        assert!(!cost(101, 0).is_within(&allowed) && !cost(0, 3).is_within(&allowed));
        let ratio = cost(300, 9).over(&cost(100, 2));
        assert_eq!((cost(10, 1).times(ratio).delay, cost(10, 1).times(ratio).slowed), (TotalTime(30), 5));
        assert_eq!(cost(7, 0).over(&cost(0, 0)).delay, 7.0);
    }
}
