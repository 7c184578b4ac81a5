//! How long response times stay alike (SIGMETRICS 2015, section 4.1 and figure 6).

use super::TraceInterval;

/// Within a phase, mean response times differ by less than this share of the least.
const ALIKE: f64 = 0.1;

/// Lengths of a trace's phases, in intervals: successive intervals of which each two have mean response times that differ
/// by less than 10 %, each phase as long as it can be from where the last one ended. What has no response time breaks none.
/// `all` counts the trace's intervals, with those without requests; none where no response time is known.
pub fn phases(intervals: &[TraceInterval], all: u64) -> Vec<u64> {
    let mut lengths = Vec::new();
    let (mut begin, mut range) = (0, None::<(f64, f64)>);
    for (index, mean) in intervals.iter().filter_map(|interval| Some((interval.index, interval.mean_response()?))) {
        let (low, high) = range.map_or((mean, mean), |(low, high)| (low.min(mean), high.max(mean)));
        if high < low * (1.0 + ALIKE) || low == high {
            range = Some((low, high));
        } else {
            lengths.push(index - begin);
            (begin, range) = (index, Some((mean, mean)));
        }
    }
    if range.is_some() {
        lengths.push(all - begin);
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Nanos;

    #[test]
    fn a_phase_ends_where_two_of_its_intervals_would_differ() {
        let interval = |(index, us): (u64, u64)| TraceInterval {
            index,
            requests: 1,
            responses: 1,
            response_sum: Nanos::from_micros(us).into(),
            ..TraceInterval::default()
        };
        let of = |times: &[(u64, u64)], all| phases(&times.iter().copied().map(interval).collect::<Vec<_>>(), all);
        // 100 to 109 belong together though they grow; 111 is too far from 100.
        assert_eq!(of(&[(0, 100), (1, 105), (2, 109), (3, 111), (9, 50), (10, 52)], 20), [3, 6, 11]);
        assert_eq!(of(&[(4, 100)], 20), [20]);
        assert_eq!(of(&[], 20), [] as [u64; 0]);
        let silent = TraceInterval { index: 1, requests: 1, ..TraceInterval::default() };
        assert_eq!(phases(&[interval((0, 100)), silent, interval((2, 100))], 3), [3]);
    }
}
