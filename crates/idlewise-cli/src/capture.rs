//! `idlewise capture`: real I/O into a trace.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use idlewise::trace::{Columns, Provenance};
use idlewise::{Bytes, Nanos};
use idlewise_linux::capture::capture;
use idlewise_linux::monitor::recorder;
use serde::Serialize;

use crate::exit::Exit;
use crate::live::{Second, open_device, stop_flag};
use crate::output::{self, say};
use crate::progress::Progress;
use crate::trace_file::{OutArguments, TraceFile, targets_help};

/// Record the requests of a disk as a trace, each with the times of its arrival, issue and completion
///
/// Needs BPF: root, or CAP_BPF and CAP_PERFMON. The file appears when the recording ends, which it does early where the file system
/// has less than 64 MiB left.
#[derive(clap::Args)]
#[command(after_help = targets_help())]
pub struct Arguments {
    /// Block device, such as /dev/sda
    device: PathBuf,

    /// How long to record; Ctrl-C ends it earlier
    #[arg(long = "for", value_name = "TIME")]
    time: Nanos,

    #[command(flatten)]
    out: OutArguments,

    /// Print one JSON object instead of a line
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    trace: String,
    requests: u64,
    without_data: u64,
    /// Requests that had no answer when the recording ended: they are not in the trace.
    outstanding: u64,
    lost_events: u64,
}

/// With less room than this on the file system, a recording ends: more than the requests take that are held back, whatever the format.
const RESERVE: Bytes = Bytes(64 << 20);

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let target = arguments.out.target()?;
    output::check(Some(&arguments.out.out))?;
    let device = open_device(&arguments.device)?;
    let provenance = Provenance { resolution: Nanos(1), ..Provenance::default() };
    // It may be a pipe that nobody reads yet: until it is open a signal ends it at once.
    let mut file = TraceFile::create(&arguments.out.out, target, &provenance)?;
    let stop = stop_flag(Second::Ends)?;
    let mut monitor = recorder(&device)?;
    if file.device().is_some_and(|number| device.may_hold(number)) {
        let out = arguments.out.out.display();
        say!(
            "idlewise: {out}: it lies on the disk that is recorded: the trace has the writes of the recording as well"
        );
    }
    let progress = Progress::new("recording");
    let (began, mut full) = (Instant::now(), None);
    let mut write = |columns: &Columns| {
        file.write(columns).map_err(std::io::Error::other)?;
        // What is there can still be finished.
        full = file.room().filter(|room| *room < RESERVE);
        if full.is_some() {
            stop.store(true, Ordering::Relaxed);
        }
        Ok(())
    };
    let mut watch = |done| progress.share(done);
    let captured = capture(&device, monitor.as_mut(), arguments.time, &stop, &mut write, &mut watch)?;
    let early = began.elapsed() < Duration::from_nanos(arguments.time.0);
    drop(progress);
    file.finish()?;
    let report = Report {
        trace: arguments.out.out.display().to_string(),
        requests: captured.requests,
        without_data: captured.without_data,
        outstanding: captured.outstanding,
        lost_events: captured.lost_events,
    };
    if arguments.json {
        output::json(&report)?;
    } else {
        let Report { trace, requests, without_data, outstanding, lost_events } = &report;
        output::text(&format!(
            "{trace}: {requests} requests; {without_data} without data and {outstanding} without an answer left out; {lost_events} events lost\n"
        ))?;
    }
    if let Some(room) = full.filter(|_| early) {
        let trace = &report.trace;
        anyhow::bail!("{trace}: recorded until only {room} were left on its file system; what was recorded is there");
    }
    Ok(if report.requests == 0 { Exit::NothingToDo } else { Exit::Clean })
}
