//! Is the promise kept? Loads of many kinds on disks of four kinds, with and without a scrub that knows nothing of them: `make promise`.

mod disks;
mod judged;
mod loads;
mod page;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use anyhow::{Context, ensure};
use clap::Parser;
use idlewise::Nanos;
use idlewise_testbed::lab::device::Device;
use idlewise_testbed::lab::found::Found;
use idlewise_testbed::lab::{markdown, side_by_side, stop_flag};
use idlewise_testbed::{EmulatedDisk, Options, Running, Tool};

use disks::{DISKS, Disk, SIZE};
use judged::Judged;
use loads::{LOADS, Load};

/// Measure whether idlewise keeps its goal beside loads of many kinds on emulated disks. Needs root and FUSE.
#[derive(Parser)]
struct Arguments {
    /// Length of each run, in seconds
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(5..=3600))]
    seconds: u64,

    /// Goals for the mean slowdown
    #[arg(long, value_delimiter = ',', default_values = ["500us", "1ms", "2ms"])]
    goals: Vec<Nanos>,

    /// Only loads whose names have this
    #[arg(long, default_value = "")]
    load: String,

    /// Only disks whose names have this
    #[arg(long, default_value = "")]
    disk: String,

    /// How long idlewise watches before it begins
    #[arg(long, default_value = "0s")]
    observe: Nanos,

    /// So many disks at a time: each takes a part of a processor
    #[arg(long, default_value_t = 1)]
    together: usize,

    /// Where the tables go
    #[arg(long, default_value = "docs/promise.md")]
    out: PathBuf,

    /// Go on with the runs of one that was interrupted, or had other loads, disks or goals
    #[arg(long)]
    resume: bool,

    /// Seed of places and think times
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=u64::from(u32::MAX)))]
    seed: u64,
}

fn main() {
    if let Err(error) = run(&Arguments::parse()) {
        eprintln!("promise: {error:#}");
        std::process::exit(1);
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let folder = PathBuf::from("experiments");
    std::fs::create_dir_all(&folder)?;
    let stop = stop_flag()?;
    let tool = Tool::beside_us()?;
    let loads = LOADS.iter().filter(|load| load.name.contains(&arguments.load));
    let (loads, missing): (Vec<_>, Vec<_>) = loads.partition(|load| load.is_there());
    missing.iter().for_each(|load| println!("{}: its trace is not here", load.name));
    let disks = DISKS.into_iter().filter(|disk| disk.name.contains(&arguments.disk));
    let (disks, missing): (Vec<_>, Vec<_>) = disks.partition(Disk::is_there);
    missing.iter().for_each(|disk| println!("{}: mkfs.btrfs is not here", disk.name));
    let (runs, seconds) = (disks.len() * loads.len() * (2 + arguments.goals.len()), arguments.seconds);
    let at_once = arguments.together.min(disks.len()).max(1);
    println!(
        "{runs} runs of {seconds} s, {at_once} at a time: about {} min. Seed {}.",
        runs as u64 * (seconds + 3) / 60 / at_once as u64 + 1,
        arguments.seed
    );
    let setting = format!(
        "{}: {seconds} s, {at_once} at a time, watched for {}, seed {}",
        tool.version()?,
        arguments.observe,
        arguments.seed
    );
    let rows = folder.join(arguments.out.file_name().context("a file for the tables")?).with_extension("jsonl");
    let found = Mutex::new(Found::open(&rows, &setting, arguments.resume)?);
    let trials = Trials { arguments, tool, loads, found, stop: &stop };
    side_by_side(&disks, at_once, &stop, |disk| trials.on(disk, &folder.join(disk.name)))?;
    let mut rows = trials.found.into_inner().expect("nobody panicked").rows;
    let place = |row: &Judged| {
        let disk = DISKS.iter().position(|disk| disk.name == row.disk);
        (disk, LOADS.iter().position(|load| load.name == row.load))
    };
    rows.sort_by(|a, b| place(a).cmp(&place(b)).then(a.goal.total_cmp(&b.goal)));
    let page = page::page(&rows, arguments)?;
    std::fs::write(&arguments.out, markdown(&page))?;
    println!("\nThe disks are emulated. Tables: {}", arguments.out.display());
    Ok(())
}

/// Everything that the trials share.
struct Trials<'a> {
    arguments: &'a Arguments,
    tool: Tool,
    loads: Vec<&'static Load>,
    found: Mutex<Found<Judged>>,
    stop: &'a AtomicBool,
}

impl Trials<'_> {
    fn found(&self) -> MutexGuard<'_, Found<Judged>> {
        self.found.lock().expect("nobody panicked")
    }

    /// All loads on a disk, beside scrubs with each goal that is not there yet.
    fn on(&self, disk: &Disk, folder: &Path) -> anyhow::Result<()> {
        std::fs::create_dir_all(folder)?;
        for load in &self.loads {
            let is_new = |goal: &&Nanos| !self.found().rows.iter().any(|row| row.is_of(disk.name, load.name, **goal));
            let goals: Vec<_> = self.arguments.goals.iter().filter(is_new).copied().collect();
            if !goals.is_empty() {
                self.beside(disk, load, &goals, folder)?;
            }
        }
        Ok(())
    }

    /// One load on a new disk: alone, beside a scrub with each goal, and alone again.
    fn beside(&self, disk: &Disk, load: &Load, goals: &[Nanos], folder: &Path) -> anyhow::Result<()> {
        let Arguments { seconds, seed, observe, .. } = *self.arguments;
        let emulated = EmulatedDisk::new(&Options { size: SIZE, timing: disk.timing, ..Options::default() })?;
        let device = Device::open(emulated.path())?;
        let _mounted = disk.fill(&device, folder)?;
        let mut foreground = load.make(&self.tool, &device, folder, !disk.is_btrfs, seconds, self.stop)?;
        let before = foreground.play(seconds, seed)?;
        let mut runs = Vec::new();
        for &goal in goals {
            ensure!(!self.stop.load(Ordering::Relaxed), "interrupted");
            let scrub = self.scrub(&device, goal, observe, &folder.join("state"))?;
            let beside = foreground.play(seconds, seed)?;
            scrub.interrupt()?;
            runs.push((goal, beside, scrub.finish().context(load.name)?));
        }
        let after = foreground.play(seconds, seed)?;
        for (goal, beside, said) in runs {
            let row = Judged::new(disk.name, load.name, goal, [&before, &after], &beside, &said);
            println!("    {}", row.line());
            self.found().add(row)?;
        }
        Ok(())
    }

    fn scrub(&self, device: &Device, goal: Nanos, observe: Nanos, state: &Path) -> anyhow::Result<Running> {
        let (goal, observe) = (format!("{}ns", goal.0), format!("{}ns", observe.0));
        let state = state.to_str().context("the folder's path is text")?;
        let goals = ["--mean-slowdown", &goal, "--max-slowdown", "50ms", "--observe", &observe];
        let others = ["--state-dir", state, "--restart", "--quiet", "--json"];
        self.tool.start(&[&["scrub", device.name()?], &goals[..], &others].concat())
    }
}
