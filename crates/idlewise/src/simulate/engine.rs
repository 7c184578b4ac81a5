//! The discrete-event engine, one idle interval at a time.

use super::{Detail, Tally, Work};
use crate::cdh::Cdh;
use crate::disk::Interference;
use crate::idle::{Idleness, Interval};
use crate::policy::{Decision, Policy};
use crate::{Bytes, Nanos, TotalTime};

/// What background work did and cost, in exact integers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Bytes verified; a request in service when foreground work arrives completes and counts.
    pub scrubbed: Bytes,
    /// Background requests issued.
    pub background_requests: u64,
    /// Background requests in service when foreground work arrived.
    pub collisions: u64,
    /// Sum of the delays of foreground requests.
    pub delay_sum: TotalTime,
    /// Longest delay of a foreground request, where it waits for all that is left of a background request.
    pub longest_delay: Nanos,
    /// Idle time, before the foreground's arrival, in which a background request was in service.
    pub used_idle: TotalTime,
    /// Foreground requests delayed by more than a limit, where there is one, in the same way.
    pub slowed: u64,
}

/// Background work, and the policy that says when it may run.
pub struct Lane {
    /// When it may run.
    pub policy: Box<dyn Policy>,
    /// What there is to do, the most urgent first.
    pub works: Vec<Box<dyn Work>>,
}

impl Lane {
    /// One kind of work under a policy of its own.
    pub fn new(policy: Box<dyn Policy>, work: Box<dyn Work>) -> Self {
        Self { policy, works: vec![work] }
    }
}

/// Runs policies through the idle intervals of one disk. Where there are several lanes, the first whose policy lets it run
/// and that has work goes first, one request at a time; within a lane the first work that waits.
///
/// A collision's overrun, times the disk's interference, is the delay W: it shifts the busy period that follows, and each of its requests is
/// slowed by W. The next
/// idle interval shrinks by W; one no longer than W vanishes, and what it could not absorb carries on to the next busy
/// period. No background work starts while a delay is carried; a policy sees what is left of an interval.
#[derive(Default)]
pub struct Simulation {
    /// Sums so far.
    pub outcome: Outcome,
    /// Delays of the foreground requests that have one, where they wait for all that is left of a background request.
    pub slowdowns: Cdh,
    /// The most urgent first.
    pub lanes: Vec<Lane>,
    /// Requests with a longer delay are counted.
    pub limit: Option<Nanos>,
    /// Delay that the last busy period passed on.
    carried: u64,
    /// What it would be more by if the foreground had waited for all of the background request.
    beyond: u64,
    /// Time from the foreground arrival that the policies were last told of to the end of the last interval seen.
    since_arrival: u64,
    /// End of the last interval seen, on the trace's clock, and what is added to that for the source's.
    clock: u64,
    origin: u64,
    /// The last busy period of the trace, where the first one follows it at once.
    joined: u64,
}

impl Simulation {
    /// Nothing has happened yet on this disk but its first busy period.
    pub fn new(disk: &Idleness, mut lanes: Vec<Lane>) -> Self {
        for lane in &mut lanes {
            lane.policy.foreground_served(disk.leading_requests(), Nanos::ZERO);
        }
        Self { lanes, clock: disk.begin.0, origin: disk.origin.0, ..Self::default() }
    }

    /// Runs the next interval and the busy period behind it. `written` are the WRITEs of the busy period before it: when each
    /// completed, and where it was.
    pub fn interval(&mut self, interval: &Interval, written: impl Iterator<Item = (Nanos, Bytes)>) {
        let busy_before = interval.busy_before.0.saturating_add(std::mem::take(&mut self.joined));
        self.clock = self.clock.saturating_add(busy_before).saturating_add(interval.length.0);
        self.wrote(written);
        // A request of a slow disk may delay by centuries.
        let busy = self.since_arrival.saturating_add(busy_before).saturating_add(self.carried);
        if self.carried > 0 && interval.length.0 <= self.carried {
            self.since_arrival = self.since_arrival.saturating_add(busy_before).saturating_add(interval.length.0);
            self.carried -= interval.length.0;
        } else {
            let length = interval.length.0 - self.carried;
            self.since_arrival = 0;
            let began = self.origin.saturating_add(self.clock.saturating_sub(length));
            for lane in &mut self.lanes {
                lane.policy.interval_foreseen(Nanos(length));
                lane.policy.idle_began(Nanos(busy), Nanos(began));
            }
            (self.carried, self.beyond) = self.background(length);
            for lane in &mut self.lanes {
                lane.policy.foreground_arrived(Nanos(length), Nanos(self.carried));
            }
            self.works().for_each(|work| work.foreground_arrived());
        }
        self.served(interval.followers);
    }

    /// The trace begins again, its first busy period right behind its last one.
    pub fn again(&mut self, disk: &Idleness) {
        self.joined = disk.last_busy().0;
        self.served(disk.leading_requests());
    }

    /// The trace ends at `at`, with these WRITEs of its last busy period.
    pub fn end(&mut self, at: Nanos, written: impl Iterator<Item = (Nanos, Bytes)>) {
        self.wrote(written);
        self.works().for_each(|work| work.ended(at));
    }

    fn wrote(&mut self, written: impl Iterator<Item = (Nanos, Bytes)>) {
        for (at, offset) in written {
            let at = Nanos(at.0.saturating_add(self.carried));
            self.works().for_each(|work| work.foreground_wrote(at, offset));
        }
    }

    /// So many foreground requests have the present delay.
    fn served(&mut self, requests: u64) {
        let delays = Nanos(self.carried) * requests;
        // As long as the universe, as far as a policy is told.
        let told = Nanos::from(delays);
        self.lanes.iter_mut().for_each(|lane| lane.policy.foreground_served(requests, told));
        let worst = Nanos(self.carried + self.beyond);
        if worst > Nanos::ZERO {
            self.outcome.delay_sum += delays;
            self.outcome.longest_delay = self.outcome.longest_delay.max(worst);
            self.outcome.slowed += if self.limit.is_some_and(|limit| worst > limit) { requests } else { 0 };
            self.slowdowns.add_many(worst, requests);
        }
    }

    /// Delay of each request of the last busy period.
    pub fn carried(&self) -> Nanos {
        Nanos(self.carried)
    }

    /// What was done of each work, in the order of the lanes.
    pub fn tallies(&self) -> Vec<Tally> {
        self.lanes.iter().flat_map(|lane| &lane.works).map(|work| work.tally()).collect()
    }

    /// What else there is to say of each work, in the same order.
    pub fn details(&self) -> Vec<Detail> {
        self.lanes.iter().flat_map(|lane| &lane.works).map(|work| work.detail()).collect()
    }

    fn works(&mut self) -> impl Iterator<Item = &mut Box<dyn Work>> {
        self.lanes.iter_mut().flat_map(|lane| &mut lane.works)
    }

    /// Background work in an interval of `length`; returns by how much the last request delays what follows, and how much more is left of it.
    fn background(&mut self, length: u64) -> (u64, u64) {
        let began = self.clock.saturating_sub(length);
        let several = self.works().count() > 1;
        let (mut elapsed, mut interference) = (0, Interference::FULL);
        while elapsed < length {
            let mut next = length;
            // More urgent work may be due after any request.
            let mut awaited = false;
            for lane in &mut self.lanes {
                let Some(work) = lane.works.iter_mut().find(|work| work.waits()) else { continue };
                let (now, room) = (Nanos(began + elapsed), Nanos(length - elapsed));
                let served = match lane.policy.decide(Nanos(elapsed)) {
                    Decision::Stop => continue,
                    Decision::Wait { until } => {
                        debug_assert!(until.0 > elapsed, "a policy waits for the past");
                        next = next.min(until.0.max(elapsed + 1));
                        awaited = true;
                        continue;
                    }
                    Decision::Issue { size, .. } | Decision::IssueUntil { size, .. } | Decision::Paced { size, .. }
                        if awaited =>
                    {
                        work.serve(now, size, 1, room)
                    }
                    // A number of requests is of the policy's own work, which they need not be.
                    Decision::Issue { size, count } if several && count < u64::MAX => work.serve(now, size, 1, room),
                    Decision::Issue { size, count } => work.serve(now, size, count, room),
                    Decision::IssueUntil { size, until } => {
                        debug_assert!(until.0 > elapsed, "a policy issues until the past");
                        work.serve_until(now, size, Nanos(until.0.saturating_sub(elapsed).max(1)), room)
                    }
                    Decision::Paced { size, pause } => work.serve_paced(now, size, pause, room),
                };
                self.outcome.background_requests = self.outcome.background_requests.saturating_add(served.requests);
                self.outcome.scrubbed.0 = self.outcome.scrubbed.0.saturating_add(served.bytes.0);
                self.outcome.used_idle += Nanos(served.time.min(room).0 - served.paused.0);
                next = elapsed.saturating_add(served.time.0);
                interference = served.interference;
                break;
            }
            elapsed = next;
        }
        // A wait or a stop ends with the interval, only a request behind it.
        self.outcome.collisions += u64::from(elapsed > length);
        let left = elapsed - length;
        let delay = interference.of(Nanos(left)).0;
        (delay, left - delay)
    }
}

impl Outcome {
    /// Adds what happened on another disk.
    pub fn add(&mut self, other: &Self) {
        self.scrubbed.0 = self.scrubbed.0.saturating_add(other.scrubbed.0);
        self.background_requests = self.background_requests.saturating_add(other.background_requests);
        self.collisions += other.collisions;
        self.delay_sum += other.delay_sum;
        self.longest_delay = self.longest_delay.max(other.longest_delay);
        self.used_idle += other.used_idle;
        self.slowed += other.slowed;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{ParityUpdates, Scrub, Service, WriteVerification, naive, run, run_while, simulate};
    use super::*;
    use crate::disk::DiskModel;
    use crate::idle::{AutoRegression, IdlenessBuilder};
    use crate::policy::restrained::{Amount, Choice, NO_END, Pair, Part, Target};
    use crate::policy::shaped::Step;
    use crate::policy::{
        Adaptive, Budget, Clairvoyant, FixedDelay, Growing, Growth, Predicting, Restrained, Shaped, Waiting,
    };
    use crate::tune::Goal;

    fn disk(requests: &[(u64, u64, bool)]) -> Idleness {
        let mut builder = IdlenessBuilder::new("d");
        for &(arrival, response, write) in requests {
            builder.request(Nanos(arrival), Nanos(arrival + response));
            if write {
                builder.keep_write(Nanos(arrival + response), naive::place(arrival));
            }
        }
        builder.finish()
    }

    fn reads(requests: &[(u64, u64)]) -> Idleness {
        disk(&requests.iter().map(|&(arrival, response)| (arrival, response, false)).collect::<Vec<_>>())
    }

    fn waiting(wait: u64) -> Waiting {
        Waiting { idle_wait: Nanos(wait), request_size: Bytes(1_000) }
    }

    fn boxed(policy: impl Policy + 'static) -> Box<dyn Policy> {
        Box::new(policy)
    }

    #[test]
    fn a_collision_by_hand() {
        // Idle [10, 100), one request; idle [110, 113), two requests; idle [120, 200).
        let disk = reads(&[(0, 10), (100, 10), (113, 7), (114, 6), (200, 1)]);
        let outcome = simulate(&[disk], &DiskModel::in_proportion(22), |_| boxed(waiting(30)));
        // First: at 40, 62, 84 to 106: W = 6. Second vanishes, 3 carried. Third begins at 123, 77 long: at 153, 175,
        // 197 to 219: W = 19.
        assert_eq!(outcome.background_requests, 6);
        assert_eq!(outcome.scrubbed, Bytes(6_000));
        assert_eq!(outcome.collisions, 2);
        assert_eq!(outcome.delay_sum, TotalTime(6 + 2 * 3 + 19));
        assert_eq!(outcome.longest_delay, Nanos(19));
        assert_eq!(outcome.used_idle, TotalTime(60 + 47));
    }

    /// The end of the clock is the end of every time.
    #[test]
    fn a_request_longer_than_the_clock_delays_to_its_end() {
        let disk = disk(&[(0, 10, true), (100, 150, true), (300, 10, true), (400, 10, true)]);
        let lane = || {
            vec![Lane::new(
                boxed(waiting(30)),
                Box::new(Scrub::new(Service::OfSize(DiskModel::in_proportion(u64::MAX)))),
            )]
        };
        let outcome = run(&[disk], |_| lane()).outcome;
        assert_eq!((outcome.background_requests, outcome.used_idle), (1, TotalTime(60)));
        assert_eq!(outcome.longest_delay, Nanos(u64::MAX - 90));
    }

    #[test]
    fn a_request_that_ends_as_the_foreground_arrives_is_no_collision() {
        let outcome = simulate(&[reads(&[(0, 10), (100, 10)])], &DiskModel::in_proportion(20), |_| boxed(waiting(30)));
        assert_eq!((outcome.background_requests, outcome.collisions, outcome.delay_sum), (3, 0, TotalTime::ZERO));
    }

    /// Two WRITEs before the first interval, one before the second; a job takes 30.
    #[test]
    fn jobs_come_with_writes_wait_and_are_lost_where_the_buffer_is_full() {
        let disk = disk(&[(0, 10, true), (5, 5, true), (100, 10, true), (200, 1, false), (300, 1, false)]);
        let finite = |places, wait| {
            let work = || Box::new(WriteVerification::new(Service::OfSize(DiskModel::in_proportion(30)), places));
            run(std::slice::from_ref(&disk), |_| vec![Lane::new(boxed(waiting(wait)), work())])
        };
        let all = finite(None, 20);
        // At 30 to 60 and 60 to 90, 10 from the WRITEs' end; then at 130 to 160, 50 from it.
        let done = Tally { came: 3, completed: 3, lost: 0, response_sum: TotalTime(50 + 80 + 50) };
        assert_eq!((all.tallies[0], all.outcome.collisions, all.outcome.delay_sum), (done, 0, TotalTime::ZERO));
        let one_place = finite(Some(1), 20);
        assert_eq!((one_place.tallies[0].completed, one_place.tallies[0].lost), (2, 1));
        // The second job starts at 95 and delays by 25; the WRITE at 100 ends at 135, its job goes from 190 to 220.
        let late = finite(None, 55);
        assert_eq!((late.outcome.collisions, late.outcome.delay_sum), (2, TotalTime(45)));
        assert_eq!(late.tallies[0].response_sum, TotalTime(85 + 115 + 85));
        assert_eq!(late.slowdown_quantile(590, 5), Nanos::ZERO);
        assert_eq!(late.slowdown_quantile(810, 5), Nanos(25));
    }

    #[test]
    fn the_urgent_work_goes_first_whenever_its_policy_lets_it() {
        let disk = disk(&[(0, 10, true), (110, 10, true), (300, 1, false)]);
        let lanes = || {
            let jobs = WriteVerification::new(Service::OfSize(DiskModel::in_proportion(10)), None);
            let scrub = Scrub::new(Service::OfSize(DiskModel::in_proportion(20)));
            vec![Lane::new(boxed(waiting(50)), Box::new(jobs)), Lane::new(boxed(waiting(10)), Box::new(scrub))]
        };
        let run = run(&[disk], |_| lanes());
        // Scrub at 20, 40; at 60 the job; scrub at 70, 90. Then from 120: scrub at 130, 150; at 170 the job; scrub from 180.
        assert_eq!(run.tallies[0], Tally { came: 2, completed: 2, lost: 0, response_sum: TotalTime(60 + 60) });
        assert_eq!((run.tallies[1].completed, run.outcome.collisions), (4 + 2 + 6, 0));
    }

    #[test]
    fn a_hole_of_centuries_is_added_up() {
        const HOLE: u64 = 18_000_000_000_000_000_000;
        let disk = disk(&[(0, 10, true), (10 + HOLE, 10, false)]);
        let under = |policy: Box<dyn Policy>, service| {
            let jobs = WriteVerification::new(Service::OfSize(DiskModel::in_proportion(10)), None);
            let works: Vec<Box<dyn Work>> = vec![Box::new(jobs), Box::new(Scrub::new(service))];
            run_while(&disk, vec![Lane { policy, works }], |_, _| false).outcome.background_requests
        };
        let fixed = || FixedDelay::new(Nanos(15), Bytes(1_000));
        // One every 25, of which the first is the job.
        assert_eq!(under(boxed(fixed()), Service::OfSize(DiskModel::in_proportion(10))), HOLE / 25);
        assert_eq!(
            under(boxed(Budget::new(fixed(), Nanos(1))), Service::OfSize(DiskModel::in_proportion(10))),
            HOLE / 25
        );
        assert_eq!(under(boxed(waiting(0)), Service::OfSize(DiskModel::in_proportion(10))), HOLE / 10);
        let growth = Growth::Once { at: Nanos(HOLE / 2) };
        let swapping = || boxed(Growing::new(Nanos(0), Bytes(10), Bytes(20), growth));
        assert_eq!(under(swapping(), Service::OfSize(DiskModel::in_proportion(10))), HOLE / 10);
        let pair = Pair { idle_wait: Nanos(0), busy_period: Nanos(HOLE / 2), probability: 1.0, work: 0.0 };
        let choice = Choice { after_short: Some(pair), after_long: None };
        let restrained = || boxed(Restrained::fixed(choice, Bytes(1_000), Nanos(10)));
        assert_eq!(under(restrained(), Service::OfSize(DiskModel::in_proportion(10))), HOLE / 20);
        for (policy, each) in [(boxed(fixed()), 1_015), (boxed(waiting(0)), 1_000)] {
            let requests = under(policy, Service::exponential(Nanos(1_000)));
            assert!(requests.abs_diff(HOLE / each) < 1_000_000_000, "{requests}");
        }
    }

    fn requests() -> impl Strategy<Value = Vec<(u64, u64, bool)>> {
        let gap = prop_oneof![0u64..4, 0u64..40, 0u64..400];
        let step = (gap, prop_oneof![Just(0u64), 0u64..8, 0u64..60], any::<bool>());
        prop::collection::vec(step, 1..120).prop_map(|steps| {
            let mut now = 7;
            let mut requests = Vec::new();
            for (gap, response, write) in steps {
                now += gap;
                requests.push((now, response, write));
            }
            // The places of `naive` come again after a span that is a multiple of 7.
            let last = now + 300;
            requests.push((last, (requests[0].0 + 7 - last % 7) % 7, false));
            requests
        })
    }

    /// The trace so many times, each beginning where the one before it ends.
    fn on_and_on(requests: &[(u64, u64, bool)], times: u64) -> Vec<(u64, u64, bool)> {
        let (last, response, _) = requests[requests.len() - 1];
        let span = last + response - requests[0].0;
        let shifted = |k| requests.iter().map(move |&(at, response, write)| (at + k * span, response, write));
        (0..times).flat_map(shifted).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]

        #[test]
        fn equals_the_naive_simulation(
            requests in requests(), wait in prop_oneof![0u64..20, 0u64..200], service in 1u64..60, kb in 1u64..4,
            part in prop_oneof![Just(1.0), Just(0.0), 0.0..1.0f64],
        ) {
            let size = Bytes(kb * 1_000);
            let waits = Waiting { idle_wait: Nanos(wait), request_size: size };
            let model_of = AutoRegression { mean: 4e-8, coefficients: vec![0.6, -0.2], variance: 1.0, series_variance: 1.0 };
            let grows = |growth| Growing::new(Nanos(wait), size, Bytes(9_000), growth);
            let pair = Pair { idle_wait: Nanos(wait), busy_period: Nanos(3 * service), probability: 0.7, work: 0.0 };
            let choice = Choice { after_short: Some(pair), after_long: Some(Pair { busy_period: NO_END, ..pair }) };
            let target = Target {
                relative_delay: 0.5, foreground_response: Nanos(20), amount: Amount::Infinite, part: Part::TailBursty,
            };
            let step = |from, kb: u64| Step { from: Nanos(from), size: Some(Bytes(kb * 1_000)), service: Nanos(kb * service) };
            let wait_again = Step { size: None, ..step(wait + 20, 1) };
            let steps = vec![step(wait, kb), wait_again, step(wait + 70, kb + 1)];
            let makes: [&dyn Fn() -> Box<dyn Policy>; 12] = [
                &|| Box::new(Restrained::fixed(choice, size, Nanos(service))),
                &|| Box::new(Restrained::monitoring(target, size, Nanos(service))),
                &|| Box::new(Shaped::with_context(steps[..1].into(), steps.clone(), Nanos(wait + 9))),
                &|| Box::new(Adaptive::new(&Goal::new(Nanos(kb), Nanos(10 * service)), &DiskModel::in_proportion(service))),
                &|| Box::new(waits),
                &|| Box::new(FixedDelay::new(Nanos(wait), size)),
                &|| Box::new(Predicting::new(model_of.clone(), Nanos(wait), Nanos(wait / 4), size)),
                &|| Box::new(Clairvoyant::new(Nanos(wait), size)),
                &|| Box::new(grows(Growth::Each { factor: 1.5, increment: Bytes(500) })),
                &|| Box::new(grows(Growth::Once { at: Nanos(2 * wait) })),
                &|| Box::new(Budget::new(waits, Nanos(kb))),
                &|| Box::new(Budget::new(FixedDelay::new(Nanos(wait), size), Nanos(kb))),
            ];
            let of_size = || Service::OfSize(DiskModel::in_proportion(service).interfering(part));
            let scrub = |service| Box::new(Scrub::new(service)) as Box<dyn Work>;
            let jobs = |service, places| Box::new(WriteVerification::new(service, places)) as Box<dyn Work>;
            let parity = |read, write| Box::new(ParityUpdates::new(read, write, Bytes(3_000))) as Box<dyn Work>;
            let works: [&dyn Fn() -> Box<dyn Work>; 5] = [
                &|| scrub(of_size()),
                &|| scrub(Service::exponential(Nanos(service))),
                &|| jobs(Service::exponential(Nanos(service)), None),
                &|| jobs(of_size(), Some(kb as usize)),
                &|| parity(Service::exponential(Nanos(service)), Service::seeded(Nanos(service / 2 + 1), 7)),
            ];
            let mut lanes: Vec<Box<dyn Fn() -> Vec<Lane>>> = Vec::new();
            for make in &makes {
                for work in &works {
                    lanes.push(Box::new(|| vec![Lane::new(make(), work())]));
                }
                // And two kinds of work, of which the first is the more urgent.
                lanes.push(Box::new(|| {
                    let (first, second) = (boxed(waiting(wait / 2 + 3)), make());
                    vec![Lane::new(first, works[3]()), Lane::new(second, works[0]())]
                }));
                // The same under one policy.
                lanes.push(Box::new(|| vec![Lane { policy: make(), works: vec![works[4](), works[0]()] }]));
            }
            let disk = disk(&requests);
            for make in lanes {
                for times in [1, 3] {
                    let fast = run_while(&disk, make(), |_, done| done < times);
                    let mut slow = make();
                    prop_assert_eq!(fast.outcome, naive::simulate(&on_and_on(&requests, times), &mut slow, None));
                    let slow: Vec<Tally> = slow.iter().flat_map(|lane| &lane.works).map(|work| work.tally()).collect();
                    for (fast, slow) in fast.tallies.iter().zip(&slow) {
                        prop_assert_eq!(fast, slow);
                    }
                }
            }
        }
    }
}
