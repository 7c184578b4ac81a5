//! How many foreground requests were slowed by how much.

use crate::Nanos;

/// Foreground requests by their slowdown: how many were slowed by at most each of [`Slowdowns::LIMITS`] and by more than the limit before it,
/// and last how many by more than all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slowdowns {
    counts: [u64; Self::LIMITS.len() + 1],
}

impl Slowdowns {
    /// The limits, three in a power of ten, from 100 us to 1 s.
    pub const LIMITS: [Nanos; 13] = [
        Nanos(100_000),
        Nanos(200_000),
        Nanos(500_000),
        Nanos(1_000_000),
        Nanos(2_000_000),
        Nanos(5_000_000),
        Nanos(10_000_000),
        Nanos(20_000_000),
        Nanos(50_000_000),
        Nanos(100_000_000),
        Nanos(200_000_000),
        Nanos(500_000_000),
        Nanos(1_000_000_000),
    ];

    /// With these counts, of which there is one more than limits; those that are missing are zero.
    pub fn of(counts: &[u64]) -> Self {
        let mut all = Self::default();
        all.counts.iter_mut().zip(counts).for_each(|(count, given)| *count = *given);
        all
    }

    /// Takes in so many requests that were slowed by this each.
    pub fn add(&mut self, requests: u64, slowdown: Nanos) {
        let count = &mut self.counts[Self::LIMITS.partition_point(|limit| *limit < slowdown)];
        *count = count.saturating_add(requests);
    }

    /// Takes in all of another.
    pub fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(other.counts).for_each(|(count, more)| *count = count.saturating_add(more));
    }

    /// What has come since an earlier state.
    pub fn since(&self, before: &Self) -> Self {
        let mut since = *self;
        since.counts.iter_mut().zip(before.counts).for_each(|(count, before)| *count = count.saturating_sub(before));
        since
    }

    /// For each limit how many were slowed by at most this and more than the limit before; then how many by more than all limits.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// All requests.
    pub fn requests(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slowdown_counts_below_the_first_limit_that_it_does_not_exceed() {
        let mut all = Slowdowns::default();
        for (requests, slowdown) in [(5, 0), (1, 100_000), (2, 100_001), (1, 1_000_000_000), (3, 1_000_000_001)] {
            all.add(requests, Nanos(slowdown));
        }
        assert_eq!(all.counts(), [6, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3]);
        let mut more = all;
        more.add(4, Nanos(2_000_000));
        assert_eq!((more.since(&all).counts()[4], more.since(&all).requests(), more.requests()), (4, 4, 16));
        all.merge(&more.since(&all));
        assert_eq!((all, Slowdowns::of(more.counts()), Slowdowns::of(&[6])), (more, more, Slowdowns::of(&[6, 0])));
    }
}
