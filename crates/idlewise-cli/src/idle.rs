//! `idlewise idle`: how idle a disk was.

use idlewise::Nanos;
use idlewise::idle::{Idleness, Statistics};
use idlewise::report::Table;
use serde::Serialize;

use crate::exit::Exit;
use crate::input::{Source, TraceOnDisk, formats_help};
use crate::output;

/// Say how idle the disk of a trace was: its idle intervals, and how much of them is left after waiting
#[derive(clap::Args)]
#[command(after_help = formats_help())]
pub struct Arguments {
    #[command(flatten)]
    input: TraceOnDisk,

    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    source: Source,
    #[serde(flatten)]
    all: Statistics,
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
    let input = arguments.input.read()?;
    let of_one = |disk: &Idleness| Volume {
        volume: disk.volume.clone(),
        statistics: Statistics::of(std::slice::from_ref(disk)),
    };
    let volumes = input.disks.iter().map(of_one);
    let report = Report { source: input.source, all: Statistics::of(&input.disks), volumes: volumes.collect() };
    if arguments.json {
        output::json(&report)?;
    } else {
        output::text(&(report.source.line() + "\n" + &table(&report).to_string()))?;
    }
    Ok(Exit::Clean)
}

/// A column for each volume, and one for all where there are several.
fn table(report: &Report) -> Table {
    let mut columns: Vec<(&str, &Statistics)> =
        report.volumes.iter().map(|volume| (volume.volume.as_str(), &volume.statistics)).collect();
    if columns.len() > 1 {
        columns.insert(0, ("all", &report.all));
    }
    let seconds = |value: f64| Nanos((value * 1e9).round() as u64).to_string();
    let percent = |value: f64| format!("{:.2} %", value * 100.0);
    let known = |value: Option<String>| value.unwrap_or_else(|| "-".into());
    let number = |value: f64| {
        if value.abs() < 1e-3 || value.abs() >= 1e6 { format!("{value:.3e}") } else { format!("{value:.4}") }
    };

    let mut table = Table { head: vec![String::new()], rows: Vec::new() };
    table.head.extend(columns.iter().map(|(name, _)| (*name).to_string()));
    let mut row = |name: &str, cell: &dyn Fn(&Statistics) -> String| {
        let cells = columns.iter().map(|(_, statistics)| cell(statistics));
        table.rows.push(std::iter::once(name.to_string()).chain(cells).collect());
    };
    row("requests", &|s| s.requests.to_string());
    row("span", &|s| seconds(s.span_s));
    row("utilisation", &|s| known(s.utilisation.map(percent)));
    row("idle intervals", &|s| s.idle_intervals.to_string());
    row("  mean length", &|s| known(s.idle_mean_s.map(seconds)));
    row("  variance (s²)", &|s| known(s.idle_variance_s2.map(number)));
    row("  coefficient of variation", &|s| known(s.idle_cov.map(number)));
    row("idle time in the 15 % longest", &|s| known(s.idle_share_longest_15pct.map(percent)));
    row("usable after waiting 10 ms", &|s| known(s.usable_after_10ms.map(percent)));
    row("usable after waiting 100 ms", &|s| known(s.usable_after_100ms.map(percent)));
    row("usable after waiting 1 s", &|s| known(s.usable_after_1s.map(percent)));
    table
}
