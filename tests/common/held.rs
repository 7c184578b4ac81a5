//! What the tests of commands that are held share: groups, processes, and a command that shows whether it runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Longer than anything here takes on a machine that is busy.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Where control groups of the second version are.
pub fn hierarchy() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let line = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    line.split(' ').nth(4).map(PathBuf::from)
}

/// Groups of ours that are there now.
pub fn groups(of: u32) -> Vec<PathBuf> {
    let Some(root) = hierarchy() else { return Vec::new() };
    let mut look = vec![root];
    let mut found = Vec::new();
    while let Some(folder) = look.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir()) {
            if entry.file_name().to_string_lossy().starts_with(&format!("idlewise-run-{of}-")) {
                found.push(entry.path());
            }
            look.push(entry.path());
        }
    }
    found
}

pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < PATIENCE, "not {what} after {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Whether a process is held, by a group or a signal.
pub fn is_held(pid: u32) -> bool {
    let stopped = fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") T "));
    let group = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let path = group.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/").to_string();
    let root = hierarchy().unwrap_or("/nowhere".into());
    let events = fs::read_to_string(root.join(path.trim_start_matches('/')).join("cgroup.events"));
    stopped || events.is_ok_and(|events| events.contains("frozen 1"))
}

/// A folder in memory: who writes there uses no disk, and nobody at a disk holds that back.
pub fn in_memory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap()
}

/// Counts for as long as it runs, in a file.
pub fn counting(file: &Path) -> String {
    format!("i=0; while :; do i=$((i+1)); echo $i > {}; sleep 0.01; done", file.display())
}

pub fn count(file: &Path) -> u64 {
    fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

pub fn members(group: &Path) -> Vec<u32> {
    let list = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    list.lines().filter_map(|line| line.parse().ok()).collect()
}

pub fn end(pid: u32) {
    let _ = kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL);
}
