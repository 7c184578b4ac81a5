//! `idlewise trace head`: the first requests of a trace.

use idlewise::Nanos;
use idlewise::report::Table;
use idlewise::trace::{Columns, Op, Reader, Request};
use serde::Serialize;

use crate::exit::Exit;
use crate::input::{TraceArguments, formats_help};
use crate::output;

/// Show the first requests, in order of arrival
#[derive(clap::Args)]
#[command(after_help = formats_help())]
pub struct Arguments {
    #[command(flatten)]
    input: TraceArguments,

    /// Number of requests
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 10)]
    requests: usize,

    /// Print a list of JSON objects instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    arrival_s: f64,
    issue_s: Option<f64>,
    completion_s: Option<f64>,
    volume: String,
    op: &'static str,
    offset_bytes: u64,
    length_bytes: u32,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let input = &arguments.input;
    let mut reader = Reader::open(&input.traces, &input.read.options())?;
    let mut first = Vec::new();
    while first.len() < arguments.requests
        && let Some(columns) = reader.next()?
    {
        let wanted = arguments.requests - first.len();
        first.extend(columns.requests().take(wanted).map(|request| row(&columns, request)));
    }
    if arguments.json {
        output::json(&first)?;
    } else {
        output::text(&table(&first).to_string())?;
    }
    Ok(Exit::Clean)
}

fn row(columns: &Columns, request: Request) -> Row {
    let after = |time: Option<Nanos>| time.map(|time| Nanos(request.arrival.0.saturating_add(time.0)).as_secs_f64());
    Row {
        arrival_s: request.arrival.as_secs_f64(),
        issue_s: after(request.queued),
        completion_s: after(request.response),
        volume: columns.volumes[usize::from(request.volume)].to_string(),
        op: if request.op == Op::Read { "read" } else { "write" },
        offset_bytes: request.offset.0,
        length_bytes: request.length,
    }
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(["arrival (s)", "issued after", "done after", "volume", "", "offset (B)", "bytes"]);
    for row in rows {
        let after = |time: Option<f64>| {
            time.map_or("-".into(), |time| Nanos(((time - row.arrival_s) * 1e9).round() as u64).to_string())
        };
        table.row([
            format!("{:.9}", row.arrival_s),
            after(row.issue_s),
            after(row.completion_s),
            row.volume.clone(),
            row.op.into(),
            row.offset_bytes.to_string(),
            row.length_bytes.to_string(),
        ]);
    }
    table
}
