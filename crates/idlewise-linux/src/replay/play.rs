//! The player: one thread, one io_uring, absolute deadlines.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use idlewise::Nanos;
use idlewise::trace::{Op, Provenance, Request, Trace};
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::device::{Device, DeviceError};
use crate::memory::Buffer;
use crate::monitor::now;

/// Requests in flight at most.
const DEPTH: u32 = 1024;
/// The last bit of a wait is spent awake: a sleeper wakes up late.
const AWAKE: Nanos = Nanos(60_000);
/// How often a wait looks up.
const TICK: Nanos = Nanos::from_millis(100);

/// What to do with the writes of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Writes {
    /// Read in their place: nothing on the device changes.
    #[default]
    AsReads,
    /// Write zeros. Destroys what is on the device.
    Destroy,
}

/// How to play.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// What to do with writes.
    pub writes: Writes,
    /// Play only the requests that arrive in this first part of the trace.
    pub first: Option<Nanos>,
}

/// A trace as it was played.
pub struct Played {
    /// The requests played, with the response times that the device gave.
    pub trace: Trace,
    /// When each was issued, on the trace's clock.
    pub issued: Vec<Nanos>,
    /// Requests that failed; their response times are counted all the same.
    pub failed: u64,
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
    /// The system refused.
    #[error("{path}: {problem}")]
    Io {
        /// The device.
        path: String,
        /// What it said.
        problem: String,
    },
    /// A request is as long as the device.
    #[error("a request of {length} bytes does not fit on a device of {device}")]
    TooLong {
        /// Length of the request.
        length: u32,
        /// Size of the device.
        device: idlewise::Bytes,
    },
}

/// Plays `trace` on `device`. Places beyond its end are wrapped around; all are rounded to its blocks. Stops early when
/// `stop` is set. `watch` is told the share done.
///
/// # Errors
/// [`ReplayError`] if the device cannot be used so.
pub fn replay(
    trace: &Trace,
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
    let file = writable.as_ref().unwrap_or(&device.file);
    let requests = fitted(trace, device, options)?;
    let longest = requests.iter().map(|request| request.length).max().unwrap_or(0);
    let memory = Buffer::new(longest as usize);
    let ring = IoUring::new(DEPTH).map_err(|error| io_error(format!("io_uring: {error}")))?;
    let mut player = Player {
        ring,
        fd: Fd(file.as_raw_fd()),
        memory: &memory,
        issued: Vec::with_capacity(requests.len()),
        responses: vec![Nanos::ZERO; requests.len()],
        in_flight: 0,
        failed: 0,
        began: Nanos::ZERO,
    };
    let played = player.play(&requests, options.writes, stop, watch).map_err(|error| io_error(error.to_string()));
    if player.in_flight > 0 {
        // The kernel may still write into it.
        std::mem::forget(memory);
        return Err(played.err().unwrap_or_else(|| io_error("requests never came back".into())));
    }
    played?;
    let Player { issued, responses, failed, .. } = player;
    Ok(Played { trace: as_played(trace, &requests[..issued.len()], &responses), issued, failed })
}

/// Exclusive: the kernel refuses while the device is mounted or held by anything else.
fn open_for_writing(device: &Device) -> Result<File, ReplayError> {
    let path = device.path.display().to_string();
    let flags = OFlags::DIRECT | OFlags::EXCL;
    OpenOptions::new().read(true).write(true).custom_flags(flags.bits() as i32).open(&device.path).map_err(|error| {
        match Errno::from_io_error(&error) {
            Some(Errno::BUSY) => ReplayError::InUse(path),
            _ => ReplayError::Io { path, problem: error.to_string() },
        }
    })
}

/// The requests as they will be played: whole blocks, on the device.
fn fitted(trace: &Trace, device: &Device, options: &Options) -> Result<Vec<Request>, ReplayError> {
    let block = u64::from(device.block);
    let size = device.size.0 / block * block;
    let first = options.first.unwrap_or(Nanos(u64::MAX));
    let fit = |mut request: Request| {
        let length = u64::from(request.length).next_multiple_of(block).max(block);
        if length > size || length > u64::from(u32::MAX) {
            return Err(ReplayError::TooLong { length: request.length, device: device.size });
        }
        request.length = length as u32;
        request.offset.0 = request.offset.0 / block * block % (size - length + block);
        Ok(request)
    };
    trace.requests().take_while(|request| request.arrival < first).map(fit).collect()
}

fn as_played(trace: &Trace, requests: &[Request], responses: &[Nanos]) -> Trace {
    let mut columns = trace.columns.with_volumes_of();
    for (request, response) in requests.iter().zip(responses) {
        columns.push(Request { queued: None, response: Some(*response), ..*request });
    }
    Trace { provenance: Provenance { resolution: Nanos(1), was_sorted: true, ..Provenance::default() }, columns }
}

struct Player<'a> {
    ring: IoUring,
    fd: Fd,
    memory: &'a Buffer,
    issued: Vec<Nanos>,
    responses: Vec<Nanos>,
    in_flight: u32,
    failed: u64,
    began: Nanos,
}

impl Player<'_> {
    fn play(
        &mut self,
        requests: &[Request],
        writes: Writes,
        stop: &AtomicBool,
        watch: &mut dyn FnMut(f64),
    ) -> std::io::Result<()> {
        let span = requests.last().map_or(1, |request| request.arrival.0.max(1));
        // Begin a little later, so that the first request is on time as well.
        self.began = Nanos(now().0 + AWAKE.0);
        for (index, request) in requests.iter().enumerate() {
            let due = Nanos(self.began.0 + request.arrival.0);
            while now().0 + AWAKE.0 < due.0 || self.in_flight == DEPTH {
                if stop.load(Ordering::Relaxed) {
                    return self.drain();
                }
                let left = due.since(Nanos(now().0 + AWAKE.0));
                self.reap(if left == Nanos::ZERO { TICK } else { left.min(TICK) })?;
                watch(now().since(self.began).0 as f64 / span as f64);
            }
            while now() < due {
                std::hint::spin_loop();
            }
            self.issue(index, request, writes)?;
        }
        self.drain()
    }

    fn issue(&mut self, index: usize, request: &Request, writes: Writes) -> std::io::Result<()> {
        let (buffer, length, offset) = (self.memory.as_ptr(), request.length, request.offset.0);
        let entry = if request.op == Op::Write && writes == Writes::Destroy {
            opcode::Write::new(self.fd, buffer, length).offset(offset).build()
        } else {
            opcode::Read::new(self.fd, buffer, length).offset(offset).build()
        };
        // SAFETY: the buffer is as long as the longest request and lives until none is in flight. Requests share it:
        // nobody looks at what is read, and what is written does not matter.
        unsafe { self.ring.submission().push(&entry.user_data(index as u64)) }.map_err(std::io::Error::other)?;
        self.issued.push(now().since(self.began));
        self.ring.submit()?;
        self.in_flight += 1;
        Ok(())
    }

    /// Takes in completions, waiting up to `wait` for one.
    fn reap(&mut self, wait: Nanos) -> std::io::Result<()> {
        let timeout = Timespec::from(Duration::from_nanos(wait.0));
        match self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&timeout)) {
            Err(error) if !matches!(Errno::from_io_error(&error), Some(Errno::TIME | Errno::INTR)) => {
                return Err(error);
            }
            _ => {}
        }
        let at = now().since(self.began);
        for entry in self.ring.completion() {
            let index = entry.user_data() as usize;
            self.responses[index] = at.since(self.issued[index]);
            self.failed += u64::from(entry.result() < 0);
            self.in_flight -= 1;
        }
        Ok(())
    }

    fn drain(&mut self) -> std::io::Result<()> {
        const PATIENCE: Nanos = Nanos::from_secs(60);
        let until = Nanos(now().0 + PATIENCE.0);
        while self.in_flight > 0 && now() < until {
            self.reap(TICK)?;
        }
        Ok(())
    }
}
