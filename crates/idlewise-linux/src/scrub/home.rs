//! Where a checkpoint is kept: a locked file of an opened folder. A file system without room for either may have some later.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, statvfs};

use super::CheckpointError;
use crate::files::{Folder, Hold};

/// The place of a checkpoint.
#[derive(Debug)]
pub struct Home {
    folder: PathBuf,
    name: OsString,
    device: String,
    held: Option<Held>,
}

/// The folder, and the lock in it.
#[derive(Debug)]
struct Held {
    folder: Folder,
    /// Number of the file system that it is on.
    file_system: u64,
    _hold: Hold,
}

impl Home {
    /// Opens the folder and takes the lock of the file of this name there, for a device. Where there is no room for them, that is
    /// tried again when the file is to be written.
    ///
    /// # Errors
    /// [`CheckpointError`] if another scrub holds it, or the folder is none to write to.
    pub fn open(folder: &Path, name: OsString, device: &str) -> Result<Self, CheckpointError> {
        let mut home = Self { folder: folder.into(), name, device: device.into(), held: None };
        match home.hold().map(|_| ()) {
            Err(CheckpointError::Io { error, .. }) if is_full(&error) => {}
            held => held?,
        }
        Ok(home)
    }

    /// The file, for messages.
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// Number of the file system that it is on, once that is known.
    pub fn file_system(&self) -> Option<u64> {
        self.held.as_ref().map(|held| held.file_system)
    }

    /// What the file holds; nothing where there is none.
    pub fn read(&self) -> io::Result<Option<Vec<u8>>> {
        let read = match &self.held {
            Some(held) => held.folder.read(&self.name),
            None => match Folder::own_if_there(&self.folder)? {
                Some(folder) => folder.read(&self.name),
                None => return Ok(None),
            },
        };
        match read {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            other => other.map(Some),
        }
    }

    /// Replaces the file; `before` is told its file system first.
    ///
    /// # Errors
    /// What the file system says, or that another scrub has taken the lock meanwhile; the file before is then still there.
    pub fn replace(&mut self, content: &[u8], before: impl FnOnce(u64)) -> Result<(), CheckpointError> {
        let (path, folder) = (self.path(), self.folder.clone());
        let name = self.name.clone();
        let held = self.hold()?;
        before(held.file_system);
        // For everyone to read: `status` needs no privilege.
        let written = held.folder.replace(&name, content, Mode::from_raw_mode(0o644), true);
        // The next time it is made again.
        let removed = written.is_err() && held.folder.is_removed();
        self.held.take_if(|_| removed);
        written.map_err(|error| failed(&path, &folder, error))
    }

    /// Removes the file. Its lock stays: who waits for it must not hold another one than who comes later.
    ///
    /// # Errors
    /// What the file system says, or that another scrub has taken the lock.
    pub fn remove(&mut self) -> Result<(), CheckpointError> {
        let (path, folder, name) = (self.path(), self.folder.clone(), self.name.clone());
        let removed = self.hold()?.folder.remove(&name);
        removed.map_err(|error| failed(&path, &folder, error))
    }

    fn hold(&mut self) -> Result<&Held, CheckpointError> {
        if self.held.is_none() {
            let lock = self.path().with_extension("lock");
            let opened = Folder::own(&self.folder).map_err(|error| failed(&self.folder, &self.folder, error))?;
            let io_error = |error| failed(&lock, &self.folder, error);
            let hold = Hold::take(&opened, lock.file_name().unwrap_or_default()).map_err(io_error)?;
            let busy = || CheckpointError::Busy { device: self.device.clone(), lock: lock.display().to_string() };
            let hold = hold.ok_or_else(busy)?;
            let file_system = opened.device().map_err(io_error)?;
            self.held = Some(Held { folder: opened, file_system, _hold: hold });
        }
        Ok(self.held.as_ref().expect("it is held now"))
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// What the file system said of a path. That it is full is not believed where space is left: then inodes are not.
fn failed(path: &Path, folder: &Path, error: io::Error) -> CheckpointError {
    let path = path.display().to_string();
    let has_no_inode = || {
        let counts = folder.ancestors().find_map(|there| statvfs(there).ok());
        counts.is_some_and(|counts| counts.f_files > 0 && counts.f_ffree == 0)
    };
    // Where it said something else, it may be a file system that answers nothing.
    let error = match is_full(&error) && has_no_inode() {
        true => io::Error::new(error.kind(), "no inode is free on its file system"),
        false => error,
    };
    CheckpointError::Io { path, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_was_removed_is_made_again() {
        let above = tempfile::tempdir().unwrap();
        let folder = above.path().join("states");
        let mut home = Home::open(&folder, "x.json".into(), "/dev/x").unwrap();
        home.replace(b"1", |_| ()).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(home.replace(b"2", |_| ()).is_err());
        home.replace(b"3", |_| ()).unwrap();
        assert_eq!(std::fs::read(folder.join("x.json")).unwrap(), b"3");
    }
}
