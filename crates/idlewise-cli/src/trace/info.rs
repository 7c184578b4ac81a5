//! `idlewise trace info`: what is in a trace.

use idlewise::report::{Table, percent};
use idlewise::trace::{Columns, GapFinder, Op, Provenance, Volumes};
use idlewise::{Bytes, Nanos};
use serde::Serialize;

use crate::exit::Exit;
use crate::input::{TraceArguments, formats_help};
use crate::output;
use crate::simulate::seconds;

/// Show format, number of requests, span, clock, volumes and holes of a trace (a hole is a gap in the recording, not idle time)
#[derive(clap::Args)]
#[command(after_help = formats_help())]
pub struct Arguments {
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
    requests: u64,
    bad_records: u64,
    without_completion: u64,
    completions_without_arrival: u64,
    /// From the first arrival to the last completion, or arrival where that is not known.
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

/// What is counted while the trace streams by.
#[derive(Default)]
struct Count {
    requests: u64,
    reads: u64,
    responses: u64,
    bytes: u64,
    extent: u64,
    end: u64,
    gaps: GapFinder,
    volumes: Volumes,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let Arguments { input, json } = arguments;
    let begin = |_: &Provenance| Ok(Count::default());
    let take = |count: &mut Count, columns: Columns, _: &Provenance| {
        count.add(&columns);
        Ok(())
    };
    let (count, provenance) = input.read.stream(&input.traces, input.read.options(), begin, take)?;
    let volumes = input.read.chosen(&count.volumes);
    let report = Report::new(input.name(), count, &provenance, volumes);
    if *json {
        output::json(&report)?
    } else {
        output::text(&report.text())?
    }
    Ok(Exit::Clean)
}

impl Count {
    fn add(&mut self, columns: &Columns) {
        for request in columns.requests() {
            self.requests += 1;
            self.reads += u64::from(request.op == Op::Read);
            self.responses += u64::from(request.response.is_some());
            self.bytes += u64::from(request.length);
            self.extent = self.extent.max(request.offset.0.saturating_add(u64::from(request.length)));
            // As everywhere, the span ends with the last completion, where completions are known.
            self.end = self.end.max(request.arrival.0.saturating_add(request.response.unwrap_or_default().0));
            self.gaps.arrival(request.arrival);
        }
        self.volumes = columns.volumes.clone();
    }
}

impl Report {
    fn new(trace: String, count: Count, provenance: &Provenance, volumes: Vec<String>) -> Self {
        let gap = |gap: idlewise::trace::Gap| Gap { at_s: gap.at.as_secs_f64(), length_s: gap.length.as_secs_f64() };
        Self {
            trace,
            format: provenance.format,
            compression: provenance.compression,
            requests: count.requests,
            bad_records: provenance.bad_records,
            without_completion: provenance.unmatched.without_completion,
            completions_without_arrival: provenance.unmatched.without_arrival,
            span_s: Nanos(count.end).as_secs_f64(),
            resolution_s: provenance.resolution.as_secs_f64(),
            has_response_times: count.responses > 0,
            read_share: count.reads as f64 / count.requests.max(1) as f64,
            bytes: count.bytes,
            extent_bytes: count.extent,
            volumes,
            sorted: provenance.was_sorted,
            gaps: count.gaps.gaps().into_iter().map(gap).collect(),
        }
    }

    fn text(&self) -> String {
        // As many names as a line of a terminal holds.
        const WIDTH: usize = 50;
        let mut shown = 1;
        while shown < self.volumes.len() && self.volumes[..=shown].join(", ").len() <= WIDTH {
            shown += 1;
        }
        let more = if shown < self.volumes.len() { ", ..." } else { "" };
        let names = self.volumes.iter().take(shown).map(String::as_str).collect::<Vec<_>>().join(", ");
        let volumes = format!("{}: {names}{more}", self.volumes.len());
        let mut table = Table::of_pairs([
            ("format", self.format.into()),
            ("compression", self.compression.unwrap_or("none").into()),
            ("requests", format!("{} ({} reads)", self.requests, percent(self.read_share))),
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
        if self.without_completion + self.completions_without_arrival > 0 {
            let (requests, completions) = (self.without_completion, self.completions_without_arrival);
            table.row(["incomplete".into(), format!("{requests} requests, {completions} completions")]);
        }
        let holes = self.gaps.iter().map(|gap| format!("  at {} for {}\n", seconds(gap.at_s), seconds(gap.length_s)));
        let cut = if self.gaps.is_empty() { "" } else { "\n`idlewise trace cut --at-gaps 30min` splits it there.\n" };
        format!("{}\n\n{table}{}{cut}", self.trace, holes.collect::<String>())
    }
}
