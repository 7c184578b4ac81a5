//! Waiting(t) with a fixed service time over many thresholds: the engine's answer, in time proportional to the
//! intervals longer than the threshold and those that their collisions reach.

use crate::disk::{Interference, Timing};
use crate::idle::Interval;
use crate::policy::waiting::{self, Collision};
use crate::simulate::Outcome;
use crate::{Bytes, Nanos, TotalTime};

/// The intervals of one disk, with the ones worth looking at for growing thresholds.
pub struct Waits<'a> {
    intervals: &'a [Interval],
    /// Indices of intervals longer than the last threshold, ascending.
    longer: Vec<u32>,
    threshold: u64,
    /// Requests with a longer delay are counted.
    limit: Option<Nanos>,
}

impl<'a> Waits<'a> {
    /// Starts at a threshold of zero.
    pub fn new(intervals: &'a [Interval]) -> Self {
        let count = u32::try_from(intervals.len()).expect("under 4 billion idle intervals");
        Self { intervals, longer: (0..count).collect(), threshold: 0, limit: None }
    }

    /// Counts the requests that are delayed by more than `limit`.
    pub fn beyond(self, limit: Option<Nanos>) -> Self {
        Self { limit, ..self }
    }

    /// Drops the intervals no longer than `threshold`, which must not fall.
    pub fn raise(&mut self, threshold: Nanos) {
        debug_assert!(threshold.0 >= self.threshold);
        self.threshold = threshold.0;
        self.longer.retain(|&index| self.intervals[index as usize].length > threshold);
    }

    /// How many intervals are longer than the last threshold.
    pub fn left(&self) -> usize {
        self.longer.len()
    }

    /// What Waiting(`wait`) with requests of `size` and this timing does; `wait` is at least the last threshold.
    pub fn outcome(&self, wait: Nanos, timing: impl Into<Timing>, size: Bytes) -> Outcome {
        self.outcome_telling(wait, timing.into(), size, |_| true)
    }

    /// The same, and for each of `ahead` the delay that is left, at least, of any wait up to so much longer. A longer wait
    /// moves the end of a request, and so its delay, by as much or less: after k collisions that follow from each other by k times as
    /// much at most. Delays shrink only where what is left of a request reaches the service time and begins again at zero. What follows from
    /// that is the same where all of it delays; else nothing is known of it. That is exact but where the longer
    /// wait brings an interval into such a chain, or takes one out.
    ///
    /// `None` as soon as more than `most` is left of the last of them.
    pub fn outcome_ahead<const N: usize>(
        &self,
        wait: Nanos,
        timing: impl Into<Timing>,
        size: Bytes,
        ahead: [Nanos; N],
        most: TotalTime,
    ) -> Option<(Outcome, [TotalTime; N])> {
        let timing = timing.into();
        let mut left = [TotalTime::ZERO; N];
        let mut known = [true; N];
        let outcome = self.outcome_telling(wait, timing, size, |collision| {
            for ((left, known), ahead) in left.iter_mut().zip(&mut known).zip(ahead) {
                let moved = ahead.0.saturating_mul(collision.chain);
                let stays = collision.left.saturating_add(moved) < timing.time.0;
                *known = timing.interference == Interference::FULL || stays && (*known || collision.chain == 1);
                if *known && stays && collision.length > wait.0.saturating_add(moved) {
                    *left += Nanos(collision.delay) * collision.followers;
                }
            }
            left[N - 1] <= most
        });
        (left[N - 1] <= most).then_some((outcome, left))
    }

    fn outcome_telling(
        &self,
        wait: Nanos,
        timing: Timing,
        size: Bytes,
        collided: impl FnMut(Collision) -> bool,
    ) -> Outcome {
        let done = waiting::on_intervals(self.intervals, &self.longer, wait, timing, self.limit, collided);
        Outcome {
            scrubbed: Bytes(done.requests.saturating_mul(size.0)),
            background_requests: done.requests,
            collisions: done.collisions,
            delay_sum: done.delay_sum,
            longest_delay: done.longest_delay,
            used_idle: done.used_idle,
            slowed: done.slowed,
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
    use crate::simulate::scrub;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn equals_the_engine(
            lengths in prop::collection::vec((prop_oneof![1u64..8, 1u64..80, 1u64..800], 1u64..5), 0..150),
            waits in prop::collection::vec(prop_oneof![0u64..10, 0u64..300], 1..8),
            service in 1u64..90, limit in prop::option::of(0u64..90), part in prop_oneof![Just(1.0), Just(0.0), 0.0..1.0f64],
        ) {
            let intervals: Vec<_> = lengths.iter().map(|&(length, followers)| Interval {
                length: Nanos(length), followers, busy_before: Nanos(1),
            }).collect();
            let disk = Idleness { intervals, ..Idleness::default() };
            let points = [(1_000, service), (2_000, 2 * service)];
            let verify = points.map(|(size, time)| Point::new(Bytes(size), Nanos(time))).to_vec();
            let model = DiskModel { name: "test".into(), verify, read: None, write: None }.interfering(part);
            let mut sorted = waits;
            sorted.sort_unstable();
            let mut fast = Waits::new(&disk.intervals).beyond(limit.map(Nanos));
            for wait in sorted.into_iter().map(Nanos) {
                fast.raise(wait);
                let policy = |_: &Idleness| Box::new(Policy { idle_wait: wait, request_size: Bytes(1_000) }) as Box<_>;
                let expected = scrub(std::slice::from_ref(&disk), &model, limit.map(Nanos), policy);
                prop_assert_eq!(fast.outcome(wait, model.timing(Bytes(1_000)), Bytes(1_000)), expected.outcome);
            }
        }

        /// Where each interval collides and is far longer than a service, each collision follows from the one before.
        #[test]
        fn no_wait_up_to_so_much_longer_delays_less_than_what_is_left(
            lengths in prop::collection::vec((2_000u64..9_000, 1u64..5), 1..12), service in 100u64..900, part in 1u64..20,
            interference in prop_oneof![Just(1.0), 0.0..1.0f64],
        ) {
            let intervals: Vec<_> = lengths.iter().map(|&(length, followers)| Interval {
                length: Nanos(length), followers, busy_before: Nanos(1),
            }).collect();
            let (wait, ahead) = (500, service / part);
            let timing = Timing { time: Nanos(service), interference: Interference::new(interference) };
            let waits = Waits::new(&intervals);
            let told = |most| waits.outcome_ahead(Nanos(wait), timing, Bytes(1), [Nanos(ahead)], most);
            let (outcome, [left]) = told(TotalTime(u128::MAX)).unwrap();
            prop_assume!(outcome.collisions == intervals.len() as u64);
            prop_assert!(left <= outcome.delay_sum);
            prop_assert!(told(left).is_some() && (left == TotalTime::ZERO || told(TotalTime(left.0 - 1)).is_none()));
            for longer in 0..=ahead {
                let delay = waits.outcome(Nanos(wait + longer), timing, Bytes(1)).delay_sum;
                prop_assert!(delay >= left, "{delay} is below {left} at {longer}");
            }
        }
    }
}
