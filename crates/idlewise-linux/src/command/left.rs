//! What is left of runs that were killed together with their guards: processes that were stopped by signals, groups of others that are frozen,
//! and notes. Groups of ours that are left are found by their names (`cgroup`).

use std::io;

use serde::{Deserialize, Serialize};

use super::cgroup::Cgroup;
use super::guard::resume;
use super::note::{self, RunNote};
use crate::ledger::{self, Undo};
use crate::scrub::claim::own_folder;
use crate::scrub::{Process, boot_id};

/// A process that may stand still is let go on.
impl Undo for Process {
    const END: &'static str = "held";

    fn undo(&self) -> bool {
        resume(self);
        true
    }
}

/// A group that was there before and may be frozen. Its number tells it from another one of its name.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frozen {
    group: Cgroup,
    number: u64,
    boot_id: String,
}

impl Frozen {
    /// It is about to be.
    ///
    /// # Errors
    /// If it is gone.
    pub fn of(group: &Cgroup) -> io::Result<Self> {
        Ok(Self { group: group.clone(), number: group.number()?, boot_id: boot_id() })
    }
}

impl Undo for Frozen {
    const END: &'static str = "frozen";

    fn undo(&self) -> bool {
        let is_it = self.boot_id == boot_id() && self.group.number().is_ok_and(|number| number == self.number);
        !is_it || self.group.freeze(false).is_ok()
    }
}

/// Lets those go on whom earlier runs of this user have left standing still, and removes what these have written.
pub fn release() {
    ledger::release::<Process>();
    ledger::release::<Frozen>();
    if let Some(folder) = own_folder() {
        let note = |text: &[u8]| serde_json::from_slice::<RunNote>(text).ok();
        let is_over = |text: &[u8]| note(text).is_some_and(|note| note.process.is_alive() == Some(false));
        ledger::sweep(&folder, note::END, is_over);
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
