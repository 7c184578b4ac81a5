//! Multi-level entropy (SIGMETRICS 2015, section 4.3 and figure 9).

/// Levels of aggregation: buckets double in width from one to the next.
pub const LEVELS: usize = 16;

/// The Shannon entropy of requests over buckets, at each level of aggregation.
#[derive(Clone, Debug, Default)]
pub(super) struct Entropy {
    /// The sum of `c log2 c` over the buckets of each level, `c` being the requests in a bucket.
    sums: [f64; LEVELS],
    requests: u64,
}

impl Entropy {
    /// Adds the buckets of a space that is aggregated by itself: numbers of buckets of the finest level, growing, and the
    /// requests in each. They are used up.
    pub fn add(&mut self, buckets: &mut Vec<(u64, u64)>) {
        self.requests += buckets.iter().map(|bucket| bucket.1).sum::<u64>();
        for level in 0..LEVELS {
            if let [(_, count)] = buckets[..] {
                // Merging changes nothing any more.
                self.sums[level..].iter_mut().for_each(|sum| *sum += c_log_c(count));
                break;
            }
            self.sums[level] += buckets.iter().map(|&(_, count)| c_log_c(count)).sum::<f64>();
            buckets.iter_mut().for_each(|bucket| bucket.0 >>= 1);
            add_up(buckets);
        }
        buckets.clear();
    }

    /// The mean over the levels, in bits: 0 where all requests share a bucket, and at most the logarithm of their number.
    pub fn mean_bits(&self) -> f64 {
        if self.requests == 0 {
            return 0.0;
        }
        let requests = self.requests as f64;
        let of_level = |sum: &f64| (requests.log2() - sum / requests).max(0.0);
        self.sums.iter().map(of_level).sum::<f64>() / LEVELS as f64
    }
}

/// Merges neighbours of the same bucket, in place.
pub(super) fn add_up(buckets: &mut Vec<(u64, u64)>) {
    buckets.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        kept.1 += if same { next.1 } else { 0 };
        same
    });
}

fn c_log_c(count: u64) -> f64 {
    if count <= 1 { 0.0 } else { count as f64 * (count as f64).log2() }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// By the definition: the counts of each level, their shares, and minus the sum of `p log2 p`.
    fn naive(spaces: &[Vec<u64>]) -> f64 {
        let total: usize = spaces.iter().map(Vec::len).sum();
        let level = |level: usize| {
            let mut counts = HashMap::new();
            for (space, places) in spaces.iter().enumerate() {
                places.iter().for_each(|place| *counts.entry((space, place >> level)).or_insert(0u32) += 1);
            }
            let shares = counts.values().map(|&count| f64::from(count) / total as f64);
            -shares.map(|share| share * share.log2()).sum::<f64>()
        };
        (0..LEVELS).map(level).sum::<f64>() / LEVELS as f64
    }

    #[test]
    fn requests_in_one_place_have_none_and_those_far_apart_their_logarithm() {
        let mut entropy = Entropy::default();
        entropy.add(&mut vec![(7, 1000)]);
        assert_eq!(entropy.mean_bits(), 0.0);
        let mut entropy = Entropy::default();
        entropy.add(&mut (0..8).map(|k| (k << 40, 1)).collect());
        assert_eq!(entropy.mean_bits(), 3.0);
        assert_eq!(Entropy::default().mean_bits(), 0.0);
    }

    proptest! {
        #[test]
        fn is_the_mean_of_what_the_definition_says(
            spaces in prop::collection::vec(prop::collection::vec(0u64..1 << 20, 0..60), 1..4),
            narrow in 0u32..20,
        ) {
            let spaces: Vec<Vec<u64>> =
                spaces.into_iter().map(|places| places.into_iter().map(|place| place >> narrow).collect()).collect();
            prop_assume!(spaces.iter().any(|places| !places.is_empty()));
            let mut entropy = Entropy::default();
            for places in &spaces {
                let mut buckets: Vec<(u64, u64)> = places.iter().map(|&place| (place, 1)).collect();
                buckets.sort_unstable();
                add_up(&mut buckets);
                entropy.add(&mut buckets);
            }
            prop_assert!((entropy.mean_bits() - naive(&spaces)).abs() < 1e-9);
        }
    }
}
