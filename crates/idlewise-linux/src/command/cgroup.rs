//! A control group whose processes are held and let go together, by `cgroup.freeze` of version 2.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::hierarchy::{Hierarchy, below};
use crate::files::told_by_kernel;
use crate::scrub::{Process, boot_id};

/// Names of the groups that are ours begin so; behind it is whose they are.
const PREFIX: &str = "idlewise-run-";
/// A group is emptied so often: its processes may make others meanwhile.
const TRIES: usize = 100;

/// A group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cgroup {
    #[serde(with = "as_bytes")]
    folder: PathBuf,
    /// Whether we made it: then its processes go to the group above in the end. Nobody's place changes in one that was there before.
    is_ours: bool,
}

impl Cgroup {
    /// Makes a group below another; its processes go there in the end.
    ///
    /// # Errors
    /// If that is not possible, or a process cannot be put there and held.
    pub fn create(home: PathBuf) -> io::Result<Self> {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let Process { pid, start_ticks, pid_namespace, .. } = Process::this();
        let folder = home.join(format!("{PREFIX}{pid}-{start_ticks}-{pid_namespace}-{number}"));
        // Without both the kernel charges what it writes later to the group above. It refuses where that has processes of its own.
        for controller in ["+io", "+memory"] {
            let _ = fs::write(home.join("cgroup.subtree_control"), controller);
        }
        fs::create_dir(&folder)?;
        let group = Self { folder, is_ours: true };
        // Processes can be put there from a group that may be written to as well.
        let above = || OpenOptions::new().write(true).open(folder_above(&group.folder).join("cgroup.procs"));
        let usable = group
            .takes_processes()
            .and_then(|()| group.freeze(false))
            .and_then(|()| group.entry())
            .and_then(|_| above());
        usable.map(|_| group.clone()).inspect_err(|_| drop(fs::remove_dir(&group.folder)))
    }

    /// Below a group of threads the kernel lets a group be made, but lets no process in.
    fn takes_processes(&self) -> io::Result<()> {
        let kind = fs::read_to_string(self.folder.join("cgroup.type"))?;
        if kind.trim() == "domain" { Ok(()) } else { Err(Errno::OPNOTSUPP.into()) }
    }

    /// A group that was there before.
    ///
    /// # Errors
    /// If it cannot be held, or somebody else holds it.
    pub fn existing(folder: PathBuf) -> io::Result<Self> {
        let group = Self { folder, is_ours: false };
        if fs::read_to_string(group.folder.join("cgroup.freeze"))?.trim() == "1" {
            return Err(io::Error::other("it is frozen by somebody else"));
        }
        OpenOptions::new().write(true).open(group.folder.join("cgroup.freeze"))?;
        Ok(group)
    }

    /// Its number, by which the kernel tells it from others.
    ///
    /// # Errors
    /// If it is gone.
    pub fn number(&self) -> io::Result<u64> {
        fs::metadata(&self.folder).map(|metadata| metadata.ino())
    }

    /// Whether the kernel charges to it what it writes later for its processes.
    pub fn has_writes(&self) -> bool {
        let controllers = fs::read_to_string(self.folder.join("cgroup.controllers")).unwrap_or_default();
        ["io", "memory"].iter().all(|needed| controllers.split_whitespace().any(|word| word == *needed))
    }

    /// Keeps the memory of its processes, page cache included, below so many bytes (`memory.high`): the kernel then lets them fill no more
    /// pages than a part of that before it writes them.
    ///
    /// # Errors
    /// If the group has no memory controller.
    pub fn limit_memory(&self, bytes: u64) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).open(self.folder.join("memory.high"))?;
        file.write_all(bytes.to_string().as_bytes())
    }

    /// Where a process that is to be in it writes `0`.
    ///
    /// # Errors
    /// If that is not possible.
    pub fn entry(&self) -> io::Result<File> {
        OpenOptions::new().write(true).open(self.folder.join("cgroup.procs"))
    }

    /// Puts a process there, with all its threads.
    ///
    /// # Errors
    /// If it is gone or may not be moved.
    pub fn take(&self, process: u32) -> io::Result<()> {
        move_to(&self.folder, process)
    }

    /// Holds its processes, or lets them go. A process that is in the kernel is held when it leaves it.
    ///
    /// # Errors
    /// If it is gone.
    pub fn freeze(&self, held: bool) -> io::Result<()> {
        // Never makes a file: a group that is gone has none.
        let mut file = OpenOptions::new().write(true).open(self.folder.join("cgroup.freeze"))?;
        file.write_all(if held { b"1" } else { b"0" })
    }

    /// Its processes and those below it.
    pub fn processes(&self) -> Vec<u32> {
        below(&self.folder).iter().flat_map(|group| members(group)).collect()
    }

    /// Whether a process is in it or anywhere below it, by the kernel's own count: a path to it may be too long to be read.
    pub fn is_populated(&self) -> bool {
        let events = told_by_kernel(self.folder.join("cgroup.events")).unwrap_or_default();
        events.lines().any(|line| line == "populated 1")
    }

    /// Lets its processes go; if it is ours, they go home, and it is removed.
    ///
    /// # Errors
    /// If that is not possible; then they are let go nevertheless.
    pub fn release(&self) -> io::Result<()> {
        let freed = match self.freeze(false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other,
        };
        if !self.is_ours {
            return freed;
        }
        let home = folder_above(&self.folder);
        let mut removed = Ok(());
        for again in 0..TRIES {
            let groups = below(&self.folder);
            for process in groups.iter().flat_map(|group| members(group)) {
                let _ = move_to(&home, process);
            }
            removed = groups.iter().rev().try_for_each(fs::remove_dir);
            match &removed {
                Err(error) if Errno::from_io_error(error) == Some(Errno::BUSY) => {
                    sleep(Duration::from_millis(again.min(10) as u64));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                _ => break,
            }
        }
        freed.and(removed)
    }
}

/// A path in JSON, whatever its name is made of.
mod as_bytes {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        path.as_os_str().as_bytes().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        Ok(OsString::from_vec(Vec::deserialize(deserializer)?).into())
    }
}

/// Lets go what earlier runs have left behind that were killed together with their guards: groups of ours whose maker is gone.
pub fn release_left(hierarchy: &Hierarchy) {
    for folder in hierarchy.groups() {
        if maker(&folder).is_some_and(|maker| maker.is_alive() == Some(false)) {
            let _ = Cgroup { folder, is_ours: true }.release();
        }
    }
}

/// Who made a group of ours; nobody of one that somebody else may have made.
fn maker(folder: &Path) -> Option<Process> {
    let mut words = folder.file_name()?.to_str()?.strip_prefix(PREFIX)?.split('-').map(str::parse::<u64>);
    let mut word = || words.next()?.ok();
    let (pid, start_ticks, pid_namespace) = (u32::try_from(word()?).ok()?, word()?, word()?);
    let owner = fs::metadata(folder).ok()?.uid();
    let process = Process { pid, start_ticks, pid_namespace, boot_id: boot_id() };
    (owner == rustix::process::geteuid().as_raw()).then_some(process)
}

fn folder_above(folder: &Path) -> PathBuf {
    folder.parent().unwrap_or(folder).into()
}

fn members(group: &Path) -> Vec<u32> {
    let list = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    list.lines().filter_map(|line| line.parse().ok()).collect()
}

fn move_to(group: &Path, process: u32) -> io::Result<()> {
    OpenOptions::new().write(true).open(group.join("cgroup.procs"))?.write_all(process.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_group_whose_maker_is_gone_and_that_is_ours_is_let_go() {
        let root = tempfile::tempdir().unwrap();
        let Process { pid, start_ticks, pid_namespace, .. } = Process::this();
        let alive = |name: &str| {
            let folder = root.path().join(name);
            fs::create_dir(&folder).unwrap();
            maker(&folder).map(|maker| maker.is_alive())
        };
        assert_eq!(alive(&format!("{PREFIX}{pid}-{start_ticks}-{pid_namespace}-0")), Some(Some(true)));
        assert_eq!(alive(&format!("{PREFIX}{pid}-{}-{pid_namespace}-0", start_ticks + 9)), Some(Some(false)));
        assert_eq!(
            alive(&format!("{PREFIX}{pid}-{start_ticks}-{}-0", pid_namespace + 1)),
            Some(None),
            "of a container"
        );
        assert_eq!([alive("user.slice"), alive(&format!("{PREFIX}x-1-1-0")), alive(PREFIX)], [None; 3]);
    }
}
