//! The checkpoint of a scrub: one small file a device, replaced atomically, locked while a scrub runs.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use idlewise::Bytes;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::BadBlocks;
use crate::device::Device;
use crate::replace_file;

/// Version of the file's layout (docs/formats.md).
const VERSION: u32 = 1;

/// How a pass stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// A scrub is at it, or was killed.
    Running,
    /// Every byte was visited.
    Complete,
    /// Stopped on request.
    Interrupted,
    /// The device failed.
    Failed,
}

/// A checkpoint in its locked file.
#[derive(Debug)]
pub struct Checkpoint {
    path: PathBuf,
    pass: Pass,
    _lock: File,
}

/// What the file holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pass {
    version: u32,
    identity: String,
    device_bytes: u64,
    block_bytes: u32,
    order: String,
    /// Every byte in front of it was visited.
    position_bytes: u64,
    state: State,
    errors: Vec<BadBlocks>,
    started_unix_s: u64,
    saved_unix_s: u64,
    completed_unix_s: Option<u64>,
}

/// The folder in which checkpoints are kept.
#[derive(Clone, Debug)]
pub struct StateFolder(PathBuf);

/// A checkpoint cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// Another scrub holds it.
    #[error("{device}: another idlewise is scrubbing it (holds {lock})")]
    Busy {
        /// The device.
        device: String,
        /// The lock file.
        lock: String,
    },
    /// The file is no checkpoint.
    #[error("{path}: damaged checkpoint ({problem}); --restart begins a new pass")]
    Damaged {
        /// The file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The device is not what it was.
    #[error("{path}: the device had {was} then and has {is} now; --restart begins a new pass")]
    Changed {
        /// The file.
        path: String,
        /// Size in the checkpoint.
        was: Bytes,
        /// Size of the device.
        is: Bytes,
    },
    /// The file cannot be read or written.
    #[error("{path}: {error}; --state-dir chooses another folder")]
    Io {
        /// The file or folder.
        path: String,
        /// What the system said.
        error: io::Error,
    },
}

impl StateFolder {
    /// `folder`, or else /var/lib/idlewise for root and the user's state folder for others.
    pub fn choose(folder: Option<PathBuf>) -> Self {
        let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
        let user = || std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).or_else(home);
        let system = || PathBuf::from("/var/lib");
        let base = || if rustix::process::geteuid().is_root() { system() } else { user().unwrap_or_else(system) };
        Self(folder.unwrap_or_else(|| base().join("idlewise")))
    }

    /// Opens and locks the checkpoint of a device: the one that is there, unless its pass is over or `restart` is set,
    /// else a new one.
    ///
    /// # Errors
    /// [`CheckpointError`] if another scrub holds it, or it is damaged or of another device.
    pub fn open(&self, device: &Device, order: &str, restart: bool) -> Result<Checkpoint, CheckpointError> {
        let subject = Subject { identity: &device.identity, size: device.size.0, block: device.block, order };
        self.open_for(&subject, &device.path.display().to_string(), restart)
    }

    fn open_for(&self, subject: &Subject, device: &str, restart: bool) -> Result<Checkpoint, CheckpointError> {
        let io_error = |path: &Path| {
            let path = path.display().to_string();
            move |error| CheckpointError::Io { path, error }
        };
        fs::create_dir_all(&self.0).map_err(io_error(&self.0))?;
        let path = self.0.join(file_name(subject.identity) + ".json");
        let lock_path = path.with_extension("lock");
        let lock =
            File::options().create(true).truncate(false).write(true).open(&lock_path).map_err(io_error(&lock_path))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => {
                return Err(CheckpointError::Busy { device: device.into(), lock: lock_path.display().to_string() });
            }
            other => other.map_err(|errno| io_error(&lock_path)(errno.into()))?,
        }
        let kept = if restart { None } else { read(&path, subject)? };
        let pass = match kept {
            Some(pass) if pass.state != State::Complete => pass,
            over => subject.new_pass(over.and_then(|pass| pass.completed_unix_s)),
        };
        Ok(Checkpoint { path, pass, _lock: lock })
    }
}

/// What a checkpoint is of.
struct Subject<'a> {
    identity: &'a str,
    size: u64,
    block: u32,
    order: &'a str,
}

impl Subject<'_> {
    fn new_pass(&self, completed_unix_s: Option<u64>) -> Pass {
        Pass {
            version: VERSION,
            identity: self.identity.into(),
            device_bytes: self.size,
            block_bytes: self.block,
            order: self.order.into(),
            position_bytes: 0,
            state: State::Running,
            errors: Vec::new(),
            started_unix_s: unix_now(),
            saved_unix_s: unix_now(),
            completed_unix_s,
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
    let pass: Pass = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
    if pass.version != VERSION {
        return Err(damaged(format!("version {}, not {VERSION}", pass.version)));
    }
    if pass.identity != subject.identity || pass.order != subject.order {
        return Err(damaged(format!("it is of {}, {} order", pass.identity, pass.order)));
    }
    if pass.device_bytes != subject.size || pass.block_bytes != subject.block {
        let (was, is) = (Bytes(pass.device_bytes), Bytes(subject.size));
        return Err(CheckpointError::Changed { path: name(), was, is });
    }
    if pass.position_bytes > pass.device_bytes
        || !pass.position_bytes.is_multiple_of(u64::from(pass.block_bytes.max(1)))
    {
        return Err(damaged(format!("position {} on {} bytes", pass.position_bytes, pass.device_bytes)));
    }
    Ok(Some(pass))
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

fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl Checkpoint {
    /// Every byte in front of it was visited.
    pub fn position(&self) -> Bytes {
        Bytes(self.pass.position_bytes)
    }

    /// Unreadable blocks of this pass.
    pub fn errors(&self) -> &[BadBlocks] {
        &self.pass.errors
    }

    /// Saves where the pass stands, on the disk when it returns.
    ///
    /// # Errors
    /// What the file system says; the checkpoint before is then still there.
    pub fn save(&mut self, position: Bytes, errors: &[BadBlocks], state: State) -> Result<(), CheckpointError> {
        self.pass.position_bytes = position.0;
        self.pass.errors = errors.to_vec();
        self.pass.state = state;
        self.pass.saved_unix_s = unix_now();
        if state == State::Complete {
            self.pass.completed_unix_s = Some(self.pass.saved_unix_s);
        }
        let text = serde_json::to_vec_pretty(&self.pass).expect("a checkpoint has only text and numbers");
        replace_file(&self.path, &text)
            .map_err(|error| CheckpointError::Io { path: self.path.display().to_string(), error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUBJECT: Subject = Subject { identity: "wwn-1/2", size: 1 << 20, block: 512, order: "sequential" };

    fn open(folder: &Path, subject: &Subject, restart: bool) -> Result<Checkpoint, CheckpointError> {
        StateFolder::choose(Some(folder.into())).open_for(subject, "/dev/x", restart)
    }

    fn saved(folder: &Path, state: State) -> PathBuf {
        let mut checkpoint = open(folder, &SUBJECT, true).unwrap();
        let bad = BadBlocks { lba: 7, blocks: 2, kind: "io".into() };
        checkpoint.save(Bytes(8192), &[bad], state).unwrap();
        checkpoint.path.clone()
    }

    #[test]
    fn resumes_where_it_was_and_begins_anew_when_over() {
        let folder = tempfile::tempdir().unwrap();
        for state in [State::Running, State::Interrupted, State::Failed] {
            saved(folder.path(), state);
            let checkpoint = open(folder.path(), &SUBJECT, false).unwrap();
            assert_eq!((checkpoint.position(), checkpoint.errors().len()), (Bytes(8192), 1));
        }
        assert_eq!(open(folder.path(), &SUBJECT, true).unwrap().position(), Bytes(0));
        saved(folder.path(), State::Complete);
        let checkpoint = open(folder.path(), &SUBJECT, false).unwrap();
        assert_eq!((checkpoint.position(), checkpoint.errors().len()), (Bytes(0), 0));
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
    fn damage_and_another_size_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let path = saved(folder.path(), State::Running);
        let text = fs::read_to_string(&path).unwrap();
        let bigger = Subject { size: 2 << 20, ..SUBJECT };
        let error = open(folder.path(), &bigger, false).unwrap_err().to_string();
        assert!(error.contains("had 1024KiB then and has 2048KiB now"), "{error}");
        for damage in
            [&text[..text.len() / 2], "", "[]", &text.replace("\"position_bytes\": 8192", "\"position_bytes\": 8191")]
        {
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
        assert_eq!(open(folder.path(), &SUBJECT, false).unwrap().position(), Bytes(4096));
    }
}
