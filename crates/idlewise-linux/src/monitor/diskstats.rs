//! The coarse monitor: the kernel's counters in /sys/class/block/NAME/{stat,inflight}, polled.
//!
//! It sees how many requests completed between two looks, not when, nor how long each took: arrivals are placed at the
//! look before and completions at the look after, and the requests in flight are only counted.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use idlewise::{Bytes, Nanos};

use super::{Event, EventKind, EventOp, Monitor, MonitorError, now};
use crate::device::Device;

/// Time between two looks while waiting.
const LOOK: Duration = Duration::from_millis(2);

/// The counters of one disk.
pub struct Diskstats {
    folder: PathBuf,
    /// Largest piece into which the kernel cuts our requests.
    largest_request: u64,
    completed: u64,
    looked: Nanos,
    /// Bytes of our own request, while one is out.
    own: u64,
    own_told: bool,
}

/// One look at the counters.
struct Look {
    completed: u64,
    in_flight: u64,
}

impl Diskstats {
    /// Begins counting on the disk that `device` is on.
    pub fn open(device: &Device) -> Result<Self, MonitorError> {
        let folder = device.disk_folder().to_path_buf();
        let largest_request = device.largest_request();
        let mut monitor = Self { folder, largest_request, completed: 0, looked: now(), own: 0, own_told: false };
        monitor.completed = monitor.look()?.completed;
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
        // Completed reads, writes, discards and flushes: Documentation/block/stat.rst of the kernel.
        let completed = [0, 4, 11, 15].iter().filter_map(|&field| stat.get(field)).sum();
        Ok(Look { completed, in_flight: inflight.iter().sum() })
    }

    /// Events for what happened since the last look.
    fn collect(&mut self, events: &mut Vec<Event>) -> Result<(), MonitorError> {
        let look = self.look()?;
        let (before, at) = (self.looked, now());
        if self.own > 0 {
            // Our pieces cannot be told from others before they are done: end() settles it.
            return Ok(());
        }
        let count = look.completed.saturating_sub(self.completed);
        (self.completed, self.looked) = (look.completed, at);
        let event =
            |kind, at| Event { at, arrival: before, kind, offset: Bytes(0), length: 0, op: EventOp::Other, own: false };
        events.extend((0..count).map(|_| event(EventKind::Arrival, before)));
        events.extend((0..count).map(|_| event(EventKind::Completion, at)));
        Ok(())
    }

    fn own_event(&self, kind: EventKind, arrival: Nanos) -> Event {
        Event { at: now(), arrival, kind, offset: Bytes(0), length: 0, op: EventOp::Read, own: true }
    }
}

impl Monitor for Diskstats {
    fn name(&self) -> &'static str {
        "diskstats"
    }

    fn poll(&mut self, wait: Duration, events: &mut Vec<Event>) -> Result<(), MonitorError> {
        if self.own > 0 && !self.own_told {
            self.own_told = true;
            events.push(self.own_event(EventKind::Arrival, now()));
        } else if self.own == 0 && self.own_told {
            self.own_told = false;
            events.push(self.own_event(EventKind::Completion, self.looked));
        }
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

    fn own(&mut self, range: Range<u64>) {
        let length = range.end.saturating_sub(range.start);
        if length == 0 && self.own > 0 {
            // Our pieces have completed and count as done before the next look.
            self.completed += self.own.div_ceil(self.largest_request.max(1));
        }
        self.own = length;
    }

    fn lost(&self) -> u64 {
        0
    }
}
