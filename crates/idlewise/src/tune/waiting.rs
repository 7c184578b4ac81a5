//! Waiting(t) with a fixed service time over many thresholds: the engine's answer, in time proportional to the
//! intervals longer than the threshold and those that their collisions reach.

use crate::idle::Interval;
use crate::policy::waiting;
use crate::simulate::Outcome;
use crate::{Bytes, Nanos};

/// The intervals of one disk, with the ones worth looking at for growing thresholds.
pub struct Waits<'a> {
    intervals: &'a [Interval],
    /// Indices of intervals longer than the last threshold, ascending.
    longer: Vec<u32>,
    threshold: u64,
}

impl<'a> Waits<'a> {
    /// Starts at a threshold of zero.
    pub fn new(intervals: &'a [Interval]) -> Self {
        let count = u32::try_from(intervals.len()).expect("under 4 billion idle intervals");
        Self { intervals, longer: (0..count).collect(), threshold: 0 }
    }

    /// Drops the intervals no longer than `threshold`, which must not fall.
    pub fn raise(&mut self, threshold: Nanos) {
        debug_assert!(threshold.0 >= self.threshold);
        self.threshold = threshold.0;
        self.longer.retain(|&index| self.intervals[index as usize].length > threshold);
    }

    /// What Waiting(`wait`) with requests of `size` that take `service` does; `wait` is at least the last threshold.
    pub fn outcome(&self, wait: Nanos, service: Nanos, size: Bytes) -> Outcome {
        let done = waiting::on_intervals(self.intervals, &self.longer, wait, service);
        Outcome {
            scrubbed: Bytes(done.requests.saturating_mul(size.0)),
            background_requests: done.requests,
            collisions: done.collisions,
            delay_sum: done.delay_sum,
            longest_delay: done.longest_delay,
            used_idle: done.used_idle,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::disk::{DiskModel, Point};
    use crate::idle::Idleness;
    use crate::policy::Waiting as Policy;
    use crate::simulate::simulate;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn equals_the_engine(
            lengths in prop::collection::vec((prop_oneof![1u64..8, 1u64..80, 1u64..800], 1u64..5), 0..150),
            waits in prop::collection::vec(prop_oneof![0u64..10, 0u64..300], 1..8),
            service in 1u64..90,
        ) {
            let intervals: Vec<_> = lengths.iter().map(|&(length, followers)| Interval {
                length: Nanos(length), followers, busy_before: Nanos(1),
            }).collect();
            let disk = Idleness { intervals, ..Idleness::default() };
            let points = [(1_000, service), (2_000, 2 * service)];
            let verify = points.map(|(size, time)| Point { size: Bytes(size), time: Nanos(time) }).to_vec();
            let model = DiskModel { name: "test".into(), verify, read: None, write: None };
            let mut sorted = waits;
            sorted.sort_unstable();
            let mut fast = Waits::new(&disk.intervals);
            for wait in sorted.into_iter().map(Nanos) {
                fast.raise(wait);
                let policy = |_: &Idleness| Box::new(Policy { idle_wait: wait, request_size: Bytes(1_000) }) as Box<_>;
                let expected = simulate(std::slice::from_ref(&disk), &model, policy);
                prop_assert_eq!(fast.outcome(wait, Nanos(service), Bytes(1_000)), expected);
            }
        }
    }
}
