//! `idlewise idle`: how idle disks were.

use std::collections::HashMap;
use std::path::PathBuf;

use idlewise::Nanos;
use idlewise::idle::{Character, Idleness, Profile, Statistics};
use idlewise::report::printable::one_line;
use idlewise::report::{Table, idle_page, number, percent};
use serde::Serialize;

use crate::csv::{cell, csv};
use crate::exit::Exit;
use crate::input::{DiskArguments, Input, ReadArguments, Source, formats_help};
use crate::output::{self, TERMINAL};
use crate::progress::Progress;

/// Show idle-time statistics of traces: interval lengths and their tail, the idle time left after a wait, periodicity,
/// autocorrelation
#[derive(clap::Args)]
#[command(after_help = formats_help())]
pub struct Arguments {
    /// Block I/O traces: files, folders, tar archives or - for standard input, each a trace of its own. The format is found by the
    /// content; files may be compressed
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,

    /// Read all files as one trace
    #[arg(long)]
    join: bool,

    #[command(flatten)]
    read: ReadArguments,

    #[command(flatten)]
    disk: DiskArguments,

    /// Treat each volume as a trace of its own, and print a row for each
    #[arg(long)]
    by_volume: bool,

    /// Print CSV instead of a table, a row for each trace or, with --by-volume, for each volume
    #[arg(long, conflicts_with = "json")]
    csv: bool,

    /// Write an HTML page with every figure and how to read it, traces side by side
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
    let inputs: Vec<_> = arguments.traces.iter().cloned().chain(arguments.disk.path()).collect();
    output::check_all(&inputs, &[arguments.report.as_deref()])?;
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
        (_, true) => output::json_list(&reports)?,
        _ if arguments.csv => output::text(&as_csv(&reports))?,
        _ if arguments.by_volume => output::text(&(lines(&reports) + &rows(columns(&reports))))?,
        _ => output::text(&(lines(&reports) + &text(&reports)))?,
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

/// What is printed of a trace or of a volume, and its name.
type Column<'a> = (String, &'a Statistics, Option<&'a Profile>);

fn columns(reports: &[Report]) -> Vec<Column<'_>> {
    names(reports)
        .into_iter()
        .zip(reports)
        .map(|(name, report)| (name, &report.profile.statistics, Some(&report.profile)))
        .collect()
}

/// A column for each trace and what to use; for one trace of several volumes also a row for each volume.
fn text(reports: &[Report]) -> String {
    let mut all = columns(reports);
    let mut of_volumes = String::new();
    if let [report] = reports {
        all[0].0 = if report.volumes.len() > 1 { "all".into() } else { report.profile.sequence_volume.clone() };
        if report.volumes.len() > 1 {
            let volumes = report.volumes.iter().map(|volume| (volume.volume.clone(), &volume.statistics, None));
            of_volumes = format!(
                "The rows from autocorrelation to burstiness are of the volume {} alone, which has most idle intervals.\n\n{}",
                one_line(&report.profile.sequence_volume),
                rows(volumes.collect())
            );
        }
    }
    table(&all).folded(TERMINAL) + &verdicts(reports) + &of_volumes
}

/// A row for each volume.
fn rows(columns: Vec<Column>) -> String {
    let profiled = columns.iter().any(|(_, _, profile)| profile.is_some());
    let head = ["volume", "requests", "intervals", "mean", "CoV", "left"].into_iter();
    let head = head.chain(if profiled { ["period", "use"] } else { ["in 15 %", "busy"] });
    let mut table = Table { head: head.map(String::from).collect(), rows: Vec::new() };
    for (name, s, profile) in columns {
        let few = |text: Option<String>| text.unwrap_or_else(|| "too few".into());
        let mut row = vec![
            name,
            s.requests.to_string(),
            s.idle_intervals.to_string(),
            few(s.idle_mean_s.map(seconds)),
            few(varies(s).and(s.idle_cov).map(number)),
            few(s.usable_after_100ms.map(percent)),
        ];
        row.extend(match profile {
            Some(profile) => {
                let part = profile.verdict.as_ref().map(|verdict| match verdict.character {
                    Character::Body => "body".to_string(),
                    Character::Tail => "tail".into(),
                    Character::TailBursty => "bursts".into(),
                });
                [period(profile), few(part)]
            }
            None => [few(s.idle_share_longest_15pct.map(percent)), few(s.utilisation.map(percent))],
        });
        table.rows.push(row);
    }
    let last = match profiled {
        true => "use bursts: the tail, where long intervals follow each other",
        false => "in 15 %: idle time in the 15 % longest",
    };
    format!(
        "{}\nintervals: idle intervals; left: idle time left after waiting 100 ms in each; {last}.\n",
        table.folded(TERMINAL)
    )
}

/// Every number of the table in seconds, and shares of one.
fn as_csv(reports: &[Report]) -> String {
    const HEAD: [&str; 21] = [
        "trace",
        "volume",
        "requests",
        "span_s",
        "utilisation",
        "idle_intervals",
        "idle_mean_s",
        "idle_variance_s2",
        "idle_cov",
        "longer_than_100ms",
        "idle_share_longest_15pct",
        "usable_after_10ms",
        "usable_after_100ms",
        "usable_after_1s",
        "strongest_period_hours",
        "autocorrelation_lag_1",
        "explained_by_ar",
        "hurst_fluctuation",
        "hurst_local_whittle",
        "burstiness",
        "hazard_z",
    ];
    let row = |report: &Report| {
        let (p, s) = (&report.profile, &report.profile.statistics);
        let volume = if report.volumes.len() == 1 { &report.volumes[0].volume } else { "" };
        let mut row = vec![report.source.trace.clone(), volume.to_string(), s.requests.to_string()];
        row.extend([cell(Some(s.span_s)), cell(s.utilisation), s.idle_intervals.to_string()]);
        let numbers = [
            s.idle_mean_s,
            s.idle_variance_s2,
            s.idle_cov,
            s.longer_than_100ms,
            s.idle_share_longest_15pct,
            s.usable_after_10ms,
            s.usable_after_100ms,
            s.usable_after_1s,
            p.strongest_period.map(|period| period.hours as f64),
            p.autocorrelation.as_ref().map(|acf| acf.lags[0]),
            p.autoregression.as_ref().map(|model| model.explained()),
            p.hurst_fluctuation,
            p.hurst_local_whittle,
            p.burstiness,
            p.hazard_test.map(|test| test.z),
        ];
        row.extend(numbers.map(cell));
        row
    };
    csv(&HEAD, reports.iter().map(row))
}

/// Whether there are enough intervals for their variance.
fn varies(statistics: &Statistics) -> Option<()> {
    (statistics.idle_intervals >= Statistics::FEWEST_VARYING).then_some(())
}

fn period(profile: &Profile) -> String {
    match profile.strongest_period {
        Some(period) => format!("{} h", period.hours),
        None if profile.periods.is_empty() => "too few".into(),
        None => "none".into(),
    }
}

/// A column for each trace.
fn table(columns: &[Column]) -> Table {
    let mut table = Table { head: vec![String::new()], rows: Vec::new() };
    table.head.extend(columns.iter().map(|(name, _, _)| name.clone()));
    let mut row = |name: &str, cell: &dyn Fn(&Statistics, Option<&Profile>) -> Option<String>| {
        let cells = columns.iter().map(|(_, statistics, profile)| cell(statistics, *profile));
        let cells = cells.map(|cell| cell.unwrap_or_else(|| "too few".into()));
        table.rows.push(std::iter::once(name.into()).chain(cells).collect());
    };
    row("requests", &|s, _| Some(s.requests.to_string()));
    row("span", &|s, _| Some(seconds(s.span_s)));
    row("utilisation", &|s, _| s.utilisation.map(percent));
    row("idle intervals", &|s, _| Some(s.idle_intervals.to_string()));
    row("  mean length", &|s, _| s.idle_mean_s.map(seconds));
    row("  variance (s²)", &|s, _| varies(s).and(s.idle_variance_s2).map(number));
    row("  coefficient of variation", &|s, _| varies(s).and(s.idle_cov).map(number));
    row("  longer than 100 ms", &|s, _| s.longer_than_100ms.map(percent));
    row("idle time in the 15 % longest", &|s, _| s.idle_share_longest_15pct.map(percent));
    row("usable after waiting 10 ms", &|s, _| s.usable_after_10ms.map(percent));
    row("usable after waiting 100 ms", &|s, _| s.usable_after_100ms.map(percent));
    row("usable after waiting 1 s", &|s, _| s.usable_after_1s.map(percent));
    row("strongest period", &|_, p| p.map(period));
    row("autocorrelation, lag 1", &|_, p| Some(format!("{:.3}", p?.autocorrelation.as_ref()?.lags[0])));
    row("  the largest", &|_, p| {
        let acf = p?.autocorrelation.as_ref()?;
        let (lag, r) = acf.strongest();
        Some(format!("{r:.2} at lag {lag} ({})", if acf.strong { "strong" } else { "weak" }))
    });
    row("variance that AR explains", &|_, p| {
        let model = p?.autoregression.as_ref()?;
        Some(format!("{}, order {}", percent(model.explained()), model.coefficients.len()))
    });
    row("Hurst, by fluctuation", &|_, p| p?.hurst_fluctuation.map(|h| format!("{h:.2}")));
    row("Hurst, by local Whittle", &|_, p| p?.hurst_local_whittle.map(|h| format!("{h:.2}")));
    row("burstiness", &|_, p| p?.burstiness.map(|b| format!("{b:.2}")));
    row("hazard rate", &|_, p| {
        let test = p?.hazard_test?;
        let word = if test.decreasing { "falls" } else { "does not fall" };
        Some(format!("{word}, z {:.1}", test.z))
    });
    table
}

/// Which part of the idle times to use, and why.
fn verdicts(reports: &[Report]) -> String {
    let several = reports.len() > 1;
    let line = |(name, report): (String, &Report)| {
        let name_of = if several { format!("{name}: ") } else { String::new() };
        let Some(verdict) = report.profile.verdict.as_ref() else {
            let count = report.profile.statistics.idle_intervals;
            return format!("{name_of}{count} idle intervals are too few to say which part of them to use.\n");
        };
        let part = match verdict.character {
            Character::Body => "the body: wait briefly, do a little in most intervals",
            Character::Tail => "the tail: wait long, do much in few intervals",
            Character::TailBursty => "the tail, and expect a long interval after a long one",
        };
        let name = if several { format!("{name_of}use ") } else { "Use ".into() };
        format!("{name}{part}; {}.\n", verdict.reason)
    };
    "\n".to_string() + &names(reports).into_iter().zip(reports).map(line).collect::<String>()
}

fn seconds(value: f64) -> String {
    Nanos((value * 1e9).round() as u64).to_string()
}
