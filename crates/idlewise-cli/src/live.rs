//! What the commands on real devices share: the device, the monitor, and being told to stop.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::output::say;
use clap::ValueEnum;
use idlewise::Bytes;
use idlewise_linux::device::Device;
use idlewise_linux::device::verify::{self, Chosen};
use idlewise_linux::monitor::{self, Choice, Monitor};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

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

/// Opens the monitor of a device's disk, and says on standard error if it is a coarse one.
pub fn open_monitor(device: &Device, name: MonitorName) -> anyhow::Result<Box<dyn Monitor>> {
    let choice = match name {
        MonitorName::Auto => Choice::Best,
        MonitorName::Bpf => Choice::Bpf,
        MonitorName::Diskstats => Choice::Diskstats,
    };
    let opened = monitor::open(device, choice)?;
    if opened.monitor.name() == "diskstats" {
        let because = opened.fallback.map(|reason| format!(", as {reason}")).unwrap_or_default();
        say!(
            "idlewise: watching {} by diskstats{because}: arrivals are seen late, and slowdowns are rough",
            device.path.display()
        );
    }
    Ok(opened.monitor)
}

/// A flag that SIGINT, SIGTERM and SIGHUP set. A second one does no more: some tools send it twice.
pub fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    // Under nohup a terminal that goes is to change nothing.
    let hangup = Some(SIGHUP).filter(|_| !is_ignored(SIGHUP));
    for signal in [SIGINT, SIGTERM].into_iter().chain(hangup) {
        flag::register(signal, stop.clone())?;
    }
    Ok(stop)
}

/// Whether whoever started this process had a signal ignored (proc_pid_status(5)).
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Opens a device for reading.
pub fn open_device(path: &Path) -> anyhow::Result<Device> {
    Ok(Device::open(path)?)
}

/// The verifier of this name, or else the first that works; what does not work is said if nothing does.
pub fn choose_verifier(device: &Device, largest: Bytes, name: Option<&str>) -> anyhow::Result<Chosen> {
    verify::choose(device, largest, name).map_err(|passed| {
        let tried = passed.iter().map(|(name, fault)| format!("{name}: {fault}")).collect::<Vec<_>>().join("; ");
        anyhow::anyhow!("{}: no verifier works: {tried}", device.path.display())
    })
}
