//! A trace played back on a real device, each request at its recorded time whatever the ones before it do (open loop).

mod play;

pub use play::{Options, Played, ReplayError, Writes, replay};

use idlewise::Nanos;

/// How well a replay kept its times, and what the device answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Requests played.
    pub requests: u64,
    /// Requests that failed.
    pub failed: u64,
    /// How late requests were issued: median, 99th percentile, latest.
    pub drift: [Nanos; 3],
    /// Difference between the span of the issue times and of the trace, as a share of the latter.
    pub span_error: f64,
    /// Mean response time.
    pub mean_response: Nanos,
}

impl Summary {
    /// Sums a replay up.
    pub fn of(played: &Played) -> Self {
        let arrivals = &played.trace.columns.arrival;
        let mut drift: Vec<u64> =
            played.issued.iter().zip(arrivals).map(|(issued, due)| issued.since(*due).0).collect();
        let span = |times: &[Nanos]| times.last().map_or(0, |last| last.since(times[0]).0) as f64;
        let (played_span, trace_span) = (span(&played.issued), span(arrivals));
        let sum: u128 = played.trace.columns.responses().map(|response| u128::from(response.0)).sum();
        drift.sort_unstable();
        let at = |share: f64| {
            Nanos(drift.get((drift.len().saturating_sub(1) as f64 * share) as usize).copied().unwrap_or(0))
        };
        Self {
            requests: drift.len() as u64,
            failed: played.failed,
            drift: [at(0.5), at(0.99), at(1.0)],
            span_error: if trace_span > 0.0 { played_span / trace_span - 1.0 } else { 0.0 },
            mean_response: Nanos((sum / drift.len().max(1) as u128) as u64),
        }
    }
}
