//! A lock that only its owner can take: by write access to a file that nobody else may open. It ends with the process.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;

use super::folder::Folder;
use super::path::{belongs, is, refused};

/// A lock held until it is dropped.
#[derive(Debug)]
pub struct Hold(File);

impl Drop for Hold {
    /// The lock is of the open file: a process that another thread is about to start still has that open, and would keep it for a moment.
    fn drop(&mut self) {
        let _ = set(&self.0, libc::F_UNLCK);
    }
}

impl Hold {
    /// Takes the lock of this name in a folder that is the caller's or root's; `None` if another process holds it. A file that
    /// others may open is no lock: it makes room for one.
    ///
    /// # Errors
    /// What the file system says, or whose the file is.
    pub(crate) fn take(folder: &Folder, name: &OsStr) -> io::Result<Option<Self>> {
        const MODE: Mode = Mode::from_raw_mode(0o600);
        const TRIES: u32 = 100;
        for _ in 0..TRIES {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = File::from(openat(folder, name, flags, MODE)?);
            let stat = fstat(&file)?;
            belongs(&stat)?;
            if !is(&stat, FileType::RegularFile) {
                return Err(refused("is no regular file".into()));
            }
            if stat.st_mode & 0o077 != 0 {
                // Only who may write to it can hold it as we do.
                if stat.st_mode & 0o022 == 0 && holder(&file) == Some(libc::F_WRLCK) {
                    return Ok(None);
                }
                folder.remove(name)?;
                continue;
            }
            match set(&file, libc::F_WRLCK) {
                Ok(()) => {}
                Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::AGAIN | Errno::ACCESS)) => {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
            // It may have made room for another meanwhile.
            let now = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
            if now.is_ok_and(|now| (now.st_dev, now.st_ino) == (stat.st_dev, stat.st_ino)) {
                return Ok(Some(Self(file)));
            }
        }
        Err(refused("others may open every lock here: does this file system keep modes?".into()))
    }

    /// Whether anyone holds the lock of this name in a folder; nothing where that may not be asked.
    pub(crate) fn is_taken(folder: &Folder, name: &OsStr) -> Option<bool> {
        let file = match folder.open_file(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(false),
            other => other.ok()?,
        };
        holder(&file).map(|kind| kind != libc::F_UNLCK)
    }
}

/// Which kind of lock anyone else holds of a file, `F_UNLCK` if none; nothing where that may not be asked.
fn holder(file: &File) -> Option<libc::c_int> {
    // For a lock to read, only one to write is in the way; that is asked with read access too.
    let mut whole = whole(libc::F_RDLCK);
    // SAFETY: the descriptor is open, and the structure is there until the call returns.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut whole) };
    (answer == 0).then_some(whole.l_type.into())
}

/// Locks the whole file for this open file description, or unlocks it; not for the process: two in one process are told apart as well.
fn set(file: &File, kind: libc::c_int) -> io::Result<()> {
    let whole = whole(kind);
    // SAFETY: the descriptor is open, and the structure is there until the call returns.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const whole) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A lock of a whole file.
fn whole(kind: libc::c_int) -> libc::flock {
    // SAFETY: a structure of plain numbers, for which all zeros are a value.
    let mut whole: libc::flock = unsafe { std::mem::zeroed() };
    (whole.l_type, whole.l_whence) = (kind as libc::c_short, libc::SEEK_SET as libc::c_short);
    whole
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn one_holds_it_and_what_others_may_open_makes_room() {
        let folder = tempfile::tempdir().unwrap();
        let take = || Hold::take(&Folder::own(folder.path()).unwrap(), OsStr::new("x.lock"));
        let first = take().unwrap().unwrap();
        assert!(take().unwrap().is_none());
        // As a process has it that is being started.
        let _elsewhere = first.0.try_clone().unwrap();
        drop(first);
        assert!(take().unwrap().is_some());
        let file = folder.path().join("x.lock");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let open_to = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let held = take().unwrap().unwrap();
        open_to(0o644);
        assert!(take().unwrap().is_none(), "others may read it, but not hold it");
        open_to(0o666);
        assert!(take().unwrap().is_some());
        drop(held);
        open_to(0o644);
        assert!(take().unwrap().is_some());
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}
