//! The coarse monitor: the kernel's counters in /sys/class/block/NAME/{stat,inflight}, polled.
//!
//! It sees how many requests completed between two looks, not when, nor how long each took: arrivals are placed at the
//! look before, or in the middle of our request if there was one, and completions at the look after.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use idlewise::{Bytes, Nanos};

use super::writes::Registration;
use super::{Event, EventKind, EventOp, Monitor, MonitorError, Own, Untold, now};
use crate::device::Device;

const SECTOR: u64 = 512;
/// More requests of one look are told of together.
const MOST: u64 = 1 << 10;
/// Time between two looks while waiting.
const LOOK: Duration = Duration::from_millis(2);

/// The counters of one disk.
pub struct Diskstats {
    folder: PathBuf,
    /// Largest piece into which the kernel cuts our requests.
    largest_request: u64,
    seen: Look,
    looked: Nanos,
    /// Our request since the last look: when it began, when it ended, its bytes.
    own: Option<(Nanos, Nanos, u64)>,
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

/// One look at the counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Look {
    reads: u64,
    sectors_read: u64,
    others: u64,
    in_flight: u64,
}

impl Look {
    /// Requests completed since `before` that are not of our request of `own` bytes, cut into pieces of at most `largest`.
    /// How many pieces there are is not certain, their sectors are: if no more were read, all reads are ours.
    fn foreign(&self, before: &Self, own: u64, largest: u64) -> u64 {
        let reads = self.reads.saturating_sub(before.reads);
        let sectors = self.sectors_read.saturating_sub(before.sectors_read);
        let foreign_reads = match sectors > own / SECTOR {
            true => reads.saturating_sub(own.div_ceil(largest.max(1))).max(1),
            false => 0,
        };
        foreign_reads + self.others.saturating_sub(before.others)
    }
}

impl Diskstats {
    /// Begins counting on the disk that `device` is on.
    pub fn open(device: &Device) -> Result<Self, MonitorError> {
        let folder = device.disk_folder().to_path_buf();
        // dm counts whatever it says there.
        let asks = folder.join("mq").exists() || folder.join("md").exists();
        if asks && fs::read_to_string(folder.join("queue/iostats")).is_ok_and(|counts| counts.trim() == "0") {
            let file = folder.join("queue/iostats");
            let problem = format!("the kernel counts no requests of this disk: write 1 to {}", file.display());
            return Err(MonitorError { monitor: "diskstats", problem });
        }
        let largest_request = device.largest_request();
        let own_writes = Arc::new(Saves::default());
        let told = own_writes.clone();
        let tell = move |begins: bool| match begins {
            true => drop(told.open.fetch_add(1, Ordering::Relaxed)),
            false => {
                told.open.fetch_sub(1, Ordering::Relaxed);
                told.ended.store(true, Ordering::Relaxed);
            }
        };
        let _registration = Registration::new(device.disk_numbers(), Box::new(tell));
        let seen = Look::default();
        let mut monitor = Self { folder, largest_request, seen, looked: now(), own: None, own_writes, _registration };
        monitor.seen = monitor.look()?;
        Ok(monitor)
    }

    fn look(&self) -> Result<Look, MonitorError> {
        let error = |problem| MonitorError { monitor: "diskstats", problem };
        let numbers = |name: &str| -> Result<Vec<u64>, MonitorError> {
            let path = self.folder.join(name);
            let text = fs::read_to_string(&path).map_err(|e| error(format!("{}: {e}", path.display())))?;
            Ok(text.split_whitespace().filter_map(|word| word.parse().ok()).collect())
        };
        let (stat, inflight) = (numbers("stat")?, numbers("inflight")?);
        // Fields of `stat`: Documentation/block/stat.rst of the kernel. The others are writes, discards and flushes.
        let field = |index: usize| stat.get(index).copied().unwrap_or(0);
        let others = field(4) + field(11) + field(15);
        Ok(Look { reads: field(0), sectors_read: field(2), others, in_flight: inflight.iter().sum() })
    }

    /// Events for what happened since the last look.
    fn collect(&mut self, events: &mut Vec<Event>) -> Result<(), MonitorError> {
        let (look, at) = (self.look()?, now());
        // Which writes are whose is not in the counters.
        if self.own_writes.ended.swap(false, Ordering::Relaxed) || self.own_writes.open.load(Ordering::Relaxed) > 0 {
            self.seen.others = look.others;
        }
        let (began, ended, bytes) = self.own.unwrap_or((self.looked, at, 0));
        let count = look.foreign(&self.seen, bytes, self.largest_request);
        let arrival = if self.own.is_some() { Nanos(began.0 + ended.since(began).0 / 2) } else { self.looked };
        let event = |kind, at, arrival, own| Event {
            at,
            arrival,
            issue: None,
            kind,
            offset: Bytes(0),
            length: 0,
            op: EventOp::Other,
            own,
            untold: Untold::default(),
        };
        if self.own.is_some() {
            events.push(event(EventKind::Arrival, began, began, true));
        }
        let told = count.min(MOST);
        events.extend((0..told).map(|_| event(EventKind::Arrival, arrival, arrival, false)));
        if self.own.take().is_some() {
            events.push(event(EventKind::Completion, ended, began, true));
        }
        events.extend((0..told).map(|_| event(EventKind::Completion, at, arrival, false)));
        if let Some(last) = events.last_mut().filter(|_| count > told) {
            let requests = u32::try_from(count - told).unwrap_or(u32::MAX);
            let responses = Nanos(at.since(arrival).0.saturating_mul(requests.into()));
            last.untold = Untold { requests, responses, others: None };
        }
        (self.seen, self.looked) = (look, at);
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
        let until = Instant::now() + wait;
        loop {
            self.collect(events)?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || !events.is_empty() {
                return Ok(());
            }
            sleep(left.min(LOOK));
        }
    }

    fn outstanding(&mut self) -> u64 {
        self.look().map_or(0, |look| look.in_flight)
    }

    fn own(&mut self, own: Own) {
        match (own, &mut self.own) {
            (Own::Nothing, Some((_, ended, _))) => *ended = now(),
            (Own::Nothing, None) => {}
            (Own::Read(range), own) => *own = Some((now(), now(), range.end.saturating_sub(range.start))),
            (Own::Command, own) => *own = Some((now(), now(), 0)),
        }
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
        let before = Look { reads: 10, sectors_read: 1_000, others: 5, in_flight: 0 };
        let after = |reads: u64, bytes: u64, others: u64| Look {
            reads: 10 + reads,
            sectors_read: 1_000 + bytes / SECTOR,
            others: 5 + others,
            in_flight: 0,
        };
        let mib = 1 << 20;
        assert_eq!(after(2, mib, 0).foreign(&before, mib, 1280 << 10), 0, "cut smaller than expected");
        assert_eq!(after(1, mib, 0).foreign(&before, mib, 1280 << 10), 0);
        assert_eq!(after(2, mib + 4096, 0).foreign(&before, mib, 1280 << 10), 1);
        assert_eq!(after(4, mib + 8192, 3).foreign(&before, mib, 512 << 10), 2 + 3);
        assert_eq!(after(3, 3 * 4096, 1).foreign(&before, 0, 512 << 10), 4);
    }
}
