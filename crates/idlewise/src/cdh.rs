//! The cumulative data histogram (SIGMETRICS 2009, section 2.1): a distribution of times in at most 1,000 pairs, that can be
//! updated online and merged.

use crate::{Nanos, TotalTime};

/// Bins in each doubling of time.
const BINS: u64 = 24;
/// Times below 1,024 ns share the first bin.
const FIRST: u32 = 10;
/// Times from 2^50 ns, 13 days, on share the last.
const LAST: u32 = 50;
const COUNT: usize = (LAST - FIRST) as usize * BINS as usize + 2;

/// How times are distributed. At the ends of bins the distribution is exact; within one, which is 1/24 to 1/48 of its times
/// wide, it is not known. Bins are the same in all histograms, so that merging is adding.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cdh {
    /// Of each bin; empty before the first time, as the histograms of most of many disks are.
    counts: Vec<u64>,
    count: u64,
    total: TotalTime,
    longest: Nanos,
}

impl Cdh {
    /// The most pairs that there can be.
    pub const MOST_PAIRS: usize = 1_000;

    /// Adds a time.
    pub fn add(&mut self, time: Nanos) {
        self.add_many(time, 1);
    }

    /// Adds the same time so many times.
    pub fn add_many(&mut self, time: Nanos, times: u64) {
        self.counts.resize(COUNT, 0);
        let count = &mut self.counts[bin(time)];
        *count = count.saturating_add(times);
        self.count = self.count.saturating_add(times);
        self.total += time * times;
        self.longest = self.longest.max(time);
    }

    /// Adds all times of another histogram.
    pub fn merge(&mut self, other: &Self) {
        self.counts.resize(self.counts.len().max(other.counts.len()), 0);
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count = count.saturating_add(*more));
        self.count = self.count.saturating_add(other.count);
        self.total += other.total;
        self.longest = self.longest.max(other.longest);
    }

    /// Number of times.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum, exact.
    pub fn total(&self) -> TotalTime {
        self.total
    }

    /// The pairs (t, C): C is the share of times that are at most t, exactly. Only bins that hold times have a pair.
    pub fn pairs(&self) -> Vec<(Nanos, f64)> {
        let mut below = 0;
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let pair = |(bin, count): (usize, &u64)| {
            below += count;
            (end_of(bin).min(self.longest), below as f64 / self.count as f64)
        };
        filled.map(pair).collect()
    }

    /// The cumulative distribution, ready to be asked at any time.
    pub fn cumulative(&self) -> Cumulative {
        let mut below = vec![0.0; COUNT + 1];
        for (bin, count) in self.counts.iter().enumerate() {
            below[bin + 1] = below[bin] + *count as f64;
        }
        let whole = (self.count as f64).max(1.0);
        below.iter_mut().for_each(|below| *below /= whole);
        Cumulative { below, longest: self.longest }
    }

    /// A time that at least `share` (0 to 1) of the times do not exceed, at most a bin above the smallest such time;
    /// zero without times.
    pub fn quantile(&self, share: f64) -> Nanos {
        self.at_rank(rank(share, self.count as f64) as u64)
    }

    /// A time that at least so many of the times do not exceed, at most a bin above the smallest such time; zero without times.
    pub fn at_rank(&self, rank: u64) -> Nanos {
        let mut below = 0;
        let holds = self.counts.iter().position(|count| {
            below += count;
            below >= rank.max(1)
        });
        holds.map_or(self.longest, |bin| end_of(bin).min(self.longest))
    }
}

/// The shares of times below each bin's end.
#[derive(Clone, Debug)]
pub struct Cumulative {
    below: Vec<f64>,
    longest: Nanos,
}

impl Cumulative {
    /// The share of times that are at most this; times in a bin are taken to be spread evenly over it.
    pub fn at(&self, time: Nanos) -> f64 {
        if time >= self.longest {
            return self.below[COUNT];
        }
        let bin = bin(time);
        let begin = bin.checked_sub(1).map_or(0, |before| end_of(before).0 + 1);
        let end = end_of(bin).min(self.longest).0;
        let part = (time.0 - begin + 1) as f64 / (end - begin + 1) as f64;
        self.below[bin] + (self.below[bin + 1] - self.below[bin]) * part
    }
}

/// How many of `count` numbers this share is, rounded up, at least one. What is whole but for the error of the product stays as it is.
pub(crate) fn rank(share: f64, count: f64) -> f64 {
    let product = share * count;
    let whole = (product - product.round()).abs() <= product * 1e-12;
    (if whole { product.round() } else { product.ceil() }).max(1.0)
}

fn bin(time: Nanos) -> usize {
    let power = time.0.checked_ilog2().unwrap_or(0);
    match power {
        0..FIRST => 0,
        LAST.. => COUNT - 1,
        _ => {
            let above = time.0 - (1 << power);
            ((u64::from(power - FIRST)) * BINS + ((above * BINS) >> power) + 1) as usize
        }
    }
}

/// The longest time in a bin.
fn end_of(bin: usize) -> Nanos {
    if bin == COUNT - 1 {
        return Nanos(u64::MAX);
    }
    let (power, within) = (bin as u64 / BINS, bin as u64 % BINS);
    let begin = 1u64 << (u64::from(FIRST) + power);
    Nanos(begin + (within * begin).div_ceil(BINS) - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn histogram(times: &[u64]) -> Cdh {
        let mut histogram = Cdh::default();
        times.iter().for_each(|&time| histogram.add(Nanos(time)));
        histogram
    }

    #[test]
    fn every_time_falls_between_the_ends_of_its_bin_and_the_one_before() {
        for power in 0..64 {
            for time in [1u64 << power, (1u64 << power) + (1u64 << power) / 3, (2u64 << power).wrapping_sub(1)] {
                let bin = bin(Nanos(time));
                assert!(Nanos(time) <= end_of(bin) && (bin == 0 || Nanos(time) > end_of(bin - 1)), "{time} in {bin}");
            }
        }
        assert_eq!(histogram(&[]).quantile(0.5), Nanos::ZERO);
        // Of a hundred, seven, though the product is a little more.
        assert_eq!(
            [rank(0.07, 100.0), rank(29.0 / 35.0, 35.0), rank(0.071, 100.0), rank(0.0, 9.0)],
            [7.0, 29.0, 8.0, 1.0]
        );
        const { assert!(COUNT <= Cdh::MOST_PAIRS) };
    }

    proptest! {
        #[test]
        fn against_the_exact_distribution(exponents in prop::collection::vec(0.0f64..49.0, 1..300), share in 0.0f64..1.0) {
            let mut times: Vec<u64> = exponents.iter().map(|exponent| exponent.exp2() as u64).collect();
            let histogram = histogram(&times);
            times.sort_unstable();
            for (time, c) in histogram.pairs() {
                let exact = times.partition_point(|&t| t <= time.0) as f64 / times.len() as f64;
                prop_assert!((c - exact).abs() < 1e-12, "at {time}: {c} for {exact}");
            }
            let cumulative = histogram.cumulative();
            for (time, c) in histogram.pairs() {
                prop_assert!((cumulative.at(time) - c).abs() < 1e-9, "at {time}: {} for {c}", cumulative.at(time));
                prop_assert!(cumulative.at(Nanos(time.0 / 2)) <= c);
            }
            let exact = times[((share * times.len() as f64).ceil() as usize).max(1) - 1];
            let found = histogram.quantile(share).0;
            prop_assert!(found >= exact && found as f64 <= exact as f64 * (1.0 + 1.0 / 24.0) + 1024.0, "{found} for {exact}");
            prop_assert_eq!(histogram.total(), times.iter().map(|&t| Nanos(t)).sum::<TotalTime>());
        }

        #[test]
        fn merging_is_adding(a in prop::collection::vec(any::<u64>(), 0..50), b in prop::collection::vec(any::<u64>(), 0..50)) {
            let mut merged = histogram(&a);
            merged.merge(&histogram(&b));
            prop_assert_eq!(merged, histogram(&[a, b].concat()));
        }
    }
}
