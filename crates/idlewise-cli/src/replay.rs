//! `idlewise replay`: a trace played on a real device.

use std::path::PathBuf;

use idlewise::Nanos;
use idlewise::report::Table;
use idlewise::trace::write::Target;
use idlewise_linux::replay::{Options, Summary, Writes, replay};
use serde::Serialize;

use crate::exit::Exit;
use crate::input::{ReadArguments, formats_help};
use crate::live::{open_device, stop_flag};
use crate::output;
use crate::progress::Progress;
use crate::trace_file::TraceFile;

/// Play a trace on a device, each request at its recorded time; writes become reads unless told otherwise
#[derive(clap::Args)]
#[command(after_help = formats_help())]
pub struct Arguments {
    /// Block I/O trace: a file, a folder, a tar archive or - for standard input; plain or compressed
    trace: PathBuf,

    #[command(flatten)]
    read: ReadArguments,

    /// Block device, such as /dev/sdb; places beyond its end are wrapped around
    device: PathBuf,

    /// Play only the first part of the trace
    #[arg(long = "for", value_name = "TIME")]
    first: Option<Nanos>,

    /// Really write, zeros, where the trace writes: DESTROYS the data on the device; refused while it is in use
    #[arg(long)]
    allow_writes: bool,

    /// Write the requests with the response times measured, as a trace: .parquet or .csv (MSR Cambridge)
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    requests: u64,
    failed: u64,
    drift_p50_s: f64,
    drift_p99_s: f64,
    drift_max_s: f64,
    span_error: f64,
    mean_response_s: f64,
    writes: &'static str,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    output::check(arguments.out.as_deref())?;
    let stop = stop_flag()?;
    let trace = arguments.read.whole(std::slice::from_ref(&arguments.trace))?;
    let device = open_device(&arguments.device)?;
    let writes = if arguments.allow_writes { Writes::Destroy } else { Writes::AsReads };
    let progress = Progress::new("playing");
    let options = Options { writes, first: arguments.first };
    let played = replay(&trace, &device, &options, &stop, &mut |done| progress.share(done))?;
    drop(progress);
    if let Some(path) = &arguments.out {
        let target = Target::of_path(path).unwrap_or(Target::Parquet);
        let mut file = TraceFile::create(path, target, &played.trace.provenance)?;
        file.write(&played.trace.columns)?;
        file.finish()?;
    }
    let summary = Summary::of(&played);
    let writes = if arguments.allow_writes { "written" } else { "played as reads" };
    if arguments.json {
        let [p50, p99, max] = summary.drift.map(Nanos::as_secs_f64);
        output::json(&Report {
            requests: summary.requests,
            failed: summary.failed,
            drift_p50_s: p50,
            drift_p99_s: p99,
            drift_max_s: max,
            span_error: summary.span_error,
            mean_response_s: summary.mean_response.as_secs_f64(),
            writes,
        })?;
    } else {
        let [p50, p99, max] = summary.drift;
        let table = Table::of_pairs([
            ("requests", summary.requests.to_string()),
            ("failed", summary.failed.to_string()),
            ("issued late by", format!("{p50} median, {p99} at 99 %, {max} at most")),
            ("span error", format!("{:+.4} %", summary.span_error * 100.0)),
            ("mean response time", summary.mean_response.to_string()),
            ("writes", writes.into()),
        ]);
        output::text(&table.to_string())?;
    }
    Ok(if stop.load(std::sync::atomic::Ordering::Relaxed) { Exit::Interrupted } else { Exit::Clean })
}
