//! The coarse monitor for processes that are run in the gaps: of what the kernel counts of a disk, the foreground's is what these processes
//! did not ask for.
//!
//! What a process reads is counted when it asks for it, what it writes when it fills a page: the kernel writes that one some seconds later.
//! The processes' bytes are not counted disk by disk, so each disk may have had all of them.

use std::time::Duration;

use idlewise::Nanos;

use super::counters::{self, Counted, Counters, Look, Open, OwnWork};
use super::{Event, Monitor, MonitorError, Own, now};
use crate::device::WholeDisk;

/// The kernel writes a page so long after it was filled, with its usual settings (dirty_expire_centisecs and the interval of its looks).
pub const WRITTEN_BY: Nanos = Nanos::from_secs(35);

/// What is to be read may be on its way to the disk so soon after it is counted, where its process loses the processor in between; and
/// what was read is counted so late after it is in flight no more.
const UNDER_WAY: Nanos = Nanos::from_millis(5);

/// Bytes that processes have asked their disks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Read.
    pub read: u64,
    /// Written.
    pub written: u64,
}

/// Tells how many those are so far; `None` where it is not known yet.
pub type Counter = Box<dyn FnMut() -> Option<Moved> + Send>;

/// The counters of one disk, and what the processes asked for.
pub struct Shares {
    counters: Counters,
    counter: Counter,
    seen: Counted,
    looked: Nanos,
    /// `None` before it was told for the first time.
    asked: Option<Moved>,
    /// Bytes that the processes asked for and that the disk has not moved yet.
    due: Moved,
    /// Since when nothing is on its way, and no more was written.
    read: Nanos,
    wrote: Nanos,
    /// Whether the processes may run: then what is in flight is theirs.
    running: bool,
    open: Open,
}

impl Shares {
    /// Begins counting.
    pub fn open(disk: &WholeDisk, mut counter: Counter) -> Result<Self, MonitorError> {
        let counters = Counters::open(disk, "shares")?;
        let (seen, asked, due) = (counters.look()?, counter(), Moved::default());
        Ok(Self {
            counters,
            counter,
            seen,
            looked: now(),
            asked,
            due,
            read: now(),
            wrote: now(),
            running: false,
            open: Open::default(),
        })
    }

    fn collect(&mut self, events: &mut Vec<Event>) -> Result<(), MonitorError> {
        // What the disk has moved was asked for before that.
        let (look, at) = (self.counters.look()?, now());
        // What is not known yet is shared out at the next look.
        let Some(asked) = (self.counter)() else { return Ok(()) };
        let new = asked.since(self.asked.unwrap_or(asked));
        // Counting takes time.
        let told = now();
        if new.read > 0 || look.in_flight > 0 {
            self.read = told;
        }
        if new.written > 0 {
            self.wrote = told;
        }
        let on_its_way = told.since(self.read) < UNDER_WAY;
        let (own, foreign) = self.due.take(new, moved(&look).since(moved(&self.seen)), on_its_way);
        if at.since(self.wrote) > WRITTEN_BY {
            self.due.written = 0;
        }
        let count = share(requests(&look).saturating_sub(requests(&self.seen)), foreign, own + foreign);
        let work = (own > 0).then_some(OwnWork { began: self.looked, ended: at, bytes: own });
        // What is in flight may be anyone's.
        let look_at = Look { before: self.looked, at, own: work, completed: count, in_flight: None };
        self.open.tell(events, look_at);
        (self.seen, self.looked, self.asked) = (look, at, Some(asked));
        Ok(())
    }
}

fn moved(counted: &Counted) -> Moved {
    Moved { read: counted.bytes_read, written: counted.bytes_written.saturating_add(counted.bytes_discarded) }
}

/// Requests that move data.
fn requests(counted: &Counted) -> u64 {
    counted.reads + counted.writes + counted.discards
}

impl Moved {
    /// Of what the disk moved, bytes that are explained by what is due, and those that are not. What is to be read is due as long as
    /// anything may be on its way.
    fn take(&mut self, asked: Self, moved: Self, on_its_way: bool) -> (u64, u64) {
        let due = self.and(asked);
        let own = Self { read: due.read.min(moved.read), written: due.written.min(moved.written) };
        let left = due.since(own);
        *self = Self { read: if on_its_way { left.read } else { 0 }, ..left };
        (own.read + own.written, moved.read - own.read + moved.written - own.written)
    }

    /// Both together.
    pub fn and(self, other: Self) -> Self {
        let Self { read, written } = self;
        Self { read: read.saturating_add(other.read), written: written.saturating_add(other.written) }
    }

    /// What is more than before.
    pub fn since(self, before: Self) -> Self {
        let Self { read, written } = self;
        Self { read: read.saturating_sub(before.read), written: written.saturating_sub(before.written) }
    }
}

/// How many of the requests are those of `part` bytes of `all`: at least one, if there are any bytes; flushes are nobody's.
fn share(requests: u64, part: u64, all: u64) -> u64 {
    match part {
        0 => 0,
        _ => (u128::from(requests) * u128::from(part) / u128::from(all)).max(1) as u64,
    }
}

impl Monitor for Shares {
    fn name(&self) -> &'static str {
        "shares"
    }

    fn is_coarse(&self) -> bool {
        true
    }

    fn poll(&mut self, wait: Duration, events: &mut Vec<Event>) -> Result<(), MonitorError> {
        counters::poll(wait, events, |events| self.collect(events))
    }

    fn outstanding(&mut self) -> u64 {
        let in_flight = self.counters.look().map_or(0, |look| look.in_flight);
        if self.running { 0 } else { in_flight }
    }

    fn own(&mut self, own: Own) {
        self.running = own == Own::Processes;
    }

    fn lost(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_foregrounds_bytes_are_those_that_nobody_of_ours_asked_for() {
        let moved = |read, written| Moved { read, written };
        let mut due = Moved::default();
        let mut take = |asked: (u64, u64), seen: (u64, u64), on_its_way| {
            (due.take(moved(asked.0, asked.1), moved(seen.0, seen.1), on_its_way), due)
        };
        let nothing = (0, 0);
        assert_eq!(take(nothing, (4_096, 512), false).0, (0, 4_608), "all of it is the foreground's");
        assert_eq!(take((8_192, 0), (4_096, 0), true).0, (4_096, 0));
        assert_eq!(take(nothing, (8_192, 0), false).0, (4_096, 4_096), "the rest of ours came in the look after");
        assert_eq!(take((0, 1_000), nothing, false).0, (0, 0));
        // What was asked for is on its way for many looks, and comes.
        assert_eq!(take((700, 0), nothing, true).0, (0, 0));
        for _ in 0..20 {
            assert_eq!(take(nothing, nothing, true).0, (0, 0));
        }
        assert_eq!(take(nothing, (500, 0), true).0, (500, 0));
        // Nothing is on its way: what has not come never will.
        assert_eq!(take(nothing, nothing, false).0, (0, 0));
        // What was written is due for long.
        assert_eq!(take(nothing, (0, 400), false), ((400, 0), moved(0, 600)));
        assert_eq!(take(nothing, (300, 700), false).0, (600, 400));
    }

    #[test]
    fn requests_are_shared_out_by_bytes() {
        assert_eq!([share(10, 0, 50), share(10, 25, 50), share(10, 1, 50), share(0, 9, 9)], [0, 5, 1, 1]);
        assert_eq!(share(u64::MAX, u64::MAX, u64::MAX), u64::MAX);
    }
}
