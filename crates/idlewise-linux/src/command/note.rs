//! What a run says of itself while it goes on, for everyone to read: a file in the folder of claims, `/run/idlewise` for root.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use idlewise::Nanos;
use rustix::fs::Mode;
use serde::{Deserialize, Serialize};

use super::Progress;
use crate::files::{Folder, read_file};
use crate::monitor::now;
use crate::scrub::claim::{SYSTEM, own_folder};
use crate::scrub::{AccountSoFar, Process};

/// Time between two notes.
const PAUSE: Nanos = Nanos::from_secs(2);
const VERSION: u32 = 1;
/// What names of such files end in.
pub const END: &str = "run";

/// A run that goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunNote {
    /// Version of the format.
    pub version: u32,
    /// The process of idlewise.
    pub process: Process,
    /// What is run: the command, `process PID` or the unit.
    pub name: String,
    /// The number of the control group by which it is held; none where it is held by signals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u64>,
    /// Whether it runs, or what keeps it from running: the name of a [`Why`](super::Why).
    pub doing: String,
    /// The disk that keeps it from running.
    pub disk: Option<String>,
    /// Seconds since it began.
    pub elapsed_s: f64,
    /// For how many of them it ran.
    pub ran_s: f64,
    /// The disks that it used.
    pub disks: Vec<DiskNote>,
}

/// What a run cost the foreground of a disk so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskNote {
    /// Its name in /dev.
    pub name: String,
    /// Foreground requests seen.
    pub foreground_requests: u64,
    /// Their mean slowdown.
    pub mean_slowdown_s: f64,
    /// Their longest slowdown.
    pub max_slowdown_s: f64,
    /// Bytes that the command moved.
    pub moved_bytes: u64,
    /// How the account of the mean slowdown stands.
    pub account: Option<AccountSoFar>,
}

/// The file, until it is dropped.
#[derive(Debug)]
pub struct Noted {
    folder: Folder,
    file: OsString,
    name: String,
    group: Option<u64>,
    told: Nanos,
}

impl Noted {
    /// Of a run of this name, held by the control group of this number; none where there is no folder for it, which is no loss.
    pub fn begin(name: &str, group: Option<u64>) -> Option<Self> {
        let folder = Folder::own(&own_folder()?).ok()?;
        let process = Process::this();
        let file = format!("{}-{}.{END}", process.pid, process.start_ticks).into();
        Some(Self { folder, file, name: name.into(), group, told: Nanos::ZERO })
    }

    /// Says where it stands, now and then.
    pub fn tell(&mut self, progress: impl FnOnce() -> Progress) {
        if now().since(self.told) < PAUSE {
            return;
        }
        self.tell_at_once(&progress());
    }

    /// Says it now.
    pub fn tell_at_once(&mut self, progress: &Progress) {
        self.told = now();
        let text = serde_json::to_vec_pretty(&self.note(progress)).expect("a note has only text and numbers");
        let _ = self.folder.replace(&self.file, &text, Mode::from_raw_mode(0o644), false);
    }

    fn note(&self, progress: &Progress) -> RunNote {
        let disks = progress.disks.iter().map(|disk| DiskNote {
            name: disk.name.clone(),
            foreground_requests: disk.measured.foreground_requests,
            mean_slowdown_s: disk.measured.mean_slowdown().as_secs_f64(),
            max_slowdown_s: disk.measured.max_slowdown.as_secs_f64(),
            moved_bytes: disk.moved().0,
            account: disk.account.as_ref().map(AccountSoFar::from),
        });
        RunNote {
            version: VERSION,
            process: Process::this(),
            name: self.name.clone(),
            group: self.group,
            doing: progress.why.name().into(),
            disk: progress.disk.clone(),
            elapsed_s: progress.elapsed.as_secs_f64(),
            ran_s: progress.ran.as_secs_f64(),
            disks: disks.collect(),
        }
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        let _ = self.folder.remove(&self.file);
    }
}

/// The runs that go on: root's, and the caller's.
pub fn running() -> Vec<RunNote> {
    let mut folders = vec![Path::new(SYSTEM).to_path_buf()];
    folders.extend(own_folder().filter(|own| own != Path::new(SYSTEM)));
    let mut runs: Vec<RunNote> = folders.iter().flat_map(|folder| running_in(folder)).collect();
    runs.sort_by_key(|run| run.process.pid);
    runs
}

/// Those that have their notes in a folder.
pub fn running_in(folder: &Path) -> Vec<RunNote> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let notes = entries.filter(|path| path.extension() == Some(OsStr::new(END)));
    let read = |path: &Path| serde_json::from_slice::<RunNote>(&read_file(path).ok()?).ok();
    notes.filter_map(|path| read(&path).filter(|run| run.version == VERSION && is_alive(&run.process))).collect()
}

/// One that cannot be seen from here, as in another container, may be.
fn is_alive(process: &Process) -> bool {
    process.is_alive() != Some(false)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::command::Why;

    #[test]
    fn a_note_is_there_while_the_run_is() {
        let folder = tempfile::tempdir().unwrap();
        let own = Folder::own(folder.path()).unwrap();
        let mut noted =
            Noted { folder: own, file: "1-1.run".into(), name: "tar".into(), group: Some(7), told: Nanos::ZERO };
        let progress = Progress {
            why: Why::Foreground,
            disk: Some("sda".into()),
            elapsed: Nanos::from_secs(8),
            ran: Nanos::from_secs(2),
            spent: BTreeMap::new(),
            disks: Vec::new(),
        };
        noted.tell(|| progress.clone());
        noted.tell(|| panic!("not twice in a moment"));
        let runs = running_in(folder.path());
        assert_eq!(runs, [noted.note(&progress)]);
        assert_eq!((&*runs[0].name, &*runs[0].doing, runs[0].ran_s), ("tar", "foreground-active", 2.0));
        // Of a process that is gone.
        let gone = Process { start_ticks: runs[0].process.start_ticks + 9, ..runs[0].process.clone() };
        let other = serde_json::to_vec(&RunNote { process: gone, ..runs[0].clone() }).unwrap();
        std::fs::write(folder.path().join("2-2.run"), other).unwrap();
        std::fs::write(folder.path().join("3-3.run"), "damage").unwrap();
        assert_eq!(running_in(folder.path()).len(), 1);
        drop(noted);
        assert!(running_in(folder.path()).is_empty());
    }
}
