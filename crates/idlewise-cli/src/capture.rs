//! `idlewise capture`: real I/O into a trace.

use std::io::Write;
use std::path::PathBuf;

use idlewise::Nanos;
use idlewise::trace::formats::write_msr;
use idlewise_linux::capture::capture;

use crate::exit::Exit;
use crate::live::{MonitorName, open_device, open_monitor, stop_flag};
use crate::output;
use crate::progress::Progress;

/// Record the requests of a device with their response times, as an MSR Cambridge CSV trace. Needs BPF
#[derive(clap::Args)]
pub struct Arguments {
    /// Block device, such as /dev/sda
    device: PathBuf,

    /// How long to record; SIGINT ends it earlier
    #[arg(long = "for", value_name = "TIME")]
    time: Nanos,

    /// The trace to write; compressed if its name ends in .gz
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let stop = stop_flag()?;
    let device = open_device(&arguments.device)?;
    let mut monitor = open_monitor(&device, MonitorName::Bpf)?;
    let progress = Progress::new("recording");
    let captured = capture(&device, monitor.as_mut(), arguments.time, &stop, &mut |done, _| progress.share(done))?;
    drop(progress);
    let mut csv = Vec::new();
    write_msr(&captured.trace, &mut csv)?;
    if arguments.out.extension().is_some_and(|extension| extension == "gz") {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&csv)?;
        csv = encoder.finish()?;
    }
    output::bytes(&arguments.out, &csv)?;
    let (requests, lost) = (captured.trace.len(), captured.lost_events);
    output::text(&format!(
        "{}: {requests} requests; {} without data left out; {lost} events lost\n",
        arguments.out.display(),
        captured.without_data
    ))?;
    Ok(if requests == 0 { Exit::NothingToDo } else { Exit::Clean })
}
