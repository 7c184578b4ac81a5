//! Systematic sampling, the baseline (SIGMETRICS 2015, section 4.2, after SMARTS, ISCA 2003).

use std::collections::BTreeMap;

use serde::Serialize;

use super::{TraceInterval, mean_response, relative_error};
use crate::TotalTime;

/// The response time may be off by this share of it ...
const MARGIN: f64 = 0.15;
/// ... with a confidence of 90 %: the normal distribution's two-sided quantile.
const QUANTILE: f64 = 1.644_853_626_951_472_2;
/// What the paper's better variants sample at least.
const AT_LEAST: u64 = 30;
/// Runs whose estimates are averaged.
const AVERAGED: usize = 10;

/// One way of sampling a trace's intervals at a fixed period.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Systematic {
    /// `single` or `avg10` with `nomin` or `min30`, as figure 8 calls them.
    pub name: &'static str,
    /// Intervals that the confidence rule asks for, at least 30 with `min30`.
    pub samples: u64,
    /// Every so many intervals one is sampled.
    pub period: u64,
    /// Share of the trace's intervals that are replayed, over all runs.
    pub share_of_time: f64,
    /// Mean response time in seconds, if a sampled request has one.
    pub estimate_mean_response_s: Option<f64>,
    /// Its distance from the true one, as a share of that.
    pub error: Option<f64>,
}

/// The four variants of figure 8, for a trace of `all` intervals, of which these have requests. None without response times.
///
/// The number of samples is `(z V / m)^2`, with the coefficient of variation V of the intervals' mean response times. A run
/// begins at each offset below the period; the one with the most requests counts, or the mean of ten such.
pub fn systematic(intervals: &[TraceInterval], all: u64) -> Vec<Systematic> {
    let Some(needed) = samples(intervals) else { return Vec::new() };
    let truth = mean_response(intervals);
    let variant = |name, at_least: u64, runs: usize| {
        let samples = needed.max(at_least).min(all);
        let period = all / samples;
        // Only offsets with requests: a trace may have far more intervals without.
        let mut by_offset: BTreeMap<u64, Run> = BTreeMap::new();
        for interval in intervals {
            let offset = interval.index % period;
            by_offset.entry(offset).or_insert(Run { offset, ..Run::default() }).add(interval);
        }
        let mut by_offset: Vec<Run> = by_offset.into_values().collect();
        by_offset.sort_by_key(|run| (std::cmp::Reverse(run.requests), run.offset));
        by_offset.truncate(runs);
        let replayed: u128 = by_offset.iter().map(|run| u128::from((all - run.offset).div_ceil(period))).sum();
        let estimates: Vec<f64> = by_offset.iter().filter_map(Run::mean_response).collect();
        let estimate = (!estimates.is_empty()).then(|| estimates.iter().sum::<f64>() / estimates.len() as f64);
        Systematic {
            name,
            samples,
            period,
            share_of_time: replayed as f64 / all as f64,
            estimate_mean_response_s: estimate,
            error: relative_error(estimate, truth),
        }
    };
    vec![
        variant("single-nomin", 1, 1),
        variant("single-min30", AT_LEAST, 1),
        variant("avg10-nomin", 1, AVERAGED),
        variant("avg10-min30", AT_LEAST, AVERAGED),
    ]
}

/// What the confidence rule asks for, at least one; none without response times.
fn samples(intervals: &[TraceInterval]) -> Option<u64> {
    let means: Vec<f64> = intervals.iter().filter_map(TraceInterval::mean_response).collect();
    let count = means.len() as f64;
    let mean = means.iter().sum::<f64>() / count;
    let variance = means.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    (mean > 0.0).then(|| (QUANTILE * QUANTILE * variance / (mean * mean) / (MARGIN * MARGIN)).ceil().max(1.0) as u64)
}

#[derive(Default)]
struct Run {
    offset: u64,
    requests: u64,
    responses: u64,
    response_sum: TotalTime,
}

impl Run {
    fn add(&mut self, interval: &TraceInterval) {
        self.requests += interval.requests;
        self.responses += interval.responses;
        self.response_sum += interval.response_sum;
    }

    fn mean_response(&self) -> Option<f64> {
        (self.responses > 0).then(|| self.response_sum.0 as f64 / self.responses as f64 / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Nanos;

    /// One request an interval, with these response times in milliseconds; 0 for no request.
    fn intervals(times: &[u64]) -> Vec<TraceInterval> {
        let of = |(index, &ms): (usize, &u64)| TraceInterval {
            index: index as u64,
            requests: 1,
            responses: 1,
            response_sum: Nanos::from_millis(ms).into(),
            ..TraceInterval::default()
        };
        times.iter().enumerate().filter(|(_, ms)| **ms > 0).map(of).collect()
    }

    #[test]
    fn the_confidence_rule_asks_for_samples_by_the_variation() {
        // A mean of 3 and a deviation of 1: (1.645 / 3 / 0.15)^2 = 13.4.
        assert_eq!(samples(&intervals(&[2, 4, 2, 4])), Some(14));
        assert_eq!(samples(&intervals(&[5, 5, 0, 5])), Some(1));
        assert_eq!(samples(&intervals(&[])), None);
    }

    #[test]
    fn the_run_with_the_most_requests_counts() {
        let times: Vec<u64> = (0..56).map(|index| if index % 4 == 3 { 0 } else { 2 + 2 * (index % 2) }).collect();
        let all = systematic(&intervals(&times), 56);
        // Means of 2, 4, 2: 8/3 on average, a variance of 8/9, so 15.03 samples.
        assert_eq!(all[0].samples, 16);
        assert_eq!((all[0].name, all[0].period), ("single-nomin", 3));
        assert_eq!((all[1].name, all[1].samples, all[1].period), ("single-min30", 30, 1));
        assert_eq!((all[1].share_of_time, all[1].estimate_mean_response_s), (1.0, Some(8.0 / 3000.0)));
        assert!(all[0].share_of_time < 0.35 && all[2].share_of_time == 1.0);
    }

    #[test]
    fn a_trace_without_response_times_has_no_baseline() {
        let silent = TraceInterval { requests: 3, ..TraceInterval::default() };
        assert_eq!(systematic(&[silent], 1), []);
    }
}
