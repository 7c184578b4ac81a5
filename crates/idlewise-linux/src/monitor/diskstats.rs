//! The coarse monitor: the kernel's counters in /sys/class/block/NAME/{stat,inflight}, polled.
//!
//! It sees how many requests completed between two looks and how many are in flight, not when they came or went: arrivals are placed in the
//! middle between the looks, or of our request if there was one, and completions at the look after.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use idlewise::Nanos;

use super::counters::{self, Counted, Counters, Look, Open, OwnWork};
use super::writes::Registration;
use super::{Event, Monitor, MonitorError, Own, now};
use crate::device::WholeDisk;

/// The counters of one disk, and what we did there.
pub struct Diskstats {
    counters: Counters,
    /// Largest piece into which the kernel cuts our requests.
    largest_request: u64,
    seen: Counted,
    looked: Nanos,
    /// Our request since the last look, and whether it is still in service.
    own: Option<OwnWork>,
    in_service: bool,
    open: Open,
    /// Files of our own that were being saved on this disk since the last look, or are.
    own_writes: Arc<Saves>,
    _registration: Registration,
}

/// Saves on one disk.
#[derive(Default)]
struct Saves {
    open: AtomicU64,
    ended: AtomicBool,
}

/// Requests completed since `before` that are not of our request of `own` bytes, cut into pieces of at most `largest`. How many pieces there
/// are is not certain, their bytes are: if no more were read, all reads are ours.
fn foreign(now: &Counted, before: &Counted, own: u64, largest: u64) -> u64 {
    let reads = now.reads.saturating_sub(before.reads);
    let foreign_reads = match now.bytes_read.saturating_sub(before.bytes_read) > own {
        true => reads.saturating_sub(own.div_ceil(largest.max(1))).max(1),
        false => 0,
    };
    foreign_reads + others(now).saturating_sub(others(before))
}

/// Requests that are no reads.
fn others(counted: &Counted) -> u64 {
    counted.writes + counted.discards + counted.flushes
}

impl Diskstats {
    /// Begins counting.
    pub fn open(disk: &WholeDisk) -> Result<Self, MonitorError> {
        let counters = Counters::open(disk, "diskstats")?;
        let largest_request = disk.largest_request();
        let own_writes = Arc::new(Saves::default());
        let told = own_writes.clone();
        let tell = move |begins: bool| match begins {
            true => drop(told.open.fetch_add(1, Ordering::Relaxed)),
            false => {
                told.open.fetch_sub(1, Ordering::Relaxed);
                told.ended.store(true, Ordering::Relaxed);
            }
        };
        let _registration = Registration::new(disk.numbers(), Box::new(tell));
        let seen = counters.look()?;
        Ok(Self {
            counters,
            largest_request,
            seen,
            looked: now(),
            own: None,
            in_service: false,
            open: Open::default(),
            own_writes,
            _registration,
        })
    }

    /// Events for what happened since the last look.
    fn collect(&mut self, events: &mut Vec<Event>) -> Result<(), MonitorError> {
        let look = self.counters.look()?;
        let (in_flight, at) = (self.counters.in_flight()?, now());
        // What is in service is told of when it is over.
        let own = self.own.take_if(|_| !self.in_service);
        let mut seen = std::mem::replace(&mut self.seen, look);
        // Which writes are whose is not in the counters.
        let saved =
            self.own_writes.ended.swap(false, Ordering::Relaxed) || self.own_writes.open.load(Ordering::Relaxed) > 0;
        if saved {
            (seen.writes, seen.discards, seen.flushes) = (look.writes, look.discards, look.flushes);
        }
        let completed = foreign(&look, &seen, own.map_or(0, |own| own.bytes), self.largest_request);
        let in_flight = (!saved && !self.in_service).then_some(in_flight);
        let before = std::mem::replace(&mut self.looked, at);
        self.open.tell(events, Look { before, at, own, completed, in_flight });
        Ok(())
    }
}

impl Monitor for Diskstats {
    fn name(&self) -> &'static str {
        "diskstats"
    }

    fn is_coarse(&self) -> bool {
        true
    }

    fn poll(&mut self, wait: Duration, events: &mut Vec<Event>) -> Result<(), MonitorError> {
        counters::poll(wait, events, |events| self.collect(events))
    }

    fn outstanding(&mut self) -> u64 {
        self.counters.look().map_or(0, |look| look.in_flight)
    }

    fn own(&mut self, own: Own) {
        let at = now();
        let begins = |bytes| Some(OwnWork { began: at, ended: at, bytes });
        match &own {
            Own::Nothing => self.own.iter_mut().filter(|_| self.in_service).for_each(|own| own.ended = at),
            Own::Read(range) => self.own = begins(range.end.saturating_sub(range.start)),
            Own::Command | Own::Processes => self.own = begins(0),
        }
        self.in_service = own != Own::Nothing;
    }

    fn lost(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_pieces_are_told_from_others_by_their_sectors() {
        let before = Counted { reads: 10, bytes_read: 512_000, writes: 5, ..Counted::default() };
        let after = |reads: u64, bytes: u64, writes: u64| Counted {
            reads: 10 + reads,
            bytes_read: 512_000 + bytes,
            writes: 5 + writes,
            ..Counted::default()
        };
        let mib = 1 << 20;
        assert_eq!(foreign(&after(2, mib, 0), &before, mib, 1280 << 10), 0, "cut smaller than expected");
        assert_eq!(foreign(&after(1, mib, 0), &before, mib, 1280 << 10), 0);
        assert_eq!(foreign(&after(2, mib + 4096, 0), &before, mib, 1280 << 10), 1);
        assert_eq!(foreign(&after(4, mib + 8192, 3), &before, mib, 512 << 10), 2 + 3);
        assert_eq!(foreign(&after(3, 3 * 4096, 1), &before, 0, 512 << 10), 4);
    }
}
