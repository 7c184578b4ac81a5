//! What foreground requests suffered, as measured.

use crate::{Bytes, Nanos};

/// What foreground requests suffered, and what was done meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Foreground requests completed.
    pub foreground_requests: u64,
    /// Steps of background work in service when a foreground request arrived.
    pub collisions: u64,
    /// Sum of slowdowns, in nanoseconds.
    pub slowdown_sum: u128,
    /// Longest slowdown.
    pub max_slowdown: Nanos,
    /// Sum of response times, in nanoseconds.
    pub response_sum: u128,
    /// Steps of background work that began.
    pub steps: u64,
    /// Their sizes together.
    pub worked: Bytes,
}

impl Measured {
    /// Mean slowdown over all foreground requests; zero without any.
    pub fn mean_slowdown(&self) -> Nanos {
        self.mean(self.slowdown_sum)
    }

    /// Mean response time of a foreground request; zero without any.
    pub fn mean_response(&self) -> Nanos {
        self.mean(self.response_sum)
    }

    fn mean(&self, sum: u128) -> Nanos {
        Nanos(u64::try_from(sum / u128::from(self.foreground_requests.max(1))).unwrap_or(u64::MAX))
    }
}
