//! `idlewise tune`: request size and idle wait for a slowdown goal.

use std::path::PathBuf;

use idlewise::idle::Idleness;
use idlewise::report::Table;
use idlewise::simulate::Summary;
use idlewise::tune::{Arrivals, Baseline, Goal, Plan, PlanFile, baselines, tune};
use idlewise::{Bytes, Nanos, Rate};
use serde::Serialize;

use crate::exit::Exit;
use crate::input::{Input, Source, TraceOnDisk, formats_help};
use crate::output;
use crate::progress::Progress;
use crate::simulate::seconds;
use crate::trace_file::part_path;

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

    /// A plan for each volume: each has the whole slowdown goal and the whole capacity
    #[arg(long)]
    by_volume: bool,

    /// Write the plan to a file that `idlewise scrub --plan` takes; with --by-volume one a volume, its name before the ending
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Print one JSON object instead of a table; with --by-volume a list of them
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    source: Source,
    #[serde(skip_serializing_if = "Option::is_none")]
    volume: Option<String>,
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
    let input = arguments.input.read()?;
    let parts: Vec<&[Idleness]> =
        if arguments.by_volume { input.disks.chunks(1).collect() } else { vec![&input.disks] };
    let mut reports = Vec::new();
    for disks in parts {
        reports.push(arguments.report(disks, &input)?);
    }
    match (&reports[..], arguments.json) {
        ([(report, _)], true) if !arguments.by_volume => output::json(report)?,
        (reports, true) => output::json(&reports.iter().map(|(report, _)| report).collect::<Vec<_>>())?,
        (reports, false) => {
            output::text(&reports.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("\n"))?
        }
    }
    Ok(Exit::Clean)
}

impl Arguments {
    /// Tunes for some disks, writes the plan, and says what it is.
    fn report(&self, disks: &[Idleness], input: &Input) -> anyhow::Result<(Report, String)> {
        let goal = Goal { mean_slowdown: self.mean_slowdown, max_slowdown: self.max_slowdown };
        let volume = disks.first().filter(|_| self.by_volume).map(|disk| disk.volume.clone());
        let progress = Progress::new("tuning");
        let arrivals = if self.any_moment { Arrivals::AnyMoment } else { Arrivals::Recorded };
        let plan = tune(disks, &input.model, &goal, arrivals, &|done| progress.share(done))?;
        drop(progress);
        let summary = Summary::new(&plan.outcome, disks);
        if let Some(path) = &self.out {
            let file = PlanFile::new(&plan, goal, &summary, &input.source.trace, &input.model.name);
            let path = volume.as_ref().map_or(path.clone(), |volume| part_path(path, volume));
            output::file(&path, &file.to_toml())?;
        }
        let row = |size: Bytes, wait: Nanos, summary: Summary| Row {
            request_size_bytes: size.0,
            idle_wait_s: wait.as_secs_f64(),
            full_pass_s: Some(self.capacity.0 as f64 / summary.throughput_bytes_per_s).filter(|s| s.is_finite()),
            summary,
        };
        let named = |base: Baseline| Named { name: base.name, row: row(base.request_size, base.wait, base.summary) };
        let report = Report {
            goal: GoalSeconds {
                mean_slowdown_s: goal.mean_slowdown.as_secs_f64(),
                max_slowdown_s: goal.max_slowdown.as_secs_f64(),
            },
            volume,
            capacity_bytes: self.capacity.0,
            chosen: row(plan.request_size, plan.idle_wait, summary),
            baselines: baselines(disks, &input.model).into_iter().map(named).collect(),
            source: input.source.clone(),
        };
        let text = text(&report, &plan, goal, disks);
        Ok((report, text))
    }
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
        "{}{}goal: mean slowdown {}, max slowdown {}; simulated on {}\n\nPlan: once the disk has been idle for {}, issue \
         requests of {} back to back.\n\n{table}",
        report.source.line(),
        report.volume.as_ref().map(|volume| format!("volume {volume}, ")).unwrap_or_default(),
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
        text += &format!(
            "\nOne plan for {} disks together; --volume NAME tunes for one of them, --by-volume for each.\n",
            disks.len()
        );
    }
    text
}
