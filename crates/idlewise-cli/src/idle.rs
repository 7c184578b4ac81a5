//! `idlewise idle`: how idle disks were.

use std::collections::HashMap;
use std::path::PathBuf;

use idlewise::Nanos;
use idlewise::idle::{Character, Idleness, Profile, Statistics};
use idlewise::report::{Table, idle_page};
use serde::Serialize;

use crate::exit::Exit;
use crate::input::{DiskArguments, Input, ReadArguments, Source, formats_help};
use crate::output;
use crate::progress::Progress;

/// Say how idle the disks of traces were: their idle intervals, what is left of them after waiting, whether they repeat, follow
/// each other or have long tails
#[derive(clap::Args)]
#[command(after_help = formats_help())]
pub struct Arguments {
    /// Block I/O traces: files, folders, tar archives or - for standard input, each a trace of its own; plain or compressed (gzip,
    /// xz, zstd, bzip2). The format, one of those below, is told by the content
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,

    /// All files are one trace together
    #[arg(long)]
    join: bool,

    #[command(flatten)]
    read: ReadArguments,

    #[command(flatten)]
    disk: DiskArguments,

    /// Treat each volume as a trace of its own
    #[arg(long)]
    by_volume: bool,

    /// Write a page with every figure and its reading: one HTML file, traces side by side
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,

    /// Print JSON instead of a table: an object, or a list of objects where there are several traces
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    source: Source,
    #[serde(flatten)]
    profile: Profile,
    volumes: Vec<Volume>,
}

#[derive(Serialize)]
struct Volume {
    volume: String,
    #[serde(flatten)]
    statistics: Statistics,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    output::check(arguments.report.as_deref())?;
    let traces: Vec<&[PathBuf]> =
        if arguments.join { vec![&arguments.traces] } else { arguments.traces.chunks(1).collect() };
    let mut reports = Vec::new();
    for paths in traces {
        let input = arguments.read.idleness(paths, arguments.disk.model()?)?;
        let progress = Progress::new("analysing");
        progress.share(0.0);
        reports.extend(if arguments.by_volume {
            by_volume(&input)
        } else {
            vec![Report::of(input.source, &input.disks)]
        });
    }
    if let Some(path) = &arguments.report {
        let names = names(&reports);
        let profiles: Vec<_> = names.into_iter().zip(reports.iter().map(|report| report.profile.clone())).collect();
        let source = |report: &Report| {
            let Source { trace, format, responses_modelled, disk, bad_records, holes, .. } = &report.source;
            let file = trace.rsplit('/').next().unwrap_or(trace).to_string();
            let modelled = match responses_modelled {
                0 => "all response times recorded".to_string(),
                count => format!("{count} response times by the model of {disk}"),
            };
            let holes = if *holes > 0 { format!(", {holes} holes counted as idle time") } else { String::new() };
            (file, format!("{format}, {modelled}, {bad_records} bad records left out{holes}"))
        };
        let mut sources: Vec<_> = reports.iter().map(source).collect();
        sources.dedup();
        output::file(path, &idle_page(&profiles, sources).html())?;
    }
    match (&reports[..], arguments.json) {
        ([report], true) => output::json(report)?,
        (_, true) => output::json(&reports)?,
        _ => output::text(&(lines(&reports) + &table(&reports).to_string() + &verdicts(&reports)))?,
    }
    Ok(Exit::Clean)
}

impl Report {
    fn of(source: Source, disks: &[Idleness]) -> Self {
        let volume = |disk: &Idleness| Volume {
            volume: disk.volume.clone(),
            statistics: Statistics::of(std::slice::from_ref(disk)),
        };
        Self { source, profile: Profile::of(disks), volumes: disks.iter().map(volume).collect() }
    }
}

fn by_volume(input: &Input) -> Vec<Report> {
    input.disks.iter().map(|disk| Report::of(input.source.clone(), std::slice::from_ref(disk))).collect()
}

/// What each report is called in a column: its file's name, and its volume where a trace has several reports.
fn names(reports: &[Report]) -> Vec<String> {
    let mut of_trace: HashMap<&str, usize> = HashMap::new();
    reports.iter().for_each(|report| *of_trace.entry(&report.source.trace).or_default() += 1);
    let name = |report: &Report| {
        let file = report.source.trace.rsplit('/').next().unwrap_or_default();
        let stem = file.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or(file);
        if of_trace[&*report.source.trace] > 1 {
            format!("{stem} {}", report.profile.sequence_volume)
        } else {
            stem.to_string()
        }
    };
    reports.iter().map(name).collect()
}

fn lines(reports: &[Report]) -> String {
    let mut lines: Vec<String> = reports.iter().map(|report| report.source.line()).collect();
    lines.dedup();
    lines.concat() + "\n"
}

/// A column for each trace; for one trace of several volumes, a column for all and one for each.
fn table(reports: &[Report]) -> Table {
    let mut columns: Vec<(String, &Statistics, Option<&Profile>)> = names(reports)
        .into_iter()
        .zip(reports)
        .map(|(name, report)| (name, &report.profile.statistics, Some(&report.profile)))
        .collect();
    if let [report] = reports {
        columns[0].0 = if report.volumes.len() > 1 { "all".into() } else { report.profile.sequence_volume.clone() };
        let volumes = report.volumes.iter().map(|volume| (volume.volume.clone(), &volume.statistics, None));
        columns.extend(volumes.filter(|_| report.volumes.len() > 1));
    }

    let mut table = Table { head: vec![String::new()], rows: Vec::new() };
    table.head.extend(columns.iter().map(|(name, _, _)| name.clone()));
    let mut row = |name: &str, cell: &dyn Fn(&Statistics, Option<&Profile>) -> Option<String>| {
        let cells = columns.iter().map(|(_, statistics, profile)| cell(statistics, *profile));
        table.rows.push(std::iter::once(name.into()).chain(cells.map(|c| c.unwrap_or_else(|| "-".into()))).collect());
    };
    row("requests", &|s, _| Some(s.requests.to_string()));
    row("span", &|s, _| Some(seconds(s.span_s)));
    row("utilisation", &|s, _| s.utilisation.map(percent));
    row("idle intervals", &|s, _| Some(s.idle_intervals.to_string()));
    row("  mean length", &|s, _| s.idle_mean_s.map(seconds));
    row("  variance (s²)", &|s, _| s.idle_variance_s2.map(number));
    row("  coefficient of variation", &|s, _| s.idle_cov.map(number));
    row("  longer than 100 ms", &|_, p| p?.longer_than_100ms.map(percent));
    row("idle time in the 15 % longest", &|s, _| s.idle_share_longest_15pct.map(percent));
    row("usable after waiting 10 ms", &|s, _| s.usable_after_10ms.map(percent));
    row("usable after waiting 100 ms", &|s, _| s.usable_after_100ms.map(percent));
    row("usable after waiting 1 s", &|s, _| s.usable_after_1s.map(percent));
    row("strongest period", &|_, p| {
        let profile = p?;
        let none = || if profile.periods.is_empty() { "-" } else { "none" }.to_string();
        Some(profile.strongest_period.map_or_else(none, |period| format!("{} h", period.hours)))
    });
    row("autocorrelation, lag 1", &|_, p| {
        let acf = p?.autocorrelation.as_ref()?;
        let (lag, r) = acf.strongest();
        Some(format!("{:.3} ({}: {r:.2} at {lag})", acf.lags[0], if acf.strong { "strong" } else { "weak" }))
    });
    row("variance that AR explains", &|_, p| {
        let model = p?.autoregression.as_ref()?;
        Some(format!("{} (order {})", percent(model.explained()), model.coefficients.len()))
    });
    row("Hurst, by fluctuation", &|_, p| p?.hurst_fluctuation.map(|h| format!("{h:.2}")));
    row("Hurst, by local Whittle", &|_, p| p?.hurst_local_whittle.map(|h| format!("{h:.2}")));
    row("burstiness", &|_, p| p?.burstiness.map(|b| format!("{b:.2}")));
    row("hazard rate", &|_, p| {
        let test = p?.hazard_test?;
        let word = if test.decreasing { "decreasing" } else { "not decreasing" };
        Some(format!("{word} (z {:.1})", test.z))
    });
    table
}

/// Which part of the idle times to use, and why.
fn verdicts(reports: &[Report]) -> String {
    let several = reports.len() > 1;
    let line = |(name, report): (String, &Report)| {
        let verdict = report.profile.verdict.as_ref()?;
        let part = match verdict.character {
            Character::Body => "the body: wait briefly, do a little in most intervals",
            Character::Tail => "the tail: wait long, do much in few intervals",
            Character::TailBursty => "the tail, and expect a long interval after a long one",
        };
        let name = if several { format!("{name}: use ") } else { "Use ".into() };
        Some(format!("{name}{part}; {}.\n", verdict.reason))
    };
    "\n".to_string() + &names(reports).into_iter().zip(reports).filter_map(line).collect::<String>()
}

fn seconds(value: f64) -> String {
    Nanos((value * 1e9).round() as u64).to_string()
}

fn percent(value: f64) -> String {
    format!("{:.2} %", value * 100.0)
}

fn number(value: f64) -> String {
    if value.abs() < 1e-3 || value.abs() >= 1e6 { format!("{value:.3e}") } else { format!("{value:.4}") }
}
