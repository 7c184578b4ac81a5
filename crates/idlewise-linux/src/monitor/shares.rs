//! The coarse monitor for processes that are run in the gaps: of what the kernel counts of a disk, the foreground's is what these processes
//! did not ask for.
//!
//! What a process reads is counted when it asks for it, what it writes when it fills a page: the kernel writes that one some seconds later.
//! The processes' bytes are not counted disk by disk, so each disk may have had all of them.

use std::time::Duration;

use idlewise::Nanos;

use super::counters::{self, Counted, Counters, OwnWork};
use super::{Event, Monitor, MonitorError, Own, now};
use crate::device::WholeDisk;

/// The kernel writes a page so long after it was filled, with its usual settings (dirty_expire_centisecs and the interval of its looks).
pub const WRITTEN_BY: Nanos = Nanos::from_secs(35);

/// Bytes that processes have asked their disks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Read.
    pub read: u64,
    /// Written.
    pub written: u64,
}

/// Tells how many those are so far.
pub type Counter = Box<dyn FnMut() -> Moved + Send>;

/// The counters of one disk, and what the processes asked for.
pub struct Shares {
    counters: Counters,
    counter: Counter,
    seen: Counted,
    looked: Nanos,
    asked: Moved,
    /// Bytes that the processes asked for and that the disk has not moved yet.
    due: Moved,
    /// Since when no more was written.
    wrote: Nanos,
    /// Whether the processes may run: then what is in flight is theirs.
    running: bool,
}

impl Shares {
    /// Begins counting.
    pub fn open(disk: &WholeDisk, mut counter: Counter) -> Result<Self, MonitorError> {
        let counters = Counters::open(disk, "shares")?;
        let (seen, asked, due) = (counters.look()?, counter(), Moved::default());
        Ok(Self { counters, counter, seen, looked: now(), asked, due, wrote: now(), running: false })
    }

    fn collect(&mut self, events: &mut Vec<Event>) -> Result<(), MonitorError> {
        // What was asked for before the disk's counters are looked at can be in them.
        let (asked, look, at) = ((self.counter)(), self.counters.look()?, now());
        if asked.written > self.asked.written {
            self.wrote = at;
        }
        let (own, foreign) = self.due.take(since(asked, self.asked), since(moved(&look), moved(&self.seen)));
        if at.since(self.wrote) > WRITTEN_BY {
            self.due.written = 0;
        }
        let count = share(requests(&look).saturating_sub(requests(&self.seen)), foreign, own + foreign);
        let work = (own > 0).then_some(OwnWork { began: self.looked, ended: at, bytes: own });
        counters::tell(events, self.looked, at, work, count);
        (self.seen, self.looked, self.asked) = (look, at, asked);
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
    /// Of what the disk moved, bytes that are explained by what is due, and those that are not. What is read is moved at once, or in the
    /// look after.
    fn take(&mut self, asked: Self, moved: Self) -> (u64, u64) {
        let reads = asked.read + self.read;
        let writes = asked.written + self.written;
        let own = Self { read: reads.min(moved.read), written: writes.min(moved.written) };
        *self = Self { read: asked.read.min(reads - own.read), written: writes - own.written };
        (own.read + own.written, moved.read - own.read + moved.written - own.written)
    }
}

fn since(now: Moved, before: Moved) -> Moved {
    let Moved { read, written } = now;
    Moved { read: read.saturating_sub(before.read), written: written.saturating_sub(before.written) }
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
        assert_eq!(due.take(moved(0, 0), moved(4_096, 512)), (0, 4_608), "all of it is the foreground's");
        assert_eq!(due.take(moved(8_192, 0), moved(4_096, 0)), (4_096, 0));
        assert_eq!(due.take(moved(0, 0), moved(8_192, 0)), (4_096, 4_096), "the rest of ours came in the look after");
        assert_eq!(due.take(moved(0, 1_000), moved(0, 0)), (0, 0));
        assert_eq!(due.take(moved(500, 0), moved(0, 0)), (0, 0));
        // What was written is due for long, what was read is not.
        assert_eq!(due.take(moved(0, 0), moved(0, 400)), (400, 0));
        assert_eq!(due, moved(0, 600));
        assert_eq!(due.take(moved(0, 0), moved(300, 700)), (600, 400));
    }

    #[test]
    fn requests_are_shared_out_by_bytes() {
        assert_eq!([share(10, 0, 50), share(10, 25, 50), share(10, 1, 50), share(0, 9, 9)], [0, 5, 1, 1]);
        assert_eq!(share(u64::MAX, u64::MAX, u64::MAX), u64::MAX);
    }
}
