//! `idlewise scrub`: verify a device in its idle times.

mod bar;
mod result;

use std::path::PathBuf;

use idlewise::disk::DiskModel;
use idlewise::order::Sequential;
use idlewise::policy::Waiting;
use idlewise::tune::{Goal, Predicted, Schedule};
use idlewise::{Bytes, Nanos};
use idlewise_linux::device::Device;
use idlewise_linux::monitor::now;
use idlewise_linux::scrub::{Pacing, Report, Scrubber, State, StateFolder};

use crate::exit::{Exit, UsageError};
use crate::input::{disk_model, plan_file};
use crate::live::{MonitorName, open_device, open_monitor, stop_flag};
use bar::Bar;
use result::Result;

/// Verify a device by reading it, in its idle times, so that the foreground keeps its response times. Read-only
///
/// Give a goal, and it measures the disk, watches the foreground for a while, chooses request size and idle wait, and
/// chooses again every minute. Or give the plan of `idlewise tune`, or size and wait. Interrupted, it goes on where it
/// was when run again.
#[derive(clap::Args)]
pub struct Arguments {
    /// Block device, such as /dev/sda; it may be in use
    device: PathBuf,

    /// Mean added response time that foreground requests may suffer, such as 1ms
    #[arg(long, value_name = "TIME", requires = "max_slowdown")]
    mean_slowdown: Option<Nanos>,

    /// Longest added response time that any foreground request may suffer, such as 50ms
    #[arg(long, value_name = "TIME", requires = "mean_slowdown")]
    max_slowdown: Option<Nanos>,

    /// Take request size and idle wait from a plan that `idlewise tune --out` wrote
    #[arg(long, value_name = "FILE", conflicts_with_all = ["request_size", "idle_wait", "mean_slowdown", "max_slowdown"])]
    plan: Option<PathBuf>,

    /// Size of each request, such as 512KiB
    #[arg(long, value_name = "SIZE", requires = "idle_wait")]
    request_size: Option<Bytes>,

    /// Idle time before the first request, such as 100ms
    #[arg(long, value_name = "TIME", requires = "request_size")]
    idle_wait: Option<Nanos>,

    /// How long to watch the foreground before choosing size and wait
    #[arg(long, value_name = "TIME", default_value = "60s")]
    observe: Nanos,

    /// Disk model in TOML, instead of measuring the device
    #[arg(long, value_name = "FILE")]
    disk: Option<PathBuf>,

    /// How to watch for foreground requests
    #[arg(long, value_enum, default_value_t)]
    monitor: MonitorName,

    /// Begin a new pass, whatever the checkpoint says
    #[arg(long)]
    restart: bool,

    /// Folder of the checkpoints [default: /var/lib/idlewise, or ~/.local/state/idlewise without root]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,

    /// No progress on standard error
    #[arg(long, short)]
    quiet: bool,

    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// How request size and idle wait come about.
enum Pace {
    Given(Schedule, Option<Predicted>),
    Learnt(Goal, Option<DiskModel>),
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let (pace, goal) = arguments.pace()?;
    let stop = stop_flag()?;
    let device = open_device(&arguments.device)?;
    if device.size == Bytes(0) {
        eprintln!("idlewise: {}: the device is empty", device.path.display());
        return Ok(Exit::NothingToDo);
    }
    check_size(&pace, &device)?;
    let mut checkpoint =
        StateFolder::choose(arguments.state_dir.clone()).open(&device, "sequential", arguments.restart)?;
    let monitor = open_monitor(&device, arguments.monitor)?;
    let sizes = if let Pace::Given(schedule, _) = &pace { schedule.sizes() } else { Vec::new() };
    let largest = sizes.into_iter().max().unwrap_or_default();
    let mut scrubber = Scrubber::new(&device, monitor, &stop, largest)?;
    let mut order = Sequential::new(device.size, checkpoint.position());
    let mut bar = Bar::new(arguments.quiet, &device);
    let resumed = checkpoint.position();
    let (pacing, planned) = match pace {
        Pace::Given(schedule, predicted) => {
            (Some(Pacing::fixed(schedule, goal.map(|goal| goal.mean_slowdown))), predicted)
        }
        Pace::Learnt(goal, model) => (learn(&mut scrubber, goal, model, arguments.observe, &mut bar)?, None),
    };
    let (report, predicted) = match pacing {
        Some(mut pacing) => {
            let report = scrubber.run(&mut order, &mut pacing, &mut checkpoint, &mut |progress| bar.show(progress))?;
            (report, planned.or(pacing.predicted()))
        }
        None => (Report::before_the_first_request(&checkpoint, *scrubber.foreground().measured()), None),
    };
    drop(bar);
    let names = [scrubber.verifier(), "sequential", scrubber.monitor()];
    Result::new(&device, &report, names, goal, predicted, resumed).print(arguments.json)?;
    match report.state {
        State::Complete if report.errors.is_empty() => Ok(Exit::Clean),
        State::Complete => Ok(Exit::ErrorsFound),
        State::Failed => {
            let failure = report.failure.unwrap_or_default();
            Err(anyhow::anyhow!(
                "{}: the device failed at byte {}: {failure}",
                device.path.display(),
                report.verified.0
            ))
        }
        State::Interrupted | State::Running => Ok(Exit::Interrupted),
    }
}

/// Measures the disk and watches the foreground, then chooses; `None` when asked to stop.
fn learn(
    scrubber: &mut Scrubber,
    goal: Goal,
    model: Option<DiskModel>,
    observe: Nanos,
    bar: &mut Bar,
) -> anyhow::Result<Option<Pacing>> {
    let mut watch = |doing, done| bar.learn(doing, done);
    let measured = match model {
        Some(model) => Some(model),
        None => scrubber.curve("this device", goal.max_slowdown, &mut watch)?,
    };
    let Some(model) = measured else { return Ok(None) };
    goal.check(&model)?;
    let stopped = scrubber.observe(observe, &mut watch)?;
    if stopped {
        return Ok(None);
    }
    Ok(Some(Pacing::tuned(goal, model, scrubber.foreground(), now())?))
}

/// Requests must be whole blocks.
fn check_size(pace: &Pace, device: &Device) -> anyhow::Result<()> {
    let Pace::Given(schedule, _) = pace else { return Ok(()) };
    let odd = schedule.sizes().into_iter().find(|size| !size.0.is_multiple_of(u64::from(device.block)));
    let Some(size) = odd else { return Ok(()) };
    let name = device.path.display();
    Err(UsageError(format!("{name}: request size {size} is no multiple of its {} byte blocks", device.block)).into())
}

impl Arguments {
    fn pace(&self) -> anyhow::Result<(Pace, Option<Goal>)> {
        let usage = |text: &str| UsageError(text.into());
        let goal = self.mean_slowdown.zip(self.max_slowdown);
        let goal = goal.map(|(mean_slowdown, max_slowdown)| Goal { mean_slowdown, max_slowdown });
        if let Some(path) = &self.plan {
            let plan = plan_file(path)?;
            return Ok((Pace::Given(plan.schedule(), Some(plan.predicted)), goal.or(Some(plan.goal))));
        }
        if let Some((request_size, idle_wait)) = self.request_size.zip(self.idle_wait) {
            const LARGEST: Bytes = Bytes(64 << 20);
            if request_size == Bytes(0) || request_size > LARGEST {
                return Err(usage("--request-size must be above zero and at most 64MiB").into());
            }
            return Ok((Pace::Given(Schedule::Waiting(Waiting { idle_wait, request_size }), None), goal));
        }
        let how =
            "say how to pace it: --mean-slowdown and --max-slowdown, or --plan, or --request-size and --idle-wait";
        let goal = goal.ok_or_else(|| usage(how))?;
        let model = self.disk.as_deref().map(|path| disk_model(Some(path))).transpose()?;
        Ok((Pace::Learnt(goal, model), Some(goal)))
    }
}
