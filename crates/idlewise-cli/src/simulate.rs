//! `idlewise simulate`: one policy with given parameters on a trace.

use idlewise::policy::{POLICIES, Parameters, build};
use idlewise::report::Table;
use idlewise::simulate::{Summary, simulate};
use idlewise::{Bytes, Nanos, Rate};
use serde::Serialize;

use crate::exit::{Exit, UsageError};
use crate::input::{Source, TraceOnDisk, formats_help, list};
use crate::output;

/// Simulate one policy on a trace: what it would scrub, and what it would cost the foreground
#[derive(clap::Args)]
#[command(after_help = policies_and_formats())]
pub struct Arguments {
    #[command(flatten)]
    input: TraceOnDisk,

    /// Policy, one of those listed below
    #[arg(long, default_value = "waiting", value_name = "NAME")]
    policy: String,

    /// Idle time before the first background request, such as 100ms
    #[arg(long, value_name = "TIME")]
    idle_wait: Option<Nanos>,

    /// Size of each background request, such as 512KiB
    #[arg(long, value_name = "SIZE")]
    request_size: Option<Bytes>,

    /// Time from one background request to the next, such as 16ms
    #[arg(long, value_name = "TIME")]
    delay: Option<Nanos>,

    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    source: Source,
    policy: String,
    #[serde(flatten)]
    summary: Summary,
}

fn policies_and_formats() -> String {
    let policies = list("Policies", POLICIES.iter().map(|entry| (entry.name, entry.about)));
    format!("{policies}\n\n{}", formats_help())
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let Arguments { idle_wait, request_size, delay, .. } = *arguments;
    let parameters = Parameters { request_size, idle_wait, delay };
    build(&arguments.policy, &parameters).map_err(|error| UsageError(error.to_string()))?;
    let input = arguments.input.read()?;
    let make = || build(&arguments.policy, &parameters).expect("built a moment ago");
    let summary = Summary::new(&simulate(&input.disks, &input.model, make), &input.disks);
    let report = Report { source: input.source, policy: arguments.policy.clone(), summary };
    if arguments.json {
        output::json(&report)?;
    } else {
        let title =
            format!("{}policy {}, simulated on {}\n\n", report.source.line(), report.policy, report.source.disk);
        output::text(&(title + &table(&report.summary).to_string()))?;
    }
    Ok(Exit::Clean)
}

fn table(summary: &Summary) -> Table {
    let mut table = Table::of_pairs([
        ("scrubbed", Bytes(summary.scrubbed_bytes).to_string()),
        ("throughput", Rate(summary.throughput_bytes_per_s as u64).to_string()),
        ("mean slowdown", seconds(summary.mean_slowdown_s)),
        ("max slowdown", seconds(summary.max_slowdown_s)),
        ("background requests", summary.background_requests.to_string()),
        (
            "collisions",
            format!("{} ({:.2} % of foreground requests)", summary.collisions, summary.collision_rate * 100.0),
        ),
        ("idle time used", format!("{:.2} %", summary.utilised_idle * 100.0)),
    ]);
    if let Some(relative) = summary.relative_delay {
        table.row(["relative delay".into(), format!("{:.2} %", relative * 100.0)]);
    }
    table
}

/// Seconds as people read them.
pub fn seconds(value: f64) -> String {
    Nanos((value * 1e9).round() as u64).to_string()
}
