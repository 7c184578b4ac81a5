//! `idlewise owner-scrub`: the own scrub of md, btrfs or ZFS, in the gaps.

mod report;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::builder::{PossibleValue, PossibleValuesParser};
use idlewise::report::percent;
use idlewise::{Bytes, Nanos};
use idlewise_linux::command::Why;
use idlewise_linux::device::{self, Device, Member};
use idlewise_linux::scrub::{Claim, StateFolder};
use idlewise_linux::scrubber::{Driven, DrivenSettings, Kind, Place, SCRUBBERS, SoFar};

use crate::exit::{Exit, UsageError};
use crate::gaps::{Limits, Line, worst};
use crate::live::{Second, open_device, stop_flag};
use crate::output::{self, say};
use crate::scrub::words::{idle_wait, named};
use report::Report;

/// How often its place is kept.
const KEEP: Duration = Duration::from_secs(30);
const NOT_KEPT: &str = "how far it is cannot be kept, so that the next run begins anew";

/// Let md, btrfs or ZFS scrub with its own scrub, in the idle times of its disks. Writes, so only with --allow-writes
///
/// `idlewise scrub` compares the data of md, LVM and btrfs itself, in requests of any size, and slows others least. This command is for those
/// who want the kernel to do it. The scrub goes on while nobody else uses its disks, and is held when somebody does. A foreground request
/// may wait until it is quiet: that is measured, and the account keeps the mean slowdown within the goal. After an interruption, the next
/// run goes on from there.
///
/// It writes: md's check rewrites what one member cannot read from the others, and notes in the superblocks how far it is. btrfs's scrub is
/// told to repair nothing, but each chunk commits a transaction. btrfs with RAID 5 or 6 is refused, as the kernel rewrites its parity
/// all the same. ZFS repairs what it finds wrong and can repair. It takes one to three seconds to pause, so it needs a --max-slowdown of 3s
/// or more; whoever reads from its pool meanwhile, or waits for a write, is taken to wait for as long as that.
#[derive(clap::Args)]
pub struct Arguments {
    /// An md array, such as /dev/md0, a device of a mounted btrfs, or a disk of a pool of ZFS
    device: PathBuf,

    /// Which scrub [default: md-gate for hard disks, md-steps for solid-state drives, zfs-gate for a pool of ZFS, btrfs-chunks for a btrfs]
    #[arg(long, value_name = "NAME", value_parser = names())]
    by: Option<String>,

    /// Really begin it. Without this option, show what would be done
    #[arg(long)]
    allow_writes: bool,

    #[command(flatten)]
    limits: Limits,

    /// Stop after this long, such as 6h, with exit code 4; the next run goes on from there
    #[arg(long = "for", value_name = "TIME")]
    run_for: Option<Nanos>,

    /// Begin at the beginning, whatever an earlier run has done
    #[arg(long)]
    restart: bool,

    /// Folder where its place is kept [default: /var/lib/idlewise, or ~/.local/state/idlewise without root]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,

    /// No progress on standard error
    #[arg(long, short)]
    quiet: bool,

    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

fn names() -> PossibleValuesParser {
    SCRUBBERS.iter().map(|kind| PossibleValue::new(kind.name).help(crate::scrub::sentence(kind.about))).into()
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    arguments.check()?;
    idlewise_linux::put_back_what_is_left();
    let device = open_device(&arguments.device)?;
    let name = device.path.display().to_string();
    let kind = arguments.kind(&device);
    let states = StateFolder::choose(arguments.state_dir.clone());
    let beginning = Place::beginning(kind, &device).with_context(|| name.clone())?;
    let before = beginning.clone().kept(&device, &states)?;
    // What was owed stays owed, wherever it begins.
    let accounts = before.accounts.clone();
    let place = if arguments.restart { beginning.clone() } else { before };
    arguments.accepts(kind, &device)?;
    let mut scrubber = (kind.begin)(&device, place).with_context(|| name.clone())?;
    let begun = scrubber.look().with_context(|| name.clone())?.place;
    if !arguments.allow_writes {
        say!("idlewise: {name}: would let {} go on from {}; it begins with --allow-writes", kind.name, begun);
        return Ok(Exit::NothingToDo);
    }
    // No scrub may meet it on its disks.
    let others = scrubber.others().with_context(|| name.clone())?;
    let _claims = Claim::around(std::iter::once(&device).chain(&others), &[], &states)?;
    let stop = stop_flag(Second::IsIgnored)?;
    let Limits { mean_slowdown, max_slowdown, idle_wait } = arguments.limits;
    let settings = DrivenSettings { mean_slowdown, max_slowdown, idle_wait };
    let mut driven = Driven::new(scrubber, settings, &accounts).with_context(|| name.clone())?;
    let mut line = Line::new(arguments.quiet, &name);
    if begun > Bytes(0) {
        line.say(&format!("goes on from {begun}"));
    }
    let keep = |so_far: &SoFar| beginning.clone().at(so_far).keep(&device, &states);
    let ended = until_over(&mut driven, arguments.run_for, &stop, &mut line, |so_far, is_first| {
        // To write it down on the pool that is scrubbed would have the scrub pause for that.
        let is_due = is_first || !kind.keeps_its_place;
        let kept = if is_due { keep(so_far) } else { Ok(()) };
        kept.err().map(|error| format!("{NOT_KEPT}: {error}"))
    });
    let stopped = driven.stop();
    let so_far = driven.so_far();
    drop(line);
    let kept = match ended {
        Ok(true) => Place::forget(&device, &states),
        _ => keep(&so_far),
    };
    let state = match ended {
        Ok(true) => "complete",
        Ok(false) => "interrupted",
        Err(_) => "failed",
    };
    let report = Report::new(&name, kind, &so_far, state);
    if arguments.json {
        output::json(&report)?
    } else {
        output::text(&report.text())?
    }
    let is_over = ended.with_context(|| name.clone())?;
    stopped.with_context(|| format!("{name}: what was set is not put back"))?;
    kept.with_context(|| format!("{name}: {NOT_KEPT}"))?;
    Ok(match (so_far.standing.wrong, is_over) {
        (1.., _) => Exit::ErrorsFound,
        // What was passed over may be wrong.
        (0, true) if so_far.standing.skipped > Bytes(0) => Exit::CouldNotRun,
        (0, true) => Exit::Clean,
        (0, false) => Exit::Interrupted,
    })
}

/// Drives it until it is over, or somebody wants it to end; whether it is over.
fn until_over(
    driven: &mut Driven,
    run_for: Option<Nanos>,
    stop: &AtomicBool,
    line: &mut Line,
    keep: impl Fn(&SoFar, bool) -> Option<String>,
) -> anyhow::Result<bool> {
    let began = Instant::now();
    // Once before it begins: who cannot keep it says so now.
    let mut kept: Option<Instant> = None;
    loop {
        if driven.turn()? {
            return Ok(true);
        }
        if stop.load(Ordering::Relaxed) || run_for.is_some_and(|time| began.elapsed() >= Duration::from(time)) {
            return Ok(false);
        }
        if kept.is_none_or(|kept| kept.elapsed() >= KEEP) {
            let is_first = kept.replace(Instant::now()).is_none();
            keep(&driven.so_far(), is_first).into_iter().for_each(|problem| line.say(&problem));
        }
        line.show(|| {
            let so_far = driven.so_far();
            (so_far.disks.clone(), pieces(&so_far))
        });
    }
}

impl Arguments {
    fn check(&self) -> Result<(), UsageError> {
        self.limits.check()?;
        match self.run_for {
            Some(Nanos::ZERO) => Err(UsageError("--for must be above zero, such as 6h".into())),
            _ => Ok(()),
        }
    }

    /// What is wished has to be possible with it.
    fn accepts(&self, kind: &Kind, device: &Device) -> Result<(), UsageError> {
        let Kind { name, slowest, keeps_its_place, .. } = *kind;
        let max = self.limits.max_slowdown.unwrap_or(device.kind().goal().max_slowdown);
        if let Some(slowest) = slowest.filter(|slowest| *slowest > max) {
            let seconds = slowest.as_secs_f64();
            return Err(UsageError(format!(
                "{name} may keep others waiting for {seconds} s, and the maximum slowdown is {max}; --max-slowdown {seconds}s accepts that"
            )));
        }
        if keeps_its_place && self.restart {
            return Err(UsageError(format!(
                "{name} goes on where its owner has paused it; for ZFS `zpool scrub -s POOL` ends such a scrub, and --restart does not"
            )));
        }
        Ok(())
    }

    fn kind(&self, device: &Device) -> &'static Kind {
        let of_the_device = || match (Path::new("/sys/block").join(device.name()).join("md").exists(), device.kind()) {
            (true, device::Kind::HardDisk) => "md-gate",
            (true, _) => "md-steps",
            (false, _) if matches!(device.member(), Some(Member::Zfs(_))) => "zfs-gate",
            (false, _) => "btrfs-chunks",
        };
        let name = self.by.as_deref().unwrap_or_else(of_the_device);
        SCRUBBERS.get(name).expect("clap looked it up, or it is in the table")
    }
}

/// The most important first.
fn pieces(so_far: &SoFar) -> Vec<String> {
    let doing = match so_far.why {
        Why::Runs => "at work".into(),
        Why::IdleWait { wait, .. } => idle_wait(Some(wait)),
        why => named(why.name()).to_owned(),
    };
    let share = so_far.standing.done.0 as f64 / so_far.standing.all.0.max(1) as f64;
    let mut pieces = vec![format!("{} of {}", percent(share), so_far.standing.all), doing];
    pieces.extend(worst(&so_far.disks));
    pieces
}
