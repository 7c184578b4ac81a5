//! What the commands on real devices share: the device, the monitor, and being told to stop.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::ValueEnum;
use idlewise::Bytes;
use idlewise_linux::device::verify::{self, Chosen};
use idlewise_linux::device::{Device, DeviceError};
use idlewise_linux::files::told_by_kernel;
use idlewise_linux::monitor::{self, AllPaths, Choice, Monitor};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::output::say;
use crate::screen;

/// The choice of a monitor on the command line.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum MonitorName {
    /// BPF, or diskstats where BPF cannot be loaded
    #[default]
    Auto,
    /// See every request, through BPF (needs root, or CAP_BPF and CAP_PERFMON)
    Bpf,
    /// Poll the kernel's counters: coarse, but works everywhere
    Diskstats,
}

/// Opens the monitor of a device's disk by all its paths, and says on standard error if it is a coarse one.
pub fn open_monitor(device: &Device, name: MonitorName) -> anyhow::Result<Box<dyn Monitor>> {
    if !device.may_have_other_paths() {
        return open_one_monitor(device, name);
    }
    let open = move |path: &Device| open_one_monitor(path, name).map_err(|error| error.to_string());
    Ok(Box::new(AllPaths::new(device, Box::new(open))?))
}

fn open_one_monitor(device: &Device, name: MonitorName) -> anyhow::Result<Box<dyn Monitor>> {
    let choice = match name {
        MonitorName::Auto => Choice::Best,
        MonitorName::Bpf => Choice::Bpf,
        MonitorName::Diskstats => Choice::Diskstats,
    };
    let opened = monitor::open(device, choice)?;
    if opened.monitor.is_coarse() {
        let because = opened.fallback.map(|reason| format!(", as {reason}")).unwrap_or_default();
        say!(
            "idlewise: watching {} by {}{because}: arrivals are seen late, and slowdowns are rough",
            device.path.display(),
            opened.monitor.name()
        );
    }
    Ok(opened.monitor)
}

/// Set when only results are to be delivered.
static OVER: AtomicBool = AtomicBool::new(false);
/// Some tools send a signal twice: only one that comes so much later is meant to be another.
const TWICE: Duration = Duration::from_secs(1);

/// What a second signal does while the work comes to its end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Second {
    /// It ends the process at once.
    Ends,
    /// Nothing: something must be put back first.
    IsIgnored,
}

/// A flag that SIGINT, SIGTERM and SIGHUP set. When the work is over, one of them ends the process at once: nobody may be there to read
/// the results. From now on nothing that is said waits until it is shown.
pub fn stop_flag(second: Second) -> anyhow::Result<Arc<AtomicBool>> {
    screen::begin();
    let stop = Arc::new(AtomicBool::new(false));
    // Under nohup a terminal that goes is to change nothing.
    let hangup = Some(SIGHUP).filter(|_| !is_ignored(SIGHUP));
    let mut signals = Signals::new([SIGINT, SIGTERM].into_iter().chain(hangup))?;
    let told = stop.clone();
    let listen = move || {
        let mut first = None;
        for signal in signals.forever() {
            let again = first.is_some_and(|first: Instant| first.elapsed() > TWICE) && second == Second::Ends;
            if again || OVER.load(Ordering::Relaxed) {
                let _ = emulate_default_handler(signal);
            }
            first.get_or_insert_with(Instant::now);
            told.store(true, Ordering::Relaxed);
        }
    };
    thread::Builder::new().name("signals".into()).spawn(listen).context("a thread for signals")?;
    Ok(stop)
}

/// From now on a signal ends the process at once.
pub fn work_is_over() {
    OVER.store(true, Ordering::Relaxed);
}

/// Whether whoever started this process had a signal ignored (proc_pid_status(5)).
pub fn is_ignored(signal: i32) -> bool {
    let status = told_by_kernel("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Opens a device for reading.
pub fn open_device(path: &Path) -> anyhow::Result<Device> {
    let opened = Device::open(path);
    let in_dev = Path::new("/dev").join(path);
    // Other commands take the bare name too.
    if let Err(DeviceError::Missing(name)) = &opened
        && path.components().count() == 1
        && in_dev.exists()
    {
        return Err(anyhow::anyhow!("{name}: no such device; there is {}", in_dev.display()));
    }
    Ok(opened?)
}

/// The verifier of this name, or else the first that works; what does not work is said if nothing does.
pub fn choose_verifier(device: &Device, largest: Bytes, name: Option<&str>) -> anyhow::Result<Chosen> {
    verify::choose(device, largest, name).map_err(|passed| {
        if let Some((_, gone)) = passed.iter().find(|(_, fault)| fault.is_gone()) {
            return anyhow::anyhow!("{}: {gone}", device.path.display());
        }
        let tried = passed.iter().map(|(name, fault)| format!("{name}: {fault}")).collect::<Vec<_>>().join("; ");
        anyhow::anyhow!("{}: no verifier works: {tried}", device.path.display())
    })
}
