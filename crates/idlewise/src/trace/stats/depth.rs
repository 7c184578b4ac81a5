//! How many requests are in flight, over time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Histogram;
use crate::Nanos;

/// With more requests in flight their completions are no longer kept.
const MOST: usize = 1 << 20;

/// Follows arrivals and completions.
#[derive(Debug, Default)]
pub struct Depth {
    /// Completions to come.
    completions: BinaryHeap<Reverse<u64>>,
    now: Option<u64>,
    depths: Histogram,
    given_up: bool,
}

impl Depth {
    /// Adds a request; arrivals must not fall.
    pub fn request(&mut self, arrival: Nanos, end: Nanos) {
        if self.given_up {
            return;
        }
        self.advance(arrival.0);
        self.completions.push(Reverse(end.0));
        if self.completions.len() > MOST {
            *self = Self { given_up: true, ..Self::default() };
        }
    }

    /// Memory that it takes, about.
    pub fn memory(&self) -> u64 {
        (self.completions.capacity() * size_of::<u64>()) as u64 + self.depths.memory()
    }

    /// The depths, each with the nanoseconds for which it lasted, up to the last completion.
    pub fn finish(mut self) -> Histogram {
        self.advance(u64::MAX);
        self.depths
    }

    fn advance(&mut self, until: u64) {
        let mut now = self.now.unwrap_or(until);
        while let Some(&Reverse(end)) = self.completions.peek().filter(|Reverse(end)| *end <= until) {
            self.depths.add(self.completions.len() as u64, u128::from(end.saturating_sub(now)));
            now = now.max(end);
            self.completions.pop();
        }
        // Behind the last completion there is nothing to tell of.
        if until < u64::MAX {
            self.depths.add(self.completions.len() as u64, u128::from(until.saturating_sub(now)));
            now = until;
        }
        self.now = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn too_many_in_flight_are_given_up() {
        let mut depth = Depth::default();
        (0..=MOST as u64).for_each(|at| depth.request(Nanos(at), Nanos(u64::MAX - 1)));
        assert!(depth.given_up);
        assert_eq!(depth.finish().most(), None);
    }

    proptest! {
        #[test]
        fn equals_counting_at_each_moment(requests in prop::collection::vec((0u64..20, 0u64..60), 1..40)) {
            let (mut depth, mut at) = (Depth::default(), 0);
            let mut served = Vec::new();
            for (pause, response) in requests {
                at += pause;
                served.push((at, at + response));
                depth.request(Nanos(at), Nanos(at + response));
            }
            let last = served.iter().map(|&(_, end)| end).max().unwrap().max(at);
            let mut expected = Histogram::default();
            for moment in served[0].0..last {
                expected.add(served.iter().filter(|&&(from, to)| from <= moment && moment < to).count() as u64, 1);
            }
            prop_assert_eq!(depth.finish().shares(), expected.shares());
        }
    }
}
