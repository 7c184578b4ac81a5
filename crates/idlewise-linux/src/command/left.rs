//! What is left of runs that were killed together with their guards: processes that were stopped by signals, and notes. Groups that are left
//! are found by their names (`cgroup`).

use std::ffi::OsStr;

use super::guard::resume;
use super::note::{self, RunNote};
use crate::files::Folder;
use crate::ledger::{self, Undo};
use crate::scrub::Process;
use crate::scrub::claim::own_folder;

/// A process that may stand still is let go on.
impl Undo for Process {
    const END: &'static str = "held";

    fn undo(&self) {
        resume(self);
    }
}

/// Lets those go on whom earlier runs of this user have left standing still, and removes what these have written.
pub fn release() {
    ledger::release::<Process>();
    let Some(folder) = own_folder() else { return };
    let Ok(Some(own)) = Folder::own_if_there(&folder) else { return };
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if path.extension().and_then(OsStr::to_str) != Some(note::END) {
            continue;
        }
        let note = own.read(&name).ok().and_then(|text| serde_json::from_slice::<RunNote>(&text).ok());
        if note.is_some_and(|note| note.process.is_alive() == Some(false)) {
            let _ = own.remove(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{Pid, Signal, kill_process};

    use super::*;
    use crate::ledger::{Ledger, release_in};

    #[test]
    fn whom_a_run_that_is_gone_has_stopped_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let mut sleeper = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let process = Process::of(sleeper.id()).unwrap();
        let stopped = || {
            let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
            kill_process(Pid::from_child(&sleeper), Signal::STOP).unwrap();
            while !process.is_stopped() && std::time::Instant::now() < until {
                std::thread::yield_now();
            }
            process.is_stopped()
        };
        let mut ledger = Ledger::within(folder.path()).unwrap();
        ledger.add(process.clone()).unwrap();
        assert!(stopped());
        release_in::<Process>(folder.path());
        assert!(process.is_stopped(), "its run is there");
        ledger.abandon().unwrap();
        release_in::<Process>(folder.path());
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while process.is_stopped() && std::time::Instant::now() < until {
            std::thread::yield_now();
        }
        assert!(!process.is_stopped() && std::fs::read_dir(folder.path()).unwrap().next().is_none());
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
    }
}
