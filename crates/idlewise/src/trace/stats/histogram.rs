//! Quantiles of numbers of any size in little memory.

use std::collections::BTreeMap;

use crate::cdh::rank;

/// Bits of a number that are kept: bins are at most 1/256 of their numbers wide, and numbers up to 512 are exact.
const BITS: u32 = 8;

/// How often each number was seen, or for how long. Numbers are known to 1/256, rounded down.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// By the first number of each bin, of which there are at most 14,592.
    bins: BTreeMap<u64, u128>,
    weight: u128,
    sum: f64,
    most: u64,
}

impl Histogram {
    /// Adds a number so many times.
    pub fn add(&mut self, value: u64, weight: u128) {
        if weight == 0 {
            return;
        }
        let shift = value.checked_ilog2().unwrap_or(0).saturating_sub(BITS);
        *self.bins.entry(value >> shift << shift).or_default() += weight;
        self.weight += weight;
        self.sum += value as f64 * weight as f64;
        self.most = self.most.max(value);
    }

    /// Memory that it takes, about.
    pub(super) fn memory(&self) -> u64 {
        /// What the smallest tree takes, and what each entry adds.
        const TREE: u64 = 300;
        const ENTRY: u64 = 50;
        if self.bins.is_empty() { 0 } else { TREE + ENTRY * self.bins.len() as u64 }
    }

    /// The numbers seen, counted with their weights.
    pub fn weight(&self) -> u128 {
        self.weight
    }

    /// Their mean; `None` without any.
    pub fn mean(&self) -> Option<f64> {
        (self.weight > 0).then(|| self.sum / self.weight as f64)
    }

    /// The largest; `None` without any.
    pub fn most(&self) -> Option<u64> {
        (self.weight > 0).then_some(self.most)
    }

    /// The smallest number that at least `share` (0 to 1) of the numbers do not exceed; `None` without any.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let rank = (rank(share, self.weight as f64) as u128).clamp(1, self.weight.max(1));
        let mut below = 0;
        let holds = |(first, weight): (&u64, &u128)| {
            below += weight;
            (below >= rank).then_some(*first)
        };
        self.bins.iter().find_map(holds)
    }

    /// Numbers, growing, each with the share of all that are in its bin or below.
    pub fn shares(&self) -> Vec<(u64, f64)> {
        let mut below = 0;
        let share = |(first, weight): (&u64, &u128)| {
            below += weight;
            (*first, below as f64 / self.weight as f64)
        };
        self.bins.iter().map(share).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn small_numbers_are_exact_and_nothing_has_no_quantile() {
        let mut histogram = Histogram::default();
        assert_eq!((histogram.quantile(0.5), histogram.mean(), histogram.most()), (None, None, None));
        (1..=100).for_each(|value| histogram.add(value, 2));
        let found = [0.0, 0.5, 0.99, 1.0].map(|share| histogram.quantile(share).unwrap());
        assert_eq!((found, histogram.mean(), histogram.most()), ([1, 50, 99, 100], Some(50.5), Some(100)));
        histogram.add(u64::MAX, 1);
        assert_eq!((histogram.most(), histogram.weight()), (Some(u64::MAX), 201));
    }

    proptest! {
        #[test]
        fn quantiles_are_those_of_the_sorted_numbers(
            exponents in prop::collection::vec(0.0f64..63.9, 1..400), share in 0.0f64..=1.0,
        ) {
            let mut numbers: Vec<u64> = exponents.iter().map(|exponent| exponent.exp2() as u64).collect();
            let mut histogram = Histogram::default();
            numbers.iter().for_each(|&number| histogram.add(number, 1));
            numbers.sort_unstable();
            let exact = numbers[((share * numbers.len() as f64).ceil() as usize).max(1) - 1];
            let found = histogram.quantile(share).unwrap();
            prop_assert!(found <= exact && exact - found <= exact / 256, "{found} for {exact}");
            prop_assert_eq!(histogram.shares().last().unwrap().1, 1.0);
        }
    }
}
