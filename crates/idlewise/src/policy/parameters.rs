//! What policies are built from.

use super::restrained::Amount;
use crate::disk::DiskModel;
use crate::idle::Idleness;
use crate::{Bytes, Nanos};

/// What policies are built from; each takes what it needs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parameters {
    /// Size of each request, or of the first.
    pub request_size: Option<Bytes>,
    /// Idle wait (threshold t).
    pub idle_wait: Option<Nanos>,
    /// Time from the end of one background request to the start of the next.
    pub delay: Option<Nanos>,
    /// Predicted length (threshold c) that an interval must exceed.
    pub threshold: Option<Nanos>,
    /// Share of the intervals, the longest, from 0 to 1.
    pub longest: Option<f64>,
    /// Factor a by which sizes grow.
    pub growth: Option<f64>,
    /// Constant b by which they grow besides.
    pub increment: Option<Bytes>,
    /// Elapsed idle time t' at which the size becomes the largest.
    pub swap_at: Option<Nanos>,
    /// Size that no request exceeds.
    pub largest_size: Option<Bytes>,
    /// Background busy period T.
    pub busy_period: Option<Nanos>,
    /// Mean slowdown to tune for.
    pub mean_slowdown: Option<Nanos>,
    /// Service time that no request exceeds.
    pub max_slowdown: Option<Nanos>,
    /// Relative delay D of the foreground, as a share of its response time.
    pub relative_delay: Option<f64>,
    /// Mean slowdown within which any policy is held, see [`super::Budget`].
    pub budget: Option<Nanos>,
}

/// Where a policy is to run. What it learns from the past, it learns from this disk's.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The disk's idle times.
    pub past: &'a Idleness,
    /// How long its requests take.
    pub model: &'a DiskModel,
    /// Mean service time of a background request, where it does not depend on its size.
    pub service: Option<Nanos>,
    /// How much background work there is.
    pub amount: Amount,
}

impl<'a> Setting<'a> {
    /// A scrub of this disk.
    pub fn scrub(past: &'a Idleness, model: &'a DiskModel) -> Self {
        Self { past, model, service: None, amount: Amount::Infinite }
    }

    pub(super) fn service_of(&self, size: Bytes) -> Nanos {
        self.service.unwrap_or_else(|| self.model.verify_time(size))
    }
}

/// A policy cannot be built from these parameters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// One that it needs is not given.
    #[error("policy '{policy}' needs {option}")]
    Missing {
        /// Name of the policy.
        policy: &'static str,
        /// The option of the command line.
        option: &'static str,
    },
    /// One is given that it does not use.
    #[error("policy '{policy}' takes no {option}")]
    Unused {
        /// Name of the policy.
        policy: &'static str,
        /// The option of the command line.
        option: &'static str,
    },
    /// No policy has this name.
    #[error("no policy '{name}'; there is {known}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names in the table.
        known: String,
    },
    /// A request of no bytes.
    #[error("a request size below a block verifies nothing: give at least 512B")]
    ZeroSize,
    /// A number out of its range.
    #[error("{option} is {expected}")]
    Range {
        /// The option of the command line.
        option: &'static str,
        /// What it could be.
        expected: &'static str,
    },
}

impl Parameters {
    /// Those of these that a policy with such options takes.
    pub fn taken_by(&self, options: &[&str]) -> Self {
        fn kept<T>(value: Option<T>, taken: bool) -> Option<T> {
            value.filter(|_| taken)
        }
        let takes = |option| options.contains(&option);
        Self {
            idle_wait: kept(self.idle_wait, takes("--idle-wait")),
            delay: kept(self.delay, takes("--delay")),
            threshold: kept(self.threshold, takes("--threshold")),
            longest: kept(self.longest, takes("--longest")),
            growth: kept(self.growth, takes("--growth")),
            increment: kept(self.increment, takes("--increment")),
            swap_at: kept(self.swap_at, takes("--swap-at")),
            largest_size: kept(self.largest_size, takes("--largest-size")),
            busy_period: kept(self.busy_period, takes("--busy-period")),
            relative_delay: kept(self.relative_delay, takes("--relative-delay")),
            mean_slowdown: kept(self.mean_slowdown, takes("--mean-slowdown")),
            max_slowdown: kept(self.max_slowdown, takes("--max-slowdown")),
            ..*self
        }
    }

    /// The same, allowed to delay the foreground by this share of that.
    pub fn scaled(&self, share: f64) -> Self {
        let of = |time: Option<Nanos>| time.map(|time| Nanos((time.0 as f64 * share) as u64));
        Self {
            relative_delay: self.relative_delay.map(|delay| delay * share),
            mean_slowdown: of(self.mean_slowdown),
            budget: of(self.budget),
            ..*self
        }
    }

    /// The options that not every policy takes, and whether they are given.
    pub fn options(&self) -> [(&'static str, bool); 12] {
        [
            ("--idle-wait", self.idle_wait.is_some()),
            ("--delay", self.delay.is_some()),
            ("--threshold", self.threshold.is_some()),
            ("--longest", self.longest.is_some()),
            ("--growth", self.growth.is_some()),
            ("--increment", self.increment.is_some()),
            ("--swap-at", self.swap_at.is_some()),
            ("--largest-size", self.largest_size.is_some()),
            ("--busy-period", self.busy_period.is_some()),
            ("--relative-delay", self.relative_delay.is_some()),
            ("--mean-slowdown", self.mean_slowdown.is_some()),
            ("--max-slowdown", self.max_slowdown.is_some()),
        ]
    }
}
