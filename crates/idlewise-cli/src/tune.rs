//! `idlewise tune`: request size and idle wait for a slowdown goal.

mod aim;
mod page;
mod text;
mod volumes;
mod words;

use std::path::PathBuf;

use idlewise::idle::Idleness;
use idlewise::simulate::{Run, Summary, scrub};
use idlewise::tune::{
    Arrivals, Baseline, FrontierPoint, Goal, PlanFile, Predicted, Schedule, Validation, baselines, baselines_of_plan,
    frontier, mean_to_keep, steps_or, tune,
};
use idlewise::{Bytes, Nanos};
use serde::Serialize;

use crate::exit::{Exit, UsageError};
use crate::explore::halves;
use crate::input::{Input, Source, TraceOnDisk, formats_help};
use crate::output;
use crate::progress::Progress;
use crate::simulate::seconds;
use crate::trace_file::PartPaths;

/// Choose the request size and idle wait with which a scrub is fastest within a slowdown goal
#[derive(clap::Args)]
#[command(after_help = formats_help())]
pub struct Arguments {
    #[command(flatten)]
    input: TraceOnDisk,

    #[command(flatten)]
    aim: aim::AimArguments,

    /// Size of all disks of the trace together, from which the time of a full pass is computed
    #[arg(long, value_name = "SIZE", default_value = "10TB")]
    capacity: Bytes,

    /// Keep the goal also if foreground requests arrive at other moments than recorded. Use it for plans that will be run, and for
    /// short traces
    #[arg(long)]
    any_moment: bool,

    /// Make a plan for each volume, each with the whole slowdown goal and the whole capacity, and print a row for each
    #[arg(long)]
    by_volume: bool,

    /// With --by-volume: print CSV instead of a table
    #[arg(long, requires = "by_volume", conflicts_with = "json")]
    csv: bool,

    /// Also fit steps: waits and sizes that change with elapsed idle time. They are taken if they scrub more on parts of the trace
    /// that they were not fitted to
    #[arg(long)]
    shaped: bool,

    /// Tune on this first part of the trace, such as 0.5 of its time, and show what the plan does on the rest
    #[arg(long, value_name = "SHARE")]
    train: Option<f64>,

    /// Write an HTML page with throughput against slowdown for all sizes
    #[arg(long, value_name = "FILE.html", conflicts_with = "by_volume")]
    report: Option<PathBuf>,

    /// Write the plan to a file, which `idlewise scrub --plan` takes. With --by-volume, one file for each volume, with its name
    /// before the ending
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
    /// What the goal is the gentlest for.
    #[serde(skip_serializing_if = "Option::is_none")]
    gentlest_for: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    volume: Option<String>,
    goal: GoalSeconds,
    /// Only for what is said.
    #[serde(skip)]
    any_moment: bool,
    capacity_bytes: u64,
    #[serde(flatten)]
    chosen: Row,
    /// Where steps were taken.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    steps: Vec<StepSeconds>,
    /// Length between short and long intervals, where steps differ after them.
    #[serde(skip_serializing_if = "Option::is_none")]
    steps_border_s: Option<f64>,
    /// With `--shaped`.
    #[serde(skip_serializing_if = "Option::is_none")]
    validation: Option<Validation>,
    /// With `--train`: what a plan tuned on the rest itself does there.
    #[serde(skip_serializing_if = "Option::is_none")]
    exact: Option<Row>,
    baselines: Vec<Named>,
    reasons: String,
    warnings: Vec<String>,
    /// Where the goal allows no work: one that would.
    #[serde(skip_serializing_if = "Option::is_none")]
    goal_needed_s: Option<f64>,
    /// With `--goal mttdl`: mean time to data loss with passes of this length.
    #[serde(skip_serializing_if = "Option::is_none")]
    mttdl_s: Option<f64>,
    /// With `--out`: the file that the plan was written to.
    #[serde(rename = "plan_file", skip_serializing_if = "Option::is_none")]
    written: Option<String>,
    /// With `--report`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    frontier: Vec<FrontierPoint>,
}

#[derive(Serialize)]
struct GoalSeconds {
    mean_slowdown_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    p99_slowdown_s: Option<f64>,
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
    slowdown_p99_s: f64,
    /// Unknown where nothing is scrubbed.
    full_pass_s: Option<f64>,
}

/// A step of a plan.
#[derive(Serialize)]
struct StepSeconds {
    /// `short` or `long`, the interval before.
    after: &'static str,
    from_s: f64,
    /// Waits where there is none.
    request_size_bytes: Option<u64>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    output::check_all(&arguments.input.paths(), &[arguments.out.as_deref(), arguments.report.as_deref()])?;
    arguments.aim.check()?;
    if arguments.capacity == Bytes(0) {
        return Err(UsageError("--capacity must be above zero".into()).into());
    }
    let input = arguments.input.read()?;
    let parts: Vec<&[Idleness]> =
        if arguments.by_volume { input.disks.chunks(1).collect() } else { vec![&input.disks] };
    let mut reports = Vec::new();
    let mut paths = arguments.out.clone().map(PartPaths::new);
    for disks in parts {
        let of_volume = paths.as_mut().filter(|_| arguments.by_volume).map(|paths| paths.of(&disks[0].volume));
        if let Some(path) = of_volume.as_deref().filter(|path| !output::is_free(path)) {
            output::check_all(&arguments.input.paths(), &[Some(path)])?;
        }
        reports.push(arguments.report(disks, &input, of_volume.or_else(|| arguments.out.clone()))?);
    }
    match (&reports[..], arguments.json) {
        ([report], true) if !arguments.by_volume => output::json(report)?,
        (reports, true) => output::json(&reports)?,
        (reports, false) if arguments.csv => output::text(&volumes::as_csv(reports))?,
        (reports, false) if arguments.by_volume => output::text(&volumes::text(reports))?,
        (reports, false) => output::text(&reports.iter().map(text::text).collect::<String>())?,
    }
    Ok(Exit::Clean)
}

/// What was chosen for some disks.
struct Chosen {
    schedule: Schedule,
    validation: Option<Validation>,
}

impl Arguments {
    fn arrivals(&self) -> Arrivals {
        if self.any_moment { Arrivals::AnyMoment } else { Arrivals::Recorded }
    }

    /// One wait and one size, or steps if asked for and if they are worth it.
    fn choose(&self, disks: &[Idleness], input: &Input, goal: &Goal) -> anyhow::Result<Chosen> {
        let progress = Progress::new("tuning");
        let plan = tune(disks, &input.model, goal, self.arrivals(), &|done| progress.share(done))?;
        drop(progress);
        if !self.shaped {
            return Ok(Chosen { schedule: Schedule::Waiting(plan.policy()), validation: None });
        }
        let progress = Progress::new("validating");
        let (schedule, validation) = steps_or(&plan, disks, &input.model, goal, &|done| progress.share(done));
        Ok(Chosen { schedule, validation: Some(validation) })
    }

    /// Tunes for some disks, writes the plan and the page.
    fn report(&self, disks: &[Idleness], input: &Input, out: Option<PathBuf>) -> anyhow::Result<Report> {
        let model = &input.model;
        let volume = disks.first().filter(|_| self.by_volume).map(|disk| disk.volume.clone());
        let aimed = |disks: &[Idleness]| self.aim.goal(disks, model, self.arrivals(), self.capacity);
        let (goal, chosen, rest, exact) = match self.train {
            None => {
                let goal = aimed(disks)?;
                (goal, self.choose(disks, input, &goal)?, disks.to_vec(), None)
            }
            Some(share) => {
                let (first, rest) = halves(disks, share)?;
                let goal = aimed(&first)?;
                let exact = self.choose(&rest, input, &goal)?;
                (goal, self.choose(&first, input, &goal)?, rest, Some(exact))
            }
        };
        let run = |schedule: &Schedule| scrub(&rest, model, goal.p99_slowdown, |_| schedule.policy());
        let row = |schedule: &Schedule, run: &Run| {
            self.row(schedule.first(), Summary::new(&run.outcome, &rest), run.slowdown_p99(goal.p99_slowdown))
        };
        let Chosen { schedule, validation } = chosen;
        let run_of_plan = run(&schedule);
        let (outcome, row_of_plan) = (run_of_plan.outcome, row(&schedule, &run_of_plan));
        let row_mttdl = self.aim.mttdl_s(row_of_plan.full_pass_s);
        let nothing = outcome.background_requests == 0;
        // A plan that does nothing here would still work live.
        let mut written = None;
        if let Some(path) = out.filter(|_| !nothing) {
            let p99 = run_of_plan.slowdown_p99(goal.p99_slowdown);
            let predicted = Predicted::new(&row_of_plan.summary, p99, &goal);
            let file = PlanFile::new(&schedule, goal, predicted, &input.source.trace, &model.name);
            output::file(&path, &file.to_toml())?;
            written = Some(path.display().to_string());
        }
        let named = |base: Baseline| Named {
            name: base.name,
            row: self.row((base.request_size, base.wait), base.summary, base.slowdown_p99),
        };
        let mut usual = baselines(&rest, model);
        if !nothing {
            let mean = row_of_plan.summary.mean_slowdown_s;
            usual.extend(baselines_of_plan(&rest, model, schedule.first().0, mean));
        }
        let needed = || self.aim.needed(&rest, model, &goal, self.arrivals()).map(Nanos::as_secs_f64);
        let mut report = Report {
            goal: GoalSeconds {
                mean_slowdown_s: goal.mean_slowdown.as_secs_f64(),
                p99_slowdown_s: goal.p99_slowdown.map(Nanos::as_secs_f64),
                max_slowdown_s: goal.max_slowdown.as_secs_f64(),
            },
            any_moment: self.any_moment,
            volume,
            gentlest_for: self.aim.line(),
            capacity_bytes: self.capacity.0,
            chosen: row_of_plan,
            steps: steps(&schedule),
            steps_border_s: match &schedule {
                Schedule::Shaped(shaped) if shaped.after_short != shaped.after_long => {
                    Some(shaped.border.as_secs_f64())
                }
                _ => None,
            },
            validation,
            exact: exact.map(|exact| row(&exact.schedule, &run(&exact.schedule))),
            baselines: usual.into_iter().map(named).collect(),
            reasons: if nothing { String::new() } else { words::reasons(&schedule, &outcome, &rest, model) },
            warnings: words::warnings(&outcome, &rest, self.arrivals()),
            goal_needed_s: nothing.then(needed).flatten(),
            mttdl_s: row_mttdl,
            frontier: Vec::new(),
            written,
            source: input.source.clone(),
        };
        if !goal.allows(&rest).keeps(&outcome) {
            let chosen = &report.chosen;
            let p99 = goal.p99_slowdown.map(|_| format!(", p99 {}", seconds(chosen.slowdown_p99_s)));
            let slowdown =
                format!("mean slowdown {}{}", seconds(chosen.summary.mean_slowdown_s), p99.unwrap_or_default());
            report.warnings.insert(0, format!("the plan does not keep its goal on the rest: {slowdown}"));
        }
        if nothing && self.out.is_some() {
            report.warnings.push("no plan was written".into());
        }
        if rest.len() > 1 {
            report.warnings.push(format!(
                "one plan for {} disks together; --volume NAME tunes for one of them, --by-volume for each",
                rest.len()
            ));
        }
        if let Some(path) = &self.report {
            let progress = Progress::new("frontier");
            report.frontier = frontier(&rest, model, goal.max_slowdown, self.arrivals(), &|done| progress.share(done));
            drop(progress);
            let title = format!("A scrub of {}", report.source.trace);
            let summary = &report.chosen.summary;
            let mean = match schedule {
                Schedule::Waiting(waiting) => mean_to_keep(&rest, model, waiting, self.arrivals()).as_secs_f64(),
                Schedule::Shaped(_) => summary.mean_slowdown_s,
            };
            let point = (mean, summary.throughput_bytes_per_s);
            let page = page::page(
                title,
                text::lead(&report),
                format!("{}\n({}.)", text::words(&report), text::columns(&report)),
                text::table(&report),
                &report.frontier,
                point,
                self.arrivals(),
            );
            output::file(path, &page.html())?;
        }
        Ok(report)
    }

    fn row(&self, (size, wait): (Bytes, Nanos), summary: Summary, slowdown_p99: Nanos) -> Row {
        Row {
            request_size_bytes: size.0,
            idle_wait_s: wait.as_secs_f64(),
            full_pass_s: Some(self.capacity.0 as f64 / summary.throughput_bytes_per_s).filter(|s| s.is_finite()),
            summary,
            slowdown_p99_s: slowdown_p99.as_secs_f64(),
        }
    }
}

fn steps(schedule: &Schedule) -> Vec<StepSeconds> {
    let Schedule::Shaped(shaped) = schedule else { return Vec::new() };
    let of = |after, steps: &[idlewise::policy::shaped::Step]| {
        let step = |step: &idlewise::policy::shaped::Step| StepSeconds {
            after,
            from_s: step.from.as_secs_f64(),
            request_size_bytes: step.size.map(|size| size.0),
        };
        steps.iter().map(step).collect::<Vec<_>>()
    };
    let long = if shaped.after_long == shaped.after_short { Vec::new() } else { of("long", &shaped.after_long) };
    of("short", &shaped.after_short).into_iter().chain(long).collect()
}
