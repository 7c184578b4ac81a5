//! The protocol between a policy and whoever works.

use super::{Learnt, Measured, SecondClock};
use crate::policy::{Account, Decision, Policy};
use crate::{Bytes, Nanos};

const NEVER: Nanos = Nanos(u64::MAX);

/// What a worker does next. Times are on the clock that the driver's calls are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// One step of this size, now.
    Step(Bytes),
    /// Nothing yet: ask again then.
    AskAt(Nanos),
    /// Nothing for now: foreground requests are outstanding, or a step is in service, or the policy wants no more in this idle
    /// interval. Ask again when the last foreground request has completed, or the step has ended.
    WhenIdle,
    /// The account of the slowdown holds less than one more collision may cost. Ask again when foreground requests have completed and
    /// so earned enough, or at the latest then.
    Paused {
        /// From then on an idle device may be used nevertheless, unless foreground work comes first.
        until: Nanos,
    },
}

/// Drives a policy: one driver for one device, and one step at a time.
///
/// The calls come in order of time, but [`next`](Self::next) may be asked at any time and as often as one likes.
///
/// # Examples
/// Work that may begin once the device has been idle for 10 ms, in steps of 1 MiB that take 4 ms here:
/// ```
/// use idlewise::drive::{Driver, Next};
/// use idlewise::policy::Waiting;
/// use idlewise::{Bytes, Nanos};
///
/// let ms = Nanos::from_millis;
/// let policy = Waiting { idle_wait: ms(10), request_size: Bytes::from_kib(1024) };
/// let mut driver = Driver::new(policy, ms(0));
/// driver.arrived(ms(1));
/// assert_eq!(driver.next(ms(2)), Next::WhenIdle);
/// driver.completed(ms(3), ms(1));
/// assert_eq!(driver.next(ms(3)), Next::AskAt(ms(13)));
/// assert_eq!(driver.next(ms(13)), Next::Step(Bytes::from_kib(1024)));
/// driver.step_began(ms(13), Bytes::from_kib(1024));
/// driver.arrived(ms(15)); // A collision: the device is free for it at 17 ms.
/// driver.step_ended(ms(17));
/// driver.completed(ms(19), ms(15));
/// assert_eq!(driver.measured().max_slowdown, ms(2));
/// ```
#[derive(Clone, Debug)]
pub struct Driver<P> {
    policy: P,
    clock: SecondClock,
    /// What the policy knows of the foreground's slowdown.
    told: Measured,
    interval: Option<Interval>,
    /// Whether some usable intervals are left alone, to compare with.
    compares: bool,
    /// Size of the first step in the interval that was used last, and the idle time before it.
    used: Option<(Bytes, Nanos)>,
    /// What is added to a time for that of the day.
    epoch: Nanos,
}

/// The idle interval that the policy was told of.
#[derive(Clone, Copy, Debug)]
struct Interval {
    since: Nanos,
    /// Steps that the policy still wants before it is asked again, and their size.
    wanted: (u64, Bytes),
    /// It is asked again then; at the end of time, if it wants no more in this interval.
    ask_at: Nanos,
    used: bool,
    /// It is left alone until then, to compare.
    held_until: Nanos,
}

impl<P: Policy> Driver<P> {
    /// A driver of a device that is taken to be idle from `now` on.
    pub fn new(policy: P, now: Nanos) -> Self {
        Self {
            policy,
            clock: SecondClock::new(now),
            told: Measured::default(),
            interval: None,
            compares: false,
            used: None,
            epoch: Nanos::ZERO,
        }
    }

    /// Tells policies the wall clock: what is added to the times of the calls for nanoseconds since 1970.
    pub fn with_epoch(self, epoch: Nanos) -> Self {
        Self { epoch, ..self }
    }

    /// From now on another policy decides, which is told of what comes, and of the interval that is.
    pub fn set_policy(&mut self, policy: P) -> P {
        self.end_interval_that_is_over();
        (self.told, self.interval) = (*self.clock.measured(), None);
        self.clock.policy_changed();
        std::mem::replace(&mut self.policy, policy)
    }

    /// From now on some of the intervals that the policy would use are left alone, drawn by lot, or none is. The first foreground
    /// request after them, compared with the first one after work, shows what moving the head or filling a cache costs.
    pub fn compare(&mut self, some: bool) {
        self.compares = some;
        if !some {
            self.clock.draw_no_more();
        }
    }

    /// An interval is left alone for so long at most, rather than for ten seconds: where nobody comes, the work stands still meanwhile.
    pub fn compare_within(&mut self, longest: Nanos) {
        self.clock.set_longest_turn(longest);
    }

    /// Goes on with what an earlier driver of the device has learnt by comparing ([`SecondClock::learnt`]). It counts half beside what
    /// comes, as the load may be another one.
    pub fn go_on_with(&mut self, learnt: Learnt) {
        self.clock.go_on_with(learnt);
    }

    /// A foreground request arrived.
    pub fn arrived(&mut self, now: Nanos) {
        // An interval that nobody asked about was one all the same.
        if let Some(since) = self.clock.idle_since().filter(|since| *since < now) {
            self.begin_interval(since);
        }
        self.clock.arrived(now);
    }

    /// A foreground request that arrived at `arrival` completed.
    pub fn completed(&mut self, now: Nanos, arrival: Nanos) {
        self.clock.completed(now, arrival);
    }

    /// The same, and others of which it was not told ([`SecondClock::completed_with`]).
    pub fn completed_with(&mut self, now: Nanos, arrival: Nanos, others: u64, responses: Nanos) {
        self.clock.completed_with(now, arrival, others, responses);
    }

    /// Whether foreground requests are outstanding, where it is not told of each ([`SecondClock::wants_each`]).
    pub fn others_are_outstanding(&mut self, others: bool) {
        self.clock.others_are_outstanding(others);
    }

    /// A step of background work of this size is in service.
    pub fn step_began(&mut self, now: Nanos, size: Bytes) {
        self.clock.step_began(now, size);
    }

    /// A step ended.
    pub fn step_ended(&mut self, now: Nanos) {
        self.clock.step_ended(now);
    }

    /// The step before was so much less than its size: it ended early.
    pub fn step_was_less(&mut self, by: Bytes) {
        self.clock.step_was_less(by);
    }

    /// Calls were lost: so many foreground requests are outstanding, and no step is in service.
    pub fn resynchronise(&mut self, outstanding: u64) {
        self.clock.resynchronise(outstanding);
    }

    /// Counts the foreground requests that are slowed by more than `limit` from now on. A policy that keeps a 99th percentile must
    /// be told of those beyond it apart from the others.
    pub fn count_beyond(&mut self, limit: Option<Nanos>) {
        self.clock.count_beyond(limit);
    }

    /// No step is in service, whatever was told of them.
    pub fn steps_are_over(&mut self) {
        self.clock.steps_are_over();
    }

    /// What to do now. While a step is in service there is nothing to do until it ends.
    pub fn next(&mut self, now: Nanos) -> Next {
        if self.clock.is_stepping() {
            return Next::WhenIdle;
        }
        let Some(since) = self.clock.idle_since() else {
            self.end_interval();
            return Next::WhenIdle;
        };
        self.begin_interval(since);
        self.tell();
        let interval = self.interval.as_mut().expect("it has begun");
        if now < interval.held_until {
            return Next::AskAt(interval.held_until);
        }
        let elapsed = now.since(since);
        if now < interval.ask_at {
            let ask_at = interval.ask_at;
            return self.waiting(since, elapsed, ask_at);
        }
        if interval.wanted.0 == 0 {
            interval.wanted = match self.policy.decide(elapsed) {
                Decision::Issue { size, count } => (count, size),
                // It is asked again behind each.
                Decision::IssueUntil { size, .. } | Decision::Paced { size, .. } => (1, size),
                Decision::Wait { until } => {
                    let at = Nanos(since.0.saturating_add(until.0));
                    interval.ask_at = at;
                    return self.waiting(since, elapsed, at);
                }
                Decision::Stop => {
                    interval.ask_at = NEVER;
                    return self.waiting(since, elapsed, NEVER);
                }
            };
            if !interval.used && self.compares && self.clock.hold_back(now) {
                interval.wanted.0 = 0;
                interval.held_until = Nanos(now.0.saturating_add(self.clock.longest_turn().0));
                return Next::AskAt(interval.held_until);
            }
        }
        interval.wanted.0 -= 1;
        if !interval.used {
            (interval.used, self.used) = (true, Some((interval.wanted.1, elapsed)));
        }
        Next::Step(interval.wanted.1)
    }

    /// Why nothing is done until `ask_at`.
    fn waiting(&mut self, since: Nanos, elapsed: Nanos, ask_at: Nanos) -> Next {
        match self.policy.account().filter(|account| account.forbids(elapsed)) {
            Some(account) => {
                self.clock.paused();
                Next::Paused { until: Nanos(since.0.saturating_add(account.may_go_on_at().0)) }
            }
            None if ask_at == NEVER => Next::WhenIdle,
            None => Next::AskAt(ask_at),
        }
    }

    /// Tells the policy what the foreground suffered since it was last told, and how the interval ended, if it has: its account is then up to
    /// date.
    pub fn tell(&mut self) {
        self.end_interval_that_is_over();
        let measured = *self.clock.measured();
        for (requests, slowdowns) in measured.since(&self.told) {
            if requests > 0 {
                self.policy.foreground_served(requests, slowdowns.into());
            }
        }
        self.told = measured;
    }

    /// Tells the policy of the interval that began then, and before that how the one before it ended, unless it knows.
    fn begin_interval(&mut self, since: Nanos) {
        if self.interval.is_some_and(|interval| interval.since == since) {
            return;
        }
        self.end_interval();
        self.tell();
        self.policy.idle_began(self.clock.busy(), Nanos(self.epoch.0.saturating_add(since.0)));
        self.interval = Some(Interval { since, wanted: (0, Bytes(0)), ask_at: since, used: false, held_until: since });
    }

    fn end_interval_that_is_over(&mut self) {
        let over = |interval: Interval| Some(interval.since) != self.clock.idle_since();
        if self.interval.is_some_and(over) && !self.clock.is_stepping() {
            self.end_interval();
        }
    }

    /// Tells the policy that foreground work ended the interval.
    fn end_interval(&mut self) {
        if let Some(interval) = self.interval.take() {
            let arrived = self.clock.busy_since();
            let collision =
                self.clock.step_until().filter(|_| interval.used).map_or(Nanos::ZERO, |end| end.since(arrived));
            self.policy.foreground_arrived(arrived.since(interval.since), collision);
        }
    }

    /// Whether the interval that now is, is one of those that are left alone to compare with.
    pub fn is_comparing(&self, now: Nanos) -> bool {
        self.interval.is_some_and(|interval| now < interval.held_until)
    }

    /// What the foreground suffered.
    pub fn measured(&self) -> &Measured {
        self.clock.measured()
    }

    /// Forgets what the foreground suffered since `measured`, but not its idle intervals: for a time that does not count.
    pub fn restore(&mut self, measured: Measured) {
        self.clock.restore(measured);
        self.told = measured;
    }

    /// The foreground on the clock on which the background work never happened.
    pub fn clock(&self) -> &SecondClock {
        &self.clock
    }

    /// How the account of the slowdown stands, if the policy keeps one.
    pub fn account(&self) -> Option<Account> {
        self.policy.account()
    }

    /// Size of the first step in the idle interval that was used last, and the idle time before it.
    pub fn last_used(&self) -> Option<(Bytes, Nanos)> {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::disk::DiskModel;
    use crate::idle::IdlenessBuilder;
    use crate::policy::testing::Checked;
    use crate::policy::{Adaptive, Budget, FixedDelay, Growing, Growth, Waiting};
    use crate::simulate::{Lane, Scrub, Service, Simulation};
    use crate::tune::Goal;

    const SIZE: Bytes = Bytes(1_000);

    fn waiting(wait: u64) -> Waiting {
        Waiting { idle_wait: Nanos(wait), request_size: SIZE }
    }

    /// A disk that serves first come first served, and a worker that asks whenever anything happened: what was measured.
    fn live<P: Policy>(driver: &mut Driver<P>, requests: &[(u64, u64)], model: &DiskModel) -> Measured {
        let (mut free, mut step_until) = (0, None);
        let mut completions = std::collections::VecDeque::new();
        let mut coming = requests.iter().copied().peekable();
        let (mut now, mut ask_at) = (0, None);
        loop {
            // What happens next, in the order in which a device would tell of it.
            let next = [step_until, completions.front().map(|&(at, _)| at), coming.peek().map(|&(at, _)| at), ask_at];
            let Some(at) = next.into_iter().flatten().min() else { break };
            now = at.max(now);
            if step_until.take_if(|until| *until <= now).is_some() {
                driver.step_ended(Nanos(now));
            }
            while let Some((at, arrival)) = completions.pop_front_if(|(at, _)| *at <= now) {
                driver.completed(Nanos(at), Nanos(arrival));
            }
            while let Some((arrival, service)) = coming.next_if(|&(at, _)| at <= now) {
                driver.arrived(Nanos(arrival));
                free = free.max(arrival) + service;
                completions.push_back((free, arrival));
            }
            // Behind its last request a trace has no idle time.
            if completions.is_empty() && coming.peek().is_none() {
                break;
            }
            ask_at = None;
            match driver.next(Nanos(now)) {
                Next::Step(size) => {
                    assert!(step_until.is_none() && completions.is_empty());
                    driver.step_began(Nanos(now), size);
                    free = now + model.verify_time(size).0;
                    step_until = Some(free);
                }
                Next::AskAt(at) => ask_at = Some(at.0),
                Next::Paused { until } => ask_at = Some(until.0),
                Next::WhenIdle => {}
            }
        }
        *driver.measured()
    }

    /// Counts what it is told.
    #[derive(Default)]
    struct Told(u64, Vec<u64>, u64);

    impl Policy for Told {
        fn idle_began(&mut self, _: Nanos, _: Nanos) {
            self.0 += 1;
        }

        fn decide(&mut self, _: Nanos) -> Decision {
            Decision::Stop
        }

        fn foreground_arrived(&mut self, idle: Nanos, _: Nanos) {
            self.1.push(idle.0);
        }

        fn foreground_served(&mut self, requests: u64, _: Nanos) {
            self.2 += requests;
        }
    }

    #[test]
    fn a_policy_hears_of_intervals_that_nobody_asked_about() {
        let mut driver = Driver::new(Checked::new(Told::default()), Nanos(0));
        for start in [10, 20, 30] {
            driver.arrived(Nanos(start));
            driver.completed(Nanos(start + start / 10), Nanos(start));
        }
        assert_eq!(driver.next(Nanos(40)), Next::WhenIdle);
        let told = driver.set_policy(Checked::new(Told::default())).into_inner();
        assert_eq!((told.0, told.1, told.2), (4, vec![10, 9, 8], 3));
    }

    /// Else the account with which the next policy begins would not know how long an exception took.
    #[test]
    fn how_an_interval_ended_is_told_with_what_it_cost() {
        let mut driver = Driver::new(Checked::new(Told::default()), Nanos(0));
        assert_eq!(driver.next(Nanos(1)), Next::WhenIdle);
        driver.arrived(Nanos(10));
        driver.completed(Nanos(12), Nanos(10));
        driver.tell();
        driver.tell();
        let told = driver.set_policy(Checked::new(Told::default())).into_inner();
        assert_eq!((told.0, told.1, told.2), (1, vec![10], 1));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// The same policies do the same in the simulator and live, and cost the same.
        #[test]
        fn equals_the_simulation(
            steps in prop::collection::vec((prop_oneof![1u64..4, 1u64..40, 1u64..400], 1u64..60), 2..120),
            wait in prop_oneof![1u64..20, 1u64..200], service in 1u64..60, target in 1u64..20,
        ) {
            let mut now = 7;
            let requests: Vec<_> = steps.iter().map(|&(gap, service)| { now += gap; (now, service) }).collect();
            let mut builder = IdlenessBuilder::new("d");
            let mut free = 0;
            for &(arrival, service) in &requests {
                free = arrival.max(free) + service;
                builder.request(Nanos(arrival), Nanos(free));
            }
            let disk = builder.finish();
            let model = DiskModel::in_proportion(service);
            let grows = Growing::new(Nanos(wait), SIZE, Bytes(9_000), Growth::Each { factor: 1.5, increment: Bytes(500) });
            let makes: [&dyn Fn() -> Box<dyn Policy>; 5] = [
                &|| Box::new(waiting(wait)),
                &|| Box::new(grows),
                &|| Box::new(Budget::new(waiting(wait), Nanos(target))),
                &|| Box::new(Budget::new(FixedDelay::new(Nanos(wait), SIZE), Nanos(target))),
                &|| Box::new(Adaptive::new(&Goal::new(Nanos(target), Nanos(10 * service)), &model)),
            ];
            for (index, make) in makes.into_iter().enumerate() {
                let lane = Lane::new(make(), Box::new(Scrub::new(Service::OfSize(model.clone()))));
                let mut simulated = Simulation::new(&disk, vec![lane]);
                disk.intervals.iter().for_each(|interval| simulated.interval(interval, std::iter::empty()));
                // Watching begins when the first request arrives.
                let mut driver = Driver::new(Checked::new(make()), Nanos(requests[0].0));
                let live = live(&mut driver, &requests, &model);
                prop_assert_eq!(live.slowdown_sum, simulated.outcome.delay_sum, "policy {}", index);
                prop_assert_eq!(live.collisions, simulated.outcome.collisions);
                prop_assert_eq!(live.steps, simulated.outcome.background_requests);
                prop_assert_eq!(live.worked, simulated.outcome.scrubbed);
                prop_assert_eq!(live.max_slowdown, simulated.outcome.longest_delay);
                prop_assert_eq!(&driver.clock().undisturbed().intervals, &disk.intervals);
            }
        }
    }
}
