//! The experiments of DSN 2012, section IV, repeated on an emulated disk: `make experiments`.

mod bars;
mod cells;
mod figure3;
mod figure6;
mod figure7;
mod page;

use std::path::{Path, PathBuf};

use anyhow::ensure;
use clap::Parser;
use idlewise::Bytes;
use idlewise::report::Section;
use idlewise_testbed::{EmulatedDisk, Options, Timing, Tool};

use cells::Cells;
use idlewise_testbed::lab::device::{Device, Restored};
use idlewise_testbed::lab::load::Load;
use idlewise_testbed::lab::{Lab, Runs, Settings, markdown, stop_flag};

const REPORT: &str = "docs/experiments.md";
const SIZE: Bytes = Bytes(8 << 30);

/// Repeat the experiments of DSN 2012 (figures 3, 6 and 7) on an emulated disk. Needs root and FUSE.
#[derive(Parser)]
struct Arguments {
    /// Length of one run of a synthetic load, in seconds; a replay takes five times as long
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,

    /// Runs of each scrubber beside each synthetic load; a trace is played three times
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100))]
    repeats: u64,

    /// Seed of places and think times
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=u64::from(u32::MAX)))]
    seed: u64,
}

fn main() {
    let Arguments { seconds, repeats, seed } = Arguments::parse();
    let synthetic = Runs { count: repeats, seconds };
    let replays = Runs { count: figure7::PLAYS, seconds: seconds * figure7::LONGER };
    if let Err(error) = run(Settings { synthetic, replays, seed }) {
        eprintln!("experiments: {error:#}");
        std::process::exit(1);
    }
}

fn run(settings: Settings) -> anyhow::Result<()> {
    let here = Path::new(figure7::RECORDED).exists();
    ensure!(here, "{} is not here: run `make experiments` in the project's folder", figure7::RECORDED);
    let folder = PathBuf::from("experiments");
    std::fs::create_dir_all(&folder)?;
    let stop = stop_flag()?;
    let tool = Tool::beside_us()?;
    println!("Figures 3, 6 and 7 of DSN 2012. The disk is emulated: {SIZE}, a 15,000 rpm drive's times.");
    println!("Seed {}.\n", settings.seed);
    let disk = EmulatedDisk::new(&Options { size: SIZE, timing: Timing::HardDisk { queue: 1 }, ..Options::default() })?;
    let device = Device::open(disk.path())?;
    device.set_rotational()?;
    let (schedulers, _) = device.schedulers()?;
    let _restored = Restored::of(&device)?;
    let mut lab = Lab::new(tool, device, folder, settings, stop);
    lab.tool.json(&["probe", lab.device.name()?, "--out", &lab.file("disk.toml")?])?;
    let sections = experiments(&mut lab, &schedulers)?;
    let page = page::page(sections);
    let html = lab.folder.join("report.html");
    std::fs::write(&html, page.html())?;
    std::fs::write(REPORT, markdown(&page))?;
    println!("\nThe disk is emulated. Charts: {}; tables: {REPORT}", html.display());
    Ok(())
}

/// All measurements, and what they say.
fn experiments(lab: &mut Lab, schedulers: &[String]) -> anyhow::Result<Vec<Section>> {
    let (cells, traces) = (cells::all(schedulers), figure7::traces(lab)?);
    for cell in &cells {
        lab.plan(cell.scrubber, lab.settings.synthetic);
    }
    for (_, _, scrubber) in traces.iter().flat_map(|_| figure7::scrubbers(schedulers)) {
        lab.plan(scrubber, lab.settings.replays);
    }
    let cells = Cells::measure(lab, cells)?;
    std::fs::write(lab.folder.join("responses.csv"), cells.csv())?;
    let mut sections = vec![page::settings(lab.settings, lab.device.size, schedulers)?];
    for load in [Load::Sequential, Load::Random] {
        sections.extend(figure6::sections(load, &cells, schedulers));
    }
    for traced in &traces {
        sections.push(figure7::section(lab, traced, schedulers)?);
    }
    sections.push(figure3::section(&cells, schedulers));
    Ok(sections)
}
