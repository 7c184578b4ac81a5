//! `idlewise replay`: a trace played on a real device.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use idlewise::Nanos;
use idlewise::replay::Places;
use idlewise::report::Table;
use idlewise::trace::Trace;
use idlewise::trace::write::Target;
use idlewise_linux::replay::{Loop, Options, Played, Summary, Writes, replay};
use serde::Serialize;

use crate::exit::{Exit, UsageError};
use crate::input::{ReadArguments, formats_help};
use crate::live::{open_device, stop_flag};
use crate::output;
use crate::progress::Progress;
use crate::trace_file::TraceFile;

/// Play a trace on a device, each request on time; writes become reads unless told otherwise
#[derive(clap::Args)]
#[command(after_help = formats_help())]
pub struct Arguments {
    /// Block I/O trace: a file, a folder, a tar archive or - for standard input; plain or compressed
    trace: PathBuf,

    #[command(flatten)]
    read: ReadArguments,

    /// Block device, such as /dev/sdb. Places of a trace that is larger are wrapped around its end, in whole blocks
    device: PathBuf,

    /// Play only the first part of the trace
    #[arg(long = "for", value_name = "TIME")]
    first: Option<Nanos>,

    /// Closed loop: a request that came after the end of a read comes as long after its end on this device; any other as long
    /// after the request before it. Needs a trace with response times. Without this option each request is issued at its
    /// recorded time, whatever the ones before it do
    #[arg(long)]
    closed: bool,

    /// Scale the places of a trace that is larger than the device down, all in one ratio, instead of wrapping them around:
    /// keeps long seeks in proportion, but requests that followed one another overlap
    #[arg(long)]
    scale: bool,

    /// Really write, zeros, where the trace writes: DESTROYS the data on the device; refused while it is in use
    #[arg(long)]
    allow_writes: bool,

    /// Write the requests as a trace, with the times of their issue and the response times measured: .parquet or .csv (MSR
    /// Cambridge)
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
    unanswered: u64,
    drift_p50_s: f64,
    drift_p99_s: f64,
    drift_max_s: f64,
    span_error: f64,
    mean_response_s: f64,
    weighted_response_s: f64,
    response_p50_s: f64,
    response_p90_s: f64,
    response_p99_s: f64,
    response_p999_s: f64,
    response_max_s: f64,
    #[serde(rename = "loop")]
    control: &'static str,
    writes: &'static str,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    output::check(arguments.out.as_deref())?;
    let stop = stop_flag()?;
    let device = open_device(&arguments.device)?;
    let mut trace = arguments.read.whole(std::slice::from_ref(&arguments.trace))?;
    one_volume(arguments, &trace)?;
    if let Some(first) = arguments.first {
        trace.columns.split_off(trace.columns.arrival.partition_point(|arrival| *arrival < first));
    }
    let options = Options {
        writes: if arguments.allow_writes { Writes::Destroy } else { Writes::AsReads },
        places: if arguments.scale { Places::Scaled } else { Places::Wrapped },
        control: if arguments.closed { Loop::Closed } else { Loop::Open },
        sample: None,
    };
    let progress = Progress::new("playing");
    let played = replay(trace, &device, &options, &stop, &mut |done| progress.share(done))?;
    drop(progress);
    if !played.denied.is_empty() {
        eprintln!("idlewise: requests may be issued late, as the player was denied {}", played.denied.join("; "));
    }
    if let Some(path) = &arguments.out {
        let target = Target::of_path(path).unwrap_or(Target::Parquet);
        let mut file = TraceFile::create(path, target, &played.trace.provenance)?;
        file.write(&played.trace.columns)?;
        file.finish()?;
    }
    let report = Report::of(&options, &played);
    if arguments.json {
        output::json(&report)?;
    } else {
        output::text(&report.table().to_string())?;
    }
    Ok(match stop.load(Ordering::Relaxed) {
        true => Exit::Interrupted,
        false if report.requests == 0 => Exit::NothingToDo,
        false => Exit::Clean,
    })
}

/// Volumes are disks of their own: together on one device they would lie upon each other.
fn one_volume(arguments: &Arguments, trace: &Trace) -> anyhow::Result<()> {
    let volumes = &trace.columns.volumes;
    if volumes.len() < 2 || arguments.read.volume.is_some() {
        return Ok(());
    }
    let (path, count) = (arguments.trace.display(), volumes.len());
    let names = volumes.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = if count > 3 { ", ..." } else { "" };
    let why = format!("{path}: {count} volumes ({names}{more}), each a disk of its own: choose one with --volume");
    Err(UsageError(why).into())
}

impl Report {
    fn of(options: &Options, played: &Played) -> Self {
        let summary = Summary::of(played);
        let [drift_p50_s, drift_p99_s, drift_max_s] = summary.drift.map(Nanos::as_secs_f64);
        let [response_p50_s, response_p90_s, response_p99_s, response_p999_s, response_max_s] =
            summary.response.map(Nanos::as_secs_f64);
        Self {
            requests: summary.requests,
            failed: played.failed,
            unanswered: played.unanswered,
            drift_p50_s,
            drift_p99_s,
            drift_max_s,
            span_error: summary.span_error,
            mean_response_s: summary.mean_response.as_secs_f64(),
            weighted_response_s: summary.weighted_response,
            response_p50_s,
            response_p90_s,
            response_p99_s,
            response_p999_s,
            response_max_s,
            control: if options.control == Loop::Closed { "closed" } else { "open" },
            writes: if options.writes == Writes::Destroy { "written" } else { "played as reads" },
        }
    }

    fn table(&self) -> Table {
        let time = |seconds: f64| Nanos((seconds * 1e9).round() as u64).to_string();
        let drift = [self.drift_p50_s, self.drift_p99_s, self.drift_max_s].map(time);
        let response = [self.response_p50_s, self.response_p90_s, self.response_p99_s, self.response_p999_s];
        let [p50, p90, p99, p999] = response.map(time);
        Table::of_pairs([
            ("requests", self.requests.to_string()),
            ("failed", self.failed.to_string()),
            ("not answered", self.unanswered.to_string()),
            ("issued late by", format!("{} median, {} at 99 %, {} at most", drift[0], drift[1], drift[2])),
            ("span error", format!("{:+.4} %", self.span_error * 100.0)),
            ("mean response time", time(self.mean_response_s)),
            ("response times", format!("{p50} median, {p90} at 90 %, {p99} at 99 %, {p999} at 99.9 %")),
            ("longest", time(self.response_max_s)),
            ("loop", self.control.into()),
            ("writes", self.writes.into()),
        ])
    }
}
