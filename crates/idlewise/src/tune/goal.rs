//! What a plan must keep, and why there may be none.

use serde::{Deserialize, Serialize};

use crate::disk::{DiskModel, SMALLEST_REQUEST};
use crate::{Bytes, Nanos};

/// What foreground requests may suffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Goal {
    /// Mean added response time over all foreground requests.
    pub mean_slowdown: Nanos,
    /// Longest added response time of any of them.
    pub max_slowdown: Nanos,
}

impl Goal {
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
