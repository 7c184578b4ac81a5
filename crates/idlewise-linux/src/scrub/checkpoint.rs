//! The checkpoint of a scrub: one small file a device, replaced atomically, locked while a scrub runs.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use idlewise::Bytes;
use idlewise::order::{Name, Order, Place, Surface};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::{BadBlocks, Progress};
use crate::device::Device;
use crate::replace_file;

/// Version of the file's layout (docs/formats.md).
const VERSION: u32 = 2;

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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pass {
    version: u32,
    /// Which disk or partition it is of.
    pub identity: String,
    /// How it was called when it was last scrubbed.
    #[serde(default)]
    pub device: String,
    /// Its size.
    pub device_bytes: u64,
    /// Its logical block.
    pub block_bytes: u32,
    /// The order of the pass.
    pub order: Order,
    /// Where the order stands: everything that it handed out before is settled.
    pub place: Place,
    /// How the pass stands.
    pub state: State,
    /// Unreadable blocks found in it.
    pub errors: Vec<BadBlocks>,
    /// When the pass began, in seconds since 1970.
    pub started_unix_s: u64,
    /// When this was saved.
    pub saved_unix_s: u64,
    /// When the last complete pass ended.
    pub completed_unix_s: Option<u64>,
    /// Of the run that saved it.
    #[serde(default)]
    pub run: Option<RunSoFar>,
}

/// The run that saved a checkpoint, as far as it had got.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSoFar {
    /// What it did, and why it waited: the name of a [`Doing`](super::Doing).
    pub doing: String,
    /// Its duration.
    pub elapsed_s: f64,
    /// Bytes that it verified.
    pub verified_bytes: u64,
    /// Requests that it repeated.
    pub retries: u64,
    /// Foreground requests that it saw.
    pub foreground_requests: u64,
    /// Their mean slowdown.
    pub mean_slowdown_s: f64,
    /// Their longest slowdown.
    pub max_slowdown_s: f64,
    /// Request size in use.
    pub request_size_bytes: u64,
    /// Idle wait in use.
    pub idle_wait_s: f64,
}

/// Layout of version 1.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pass1 {
    #[serde(rename = "version")]
    _version: u32,
    identity: String,
    device_bytes: u64,
    block_bytes: u32,
    order: Name,
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
    /// The pass in it goes another way.
    #[error("{path}: the pass in it is in {was} order; --restart begins a new pass")]
    Order {
        /// The file.
        path: String,
        /// Its order.
        was: String,
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

    /// The pass that the checkpoint of a device holds, if there is one.
    ///
    /// # Errors
    /// [`CheckpointError`] if it is damaged or of another device.
    pub fn pass(&self, device: &Device) -> Result<Option<Pass>, CheckpointError> {
        let name = device.path.display().to_string();
        let (size, block, order) = (device.size.0, device.block, Order::SEQUENTIAL);
        read(&self.file(&device.identity), &Subject { identity: &device.identity, device: &name, size, block, order })
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
        let kept = if restart { None } else { read(&path, subject)? };
        let pass = match kept {
            Some(pass) if pass.state != State::Complete => {
                if pass.order != subject.order {
                    let was = pass.order.to_string();
                    return Err(CheckpointError::Order { path: path.display().to_string(), was });
                }
                Pass { device: subject.device.into(), ..pass }
            }
            over => subject.new_pass(over.and_then(|pass| pass.completed_unix_s)),
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
    fn new_pass(&self, completed_unix_s: Option<u64>) -> Pass {
        Pass {
            version: VERSION,
            identity: self.identity.into(),
            device: self.device.into(),
            device_bytes: self.size,
            block_bytes: self.block,
            order: self.order,
            place: Place::default(),
            state: State::Running,
            errors: Vec::new(),
            started_unix_s: unix_now(),
            saved_unix_s: unix_now(),
            completed_unix_s,
            run: None,
        }
    }
}

impl From<Pass1> for Pass {
    fn from(old: Pass1) -> Self {
        let Pass1 { identity, device_bytes, block_bytes, state, errors, started_unix_s, .. } = old;
        Self {
            version: VERSION,
            identity,
            device: String::new(),
            device_bytes,
            block_bytes,
            order: Order { name: old.order, ..Order::SEQUENTIAL },
            place: Place::after(old.position_bytes),
            state,
            errors,
            started_unix_s,
            saved_unix_s: old.saved_unix_s,
            completed_unix_s: old.completed_unix_s,
            run: None,
        }
    }
}

impl Pass {
    /// Whether every byte was visited.
    pub fn over(&self) -> bool {
        self.state == State::Complete
    }

    fn parse(text: &[u8]) -> Result<Self, String> {
        let value: serde_json::Value = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        let pass: Self = match value["version"].as_u64() {
            Some(1) => serde_json::from_value::<Pass1>(value).map(Self::from),
            Some(2) => serde_json::from_value(value),
            Some(other) => return Err(format!("version {other}, newer than {VERSION}")),
            None => return Err("without a version".into()),
        }
        .map_err(|error| error.to_string())?;
        let surface = Surface { size: Bytes(pass.device_bytes), block: pass.block_bytes };
        pass.order.make(surface, &pass.place).map_err(|problem| format!("its place: {problem}"))?;
        Ok(pass)
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
    /// Where the order stands.
    pub fn place(&self) -> &Place {
        &self.pass.place
    }

    /// Bytes that the order has handed out up to there.
    pub fn visited(&self) -> Bytes {
        Bytes(self.pass.place.visited)
    }

    /// Unreadable blocks of this pass.
    pub fn errors(&self) -> &[BadBlocks] {
        &self.pass.errors
    }

    /// Saves where the pass stands, on the disk when it returns.
    ///
    /// # Errors
    /// What the file system says; the checkpoint before is then still there.
    pub fn save(
        &mut self,
        place: &Place,
        errors: &[BadBlocks],
        state: State,
        progress: &Progress,
    ) -> Result<(), CheckpointError> {
        self.pass.place = place.clone();
        self.pass.errors = errors.to_vec();
        self.pass.state = state;
        self.pass.run = Some(RunSoFar::from(progress));
        self.pass.saved_unix_s = unix_now();
        if state == State::Complete {
            self.pass.completed_unix_s = Some(self.pass.saved_unix_s);
        }
        let text = serde_json::to_vec_pretty(&self.pass).expect("a checkpoint has only text and numbers");
        replace_file(&self.path, &text)
            .map_err(|error| CheckpointError::Io { path: self.path.display().to_string(), error })
    }
}

impl From<&Progress> for RunSoFar {
    fn from(progress: &Progress) -> Self {
        let measured = &progress.measured;
        let (size, wait) = progress.plan.unwrap_or_default();
        Self {
            doing: progress.doing.name().into(),
            elapsed_s: progress.elapsed.as_secs_f64(),
            verified_bytes: progress.verified_now.0,
            retries: progress.retries,
            foreground_requests: measured.foreground_requests,
            mean_slowdown_s: measured.mean_slowdown().as_secs_f64(),
            max_slowdown_s: measured.max_slowdown.as_secs_f64(),
            request_size_bytes: size.0,
            idle_wait_s: wait.as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
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
