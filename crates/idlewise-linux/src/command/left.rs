//! What is left of runs that were killed together with their guards: processes that were stopped by signals, and notes. Groups that are left
//! are found by their names (`cgroup`).

use super::guard::resume;
use super::note::{self, RunNote};
use crate::ledger::{self, Undo};
use crate::scrub::Process;
use crate::scrub::claim::own_folder;

/// A process that may stand still is let go on.
impl Undo for Process {
    const END: &'static str = "held";

    fn undo(&self) -> bool {
        resume(self);
        true
    }
}

/// Lets those go on whom earlier runs of this user have left standing still, and removes what these have written.
pub fn release() {
    ledger::release::<Process>();
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
