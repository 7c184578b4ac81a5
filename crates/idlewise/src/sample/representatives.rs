//! The intervals that stand for the others, and what they say of the whole.

use serde::{Deserialize, Serialize};

use super::{Clustering, TraceInterval};
use crate::Nanos;
use crate::replay;

/// An interval that stands for its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Representative {
    /// Its number, from 0 on.
    pub index: u64,
    /// When it begins, since the trace's first request.
    pub begin: Nanos,
    /// Its requests.
    pub requests: u64,
    /// The requests of all intervals in its cluster, its own among them.
    pub weight: u64,
}

impl Representative {
    /// Which of a trace's intervals, in order, it is.
    pub fn interval<'a>(&self, intervals: &'a [TraceInterval]) -> Option<&'a TraceInterval> {
        TraceInterval::find(intervals, self.index)
    }
}

/// The member nearest to each centroid, with its cluster's requests as weight, in order of time (SIGMETRICS 2015, section 4.4).
/// `clustering` is of the points that these intervals of this length are, in their order.
pub fn representatives(intervals: &[TraceInterval], clustering: &Clustering, length: Nanos) -> Vec<Representative> {
    let mut weights = vec![0; clustering.k()];
    for (interval, &cluster) in intervals.iter().zip(&clustering.cluster) {
        weights[cluster as usize] += interval.requests;
    }
    let of = |(nearest, weight): (&Option<usize>, u64)| {
        let interval = &intervals[(*nearest)?];
        let begin = Nanos(interval.index * length.0);
        Some(Representative { index: interval.index, begin, requests: interval.requests, weight })
    };
    let mut all: Vec<Representative> = clustering.nearest.iter().zip(weights).filter_map(of).collect();
    all.sort_by_key(|representative| representative.index);
    all
}

/// The weighted response time in seconds: the mean response times of the representatives, weighted (SIGMETRICS 2015, equation 1).
/// One whose response times are not known says nothing; none where all are such.
pub fn weighted_response(intervals: &[TraceInterval], representatives: &[Representative]) -> Option<f64> {
    let of = |representative: &Representative| {
        let interval = representative.interval(intervals);
        (representative.weight as f64, interval.and_then(TraceInterval::mean_response))
    };
    replay::weighted_response(representatives.iter().map(of))
}

/// The mean response time in seconds of all requests whose response time is known; none without one.
pub fn mean_response(intervals: &[TraceInterval]) -> Option<f64> {
    let known = |interval: &TraceInterval| (interval.responses as f64, interval.mean_response());
    replay::weighted_response(intervals.iter().map(known))
}

/// The distance of an estimate from the truth as a share of the truth; none where either is unknown or the truth is zero.
pub fn relative_error(estimate: Option<f64>, truth: Option<f64>) -> Option<f64> {
    let truth = truth.filter(|&truth| truth > 0.0)?;
    Some((estimate? - truth).abs() / truth)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval((index, requests, ms): (u64, u64, Option<u64>)) -> TraceInterval {
        let responses = ms.map_or(0, |_| requests);
        let response_sum = Nanos::from_millis(ms.unwrap_or(0)) * requests;
        TraceInterval { index, requests, responses, response_sum, ..TraceInterval::default() }
    }

    #[test]
    fn a_cluster_is_weighted_by_its_requests() {
        let intervals = [(0, 10, Some(1)), (2, 20, Some(4)), (3, 30, Some(2)), (7, 40, None)].map(interval);
        let clustering = Clustering {
            cluster: vec![1, 0, 1, 2],
            weights: vec![20.0, 40.0, 40.0, 0.0],
            distortion: 1.0,
            nearest: vec![Some(1), Some(0), Some(3), None],
        };
        let chosen = representatives(&intervals, &clustering, Nanos::from_secs(10));
        let weights: Vec<_> = chosen.iter().map(|r| (r.index, r.begin, r.requests, r.weight)).collect();
        let at = Nanos::from_secs;
        assert_eq!(weights, [(0, at(0), 10, 40), (2, at(20), 20, 20), (7, at(70), 40, 40)]);
        // The last one has no response times: (40 * 1 + 20 * 4) / 60.
        assert_eq!(weighted_response(&intervals, &chosen), Some(0.002));
        assert_eq!(mean_response(&intervals), Some((10.0 + 80.0 + 60.0) / 60.0 / 1000.0));
        assert_eq!(weighted_response(&intervals[3..], &chosen[2..]), None);
    }
}
