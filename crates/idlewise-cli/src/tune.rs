//! `idlewise tune`: request size and idle wait for a slowdown goal.

use std::path::PathBuf;

use idlewise::idle::Idleness;
use idlewise::report::Table;
use idlewise::simulate::Summary;
use idlewise::tune::{Arrivals, Baseline, Goal, Plan, PlanFile, baselines, tune};
use idlewise::{Bytes, Nanos, Rate};
use serde::Serialize;

use crate::exit::Exit;
use crate::input::{Source, TraceOnDisk, formats_help};
use crate::output;
use crate::progress::Progress;
use crate::simulate::seconds;

/// Choose request size and idle wait so that a scrub is fastest while the slowdown stays within the goal
#[derive(clap::Args)]
#[command(after_help = formats_help())]
pub struct Arguments {
    #[command(flatten)]
    input: TraceOnDisk,

    /// Mean added response time that foreground requests may suffer, such as 1ms
    #[arg(long, value_name = "TIME")]
    mean_slowdown: Nanos,

    /// Longest added response time that any foreground request may suffer, such as 50ms
    #[arg(long, value_name = "TIME")]
    max_slowdown: Nanos,

    /// Size of all disks of the trace together, for the time that a full pass takes
    #[arg(long, value_name = "SIZE", default_value = "10TB")]
    capacity: Bytes,

    /// Keep the goal at whichever moment of a request foreground work arrives, not only at those recorded: for a plan that
    /// will be run, and for short traces
    #[arg(long)]
    any_moment: bool,

    /// Write the plan to a file that `idlewise scrub --plan` takes
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    source: Source,
    goal: GoalSeconds,
    capacity_bytes: u64,
    #[serde(flatten)]
    chosen: Row,
    baselines: Vec<Named>,
}

#[derive(Serialize)]
struct GoalSeconds {
    mean_slowdown_s: f64,
    max_slowdown_s: f64,
}

#[derive(Serialize)]
struct Named {
    name: &'static str,
    #[serde(flatten)]
    row: Row,
}

/// A schedule and what it does in simulation.
#[derive(Serialize)]
struct Row {
    request_size_bytes: u64,
    idle_wait_s: f64,
    #[serde(flatten)]
    summary: Summary,
    /// Unknown where nothing is scrubbed.
    full_pass_s: Option<f64>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    output::check(arguments.out.as_deref())?;
    let goal = Goal { mean_slowdown: arguments.mean_slowdown, max_slowdown: arguments.max_slowdown };
    let input = arguments.input.read()?;
    let progress = Progress::new("tuning");
    let arrivals = if arguments.any_moment { Arrivals::AnyMoment } else { Arrivals::Recorded };
    let plan = tune(&input.disks, &input.model, &goal, arrivals, &|done| progress.share(done))?;
    drop(progress);
    let summary = Summary::new(&plan.outcome, &input.disks);
    if let Some(path) = &arguments.out {
        let file = PlanFile::new(&plan, goal, &summary, &input.source.trace, &input.model.name);
        output::file(path, &file.to_toml())?;
    }
    let row = |size: Bytes, wait: Nanos, summary: Summary| Row {
        request_size_bytes: size.0,
        idle_wait_s: wait.as_secs_f64(),
        full_pass_s: Some(arguments.capacity.0 as f64 / summary.throughput_bytes_per_s).filter(|s| s.is_finite()),
        summary,
    };
    let named = |base: Baseline| Named { name: base.name, row: row(base.request_size, base.wait, base.summary) };
    let report = Report {
        goal: GoalSeconds {
            mean_slowdown_s: goal.mean_slowdown.as_secs_f64(),
            max_slowdown_s: goal.max_slowdown.as_secs_f64(),
        },
        capacity_bytes: arguments.capacity.0,
        chosen: row(plan.request_size, plan.idle_wait, summary),
        baselines: baselines(&input.disks, &input.model).into_iter().map(named).collect(),
        source: input.source,
    };
    if arguments.json {
        output::json(&report)?;
    } else {
        output::text(&text(&report, &plan, goal, &input.disks))?;
    }
    Ok(Exit::Clean)
}

fn text(report: &Report, plan: &Plan, goal: Goal, disks: &[Idleness]) -> String {
    let pass = format!("pass over {}", Bytes(report.capacity_bytes).decimal());
    let mut table = Table::new([
        "",
        "size",
        "idle wait",
        "throughput",
        "mean slowdown",
        "max slowdown",
        "collisions",
        "idle used",
        &pass,
    ]);
    let mut add = |name: &str, row: &Row| {
        let summary = &row.summary;
        table.row([
            name.into(),
            Bytes(row.request_size_bytes).to_string(),
            if name.starts_with("fixed") { "-".into() } else { seconds(row.idle_wait_s) },
            Rate(summary.throughput_bytes_per_s as u64).to_string(),
            seconds(summary.mean_slowdown_s),
            seconds(summary.max_slowdown_s),
            summary.collisions.to_string(),
            format!("{:.1} %", summary.utilised_idle * 100.0),
            row.full_pass_s.map_or("never".into(), |s| format!("{:.1} days", s / 86_400.0)),
        ]);
    };
    add("plan", &report.chosen);
    for baseline in &report.baselines {
        add(baseline.name, &baseline.row);
    }
    let mut text = format!(
        "{}goal: mean slowdown {}, max slowdown {}; simulated on {}\n\nPlan: once the disk has been idle for {}, issue \
         requests of {} back to back.\n\n{table}",
        report.source.line(),
        goal.mean_slowdown,
        goal.max_slowdown,
        report.source.disk,
        plan.idle_wait,
        plan.request_size,
    );
    if plan.outcome.background_requests == 0 {
        text += "\nThe goal allows no background work on this trace: allow a higher mean slowdown.\n";
    }
    if disks.len() > 1 {
        text += &format!("\nOne plan for {} disks together; --volume NAME tunes for one of them.\n", disks.len());
    }
    text
}
