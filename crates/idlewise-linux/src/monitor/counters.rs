//! The kernel's counters of a disk in /sys/class/block/NAME/{stat,inflight}, and the events that a look at them is told as.

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use idlewise::Nanos;

use super::{Event, EventKind, EventOp, MonitorError, Origin, Untold};
use crate::device::WholeDisk;

/// Sectors in sysfs are of 512 bytes, whatever the disk's blocks are.
const SECTOR: u64 = 512;
/// More requests of one look are told of together.
const MOST: u64 = 1 << 10;
/// Time between two looks while waiting.
const LOOK: Duration = Duration::from_millis(2);

/// The counters of one disk.
pub struct Counters {
    folder: PathBuf,
    monitor: &'static str,
}

/// What they say: requests completed since the machine was started, and bytes moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    pub reads: u64,
    pub bytes_read: u64,
    pub writes: u64,
    pub bytes_written: u64,
    pub discards: u64,
    pub bytes_discarded: u64,
    pub flushes: u64,
    /// Requests in flight just before that.
    pub in_flight: u64,
}

/// Our own work since the look before.
#[derive(Clone, Copy, Debug)]
pub struct OwnWork {
    pub began: Nanos,
    pub ended: Nanos,
    pub bytes: u64,
}

impl Counters {
    /// Of a disk, for the monitor of this name.
    pub fn open(disk: &WholeDisk, monitor: &'static str) -> Result<Self, MonitorError> {
        let folder = disk.folder().to_path_buf();
        // dm counts whatever it says there.
        let asks = folder.join("mq").exists() || folder.join("md").exists();
        let file = folder.join("queue/iostats");
        if asks && fs::read_to_string(&file).is_ok_and(|counts| counts.trim() == "0") {
            let problem = format!("the kernel counts no requests of this disk: write 1 to {}", file.display());
            return Err(MonitorError { monitor, problem });
        }
        Ok(Self { folder, monitor })
    }

    /// What they say now.
    pub fn look(&self) -> Result<Counted, MonitorError> {
        // What is in flight no more is counted when it is asked for in this order.
        let (in_flight, stat) = (self.in_flight()?, self.numbers("stat")?);
        // Documentation/block/stat.rst of the kernel.
        let field = |index: usize| stat.get(index).copied().unwrap_or(0);
        Ok(Counted {
            reads: field(0),
            bytes_read: field(2).saturating_mul(SECTOR),
            writes: field(4),
            bytes_written: field(6).saturating_mul(SECTOR),
            discards: field(11),
            bytes_discarded: field(13).saturating_mul(SECTOR),
            flushes: field(15),
            in_flight,
        })
    }

    /// Requests in flight now.
    pub fn in_flight(&self) -> Result<u64, MonitorError> {
        Ok(self.numbers("inflight")?.iter().sum())
    }

    fn numbers(&self, name: &str) -> Result<Vec<u64>, MonitorError> {
        let path = self.folder.join(name);
        let text = fs::read_to_string(&path);
        let problem = |error| MonitorError { monitor: self.monitor, problem: format!("{}: {error}", path.display()) };
        Ok(text.map_err(problem)?.split_whitespace().filter_map(|word| word.parse().ok()).collect())
    }
}

/// What a look at the counters brought.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// The look before, and this one.
    pub before: Nanos,
    pub at: Nanos,
    /// Our own work between them, which is over.
    pub own: Option<OwnWork>,
    /// So many foreground requests have completed.
    pub completed: u64,
    /// So many are in flight, asked after what has completed; `None` where others than the foreground's may be.
    pub in_flight: Option<u64>,
}

/// Foreground requests that were told of when they came, and have not completed.
#[derive(Debug, Default)]
pub struct Open {
    arrivals: VecDeque<Nanos>,
    /// At the look before none was in flight.
    none: bool,
}

impl Open {
    /// Tells what happened between two looks. What came while we worked came in the middle of that, also where it completes at a later look:
    /// a disk that serves one request after the other serves it behind ours. What came else came in the middle between the looks.
    pub fn tell(&mut self, events: &mut Vec<Event>, look: Look) {
        let Look { before, at, own, completed, in_flight } = look;
        let event = |kind, at, arrival, origin| Event::without_place(kind, at, arrival, EventOp::Other, origin);
        let (began, ended) = own.map_or((before, at), |own| (own.began, own.ended));
        let arrival = Nanos(began.0 + ended.since(began).0 / 2);
        if let Some(OwnWork { began, bytes, .. }) = own {
            let length = u32::try_from(bytes).unwrap_or(u32::MAX);
            events.push(Event { length, ..event(EventKind::Arrival, began, began, Origin::Own) });
        }
        let known = self.arrivals.len() as u64;
        let waiting = in_flight.map_or(0, |now| now.saturating_sub(known.saturating_sub(completed)));
        let came = completed.saturating_sub(known) + waiting;
        let told = came.min(MOST);
        let untold = (came - told).min(completed);
        events.extend((0..told).map(|_| event(EventKind::Arrival, arrival, arrival, Origin::Foreground)));
        self.arrivals.extend((0..told).map(|_| arrival));
        if let Some(OwnWork { began, ended, .. }) = own {
            events.push(event(EventKind::Completion, ended, began, Origin::Own));
        }
        let none = in_flight == Some(0);
        // Some, such as flushes that the kernel makes one of, are counted when they come and not when they have gone.
        let have_gone = completed == 0 && none && self.none;
        let gone = if have_gone { self.arrivals.len() } else { (completed - untold) as usize };
        let gone = self.arrivals.drain(..gone.min(self.arrivals.len()));
        events.extend(gone.map(|arrival| event(EventKind::Completion, at, arrival, Origin::Foreground)));
        self.none = none;
        if let Some(last) = events.last_mut().filter(|_| untold > 0) {
            let requests = u32::try_from(untold).unwrap_or(u32::MAX);
            let responses = Nanos(at.since(arrival).0.saturating_mul(requests.into()));
            last.untold = Untold { requests, responses, others: None };
        }
    }
}

/// Looks again and again until there is something to tell, or for so long.
pub fn poll(
    wait: Duration,
    events: &mut Vec<Event>,
    mut collect: impl FnMut(&mut Vec<Event>) -> Result<(), MonitorError>,
) -> Result<(), MonitorError> {
    let until = Instant::now() + wait;
    loop {
        collect(events)?;
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || !events.is_empty() {
            return Ok(());
        }
        sleep(left.min(LOOK));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: OwnWork = OwnWork { began: Nanos(10), ended: Nanos(30), bytes: 4096 };

    fn told(open: &mut Open, look: Look) -> Vec<(Origin, EventKind, u64, u64)> {
        let mut events = Vec::new();
        open.tell(&mut events, look);
        events.iter().map(|event| (event.origin, event.kind, event.at.0, event.arrival.0)).collect()
    }

    use EventKind::{Arrival, Completion};

    fn ours(kind: EventKind, at: u64) -> (Origin, EventKind, u64, u64) {
        (Origin::Own, kind, at, 10)
    }

    fn foreground(kind: EventKind, at: u64, arrival: u64) -> (Origin, EventKind, u64, u64) {
        (Origin::Foreground, kind, at, arrival)
    }

    #[test]
    fn what_came_while_we_worked_waited_for_us_whenever_it_completes() {
        let look = |before, at, own, completed, in_flight| Look {
            before: Nanos(before),
            at: Nanos(at),
            own,
            completed,
            in_flight: Some(in_flight),
        };
        let mut open = Open::default();
        // One has completed beside ours, two wait behind it.
        let first = told(&mut open, look(5, 40, Some(OWN), 1, 2));
        let came = foreground(Arrival, 20, 20);
        let gone = foreground(Completion, 40, 20);
        assert_eq!(first, [ours(Arrival, 10), came, came, came, ours(Completion, 30), gone]);
        // One of them completes, and one comes and goes; then one comes, and all complete.
        assert_eq!(told(&mut open, look(40, 60, None, 1, 1)), [foreground(Completion, 60, 20)]);
        assert_eq!(told(&mut open, look(60, 80, None, 0, 2)), [foreground(Arrival, 70, 70)]);
        let last = told(&mut open, look(80, 100, None, 3, 0));
        let all = [(Arrival, 90, 90), (Completion, 100, 20), (Completion, 100, 70), (Completion, 100, 90)];
        assert_eq!(last, all.map(|(kind, at, arrival)| foreground(kind, at, arrival)));
    }

    #[test]
    fn what_goes_uncounted_keeps_no_disk_busy() {
        let look = |at: u64, in_flight| Look {
            before: Nanos(at - 10),
            at: Nanos(at),
            own: None,
            completed: 0,
            in_flight: Some(in_flight),
        };
        let mut open = Open::default();
        assert_eq!(told(&mut open, look(10, 1)).len(), 1);
        // It may be counted at the next look.
        assert_eq!(told(&mut open, look(20, 0)), []);
        assert_eq!(told(&mut open, look(30, 0)), [foreground(Completion, 30, 5)]);
        assert_eq!(told(&mut open, look(40, 0)), []);
    }

    #[test]
    fn many_requests_are_told_of_together() {
        let (mut events, mut open) = (Vec::new(), Open::default());
        let look = Look { before: Nanos(5), at: Nanos(45), own: None, completed: MOST + 7, in_flight: None };
        open.tell(&mut events, look);
        let untold = events.last().unwrap().untold;
        assert_eq!((events.len() as u64, untold.requests, untold.responses), (2 * MOST, 7, Nanos(7 * 20)));
        assert_eq!(open.arrivals, []);
    }
}
