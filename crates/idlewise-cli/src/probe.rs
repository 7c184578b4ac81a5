//! `idlewise probe`: what a real device is like, and its disk model.

mod json;
mod page;

use std::path::PathBuf;

use idlewise::disk::DiskModel;
use idlewise::order::Extent;
use idlewise::report::Table;
use idlewise::report::printable::one_line;
use idlewise::{Bytes, Rate};
use idlewise_linux::device::Device;
use idlewise_linux::device::verify::{Fault, VERIFIERS};
use idlewise_linux::probe::{self, Cache, Interfered, Last, Probe, Repeat, Scan, Scans, Service};
use idlewise_linux::scrub::{Claim, StateFolder};

use crate::exit::Exit;
use crate::live::{MonitorName, Second, choose_verifier, open_monitor, stop_flag};
use crate::output::{self, say};
use crate::progress::Progress;

/// Measure a disk in its idle times. Read-only
///
/// Measures how long a verify takes for each size, how fast a sequential and a staggered scan are, whether the verify command
/// really reads the medium, and how much of a verify a foreground read waits for. Where it met blocks that cannot be read, it says so and ends
/// with 3: `idlewise scrub` finds them all.
#[derive(clap::Args)]
pub struct Arguments {
    /// Block device, such as /dev/sda, or a file that may be read
    device: PathBuf,

    /// Write the disk model to a file that `tune`, `simulate` and `scrub` take as --disk
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Write an HTML page with charts
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// How to verify [default: the first way that works]
    #[arg(long, value_name = "NAME", value_parser = VERIFIERS.names())]
    verifier: Option<String>,

    /// Also measure with the drive's read cache switched off. This changes a setting of the drive, and restores it (needs
    /// CAP_SYS_RAWIO)
    #[arg(long)]
    switch_read_cache: bool,

    /// How to watch for foreground requests
    #[arg(long, value_enum, default_value_t)]
    monitor: MonitorName,

    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

/// What was found.
struct Findings {
    model: DiskModel,
    verifier: &'static str,
    passed: Vec<(&'static str, Fault)>,
    service: Vec<Service>,
    scans: Scans,
    cache: Cache,
    interfered: Vec<Interfered>,
    /// Stretches in which something could not be read.
    unreadable: Vec<Extent>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    output::check_all(
        std::slice::from_ref(&arguments.device),
        &[arguments.out.as_deref(), arguments.report.as_deref()],
    )?;
    let second = if arguments.switch_read_cache { Second::IsIgnored } else { Second::Ends };
    let stop = stop_flag(second)?;
    idlewise_linux::put_back_what_is_left();
    let device = Device::open_any(&arguments.device)?;
    let smallest = probe::LARGEST.0 / 32;
    anyhow::ensure!(
        device.size.0 >= smallest,
        "{}: has {}, too little to measure; at least {} are needed",
        device.path.display(),
        device.size,
        Bytes(smallest)
    );
    let chosen = choose_verifier(&device, probe::LARGEST, arguments.verifier.as_deref())?;
    // A scrub of the same disk would wait for the probe, and be charged for it.
    let disks = [&device].into_iter().filter(|device| !device.is_file());
    let _claims = Claim::around(disks, &[], &StateFolder::choose(None))?;
    let monitor = open_monitor(&device, arguments.monitor)?;
    let probe = Probe::new(&device, chosen.verifier, monitor, &stop);
    let verifier = probe.verifier();
    let measured = measure(probe, arguments.switch_read_cache)?;
    let Some((service, scans, cache, (interfered, unreadable))) = measured else { return Ok(Exit::Interrupted) };
    let name = format!("{} ({})", device.path.display(), device.identity);
    let name = one_line(&name).into_owned();
    if let Some(first) = unreadable.iter().min_by_key(|extent| extent.offset) {
        let (path, times) = (device.path.display(), unreadable.len());
        say!(
            "idlewise: {path}: {times} of the requests met blocks that cannot be read, the first of them within bytes {} to {}; \
             `idlewise scrub {path}` finds which",
            first.offset.0,
            first.end().0
        );
    }
    let model = probe::disk_model(&name, &service, &interfered);
    let model = model.ok_or_else(|| anyhow::anyhow!("{name}: too few sizes could be verified for a disk model"))?;
    let findings = Findings { model, verifier, passed: chosen.passed, service, scans, cache, interfered, unreadable };
    // What took minutes is delivered wherever it can be.
    let printed = match arguments.json {
        true => output::json(&json::Json::from(&findings)),
        false => output::text(&findings.text()),
    };
    let out = arguments.out.as_ref().map_or(Ok(()), |path| output::file(path, &findings.model.to_toml()));
    let report = arguments.report.as_ref().map_or(Ok(()), |path| output::file(path, &page::html(&findings)));
    printed.and(out).and(report)?;
    Ok(if findings.unreadable.is_empty() { Exit::Clean } else { Exit::ErrorsFound })
}

type Measured = (Vec<Service>, Scans, Cache, Last);

/// The measurements, one after the other; `None` when asked to stop.
fn measure(mut probe: Probe, switch: bool) -> anyhow::Result<Option<Measured>> {
    let progress = Progress::new("probing");
    // About their shares of the time.
    let measuring = &mut probe;
    let Some(service) = probe::service(measuring, &mut |done| progress.share(0.3 * done))? else { return Ok(None) };
    let Some(scans) = probe::scans(measuring, &mut |done| progress.share(0.3 + 0.4 * done))? else { return Ok(None) };
    let cache = probe::cache(measuring, switch, &mut |done| progress.share(0.7 + 0.1 * done))?;
    let Some(cache) = cache else { return Ok(None) };
    let interfered = probe::interference(probe, &service, &mut |done| progress.share(0.8 + 0.2 * done))?;
    Ok(interfered.map(|interfered| (service, scans, cache, interfered)))
}

impl Findings {
    fn text(&self) -> String {
        let mut text = format!("{}\n\nVerified by {}.", self.model.name, self.verifier);
        for same in self.passed.chunk_by(|a, b| a.1 == b.1) {
            let names: Vec<&str> = same.iter().map(|(name, _)| *name).collect();
            text += &format!(" Not by {}: {}.", names.join(", "), same[0].1);
        }
        text += &format!("\n\n{}", service_table(&self.service));
        text += &format!("\n{}", scans_table("request size", &self.scans.by_size));
        text += &format!("\n{}", scans_table("regions", &self.scans.by_regions));
        text += &format!("\n{}\n{}\n", cache_table(&self.cache), self.verdict());
        text + &format!("\n{}\n{}\n", interference_table(&self.interfered), INTERFERENCE)
    }

    /// Whether a verify reads the medium, in a sentence.
    fn verdict(&self) -> String {
        let how = self.verifier;
        let off = match self.cache.off.is_empty() {
            true => "",
            false => " The second table row of each size is with the drive's read cache off.",
        };
        match self.cache.answers() {
            true => format!(
                "Repeated at once, {how} takes much less time than from the medium: it is answered from a cache.{off}"
            ),
            false => format!("Repeated at once, {how} takes about as long: no sign of a cache that answers it.{off}"),
        }
    }
}

fn service_table(found: &[Service]) -> Table {
    let mut table = Table::new(["size", "in sequence", "throughput", "head moved"]);
    for one in found {
        let rate = Rate((one.size.0 as f64 / one.sequential.as_secs_f64().max(1e-9)) as u64);
        table.row([one.size.to_string(), one.sequential.to_string(), rate.to_string(), one.moved.to_string()]);
    }
    table
}

/// What the table of it shows.
const INTERFERENCE: &str = "Interference: the part of what is left of a verify that a read waits for which arrives meanwhile, and its standard \
    error. It is 1 on a disk that serves one request at a time. The disk model has one standard error more, and 1 at most. It has 1 \
    where reads took longer alone.";

fn interference_table(found: &[Interfered]) -> Table {
    let mut table = Table::new(["size", "read alone", "during a verify", "left of it", "interference"]);
    for one in found {
        let part = format!("{:.2} ± {:.2}", one.part, one.error);
        table.row([one.size.to_string(), one.alone.to_string(), one.meanwhile.to_string(), one.left.to_string(), part]);
    }
    table
}

fn scans_table(varied: &str, scans: &[Scan]) -> Table {
    let by_size = varied == "request size";
    let head = if by_size { [varied, "sequential", "staggered, 128 regions"] } else { [varied, "size", "rate"] };
    let mut table = Table::new(head);
    if !by_size {
        for scan in scans {
            table.row([scan.regions.to_string(), scan.size.to_string(), scan.rate.to_string()]);
        }
        return table;
    }
    for pair in scans.chunk_by(|a, b| a.size == b.size) {
        let rate =
            |wanted: bool| pair.iter().find(|scan| (scan.regions == 1) == wanted).map(|scan| scan.rate.to_string());
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        table.row([pair[0].size.to_string(), or_none(rate(true)), or_none(rate(false))]);
    }
    table
}

fn cache_table(cache: &Cache) -> Table {
    let mut table = Table::new(["size", "read cache", "first", "repeated"]);
    let mut row = |repeat: &Repeat, state: &str| {
        table.row([repeat.size.to_string(), state.into(), repeat.first.to_string(), repeat.again.to_string()]);
    };
    for repeat in &cache.as_it_is {
        row(repeat, "as it is");
        cache.off.iter().filter(|off| off.size == repeat.size).for_each(|off| row(off, "off"));
    }
    table
}
