//! How soon a scrub acts, and how often too late: what it costs that it is no part of the kernel (DSN 2012, section III-C and figure 3).
//!
//! Whether the disk is idle is looked up in memory that the kernel writes, before each request; nothing wakes the scrub for that. What comes
//! between that look and the request at the device is too late. All times are those of the kernel's tracepoints; a coarser monitor has none.

use idlewise::{Cdh, Nanos};
use serde::Serialize;

use crate::monitor::{Event, EventKind, Origin};

/// What was seen so far.
#[derive(Clone, Debug, Default)]
pub struct Reaction {
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

    /// The monitor told of an event.
    pub fn told(&mut self, event: &Event) {
        match (event.origin, event.kind) {
            (Origin::Foreground | Origin::Another, _) => {
                self.overtaken |= self.decided;
                self.waits_until(None);
            }
            (Origin::Own, EventKind::Arrival) => self.issued(event.at),
            (Origin::Own, EventKind::Completion) => self.ended = Some(event.at),
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
        let [started, followed] = [&self.started, &self.followed].map(Times::from);
        let Self { requests, late: late_requests, .. } = *self;
        (requests > 0).then_some(ReactionSoFar { started, followed, requests, late_requests })
    }
}

#[cfg(test)]
mod tests {
    use idlewise::Bytes;

    use super::*;
    use crate::monitor::{EventOp, Untold};

    fn event(kind: EventKind, at: u64, own: bool) -> Event {
        let origin = if own { Origin::Own } else { Origin::Foreground };
        let (offset, length, op) = (Bytes(0), 512, EventOp::Read);
        Event {
            at: Nanos(at),
            arrival: Nanos(at),
            issue: None,
            kind,
            offset,
            length,
            op,
            origin,
            untold: Untold::default(),
        }
    }

    #[test]
    fn times_are_from_what_could_have_been() {
        use EventKind::{Arrival, Completion};
        let mut reaction = Reaction::default();
        assert_eq!(reaction.so_far(), None);
        let tell = |reaction: &mut Reaction, kind, at, own| reaction.told(&event(kind, at, own));
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
        // A fourth, for which the scrub had paused for the goal.
        tell(&mut reaction, Completion, 1_500_000, true);
        reaction.waits_until(None);
        reaction.decides();
        tell(&mut reaction, Arrival, 9_000_000, true);
        let so_far = reaction.so_far().unwrap();
        assert_eq!((so_far.requests, so_far.late_requests), (4, 1));
        let times = [so_far.started, so_far.followed].map(|times| (times.count, times.total_s));
        assert_eq!(times, [(1, 30e-6), (1, 10e-6)]);
    }
}
