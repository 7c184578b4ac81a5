//! Busy periods and idle intervals: what a trace is reduced to before anything else is asked of it.

mod autocorrelation;
mod builder;
mod character;
#[cfg(feature = "statistics")]
pub mod hurst;
mod lengths;
mod part;
pub mod periods;
#[cfg(feature = "statistics")]
mod profile;
mod reducer;
mod regression;
mod special;
mod split;
mod statistics;

pub use autocorrelation::Autocorrelation;
pub use builder::IdlenessBuilder;
pub use character::{Character, Verdict, burstiness};
pub use lengths::{Hazard, HazardTest, Lengths, exceeded_by_shares};
pub use part::{Part, PartError};
pub use periods::Period;
#[cfg(feature = "statistics")]
pub use profile::Profile;
pub use reducer::Reducer;
pub use regression::AutoRegression;
pub use statistics::Statistics;

use crate::disk::DiskModel;
use crate::trace::Trace;
use crate::{Bytes, Nanos, TotalTime};

/// The busy and idle times of one disk.
///
/// A busy period is a maximal stretch with at least one request outstanding, from arrival to completion; an idle
/// interval is the gap, longer than zero, between two busy periods. What precedes the first request or follows the
/// last completion is none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Idleness {
    /// The disk's name.
    pub volume: String,
    /// Foreground requests.
    pub requests: u64,
    /// First arrival, on the trace's clock.
    pub begin: Nanos,
    /// Last completion, on the trace's clock.
    pub end: Nanos,
    /// What is added to times on the trace's clock for those on the source's, whose zero is a midnight in most formats; zero where
    /// the source has no clock.
    pub origin: Nanos,
    /// Sum of response times.
    pub response_sum: TotalTime,
    /// Whether any response time was recorded; if not, all are a model's.
    pub responses_recorded: bool,
    /// The hours of the trace's clock in which requests arrived, in their order, with how many.
    pub requests_per_hour: Vec<(u64, u64)>,
    /// The idle intervals, in order of time.
    pub intervals: Vec<Interval>,
    /// Response times in order of arrival, if [`Keep`] says so.
    pub responses: Vec<Nanos>,
    /// The WRITEs in order of arrival, if [`Keep`] says so.
    pub writes: Vec<Write>,
}

/// A foreground WRITE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// The busy period it belongs to: how many intervals precede it.
    pub busy_period: u32,
    /// When it completed, on the trace's clock.
    pub completed: Nanos,
    /// Its first byte.
    pub offset: Bytes,
}

/// What is kept of each request besides what intervals need, as some simulations need it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Keep {
    /// The response times.
    pub responses: bool,
    /// Which requests are WRITEs.
    pub writes: Writes,
}

/// Which requests are taken for WRITEs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Writes {
    /// None: nobody asks.
    #[default]
    None,
    /// Those that are.
    Recorded,
    /// This share of all, drawn at random but always the same (DSN 2008, section 7.2).
    Drawn(f64),
}

/// One idle interval and the busy periods on its two sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Length of the interval, above zero.
    pub length: Nanos,
    /// Requests in the busy period that follows.
    pub followers: u64,
    /// Length of the busy period before it.
    pub busy_before: Nanos,
}

/// Why a trace has no idle intervals that mean anything.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdleError {
    /// It has no completions, and the disk model says nothing about its kind of request.
    #[error(
        "the trace has no response times, and the disk model '{model}' has no [{missing}] section to compute them with"
    )]
    NoServiceTime {
        /// Name of the model.
        model: String,
        /// The section it lacks.
        missing: &'static str,
    },
    /// Its clock is too coarse.
    #[error("the trace's times are in steps of {0}: idle times, which are mostly shorter, cannot be told from it")]
    TooCoarse(Nanos),
}

impl Idleness {
    /// Memory that it takes at most, with all that is computed from it at a time.
    pub fn memory(&self) -> Bytes {
        /// Of an idle interval, a WRITE and a response time.
        const INTERVAL: u64 = 256;
        const WRITE: u64 = 200;
        const RESPONSE: u64 = 16;
        let [intervals, writes] = [self.intervals.len(), self.writes.len()].map(|length| length as u64);
        Bytes(INTERVAL * intervals + WRITE * writes + RESPONSE * self.responses.len() as u64)
    }

    /// The idle times of each volume of a trace in memory, see [`Reducer`].
    ///
    /// # Errors
    /// As [`Reducer::requests`].
    pub fn of_trace(trace: &Trace, model: &DiskModel) -> Result<Vec<Self>, IdleError> {
        let mut reducer = Reducer::new(model, trace.provenance.resolution)?;
        reducer.requests(&trace.columns)?;
        Ok(reducer.finish(trace.provenance.origin))
    }

    /// From the first arrival to the last completion.
    pub fn span(&self) -> Nanos {
        self.end.since(self.begin)
    }

    /// Sum of the idle intervals.
    pub fn idle(&self) -> Nanos {
        Nanos(self.intervals.iter().map(|interval| interval.length.0).sum())
    }

    /// Time with at least one request outstanding.
    pub fn busy(&self) -> Nanos {
        self.span().since(self.idle())
    }

    /// Length of the last busy period, which no interval follows.
    pub fn last_busy(&self) -> Nanos {
        let before: u64 = self.intervals.iter().map(|interval| interval.busy_before.0).sum();
        self.busy().since(Nanos(before))
    }

    /// Mean response time of the foreground; zero without requests.
    pub fn mean_response(&self) -> Nanos {
        self.response_sum.mean(self.requests)
    }

    /// Requests in the first busy period, which no interval precedes.
    pub fn leading_requests(&self) -> u64 {
        self.requests.saturating_sub(self.intervals.iter().map(|interval| interval.followers).sum())
    }
}
