//! What can be said of idle intervals in numbers.

use serde::Serialize;

use super::Idleness;
use crate::{Nanos, TotalTime};

/// The summary that `idlewise idle` prints. Names are those of `--json`; times are in seconds; numbers that do not
/// exist (a mean of no intervals) are `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Statistics {
    /// Foreground requests.
    pub requests: u64,
    /// First arrival to last completion.
    pub span_s: f64,
    /// Busy time over span, of all disks together.
    pub utilisation: Option<f64>,
    /// Number of idle intervals.
    pub idle_intervals: u64,
    /// Mean length.
    pub idle_mean_s: Option<f64>,
    /// Population variance of the lengths.
    pub idle_variance_s2: Option<f64>,
    /// Coefficient of variation: standard deviation over mean (DSN 2012, table II).
    pub idle_cov: Option<f64>,
    /// Share of the intervals longer than 100 ms.
    pub longer_than_100ms: Option<f64>,
    /// Share of the idle time in the 15 % longest intervals (DSN 2012, figure 10).
    pub idle_share_longest_15pct: Option<f64>,
    /// Share of the idle time left after waiting 10 ms in each interval (DSN 2012, figure 13).
    pub usable_after_10ms: Option<f64>,
    /// The same after 100 ms.
    pub usable_after_100ms: Option<f64>,
    /// The same after 1 s.
    pub usable_after_1s: Option<f64>,
}

impl Statistics {
    /// Intervals from which on variance and coefficient of variation say something: of n exponential lengths the coefficient
    /// has a standard error of 1 / sqrt(n), here a fifth.
    pub const FEWEST_VARYING: u64 = 25;

    /// The numbers of some disks taken together: their intervals in one sample.
    pub fn of(disks: &[Idleness]) -> Self {
        let begin = disks.iter().map(|disk| disk.begin).min().unwrap_or_default();
        let end = disks.iter().map(|disk| disk.end).max().unwrap_or_default();
        let spans: TotalTime = disks.iter().map(Idleness::span).sum();
        let busy: TotalTime = disks.iter().map(Idleness::busy).sum();
        let mut lengths: Vec<u64> = disks.iter().flat_map(|d| d.intervals.iter().map(|i| i.length.0)).collect();
        let count = lengths.len();
        let total: u128 = lengths.iter().map(|&length| u128::from(length)).sum();
        let share = |part: u128| (total > 0).then(|| part as f64 / total as f64);
        let usable = |wait: Nanos| share(lengths.iter().map(|&length| u128::from(length.saturating_sub(wait.0))).sum());
        let mean = (count > 0).then(|| total as f64 / count as f64 / 1e9);
        let variance =
            mean.map(|mean| lengths.iter().map(|&l| (l as f64 / 1e9 - mean).powi(2)).sum::<f64>() / count as f64);
        let longer = lengths.iter().filter(|&&length| length > Nanos::from_millis(100).0).count();
        let usable = [Nanos::from_millis(10), Nanos::from_millis(100), Nanos::from_secs(1)].map(usable);
        let longest = ((0.15 * count as f64).round() as usize).max(1).min(count);
        // Which these are has to be known, and not their order.
        if count > longest {
            lengths.select_nth_unstable(count - longest);
        }
        Self {
            requests: disks.iter().map(|disk| disk.requests).sum(),
            span_s: end.since(begin).as_secs_f64(),
            utilisation: (spans > TotalTime::ZERO).then(|| busy.0 as f64 / spans.0 as f64),
            idle_intervals: count as u64,
            idle_mean_s: mean,
            idle_variance_s2: variance,
            idle_cov: mean.zip(variance).map(|(mean, variance)| variance.sqrt() / mean),
            longer_than_100ms: (count > 0).then(|| longer as f64 / count as f64),
            idle_share_longest_15pct: share(lengths[count - longest..].iter().map(|&l| u128::from(l)).sum()),
            usable_after_10ms: usable[0],
            usable_after_100ms: usable[1],
            usable_after_1s: usable[2],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Interval;
    use super::*;

    fn disk(lengths_ms: &[u64]) -> Idleness {
        let interval = |&ms: &u64| Interval { length: Nanos::from_millis(ms), followers: 1, busy_before: Nanos(1) };
        let intervals: Vec<_> = lengths_ms.iter().map(interval).collect();
        let end = Nanos::from_millis(lengths_ms.iter().sum::<u64>() + 100);
        Idleness { requests: intervals.len() as u64 + 1, end, intervals, ..Idleness::default() }
    }

    #[test]
    fn by_hand() {
        let numbers = Statistics::of(&[disk(&[5, 15, 120, 1860])]);
        assert_eq!(numbers.requests, 5);
        assert_eq!(numbers.idle_intervals, 4);
        let close = |a: Option<f64>, b: f64| assert!((a.unwrap() - b).abs() < 1e-12, "{a:?} {b}");
        close(numbers.utilisation, 0.1 / 2.1);
        close(numbers.idle_mean_s, 0.5);
        close(
            numbers.idle_variance_s2,
            (0.495f64.powi(2) + 0.485f64.powi(2) + 0.38f64.powi(2) + 1.36f64.powi(2)) / 4.0,
        );
        close(numbers.idle_share_longest_15pct, 0.93);
        close(numbers.usable_after_10ms, 1.965 / 2.0);
        close(numbers.usable_after_100ms, 1.78 / 2.0);
        close(numbers.usable_after_1s, 0.86 / 2.0);
    }

    #[test]
    fn what_does_not_exist_is_none() {
        let numbers = Statistics::of(&[disk(&[])]);
        assert_eq!((numbers.idle_mean_s, numbers.idle_cov, numbers.usable_after_1s), (None, None, None));
        assert_eq!(Statistics::of(&[]).utilisation, None);
    }

    #[test]
    fn disks_together_are_one_sample() {
        let (a, b) = (disk(&[10, 20]), disk(&[30]));
        let both = Statistics::of(&[a, b]);
        assert_eq!((both.requests, both.idle_intervals), (5, 3));
        assert!((both.idle_mean_s.unwrap() - 0.02).abs() < 1e-12);
    }
}
