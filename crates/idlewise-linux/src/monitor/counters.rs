//! The kernel's counters of a disk in /sys/class/block/NAME/{stat,inflight}, and the events that a look at them is told as.

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
    /// Requests in flight now.
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
        let numbers = |name: &str| -> Result<Vec<u64>, MonitorError> {
            let path = self.folder.join(name);
            let text = fs::read_to_string(&path);
            let problem =
                |error| MonitorError { monitor: self.monitor, problem: format!("{}: {error}", path.display()) };
            Ok(text.map_err(problem)?.split_whitespace().filter_map(|word| word.parse().ok()).collect())
        };
        // What is in flight no more is counted when it is asked for in this order.
        let (inflight, stat) = (numbers("inflight")?, numbers("stat")?);
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
            in_flight: inflight.iter().sum(),
        })
    }
}

/// Tells of so many foreground requests between two looks, and of our own work: in its middle they came, or else at the look before.
pub fn tell(events: &mut Vec<Event>, looked: Nanos, at: Nanos, own: Option<OwnWork>, count: u64) {
    let event = |kind, at, arrival, origin| Event::without_place(kind, at, arrival, EventOp::Other, origin);
    let arrival = own.map_or(looked, |own| Nanos(own.began.0 + own.ended.since(own.began).0 / 2));
    if let Some(OwnWork { began, bytes, .. }) = own {
        let length = u32::try_from(bytes).unwrap_or(u32::MAX);
        events.push(Event { length, ..event(EventKind::Arrival, began, began, Origin::Own) });
    }
    let told = count.min(MOST);
    events.extend((0..told).map(|_| event(EventKind::Arrival, arrival, arrival, Origin::Foreground)));
    if let Some(OwnWork { began, ended, .. }) = own {
        events.push(event(EventKind::Completion, ended, began, Origin::Own));
    }
    events.extend((0..told).map(|_| event(EventKind::Completion, at, arrival, Origin::Foreground)));
    if let Some(last) = events.last_mut().filter(|_| count > told) {
        let requests = u32::try_from(count - told).unwrap_or(u32::MAX);
        let responses = Nanos(at.since(arrival).0.saturating_mul(requests.into()));
        last.untold = Untold { requests, responses, others: None };
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

    #[test]
    fn many_requests_are_told_of_together_and_come_in_the_middle_of_ours() {
        let (mut events, own) = (Vec::new(), OwnWork { began: Nanos(10), ended: Nanos(30), bytes: 4096 });
        tell(&mut events, Nanos(5), Nanos(40), Some(own), 2);
        let told: Vec<_> = events.iter().map(|event| (event.origin, event.kind, event.at.0, event.arrival.0)).collect();
        use EventKind::{Arrival, Completion};
        let ours = |kind, at| (Origin::Own, kind, at, 10);
        let others = |kind, at| (Origin::Foreground, kind, at, 20);
        let [came, gone] = [others(Arrival, 20), others(Completion, 40)];
        assert_eq!(told, [ours(Arrival, 10), came, came, ours(Completion, 30), gone, gone]);
        assert_eq!(events[0].length, 4096);
        events.clear();
        tell(&mut events, Nanos(5), Nanos(40), None, MOST + 7);
        let untold = events.last().unwrap().untold;
        assert_eq!((events.len() as u64, untold.requests, untold.responses), (2 * MOST, 7, Nanos(7 * 35)));
    }
}
