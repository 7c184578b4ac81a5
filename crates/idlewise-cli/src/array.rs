//! `idlewise array`: how long an array keeps its data, by how its disks are scrubbed.

mod drives;
mod text;

use std::path::PathBuf;

use idlewise::disk::DiskModel;
use idlewise::idle::Idleness;
use idlewise::reliability::{Layout, play};
use idlewise::tune::{Arrivals, Goal, TuneError, tune};
use idlewise::{Bytes, Nanos};
use serde::Serialize;

use crate::exit::{Exit, UsageError};
use crate::input::{DiskArguments, ReadArguments, formats_help};
use crate::output;
use crate::progress::Progress;
use drives::Drives;

/// Estimate how long an array keeps its data, by how its disks are scrubbed
///
/// With a TRACE, the scrub is tuned for each of the --goals on its idle times, as by `idlewise tune`: that gives the length of a pass.
/// Without a TRACE, --pass states it.
///
/// Disks fail at a constant rate and are rebuilt on a spare at once. An error that no one has seen is mended from the other disks, as long
/// as fewer have failed than may. Once as many have failed, what cannot be read of the others is lost. docs/model.md has the equations.
#[derive(clap::Args)]
#[command(after_help = formats_help())]
pub struct Arguments {
    /// The array and the number of its disks: raid5:N, raid6:N, raidz1:N to raidz3:N, or mirror:N
    #[arg(value_name = "ARRAY")]
    layout: Layout,

    /// Block I/O trace of its disks: files that are one trace together, a folder, a tar archive, or - for standard input. Each volume is a
    /// disk of its own
    #[arg(value_name = "TRACE")]
    traces: Vec<PathBuf>,

    /// How long a pass of the scrub takes, instead of a TRACE; several give a row each
    #[arg(
        long,
        value_name = "TIMES",
        value_delimiter = ',',
        conflicts_with = "traces",
        required_unless_present = "traces"
    )]
    pass: Vec<Nanos>,

    /// Mean slowdowns to tune for, with a TRACE
    #[arg(long, value_name = "TIMES", value_delimiter = ',', default_value = "500us,1ms,2ms")]
    goals: Vec<Nanos>,

    /// Longest slowdown that any foreground request may suffer, with a TRACE
    #[arg(long, value_name = "TIME", default_value = "50ms")]
    max_slowdown: Nanos,

    #[command(flatten)]
    read: ReadArguments,

    #[command(flatten)]
    disk: DiskArguments,

    #[command(flatten)]
    drives: Drives,

    /// The likelihood of a loss is told for so long
    #[arg(long, value_name = "TIME", default_value = "3652d")]
    within: Nanos,

    /// Also play the array out failure by failure, so many times (Monte Carlo). A cycle is from one failure to all disks being sound
    #[arg(long, value_name = "CYCLES")]
    play: Option<u32>,

    /// Seed of the random numbers
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// Write an HTML page with a chart
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,

    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

/// The fields of `array --json`.
#[derive(Serialize)]
struct Report {
    /// Its kind and number of disks, such as `raid6:10`.
    array: String,
    /// Its disks.
    disks: u32,
    /// How many of them may fail.
    may_fail: u32,
    /// Size of each disk.
    capacity_bytes: u64,
    /// Mean time until a disk fails.
    failure_s: f64,
    /// Mean time until latent errors come to a disk.
    latent_s: f64,
    /// The likelihood of a loss is that of so many seconds.
    within_s: f64,
    /// Without scrubs first, then a row for each pass or goal.
    rows: Vec<Row>,
}

/// A way to scrub.
#[derive(Serialize)]
struct Row {
    /// The mean slowdown that was tuned for, with a TRACE.
    #[serde(skip_serializing_if = "Option::is_none")]
    goal_mean_slowdown_s: Option<f64>,
    /// Length of a pass; absent where nothing is scrubbed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pass_s: Option<f64>,
    /// Mean time that a latent error stays unseen.
    unseen_s: f64,
    /// How long a rebuild takes.
    rebuild_s: f64,
    /// Mean time to data loss.
    mttdl_s: f64,
    /// How likely data are lost within that time.
    loss_within: f64,
    /// Share of the losses that are of all data, and not of what could not be read.
    of_everything: f64,
    /// With `--play`.
    #[serde(skip_serializing_if = "Option::is_none")]
    played_out: Option<Played>,
}

#[derive(Serialize)]
struct Played {
    /// Absent where nothing was lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    mttdl_s: Option<f64>,
    /// Half of the 99 % interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    margin_s: Option<f64>,
    /// Cycles that ended in a loss.
    losses: u32,
    /// Cycles that were played.
    cycles: u32,
    /// Seed of the random numbers.
    seed: u64,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    output::check_all(&arguments.traces, &[arguments.report.as_deref()])?;
    arguments.check()?;
    let mut rows = vec![arguments.row(None, None)];
    if arguments.traces.is_empty() {
        rows.extend(arguments.pass.iter().map(|pass| arguments.row(None, Some(pass.as_secs_f64()))));
    } else {
        let input = arguments.read.idleness(&arguments.traces, arguments.disk.model()?)?;
        for &goal in &arguments.goals {
            let pass_s = arguments.tuned(goal, &input.disks, &input.model)?;
            rows.push(arguments.row(Some(goal), pass_s));
        }
    }
    let disks = arguments.drives.all().array(arguments.layout, None);
    let report = Report {
        array: arguments.layout.to_string(),
        disks: arguments.layout.disks(),
        may_fail: arguments.layout.may_fail(),
        capacity_bytes: arguments.drives.capacity.0,
        failure_s: disks.failure_s,
        latent_s: disks.latent_s,
        within_s: arguments.within.as_secs_f64(),
        rows,
    };
    if let Some(path) = &arguments.report {
        output::file(path, &text::page(&report, arguments).html())?;
    }
    if arguments.json {
        output::json(&report)?;
    } else {
        let table = text::table(&report).to_string();
        output::text(&(text::lead(&report, arguments) + "\n" + &table + &text::played(&report)))?;
    }
    Ok(Exit::Clean)
}

impl Arguments {
    fn check(&self) -> Result<(), UsageError> {
        let Drives { capacity, read_errors, rebuild, age, .. } = &self.drives;
        let zero = |time: &Nanos| *time == Nanos::ZERO;
        match () {
            () if *capacity == Bytes(0) => Err(UsageError("--capacity must be above zero".into())),
            () if self.pass.iter().chain(&self.goals).chain(rebuild).chain([age, &self.within]).any(zero) => {
                Err(UsageError("--pass, --goals, --rebuild, --age and --within must be above zero".into()))
            }
            () if read_errors.is_some_and(|bits| !(1e6..=1e30).contains(&bits)) => {
                Err(UsageError("--read-errors is a number of bits from 1e6 to 1e30, such as 1e15".into()))
            }
            () if self.play == Some(0) => Err(UsageError("--play must be above zero".into())),
            () => Ok(()),
        }
    }

    /// How long a pass takes at this mean slowdown, on the mean of the disks: each is tuned by itself. Nothing where that leaves one of them
    /// no time for it.
    fn tuned(&self, mean: Nanos, disks: &[Idleness], model: &DiskModel) -> anyhow::Result<Option<f64>> {
        let progress = Progress::new("tuning");
        let goal = Goal::new(mean, self.max_slowdown);
        let mut sum_s = 0.0;
        for (done, disk) in disks.iter().enumerate() {
            let share = |part: f64| progress.share((done as f64 + part) / disks.len() as f64);
            let plan = match tune(std::slice::from_ref(disk), model, &goal, Arrivals::Recorded, &share) {
                Err(TuneError::NoIdleTime) => return Ok(None),
                other => other?,
            };
            let rate = plan.outcome.scrubbed.0 as f64 / disk.span().as_secs_f64();
            if rate <= 0.0 || !rate.is_finite() {
                return Ok(None);
            }
            sum_s += self.drives.capacity.0 as f64 / rate;
        }
        Ok((!disks.is_empty()).then(|| sum_s / disks.len() as f64))
    }

    fn row(&self, goal: Option<Nanos>, pass_s: Option<f64>) -> Row {
        let array = self.drives.all().array(self.layout, pass_s);
        let losses = array.losses();
        let played_out = self.play.map(|cycles| {
            let played = play(&array, cycles, self.seed);
            let any = (played.losses.0 > 0).then_some(played.mttdl);
            let (mttdl_s, margin_s) = (any.map(|any| any.mean_s), any.map(|any| any.margin_s));
            Played { mttdl_s, margin_s, losses: played.losses.0, cycles, seed: self.seed }
        });
        Row {
            goal_mean_slowdown_s: goal.map(Nanos::as_secs_f64),
            pass_s,
            unseen_s: array.unseen_s,
            rebuild_s: array.rebuild_s,
            mttdl_s: losses.mttdl_s,
            loss_within: losses.within(self.within.as_secs_f64()),
            of_everything: losses.of_everything,
            played_out,
        }
    }
}
