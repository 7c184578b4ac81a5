//! The monitor: what anyone else does to a disk, as arrivals and completions.
//!
//! ```text
//! Monitor ── Bpf        every request, to the microsecond, on the block tracepoints
//!         ├─ Diskstats  counters polled every few milliseconds, for where BPF cannot load
//!         └─ Shares     the same, for processes that are run in the gaps
//! ```
//!
//! [`open`] tries them in this order and says why it fell back.

mod all_paths;
#[cfg(feature = "bpf")]
pub(crate) mod bpf;
mod counters;
mod diskstats;
mod joined;
mod shares;
mod unwatched;
#[cfg(feature = "bpf")]
mod works;
mod writes;

use std::io;
use std::ops::Range;
use std::time::Duration;

use idlewise::{Bytes, Nanos};

use crate::device::{Device, WholeDisk};

pub use all_paths::AllPaths;
pub use joined::Joined;
pub(crate) use shares::WRITTEN_BY;
pub use shares::{Counter, Moved};
pub(crate) use writes::Announcement;

/// What a disk is watched for, and which requests are ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To scrub: ours are the reads that are announced, which end at this byte of the disk at most.
    Scrub { end: u64 },
    /// To record: only completions are told of, and it is cheaper.
    Recording,
    /// To run a command: ours are the requests of the control group with this number, and of those below it.
    Group(u64),
    /// To see who uses the rest of a disk: what lies whole between these bytes is not looked at.
    Beside { begin: u64, end: u64 },
}

/// A request arrived or completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, on [`now`]'s clock.
    pub at: Nanos,
    /// When the request arrived. An arrival is told of later than that where the request had to wait for a place in the queue.
    pub arrival: Nanos,
    /// When the driver was given the request, where the monitor sees it and it has happened.
    pub issue: Option<Nanos>,
    /// Arrival or completion.
    pub kind: EventKind,
    /// First byte on the whole disk; zero where the monitor does not see it.
    pub offset: Bytes,
    /// Length in bytes; zero where the monitor does not see it.
    pub length: u32,
    /// Read, write, or neither (a flush or a discard).
    pub op: EventOp,
    /// Whose the request is.
    pub origin: Origin,
    /// Of a completion of the foreground: what was not told of one by one.
    pub untold: Untold,
}

impl Event {
    /// Of something of which no more is seen than when it was.
    pub(crate) fn without_place(kind: EventKind, at: Nanos, arrival: Nanos, op: EventOp, origin: Origin) -> Self {
        let (issue, offset, length, untold) = (None, Bytes(0), 0, Untold::default());
        Self { at, arrival, issue, kind, offset, length, op, origin, untold }
    }
}

/// Foreground requests that nobody asked to be told of one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Untold {
    /// So many completed before this one, since the disk was last idle or one was told of.
    pub requests: u32,
    /// Their response times together.
    pub responses: Nanos,
    /// Whether others are outstanding, where not each is told of.
    pub others: Option<bool>,
}

/// What happened to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// It was queued.
    Arrival,
    /// Its last byte was served.
    Completion,
}

/// Whose a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Anyone's.
    Foreground,
    /// Ours.
    Own,
    /// That of another background work of idlewise, which earns nothing and is not slowed.
    Another,
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventOp {
    /// Reads data.
    Read,
    /// Writes data.
    Write,
    /// Moves no data.
    Other,
}

/// Sees the requests of one disk and tells ours from the foreground's.
pub trait Monitor: Send {
    /// Its name, as in `--json`.
    fn name(&self) -> &'static str;
    /// Whether it sees arrivals late, and times roughly.
    fn is_coarse(&self) -> bool {
        false
    }
    /// Adds the events since the last call, oldest first, and waits for so long, or less where there are many. What comes does not end the
    /// wait: to be woken at that moment would delay what the foreground waits for.
    ///
    /// # Errors
    /// A line that says what failed.
    fn poll(&mut self, wait: Duration, events: &mut Vec<Event>) -> Result<(), MonitorError>;
    /// Foreground requests outstanding now, and threads that wait for a place in the queue for theirs.
    fn outstanding(&mut self) -> u64;
    /// What is done for ourselves from now on.
    fn own(&mut self, own: Own);
    /// From now on this process looks things up on the disk: each read of its own is ours, wherever it lies. A monitor that does not see
    /// whose a request is takes them for the foreground's.
    fn own_lookups(&mut self) {}
    /// Whether it is to tell of each foreground request from now on. Else it may tell only of the first that comes to an idle disk, of the
    /// last one before the disk is idle again, and of others now and then.
    fn tell_each(&mut self, _each: bool) {}
    /// Events that could not be recorded.
    fn lost(&self) -> u64;
}

/// A request of ours, as the monitor will see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Own {
    /// None is in service.
    Nothing,
    /// A read of this range of bytes on the whole disk.
    Read(Range<u64>),
    /// A command of the disk's own, which has no place and is in no counter.
    Command,
    /// Whatever those processes ask for whose requests are ours: they may run.
    Processes,
}

/// The monitor does not work.
#[derive(Debug, thiserror::Error)]
#[error("{monitor} monitor: {problem}")]
pub struct MonitorError {
    pub(crate) monitor: &'static str,
    pub(crate) problem: String,
}

/// Which monitor to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// BPF, or the coarser one where it cannot load.
    #[default]
    Best,
    /// BPF or nothing.
    Bpf,
    /// The coarser one.
    Diskstats,
}

/// A monitor, and why it is not the best one.
pub struct Opened {
    /// The monitor.
    pub monitor: Box<dyn Monitor>,
    /// Why BPF is not used, where it was tried.
    pub fallback: Option<String>,
}

/// Opens a monitor of the disk that `device` is on; of a plain file nothing is watched.
///
/// # Errors
/// [`MonitorError`] if the chosen monitor does not work, or none does.
pub fn open(device: &Device, choice: Choice) -> Result<Opened, MonitorError> {
    if device.is_file() {
        return Ok(Opened { monitor: Box::new(unwatched::Unwatched), fallback: None });
    }
    if device.whole().has_hidden_paths() {
        return Err(hidden());
    }
    if choice == Choice::Diskstats {
        return Ok(Opened { monitor: Box::new(diskstats::Diskstats::open(&device.whole())?), fallback: None });
    }
    match open_bpf(&device.whole(), Purpose::Scrub { end: device.start.0 + device.size.0 }) {
        Ok(monitor) => Ok(Opened { monitor, fallback: None }),
        Err(error) if choice == Choice::Bpf => Err(error),
        Err(error) => {
            let monitor = Box::new(diskstats::Diskstats::open(&device.whole())?);
            Ok(Opened { monitor, fallback: Some(error.problem) })
        }
    }
}

/// Why nobody can watch a disk of native multipath.
fn hidden() -> MonitorError {
    const PROBLEM: &str = "its requests go through hidden paths of NVMe multipath, which cannot be watched; start the kernel with nvme_core.multipath=N";
    MonitorError { monitor: "no", problem: PROBLEM.into() }
}

/// Opens a monitor that records: it tells of completions only, when it is asked, and costs little.
///
/// # Errors
/// [`MonitorError`] if BPF does not work.
pub fn recorder(device: &Device) -> Result<Box<dyn Monitor>, MonitorError> {
    if device.whole().has_hidden_paths() {
        return Err(hidden());
    }
    open_bpf(&device.whole(), Purpose::Recording)
}

/// Opens a monitor of a disk that tells the requests of a control group, and of those below it, from the others: by its number, which is
/// that of its folder.
///
/// # Errors
/// [`MonitorError`] if BPF does not work.
pub fn of_group(disk: &WholeDisk, group: u64) -> Result<Box<dyn Monitor>, MonitorError> {
    open_bpf(disk, Purpose::Group(group))
}

/// Opens a monitor that sees all users of a disk or volume, of whom none is ours.
///
/// # Errors
/// [`MonitorError`] if BPF does not work.
pub(crate) fn of_users(disk: &WholeDisk) -> Result<Box<dyn Monitor>, MonitorError> {
    open_bpf(disk, Purpose::Scrub { end: 0 })
}

/// The same of a disk, but for what they do within a range of its bytes.
///
/// # Errors
/// [`MonitorError`] if BPF does not work.
pub(crate) fn of_users_beside(disk: &WholeDisk, within: Range<u64>) -> Result<Box<dyn Monitor>, MonitorError> {
    open_bpf(disk, Purpose::Beside { begin: within.start, end: within.end })
}

/// Opens the coarser monitor of a disk, which takes so many bytes for those of processes whose requests are ours.
///
/// # Errors
/// [`MonitorError`] if the kernel does not count the disk's requests.
pub fn of_counted(disk: &WholeDisk, counter: Counter) -> Result<Box<dyn Monitor>, MonitorError> {
    Ok(Box::new(shares::Shares::open(disk, counter)?))
}

/// A read that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedRead {
    /// The numbers of the disk.
    pub disk: (u32, u32),
    /// Where on it.
    pub sector: u64,
    /// How long it was.
    pub bytes: u32,
}

/// Reads that failed since it was last asked.
pub type FailedReads = Box<dyn FnMut() -> io::Result<Vec<FailedRead>> + Send>;

/// Sees reads of these disks that fail from now on, whoever asks for them.
///
/// # Errors
/// If BPF cannot be used.
#[cfg(feature = "bpf")]
pub fn failed_reads(disks: &[WholeDisk]) -> Result<FailedReads, MonitorError> {
    let mut failures = bpf::failures::Failures::of(disks)?;
    Ok(Box::new(move || failures.take()))
}

/// Without BPF nobody sees them.
#[cfg(not(feature = "bpf"))]
pub fn failed_reads(_disks: &[WholeDisk]) -> Result<FailedReads, MonitorError> {
    Err(MonitorError { monitor: "bpf", problem: NO_BPF.into() })
}

#[cfg(feature = "bpf")]
fn open_bpf(disk: &WholeDisk, purpose: Purpose) -> Result<Box<dyn Monitor>, MonitorError> {
    Ok(Box::new(bpf::Bpf::open(disk, purpose)?))
}

#[cfg(not(feature = "bpf"))]
const NO_BPF: &str = "this idlewise was built without BPF";

#[cfg(not(feature = "bpf"))]
fn open_bpf(_disk: &WholeDisk, _purpose: Purpose) -> Result<Box<dyn Monitor>, MonitorError> {
    Err(MonitorError { monitor: "bpf", problem: NO_BPF.into() })
}

/// The time on the clock of all events: `CLOCK_MONOTONIC`.
pub fn now() -> Nanos {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
