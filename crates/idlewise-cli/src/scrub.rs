//! `idlewise scrub`: verify devices in their idle times.

mod bar;
mod job;
mod kept;
mod many;
mod result;
pub mod words;

use std::path::PathBuf;

use clap::ValueEnum;
use idlewise::disk::DiskModel;
use idlewise::order::Order;
use idlewise::policy::Waiting;
use idlewise::tune::{Goal, Predicted, Schedule};
use idlewise::{Bytes, Nanos};
use idlewise_linux::device::Device;
use idlewise_linux::device::verify::VERIFIERS;
use idlewise_linux::scrub::StateFolder;

use crate::exit::{Exit, UsageError};
use crate::input::{disk_model, plan_file};
use crate::live::{MonitorName, stop_flag};
use crate::output::say;
use job::Job;

/// Verify devices in their idle times, so that the foreground keeps its response times. Read-only
///
/// Give a goal, and it measures each disk, watches its foreground for a while, chooses request size and idle wait, and
/// chooses again every minute. Or give the plan of `idlewise tune`, or size and wait. Interrupted, it goes on where it
/// was when run again.
#[derive(clap::Args)]
pub struct Arguments {
    /// Block devices, such as /dev/sda; they may be in use
    #[arg(required_unless_present = "all", value_name = "DEVICE")]
    devices: Vec<PathBuf>,

    /// Every disk of this machine whose medium stays in it
    #[arg(long, conflicts_with = "devices")]
    all: bool,

    /// Disks of one array that are scrubbed at the same time
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    per_array: usize,

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

    /// With a goal: how request size and idle wait follow what the foreground does
    #[arg(long, value_enum, default_value_t, conflicts_with_all = ["plan", "request_size"])]
    policy: PolicyName,

    /// How long to watch the foreground before choosing size and wait
    #[arg(long, value_name = "TIME", default_value = "60s")]
    observe: Nanos,

    /// Disk model in TOML, instead of measuring the device
    #[arg(long, value_name = "FILE")]
    disk: Option<PathBuf>,

    /// In which order to visit the device
    #[arg(long, value_enum, default_value_t)]
    order: OrderName,

    /// Staggered: how many regions to visit in turn
    #[arg(long, value_name = "COUNT", default_value_t = 128, value_parser = clap::value_parser!(u64).range(1..))]
    regions: u64,

    /// Staggered: how much of a region to visit before the next one
    #[arg(long, value_name = "SIZE", default_value = "1MiB")]
    visit: Bytes,

    /// How to verify, instead of the first way that works
    #[arg(long, value_name = "NAME", value_parser = verifier_names())]
    verifier: Option<String>,

    /// How to watch for foreground requests
    #[arg(long, value_enum, default_value_t)]
    monitor: MonitorName,

    /// Begin a new pass, whatever the checkpoint says
    #[arg(long)]
    restart: bool,

    /// Folder of the checkpoints [default: /var/lib/idlewise, or ~/.local/state/idlewise without root]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,

    /// Say what would be scrubbed, and how, and end
    #[arg(long)]
    dry_run: bool,

    /// No progress on standard error
    #[arg(long, short)]
    quiet: bool,

    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// The choice of a policy on the command line.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum PolicyName {
    /// Tuned again every minute, on the idle intervals seen so far
    #[default]
    Waiting,
    /// Tunes itself as intervals go by, with what the account of the slowdown allows
    Adaptive,
}

/// The choice of an order on the command line.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum OrderName {
    /// From the first byte to the last
    #[default]
    Sequential,
    /// A piece of each region in turn; when a block is unreadable, its whole region at once
    Staggered,
}

fn verifier_names() -> clap::builder::PossibleValuesParser {
    VERIFIERS.map(|method| clap::builder::PossibleValue::new(method.name).help(method.about)).into()
}

/// How request size and idle wait come about.
#[derive(Clone)]
enum Pace {
    Given(Schedule, Option<Predicted>),
    Learnt(Goal, Option<DiskModel>, PolicyName),
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let (pace, goal) = arguments.pace()?;
    let job = Job {
        pace,
        goal,
        order: arguments.order(),
        verifier: arguments.verifier.clone(),
        monitor: arguments.monitor,
        observe: arguments.observe,
        restart: arguments.restart,
        states: StateFolder::choose(arguments.state_dir.clone()),
        stop: stop_flag()?,
    };
    let devices = if arguments.all { Device::all() } else { arguments.devices.clone() };
    match &devices[..] {
        [] => {
            say!("idlewise: this machine has no disk whose medium stays in it");
            Ok(Exit::NothingToDo)
        }
        devices if arguments.dry_run => many::dry_run(&job, devices, arguments.json),
        [device] if !arguments.all => job.alone(device, arguments.quiet, arguments.json),
        devices => many::run(&job, devices, arguments.per_array, arguments.quiet, arguments.json),
    }
}

impl Arguments {
    fn order(&self) -> Order {
        match self.order {
            OrderName::Sequential => Order::SEQUENTIAL,
            OrderName::Staggered => Order::staggered(self.regions, self.visit),
        }
    }

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
        Ok((Pace::Learnt(goal, model, self.policy), Some(goal)))
    }
}
