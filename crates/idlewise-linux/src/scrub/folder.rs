//! The folder of checkpoints: one file a device, known by its identity.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use idlewise::Bytes;
use idlewise::order::{Order, Place};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::checkpoint::unix_now;
use super::{Checkpoint, CheckpointError, Pass, State};
use crate::device::Device;

/// Where root's checkpoints are.
const SYSTEM: &str = "/var/lib/idlewise";

/// One checkpoint of a folder.
#[derive(Debug)]
pub struct Listed {
    /// What it holds.
    pub pass: Result<Pass, CheckpointError>,
    /// Whether a scrub is at it now.
    pub running: bool,
}

/// The folder in which checkpoints are kept.
#[derive(Clone, Debug)]
pub struct StateFolder(PathBuf);

impl StateFolder {
    /// `folder`, or else /var/lib/idlewise for root and the user's state folder for others.
    pub fn choose(folder: Option<PathBuf>) -> Self {
        let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
        let user = || std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).or_else(home);
        let system = || PathBuf::from(SYSTEM);
        let of_user = || user().map_or_else(system, |base| base.join("idlewise"));
        let usual = || if rustix::process::geteuid().is_root() { system() } else { of_user() };
        Self(folder.unwrap_or_else(usual))
    }

    /// The folders that may hold checkpoints: `folder`, or else that of the system and the user's own.
    pub fn readable(folder: Option<PathBuf>) -> Vec<Self> {
        let own = Self::choose(folder.clone());
        let system = Self(PathBuf::from(SYSTEM));
        if folder.is_some() || own.0 == system.0 { vec![own] } else { vec![system, own] }
    }

    /// Every checkpoint in the folder, and whether a scrub is at it.
    ///
    /// # Errors
    /// If the folder is there and cannot be read.
    pub fn list(&self) -> Result<Vec<Listed>, CheckpointError> {
        let entries = match fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(|error| CheckpointError::Io { path: self.0.display().to_string(), error })?,
        };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
        paths.sort();
        let listed = |path: PathBuf| {
            let name = path.display().to_string();
            let text = fs::read(&path).map_err(|error| CheckpointError::Io { path: name.clone(), error });
            let pass = text.and_then(|text| {
                Pass::parse(&text).map_err(|problem| CheckpointError::Damaged { path: name.clone(), problem })
            });
            Listed { pass, running: locked(&path.with_extension("lock")) }
        };
        Ok(paths.into_iter().map(listed).collect())
    }

    /// The pass that the checkpoint of a device holds, if there is one.
    ///
    /// # Errors
    /// [`CheckpointError`] if it is damaged or of another device.
    pub fn pass(&self, device: &Device) -> Result<Option<Pass>, CheckpointError> {
        let name = device.path.display().to_string();
        let (size, block, order) = (device.size.0, device.block, Order::SEQUENTIAL);
        read(&self.file(&device.identity), &Subject { identity: &device.identity, device: &name, size, block, order })
    }

    /// A file beside the checkpoint of a device.
    pub fn beside(&self, device: &Device, extension: &str) -> PathBuf {
        self.file(&device.identity).with_extension(extension)
    }

    fn file(&self, identity: &str) -> PathBuf {
        self.0.join(file_name(identity) + ".json")
    }

    /// Opens and locks the checkpoint of a device: the one that is there, unless its pass is over or `restart` is set,
    /// else a new one.
    ///
    /// # Errors
    /// [`CheckpointError`] if another scrub holds it, or it is damaged or of another device.
    pub fn open(&self, device: &Device, order: Order, restart: bool) -> Result<Checkpoint, CheckpointError> {
        let name = device.path.display().to_string();
        let (size, block) = (device.size.0, device.block);
        self.open_for(&Subject { identity: &device.identity, device: &name, size, block, order }, restart)
    }

    fn open_for(&self, subject: &Subject, restart: bool) -> Result<Checkpoint, CheckpointError> {
        let io_error = |path: &Path| {
            let path = path.display().to_string();
            move |error| CheckpointError::Io { path, error }
        };
        fs::create_dir_all(&self.0).map_err(io_error(&self.0))?;
        let path = self.file(subject.identity);
        let lock_path = path.with_extension("lock");
        let lock =
            File::options().create(true).truncate(false).write(true).open(&lock_path).map_err(io_error(&lock_path))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => {
                return Err(CheckpointError::Busy {
                    device: subject.device.into(),
                    lock: lock_path.display().to_string(),
                });
            }
            other => other.map_err(|errno| io_error(&lock_path)(errno.into()))?,
        }
        // What a damaged checkpoint knew is lost when a new pass is asked for.
        let kept = if restart { read(&path, subject).ok().flatten() } else { read(&path, subject)? };
        let pass = match kept {
            Some(pass) if pass.state != State::Complete && !restart => {
                if pass.order != subject.order {
                    let was = pass.order.to_string();
                    return Err(CheckpointError::Order { path: path.display().to_string(), was });
                }
                Pass { device: subject.device.into(), ..pass }
            }
            before => subject.new_pass(before.as_ref()),
        };
        Ok(Checkpoint { path, pass, _lock: lock })
    }
}

/// What a checkpoint is of.
#[derive(Clone, Copy)]
struct Subject<'a> {
    identity: &'a str,
    device: &'a str,
    size: u64,
    block: u32,
    order: Order,
}

impl Subject<'_> {
    fn new_pass(&self, before: Option<&Pass>) -> Pass {
        Pass {
            version: Pass::VERSION,
            identity: self.identity.into(),
            device: self.device.into(),
            device_bytes: self.size,
            block_bytes: self.block,
            order: self.order,
            place: Place::default(),
            state: State::Running,
            errors: Vec::new(),
            errors_before: before.map_or_else(Vec::new, Pass::known_errors),
            started_unix_s: unix_now(),
            saved_unix_s: unix_now(),
            completed_unix_s: before.and_then(|pass| pass.completed_unix_s),
            run: None,
        }
    }
}

fn read(path: &Path, subject: &Subject) -> Result<Option<Pass>, CheckpointError> {
    let name = || path.display().to_string();
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(CheckpointError::Io { path: name(), error }),
    };
    let damaged = |problem: String| CheckpointError::Damaged { path: name(), problem };
    let pass = Pass::parse(&text).map_err(damaged)?;
    if pass.identity != subject.identity {
        return Err(damaged(format!("it is of {}", pass.identity)));
    }
    if pass.device_bytes != subject.size || pass.block_bytes != subject.block {
        let (was, is) = (Bytes(pass.device_bytes), Bytes(subject.size));
        return Err(CheckpointError::Changed { path: name(), was, is });
    }
    Ok(Some(pass))
}

/// Whether a scrub holds this lock.
fn locked(lock: &Path) -> bool {
    let Ok(file) = File::open(lock) else { return false };
    flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
}

/// An identity as a file name.
fn file_name(identity: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = identity.chars().map(plain).collect();
    // Long names are cut; what was cut or replaced still counts, through a hash (FNV-1a).
    let hash = identity
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    format!("{}-{hash:016x}", &name[..name.len().min(100)])
}

#[cfg(test)]
mod tests {
    use super::super::{BadBlocks, Progress};
    use super::*;

    const SUBJECT: Subject =
        Subject { identity: "wwn-1/2", device: "/dev/x", size: 1 << 20, block: 512, order: Order::SEQUENTIAL };

    fn open(folder: &Path, subject: &Subject, restart: bool) -> Result<Checkpoint, CheckpointError> {
        StateFolder::choose(Some(folder.into())).open_for(subject, restart)
    }

    fn saved(folder: &Path, state: State) -> PathBuf {
        let mut checkpoint = open(folder, &SUBJECT, true).unwrap();
        let bad = BadBlocks { lba: 7, blocks: 2, kind: "io".into() };
        checkpoint.save(&Place::after(8192), &[bad], state, &Progress::default()).unwrap();
        checkpoint.path.clone()
    }

    #[test]
    fn resumes_where_it_was_and_begins_anew_when_over() {
        let folder = tempfile::tempdir().unwrap();
        for state in [State::Running, State::Interrupted, State::Failed] {
            saved(folder.path(), state);
            let checkpoint = open(folder.path(), &SUBJECT, false).unwrap();
            assert_eq!((checkpoint.visited(), checkpoint.errors().len()), (Bytes(8192), 1));
        }
        assert_eq!(open(folder.path(), &SUBJECT, true).unwrap().visited(), Bytes(0));
        saved(folder.path(), State::Complete);
        let checkpoint = open(folder.path(), &SUBJECT, false).unwrap();
        assert_eq!((checkpoint.visited(), checkpoint.errors().len()), (Bytes(0), 0));
        assert!(checkpoint.pass.completed_unix_s.is_some());
    }

    #[test]
    fn a_second_scrub_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let _first = open(folder.path(), &SUBJECT, false).unwrap();
        let error = open(folder.path(), &SUBJECT, false).unwrap_err().to_string();
        assert!(error.starts_with("/dev/x: another idlewise is scrubbing it"), "{error}");
        let other = Subject { identity: "wwn-1_2", ..SUBJECT };
        assert!(open(folder.path(), &other, false).is_ok());
    }

    #[test]
    fn another_order_needs_a_new_pass() {
        let folder = tempfile::tempdir().unwrap();
        saved(folder.path(), State::Interrupted);
        let staggered = Subject { order: Order::staggered(128, Bytes(65_536)), ..SUBJECT };
        let error = open(folder.path(), &staggered, false).unwrap_err().to_string();
        assert!(error.ends_with("is in sequential order; --restart begins a new pass"), "{error}");
        drop(open(folder.path(), &staggered, true).unwrap());
        saved(folder.path(), State::Complete);
        assert!(open(folder.path(), &staggered, false).is_ok());
    }

    #[test]
    fn damage_and_another_size_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let path = saved(folder.path(), State::Running);
        let text = fs::read_to_string(&path).unwrap();
        let bigger = Subject { size: 2 << 20, ..SUBJECT };
        let error = open(folder.path(), &bigger, false).unwrap_err().to_string();
        assert!(error.contains("had 1024KiB then and has 2048KiB now"), "{error}");
        for damage in [&text[..text.len() / 2], "", "[]", &text.replace("8192", "8191")] {
            fs::write(&path, damage).unwrap();
            let error = open(folder.path(), &SUBJECT, false).unwrap_err();
            assert!(matches!(error, CheckpointError::Damaged { .. }), "{error}");
        }
        assert!(open(folder.path(), &SUBJECT, true).is_ok());
    }

    /// A checkpoint written by version 0.1 must stay readable.
    #[test]
    fn version_1_stays_readable() {
        let folder = tempfile::tempdir().unwrap();
        let path = saved(folder.path(), State::Running);
        let text = r#"{"version":1,"identity":"wwn-1/2","device_bytes":1048576,"block_bytes":512,"order":"sequential",
            "position_bytes":4096,"state":"interrupted","errors":[{"lba":1,"blocks":1,"kind":"medium"}],
            "started_unix_s":1,"saved_unix_s":2,"completed_unix_s":null}"#;
        fs::write(path, text).unwrap();
        assert_eq!(open(folder.path(), &SUBJECT, false).unwrap().visited(), Bytes(4096));
    }
}
