//! The monitor as a recorder: real I/O into a trace.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use idlewise::Nanos;
use idlewise::trace::{Columns, Op, Request};

use crate::device::Device;
use crate::monitor::{Event, EventKind, EventOp, Monitor, MonitorError, Origin, now};

/// How often the recorder wakes up: seldom, to cost little, and far more often than the monitor's buffer is full.
const TICK: Duration = Duration::from_millis(100);
/// A request that takes longer than this may be recorded out of order.
const SETTLED: Nanos = Nanos::from_secs(2);
/// Requests given at a time.
const BATCH: usize = 1 << 17;

/// What was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// Requests recorded.
    pub requests: u64,
    /// Requests that move no data, such as flushes: they are not in the trace.
    pub without_data: u64,
    /// Requests that were outstanding at the end: they are not in the trace.
    pub outstanding: u64,
    /// Events that the monitor lost.
    pub lost_events: u64,
}

/// Why a recording ended early.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The monitor fails.
    #[error(transparent)]
    Monitor(#[from] MonitorError),
    /// The requests cannot be written.
    #[error(transparent)]
    Write(#[from] std::io::Error),
}

/// Records the requests of the disk that `device` is on for `time`, or until `stop`. `write` is given them as they settle,
/// in order of arrival, the time counted from the start of the recording; `watch` is told the share done.
///
/// # Errors
/// [`CaptureError`].
pub fn capture(
    device: &Device,
    monitor: &mut dyn Monitor,
    time: Nanos,
    stop: &AtomicBool,
    write: &mut dyn FnMut(&Columns) -> std::io::Result<()>,
    watch: &mut dyn FnMut(f64),
) -> Result<Captured, CaptureError> {
    let mut captured = Captured::default();
    let mut held = Columns::default();
    held.volume_id(&volume_name(device.disk_folder()));
    let mut events = Vec::new();
    let began = now();
    loop {
        let elapsed = now().since(began);
        if elapsed >= time || stop.load(Ordering::Relaxed) {
            break;
        }
        watch(elapsed.0 as f64 / time.0.max(1) as f64);
        std::thread::sleep(TICK.min(Duration::from_nanos(time.since(elapsed).0)));
        events.clear();
        monitor.poll(Duration::ZERO, &mut events)?;
        for event in
            events.iter().filter(|event| event.kind == EventKind::Completion && event.origin == Origin::Foreground)
        {
            match request(event, began) {
                Some(request) => held.push(request),
                None => captured.without_data += 1,
            }
        }
        if held.len() >= BATCH {
            held.sort_by_arrival();
            let settled = now().since(began).since(SETTLED);
            let mut rest = held.split_off(held.arrival.partition_point(|&arrival| arrival < settled));
            rest.reserve(2 * BATCH);
            captured.requests += held.len() as u64;
            write(&std::mem::replace(&mut held, rest))?;
        }
    }
    held.sort_by_arrival();
    captured.requests += held.len() as u64;
    write(&held)?;
    captured.outstanding = monitor.outstanding();
    captured.lost_events = monitor.lost();
    Ok(captured)
}

fn request(event: &Event, began: Nanos) -> Option<Request> {
    let op = match event.op {
        EventOp::Read => Op::Read,
        EventOp::Write => Op::Write,
        EventOp::Other => return None,
    };
    let (queued, response) = (event.issue.map(|at| at.since(event.arrival)), Some(event.at.since(event.arrival)));
    let arrival = event.arrival.since(began);
    Some(Request { arrival, offset: event.offset, length: event.length, op, queued, response, ..Request::default() })
}

/// `sda` as the trace formats like it: a host and a number.
fn volume_name(disk: &Path) -> String {
    format!("{}_0", disk.file_name().unwrap_or_default().to_string_lossy())
}
