//! What is left of runs that were killed together with their guards: processes that were stopped by signals, and notes. Groups that are left
//! are found by their names (`cgroup`).

use std::ffi::{OsStr, OsString};
use std::path::Path;

use rustix::fs::Mode;
use serde::{Deserialize, Serialize};

use super::guard::resume;
use super::note::{self, RunNote};
use crate::files::Folder;
use crate::scrub::Process;
use crate::scrub::claim::own_folder;

const VERSION: u32 = 1;
/// What names of such files end in.
const END: &str = "held";

/// Who may stand still, in a file beside the run's note: written before anybody is stopped.
#[derive(Debug)]
pub struct Ledger {
    folder: Folder,
    file: OsString,
    list: List,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    /// Version of the format.
    version: u32,
    /// The process of idlewise.
    process: Process,
    /// Those that it may have stopped.
    stopped: Vec<Process>,
}

impl Ledger {
    /// Of this process; none where there is no folder for it.
    pub fn begin() -> Option<Self> {
        Self::within(&own_folder()?)
    }

    fn within(folder: &Path) -> Option<Self> {
        let folder = Folder::own(folder).ok()?;
        let process = Process::this();
        let file = format!("{}-{}.{END}", process.pid, process.start_ticks).into();
        Some(Self { folder, file, list: List { version: VERSION, process, stopped: Vec::new() } })
    }

    /// This one is about to be stopped. That it cannot be noted is no reason not to: the guard is told as well.
    pub fn add(&mut self, process: &Process) {
        self.list.stopped.push(process.clone());
        let text = serde_json::to_vec_pretty(&self.list).expect("a list has only text and numbers");
        let _ = self.folder.replace(&self.file, &text, Mode::from_raw_mode(0o600), false);
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        if !self.list.stopped.is_empty() {
            let _ = self.folder.remove(&self.file);
        }
    }
}

/// Lets those go on whom earlier runs of this user have left standing still, and removes what these have written.
pub fn release() {
    if let Some(folder) = own_folder() {
        release_in(&folder);
    }
}

fn release_in(folder: &Path) {
    let Ok(Some(own)) = Folder::own_if_there(folder) else { return };
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let Ok(text) = own.read(&name) else { continue };
        let gone = match path.extension().and_then(OsStr::to_str) {
            Some(END) => serde_json::from_slice::<List>(&text)
                .ok()
                .filter(|list| list.version == VERSION)
                .filter(|list| {
                    let gone = list.process.is_alive() == Some(false);
                    if gone {
                        list.stopped.iter().rev().for_each(resume);
                    }
                    gone
                })
                .is_some(),
            Some(note::END) => {
                serde_json::from_slice::<RunNote>(&text).is_ok_and(|note| note.process.is_alive() == Some(false))
            }
            _ => false,
        };
        if gone {
            let _ = own.remove(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{Pid, Signal, kill_process};

    use super::*;

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
        ledger.add(&process);
        assert!(stopped());
        release_in(folder.path());
        assert!(process.is_stopped(), "its run is there");
        // As if this process had been killed.
        ledger.list.process.start_ticks += 9;
        ledger.add(&process);
        std::mem::forget(ledger);
        release_in(folder.path());
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while process.is_stopped() && std::time::Instant::now() < until {
            std::thread::yield_now();
        }
        assert!(!process.is_stopped() && std::fs::read_dir(folder.path()).unwrap().next().is_none());
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
    }
}
