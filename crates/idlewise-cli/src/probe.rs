//! `idlewise probe`: the disk model of a real device.

use std::path::PathBuf;

use idlewise::Rate;
use idlewise::report::Table;
use idlewise_linux::scrub::Scrubber;

use crate::exit::Exit;
use crate::live::{MonitorName, choose_verifier, open_device, open_monitor, stop_flag};
use crate::output;
use crate::progress::Progress;

/// Measure how long a device takes to verify requests of 64KiB to 4MiB, in its idle times. Read-only
#[derive(clap::Args)]
pub struct Arguments {
    /// Block device, such as /dev/sda
    device: PathBuf,

    /// Write the disk model to a file that `tune`, `simulate` and `scrub` take as --disk
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// How to watch for foreground requests
    #[arg(long, value_enum, default_value_t)]
    monitor: MonitorName,

    /// Print the disk model in JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    output::check(arguments.out.as_deref())?;
    let stop = stop_flag()?;
    let device = open_device(&arguments.device)?;
    let monitor = open_monitor(&device, arguments.monitor)?;
    let chosen = choose_verifier(&device, idlewise::Bytes(0), None)?;
    let mut scrubber = Scrubber::new(&device, chosen.verifier, monitor, &stop);
    let progress = Progress::new("probing");
    let name = format!("{} ({})", device.path.display(), device.identity);
    let measured = scrubber.curve(&name, idlewise::Nanos(u64::MAX), &mut |_, done| progress.share(done))?;
    drop(progress);
    let Some(model) = measured else { return Ok(Exit::Interrupted) };
    if let Some(path) = &arguments.out {
        output::file(path, &model.to_toml())?;
    }
    if arguments.json {
        output::json(&model)?;
    } else {
        let mut table = Table::new(["size", "verify time", "throughput"]);
        for point in &model.verify {
            let rate = Rate((point.size.0 as f64 / point.time.as_secs_f64()) as u64);
            table.row([point.size.to_string(), point.time.to_string(), rate.to_string()]);
        }
        output::text(&format!("{}\n\n{table}", model.name))?;
    }
    Ok(Exit::Clean)
}
