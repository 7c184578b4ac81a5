//! What a replay found, in numbers.

use idlewise::Nanos;
use idlewise::replay::weighted_response;
use idlewise::trace::Request;

use super::Played;

/// How well a replay kept its times, and what the device answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Requests measured.
    pub requests: u64,
    /// How late they were issued: median, 99th percentile, latest.
    pub drift: [Nanos; 3],
    /// How much longer than due it took from the first issue of a segment to its last, summed over segments and as a share of
    /// the times due.
    pub span_error: f64,
    /// Mean response time, of the requests that were answered; like all of these it counts from the issue.
    pub mean_response: Option<Nanos>,
    /// Response times: median, 90th, 99th and 99.9th percentile, longest.
    pub response: Option<[Nanos; 5]>,
    /// Mean response time of the whole trace, as its segments tell it, in seconds; if each of them was answered.
    pub weighted_response: Option<f64>,
    /// The segments, in their order.
    pub segments: Vec<SegmentSummary>,
}

/// What was measured in one segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SegmentSummary {
    /// How many requests of the trace it stands for.
    pub weight: f64,
    /// Its requests that were issued.
    pub requests: u64,
    /// Mean response time of those that were answered, in seconds.
    pub mean_response: Option<f64>,
}

impl Summary {
    /// Sums a replay up.
    pub fn of(played: &Played) -> Self {
        let columns = &played.trace.columns;
        let mut drift: Vec<Nanos> = columns.requests().map(|request| request.queued.unwrap_or_default()).collect();
        drift.sort_unstable();
        let mut responses: Vec<Nanos> = columns.requests().filter_map(|request| request.service()).collect();
        responses.sort_unstable();
        let (mut begin, mut spans) = (0, [0u64; 2]);
        let mut segments = Vec::with_capacity(played.segments.len());
        for &(weight, requests) in &played.segments {
            let own = begin..begin + requests;
            if let (Some(first), Some(last)) = (own.clone().next(), own.clone().next_back()) {
                let [first, last] = [first, last].map(|index| columns.request(index));
                let due = last.arrival.since(first.arrival).0;
                let late = |request: Request| request.queued.unwrap_or_default().0;
                spans = [spans[0] + due + late(last) - late(first), spans[1] + due];
            }
            let mean_response = mean(own.filter_map(|index| columns.request(index).service()));
            segments.push(SegmentSummary { weight, requests: requests as u64, mean_response });
            begin += requests;
        }
        let [issued, due] = spans.map(|span| span as f64);
        let weighted = weighted_response(segments.iter().map(|segment| (segment.weight, segment.mean_response)));
        Self {
            requests: drift.len() as u64,
            drift: [0.5, 0.99, 1.0].map(|share| percentile(&drift, share)),
            span_error: if due > 0.0 { (issued - due) / due } else { 0.0 },
            mean_response: mean(responses.iter().copied()).map(|seconds| Nanos((seconds * 1e9).round() as u64)),
            response: (!responses.is_empty())
                .then(|| [0.5, 0.9, 0.99, 0.999, 1.0].map(|share| percentile(&responses, share))),
            weighted_response: weighted.filter(|_| segments.iter().all(|segment| segment.mean_response.is_some())),
            segments,
        }
    }
}

/// In seconds.
fn mean(times: impl Iterator<Item = Nanos>) -> Option<f64> {
    let (count, sum) = times.fold((0u64, 0u128), |(count, sum), time| (count + 1, sum + u128::from(time.0)));
    (count > 0).then(|| sum as f64 / count as f64 / 1e9)
}

/// The least of the sorted times that at least this share of them does not exceed; zero if there is none.
fn percentile(sorted: &[Nanos], share: f64) -> Nanos {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use idlewise::trace::Trace;

    use super::*;

    #[test]
    fn by_hand() {
        let mut trace = Trace::default();
        // Two segments of two requests; the last was never answered.
        let rows = [(0, 0, Some(10)), (100, 5, Some(35)), (1_000, 10, Some(60)), (1_050, 0, None)];
        for (due, late, response) in rows {
            let (arrival, queued, response) = (Nanos(due), Some(Nanos(late)), response.map(Nanos));
            trace.columns.push(Request { arrival, queued, response, ..Request::default() });
        }
        let played = Played {
            trace,
            segments: vec![(9.0, 2), (1.0, 2)],
            warm_up: 0,
            cool_down: 0,
            failed: 0,
            unanswered: 1,
            hangs: false,
            denied: Vec::new(),
        };
        let summary = Summary::of(&played);
        assert_eq!((summary.requests, summary.drift), (4, [0, 10, 10].map(Nanos)));
        // 105 + 40 in place of 100 + 50.
        assert!((summary.span_error - (145.0 / 150.0 - 1.0)).abs() < 1e-12);
        assert_eq!(summary.mean_response, Some(Nanos(30)));
        assert_eq!(summary.response, Some([30, 50, 50, 50, 50].map(Nanos)));
        assert!((summary.weighted_response.unwrap() - 23e-9).abs() < 1e-15, "{summary:?}");
        let gap = Played { segments: vec![(9.0, 2), (5.0, 0), (1.0, 2)], ..played };
        let summary = Summary::of(&gap);
        assert_eq!((summary.segments[1].mean_response, summary.weighted_response), (None, None));
    }

    #[test]
    fn nothing_played_says_nothing_of_the_device() {
        let nothing = Played {
            trace: Trace::default(),
            segments: vec![(1.0, 0)],
            warm_up: 0,
            cool_down: 0,
            failed: 0,
            unanswered: 0,
            hangs: false,
            denied: Vec::new(),
        };
        let summary = Summary::of(&nothing);
        assert_eq!((summary.requests, summary.response, summary.weighted_response), (0, None, None));
    }
}
