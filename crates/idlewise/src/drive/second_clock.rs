//! What the foreground does and what background work costs it, from arrivals and completions.
//!
//! The device is taken as one server that works whenever a request is outstanding. A request's service is what passed
//! between the moment the device was free for it and its completion. Without background work it would have begun when it
//! arrived or when the request before it was done: adding up services on that second clock gives each completion as it
//! would have been (Lindley's recursion). The difference is its slowdown, carried over from request to request as in the
//! simulator; the gaps on the second clock are the idle intervals as they would have been. The service of the first request
//! after background work is taken without what [`Displacement`] says that the work added to it.

use super::Measured;
use super::displacement::{Displacement, Use};
use super::experiment::{Compared, Experiment};
use super::learnt::Learnt;
use crate::idle::{Idleness, IdlenessBuilder};
use crate::{Bytes, Nanos};

/// Idle intervals that are remembered, at least; twice as many at most.
const REMEMBERED: usize = 100_000;

/// Follows the foreground of one device.
#[derive(Clone, Debug)]
pub struct SecondClock {
    measured: Measured,
    /// Requests slowed by more are counted.
    limit: Option<Nanos>,
    outstanding: u64,
    /// Steps in service: a large one may be several requests.
    steps_open: u64,
    collided: bool,
    /// When the last step ended.
    step_until: Option<Nanos>,
    /// When the step in service began, and how long the longest one took of those in the interval used last.
    step_since: Nanos,
    longest_step: Nanos,
    /// When the device was last done with anything.
    served: Nanos,
    /// When it would have been done with the last foreground request without background work.
    undisturbed: Nanos,
    /// When the last foreground request completed, or watching began.
    idle_since: Nanos,
    /// When the foreground work before that began.
    busy_since: Nanos,
    intervals: IdlenessBuilder,
    /// What was done in the idle interval that is or was the last.
    interval: Use,
    displacement: Displacement,
    experiment: Experiment,
}

impl SecondClock {
    /// Begins watching a device that is taken to be idle.
    pub fn new(now: Nanos) -> Self {
        Self {
            measured: Measured::default(),
            limit: None,
            outstanding: 0,
            steps_open: 0,
            collided: false,
            step_until: None,
            step_since: Nanos::ZERO,
            longest_step: Nanos::ZERO,
            served: now,
            undisturbed: Nanos::ZERO,
            idle_since: now,
            busy_since: now,
            intervals: IdlenessBuilder::new("live"),
            interval: Use::Left,
            displacement: Displacement::default(),
            experiment: Experiment::default(),
        }
    }

    /// Counts the requests that are slowed by more than `limit` from now on.
    pub fn count_beyond(&mut self, limit: Option<Nanos>) {
        self.limit = limit;
    }

    /// A foreground request arrived.
    pub fn arrived(&mut self, at: Nanos) {
        // Busy periods that touch are one.
        if self.outstanding == 0 && at > self.idle_since {
            self.busy_since = at;
        }
        self.outstanding += 1;
        if self.steps_open > 0 && !self.collided {
            self.collided = true;
            self.measured.collisions += 1;
        }
    }

    /// A step of background work of this size is in service, or a part of it.
    pub fn step_began(&mut self, at: Nanos, size: Bytes) {
        if self.steps_open == 0 {
            self.step_since = at;
        }
        if std::mem::replace(&mut self.interval, Use::Worked) != Use::Worked {
            self.longest_step = Nanos::ZERO;
        }
        self.steps_open += 1;
        self.measured.steps += 1;
        self.measured.worked.0 = self.measured.worked.0.saturating_add(size.0);
    }

    /// The step before was so much less than its size.
    pub fn step_was_less(&mut self, by: Bytes) {
        self.measured.worked.0 = self.measured.worked.0.saturating_sub(by.0);
    }

    /// A step, or a part of it, ended.
    pub fn step_ended(&mut self, at: Nanos) {
        self.steps_open = self.steps_open.saturating_sub(1);
        self.served = self.served.max(at);
        self.step_until = self.step_until.max(Some(at));
        if self.steps_open == 0 {
            self.collided = false;
            self.longest_step = self.longest_step.max(at.since(self.step_since));
        }
    }

    /// Whether it has to be told of each foreground request. Where none is delayed or compared, it is enough to be told of the first one that
    /// comes to an idle device, and of the last one before it is idle again [with the others](Self::completed_with).
    pub fn wants_each(&self) -> bool {
        self.is_stepping()
            || self.interval != Use::Left
            || self.served != self.undisturbed
            || self.experiment.wants_each()
    }

    /// Whether foreground requests are outstanding, where it is not told of each.
    pub fn others_are_outstanding(&mut self, others: bool) {
        self.outstanding = if others { self.outstanding.max(1) } else { 0 };
    }

    /// A foreground request that arrived at `arrival` completed.
    pub fn completed(&mut self, at: Nanos, arrival: Nanos) {
        self.completed_with(at, arrival, 0, Nanos::ZERO);
    }

    /// The same, and so many others before it since the device was last idle, of which nothing was told. `responses` is how long these took
    /// together.
    pub fn completed_with(&mut self, at: Nanos, arrival: Nanos, others: u64, responses: Nanos) {
        if others > 0 {
            self.measured.foreground_requests += others;
            self.measured.slowdowns.add(others, Nanos::ZERO);
            self.measured.response_sum += responses;
            self.intervals.requests(self.busy_since.min(arrival), at, others, responses);
        }
        let service = at.since(self.served.max(arrival));
        let interval = std::mem::take(&mut self.interval);
        let added = if interval == Use::Worked { self.displacement.cost().min(service) } else { Nanos::ZERO };
        // How long the first one of several took is not known.
        if others == 0 {
            self.displacement.served(interval, service);
        }
        let undisturbed = Nanos(self.undisturbed.max(arrival).0.saturating_add(service.since(added).0));
        let slowdown = at.since(undisturbed);
        self.intervals.request(arrival, undisturbed);
        if self.intervals.so_far().intervals.len() > 2 * REMEMBERED {
            self.intervals.keep_last(REMEMBERED);
        }
        self.measured.foreground_requests += 1;
        let response = at.since(arrival);
        // However requests were to be compared, a step delays none by more than it takes, and what moving the head back does.
        let most = response.since(slowdown).min(self.longest_step + self.displacement.cost());
        let unseen = self.experiment.served(arrival, response, slowdown).min(most);
        let charged = Nanos(slowdown.0.saturating_add(unseen.0));
        self.measured.slowdown_sum += charged;
        self.measured.slowdowns.add(1, charged);
        self.measured.max_slowdown = self.measured.max_slowdown.max(slowdown);
        if self.limit.is_some_and(|limit| charged > limit) {
            self.measured.slowed.0 += 1;
            self.measured.slowed.1 += charged;
        }
        self.measured.response_sum += response;
        (self.served, self.undisturbed, self.idle_since) = (at, undisturbed, at);
        // A request that was under way when watching began has no arrival.
        self.outstanding = self.outstanding.saturating_sub(1);
    }

    /// Whether the interval that now is shall be left alone for once, to learn from it what work in others costs.
    pub(super) fn hold_back(&mut self, now: Nanos) -> bool {
        if self.interval != Use::Left {
            // It was left alone for long enough, or is in use already.
            self.experiment.interrupted();
            return false;
        }
        let (held, likely) = self.displacement.draw();
        self.experiment.drawn(now, !held, if held { likely } else { 1.0 - likely });
        if held {
            self.interval = Use::HeldBack;
        }
        held
    }

    /// How long an interval is left alone at most.
    pub(super) fn longest_turn(&self) -> Nanos {
        self.experiment.longest_turn()
    }

    /// From now on it is this.
    pub(super) fn set_longest_turn(&mut self, longest: Nanos) {
        self.experiment.set_longest_turn(longest);
    }

    /// The policy may do nothing for now: what comes has nothing to do with the last lot.
    pub(super) fn paused(&mut self) {
        self.experiment.end_turn();
    }

    /// Another policy decides which intervals are used, and how.
    pub(super) fn policy_changed(&mut self) {
        self.displacement.changed();
    }

    /// From now on no interval is drawn.
    pub(super) fn draw_no_more(&mut self) {
        self.experiment.interrupted();
    }

    /// What the comparison of intervals used with intervals left alone has found, once there are enough of both.
    pub fn compared(&self) -> Option<Compared> {
        self.experiment.compared(self.measured.foreground_requests)
    }

    /// How many times the slowdown that this clock sees is charged, about: more while it is not known how much it misses.
    pub fn charged(&self) -> f64 {
        self.experiment.charged()
    }

    /// What comparing has taught so far.
    pub fn learnt(&self) -> Learnt {
        Learnt { displacement: self.displacement, arms: self.experiment.arms() }
    }

    /// Goes on with what an earlier run has learnt, which counts half.
    pub(super) fn go_on_with(&mut self, learnt: Learnt) {
        self.displacement = learnt.displacement;
        self.displacement.halve();
        self.experiment.go_on_with(learnt.arms);
    }

    /// What background work adds to the service of the request that ends an interval.
    pub fn displacement(&self) -> Nanos {
        self.displacement.cost()
    }

    /// Calls were lost: so many foreground requests are outstanding, and no step is in service.
    pub fn resynchronise(&mut self, outstanding: u64) {
        self.outstanding = outstanding;
        self.experiment.interrupted();
        self.steps_are_over();
    }

    /// No step is in service, whatever was told of them.
    pub fn steps_are_over(&mut self) {
        (self.steps_open, self.collided) = (0, false);
    }

    /// Whether a step is in service.
    pub fn is_stepping(&self) -> bool {
        self.steps_open > 0
    }

    /// When the last step ended.
    pub fn step_until(&self) -> Option<Nanos> {
        self.step_until
    }

    /// Since when the device has had no foreground request; `None` while it has.
    pub fn idle_since(&self) -> Option<Nanos> {
        (self.outstanding == 0).then_some(self.idle_since)
    }

    /// When the last foreground work began.
    pub fn busy_since(&self) -> Nanos {
        self.busy_since
    }

    /// Length of the foreground work before the idle interval.
    pub fn busy(&self) -> Nanos {
        self.idle_since.since(self.busy_since)
    }

    /// What the foreground suffered.
    pub fn measured(&self) -> &Measured {
        &self.measured
    }

    /// Sets what was measured back to an earlier state, but not the idle intervals: for an observation that does not count.
    pub(super) fn restore(&mut self, measured: Measured) {
        self.experiment.interrupted();
        self.measured = measured;
    }

    /// The idle intervals as they would have been without background work, the most recent ones.
    pub fn undisturbed(&self) -> &Idleness {
        self.intervals.so_far()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TotalTime;
    use proptest::prelude::*;

    #[derive(Clone, Copy)]
    enum Event {
        Arrived,
        Completed { arrival: u64 },
        StepBegan,
        StepEnded,
    }
    use Event::*;

    fn take(clock: &mut SecondClock, (at, event): (u64, Event)) {
        match event {
            Arrived => clock.arrived(Nanos(at)),
            Completed { arrival } => clock.completed(Nanos(at), Nanos(arrival)),
            StepBegan => clock.step_began(Nanos(at), Bytes(1)),
            StepEnded => clock.step_ended(Nanos(at)),
        }
    }

    /// A disk that serves first come first served, with steps issued by Waiting; its events in order of time.
    fn events(requests: &[(u64, u64)], wait: u64, own_service: u64) -> Vec<(u64, Event)> {
        let mut events = Vec::new();
        let mut free = 0;
        for &(arrival, service) in requests {
            let mut next = free + wait;
            while next < arrival {
                events.push((next, StepBegan));
                next += own_service;
                free = next;
                events.push((next, StepEnded));
            }
            events.push((arrival, Arrived));
            free = free.max(arrival) + service;
            events.push((free, Completed { arrival }));
        }
        events.sort_by_key(|(at, _)| *at);
        events
    }

    /// Tells of no more than is wanted, as the BPF program does (monitor.bpf.c of idlewise-linux); says of how many it did not tell.
    fn told(clock: &mut SecondClock, events: Vec<(u64, Event)>) -> u64 {
        let (mut open, mut untold, mut responses, mut all) = (0, 0, 0, 0);
        for (at, event) in events {
            let each = clock.wants_each() || matches!(event, StepBegan);
            match event {
                Arrived => {
                    if each || open == 0 {
                        clock.arrived(Nanos(at));
                    }
                    open += 1;
                }
                Completed { arrival } => {
                    open -= 1;
                    if !each && open > 0 {
                        (untold, responses, all) = (untold + 1, responses + at - arrival, all + 1);
                        continue;
                    }
                    let responses = Nanos(std::mem::take(&mut responses));
                    clock.completed_with(Nanos(at), Nanos(arrival), std::mem::take(&mut untold), responses);
                    if !each {
                        clock.others_are_outstanding(open > 0);
                    }
                }
                StepBegan | StepEnded => take(clock, (at, event)),
            }
        }
        all
    }

    #[test]
    fn what_is_not_wanted_is_not_told() {
        // Ten requests of 5 at once, and nobody works.
        let burst: Vec<_> = (0..10).map(|_| (10, 5)).collect();
        let mut clock = SecondClock::new(Nanos(0));
        assert_eq!(told(&mut clock, events(&burst, 1_000, 1)), 9);
        assert_eq!((clock.measured().foreground_requests, clock.idle_since()), (10, Some(Nanos(60))));
        assert_eq!(clock.measured().response_sum, TotalTime(5 * 55));
    }

    #[test]
    fn a_collision_by_hand() {
        // The step is in service from 30 to 60; the request at 40 takes 5 and would have been done at 45.
        let mut clock = SecondClock::new(Nanos(0));
        clock.count_beyond(Some(Nanos(19)));
        for event in events(&[(10, 5), (40, 5), (100, 5)], 15, 30) {
            take(&mut clock, event);
        }
        let measured = clock.measured();
        assert_eq!((measured.collisions, measured.foreground_requests), (2, 3));
        // 60 + 5 for 45, and from 80 to 110 again: 115 for 105.
        assert_eq!((measured.slowdown_sum, measured.max_slowdown), (TotalTime(20 + 10), Nanos(20)));
        assert_eq!((measured.slowed, measured.slowed_share()), ((1, TotalTime(20)), 1.0 / 3.0));
        assert_eq!(measured.slowdowns.counts()[0], 3);
        assert_eq!(measured.since(&Measured::default()), [(2, TotalTime(10)), (1, TotalTime(20))]);
        let lengths: Vec<u64> = clock.undisturbed().intervals.iter().map(|i| i.length.0).collect();
        assert_eq!(lengths, [25, 55]);
    }

    /// Whoever sees which intervals are used may be slow by himself behind just these: that is charged as what a step can delay at most,
    /// and nothing is while no interval is used.
    #[test]
    fn who_knows_the_lots_can_charge_no_more_than_collisions_would_cost() {
        let mut clock = SecondClock::new(Nanos(0));
        let request = |clock: &mut SecondClock, arrival: u64, response: u64| {
            take(clock, (arrival, Arrived));
            take(clock, (arrival + response, Completed { arrival }));
        };
        for turn in 1..=500u64 {
            let begin = turn * 10_000;
            // One that is served at once, and one that waited for itself.
            let held = clock.hold_back(Nanos(begin * 7_919));
            if !held {
                take(&mut clock, (begin + 10, StepBegan));
                take(&mut clock, (begin + 110, StepEnded));
            }
            request(&mut clock, begin + 1_000, 50);
            request(&mut clock, begin + 2_000, if held { 50 } else { 3_000 });
        }
        let found = clock.compared().unwrap();
        assert!(found.low_ns > 1_000, "it looks like that: {found:?}");
        let charged = *clock.measured();
        assert!(charged.slowdown_sum <= Nanos(100) * charged.foreground_requests, "{charged:?}");
        clock.paused();
        for turn in 0..100 {
            request(&mut clock, 10_000_000 + turn * 10_000, 3_000);
        }
        assert_eq!(clock.measured().slowdown_sum, charged.slowdown_sum, "nobody worked");
    }

    #[test]
    fn the_head_that_comes_back_counts() {
        // Requests every 1000, served in 10 alone and in 14 after a step, which never collides with any.
        let mut clock = SecondClock::new(Nanos(0));
        let mut held = 0;
        for turn in 1..=2_000u64 {
            let arrival = turn * 1_000;
            let service = if clock.hold_back(Nanos(turn)) {
                held += 1;
                10
            } else {
                take(&mut clock, (arrival - 500, StepBegan));
                take(&mut clock, (arrival - 400, StepEnded));
                14
            };
            take(&mut clock, (arrival, Arrived));
            take(&mut clock, (arrival + service, Completed { arrival }));
        }
        let measured = clock.measured();
        assert_eq!((clock.displacement(), measured.collisions, measured.max_slowdown), (Nanos(4), 0, Nanos(4)));
        // Every request after a step was delayed by 4; the first dozens of them before that was known, and some are charged more for a doubt.
        let expected = 4 * (2_000 - held);
        let counted = measured.slowdown_sum.0 as u64;
        assert!((expected * 8 / 10..expected * 105 / 100).contains(&counted), "{counted} of {expected}");
    }

    proptest! {
        /// It is all the same whether each request is told of or only those that are wanted.
        #[test]
        fn what_is_told_together_counts_as_if_each_was_told(
            steps in prop::collection::vec((0u64..100, 1u64..40), 1..60), wait in 0u64..60, own in 1u64..80,
        ) {
            let mut now = 0;
            let requests: Vec<_> = steps.iter().map(|&(gap, service)| { now += gap / 2; (now, service) }).collect();
            let (mut each, mut wanted) = (SecondClock::new(Nanos(0)), SecondClock::new(Nanos(0)));
            events(&requests, wait, own).into_iter().for_each(|event| take(&mut each, event));
            told(&mut wanted, events(&requests, wait, own));
            prop_assert_eq!(each.measured(), wanted.measured());
            prop_assert_eq!(&each.undisturbed().intervals, &wanted.undisturbed().intervals);
            prop_assert_eq!((each.idle_since(), each.busy_since()), (wanted.idle_since(), wanted.busy_since()));
        }

        /// What is measured equals the disk with and without us, served request by request.
        #[test]
        fn equals_the_difference_of_two_runs(
            steps in prop::collection::vec((0u64..200, 1u64..40), 1..60), wait in 0u64..60, own in 1u64..80,
        ) {
            let mut now = 0;
            let requests: Vec<_> = steps.iter().map(|&(gap, service)| { now += gap; (now, service) }).collect();
            let run = |events: Vec<(u64, Event)>| {
                let mut clock = SecondClock::new(Nanos(0));
                events.into_iter().for_each(|event| take(&mut clock, event));
                clock
            };
            let (with, without) = (run(events(&requests, wait, own)), run(events(&requests, u64::MAX / 2, own)));
            let both = without.measured().response_sum + with.measured().slowdown_sum;
            prop_assert_eq!(with.measured().response_sum, both);
            prop_assert_eq!(&with.undisturbed().intervals, &without.undisturbed().intervals);
            prop_assert_eq!(without.measured().slowdown_sum, TotalTime::ZERO);
        }
    }
}
