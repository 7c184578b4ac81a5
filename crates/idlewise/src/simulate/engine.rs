//! The discrete-event engine, one idle interval at a time.

use crate::disk::DiskModel;
use crate::idle::Interval;
use crate::policy::{Decision, Policy};
use crate::{Bytes, Nanos};

/// What background work did and cost, in exact integers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Bytes verified; a request in service when foreground work arrives completes and counts.
    pub scrubbed: Bytes,
    /// Background requests issued.
    pub background_requests: u64,
    /// Background requests in service when foreground work arrived.
    pub collisions: u64,
    /// Sum of the delays of foreground requests, in nanoseconds.
    pub delay_sum: u128,
    /// Longest delay of a foreground request.
    pub longest_delay: Nanos,
    /// Idle time, before the foreground's arrival, in which a background request was in service, in nanoseconds.
    pub used_idle: u128,
}

/// Runs a policy through the idle intervals of one disk.
///
/// A collision's overrun W shifts the busy period that follows by W: each of its requests is slowed by W. The next
/// idle interval shrinks by W; one no longer than W vanishes, and what it could not absorb carries on to the next busy
/// period. No background work starts while a delay is carried; a policy sees what is left of an interval.
#[derive(Clone, Debug, Default)]
pub struct Simulation {
    /// Sums so far.
    pub outcome: Outcome,
    /// Delay that the last busy period passed on.
    carried: u64,
    /// Time from the foreground arrival that the policy was last told of to the end of the last interval seen.
    since_arrival: u64,
}

impl Simulation {
    /// Runs the next interval and the busy period behind it.
    pub fn interval(&mut self, interval: &Interval, policy: &mut dyn Policy, model: &DiskModel) {
        let busy = self.since_arrival + interval.busy_before.0 + self.carried;
        if self.carried > 0 && interval.length.0 <= self.carried {
            self.since_arrival += interval.busy_before.0 + interval.length.0;
            self.carried -= interval.length.0;
        } else {
            let length = interval.length.0 - self.carried;
            self.since_arrival = 0;
            policy.interval_foreseen(Nanos(length));
            policy.idle_began(Nanos(busy));
            self.carried = self.background(length, policy, model);
            policy.foreground_arrived(Nanos(length), Nanos(self.carried));
        }
        let delays = u128::from(self.carried) * u128::from(interval.followers);
        policy.foreground_served(interval.followers, delays);
        self.outcome.delay_sum += delays;
        self.outcome.longest_delay = self.outcome.longest_delay.max(Nanos(self.carried));
    }

    /// Delay of each request of the last busy period.
    pub fn carried(&self) -> u64 {
        self.carried
    }

    /// Background work in an interval of `length`; returns by how much the last request overruns it.
    fn background(&mut self, length: u64, policy: &mut dyn Policy, model: &DiskModel) -> u64 {
        let mut elapsed = 0;
        while elapsed < length {
            let (size, count) = match policy.decide(Nanos(elapsed)) {
                Decision::Stop => break,
                Decision::Wait { until } => {
                    debug_assert!(until.0 > elapsed, "a policy waits for the past");
                    elapsed = until.0.max(elapsed + 1);
                    continue;
                }
                Decision::Issue { size, count } => (size, count),
            };
            let service = model.verify_time(size).0.max(1);
            let issued = (length - elapsed).div_ceil(service).min(count);
            // Sizes and times beyond all reason end at the largest number, not in a circle.
            let end = elapsed.saturating_add(issued.saturating_mul(service));
            self.outcome.background_requests += issued;
            self.outcome.scrubbed.0 = self.outcome.scrubbed.0.saturating_add(issued.saturating_mul(size.0));
            self.outcome.used_idle += u128::from(end.min(length) - elapsed);
            elapsed = end;
            if end > length {
                self.outcome.collisions += 1;
                return end - length;
            }
        }
        0
    }
}

impl Outcome {
    /// Adds what happened on another disk.
    pub fn add(&mut self, other: &Self) {
        self.scrubbed.0 += other.scrubbed.0;
        self.background_requests += other.background_requests;
        self.collisions += other.collisions;
        self.delay_sum += other.delay_sum;
        self.longest_delay = self.longest_delay.max(other.longest_delay);
        self.used_idle += other.used_idle;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{naive, simulate};
    use super::*;
    use crate::disk::Point;
    use crate::idle::{AutoRegression, Idleness, IdlenessBuilder};
    use crate::policy::{Budget, Clairvoyant, FixedDelay, Growing, Growth, Predicting, Waiting};

    /// 1,000 bytes take `time`, and every further 1,000 as much again.
    fn model(time: u64) -> DiskModel {
        let point = |size, time| Point { size: Bytes(size), time: Nanos(time) };
        let verify = vec![point(1_000, time), point(2_000, 2 * time)];
        DiskModel { name: "test".into(), verify, read: None, write: None }
    }

    fn disk(requests: &[(u64, u64)]) -> Idleness {
        let mut builder = IdlenessBuilder::new("d");
        for &(arrival, response) in requests {
            builder.request(Nanos(arrival), Nanos(arrival + response), Some(Nanos(response)));
        }
        builder.finish()
    }

    #[test]
    fn a_collision_by_hand() {
        // Idle [10, 100), one request; idle [110, 113), two requests; idle [120, 200).
        let disk = disk(&[(0, 10), (100, 10), (113, 7), (114, 6), (200, 1)]);
        let policy =
            |_: &Idleness| Box::new(Waiting { idle_wait: Nanos(30), request_size: Bytes(1_000) }) as Box<dyn Policy>;
        let outcome = simulate(&[disk], &model(22), policy);
        // First: at 40, 62, 84 to 106: W = 6. Second vanishes, 3 carried. Third begins at 123, 77 long: at 153, 175,
        // 197 to 219: W = 19.
        assert_eq!(outcome.background_requests, 6);
        assert_eq!(outcome.scrubbed, Bytes(6_000));
        assert_eq!(outcome.collisions, 2);
        assert_eq!(outcome.delay_sum, 6 + 2 * 3 + 19);
        assert_eq!(outcome.longest_delay, Nanos(19));
        assert_eq!(outcome.used_idle, 60 + 47);
    }

    #[test]
    fn a_request_that_ends_as_the_foreground_arrives_is_no_collision() {
        let disk = disk(&[(0, 10), (100, 10)]);
        let policy =
            |_: &Idleness| Box::new(Waiting { idle_wait: Nanos(30), request_size: Bytes(1_000) }) as Box<dyn Policy>;
        let outcome = simulate(&[disk], &model(20), policy);
        assert_eq!((outcome.background_requests, outcome.collisions, outcome.delay_sum), (3, 0, 0));
    }

    fn requests() -> impl Strategy<Value = Vec<(u64, u64)>> {
        let gap = prop_oneof![0u64..4, 0u64..40, 0u64..400];
        prop::collection::vec((gap, prop_oneof![Just(0u64), 0u64..8, 0u64..60]), 1..120).prop_map(|steps| {
            let mut now = 7;
            steps
                .into_iter()
                .map(|(gap, response)| {
                    now += gap;
                    (now, response)
                })
                .collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn equals_the_naive_simulation(
            requests in requests(), wait in prop_oneof![0u64..20, 0u64..200], service in 1u64..60, kb in 1u64..4,
        ) {
            let size = Bytes(kb * 1_000);
            let waiting = Waiting { idle_wait: Nanos(wait), request_size: size };
            let model_of = AutoRegression { mean: 4e-8, coefficients: vec![0.6, -0.2], variance: 1.0, series_variance: 1.0 };
            let grows = |growth| Growing::new(Nanos(wait), size, Bytes(9_000), growth);
            let makes: [&dyn Fn() -> Box<dyn Policy>; 7] = [
                &|| Box::new(waiting),
                &|| Box::new(FixedDelay::new(Nanos(wait), size)),
                &|| Box::new(Predicting::new(model_of.clone(), Nanos(wait), Nanos(wait / 4), size)),
                &|| Box::new(Clairvoyant::new(Nanos(wait), size)),
                &|| Box::new(grows(Growth::Each { factor: 1.5, increment: Bytes(500) })),
                &|| Box::new(grows(Growth::Once { at: Nanos(2 * wait) })),
                &|| Box::new(Budget::new(waiting, Nanos(kb))),
            ];
            for make in makes {
                let fast = simulate(&[disk(&requests)], &model(service), |_| make());
                let naive = naive::simulate(&requests, make().as_mut(), &model(service));
                prop_assert_eq!(fast, naive);
            }
        }
    }
}
