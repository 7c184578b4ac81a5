//! Everything that can be said about the idle times of a trace, in one value.

use serde::Serialize;

use super::{
    AutoRegression, Autocorrelation, Hazard, HazardTest, Idleness, Lengths, Period, Statistics, Verdict, burstiness,
    hurst, periods,
};
use crate::{Cdh, Nanos};

/// Lags of the autocorrelation function that are kept.
const LAGS: usize = 100;
/// Intervals from which on their order says something: 95 % of the autocorrelations of as many independent ones are within 0.28.
const FEWEST_ORDERED: usize = 50;
/// The wait of the paper's observations.
const WAIT: Nanos = Nanos::from_millis(100);

/// The idle times of one disk, or of the disks of one trace. Names are those of `--json`, times in seconds; what does not
/// exist (the autocorrelation of three intervals) is `None`.
#[derive(Clone, Debug, Serialize)]
pub struct Profile {
    /// The numbers of `idlewise idle` without more.
    #[serde(flatten)]
    pub statistics: Statistics,
    /// Arrivals in each hour of the trace, of all disks together (DSN 2012, figure 8).
    pub requests_per_hour: Vec<u64>,
    /// Candidate periods of the requests per hour (figure 9).
    pub periods: Vec<Period>,
    /// The strongest of them, if chance does not explain it.
    pub strongest_period: Option<Period>,
    /// The disk that the next five are about, since the order of intervals has a meaning only on one: the one with the most
    /// intervals.
    pub sequence_volume: String,
    /// Autocorrelation of the lengths of intervals.
    pub autocorrelation: Option<Autocorrelation>,
    /// Hurst parameter by detrended fluctuation analysis.
    pub hurst_fluctuation: Option<f64>,
    /// Hurst parameter by local Whittle.
    pub hurst_local_whittle: Option<f64>,
    /// See [`burstiness`].
    pub burstiness: Option<f64>,
    /// The autoregressive model of the lengths.
    pub autoregression: Option<AutoRegression>,
    /// The part of the idle times to use (DSN 2008, section 4).
    pub verdict: Option<Verdict>,
    /// Hazard rate by age.
    pub hazard: Vec<Hazard>,
    /// Whether it decreases.
    pub hazard_test: Option<HazardTest>,
    /// Whether it still does in intervals that have lasted 100 ms.
    pub hazard_test_after_100ms: Option<HazardTest>,
    /// The cumulative data histogram: pairs of a length in seconds and the share of intervals not longer.
    pub cdh: Vec<(f64, f64)>,
    /// The exact distribution.
    #[serde(skip)]
    pub lengths: Lengths,
}

impl Profile {
    /// The profile of some disks taken together.
    pub fn of(disks: &[Idleness]) -> Self {
        let statistics = Statistics::of(disks);
        let lengths = Lengths::of(disks);
        let requests_per_hour = together(disks);
        let periods = periods::periods(&requests_per_hour);
        let nothing = Idleness::default();
        let busiest = disks.iter().max_by_key(|disk| disk.intervals.len()).unwrap_or(&nothing);
        let sequence: Vec<f64> = busiest.intervals.iter().map(|interval| interval.length.as_secs_f64()).collect();
        let ordered = if sequence.len() < FEWEST_ORDERED { &[] } else { &sequence[..] };
        let burstiness = burstiness(busiest).filter(|_| !ordered.is_empty());
        let mut cdh = Cdh::default();
        disks.iter().flat_map(|disk| &disk.intervals).for_each(|interval| cdh.add(interval.length));
        Self {
            verdict: statistics.idle_cov.and_then(|cov| Verdict::of(cov, burstiness, lengths.len())),
            statistics,
            strongest_period: periods::strongest(&periods),
            periods,
            requests_per_hour,
            sequence_volume: busiest.volume.clone(),
            autocorrelation: Autocorrelation::of(ordered, LAGS),
            hurst_fluctuation: hurst::by_fluctuation(&sequence),
            hurst_local_whittle: hurst::by_local_whittle(&sequence),
            burstiness,
            autoregression: AutoRegression::fit(ordered),
            hazard: lengths.hazard(),
            hazard_test: lengths.hazard_test(Nanos::ZERO),
            hazard_test_after_100ms: lengths.hazard_test(WAIT),
            cdh: cdh.pairs().into_iter().map(|(length, share)| (length.as_secs_f64(), share)).collect(),
            lengths,
        }
    }
}

/// Requests per hour of all disks, up to the hour of the last; none of a trace of so many years that its clock must have jumped.
fn together(disks: &[Idleness]) -> Vec<u64> {
    const MOST_HOURS: u64 = 20 * 366 * 24;
    let last = disks.iter().filter_map(|disk| disk.requests_per_hour.last()).map(|(hour, _)| *hour).max();
    let Some(last) = last.filter(|&last| last < MOST_HOURS) else { return Vec::new() };
    let mut counts = vec![0; last as usize + 1];
    for (hour, count) in disks.iter().flat_map(|disk| &disk.requests_per_hour) {
        counts[*hour as usize] += count;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::DiskModel;
    use crate::trace::{ReadOptions, parse_bytes};

    #[test]
    fn two_disks_are_one_sample_but_two_sequences() {
        let text = "0,a,0,Read,0,512,10\n10000000,b,0,Read,0,512,10\n36000000000,a,0,Read,0,512,10\n36001000000,a,0,Read,0,512,10\n";
        let trace = parse_bytes("t", text.as_bytes(), &ReadOptions::default()).unwrap();
        let disks = Idleness::of_trace(&trace, &DiskModel::ultrastar_15k450()).unwrap();
        let profile = Profile::of(&disks);
        assert_eq!((profile.requests_per_hour, profile.lengths.len()), (vec![2, 2], 2));
        assert_eq!((&profile.sequence_volume[..], profile.autocorrelation), ("a_0", None));
    }

    #[test]
    fn of_few_intervals_no_more_is_said_than_they_hold() {
        let profile = |count: u64| {
            let interval =
                |k| crate::idle::Interval { length: Nanos(1_000_000 * (1 + k * k % 17)), ..Default::default() };
            let intervals = (0..count).map(interval).collect();
            Profile::of(&[Idleness { intervals, ..Idleness::default() }])
        };
        let few = profile(49);
        assert!(few.autocorrelation.is_none() && few.autoregression.is_none() && few.burstiness.is_none());
        let some = profile(99);
        assert!(some.autocorrelation.is_some() && some.burstiness.is_some() && some.verdict.is_none());
        assert!(profile(100).verdict.is_some() && profile(1_000).hurst_local_whittle.is_none());
    }

    #[test]
    fn of_nothing_nothing_is_said() {
        let profile = Profile::of(&[]);
        assert!(profile.verdict.is_none() && profile.hazard.is_empty() && profile.cdh.is_empty());
    }
}
