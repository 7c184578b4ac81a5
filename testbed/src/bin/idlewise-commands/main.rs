//! Commands in the background of an emulated disk with a file system, held back in several ways: `make commands`. Each is measured by the
//! same foreground requests with and without it.

mod background;

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anyhow::{Context, ensure};
use clap::{Parser, ValueEnum};
use idlewise::report::{Page, Section, Table};
use idlewise::{Bytes, Nanos};
use idlewise_testbed::lab::device::{Device, Restored};
use idlewise_testbed::lab::foreground::{Foreground, Played, Replay};
use idlewise_testbed::lab::found::Found;
use idlewise_testbed::lab::load::{Load, Synthetic};
use idlewise_testbed::lab::mounted::Mounted;
use idlewise_testbed::lab::outcome::{Mean, Run, longer_by};
use idlewise_testbed::lab::{kernel, markdown, stop_flag};
use idlewise_testbed::{EmulatedDisk, Options, Timing, Tool};
use serde::{Deserialize, Serialize};

use background::{Background, GOAL, Pace, Work, can_limit, says_for_whom};

const RECORDED: &str = "testbed/traces/pgbench.csv.gz";
const SIZE: Bytes = Bytes(4 << 30);
/// Files of the tree, and how large each is: together more than a pass of a minute reads.
const FILES: u64 = 3_000;
const FILE: u64 = 256 << 10;
/// The command is at work for so long before it is measured: idlewise has chosen its idle wait by then.
const WARM_UP: u64 = 12;
const FIRST_SEED: u64 = 1;

/// Commands in the gaps of an emulated disk beside other ways to hold them back. Needs root, FUSE, fio and rsync.
#[derive(Parser)]
struct Arguments {
    /// Length of each measurement in seconds
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,

    /// Only foregrounds whose names have this
    #[arg(long, default_value = "")]
    foreground: String,

    /// Only commands whose names have this
    #[arg(long, default_value = "")]
    command: String,

    /// File system on the disk
    #[arg(long, value_enum, default_value_t)]
    fs: FileSystem,

    /// Use this disk instead of an emulated one: EVERYTHING ON IT IS LOST
    #[arg(long)]
    disk: Option<PathBuf>,

    /// Where the tables go
    #[arg(long, default_value = "docs/commands.md")]
    out: PathBuf,

    /// Add to the tables of an earlier run, which had another file system, foreground or command
    #[arg(long)]
    resume: bool,
}

/// A row of the table of a file system.
#[derive(Serialize, Deserialize)]
struct Row {
    fs: String,
    cells: [String; 7],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum FileSystem {
    #[default]
    Ext4,
    Xfs,
}

fn main() {
    if let Err(error) = run(&Arguments::parse()) {
        eprintln!("commands: {error:#}");
        std::process::exit(1);
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    ensure!(Path::new(RECORDED).exists(), "{RECORDED} is not here: run `make commands` in the project's folder");
    let (stop, tool) = (stop_flag()?, Tool::beside_us()?);
    let folder = tempfile::tempdir()?;
    let options = Options { size: SIZE, timing: Timing::HardDisk { queue: 1 }, ..Options::default() };
    let emulated = arguments.disk.is_none().then(|| EmulatedDisk::new(&options)).transpose()?;
    let path = arguments.disk.as_deref().or(emulated.as_ref().map(EmulatedDisk::path)).expect("one of the two");
    let device = Device::open(&path.canonicalize()?)?;
    device.set_rotational()?;
    let (schedulers, _) = device.schedulers()?;
    let _restored = Restored::of(&device)?;
    let mounted = prepared(&device, arguments.fs, &folder.path().join("disk"))?;
    let replay = |out: &str| Replay {
        tool: &tool,
        device: &device,
        trace: RECORDED.into(),
        out: folder.path().join(out),
        // A file system is there.
        writes: false,
    };
    let mut replayed = replay("replay.parquet");
    let mut sequential = Synthetic { device: &device, load: Load::Sequential, stop: &stop };
    let mut random = Synthetic { device: &device, load: Load::Random, stop: &stop };
    let foregrounds: [(&str, &mut dyn Foreground); 3] = [
        ("sequential reads", &mut sequential),
        ("random reads", &mut random),
        ("pgbench, played as reads", &mut replayed),
    ];
    let later = if says_for_whom() { "for whom it writes later" } else { "not for whom it writes later" };
    let fs = format!("{}; the kernel says {later}", format!("{:?}", arguments.fs).to_lowercase());
    let setting = format!("{}: {} s", tool.version()?, arguments.seconds);
    std::fs::create_dir_all("experiments")?;
    let rows = Path::new("experiments").join(arguments.out.file_name().context("a file for the tables")?);
    let mut found = Found::open(&rows.with_extension("jsonl"), &setting, arguments.resume)?;
    for (name, foreground) in foregrounds.into_iter().filter(|(name, _)| name.contains(&arguments.foreground)) {
        device.set_scheduler("none")?;
        let mut alone = || measured(&device, foreground, arguments.seconds, || Ok(()));
        let before = alone()?.played;
        let mut runs = Vec::new();
        for work in Work::ALL.into_iter().filter(|work| work.label().contains(&arguments.command)) {
            let mut play = |pace: &Pace, scheduler: &str| {
                ensure!(!stop.load(Ordering::Relaxed), "interrupted");
                device.set_scheduler(scheduler)?;
                println!("{name}, {}, {} ({scheduler})", work.label(), pace.label());
                let run = beside(&device, foreground, work, pace, mounted.folder(), arguments.seconds)?;
                let rate = run.scrubbed as f64 / run.played.elapsed;
                println!("    {:.2} MB/s", rate / 1e6);
                Ok((rate, run.played))
            };
            // Of others' ways, the slowdown of the one that costs least.
            let (mut reached, mut least) = (0, f64::INFINITY);
            for (pace, scheduler) in paces(&schedulers) {
                let pace = pace.unwrap_or(Pace::Limit(reached));
                let (rate, played) = play(&pace, scheduler)?;
                reached = (rate as u64).max(4096);
                if pace.is_a_peers() {
                    least = least.min(longer_by(&played.responses, [&*before.responses; 2]).value);
                }
                runs.push((work, pace, scheduler, rate, played));
            }
            if least.is_finite() && least > GOAL.as_secs_f64() {
                let pace = Pace::Idlewise(Nanos::from_micros((least * 1e6) as u64));
                let (rate, played) = play(&pace, "none")?;
                runs.push((work, pace, "none", rate, played));
            }
        }
        device.set_scheduler("none")?;
        let after = measured(&device, foreground, arguments.seconds, || Ok(()))?.played;
        let without = [&*before.responses, &*after.responses];
        let [first, last] = without.map(|responses| Mean::of(responses.iter().copied()).value * 1e3);
        let responses = format!("alone: {first:.2} and {last:.2} ms");
        found.add(Row { fs: fs.clone(), cells: [name, "-", &responses, "-", "-", "-", "-"].map(String::from) })?;
        for (work, pace, scheduler, rate, played) in &runs {
            let longer = longer_by(&played.responses, without);
            let kept = longer.value - 2.0 * longer.error <= pace.goal().as_secs_f64();
            let free =
                runs.iter().find(|(of, pace, ..)| of == work && *pace == Pace::Free).map_or(f64::NAN, |free| free.3);
            let cells = [
                name.into(),
                work.label().into(),
                format!("{} ({scheduler})", pace.label()),
                longer.milliseconds(),
                if kept { "kept" } else { "not kept" }.into(),
                format!("{:.2}", rate / 1e6),
                format!("{:.0} %", rate / free * 100.0),
            ];
            println!("    {}", cells.join(", "));
            found.add(Row { fs: fs.clone(), cells })?;
        }
    }
    let page = page(&tool, arguments, found.rows)?;
    std::fs::write(&arguments.out, markdown(&page))?;
    println!("\nThe disk is emulated. The table: {}", arguments.out.display());
    Ok(())
}

/// How a command is held back, and under which scheduler. The limit, which none stands for, is what idlewise reached before it.
fn paces(schedulers: &[String]) -> Vec<(Option<Pace>, &'static str)> {
    let has = |name: &str| schedulers.iter().any(|one| one == name);
    let mut paces = vec![(Some(Pace::Free), "none")];
    paces.extend(has("bfq").then_some((Some(Pace::IdleClass), "bfq")));
    paces.extend(has("mq-deadline").then_some((Some(Pace::IdleClass), "mq-deadline")));
    paces.extend((has("bfq") && can_limit()).then_some((Some(Pace::LowestWeight), "bfq")));
    paces.push((Some(Pace::Idlewise(GOAL)), "none"));
    paces.extend(can_limit().then_some((None, "none")));
    paces
}

/// The same foreground with the command at work.
fn beside(
    device: &Device,
    foreground: &mut dyn Foreground,
    work: Work,
    pace: &Pace,
    folder: &Path,
    seconds: u64,
) -> anyhow::Result<Run> {
    let idlewise = std::env::current_exe()?.with_file_name("idlewise");
    let numbers = std::fs::read_to_string(format!("/sys/block/{}/dev", device.name()?.trim_start_matches("/dev/")))?;
    let mut command = Background::start(work, pace, folder, &idlewise, numbers.trim())?;
    // What it learns from is not what it is measured with.
    foreground.play(WARM_UP.min(seconds), FIRST_SEED + 1)?;
    measured(device, foreground, seconds, || command.goes_on())
}

fn measured(
    device: &Device,
    foreground: &mut dyn Foreground,
    seconds: u64,
    mut check: impl FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<Run> {
    let before = device.bytes_moved()?;
    let played: Played = foreground.play(seconds, FIRST_SEED)?;
    let moved = device.bytes_moved()? - before;
    check()?;
    Ok(Run { scrubbed: moved.saturating_sub(played.read), played })
}

/// A file system with a tree and a large file.
fn prepared(device: &Device, fs: FileSystem, folder: &Path) -> anyhow::Result<Mounted> {
    let make: &[&str] = match fs {
        FileSystem::Ext4 => &["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
        FileSystem::Xfs => &["mkfs.xfs", "-q", "-f"],
    };
    println!("Making a file system and {FILES} files of {}.", Bytes(FILE));
    let mounted = Mounted::new(make, device, folder)?;
    for file in 0..FILES {
        let place = folder.join("tree").join(format!("{}", file / 100));
        std::fs::create_dir_all(&place)?;
        // No two are the same, so that nothing can be saved.
        let words: Vec<u8> = (0..FILE / 8).flat_map(|word| (file * FILE + word).to_ne_bytes()).collect();
        std::fs::write(place.join(file.to_string()), words)?;
    }
    let large = folder.join("large");
    std::fs::write(&large, vec![7; 1 << 30])?;
    mounted.sync()?;
    Ok(mounted)
}

fn page(tool: &Tool, arguments: &Arguments, mut rows: Vec<Row>) -> anyhow::Result<Page> {
    let kernel = kernel()?;
    rows.sort_by(|a, b| a.fs.cmp(&b.fs));
    let sections = rows.chunk_by(|a, b| a.fs == b.fs).map(|rows| {
        let mut table =
            Table::new(["foreground", "command", "held back by", "longer by", "goal", "MB/s", "of as it is"]);
        rows.iter().for_each(|row| table.row(row.cells.clone()));
        Section { heading: format!("On {}", rows[0].fs), table, ..Section::default() }
    });
    let about = Section {
        heading: "What the tables say".into(),
        text: "\"Longer by\" compares the same requests with and without the command, with its standard error. A goal of 1 ms counts as kept \
               within two such errors. MB/s is what the command moved; beside it is the share of what it moved when nothing held it back. \
               The limit of the rate is what `idlewise run` reached in the row above it. Where the way of others that costs least costs more than \
               1 ms, `idlewise run` is tried with what that costs as its goal as well."
            .into(),
        ..Section::default()
    };
    Ok(Page {
        title: "Commands in the background".into(),
        lead: format!(
            "Made by `make {}` with {} on Linux {kernel}. The disk is emulated: {SIZE}, a 15,000 rpm drive's times, with a file system on it. \
             Each foreground is played for {} s, beside each command, and alone before and after.{}",
            if arguments.disk.is_some() { "commands-in-machine" } else { "commands" },
            tool.version()?,
            arguments.seconds,
            if arguments.disk.is_some() {
                " The processor is emulated as well, and about ten times as slow."
            } else {
                ""
            },
        ),
        sections: std::iter::once(about).chain(sections).collect(),
    })
}
