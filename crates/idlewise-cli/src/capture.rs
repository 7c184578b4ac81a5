//! `idlewise capture`: real I/O into a trace.

use std::io::Write;
use std::path::PathBuf;

use idlewise::Nanos;
use idlewise::trace::formats::write_msr;
use idlewise_linux::capture::capture;

use serde::Serialize;

use crate::exit::Exit;
use crate::live::{MonitorName, open_device, open_monitor, stop_flag};
use crate::output;
use crate::progress::Progress;

/// Record the requests of a device with their response times, as an MSR Cambridge CSV trace. Needs BPF
#[derive(clap::Args)]
pub struct Arguments {
    /// Block device, such as /dev/sda
    device: PathBuf,

    /// How long to record; SIGINT ends it earlier
    #[arg(long = "for", value_name = "TIME")]
    time: Nanos,

    /// The trace to write; compressed if its name ends in .gz
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,

    /// Print one JSON object instead of a line
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    trace: String,
    requests: usize,
    without_data: u64,
    lost_events: u64,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    output::check(Some(&arguments.out))?;
    let stop = stop_flag()?;
    let device = open_device(&arguments.device)?;
    let mut monitor = open_monitor(&device, MonitorName::Bpf)?;
    let progress = Progress::new("recording");
    let captured = capture(&device, monitor.as_mut(), arguments.time, &stop, &mut |done, _| progress.share(done))?;
    drop(progress);
    let mut csv = Vec::new();
    write_msr(&captured.trace, &mut csv)?;
    if arguments.out.extension().is_some_and(|extension| extension == "gz") {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&csv)?;
        csv = encoder.finish()?;
    }
    output::bytes(&arguments.out, &csv)?;
    let report = Report {
        trace: arguments.out.display().to_string(),
        requests: captured.trace.len(),
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
