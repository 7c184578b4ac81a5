//! What foreground requests suffered, as measured.

use super::Slowdowns;
use crate::{Bytes, Nanos, TotalTime};

/// What foreground requests suffered, and what was done meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Foreground requests completed.
    pub foreground_requests: u64,
    /// Steps of background work in service when a foreground request arrived.
    pub collisions: u64,
    /// Sum of slowdowns, with what comparing has shown to come on top ([`super::Driver::compare`]).
    pub slowdown_sum: TotalTime,
    /// The requests by their slowdowns, as these are summed.
    pub slowdowns: Slowdowns,
    /// Longest slowdown.
    pub max_slowdown: Nanos,
    /// Requests slowed by more than a limit, if one is set, and the sum of their slowdowns; both with what comparing has shown.
    pub slowed: (u64, TotalTime),
    /// Sum of response times.
    pub response_sum: TotalTime,
    /// Steps of background work that began.
    pub steps: u64,
    /// Their sizes together.
    pub worked: Bytes,
}

impl Measured {
    /// Mean slowdown over all foreground requests; zero without any.
    pub fn mean_slowdown(&self) -> Nanos {
        self.slowdown_sum.mean(self.foreground_requests)
    }

    /// Share of the foreground requests that were slowed by more than the limit; zero without any.
    pub fn slowed_share(&self) -> f64 {
        self.slowed.0 as f64 / self.foreground_requests.max(1) as f64
    }

    /// The foreground requests since an earlier state, and the sum of their slowdowns: those within the limit, then those beyond.
    pub fn since(&self, before: &Self) -> [(u64, TotalTime); 2] {
        let requests = self.foreground_requests.saturating_sub(before.foreground_requests);
        let sum = self.slowdown_sum.saturating_sub(before.slowdown_sum);
        let slowed = (self.slowed.0.saturating_sub(before.slowed.0), self.slowed.1.saturating_sub(before.slowed.1));
        [(requests.saturating_sub(slowed.0), sum.saturating_sub(slowed.1)), slowed]
    }

    /// Mean response time of a foreground request; zero without any.
    pub fn mean_response(&self) -> Nanos {
        self.response_sum.mean(self.foreground_requests)
    }
}
