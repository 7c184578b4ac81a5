//! The monitor as a recorder: real I/O into a trace.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use idlewise::Nanos;
use idlewise::trace::{Columns, Op, Request, Trace};

use crate::device::Device;
use crate::monitor::{Event, EventKind, EventOp, Monitor, MonitorError, now};

/// How often the wait looks up.
const TICK: Duration = Duration::from_millis(100);

/// What was recorded.
pub struct Captured {
    /// The requests that completed, with their response times.
    pub trace: Trace,
    /// Requests that move no data, such as flushes: they are not in the trace.
    pub without_data: u64,
    /// Events that the monitor lost.
    pub lost_events: u64,
}

/// Records the requests of the disk that `device` is on for `time`, or until `stop`. `watch` is told the share done and
/// the requests so far.
///
/// # Errors
/// If the monitor fails.
pub fn capture(
    device: &Device,
    monitor: &mut dyn Monitor,
    time: Nanos,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(f64, usize),
) -> Result<Captured, MonitorError> {
    let mut columns = Columns::new(true);
    columns.volume_id(&volume_name(device.disk_folder()));
    let (mut events, mut without_data) = (Vec::new(), 0);
    let began = now();
    loop {
        let elapsed = now().since(began);
        if elapsed >= time || stop.load(Ordering::Relaxed) {
            break;
        }
        watch(elapsed.0 as f64 / time.0.max(1) as f64, columns.arrival.len());
        events.clear();
        monitor.poll(TICK.min(Duration::from_nanos(time.since(elapsed).0)), &mut events)?;
        for event in events.iter().filter(|event| event.kind == EventKind::Completion && !event.own) {
            match request(event) {
                Some(request) => columns.push(request),
                None => without_data += 1,
            }
        }
    }
    let trace = Trace::from_columns("msr", Nanos(100), columns);
    Ok(Captured { trace, without_data, lost_events: monitor.lost() })
}

fn request(event: &Event) -> Option<Request> {
    let op = match event.op {
        EventOp::Read => Op::Read,
        EventOp::Write => Op::Write,
        EventOp::Other => return None,
    };
    let (arrival, response) = (event.arrival, Some(event.at.since(event.arrival)));
    Some(Request { arrival, offset: event.offset, length: event.length, op, volume: 0, response })
}

/// `sda` as the trace formats like it: a host and a number.
fn volume_name(disk: &Path) -> String {
    format!("{}_0", disk.file_name().unwrap_or_default().to_string_lossy())
}
