//! How soon a scrub knows what the foreground does, and how soon it acts: what it costs that it is no part of the kernel (DSN 2012,
//! section III-C and figure 3).
//!
//! All times are those of the kernel's tracepoints, but for the moment in which this process knows. A coarser monitor has no such times.

use idlewise::{Cdh, Nanos};
use serde::Serialize;

use crate::monitor::{Event, EventKind};

/// What was seen so far.
#[derive(Clone, Debug, Default)]
pub struct Reaction {
    seen: Cdh,
    started: Cdh,
    followed: Cdh,
    requests: u64,
    late: u64,
    /// A request has been decided on that has not come to the device yet, and whether the foreground came before it.
    decided: bool,
    overtaken: bool,
    /// When the scrub might run.
    due: Option<Nanos>,
    /// When its last request ended, if the next one was decided on at once.
    ended: Option<Nanos>,
}

/// The same for programs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReactionSoFar {
    /// From the arrival of a foreground request on an idle disk until a scrub that waits knows of it.
    pub seen: Times,
    /// From the end of the idle wait until the first request of the scrub is at the device.
    pub started: Times,
    /// From the end of a request of the scrub until the next one is at the device.
    pub followed: Times,
    /// Requests of the scrub.
    pub requests: u64,
    /// Of them, those that came to the device behind a foreground request that the scrub did not know of yet.
    pub late_requests: u64,
}

/// How long something took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Times {
    /// Half of the times are at most this.
    pub p50_s: f64,
    /// 99 % of the times are at most this.
    pub p99_s: f64,
    /// All times together.
    pub total_s: f64,
    /// How many times.
    pub count: u64,
}

impl From<&Cdh> for Times {
    fn from(times: &Cdh) -> Self {
        let at = |share| times.quantile(share).as_secs_f64();
        Self { p50_s: at(0.5), p99_s: at(0.99), total_s: times.total().as_secs_f64(), count: times.count() }
    }
}

impl Reaction {
    /// Nothing runs for now. The policy may run at `due` if nobody comes, where it waits for that alone.
    pub fn waits_until(&mut self, due: Option<Nanos>) {
        (self.due, self.ended) = (due, None);
    }

    /// A request has been decided on.
    pub fn decides(&mut self) {
        (self.decided, self.overtaken) = (true, false);
    }

    /// An event was known at `known`, of a look that began at `since`; `idle` says whether the disk was taken for idle until then.
    pub fn told(&mut self, event: &Event, idle: bool, since: Nanos, known: Nanos) {
        match (event.own, event.kind) {
            (false, kind) => {
                self.overtaken |= self.decided;
                self.waits_until(None);
                // What came before was not waited for.
                if kind == EventKind::Arrival && idle && event.at >= since {
                    self.seen.add(known.since(event.at));
                }
            }
            (true, EventKind::Arrival) => self.issued(event.at),
            (true, EventKind::Completion) => self.ended = Some(event.at),
        }
    }

    fn issued(&mut self, at: Nanos) {
        if !std::mem::take(&mut self.decided) {
            return;
        }
        self.requests += 1;
        self.late += u64::from(self.overtaken);
        match (self.due.take(), self.ended.take()) {
            (Some(due), _) => self.started.add(at.since(due)),
            (None, Some(ended)) => self.followed.add(at.since(ended)),
            (None, None) => {}
        }
    }

    /// What was seen, if there was anything.
    pub fn so_far(&self) -> Option<ReactionSoFar> {
        let [seen, started, followed] = [&self.seen, &self.started, &self.followed].map(Times::from);
        let Self { requests, late: late_requests, .. } = *self;
        (requests > 0).then_some(ReactionSoFar { seen, started, followed, requests, late_requests })
    }
}

#[cfg(test)]
mod tests {
    use idlewise::Bytes;

    use super::*;
    use crate::monitor::{EventOp, Untold};

    fn event(kind: EventKind, at: u64, own: bool) -> Event {
        let (offset, length, op) = (Bytes(0), 512, EventOp::Read);
        Event {
            at: Nanos(at),
            arrival: Nanos(at),
            issue: None,
            kind,
            offset,
            length,
            op,
            own,
            untold: Untold::default(),
        }
    }

    #[test]
    fn times_are_from_what_could_have_been() {
        use EventKind::{Arrival, Completion};
        let mut reaction = Reaction::default();
        assert_eq!(reaction.so_far(), None);
        let tell = |reaction: &mut Reaction, kind, at, own| {
            reaction.told(&event(kind, at, own), true, Nanos(100_000), Nanos(at + 7_000));
        };
        // Two requests behind a wait that ended at 200 us, the second of which follows.
        reaction.waits_until(Some(Nanos(200_000)));
        reaction.decides();
        tell(&mut reaction, Arrival, 230_000, true);
        tell(&mut reaction, Completion, 900_000, true);
        reaction.decides();
        tell(&mut reaction, Arrival, 910_000, true);
        tell(&mut reaction, Completion, 1_000_000, true);
        // A third that the foreground came before, and a part of it.
        reaction.decides();
        tell(&mut reaction, Arrival, 1_010_000, false);
        tell(&mut reaction, Arrival, 1_020_000, true);
        tell(&mut reaction, Arrival, 1_021_000, true);
        let so_far = reaction.so_far().unwrap();
        assert_eq!((so_far.requests, so_far.late_requests), (3, 1));
        let times = [so_far.seen, so_far.started, so_far.followed].map(|times| (times.count, times.total_s));
        assert_eq!(times, [(1, 7e-6), (1, 30e-6), (1, 10e-6)]);
    }

    #[test]
    fn what_was_not_waited_for_is_no_reaction() {
        let mut reaction = Reaction::default();
        let mut tell = |event: &Event, idle, since| reaction.told(event, idle, Nanos(since), Nanos(5_000));
        tell(&event(EventKind::Arrival, 1_000, false), true, 2_000);
        tell(&event(EventKind::Arrival, 3_000, false), false, 2_000);
        // A request for which the scrub had paused for the goal.
        reaction.waits_until(None);
        reaction.decides();
        reaction.told(&event(EventKind::Arrival, 9_000, true), true, Nanos(8_000), Nanos(9_500));
        let so_far = reaction.so_far().unwrap();
        assert_eq!([so_far.seen.count, so_far.started.count, so_far.followed.count, so_far.requests], [0, 0, 0, 1]);
    }
}
