//! `idlewise scrub`: verify devices in their idle times.

mod bar;
pub mod content;
mod goal;
mod job;
mod kept;
mod many;
mod result;
mod way;
pub mod words;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser};
use idlewise::disk::DiskModel;
use idlewise::order::{Name, ORDERS, Order};
use idlewise::policy::Waiting;
use idlewise::tune::{Goal, Predicted, Schedule};
use idlewise::{Bytes, Nanos, Rate};
use idlewise_linux::device::Device;
use idlewise_linux::device::verify::VERIFIERS;
use idlewise_linux::scrub::{RateCap, StateFolder};

use crate::exit::{Exit, UsageError};
use crate::input::{disk_model, plan_file};
use crate::live::{MonitorName, Second, stop_flag};
use crate::output::say;
use goal::Wanted;
use job::Job;

/// Verify disks in their idle times, so that foreground requests keep their response times. Read-only
///
/// For a goal, it measures each disk, watches its foreground requests for a while, chooses request size and idle wait, and chooses
/// again every minute. Without a goal it uses a default for the kind of disk, and prints it. You can also give a plan of `idlewise
/// tune`, or a request size and an idle wait. After an interruption, the next run goes on from there; after a complete pass, it begins
/// a new one.
///
/// An account keeps the mean slowdown within the goal: each foreground request adds the allowed mean to it, and each delay is deducted.
/// The scrub pauses while the account holds less than one more delay may cost.
#[derive(clap::Args)]
pub struct Arguments {
    /// Block devices, such as /dev/sda; they may be in use. Instead of them, --all takes every disk
    #[arg(value_name = "DEVICE")]
    devices: Vec<PathBuf>,

    /// Scrub all non-removable disks of this machine
    #[arg(long, conflicts_with = "devices")]
    all: bool,

    /// Number of disks of one array that are scrubbed at the same time
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    per_array: u64,

    /// Mean added response time that foreground requests may suffer, such as 1ms
    ///
    /// The mean is over all foreground requests, not only over those that are delayed. [default: 1ms for a hard disk, 10us for an
    /// SSD or NVMe disk; none with --request-size]
    #[arg(long, value_name = "TIME")]
    mean_slowdown: Option<Nanos>,

    /// Longest added response time that 99 % of all foreground requests may suffer, such as 10ms [default: none]
    ///
    /// At most one request in a hundred may be slowed by more. Requests that are not delayed count as well. The scrub pauses while one
    /// more delay could make them too many.
    #[arg(long, value_name = "TIME")]
    p99_slowdown: Option<Nanos>,

    /// Longest added response time that any foreground request may suffer, such as 50ms [default: 50ms for a hard disk, 5ms for
    /// an SSD, 1ms for an NVMe disk; none with --request-size]
    #[arg(long, value_name = "TIME")]
    max_slowdown: Option<Nanos>,

    /// Choose the smallest mean slowdown with which the pass ends this long after it began, such as 14d
    ///
    /// It is chosen once, from what --observe sees. If too little is seen, or no mean slowdown is enough, the scrub says so and keeps
    /// the default.
    #[arg(long, value_name = "TIME", conflicts_with_all = ["mean_slowdown", "plan", "request_size"])]
    finish_within: Option<Nanos>,

    /// Stop after this long, such as 6h, with exit code 4; the next run goes on with the pass
    #[arg(long = "for", value_name = "TIME")]
    run_for: Option<Nanos>,

    /// Highest scrub rate of all disks of this command together, such as 100MB/s
    #[arg(long, value_name = "RATE")]
    max_rate: Option<Rate>,

    /// Highest number of disks that are scrubbed at the same time [default: all]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    jobs: Option<u64>,

    /// Take request size and idle wait from a plan that `idlewise tune --out` wrote
    #[arg(long, value_name = "FILE", conflicts_with_all = ["request_size", "idle_wait", "mean_slowdown", "p99_slowdown", "max_slowdown"])]
    plan: Option<PathBuf>,

    /// Size of each request, such as 512KiB
    #[arg(long, value_name = "SIZE", requires = "idle_wait")]
    request_size: Option<Bytes>,

    /// Idle time before the first request, such as 100ms
    #[arg(long, value_name = "TIME", requires = "request_size")]
    idle_wait: Option<Nanos>,

    /// How request size and idle wait are adjusted to a goal
    #[arg(long, value_enum, default_value_t, conflicts_with_all = ["plan", "request_size"])]
    policy: PolicyName,

    /// How long to watch the foreground before choosing size and wait [default: 60s]
    #[arg(long, value_name = "TIME", conflicts_with_all = ["plan", "request_size"])]
    observe: Option<Nanos>,

    /// Disk model in TOML, instead of measuring the device
    #[arg(long, value_name = "FILE", conflicts_with_all = ["plan", "request_size"])]
    disk: Option<PathBuf>,

    /// In which order to visit the device
    #[arg(long, value_name = "NAME", value_parser = order_names(), default_value = "sequential")]
    order: String,

    /// Staggered: how many regions to visit in turn [default: 128]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    regions: Option<u64>,

    /// Staggered: how much of a region to visit before the next one [default: 1MiB]
    #[arg(long, value_name = "SIZE")]
    visit: Option<Bytes>,

    /// How to verify [default: the first way below that works]
    #[arg(long, value_name = "NAME", value_parser = verifier_names())]
    verifier: Option<String>,

    /// Whose checksums to compare the data with
    ///
    /// A disk that answers without an error may answer wrongly. A file system that keeps checksums of its data is asked for them while it is
    /// mounted, and what differs is an error of kind `checksum` or `tree-block`. The members of an array of md or LVM are compared with each other: what does not fit is
    /// an error of kind `differs`.
    #[arg(long, value_name = "NAME", value_parser = content::names(), default_value = "auto")]
    content: String,

    /// Do not read what the file system says is free: of a mounted btrfs, ext4 or XFS
    ///
    /// An unreadable sector that is free is then found when it is used again. What cannot be asked is read.
    #[arg(long)]
    skip_free: bool,

    /// How to watch for foreground requests
    #[arg(long, value_enum, default_value_t)]
    monitor: MonitorName,

    /// Begin a new pass, whatever the checkpoint says
    #[arg(long)]
    restart: bool,

    /// Folder of the checkpoints [default: /var/lib/idlewise, or ~/.local/state/idlewise without root]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,

    /// Only show what would be scrubbed, and how
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
    /// Tune again every minute, on the idle intervals seen so far
    #[default]
    Waiting,
    /// Adjust after each idle interval, with what the account of the slowdown allows
    Adaptive,
}

fn order_names() -> PossibleValuesParser {
    ORDERS.iter().map(|entry| PossibleValue::new(entry.name).help(sentence(entry.about))).into()
}

fn verifier_names() -> PossibleValuesParser {
    VERIFIERS.iter().map(|method| PossibleValue::new(method.name).help(method.about)).into()
}

/// The same that begins with a capital.
pub fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// How request size and idle wait come about.
#[derive(Clone)]
enum Pace {
    /// With the goal that it was made for, if any.
    Given(Schedule, Option<Predicted>, Option<Goal>),
    Learnt(Option<DiskModel>, PolicyName),
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    arguments.check()?;
    idlewise_linux::put_back_what_is_left();
    // While files are read that may never end, Ctrl-C still ends the process.
    let pace = arguments.pace()?;
    let stop = stop_flag(Second::Ends)?;
    let job = Job {
        pace,
        wanted: arguments.wanted(),
        cap: arguments.max_rate.map(RateCap::new),
        time_is_over: arguments.run_for.map(|time| stop_after(time, stop.clone())).transpose()?,
        order: arguments.order(),
        verifier: arguments.verifier.clone(),
        content: arguments.content.clone(),
        skip_free: arguments.skip_free,
        monitor: arguments.monitor,
        observe: arguments.observe.unwrap_or(Nanos::from_secs(60)),
        restart: arguments.restart,
        states: StateFolder::choose(arguments.state_dir.clone()),
        stop,
    };
    let devices = if arguments.all { Device::all() } else { arguments.devices.clone() };
    match &devices[..] {
        [] => {
            say!("idlewise: this machine has no non-removable disk");
            Ok(Exit::NothingToDo)
        }
        devices if arguments.dry_run => many::dry_run(&job, devices, arguments.all, arguments.json),
        [device] if !arguments.all => job.alone(device, arguments.quiet, arguments.json),
        devices => {
            let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
            let at_once =
                many::AtOnce { per_array: count(arguments.per_array), jobs: arguments.jobs.map_or(usize::MAX, count) };
            many::run(&job, devices, &at_once, arguments.quiet, arguments.json)
        }
    }
}

/// No disk reads the smallest request sooner: that were more than 13 GB/s.
const SHORTEST_MAX: Nanos = Nanos::from_micros(5);

/// Sets `stop` after so long, and the flag that says so.
fn stop_after(time: Nanos, stop: Arc<AtomicBool>) -> anyhow::Result<Arc<AtomicBool>> {
    let over = Arc::new(AtomicBool::new(false));
    let told = over.clone();
    // It ends with the process, whenever that is.
    let count = move || {
        std::thread::sleep(Duration::from_nanos(time.0));
        told.store(true, Ordering::Relaxed);
        stop.store(true, Ordering::Relaxed);
    };
    std::thread::Builder::new().spawn(count).context("a thread for --for")?;
    Ok(over)
}

impl Arguments {
    fn wanted(&self) -> Wanted {
        let Self { mean_slowdown, p99_slowdown, max_slowdown, finish_within, .. } = *self;
        Wanted { mean_slowdown, p99_slowdown, max_slowdown, finish_within }
    }

    /// Something must be scrubbed, zero is no time and no rate, and an option that changes nothing is a mistake.
    fn check(&self) -> Result<(), UsageError> {
        let none = self.devices.is_empty() && !self.all;
        let wrong = [
            ("name a device, such as /dev/sda, or use --all for every disk of this machine", none),
            ("--finish-within must be above zero, such as 14d", self.finish_within == Some(Nanos::ZERO)),
            ("--for must be above zero, such as 6h", self.run_for == Some(Nanos::ZERO)),
            ("--max-rate must be above zero, such as 100MB/s", self.max_rate == Some(Rate(0))),
            (
                "--max-slowdown is below what any disk takes for a request: allow at least 5us",
                self.max_slowdown.is_some_and(|max| max < SHORTEST_MAX),
            ),
        ];
        let odd = !self.in_regions() && (self.regions.is_some() || self.visit.is_some());
        let odd = [("--regions and --visit are for an order in regions, such as --order staggered", odd)];
        let wrong = wrong.into_iter().chain(odd).find(|(_, wrong)| *wrong);
        wrong.map_or(Ok(()), |(text, _)| Err(UsageError(text.into())))
    }

    fn order(&self) -> Order {
        let name = Name::known(&self.order).expect("clap looked it up");
        let regions = self.in_regions().then(|| self.regions.unwrap_or(128));
        Order { name, regions, visit: regions.map(|_| self.visit.unwrap_or(Bytes(1 << 20))) }
    }

    fn in_regions(&self) -> bool {
        ORDERS.get(&self.order).is_some_and(|entry| entry.in_regions)
    }

    fn pace(&self) -> anyhow::Result<Pace> {
        if let Some(path) = &self.plan {
            let plan = plan_file(path)?;
            return Ok(Pace::Given(plan.schedule(), Some(plan.predicted), Some(plan.goal)));
        }
        if let Some((request_size, idle_wait)) = self.request_size.zip(self.idle_wait) {
            const LARGEST: Bytes = Bytes(64 << 20);
            if request_size == Bytes(0) || request_size > LARGEST {
                return Err(UsageError("--request-size must be above zero and at most 64 MiB".into()).into());
            }
            return Ok(Pace::Given(Schedule::Waiting(Waiting { idle_wait, request_size }), None, None));
        }
        let model = self.disk.as_deref().map(|path| disk_model(Some(path))).transpose()?;
        Ok(Pace::Learnt(model, self.policy))
    }
}
