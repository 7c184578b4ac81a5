//! What the foreground does and what we cost it, from the monitor's events.
//!
//! The disk is taken as one server that works whenever a request is outstanding. A request's service is what passed
//! between the moment the disk was free for it and its completion. Without our requests it would have begun when it
//! arrived or when the request before it was done: adding up services on that second clock gives each completion as it
//! would have been (Lindley's recursion). The difference is its slowdown, carried over from request to request as in the
//! simulator; the gaps on the second clock are the idle intervals as they would have been. The service of the first request
//! after our work is taken without what [`Displacement`] says our work added to it.

use idlewise::Nanos;
use idlewise::idle::{Idleness, IdlenessBuilder};

use super::displacement::{Displacement, Use};
use crate::monitor::{Event, EventKind};

/// Idle intervals that are remembered, at least; twice as many at most.
const REMEMBERED: usize = 100_000;

/// What foreground requests suffered, as measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Foreground requests completed.
    pub foreground_requests: u64,
    /// Our requests that were in service when a foreground request arrived.
    pub collisions: u64,
    /// Sum of slowdowns, in nanoseconds.
    pub slowdown_sum: u128,
    /// Longest slowdown.
    pub max_slowdown: Nanos,
    /// Sum of response times, in nanoseconds.
    pub response_sum: u128,
}

impl Measured {
    /// Mean slowdown over all foreground requests.
    pub fn mean_slowdown(&self) -> Nanos {
        self.mean(self.slowdown_sum)
    }

    /// Mean response time.
    pub fn mean_response(&self) -> Nanos {
        self.mean(self.response_sum)
    }

    fn mean(&self, sum: u128) -> Nanos {
        Nanos((sum / u128::from(self.foreground_requests.max(1))) as u64)
    }
}

/// Follows the foreground of one disk.
#[derive(Clone, Debug)]
pub struct Foreground {
    measured: Measured,
    outstanding: u64,
    own_open: u64,
    collided: bool,
    /// When the disk was last done with a request, ours or foreground.
    served: Nanos,
    /// When it would have been done with the last foreground request without ours.
    undisturbed: Nanos,
    /// When the last foreground request completed, or watching began.
    idle_since: Nanos,
    /// When the foreground work before that began.
    busy_since: Nanos,
    intervals: IdlenessBuilder,
    /// What we did in the idle interval that is or was the last.
    interval: Use,
    displacement: Displacement,
}

impl Foreground {
    /// Begins watching a disk that is taken to be idle.
    pub fn new(now: Nanos) -> Self {
        Self {
            measured: Measured::default(),
            outstanding: 0,
            own_open: 0,
            collided: false,
            served: now,
            undisturbed: Nanos::ZERO,
            idle_since: now,
            busy_since: now,
            intervals: IdlenessBuilder::new("live"),
            interval: Use::Left,
            displacement: Displacement::default(),
        }
    }

    /// Takes in an event; events come in order of time.
    pub fn event(&mut self, event: &Event) {
        match (event.own, event.kind) {
            (true, EventKind::Arrival) => {
                self.own_open += 1;
                self.interval = Use::Worked;
            }
            (true, EventKind::Completion) => {
                self.own_open = self.own_open.saturating_sub(1);
                self.served = self.served.max(event.at);
                if self.own_open == 0 {
                    self.collided = false;
                }
            }
            (false, EventKind::Arrival) => {
                if self.outstanding == 0 {
                    self.busy_since = event.at;
                }
                self.outstanding += 1;
                if self.own_open > 0 && !self.collided {
                    self.collided = true;
                    self.measured.collisions += 1;
                }
            }
            (false, EventKind::Completion) => self.completion(event.at, event.arrival),
        }
    }

    fn completion(&mut self, at: Nanos, arrival: Nanos) {
        let service = at.since(self.served.max(arrival));
        let interval = std::mem::take(&mut self.interval);
        let added = if interval == Use::Worked { self.displacement.cost().min(service) } else { Nanos::ZERO };
        self.displacement.served(interval, service);
        let undisturbed = Nanos(self.undisturbed.max(arrival).0 + service.since(added).0);
        let slowdown = at.since(undisturbed);
        self.intervals.request(arrival, undisturbed);
        if self.intervals.so_far().intervals.len() > 2 * REMEMBERED {
            self.intervals.keep_last(REMEMBERED);
        }
        self.measured.foreground_requests += 1;
        self.measured.slowdown_sum += u128::from(slowdown.0);
        self.measured.max_slowdown = self.measured.max_slowdown.max(slowdown);
        self.measured.response_sum += u128::from(at.since(arrival).0);
        (self.served, self.undisturbed, self.idle_since) = (at, undisturbed, at);
        // A request that was under way when watching began has no arrival.
        self.outstanding = self.outstanding.saturating_sub(1);
    }

    /// Whether the interval that now is shall be left alone for once, to learn from it what our work in others costs.
    pub fn hold_back(&mut self) -> bool {
        let held = self.interval == Use::Left && self.displacement.draw();
        if held {
            self.interval = Use::HeldBack;
        }
        held
    }

    /// What our work adds to the service of the request that ends an interval.
    pub fn displacement(&self) -> Nanos {
        self.displacement.cost()
    }

    /// Events were lost: only the monitor's own count of outstanding requests holds. None of ours is in service.
    pub fn resynchronise(&mut self, outstanding: u64) {
        (self.outstanding, self.own_open, self.collided) = (outstanding, 0, false);
    }

    /// Since when the disk has had no foreground request; `None` while it has.
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
    pub fn restore(&mut self, measured: Measured) {
        self.measured = measured;
    }

    /// The idle intervals as they would have been without us, the most recent ones.
    pub fn undisturbed(&self) -> &Idleness {
        self.intervals.so_far()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::EventOp;
    use idlewise::Bytes;
    use proptest::prelude::*;

    fn event(kind: EventKind, own: bool, at: u64, arrival: u64) -> Event {
        Event {
            at: Nanos(at),
            arrival: Nanos(arrival),
            issue: None,
            kind,
            offset: Bytes(0),
            length: 0,
            op: EventOp::Read,
            own,
        }
    }

    /// A disk that serves first come first served, with our requests issued by Waiting; its events in order of time.
    fn events(requests: &[(u64, u64)], wait: u64, own_service: u64) -> Vec<Event> {
        let mut events = Vec::new();
        let mut free = 0;
        for &(arrival, service) in requests {
            let mut next = free + wait;
            while next < arrival {
                events.push(event(EventKind::Arrival, true, next, next));
                next += own_service;
                free = next;
                events.push(event(EventKind::Completion, true, next, next - own_service));
            }
            events.push(event(EventKind::Arrival, false, arrival, arrival));
            free = free.max(arrival) + service;
            events.push(event(EventKind::Completion, false, free, arrival));
        }
        events.sort_by_key(|event| event.at);
        events
    }

    #[test]
    fn a_collision_by_hand() {
        // Ours is in service from 30 to 60; the request at 40 takes 5 and would have been done at 45.
        let mut foreground = Foreground::new(Nanos(0));
        for event in events(&[(10, 5), (40, 5), (100, 5)], 15, 30) {
            foreground.event(&event);
        }
        let measured = foreground.measured();
        assert_eq!((measured.collisions, measured.foreground_requests), (2, 3));
        // 60 + 5 for 45, and from 80 to 110 again: 115 for 105.
        assert_eq!((measured.slowdown_sum, measured.max_slowdown), (20 + 10, Nanos(20)));
        let lengths: Vec<u64> = foreground.undisturbed().intervals.iter().map(|i| i.length.0).collect();
        assert_eq!(lengths, [25, 55]);
    }

    #[test]
    fn the_head_that_comes_back_counts() {
        // Requests every 1000, served in 10 alone and in 14 after our work, which never collides with any.
        let mut foreground = Foreground::new(Nanos(0));
        let mut held = 0;
        for turn in 1..=2_000u64 {
            let arrival = turn * 1_000;
            let service = if foreground.hold_back() {
                held += 1;
                10
            } else {
                foreground.event(&event(EventKind::Arrival, true, arrival - 500, arrival - 500));
                foreground.event(&event(EventKind::Completion, true, arrival - 400, arrival - 500));
                14
            };
            foreground.event(&event(EventKind::Arrival, false, arrival, arrival));
            foreground.event(&event(EventKind::Completion, false, arrival + service, arrival));
        }
        let measured = foreground.measured();
        assert_eq!((foreground.displacement(), measured.collisions, measured.max_slowdown), (Nanos(4), 0, Nanos(4)));
        // Every request after our work was delayed by 4; the first dozens of them before that was known.
        let expected = 4 * (2_000 - held);
        let counted = measured.slowdown_sum as u64;
        assert!(counted <= expected && counted > expected * 8 / 10, "{counted} of {expected}");
    }

    proptest! {
        /// What is measured equals the disk with and without us, served request by request.
        #[test]
        fn equals_the_difference_of_two_runs(
            steps in prop::collection::vec((0u64..200, 1u64..40), 1..60), wait in 0u64..60, own in 1u64..80,
        ) {
            let mut now = 0;
            let requests: Vec<_> = steps.iter().map(|&(gap, service)| { now += gap; (now, service) }).collect();
            let run = |events: Vec<Event>| {
                let mut foreground = Foreground::new(Nanos(0));
                events.iter().for_each(|event| foreground.event(event));
                foreground
            };
            let (with, without) = (run(events(&requests, wait, own)), run(events(&requests, u64::MAX / 2, own)));
            let difference = with.measured().response_sum - without.measured().response_sum;
            prop_assert_eq!(with.measured().slowdown_sum, difference);
            prop_assert_eq!(&with.undisturbed().intervals, &without.undisturbed().intervals);
            prop_assert_eq!(without.measured().slowdown_sum, 0);
        }
    }
}
