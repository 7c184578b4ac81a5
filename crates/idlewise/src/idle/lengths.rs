//! The exact distribution of idle lengths, and what it says of an interval that has already lasted (DSN 2012, figures 10
//! to 13).

use super::{Idleness, special};
use crate::Nanos;

/// The lengths of idle intervals, sorted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lengths {
    sorted: Vec<u64>,
    /// Sum of the lengths from each on; zero behind the last.
    sums: Vec<u128>,
}

/// How likely an interval is to end at some age.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Hazard {
    /// From this age in seconds ...
    pub from_s: f64,
    /// ... to this one.
    pub to_s: f64,
    /// Intervals that ended at that age.
    pub ended: u64,
    /// Ends a second of idle time at that age.
    pub per_s: f64,
}

/// The test of exponential idle times against a hazard rate that decreases (Barlow and Proschan's cumulative total time on
/// test).
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct HazardTest {
    /// Standard normal if the hazard rate is constant, negative if it decreases.
    pub z: f64,
    /// Probability of a z so low or lower if it does not.
    pub p: f64,
    /// Whether it decreases: p below 0.01.
    pub decreasing: bool,
}

/// Zero and the times that shares of `sorted` ones exceed, in equal ratios from all of them down to `rarest`: candidates for a
/// wait, close where many intervals end.
pub fn exceeded_by_shares(sorted: &[Nanos], rarest: f64, steps: usize) -> Vec<Nanos> {
    let exceeded = |step: usize| {
        let share = rarest.powf(step as f64 / steps as f64);
        sorted.get(((1.0 - share) * sorted.len() as f64) as usize).copied()
    };
    let mut times: Vec<Nanos> = std::iter::once(Nanos::ZERO).chain((0..=steps).filter_map(exceeded)).collect();
    times.dedup();
    times
}

impl Lengths {
    /// The lengths of some disks' intervals taken together.
    pub fn of(disks: &[Idleness]) -> Self {
        Self::of_nanos(disks.iter().flat_map(|disk| disk.intervals.iter().map(|interval| interval.length.0)).collect())
    }

    fn of_nanos(mut sorted: Vec<u64>) -> Self {
        sorted.sort_unstable();
        let mut sums = vec![0; sorted.len() + 1];
        for index in (0..sorted.len()).rev() {
            sums[index] = sums[index + 1] + u128::from(sorted[index]);
        }
        Self { sorted, sums }
    }

    /// Number of intervals.
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// The longest.
    pub fn longest(&self) -> Nanos {
        Nanos(self.sorted.last().copied().unwrap_or(0))
    }

    /// Where the intervals longer than `age` begin.
    fn longer(&self, age: Nanos) -> usize {
        self.sorted.partition_point(|&length| length <= age.0)
    }

    /// Share of the idle time in the longest intervals, of which there are round(`share` n), at least one (figure 10).
    pub fn share_of_longest(&self, share: f64) -> Option<f64> {
        let count = ((share * self.len() as f64).round() as usize).clamp(1, self.len().max(1));
        self.of_total(*self.sums.get(self.len().checked_sub(count)?)?)
    }

    /// Share of the idle time that is left after waiting in each interval (figure 13).
    pub fn usable_after(&self, wait: Nanos) -> Option<f64> {
        let first = self.longer(wait);
        let waited = (self.len() - first) as u128 * u128::from(wait.0);
        self.of_total(self.sums[first] - waited)
    }

    fn of_total(&self, part: u128) -> Option<f64> {
        let total = *self.sums.first()?;
        (total > 0).then(|| part as f64 / total as f64)
    }

    /// Share of the intervals that are longer than `age`.
    pub fn share_longer(&self, age: Nanos) -> Option<f64> {
        (!self.is_empty()).then(|| (self.len() - self.longer(age)) as f64 / self.len() as f64)
    }

    /// Mean time that remains of an interval that has lasted `age`, in seconds (figure 11).
    pub fn expected_remaining(&self, age: Nanos) -> Option<f64> {
        let first = self.longer(age);
        let count = self.len() - first;
        (count > 0).then(|| (self.sums[first] as f64 / count as f64 - age.0 as f64) / 1e9)
    }

    /// The time that remains, in all but the `share` shortest, of an interval that has lasted `age`, in seconds (figure 12).
    pub fn remaining_quantile(&self, age: Nanos, share: f64) -> Option<f64> {
        let first = self.longer(age);
        let count = self.len() - first;
        let rank = ((share * count as f64).ceil() as usize).max(1);
        (count > 0).then(|| (self.sorted[first + rank - 1] - age.0) as f64 / 1e9)
    }

    /// The hazard rate by age, in bins that are each twice as wide as the one before; bins in which fewer than ten intervals
    /// end are joined to the next.
    pub fn hazard(&self) -> Vec<Hazard> {
        const FEWEST: usize = 10;
        let mut bins = Vec::new();
        let (mut from, mut to) = (0u64, 1_000u64);
        while from < self.longest().0 {
            let (first, end) = (self.longer(Nanos(from)), self.longer(Nanos(to)));
            let last = to >= self.longest().0;
            if end - first >= FEWEST || last && end > first {
                let whole = (self.len() - end) as u128 * u128::from(to - from);
                let partial = self.sums[first] - self.sums[end] - (end - first) as u128 * u128::from(from);
                let per_s = (end - first) as f64 / ((whole + partial) as f64 / 1e9);
                let seconds = |nanos: u64| nanos as f64 / 1e9;
                let to_s = seconds(to.min(self.longest().0));
                bins.push(Hazard { from_s: seconds(from), to_s, ended: (end - first) as u64, per_s });
                from = to;
            }
            if last {
                break;
            }
            to = to.saturating_mul(2);
        }
        bins
    }

    /// Tests whether the hazard rate of intervals that have lasted `age` decreases further. `None` for fewer than ten.
    pub fn hazard_test(&self, age: Nanos) -> Option<HazardTest> {
        let first = self.longer(age);
        let n = self.len() - first;
        if n < 10 {
            return None;
        }
        // Total time on test until each end, over that until the last.
        let (mut until, mut last, mut sum) = (0.0, age.0, 0.0);
        for (index, &length) in self.sorted[first..].iter().enumerate() {
            until += (n - index) as f64 * (length - last) as f64;
            last = length;
            if index + 1 < n {
                sum += until;
            }
        }
        let degrees = (n - 1) as f64;
        let z = (sum / until - degrees / 2.0) / (degrees / 12.0).sqrt();
        let p = special::normal_below(z);
        Some(HazardTest { z, p, decreasing: p < 0.01 })
    }
}

#[cfg(test)]
mod tests {
    use rand_distr::{Distribution, Exp1};

    use super::*;

    fn exponential(power: f64) -> Lengths {
        let mut random: rand_pcg::Pcg64 = rand::SeedableRng::seed_from_u64(3);
        let draw = |_| (f64::powf(Exp1.sample(&mut random), power) * 1e8) as u64 + 1;
        Lengths::of_nanos((0..20_000).map(draw).collect())
    }

    #[test]
    fn by_hand() {
        let lengths = Lengths::of_nanos(vec![5_000_000_000, 1_000_000_000, 4_000_000_000]);
        let second = Nanos::from_secs(1);
        assert_eq!(lengths.share_of_longest(0.34), Some(0.5));
        assert_eq!(lengths.usable_after(second), Some(0.7));
        assert_eq!(
            (lengths.expected_remaining(second), lengths.expected_remaining(Nanos::ZERO)),
            (Some(3.5), Some(10.0 / 3.0))
        );
        assert_eq!(
            (lengths.remaining_quantile(second, 0.01), lengths.remaining_quantile(second, 0.9)),
            (Some(3.0), Some(4.0))
        );
        assert_eq!(
            (lengths.share_longer(second), lengths.expected_remaining(Nanos::from_secs(5))),
            (Some(2.0 / 3.0), None)
        );
        assert_eq!(Lengths::default().share_of_longest(0.1), None);
    }

    #[test]
    fn the_hazard_of_exponential_times_is_their_rate_and_does_not_decrease() {
        let lengths = exponential(1.0);
        for bin in lengths.hazard().iter().filter(|bin| bin.ended > 500) {
            assert!((bin.per_s / 10.0 - 1.0).abs() < 0.15, "{bin:?}");
        }
        assert!(!lengths.hazard_test(Nanos::ZERO).unwrap().decreasing);
        assert!(!lengths.hazard_test(Nanos::from_millis(100)).unwrap().decreasing);
        let (long_tailed, narrow) = (exponential(2.0), exponential(0.5));
        assert!(long_tailed.hazard_test(Nanos::ZERO).unwrap().decreasing);
        assert!(narrow.hazard_test(Nanos::ZERO).unwrap().p > 0.99);
        let hazard = long_tailed.hazard();
        assert!(hazard[0].per_s > 5.0 * hazard[hazard.len() - 2].per_s, "{hazard:?}");
        assert_eq!(lengths.hazard().iter().map(|bin| bin.ended).sum::<u64>(), 20_000);
    }
}
