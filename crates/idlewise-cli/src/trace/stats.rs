//! `idlewise trace stats`: what a trace asks of its disks.

mod page;

use std::path::PathBuf;

use idlewise::report::{Table, number, percent};
use idlewise::trace::stats::{Counter, Spread, Statistics};
use idlewise::trace::volumes::natural;
use idlewise::trace::{Columns, GapFinder, Provenance, Volumes};
use idlewise::{Bytes, Rate};
use idlewise_linux::half_of_free_memory;
use serde::Serialize;

use crate::exit::Exit;
use crate::input::{TraceArguments, formats_help, say_holes};
use crate::output;
use crate::simulate::seconds;

/// Rates, sizes, times between arrivals, queue depth, response times and working set
#[derive(clap::Args)]
#[command(after_help = formats_help())]
pub struct Arguments {
    #[command(flatten)]
    input: TraceArguments,

    /// Also print a row for each volume
    #[arg(long)]
    by_volume: bool,

    /// Write an HTML page with charts
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,

    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    trace: String,
    format: &'static str,
    bad_records: u64,
    #[serde(flatten)]
    all: Statistics,
    /// With `--by-volume`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    volumes: Vec<OfVolume>,
}

#[derive(Serialize)]
struct OfVolume {
    volume: String,
    #[serde(flatten)]
    statistics: Statistics,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let Arguments { input, by_volume, report: path, json } = arguments;
    output::check_all(&input.traces, &[path.as_deref()])?;
    let counter = || if *by_volume { Counter::by_volume() } else { Counter::default() };
    let begin = |_: &Provenance| Ok((counter(), GapFinder::default(), Volumes::default()));
    let most = half_of_free_memory().unwrap_or(Bytes(u64::MAX));
    let take = |(counter, gaps, names): &mut (Counter, GapFinder, Volumes), columns: Columns, _: &Provenance| {
        counter.requests(&columns);
        columns.arrival.iter().for_each(|&arrival| gaps.arrival(arrival));
        *names = columns.volumes.clone();
        anyhow::ensure!(
            counter.memory() <= most,
            "{}: too many volumes for the memory that is free: read a part of them by --volume, or leave out --by-volume",
            input.name()
        );
        Ok(())
    };
    let ((counter, gaps, names), provenance) = input.read.stream(&input.traces, input.read.options(), begin, take)?;
    say_holes(&gaps, &input.traces);
    let (all, volumes) = counter.finish();
    let named = names.iter().zip(volumes).map(|(name, statistics)| OfVolume { volume: name.to_string(), statistics });
    let mut volumes: Vec<OfVolume> = named.filter(|volume| volume.statistics.requests > 0).collect();
    volumes.sort_by(|a, b| natural(&a.volume, &b.volume));
    let Provenance { format, bad_records, .. } = provenance;
    let report = Report { trace: input.name(), format, bad_records, all, volumes };
    if let Some(path) = path {
        output::file(path, &page::page(&report).html())?;
    }
    if *json {
        output::json(&report)?;
    } else {
        let of_volumes = if *by_volume { format!("\n{}", rows(&report.volumes)) } else { String::new() };
        output::text(&format!(
            "{} ({})\n\n{}\n{}\n{}{of_volumes}",
            report.trace,
            report.format,
            numbers(&report.all),
            spreads(&report.all),
            note(&report.all)
        ))?;
    }
    Ok(Exit::Clean)
}

fn numbers(all: &Statistics) -> Table {
    let per_s = |rate: Option<f64>, write: fn(f64) -> String| rate.map_or("unknown".into(), write);
    let moved = |requests: u64, bytes: u64| {
        format!("{requests} ({}), {}", percent(requests as f64 / all.requests.max(1) as f64), Bytes(bytes))
    };
    let set = &all.working_set;
    let blocks = |count: u64| Bytes(count.saturating_mul(idlewise::trace::stats::BLOCK)).to_string();
    Table::of_pairs([
        ("requests", all.requests.to_string()),
        ("span", seconds(all.span_s)),
        ("requests per second", per_s(all.requests_per_s, number)),
        ("throughput", per_s(all.bytes_per_s, |rate| Rate(rate as u64).to_string())),
        ("reads", moved(all.reads.requests, all.reads.bytes)),
        ("writes", moved(all.writes.requests, all.writes.bytes)),
        ("sequential", percent(all.sequential_share)),
        ("working set read", blocks(set.read)),
        ("working set written", blocks(set.written)),
        ("working set touched", blocks(set.touched)),
    ])
}

/// A row for each distribution.
fn spreads(all: &Statistics) -> Table {
    let mut table = Table::new(["", "mean", "p50", "p90", "p99", "max"]);
    let mut row = |name: &str, spread: Option<Spread>, write: fn(f64) -> String| {
        let Some(Spread { mean, p50, p90, p99, max }) = spread else { return };
        let mut cells = vec![name.to_string()];
        cells.extend([mean, p50, p90, p99, max].map(write));
        table.rows.push(cells);
    };
    let bytes = |value: f64| Bytes(value.round() as u64).to_string();
    row("read size", all.reads.size_bytes, bytes);
    row("write size", all.writes.size_bytes, bytes);
    row("between arrivals", all.between_arrivals_s, seconds);
    row("response time (Q2C)", all.q2c_s, seconds);
    row("arrival to issue (Q2D)", all.q2d_s, seconds);
    row("issue to completion (D2C)", all.d2c_s, seconds);
    row("queue depth", all.queue_depth, number);
    table
}

fn note(all: &Statistics) -> String {
    let mut note = "Percentiles are at most 1/256 too low. Sequential requests begin where the one before them on the same volume \
                    ended.\n"
        .to_string();
    note += if all.working_set.exact {
        "The working set is exact, in blocks of 4 KiB.\n"
    } else {
        "The working set is an estimate from a sample of the disk, in blocks of 4 KiB.\n"
    };
    if all.q2c_s.is_none() {
        note += "The trace has no response times: queue depth and response times are unknown.\n";
    }
    note
}

/// A row for each volume.
fn rows(volumes: &[OfVolume]) -> Table {
    let mut table = Table::new(["volume", "requests", "reads", "read", "written", "sequential", "Q2C p99", "touched"]);
    let unknown = |text: Option<String>| text.unwrap_or_else(|| "unknown".into());
    for OfVolume { volume, statistics: s } in volumes {
        table.row([
            volume.clone(),
            s.requests.to_string(),
            percent(s.reads.requests as f64 / s.requests.max(1) as f64),
            Bytes(s.reads.bytes).to_string(),
            Bytes(s.writes.bytes).to_string(),
            percent(s.sequential_share),
            unknown(s.q2c_s.map(|spread| seconds(spread.p99))),
            Bytes(s.working_set.touched.saturating_mul(idlewise::trace::stats::BLOCK)).to_string(),
        ]);
    }
    table
}
