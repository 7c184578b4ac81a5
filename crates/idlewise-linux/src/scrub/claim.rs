//! One idlewise at a disk: whoever keeps its checkpoints elsewhere, or scrubs another part of the disk, is seen as well.
//!
//! A claim is a lock in a folder of the user's own, `/run/idlewise` for root, which network name spaces do not part and which is
//! empty after a restart. Beside it lies a note for everyone to read: who is at the disk, and what it does at the moment. Of the
//! notes only root's count for others.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use idlewise::Nanos;
use rustix::fs::Mode;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use super::process::Process;
use super::{CheckpointError, Progress, RunSoFar, StateFolder};
use crate::device::{Device, shares_disk};
use crate::files::{Folder, Hold};
use crate::monitor::{Announcement, now};

/// Where root's claims are.
pub(crate) const SYSTEM: &str = "/run/idlewise";

/// The claim to a disk, until it is dropped or the process ends.
#[derive(Debug)]
pub struct Claim {
    folder: Folder,
    name: OsString,
    note: Note,
    /// Number of the file system that the folder is on.
    file_system: u64,
    told: Nanos,
    limited: bool,
    _hold: Hold,
}

/// What everyone may know of a scrub that runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    version: u32,
    /// Who scrubs.
    pub process: Process,
    /// Identity of the device, as in its checkpoint; empty of a disk below that.
    pub identity: String,
    /// Bytes of the device verified in this pass; its checkpoint may be older.
    pub verified_bytes: u64,
    /// How far the run is.
    pub run: RunSoFar,
}

/// No note is larger: it has an account, and names.
const LARGEST: u64 = 16 << 10;
/// Notes of a folder that count: there are no more disks.
const MOST: usize = 1 << 12;

/// Time between two notes.
const PAUSE: Nanos = Nanos::from_secs(2);

/// Version 1 had no account in its `run`.
const VERSIONS: std::ops::RangeInclusive<u32> = 1..=2;

impl Claim {
    /// Claims the disk that `device` lies on. Where there is no folder for claims, it is among the checkpoints, in `states`.
    ///
    /// # Errors
    /// [`CheckpointError::Busy`] if another scrub has, or what the file system says of the folder of claims.
    pub fn of(device: &Device, states: &StateFolder) -> Result<Self, CheckpointError> {
        Self::at(device.disk_numbers(), &device.path.display().to_string(), &device.identity, states)
    }

    /// Claims the disks that these devices lie on, each once, and those below them: a scrub of a volume and one of its disk would take each
    /// other for the foreground. Not those that are claimed already.
    ///
    /// # Errors
    /// As [`Claim::of`].
    pub fn around<'a>(
        devices: impl Iterator<Item = &'a Device>,
        claimed: &[(u32, u32)],
        states: &StateFolder,
    ) -> Result<Vec<Self>, CheckpointError> {
        let mut disks = BTreeMap::new();
        for device in devices {
            let path = device.path.display().to_string();
            // What lies below is nobody's by its name: nothing of its own is verified.
            disks.extend(device.disks().into_iter().map(|disk| (disk, (format!("a disk below {path}"), ""))));
            disks.insert(device.disk_numbers(), (path, &device.identity));
        }
        let others = disks.iter().filter(|(disk, _)| !claimed.contains(disk));
        others.map(|(&disk, (path, identity))| Self::at(disk, path, identity, states)).collect()
    }

    fn at(
        (major, minor): (u32, u32),
        path: &str,
        identity: &str,
        states: &StateFolder,
    ) -> Result<Self, CheckpointError> {
        let (name, path) = (format!("{major}-{minor}"), path.to_string());
        if !geteuid().is_root() && note(Path::new(SYSTEM), &name).is_some() {
            return Err(CheckpointError::Busy { device: path, lock: format!("{SYSTEM}/{name}.note") });
        }
        let claimed = own_folder().map(|folder| Self::in_folder(&folder, &name, &path, identity));
        match claimed {
            // Full, read-only or another user's.
            None | Some(Err(CheckpointError::Claim { .. })) => {}
            Some(claimed) => return claimed,
        }
        let mut claim = Self::in_folder(states.path(), &name, &path, identity)?;
        claim.limited = true;
        Ok(claim)
    }

    /// Whether only a scrub with the same folder of checkpoints sees it.
    pub fn is_limited(&self) -> bool {
        self.limited
    }

    fn in_folder(path: &Path, name: &str, device: &str, identity: &str) -> Result<Self, CheckpointError> {
        let io_error = |error| CheckpointError::Claim { path: path.display().to_string(), error };
        let folder = Folder::own(path).map_err(io_error)?;
        let lock = OsString::from(format!("{name}.lock"));
        let hold = Hold::take(&folder, &lock).map_err(io_error)?;
        let lock = path.join(lock).display().to_string();
        let hold = hold.ok_or(CheckpointError::Busy { device: device.into(), lock })?;
        let note = Note {
            version: *VERSIONS.end(),
            process: Process::this(),
            identity: identity.into(),
            verified_bytes: 0,
            run: RunSoFar::default(),
        };
        let file_system = folder.device().map_err(io_error)?;
        let claim = Self {
            folder,
            name: format!("{name}.note").into(),
            note,
            file_system,
            told: Nanos::ZERO,
            limited: false,
            _hold: hold,
        };
        // The lock is what counts.
        let _ = claim.write();
        Ok(claim)
    }

    /// Says what the scrub does at the moment, if that writes to no disk that is scrubbed. It is no loss if it cannot be said.
    pub fn tell(&mut self, progress: &Progress) {
        if now().since(self.told) < PAUSE {
            return;
        }
        self.told = now();
        // It is in memory nearly everywhere; where it is not, it must not disturb what is scrubbed.
        if !Announcement::of(self.file_system).reaches_none() {
            return;
        }
        (self.note.verified_bytes, self.note.run) = (progress.verified.0, RunSoFar::from(progress));
        let _ = self.write();
    }

    fn write(&self) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(&self.note).expect("a note has only text and numbers");
        self.folder.replace(&self.name, &text, Mode::from_raw_mode(0o644), false)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let _ = self.folder.remove(&self.name);
    }
}

/// The notes of root's scrubs that run, and of the caller's, whose checkpoints are in `states`.
pub fn notes(states: &[StateFolder]) -> Vec<Note> {
    let states = states.iter().map(|states| states.path().to_path_buf());
    let folders: BTreeSet<PathBuf> = [PathBuf::from(SYSTEM)].into_iter().chain(own_folder()).chain(states).collect();
    let of = |folder: &PathBuf| {
        let opened = Folder::to_read(folder).ok().flatten();
        opened.into_iter().flat_map(|folder| {
            let names = notes_in(&folder);
            names.into_iter().filter_map(move |name| live(&folder, &name)).take(MOST)
        })
    };
    folders.iter().flat_map(of).collect()
}

/// Whether another process of root or the caller scrubs this disk, or what lies on it.
pub fn is_claimed(disk: (u32, u32)) -> bool {
    let me = Process::this();
    let name = format!("{}-{}", disk.0, disk.1);
    own_folder().is_some_and(|folder| note(&folder, &name).is_some_and(|note| note.process != me))
}

/// The names of all notes in a folder of claims.
fn notes_in(folder: &Folder) -> Vec<OsString> {
    let mut names = folder.names().unwrap_or_default();
    names.retain(|name| Path::new(name).extension() == Some(OsStr::new("note")));
    names
}

/// Whether what is written to the file system of this number may reach a disk that another process scrubs. Each looks after its own writes
/// alone, so that those of others are foreground to it.
pub(crate) fn others_scrub_below(file_system: u64) -> bool {
    own_folder().and_then(|folder| Folder::to_read(&folder).ok().flatten()).is_some_and(|folder| {
        let me = Process::this();
        let is_reached = |name: &OsString| {
            let (major, minor) = Path::new(name).file_stem()?.to_str()?.split_once('-')?;
            let disk = (major.parse().ok()?, minor.parse().ok()?);
            (shares_disk(file_system, disk) && live(&folder, name)?.process != me).then_some(())
        };
        notes_in(&folder).iter().any(|name| is_reached(name).is_some())
    })
}

/// The note of a scrub that is at the disk of these numbers, in a folder of claims.
#[cfg(feature = "bpf")]
pub(crate) fn note_of(folder: &Path, (major, minor): (u32, u32)) -> Option<Note> {
    note(folder, &format!("{major}-{minor}"))
}

/// The note of a scrub that is at a disk.
fn note(folder: &Path, name: &str) -> Option<Note> {
    live(&Folder::to_read(folder).ok()??, OsStr::new(&format!("{name}.note")))
}

/// A note, if the scrub that wrote it still runs.
fn live(folder: &Folder, name: &OsStr) -> Option<Note> {
    let (text, said) = folder.read_small(name, LARGEST).ok()?;
    let note: Note = serde_json::from_slice(&text).ok()?;
    let lock = Path::new(name).with_extension("lock");
    let alive = note.process.is_alive_by(folder, lock.as_os_str(), said);
    (VERSIONS.contains(&note.version) && alive).then_some(note)
}

/// Where the caller's claims are.
pub(crate) fn own_folder() -> Option<PathBuf> {
    if geteuid().is_root() {
        return Some(PathBuf::from(SYSTEM));
    }
    let named = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    // Where systemd makes it; `su` and `cron` do not say so.
    let usual = || Some(PathBuf::from(format!("/run/user/{}", geteuid().as_raw()))).filter(|folder| folder.is_dir());
    named.or_else(usual).map(|folder| folder.join("idlewise"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use idlewise::Bytes;

    use super::*;
    use crate::scrub::Doing;

    #[test]
    fn a_disk_is_claimed_once_and_everyone_may_read_by_whom() {
        let folder = tempfile::tempdir().unwrap();
        let claim = |name| Claim::in_folder(folder.path(), name, "/dev/x", "wwn-1");
        let mut first = claim("8-0").unwrap();
        let error = claim("8-0").unwrap_err().to_string();
        assert!(error.starts_with("/dev/x: another idlewise is scrubbing it (holds "), "{error}");
        assert!(claim("8-16").is_ok());
        first.tell(&Progress { doing: Doing::IdleWait, verified: Bytes(7), ..Progress::default() });
        let read = note(folder.path(), "8-0").unwrap();
        assert_eq!((&*read.run.doing, &*read.identity, read.verified_bytes), ("idle-wait", "wwn-1", 7));
        assert_eq!(read.process.is_alive(), Some(true));
        let mode = |name: &str| folder.path().join(name).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("8-0.note"), mode("8-0.lock")), (0o644, 0o600));
        // What is longer than any note is none.
        let path = folder.path().join("8-0.note");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text + &" ".repeat(LARGEST as usize)).unwrap();
        assert!(note(folder.path(), "8-0").is_none());
        drop(first);
        assert!(note(folder.path(), "8-0").is_none());
        assert!(claim("8-0").is_ok());
    }
}
