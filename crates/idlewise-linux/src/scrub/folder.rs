//! The folder of checkpoints: one file a device, known by its identity.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use idlewise::Nanos;
use idlewise::order::Order;

use super::home::Home;
use super::process::Process;
use super::subject::{Subject, doubtful};
use super::{Begun, Checkpoint, CheckpointError, Doing, Pass, State};
use crate::device::Device;
use crate::files::{Folder, Hold};

/// Where root's checkpoints are.
const SYSTEM: &str = "/var/lib/idlewise";

/// Bytes of the checkpoints that are listed of a folder, which anyone may have filled.
const LARGEST: u64 = 128 << 20;

/// One checkpoint of a folder.
#[derive(Debug)]
pub struct Listed {
    /// What it holds.
    pub pass: Result<Pass, CheckpointError>,
    /// Whether a scrub is at it now.
    pub running: bool,
    /// Whether a signal has stopped that scrub, until another lets it go on.
    pub stopped: bool,
}

/// The folder in which checkpoints are kept.
#[derive(Clone, Debug)]
pub struct StateFolder(PathBuf);

impl StateFolder {
    /// `folder`, or else /var/lib/idlewise for root and the user's state folder for others.
    pub fn choose(folder: Option<PathBuf>) -> Self {
        let usual = || if rustix::process::geteuid().is_root() { PathBuf::from(SYSTEM) } else { of_user() };
        Self(folder.unwrap_or_else(usual))
    }

    /// The folders that may hold checkpoints: `folder`, or else that of the system and the user's own.
    pub fn readable(folder: Option<PathBuf>) -> Vec<Self> {
        let own = Self::choose(folder.clone());
        let system = Self(PathBuf::from(SYSTEM));
        if folder.is_some() || own.0 == system.0 { vec![own] } else { vec![system, own] }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Takes the lock of this name in the folder, for as long as it is held; `None` if another process holds it.
    ///
    /// # Errors
    /// What the file system says, or whose the folder is.
    pub fn hold(&self, name: &str) -> io::Result<Option<Hold>> {
        Hold::take(&Folder::own(&self.0)?, name.as_ref())
    }

    /// Every checkpoint in the folder, and whether a scrub is at it.
    ///
    /// # Errors
    /// If the folder is there and cannot be read.
    pub fn list(&self) -> Result<Vec<Listed>, CheckpointError> {
        let io_error =
            |name: &OsStr, error| CheckpointError::Io { path: self.0.join(name).display().to_string(), error };
        let (folder, mut names) = match self.names() {
            Ok(Some(there)) => there,
            Ok(None) => return Ok(Vec::new()),
            // Of `sudo -u` and the like: the home is another user's, and so is what lies there.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && self.0 == of_user() => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(CheckpointError::Io { path: self.0.display().to_string(), error }),
        };
        // A checkpoint that is on its way has a hidden name.
        let is_hidden = |name: &OsStr| name.as_encoded_bytes().starts_with(b".");
        names.retain(|name| Path::new(name).extension().is_some_and(|end| end == "json") && !is_hidden(name));
        names.sort();
        let mut room = LARGEST;
        let full = || io::Error::other("the checkpoints of this folder have more than 128 MiB");
        let listed = |name: OsString| {
            let read = if room > 0 { folder.read_any(&name) } else { Err(full()) };
            let (text, saved) = match read {
                // Once one has no room, none has.
                Ok((text, saved)) => {
                    // Short items take more memory than letters.
                    let items = text.iter().filter(|letter| **letter == b',').count() as u64;
                    let takes = text.len() as u64 + 32 * items;
                    let has_room = takes <= room;
                    room = if has_room { room - takes } else { 0 };
                    (if has_room { Ok(text) } else { Err(io_error(&name, full())) }, saved)
                }
                // It was there a moment ago.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
                Err(error) => (Err(io_error(&name, error)), None),
            };
            let damaged =
                |problem| CheckpointError::Damaged { path: self.0.join(&name).display().to_string(), problem };
            let pass = text.and_then(|text| Pass::parse(&text).map_err(damaged));
            let lock = Path::new(&name).with_extension("lock");
            let at_it = |by: &Process| by.is_alive_by(&folder, lock.as_os_str(), saved);
            let running = |pass: &Pass| pass.state == State::Running && pass.process.as_ref().is_some_and(at_it);
            let running = pass.as_ref().is_ok_and(running);
            let stopped =
                running && pass.as_ref().ok().and_then(|pass| pass.process.as_ref()).is_some_and(Process::is_stopped);
            Some(Listed { pass, running, stopped })
        };
        Ok(names.into_iter().filter_map(listed).collect())
    }

    /// What lies in the folder, if it is there.
    fn names(&self) -> io::Result<Option<(Folder, Vec<OsString>)>> {
        match Folder::to_read(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            folder => folder?
                .map(|folder| {
                    let names = folder.names()?;
                    Ok((folder, names))
                })
                .transpose(),
        }
    }

    /// The pass that the checkpoint of a device holds, if there is one.
    ///
    /// # Errors
    /// [`CheckpointError`] if it is damaged or of another device.
    pub fn pass(&self, device: &Device) -> Result<Option<Pass>, CheckpointError> {
        let subject = Subject::unread(device, Order::SEQUENTIAL);
        let pass = self.pass_of(&subject)?;
        pass.map(|pass| subject.check_size(&pass, &self.file(&device.identity)).map(|()| pass)).transpose()
    }

    /// The pass over the members of an array, if there is one that can be read; whatever members it has now.
    pub fn pass_by_members(&self, array: &Device) -> Option<Pass> {
        let identity = array.identity.clone() + Device::BY_MEMBERS;
        self.pass_of(&Subject { identity: &identity, ..Subject::unread(array, Order::SEQUENTIAL) }).ok().flatten()
    }

    /// The same, whatever size the device has now.
    fn pass_of(&self, subject: &Subject) -> Result<Option<Pass>, CheckpointError> {
        let path = self.file(subject.identity);
        let io_error = |path: &Path, error| CheckpointError::Io { path: path.display().to_string(), error };
        let folder = Folder::own_if_there(&self.0).map_err(|error| io_error(&self.0, error))?;
        let pass = match folder.map(|folder| folder.read(path.file_name().unwrap_or_default())) {
            None => return Ok(None),
            Some(Err(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Some(text) => parse(&text.map_err(|error| io_error(&path, error))?, subject, &path)?,
        };
        match subject.is_other(&pass) {
            Some(why) => Err(CheckpointError::OtherDisk { path: path.display().to_string(), why }),
            None => Ok(Some(pass)),
        }
    }

    /// The pass that a scrub in this order would go on with, if there is one.
    ///
    /// # Errors
    /// [`CheckpointError`] if it could not, as the checkpoint is damaged or of another order.
    pub fn unfinished(&self, device: &Device, order: Order) -> Result<Option<Pass>, CheckpointError> {
        let subject = Subject::unread(device, order);
        let pass = match self.pass_of(&subject) {
            Err(CheckpointError::OtherDisk { .. }) => return Ok(None),
            pass => pass?.filter(|pass| !pass.over()),
        };
        let pass = pass.filter(|pass| subject.has_to_begin_anew(pass).is_none());
        pass.map(|pass| subject.resumed(pass, &self.file(&device.identity))).transpose()
    }

    /// Removes the checkpoint of this identity, as of a disk that is gone; `device` is what it is called where a scrub is at it.
    ///
    /// # Errors
    /// [`CheckpointError::Busy`] if a scrub is at it, or what the file system says.
    pub fn forget(&self, identity: &str, device: &str) -> Result<(), CheckpointError> {
        Home::open(&self.0, (file_name(identity) + ".json").into(), device)?.remove()
    }

    /// Whether a checkpoint of this identity is there that cannot be read as one.
    pub fn is_damaged(&self, identity: &str) -> bool {
        let name = file_name(identity) + ".json";
        let read = || Folder::to_read(&self.0).ok()??.read_any(name.as_ref()).ok();
        read().is_some_and(|(text, _)| Pass::parse(&text).is_err())
    }

    /// A file beside the checkpoint of a device.
    pub fn beside(&self, device: &Device, extension: &str) -> PathBuf {
        self.file(&device.identity).with_extension(extension)
    }

    fn file(&self, identity: &str) -> PathBuf {
        self.0.join(file_name(identity) + ".json")
    }

    /// Opens and locks the checkpoint of a device: the one that is there, unless its pass is over, it is of another disk or
    /// `restart` is set, else a new one. The folder must belong to the caller or to root, and nobody else may write to it.
    ///
    /// # Errors
    /// [`CheckpointError`] if another scrub holds it, or it is damaged or of another device.
    pub fn open(&self, device: &Device, order: Order, restart: bool) -> Result<Checkpoint, CheckpointError> {
        self.open_for(&Subject::of(device, order), restart)
    }

    fn open_for(&self, subject: &Subject, restart: bool) -> Result<Checkpoint, CheckpointError> {
        let home = Home::open(&self.0, (file_name(subject.identity) + ".json").into(), subject.device)?;
        let path = home.path();
        // What a damaged checkpoint knew is lost when a new pass is asked for.
        let kept = if restart { read(&home, subject).ok().flatten() } else { read(&home, subject)? };
        let (begun, pass) = match kept {
            None => (Begun::Anew, subject.new_pass(None)),
            Some(before) => match subject.is_other(&before) {
                Some(why) => {
                    let begun = if before.over() || restart { Begun::Anew } else { Begun::AnewBecause(why) };
                    (
                        begun,
                        subject.new_pass(subject.may_be(&before).then(|| doubtful(subject.fitting(before))).as_ref()),
                    )
                }
                None if before.over() || restart => (Begun::Anew, subject.new_pass(Some(&subject.fitting(before)))),
                None => match subject.has_to_begin_anew(&before) {
                    Some(why) => (Begun::AnewBecause(why), subject.new_pass(Some(&subject.fitting(before)))),
                    None => (Begun::Resumed, subject.resumed(before, &path)?),
                },
            },
        };
        let measuring = pass.run.as_ref().is_some_and(|run| run.doing == Doing::Calibrating.name());
        let failed_before = pass.state == State::Failed || pass.state != State::Complete && measuring;
        Ok(Checkpoint { home, pass, begun, pause: Nanos::ZERO, failed_before })
    }
}

/// The user's own folder.
fn of_user() -> PathBuf {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let user = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).or_else(home);
    user.map_or_else(|| PathBuf::from(SYSTEM), |base| base.join("idlewise"))
}

/// Reads the checkpoint that is there.
fn read(home: &Home, subject: &Subject) -> Result<Option<Pass>, CheckpointError> {
    let name = || home.path().display().to_string();
    let text = home.read().map_err(|error| CheckpointError::Io { path: name(), error })?;
    text.map(|text| parse(&text, subject, &home.path())).transpose()
}

/// What a checkpoint at `path` says of a device.
fn parse(text: &[u8], subject: &Subject, path: &Path) -> Result<Pass, CheckpointError> {
    let damaged = |problem: String| CheckpointError::Damaged { path: path.display().to_string(), problem };
    let pass = Pass::parse(text).map_err(damaged)?;
    if pass.identity != subject.identity {
        return Err(damaged(format!("it is of {}", pass.identity)));
    }
    Ok(pass)
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
mod tests;
