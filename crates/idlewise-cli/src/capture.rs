//! `idlewise capture`: real I/O into a trace.

use std::path::PathBuf;

use idlewise::Nanos;
use idlewise::trace::{Columns, Provenance};
use idlewise_linux::capture::capture;
use idlewise_linux::monitor::recorder;
use serde::Serialize;

use crate::exit::Exit;
use crate::live::{open_device, stop_flag};
use crate::output;
use crate::progress::Progress;
use crate::trace_file::{OutArguments, TraceFile, targets_help};

/// Record the requests of a disk as a trace, each with the times of its arrival, issue and completion
///
/// Needs BPF: root, or CAP_BPF and CAP_PERFMON.
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
    lost_events: u64,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let target = arguments.out.target()?;
    output::check(Some(&arguments.out.out))?;
    let stop = stop_flag()?;
    let device = open_device(&arguments.device)?;
    let mut monitor = recorder(&device)?;
    let provenance = Provenance { resolution: Nanos(1), ..Provenance::default() };
    let mut file = TraceFile::create(&arguments.out.out, target, &provenance)?;
    let progress = Progress::new("recording");
    let mut write = |columns: &Columns| file.write(columns).map_err(std::io::Error::other);
    let mut watch = |done| progress.share(done);
    let captured = capture(&device, monitor.as_mut(), arguments.time, &stop, &mut write, &mut watch)?;
    drop(progress);
    file.finish()?;
    let report = Report {
        trace: arguments.out.out.display().to_string(),
        requests: captured.requests,
        without_data: captured.without_data,
        lost_events: captured.lost_events,
    };
    if arguments.json {
        output::json(&report)?;
    } else {
        let Report { trace, requests, without_data, lost_events } = &report;
        output::text(&format!(
            "{trace}: {requests} requests; {without_data} without data left out; {lost_events} events lost\n"
        ))?;
    }
    Ok(if report.requests == 0 { Exit::NothingToDo } else { Exit::Clean })
}
