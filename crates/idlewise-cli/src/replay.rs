//! `idlewise replay`: a trace played on a real device.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::Context;
use idlewise::replay::{Places, Segment};
use idlewise::report::{Table, percent};
use idlewise::sample::SamplingPlan;
use idlewise::trace::write::Target;
use idlewise::trace::{Columns, Found, Trace, metadata_of_found, open_found};
use idlewise::{Bytes, Nanos};
use idlewise_linux::replay::{
    DEVICE_CACHE, Loop, Options, PATIENCE, Played, Sample, SegmentSummary, Summary, Writes, replay,
};
use serde::Serialize;

use crate::exit::{Exit, UsageError};
use crate::input::{ReadArguments, formats_help, text_file};
use crate::live::{Second, open_device, stop_flag};
use crate::output::{self, say};
use crate::progress::Progress;
use crate::sample::within;
use crate::trace_file::TraceFile;

/// Play a trace on a disk, and measure its response times
///
/// Each request is issued at its recorded time (open loop), or with --closed after the reads that it depended on. With a PLAN of
/// `idlewise sample`, only the sampled intervals are played, each after a warm-up. Writes become reads unless --allow-writes is given. A
/// device that answers nothing for a minute ends it, with what was measured.
#[derive(clap::Args)]
#[command(after_help = formats_help())]
pub struct Arguments {
    /// Block I/O trace: a file, a folder, a tar archive, or - for standard input. Or a plan that `idlewise sample -o` wrote
    #[arg(value_name = "TRACE|PLAN")]
    trace: PathBuf,

    /// Trace of the plan, if it is no longer where the plan says
    #[arg(long = "trace", value_name = "TRACE")]
    trace_of_plan: Option<PathBuf>,

    /// Size of the device's cache. The warm-up before each interval of a plan fills it [default: 32MiB]
    #[arg(long, value_name = "SIZE")]
    device_cache: Option<Bytes>,

    #[command(flatten)]
    read: ReadArguments,

    /// Block device, such as /dev/sdb. If the trace is of a larger disk, its offsets wrap around
    device: PathBuf,

    /// Play only the first part of the trace
    #[arg(long = "for", value_name = "TIME")]
    first: Option<Nanos>,

    /// Closed loop: a request that followed the end of a read follows it here as well, after the same time. Needs a trace with
    /// response times
    #[arg(long)]
    closed: bool,

    /// Scale offsets down to the size of the device, instead of wrapping them around. Long seeks stay in proportion, but sequential
    /// requests overlap
    #[arg(long)]
    scale: bool,

    /// Really write where the trace writes. This DESTROYS the data on the device. Refused while it is mounted, part of an array or below
    /// a loop device; a program that has it open, such as a virtual machine, is not seen
    #[arg(long)]
    allow_writes: bool,

    /// Write the requests as a trace with the measured response times. A .parquet file keeps when each request was due, issued and
    /// completed; a .csv file (MSR Cambridge) when it was due and completed
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    trace: String,
    device: String,
    /// `complete`, `interrupted`, or `hangs`: the device answered nothing for a minute.
    state: &'static str,
    /// What the player was denied that would help it to be on time.
    denied: Vec<String>,
    requests: u64,
    failed: u64,
    unanswered: u64,
    drift_p50_s: f64,
    drift_p99_s: f64,
    drift_max_s: f64,
    span_error: f64,
    /// Nothing here and below where no request was answered.
    mean_response_s: Option<f64>,
    /// Nothing where not all of a plan was played and answered.
    weighted_response_s: Option<f64>,
    /// So far that may be off from what the whole trace would have, with a confidence of 95 %; of a plan whose intervals were drawn.
    half_width_s: Option<f64>,
    /// Where requests went: `kept`, or `wrapped` or `scaled` on a smaller device.
    places: &'static str,
    response_p50_s: Option<f64>,
    response_p90_s: Option<f64>,
    response_p99_s: Option<f64>,
    response_p999_s: Option<f64>,
    response_max_s: Option<f64>,
    #[serde(rename = "loop")]
    control: &'static str,
    writes: &'static str,
    /// Of a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<OfPlan>,
}

#[derive(Serialize)]
struct OfPlan {
    /// Requests issued to fill the cache, and behind an interval until its last request ended.
    warm_up: u64,
    cool_down: u64,
    elapsed_s: f64,
    /// The trace's span over that; nothing where not all of the plan was played.
    speed_up: Option<f64>,
    segments: Vec<SegmentRow>,
}

#[derive(Serialize)]
struct SegmentRow {
    begin_s: f64,
    weight: f64,
    requests: u64,
    mean_response_s: Option<f64>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let device = open_device(&arguments.device)?;
    let plan = arguments.plan()?;
    let of_plan = plan.as_ref().map(|plan| arguments.trace_of(plan)).transpose()?;
    output::check_beside(std::slice::from_ref(&arguments.trace), of_plan.as_ref(), &[arguments.out.as_deref()])?;
    let out = arguments.out.as_deref().map(created).transpose()?;
    let mut trace = arguments.read_trace(plan.as_ref().zip(of_plan.as_ref()))?;
    one_volume(arguments, &trace)?;
    let segments = plan.as_ref().map(SamplingPlan::segments);
    let places = if arguments.scale { Places::Scaled } else { Places::Wrapped };
    let moved = moved(arguments, &trace, device.size);
    if let Some(first) = arguments.first {
        // By all of the trace, so that its parts go where they go in the whole.
        places.fit(&mut trace.columns, device.size, device.block)?;
        trace.columns.split_off(trace.columns.arrival.partition_point(|arrival| *arrival < first));
    }
    let options = Options {
        writes: if arguments.allow_writes { Writes::Destroy } else { Writes::AsReads },
        places,
        control: if arguments.closed { Loop::Closed } else { Loop::Open },
        sample: segments
            .as_deref()
            .map(|segments| Sample { segments, device_cache: arguments.device_cache.unwrap_or(DEVICE_CACHE) }),
    };
    // Until here a signal ends it at once.
    let stop = stop_flag(Second::Ends)?;
    let began = Instant::now();
    let progress = Progress::new("playing");
    let played = replay(trace, &device, &options, &stop, &mut |done| progress.share(done))?;
    drop(progress);
    let elapsed_s = began.elapsed().as_secs_f64();
    if !played.denied.is_empty() {
        say!("idlewise: requests may be issued late, as the player was denied {}", played.denied.join("; "));
    }
    let state = match played.hangs {
        true => "hangs",
        false if stop.load(Ordering::Relaxed) => "interrupted",
        false => "complete",
    };
    let [trace, device] = [&arguments.trace, &arguments.device].map(|path| path.display().to_string());
    let report =
        Report { trace, device, places: moved, ..Report::of(&options, &played, plan.as_ref(), elapsed_s, state) };
    if report.failed > 0 {
        say!("idlewise: {}: {} requests failed; their times are left out", arguments.device.display(), report.failed);
    }
    if played.hangs {
        say!(
            "idlewise: {}: nothing was answered for {PATIENCE}, so the replay ended; requests without an answer: {}. This process ends when \
             the device answers, or the kernel gives it up",
            report.device,
            report.unanswered
        );
    }
    // What took days is delivered wherever it can be.
    let printed = match arguments.json {
        true => output::json(&report),
        false => output::text(&report.table().to_string()),
    };
    let written = out.map_or(Ok(()), |(file, target)| write(file, target, &played));
    printed.and(written)?;
    Ok(match report.state {
        "interrupted" => Exit::Interrupted,
        "hangs" => Exit::ErrorsFound,
        _ if report.requests == 0 => Exit::NothingToDo,
        _ if report.failed > 0 => Exit::ErrorsFound,
        _ => Exit::Clean,
    })
}

/// The file of the requests, before any is played: what cannot be written should not take a week to find out.
fn created(path: &Path) -> anyhow::Result<(TraceFile, Target)> {
    let unknown =
        || UsageError(format!("{}: the name does not say in which format to write: .parquet or .csv", path.display()));
    let target = Target::of_path(path).ok_or_else(unknown)?;
    Ok((TraceFile::create(path, target, &Played::provenance())?, target))
}

fn write(mut file: TraceFile, target: Target, played: &Played) -> anyhow::Result<()> {
    let columns = &played.trace.columns;
    match target {
        Target::Parquet => file.write(columns)?,
        Target::Format(_) => file.write(&answered(columns))?,
    }
    file.finish()
}

/// For formats that cannot say that a request was not answered.
fn answered(columns: &Columns) -> Columns {
    let mut answered = columns.with_volumes_of();
    columns.requests().filter(|request| request.response.is_some()).for_each(|request| answered.push(request));
    answered
}

/// What becomes of places.
fn moved(arguments: &Arguments, trace: &Trace, device: Bytes) -> &'static str {
    let ends = trace.columns.requests().map(|request| request.offset.0.saturating_add(request.length.into()));
    match ends.max().is_some_and(|end| end > device.0) {
        false => "kept",
        true if arguments.scale => "scaled",
        true => "wrapped",
    }
}

/// Volumes are disks of their own: together on one device they would lie upon each other.
fn one_volume(arguments: &Arguments, trace: &Trace) -> anyhow::Result<()> {
    let volumes = &trace.columns.volumes;
    if volumes.len() < 2 {
        return Ok(());
    }
    let (path, count) = (arguments.trace.display(), volumes.len());
    let names = volumes.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    let more = if count > 3 { ", ..." } else { "" };
    let why = format!("{path}: {count} volumes ({names}{more}), each a disk of its own: choose one with --volume");
    Err(UsageError(why).into())
}

impl Arguments {
    /// The plan, if the file is one: no trace begins like it.
    fn plan(&self) -> anyhow::Result<Option<SamplingPlan>> {
        const BEGINS: &[u8] = b"version = ";
        let mut begin = Vec::new();
        if self.trace.is_file() {
            File::open(&self.trace)?.take(BEGINS.len() as u64).read_to_end(&mut begin)?;
        }
        if begin != BEGINS {
            let refused =
                UsageError("--trace and --device-cache need a plan, as `idlewise sample -o` writes it".into());
            let said = self.trace_of_plan.is_some() || self.device_cache.is_some();
            return if said { Err(refused.into()) } else { Ok(None) };
        }
        if self.first.is_some() {
            return Err(
                UsageError("--for plays the first part of a trace: a plan says itself what is played".into()).into()
            );
        }
        let name = || self.trace.display().to_string();
        let text = text_file(&self.trace)?;
        Ok(Some(SamplingPlan::from_toml(&text).with_context(name)?))
    }

    /// Where the plan's trace is: as it says, or else beside the plan. Nothing more is asked of one that is not to be read.
    fn trace_of(&self, plan: &SamplingPlan) -> anyhow::Result<Found> {
        if let Some(path) = &self.trace_of_plan {
            return Ok(Found::named(path));
        }
        let as_it_says = said(Path::new(&plan.trace));
        let beside = self.trace.parent().map(|folder| said(&folder.join(&plan.trace)));
        let beside = beside.filter(|path| !is_there(&as_it_says) && is_there(path));
        let found = beside.unwrap_or(as_it_says);
        let name = || found.path.display().to_string();
        let refused = match metadata_of_found(&found).with_context(name)? {
            None => Some("not there, or behind another user's link: --trace says where it is"),
            Some(known) if !known.is_dir() && open_found(&found).with_context(name)?.is_none() => {
                Some("empty, no regular file or behind another user's link: --trace names it")
            }
            Some(_) => None,
        };
        match refused {
            Some(refused) => anyhow::bail!("{}: its trace {} is {refused}", self.trace.display(), name()),
            None => Ok(found),
        }
    }

    /// The trace, or that of the plan.
    fn read_trace(&self, planned: Option<(&SamplingPlan, &Found)>) -> anyhow::Result<Trace> {
        let Some((plan, found)) = planned else { return self.read.whole(std::slice::from_ref(&self.trace)) };
        let path = &found.path;
        let found = self.trace_of_plan.is_none().then(|| found.clone());
        let volumes = if self.read.volume.is_empty() { plan.volume.as_slice() } else { &self.read.volume };
        let trace = self.read.whole_of(std::slice::from_ref(path), volumes, found.as_slice())?;
        let requests = trace.columns.len() as u64;
        anyhow::ensure!(
            requests == plan.requests,
            "{}: it is of a trace with {} requests, {} has {requests}",
            self.trace.display(),
            plan.requests,
            path.display()
        );
        let span = trace.columns.arrival.last().copied().unwrap_or_default();
        anyhow::ensure!(
            span == plan.span,
            "{}: it is of a trace of {}, {} has {}",
            self.trace.display(),
            plan.span.exact(),
            path.display(),
            span.exact()
        );
        for (segment, one) in plan.segments().iter().zip(plan.parts()) {
            let before = |time: Nanos| trace.columns.arrival.partition_point(|arrival| *arrival < time) as u64;
            let there = before(segment.end) - before(segment.begin);
            anyhow::ensure!(
                there == one.requests,
                "{}: interval {} has {} requests there, {there} in {}",
                self.trace.display(),
                one.index,
                one.requests,
                path.display()
            );
        }
        Ok(trace)
    }
}

impl OfPlan {
    fn new(plan: &SamplingPlan, summary: &Summary, played: &Played, elapsed_s: f64, is_complete: bool) -> Self {
        let row = |(one, segment): (&SegmentSummary, &Segment)| SegmentRow {
            begin_s: segment.begin.as_secs_f64(),
            weight: one.weight,
            requests: one.requests,
            mean_response_s: one.mean_response,
        };
        Self {
            warm_up: played.warm_up,
            cool_down: played.cool_down,
            elapsed_s,
            speed_up: is_complete.then(|| plan.span.as_secs_f64() / elapsed_s),
            segments: summary.segments.iter().zip(&plan.segments()).map(row).collect(),
        }
    }
}

impl Report {
    fn of(
        options: &Options,
        played: &Played,
        plan: Option<&SamplingPlan>,
        elapsed_s: f64,
        state: &'static str,
    ) -> Self {
        let summary = Summary::of(played);
        let [drift_p50_s, drift_p99_s, drift_max_s] = summary.drift.map(Nanos::as_secs_f64);
        let [response_p50_s, response_p90_s, response_p99_s, response_p999_s, response_max_s] =
            [0, 1, 2, 3, 4].map(|at| summary.response.map(|times| times[at].as_secs_f64()));
        let means: Vec<_> = summary.segments.iter().map(|segment| segment.mean_response).collect();
        let is_complete = state == "complete";
        let are_answered = played.trace.columns.requests().all(|request| request.response.is_some());
        let estimate = plan.filter(|_| is_complete && are_answered).and_then(|plan| plan.estimate(&means));
        Self {
            trace: String::new(),
            device: String::new(),
            state,
            denied: played.denied.clone(),
            places: "kept",
            requests: summary.requests,
            failed: played.failed,
            unanswered: played.unanswered,
            drift_p50_s,
            drift_p99_s,
            drift_max_s,
            span_error: summary.span_error,
            mean_response_s: summary.mean_response.map(Nanos::as_secs_f64),
            weighted_response_s: match plan {
                None => summary.weighted_response,
                Some(_) => estimate.map(|estimate| estimate.mean_response_s),
            },
            half_width_s: estimate.and_then(|estimate| estimate.half_width_s),
            response_p50_s,
            response_p90_s,
            response_p99_s,
            response_p999_s,
            response_max_s,
            control: if options.control == Loop::Closed { "closed" } else { "open" },
            writes: if options.writes == Writes::Destroy { "written" } else { "played as reads" },
            plan: plan.map(|plan| OfPlan::new(plan, &summary, played, elapsed_s, is_complete)),
        }
    }

    fn table(&self) -> Table {
        let time = |seconds: f64| Nanos((seconds * 1e9).round() as u64).to_string();
        let known = |seconds: Option<f64>| seconds.map_or("-".into(), time);
        let drift = [self.drift_p50_s, self.drift_p99_s, self.drift_max_s].map(time);
        let response = [self.response_p50_s, self.response_p90_s, self.response_p99_s, self.response_p999_s];
        let [p50, p90, p99, p999] = response.map(known);
        let mut table = Table::of_pairs([
            ("state", self.state.into()),
            ("requests", self.requests.to_string()),
            ("failed", self.failed.to_string()),
            ("not answered", self.unanswered.to_string()),
            ("issued late by", format!("{} median, {} at 99 %, {} at most", drift[0], drift[1], drift[2])),
            ("span error", percent(self.span_error)),
            ("mean response time", known(self.mean_response_s)),
            ("  median", p50),
            ("  90 %", p90),
            ("  99 %", p99),
            ("  99.9 %", p999),
            ("  longest", known(self.response_max_s)),
            ("loop", self.control.into()),
            ("writes", self.writes.into()),
            ("places", self.places.into()),
        ]);
        if let Some(plan) = &self.plan {
            let off = |estimate| self.half_width_s.map(|half| within(half, estimate)).unwrap_or_default();
            let weighted = self.weighted_response_s.map_or_else(
                || "unknown: not all of the plan was played and answered".into(),
                |estimate| time(estimate) + &off(estimate),
            );
            table.row(["weighted response time".into(), weighted]);
            table.row(["intervals".into(), plan.segments.len().to_string()]);
            table.row(["warm-up, cool-down".into(), format!("{}, {} requests", plan.warm_up, plan.cool_down)]);
            let faster = plan.speed_up.map(|times| format!(", {times:.1} times faster than the trace"));
            table.row(["took".into(), time(plan.elapsed_s) + &faster.unwrap_or_default()]);
        }
        table
    }
}

/// What a plan says is whatever its maker has put there: root would open any device or pipe.
fn said(path: &Path) -> Found {
    Found { path: path.into(), folder: PathBuf::new() }
}

fn is_there(found: &Found) -> bool {
    metadata_of_found(found).is_ok_and(|known| known.is_some())
}
