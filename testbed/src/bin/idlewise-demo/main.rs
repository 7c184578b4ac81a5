//! The demonstration: a recorded foreground played on an emulated disk, alone and with each of some scrubbers, through the
//! commands that anyone would use.

mod chart;
mod page;

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use idlewise::Bytes;
use idlewise_testbed::lab::device::{Device, Restored};
use idlewise_testbed::lab::foreground::Replay;
use idlewise_testbed::lab::load::REQUEST;
use idlewise_testbed::lab::outcome::Outcome;
use idlewise_testbed::lab::scrubber::{Pace, Scrubber};
use idlewise_testbed::lab::{Lab, Runs, Settings, stop_flag};
use idlewise_testbed::{EmulatedDisk, Options, Timing, Tool};

const TRACE: &str = "testbed/traces/pgbench.csv.gz";
const SIZE: Bytes = Bytes(8 << 30);
/// How long each scrubber is measured, in seconds; with five runs all is over in less than four minutes.
const SECONDS: u64 = 25;
const RUNS: Runs = Runs { count: 1, seconds: SECONDS };

/// One scrubber, and what it did.
pub struct Row {
    /// Its name.
    pub name: String,
    /// What was measured.
    pub outcome: Outcome,
}

fn main() -> anyhow::Result<()> {
    ensure!(Path::new(TRACE).exists(), "{TRACE} is not here: run `make demo` in the project's folder");
    let folder = PathBuf::from("demo");
    std::fs::create_dir_all(&folder)?;
    let tool = Tool::beside_us()?;
    if let Some(missing) = idlewise_testbed::missing() {
        return simulated(&tool, &missing);
    }
    println!("PostgreSQL under pgbench, recorded on a real machine, is played on an emulated hard disk (15,000 rpm):");
    println!("first alone, then with each of four scrubbers. A bar is drawn as soon as it is measured.\n");
    let stop = stop_flag()?;
    let disk = EmulatedDisk::new(&Options { size: SIZE, timing: Timing::HardDisk { queue: 1 }, ..Options::default() })?;
    let device = Device::open(disk.path())?;
    device.set_rotational()?;
    let _restored = Restored::of(&device)?;
    let settings = Settings { synthetic: RUNS, replays: RUNS, seed: 1 };
    let mut lab = Lab::new(tool, device, folder, settings, stop);
    let rows = measured(&mut lab)?;
    println!("{}", page::table(&rows));
    println!("{}", page::verdict(&rows));
    let report = lab.folder.join("report.html");
    std::fs::write(&report, page::html(&rows))?;
    println!("\nThe disk is emulated. The distributions of the response times: {}", report.display());
    Ok(())
}

/// The foreground alone, and with each scrubber; what is known so far is drawn after each.
fn measured(lab: &mut Lab) -> anyhow::Result<Vec<Row>> {
    let readers = [Scrubber::None, Scrubber::idle_class(false), Scrubber::Idlewise];
    readers.into_iter().chain([Scrubber::idle_class(false); 2]).for_each(|scrubber| lab.plan(scrubber, RUNS));
    lab.tool.json(&["probe", lab.device.name()?, "--out", &lab.file("disk.toml")?])?;
    // The heir of the scheduler whose idle class once worked, where the kernel has it.
    let (schedulers, plain) = lab.device.schedulers()?;
    let heir = schedulers.iter().find(|name| *name == "bfq").unwrap_or(&plain).clone();
    let mut rows = Vec::new();
    let measure = |lab: &mut Lab, name: &str, scrubber, scheduler: &str| -> anyhow::Result<Outcome> {
        let (tool, device) = (lab.tool.clone(), lab.device.again()?);
        let out = lab.folder.join("played.csv");
        let mut replay = Replay { tool: &tool, device: &device, trace: TRACE.into(), out, writes: true };
        lab.measure(name, &mut replay, RUNS, scrubber, scheduler)
    };
    let add = |rows: &mut Vec<Row>, name: String, outcome| {
        rows.push(Row { name, outcome });
        println!("\n{}", chart::chart(rows));
    };
    let outcome = measure(lab, "the foreground alone", Scrubber::None, &plain)?;
    rows.push(Row { name: "no scrubber".into(), outcome });
    let reader = |size, pace, idle_class| Scrubber::Reader { size, pace, idle_class, staggered: false };
    let idle = |size| reader(size, Pace::Delay(0), true);
    let outcome = measure(lab, "a reader in the idle I/O class", idle(REQUEST), &heir)?;
    add(&mut rows, format!("idle I/O class, {REQUEST}"), outcome);
    let outcome = measure(lab, "idlewise", Scrubber::Idlewise, &plain)?;
    let (size, rate) = (chosen(&outcome)?, outcome.scrub());
    add(&mut rows, format!("idlewise, {size}"), outcome);
    let outcome = measure(lab, "a reader at the same rate", reader(REQUEST, Pace::Rate(rate), false), &plain)?;
    add(&mut rows, format!("fixed rate, {REQUEST}"), outcome);
    let outcome = measure(lab, "the idle I/O class, in idlewise's request size", idle(size), &heir)?;
    add(&mut rows, format!("idle I/O class, {size}"), outcome);
    Ok(rows)
}

/// The request size that idlewise chose last.
fn chosen(outcome: &Outcome) -> anyhow::Result<Bytes> {
    let said = outcome.said.as_ref().and_then(|said| said["request_size_bytes"].as_u64());
    said.map(Bytes).context("idlewise chose no request size: the load left it no time")
}

/// Without root: everything but the disk.
fn simulated(tool: &Tool, missing: &str) -> anyhow::Result<()> {
    tool.show(&["idle", TRACE])?;
    tool.show(&["tune", TRACE, "--mean-slowdown", "1ms", "--max-slowdown", "50ms", "--any-moment"])?;
    println!("This was only simulated. The live part needs {missing}. Run `sudo make demo` for all of it.");
    Ok(())
}
