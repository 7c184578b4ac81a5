//! `idlewise simulate`: one policy with given parameters on a trace.

use idlewise::idle::Idleness;
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

    /// Predicted length that an interval must exceed (ar, ar-waiting)
    #[arg(long, value_name = "TIME")]
    threshold: Option<Nanos>,

    /// Share of the intervals to use, the longest, such as 0.1 (oracle)
    #[arg(long, value_name = "SHARE")]
    longest: Option<f64>,

    /// Factor from one request size to the next (exponential, linear)
    #[arg(long, value_name = "FACTOR")]
    growth: Option<f64>,

    /// What each request is larger than that (linear)
    #[arg(long, value_name = "SIZE")]
    increment: Option<Bytes>,

    /// Idle time from which on requests are as large as they may be (swapping)
    #[arg(long, value_name = "TIME")]
    swap_at: Option<Nanos>,

    /// Size that no growing request exceeds [default: 4MiB]
    #[arg(long, value_name = "SIZE")]
    largest_size: Option<Bytes>,

    /// Hold the policy, whichever it is, within this mean slowdown: it pauses while its account is overdrawn
    #[arg(long, value_name = "TIME")]
    budget: Option<Nanos>,

    /// Say what it does to each volume too
    #[arg(long)]
    by_volume: bool,

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
    /// Each disk for itself, with `--by-volume`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    volumes: Vec<Volume>,
}

#[derive(Serialize)]
struct Volume {
    volume: String,
    #[serde(flatten)]
    summary: Summary,
}

fn policies_and_formats() -> String {
    let policies = list("Policies", POLICIES.iter().map(|entry| (entry.name, entry.about)));
    format!("{policies}\n\n{}", formats_help())
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let parameters = arguments.parameters();
    let check =
        |disk: &Idleness| build(&arguments.policy, &parameters, disk).map_err(|error| UsageError(error.to_string()));
    check(&Idleness::default())?;
    let input = arguments.input.read()?;
    let make = |disk: &Idleness| check(disk).expect("built a moment ago");
    let summary = |disks: &[Idleness]| Summary::new(&simulate(disks, &input.model, make), disks);
    let of_one = |disk: &Idleness| Volume { volume: disk.volume.clone(), summary: summary(std::slice::from_ref(disk)) };
    let report = Report {
        policy: arguments.policy.clone(),
        summary: summary(&input.disks),
        volumes: input.disks.iter().filter(|_| arguments.by_volume).map(of_one).collect(),
        source: input.source,
    };
    if arguments.json {
        output::json(&report)?;
    } else {
        let title =
            format!("{}policy {}, simulated on {}\n\n", report.source.line(), report.policy, report.source.disk);
        output::text(&(title + &table(&report).to_string()))?;
    }
    Ok(Exit::Clean)
}

impl Arguments {
    fn parameters(&self) -> Parameters {
        Parameters {
            request_size: self.request_size,
            idle_wait: self.idle_wait,
            delay: self.delay,
            threshold: self.threshold,
            longest: self.longest,
            growth: self.growth,
            increment: self.increment,
            swap_at: self.swap_at,
            largest_size: self.largest_size,
            budget: self.budget,
        }
    }
}

/// A column for all, and one for each volume if asked for.
fn table(report: &Report) -> Table {
    let mut columns = vec![("all", &report.summary)];
    columns.extend(report.volumes.iter().map(|volume| (volume.volume.as_str(), &volume.summary)));
    let mut table = Table { head: Vec::new(), rows: Vec::new() };
    if !report.volumes.is_empty() {
        table.head = std::iter::once("").chain(columns.iter().map(|(name, _)| *name)).map(String::from).collect();
    }
    let mut row = |name: &str, cell: &dyn Fn(&Summary) -> String| {
        let cells = columns.iter().map(|(_, summary)| cell(summary));
        table.rows.push(std::iter::once(name.to_string()).chain(cells).collect());
    };
    row("scrubbed", &|s| Bytes(s.scrubbed_bytes).to_string());
    row("throughput", &|s| Rate(s.throughput_bytes_per_s as u64).to_string());
    row("mean slowdown", &|s| seconds(s.mean_slowdown_s));
    row("max slowdown", &|s| seconds(s.max_slowdown_s));
    row("background requests", &|s| s.background_requests.to_string());
    row("collisions", &|s| s.collisions.to_string());
    row("  per foreground request", &|s| format!("{:.2} %", s.collision_rate * 100.0));
    row("idle time used", &|s| format!("{:.2} %", s.utilised_idle * 100.0));
    if report.summary.relative_delay.is_some() {
        row("relative delay", &|s| s.relative_delay.map_or("-".into(), |delay| format!("{:.2} %", delay * 100.0)));
    }
    table
}

/// Seconds as people read them.
pub fn seconds(value: f64) -> String {
    Nanos((value * 1e9).round() as u64).to_string()
}
