//! A replay from beginning to end: what may be done to the device, the preparations, the thread, and what was played.

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread as threads;
use std::time::Duration;

use idlewise::replay::{
    Causality, NoResponseTimes, Phase, Places, ReplayRun, Schedule, Segment, SegmentError, TooLong,
};
use idlewise::trace::{Columns, Provenance, Request, Trace};
use idlewise::{Bytes, Nanos};
use io_uring::types::Fd;
use rustix::io::Errno;

use super::player::{DEPTH, NEVER, Player, Score, Times};
use super::thread;
use crate::device::{Device, DeviceError};
use crate::memory::Buffer;

/// How often progress is told.
const TICK: Duration = Duration::from_millis(100);

/// Longest request that is played: memory for it is set aside and locked.
const LONGEST: usize = 64 << 20;

/// What to do with the writes of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Writes {
    /// Read in their place: nothing on the device changes.
    #[default]
    AsReads,
    /// Write zeros. Destroys what is on the device.
    Destroy,
}

/// What requests wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Loop {
    /// For their recorded times alone, whatever the ones before them do.
    #[default]
    Open,
    /// For the reads that they waited for in the trace, as [`Causality`] infers it.
    Closed,
}

/// How to play.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// What to do with writes.
    pub writes: Writes,
    /// What to do with places beyond the end of the device.
    pub places: Places,
    /// What requests wait for.
    pub control: Loop,
    /// Play these segments alone, each with its warm-up and cool-down; `None` for the whole trace, without.
    pub sample: Option<Sample<'a>>,
}

/// Segments to play in place of the whole trace.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// The segments, by time.
    pub segments: &'a [Segment],
    /// Size of the device's cache, which a warm-up fills.
    pub device_cache: Bytes,
}

/// The cache of a device that does not tell, and of which nobody says it: of common hard disks, a small one.
pub const DEVICE_CACHE: Bytes = Bytes(32 << 20);

/// A trace as it was played.
pub struct Played {
    /// The requests measured, those that were issued. They arrive when they were due, since the first of them was, but none
    /// before the one ahead of it; were queued as long as they were issued late; and have a response time where the device
    /// answered.
    pub trace: Trace,
    /// The weight of each segment, and how many of the requests, in their order, are its own.
    pub segments: Vec<(f64, usize)>,
    /// Requests issued for warm-up.
    pub warm_up: u64,
    /// Requests issued for cool-down.
    pub cool_down: u64,
    /// Requests of all kinds that failed; they have no response time.
    pub failed: u64,
    /// Requests of all kinds that the device had not answered when it was to stop.
    pub unanswered: u64,
    /// It ended early, as the device answered nothing for [`PATIENCE`](super::PATIENCE).
    pub hangs: bool,
    /// What the player was denied that would help it to be on time.
    pub denied: Vec<String>,
}

impl Played {
    /// Of every trace that was played.
    pub fn provenance() -> Provenance {
        Provenance { resolution: Nanos(1), was_sorted: true, ..Provenance::default() }
    }
}

/// A trace cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The device cannot be used.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Writing to a device in use would destroy it.
    #[error("{0}: in use (mounted, or part of something): writes are refused")]
    InUse(String),
    /// A device that is set read-only takes no writes; the kernel tells only when they come.
    #[error("{0}: read-only: writes are refused")]
    ReadOnly(String),
    /// The system refused.
    #[error("{path}: {problem}")]
    Io {
        /// The device.
        path: String,
        /// What it said.
        problem: String,
    },
    /// A request is as long as the device.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// A request takes more memory than is set aside.
    #[error("a request of {0}: at most 64 MiB are played at once")]
    Long(Bytes),
    /// A closed loop needs response times.
    #[error(transparent)]
    NoResponseTimes(#[from] NoResponseTimes),
    /// The segments cannot be played.
    #[error(transparent)]
    Segment(#[from] SegmentError),
}

/// Plays `trace` on `device`, all volumes as one. Stops early when `stop` is set. `watch` is told the share done.
///
/// # Errors
/// [`ReplayError`] if the device or the trace cannot be used so.
pub fn replay(
    mut trace: Trace,
    device: &Device,
    options: &Options,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(f64),
) -> Result<Played, ReplayError> {
    let io_error = |problem: String| ReplayError::Io { path: device.path.display().to_string(), problem };
    let writable = match options.writes {
        Writes::AsReads => None,
        Writes::Destroy => Some(open_for_writing(device)?),
    };
    options.places.fit(&mut trace.columns, device.size, device.block)?;
    let requests = &trace.columns;
    let causality = match options.control {
        Loop::Open => Causality::open_loop(requests.len()),
        Loop::Closed => Causality::inferred(requests)?,
    };
    let whole = [Segment::whole(requests.len())];
    let everything = Sample { segments: &whole, device_cache: Bytes(0) };
    let Sample { segments, device_cache } = options.sample.unwrap_or(everything);
    let runs = ReplayRun::of_segments(requests, segments, device_cache)?;
    let on_time = runs.iter().flat_map(ReplayRun::stretches).filter(|(on_time, _)| *on_time);
    let mut schedules: Vec<Schedule> =
        on_time.map(|(_, stretch)| Schedule::new(requests, &causality, stretch)).collect();

    let longest = requests.length.iter().max().map_or(0, |&length| length as usize);
    if longest > LONGEST {
        return Err(ReplayError::Long(Bytes(longest as u64)));
    }
    // Freed only when it is certain that nothing is in flight: after a panic of the player it is not.
    let buffers = ManuallyDrop::new((in_place(longest), writable.as_ref().map(|_| in_place(longest))));
    let (sink, zeros) = (&buffers.0, buffers.1.as_ref());
    let done = AtomicUsize::new(0);
    let score = Score {
        requests,
        runs: &runs,
        device: Fd(writable.as_ref().unwrap_or(&device.file).as_raw_fd()),
        end: device.size,
        sink,
        zeros,
        warm_up_depth: device.queue_depth().clamp(1, DEPTH),
        stop,
        done: &done,
    };
    let played =
        on_a_thread(score, &mut schedules, &mut || watch(share(requests, &runs, done.load(Ordering::Relaxed))));
    let (denied, times, problem) = played.map_err(|error| io_error(error.to_string()))?;
    if times.unanswered == 0 {
        drop(ManuallyDrop::into_inner(buffers));
    }
    problem.map_err(|error| io_error(error.to_string()))?;
    Ok(Played { denied, ..as_played(requests, segments, &runs, &schedules, &times) })
}

/// Exclusive: the kernel refuses while the device is mounted or held by anything else.
fn open_for_writing(device: &Device) -> Result<File, ReplayError> {
    let path = device.path.display().to_string();
    if device.read_only() {
        return Err(ReplayError::ReadOnly(path));
    }
    device.open_exclusively(true).map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::BUSY) => ReplayError::InUse(path),
        _ => ReplayError::Io { path, problem: error.to_string() },
    })
}

/// Zeros for which the kernel has set memory aside, so that no first use is slow.
fn in_place(length: usize) -> Buffer {
    let mut buffer = Buffer::new(length);
    buffer.bytes(length).fill(0);
    buffer
}

type OnAThread = (Vec<String>, Times, io::Result<()>);

/// Plays on a thread of its own, while this one calls `watch` now and then.
fn on_a_thread(score: Score, schedules: &mut [Schedule], watch: &mut dyn FnMut()) -> io::Result<OnAThread> {
    threads::scope(|scope| {
        let (send, receive) = mpsc::channel();
        let player = threads::Builder::new().spawn_scoped(scope, move || {
            let mut prepared = thread::prepare();
            let ring = |error| io::Error::other(format!("io_uring: {error}"));
            let played = Player::new(score, &mut prepared).map_err(ring).map(|player| player.play(schedules));
            let denied = std::mem::take(&mut prepared.denied);
            drop(prepared);
            let _ = send.send(played.map(|(times, problem)| (denied, times, problem)));
        });
        let player = player.map_err(|error| io::Error::other(format!("a thread to play by: {error}")))?;
        loop {
            watch();
            match receive.recv_timeout(TICK) {
                // Its end is not waited for: the kernel keeps a thread until all of its requests are answered.
                Ok(played) => return played,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => match player.join() {
                    Err(panic) => std::panic::resume_unwind(panic),
                    Ok(()) => return Err(io::Error::other("the player ended before the replay did")),
                },
            }
        }
    })
}

/// The share of the time on time that the first `done` requests take.
fn share(requests: &Columns, runs: &[ReplayRun], mut done: usize) -> f64 {
    let (mut past, mut all) = (Nanos::ZERO, Nanos::ZERO);
    for (on_time, stretch) in runs.iter().flat_map(ReplayRun::stretches) {
        let time = |count: usize| match count.checked_sub(1) {
            Some(last) if on_time => requests.arrival[stretch.start + last].since(requests.arrival[stretch.start]).0,
            _ => 0,
        };
        past.0 += time(done.min(stretch.len()));
        all.0 += time(stretch.len());
        done = done.saturating_sub(stretch.len());
    }
    past.0 as f64 / all.0.max(1) as f64
}

/// What was played, out of what was to be.
fn as_played(
    requests: &Columns,
    segments: &[Segment],
    runs: &[ReplayRun],
    schedules: &[Schedule],
    times: &Times,
) -> Played {
    let issued = |index: &usize| times.issued[*index] != NEVER;
    let mut played = Played {
        trace: Trace { provenance: Played::provenance(), columns: requests.with_volumes_of() },
        segments: segments.iter().map(|segment| (segment.weight, 0)).collect(),
        warm_up: 0,
        cool_down: 0,
        failed: times.failed,
        unanswered: times.unanswered.into(),
        hangs: times.hangs,
        denied: Vec::new(),
    };
    let (mut origin, mut last) = (None, Nanos::ZERO);
    for part in runs.iter().flat_map(|run| &run.parts) {
        let behind = schedules.partition_point(|schedule| schedule.stretch().end <= part.requests.start);
        let schedule = schedules.get(behind).filter(|schedule| schedule.stretch().contains(&part.requests.start));
        match (part.phase, schedule) {
            (Phase::Measured(number), Some(schedule)) => {
                for index in part.requests.clone().filter(issued) {
                    let due = schedule.due(index).max(last);
                    last = due;
                    let arrival = due.since(*origin.get_or_insert(due));
                    let queued = Some(times.issued[index].since(due));
                    let response = Some(times.ended[index]).filter(|end| *end != NEVER).map(|end| end.since(due));
                    let request = Request { arrival, queued, response, ..requests.request(index) };
                    played.trace.columns.push(request);
                    played.segments[number].1 += 1;
                }
            }
            (Phase::CoolDown, _) => played.cool_down += part.requests.clone().filter(issued).count() as u64,
            _ => played.warm_up += part.requests.clone().filter(issued).count() as u64,
        }
    }
    played
}
