//! `idlewise trace`: what is in a trace.

use clap::Subcommand;
use idlewise::report::Table;
use idlewise::trace::{Op, Trace};
use idlewise::{Bytes, Nanos};
use serde::Serialize;

use crate::exit::Exit;
use crate::input::{TraceArguments, formats_help};
use crate::output;
use crate::simulate::seconds;

/// Say what is in a trace
#[derive(clap::Args)]
#[command(after_help = formats_help())]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Info(Info),
}

/// Format, requests, span, clock, volumes, and holes that are no idle time
#[derive(clap::Args)]
#[command(after_help = formats_help())]
struct Info {
    #[command(flatten)]
    input: TraceArguments,

    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    trace: String,
    format: &'static str,
    compression: Option<&'static str>,
    requests: usize,
    bad_records: u64,
    span_s: f64,
    resolution_s: f64,
    has_response_times: bool,
    read_share: f64,
    bytes: u64,
    extent_bytes: u64,
    volumes: Vec<String>,
    sorted: bool,
    gaps: Vec<Gap>,
}

#[derive(Serialize)]
struct Gap {
    at_s: f64,
    length_s: f64,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let Command::Info(info) = &arguments.command;
    let trace = info.input.read()?;
    let report = Report::new(info.input.trace.display().to_string(), &trace);
    if info.json {
        output::json(&report)?
    } else {
        output::text(&report.text())?
    }
    Ok(Exit::Clean)
}

impl Report {
    fn new(name: String, trace: &Trace) -> Self {
        let reads = trace.columns.op.iter().filter(|&&op| op == Op::Read).count();
        // As everywhere, the span ends with the last completion, where completions are known.
        let end = trace.requests().map(|r| r.arrival.0.saturating_add(r.response.unwrap_or_default().0)).max();
        let gap = |gap: idlewise::trace::Gap| Gap { at_s: gap.at.as_secs_f64(), length_s: gap.length.as_secs_f64() };
        Self {
            trace: name,
            format: trace.format,
            compression: trace.compression,
            requests: trace.len(),
            bad_records: trace.bad_records,
            span_s: Nanos(end.unwrap_or(0)).as_secs_f64(),
            resolution_s: trace.resolution.as_secs_f64(),
            has_response_times: trace.has_response_times(),
            read_share: reads as f64 / trace.len().max(1) as f64,
            bytes: trace.columns.length.iter().map(|&length| u64::from(length)).sum(),
            extent_bytes: trace.extent().0,
            volumes: trace.columns.volumes.clone(),
            sorted: trace.was_sorted,
            gaps: trace.gaps().into_iter().map(gap).collect(),
        }
    }

    fn text(&self) -> String {
        const SHOWN: usize = 10;
        let volumes = match self.volumes.len() {
            count if count > SHOWN => format!("{count}: {}, ...", self.volumes[..SHOWN].join(", ")),
            count => format!("{count}: {}", self.volumes.join(", ")),
        };
        let table = Table::of_pairs([
            ("format", self.format.into()),
            ("compression", self.compression.unwrap_or("none").into()),
            ("requests", format!("{} ({:.1} % reads)", self.requests, self.read_share * 100.0)),
            ("bad records", self.bad_records.to_string()),
            ("data moved", Bytes(self.bytes).to_string()),
            ("reaches to", Bytes(self.extent_bytes).to_string()),
            ("span", seconds(self.span_s)),
            ("resolution", seconds(self.resolution_s)),
            ("response times", if self.has_response_times { "recorded" } else { "none" }.into()),
            ("in order", if self.sorted { "yes" } else { "no (sorted when read)" }.into()),
            ("volumes", volumes),
            ("holes", self.gaps.len().to_string()),
        ]);
        let holes = self.gaps.iter().map(|gap| format!("  at {} for {}\n", seconds(gap.at_s), seconds(gap.length_s)));
        format!("{}\n\n{table}{}", self.trace, holes.collect::<String>())
    }
}
