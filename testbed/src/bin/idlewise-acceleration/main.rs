//! What a plan is worth on a disk (SIGMETRICS 2015, section 6, all three steps): whole traces replayed on emulated disks, against their
//! plans: `make acceleration`.

mod page;
mod steps;

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{Context, ensure};
use clap::Parser;
use idlewise::Bytes;
use idlewise_testbed::lab::found::Found;
use idlewise_testbed::lab::{markdown, side_by_side, stop_flag};
use idlewise_testbed::{Timing, Tool};

use steps::{Compared, Run};

const REPORT: &str = "docs/acceleration.md";
/// Real times are too short for the emulation.
const SLOWER: u64 = 20;
const DISKS: [(&str, Timing); 2] =
    [("hard disk", Timing::HardDisk { queue: 1 }), ("solid-state drive", Timing::Flash { slower: SLOWER })];
/// Those of the shared traces that are busy for minutes and over in an hour, the longest first.
const TRACES: [(&str, &str); 9] = [
    ("phone, music", "nexus5/log131_music.txt.xz"),
    ("phone, called", "nexus5/log146_callIn.txt.xz"),
    ("phone, calling", "nexus5/log147_callout.txt.xz"),
    ("MySQL server", "blkreplay_linux-mysql.load.gz"),
    ("MS SQL server", "blkreplay_windows-mssql.load.gz"),
    ("phone, download", "nexus5/log156_download.txt.xz"),
    ("phone, Facebook", "nexus5/log191_facebook.txt.xz"),
    ("phone, Twitter", "nexus5/log186_twitter.txt.xz"),
    ("phone, e-mail", "nexus5/log111_email.txt.xz"),
];

/// Replay traces on emulated disks, each once whole and once by the intervals of its plan, and compare mean response times. Traces with
/// response times are replayed in open and in closed loop. Needs root and FUSE, and as long as the longest trace.
#[derive(Parser)]
struct Arguments {
    /// The traces [default: some of those in the folder IDLEWISE_TRACES]
    traces: Vec<PathBuf>,

    /// Only disks whose names have this
    #[arg(long, default_value = "")]
    disk: String,

    /// Size of the disks; places beyond are wrapped around
    #[arg(long, default_value = "64GiB")]
    size: Bytes,

    /// Size of their cache, for the warm-up; they have none, but the host's read-ahead is on them
    #[arg(long, default_value = "32MiB")]
    device_cache: Bytes,

    /// Seed of the lot
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// So many replays at a time: each has a disk of its own
    #[arg(long, default_value_t = 16)]
    together: usize,

    /// Go on with the runs of one that was interrupted
    #[arg(long)]
    resume: bool,
}

fn main() {
    if let Err(error) = run(&Arguments::parse()) {
        eprintln!("acceleration: {error:#}");
        std::process::exit(1);
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let folder = PathBuf::from("experiments");
    std::fs::create_dir_all(&folder)?;
    let (tool, stop) = (Tool::beside_us()?, stop_flag()?);
    let Arguments { size, device_cache, seed, .. } = *arguments;
    let setting = format!("{}: disks of {size} with {device_cache} of cache, seed {seed}", tool.version()?);
    let found = Found::open(&folder.join("acceleration.jsonl"), &setting, arguments.resume)?;
    let mut runs = runs(arguments, &tool)?;
    let all = runs.clone();
    runs.retain(|run| !found.rows.iter().any(|row: &Compared| row.is_of(run)));
    let at_once = arguments.together.clamp(1, runs.len().max(1));
    println!("{} runs, {at_once} at a time, each as long as its trace. Seed {seed}.", runs.len());
    let found = Mutex::new(found);
    side_by_side(&runs, at_once, &stop, |run| {
        let row = run.compare(&tool, arguments).with_context(|| format!("{} on a {}", run.name, run.disk))?;
        println!("    {}", row.line());
        found.lock().expect("nobody panicked").add(row)
    })?;
    let mut rows = found.into_inner().expect("nobody panicked").rows;
    rows.sort_by_key(|row| all.iter().position(|run| row.is_of(run)));
    std::fs::write(REPORT, markdown(&page::page(&rows, arguments)?))?;
    println!("\nThe disks are emulated. Tables: {REPORT}");
    Ok(())
}

/// Every trace on every disk, in open loop and, where it has response times, in closed loop.
fn runs(arguments: &Arguments, tool: &Tool) -> anyhow::Result<Vec<Run>> {
    let named = |path: &PathBuf| (path.display().to_string(), path.clone());
    let mut traces: Vec<_> = arguments.traces.iter().map(named).collect();
    if traces.is_empty() {
        let folder = std::env::var_os("IDLEWISE_TRACES").context("name a trace, or the folder IDLEWISE_TRACES")?;
        let in_folder = |(name, file): (&str, &str)| (name.to_string(), Path::new(&folder).join(file));
        traces = TRACES.into_iter().map(in_folder).collect();
    }
    let mut runs = Vec::new();
    for (name, path) in traces {
        let known = tool.json(&["trace", "info", path.to_str().context("the path is text")?])?;
        let loops: &[bool] = if known["has_response_times"] == true { &[false, true] } else { &[false] };
        for (disk, timing) in DISKS.into_iter().filter(|(name, _)| name.contains(&arguments.disk)) {
            let run = |&closed| Run { name: name.clone(), path: path.clone(), disk, timing, closed };
            runs.extend(loops.iter().map(run));
        }
    }
    ensure!(!runs.is_empty(), "no disk is called '{}'", arguments.disk);
    Ok(runs)
}
