//! What a plan must keep, and why there may be none.

use serde::{Deserialize, Serialize};

use crate::disk::{DiskModel, SMALLEST_REQUEST};
use crate::idle::Idleness;
use crate::simulate::Outcome;
use crate::{Bytes, Nanos, TotalTime};

/// What foreground requests may suffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Goal {
    /// Mean added response time over all foreground requests.
    pub mean_slowdown: Nanos,
    /// Longest added response time of 99 % of them, those that are not delayed among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_slowdown: Option<Nanos>,
    /// Longest added response time of any of them.
    pub max_slowdown: Nanos,
}

/// One foreground request in so many may be slowed by more than the 99th percentile.
pub const RARE: u64 = 100;

/// What some foreground requests may suffer together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Sum of their delays.
    pub delay_sum: TotalTime,
    /// How many may be delayed by more than the 99th percentile.
    pub slowed: u64,
}

impl Allowed {
    /// Whether that is not exceeded. The outcome's requests are counted beyond the goal's 99th percentile.
    pub fn keeps(&self, outcome: &Outcome) -> bool {
        outcome.delay_sum <= self.delay_sum && outcome.slowed <= self.slowed
    }
}

impl Goal {
    /// A mean and a maximum, without a 99th percentile.
    pub fn new(mean_slowdown: Nanos, max_slowdown: Nanos) -> Self {
        Self { mean_slowdown, p99_slowdown: None, max_slowdown }
    }

    /// What all foreground requests of these disks may suffer together.
    pub fn allows(&self, disks: &[Idleness]) -> Allowed {
        self.allows_requests(disks.iter().map(|disk| disk.requests).sum())
    }

    /// What so many foreground requests may suffer together.
    pub fn allows_requests(&self, requests: u64) -> Allowed {
        Allowed { delay_sum: self.mean_slowdown * requests, slowed: requests / RARE }
    }

    /// Whether any request fits the maximum slowdown on this disk.
    ///
    /// # Errors
    /// [`TuneError::MaxTooSmall`] if none does.
    pub fn check(&self, model: &DiskModel) -> Result<(), TuneError> {
        let (max, service, size) = (self.max_slowdown, model.verify_time(SMALLEST_REQUEST), SMALLEST_REQUEST);
        if service > max { Err(TuneError::MaxTooSmall { max, service, size }) } else { Ok(()) }
    }
}

/// Why no plan can be made.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TuneError {
    /// Even the smallest request takes longer than the maximum slowdown allows.
    #[error(
        "a maximum slowdown of {max} is below the {service} of the smallest request ({size}): allow at least {service}"
    )]
    MaxTooSmall {
        /// The goal.
        max: Nanos,
        /// Service time of the smallest request.
        service: Nanos,
        /// Its size.
        size: Bytes,
    },
    /// There is no gap to use.
    #[error("there is not one idle interval: nothing can be scheduled")]
    NoIdleTime,
}

/// At which moments of a background request foreground work is taken to arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrivals {
    /// At those recorded. Of the many waits some do well by luck: on a trace with few collisions the plan will do worse on
    /// another day, where they fall differently.
    #[default]
    Recorded,
    /// At any: the goal is also kept by the mean and two standard deviations of the slowdowns with the wait shifted by
    /// eighths of the service time, half of it down and up. Each shift is another throw of where collisions fall, so
    /// about one run in forty as long as the trace will do worse. A tenth of the goal is kept back for what no simulation
    /// here counts: after background work the head has further to go (docs/papers.md).
    AnyMoment,
}
