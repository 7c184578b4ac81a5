//! Is the promise kept? Loads of many kinds on disks of three kinds, with and without a scrub that knows nothing of them: `make promise`.

mod found;
mod judged;
mod loads;
mod page;

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use anyhow::{Context, ensure};
use clap::Parser;
use idlewise::{Bytes, Nanos};
use idlewise_testbed::lab::device::Device;
use idlewise_testbed::lab::{markdown, stop_flag};
use idlewise_testbed::{EmulatedDisk, Options, Timing, Tool};

use found::Found;
use judged::Judged;
use loads::LOADS;

const REPORT: &str = "docs/promise.md";
const SIZE: Bytes = Bytes(8 << 30);
/// Real times are too short for the emulation.
const SLOWER: u64 = 20;
const DISKS: [(&str, Timing); 3] = [
    ("hard disk", Timing::HardDisk { queue: 1 }),
    ("hard disk, reordering", Timing::HardDisk { queue: 32 }),
    ("solid-state drive", Timing::Flash { slower: SLOWER }),
];

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
    let disks: Vec<_> = DISKS.into_iter().filter(|(name, _)| name.contains(&arguments.disk)).collect();
    let (runs, seconds) = (disks.len() * loads.len() * (2 + arguments.goals.len()), arguments.seconds);
    println!(
        "{runs} runs of {seconds} s: about {} min. Seed {}.",
        runs as u64 * (seconds + 3) / 60 + 1,
        arguments.seed
    );
    let setting =
        format!("{}: {seconds} s, watched for {}, seed {}", tool.version()?, arguments.observe, arguments.seed);
    let open = if arguments.resume { Found::resume } else { Found::begin };
    let mut found = open(&folder.join("promise.jsonl"), &setting)?;
    for (disk, timing) in disks {
        for load in &loads {
            let goals = arguments.goals.iter().filter(|goal| !found.has(disk, load.name, goal.as_secs_f64()));
            let goals: Vec<_> = goals.copied().collect();
            if goals.is_empty() {
                continue;
            }
            let emulated = EmulatedDisk::new(&Options { size: SIZE, timing, ..Options::default() })?;
            let device = Device::open(emulated.path())?;
            let mut foreground = load.make(&tool, &device, &folder, seconds, &stop)?;
            let before = foreground.play(seconds, arguments.seed)?;
            let mut runs = Vec::new();
            for goal in goals {
                ensure!(!stop.load(Ordering::Relaxed), "interrupted");
                let state = folder.join("state").display().to_string();
                let (goal_text, observe) = (format!("{}ns", goal.0), format!("{}ns", arguments.observe.0));
                let scrub = tool.start(&[
                    "scrub",
                    device.name()?,
                    "--mean-slowdown",
                    &goal_text,
                    "--max-slowdown",
                    "50ms",
                    "--observe",
                    &observe,
                    "--state-dir",
                    &state,
                    "--restart",
                    "--quiet",
                    "--json",
                ])?;
                let beside = foreground.play(seconds, arguments.seed)?;
                scrub.interrupt()?;
                let said = scrub.finish().context(load.name)?;
                runs.push((goal, beside, said));
            }
            let after = foreground.play(seconds, arguments.seed)?;
            for (goal, beside, said) in runs {
                let row = Judged::new(disk, load.name, goal, [&before, &after], &beside, &said);
                println!("    {}", row.line());
                found.add(row)?;
            }
        }
    }
    let place = |row: &Judged| {
        let disk = DISKS.iter().position(|(name, _)| *name == row.disk);
        (disk, LOADS.iter().position(|load| load.name == row.load))
    };
    found.rows.sort_by(|a, b| place(a).cmp(&place(b)).then(a.goal.total_cmp(&b.goal)));
    let page = page::page(&found.rows, arguments.seconds, arguments.observe)?;
    std::fs::write(REPORT, markdown(&page))?;
    println!("\nThe disks are emulated. Tables: {REPORT}");
    Ok(())
}
