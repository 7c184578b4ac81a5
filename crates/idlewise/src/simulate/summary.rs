//! An [`Outcome`] in the units that people and programs read.

use serde::Serialize;

use super::Outcome;
use crate::TotalTime;
use crate::idle::Idleness;

/// The fields of `simulate --json`: times in seconds, sizes in bytes, rates of foreground requests. Simulated, not
/// measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Bytes verified.
    pub scrubbed_bytes: u64,
    /// Background requests issued.
    pub background_requests: u64,
    /// Background requests in service when foreground work arrived.
    pub collisions: u64,
    /// Collisions per foreground request.
    pub collision_rate: f64,
    /// Sum of delays over all foreground requests.
    pub mean_slowdown_s: f64,
    /// Longest delay.
    pub max_slowdown_s: f64,
    /// Bytes verified over the span, of all disks together.
    pub throughput_bytes_per_s: f64,
    /// Share of the idle time spent on background work.
    pub utilised_idle: f64,
    /// Added over original mean response time, where response times are known (SIGMETRICS 2009, D).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative_delay: Option<f64>,
}

impl Summary {
    /// Relates an outcome to the disks it was simulated on.
    pub fn new(outcome: &Outcome, disks: &[Idleness]) -> Self {
        let requests: u64 = disks.iter().map(|disk| disk.requests).sum();
        let begin = disks.iter().map(|disk| disk.begin).min().unwrap_or_default();
        let end = disks.iter().map(|disk| disk.end).max().unwrap_or_default();
        let idle: TotalTime = disks.iter().map(Idleness::idle).sum();
        let responses: TotalTime = disks.iter().map(|disk| disk.response_sum).sum();
        let recorded = disks.iter().all(|disk| disk.responses_recorded);
        let ratio = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        Self {
            scrubbed_bytes: outcome.scrubbed.0,
            background_requests: outcome.background_requests,
            collisions: outcome.collisions,
            collision_rate: ratio(outcome.collisions as f64, requests as f64),
            mean_slowdown_s: ratio(outcome.delay_sum.as_secs_f64(), requests as f64),
            max_slowdown_s: outcome.longest_delay.as_secs_f64(),
            throughput_bytes_per_s: ratio(outcome.scrubbed.0 as f64, end.since(begin).as_secs_f64()),
            utilised_idle: ratio(outcome.used_idle.0 as f64, idle.0 as f64),
            relative_delay: (recorded && responses > TotalTime::ZERO)
                .then(|| outcome.delay_sum.0 as f64 / responses.0 as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idle::IdlenessBuilder;
    use crate::{Bytes, Nanos};

    #[test]
    fn relates_sums_to_requests_span_and_idle_time() {
        let mut builder = IdlenessBuilder::new("d");
        for (arrival, completion) in [(0, 1), (3, 4)] {
            let (arrival, completion) = (Nanos::from_secs(arrival), Nanos::from_secs(completion));
            builder.request(arrival, completion);
        }
        let outcome = Outcome {
            scrubbed: Bytes(4_000),
            background_requests: 4,
            collisions: 1,
            delay_sum: TotalTime(500_000_000),
            longest_delay: Nanos::from_millis(500),
            used_idle: TotalTime(1_000_000_000),
            slowed: 1,
        };
        let disk = Idleness { responses_recorded: true, ..builder.finish() };
        let summary = Summary::new(&outcome, &[disk]);
        assert_eq!(summary.throughput_bytes_per_s, 1_000.0);
        assert_eq!((summary.mean_slowdown_s, summary.max_slowdown_s), (0.25, 0.5));
        assert_eq!((summary.collision_rate, summary.utilised_idle), (0.5, 0.5));
        assert_eq!(summary.relative_delay, Some(0.25));
    }
}
