//! An opened folder, and what is done in it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fchmod, fgetxattr, fstat, mkdirat, openat, openat2,
};
use rustix::io::Errno;

use super::path::{Found, Spot, Thing, Way, belongs, is, others_may_write, refused, walk};

/// Names in a folder that is read, at most: its owner chooses how many there are.
const MOST_NAMES: usize = 1 << 18;

/// An opened folder: what is done in it is done there, whatever becomes of the path that led to it.
#[derive(Debug)]
pub struct Folder(pub(super) OwnedFd);

impl Folder {
    /// Opens a folder that belongs to the caller or to root and that no other user can replace or write to; what is missing of it
    /// is made, for its owner to write and for everyone to read, whatever the umask.
    ///
    /// # Errors
    /// What the file system says, or whose folder is in the way.
    pub fn own(path: &Path) -> io::Result<Self> {
        Self::at(walk(path, Way::OwnNew)?)
    }

    /// The same; nothing where there is none.
    ///
    /// # Errors
    /// As [`Self::own`].
    pub fn own_if_there(path: &Path) -> io::Result<Option<Self>> {
        match walk(path, Way::Own) {
            Ok(Spot { found: Found::Nothing, .. }) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            spot => Self::at(spot?).map(Some),
        }
    }

    /// Opens a folder of anyone's, to look at what lies there; nothing where there is none. No mount of another user is asked for anything.
    ///
    /// # Errors
    /// What the file system says, or whose link or mount is in the way.
    pub fn to_read(path: &Path) -> io::Result<Option<Self>> {
        match walk(path, Way::Any)?.found {
            Found::Nothing => Ok(None),
            Found::Thing(Thing { itself, stat }) if is(&stat, FileType::Directory) => Ok(Some(Self(itself))),
            _ => Err(Errno::NOTDIR.into()),
        }
    }

    fn at(spot: Spot) -> io::Result<Self> {
        let Spot { folder, name, found } = spot;
        match found {
            Found::Nothing => folder.make(&name),
            Found::OpenFile => Err(Errno::NOTDIR.into()),
            Found::Thing(thing) if !is(&thing.stat, FileType::Directory) => Err(Errno::NOTDIR.into()),
            Found::Thing(Thing { itself, stat }) => Self::ours(itself, &stat),
        }
    }

    /// An opened folder, if it is ours and nobody else may write to it.
    fn ours(itself: OwnedFd, stat: &Stat) -> io::Result<Self> {
        belongs(stat)?;
        if others_may_write(stat) {
            return Err(refused("others may write to this folder".into()));
        }
        if a_list_lets_others_write(&itself, stat) {
            return Err(refused("an access list lets others write to this folder".into()));
        }
        Ok(Self(itself))
    }

    /// Reads a file of ours in it.
    ///
    /// # Errors
    /// What the file system says, or what the file is.
    pub fn read(&self, name: &OsStr) -> io::Result<Vec<u8>> {
        let file = self.open_file(name)?;
        belongs(&fstat(&file)?)?;
        super::content_of(file)
    }

    /// Reads a file like ours in it, whoever may have put something else there, and tells when that was written.
    ///
    /// # Errors
    /// What the file system says, or what the file is.
    pub fn read_any(&self, name: &OsStr) -> io::Result<(Vec<u8>, Option<SystemTime>)> {
        self.read_small(name, super::LARGEST)
    }

    /// The same of a file that has at most so many bytes.
    ///
    /// # Errors
    /// As [`Self::read_any`].
    pub fn read_small(&self, name: &OsStr, largest: u64) -> io::Result<(Vec<u8>, Option<SystemTime>)> {
        let file = self.open_file(name)?;
        let written = file.metadata()?.modified().ok();
        Ok((super::small_content_of(file, largest)?, written))
    }

    /// No link is followed, no pipe waited for, and no mount gone into.
    pub(super) fn open_file(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        match openat2(&self.0, name, flags, Mode::empty(), ResolveFlags::NO_XDEV) {
            // Before Linux 5.6, and where a container forbids it.
            Err(Errno::XDEV) => Err(refused("something is mounted there".into())),
            Err(Errno::NOSYS | Errno::PERM) => Ok(openat(&self.0, name, flags, Mode::empty())?.into()),
            other => Ok(other?.into()),
        }
    }

    /// What lies in it.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(&self.0, ".", flags, Mode::empty())?;
        let entries =
            Dir::read_from(opened)?.map(|entry| Ok(OsString::from_vec(entry?.file_name().to_bytes().to_vec())));
        let mut names = entries.take(MOST_NAMES + 1).collect::<Result<Vec<_>, Errno>>()?;
        if names.len() > MOST_NAMES {
            return Err(io::Error::other(format!("holds more than {MOST_NAMES} names")));
        }
        names.retain(|name| name != "." && name != "..");
        Ok(names)
    }

    /// Moves a file to another folder, under the same name.
    ///
    /// # Errors
    /// If that is not possible.
    pub fn move_to(&self, name: &OsStr, other: &Self) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, name, &other.0, name)?)
    }

    /// Replaces a file of ours in it, whole or not at all: for its owner to write, for nobody else to read.
    ///
    /// # Errors
    /// What the file system says.
    pub fn replace_own(&self, name: &OsStr, content: &[u8]) -> io::Result<()> {
        self.replace(name, content, Mode::from_raw_mode(0o600), true)
    }

    /// The same folder, opened once more.
    ///
    /// # Errors
    /// If there are too many files open.
    pub fn again(&self) -> io::Result<Self> {
        Ok(Self(self.0.try_clone()?))
    }

    fn open_folder(&self, name: &OsStr) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.0, name, flags, Mode::empty())?)
    }

    pub(super) fn make(&self, name: &OsStr) -> io::Result<Self> {
        const MODE: Mode = Mode::from_raw_mode(0o755);
        match mkdirat(&self.0, name, MODE) {
            Ok(()) => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let made = openat(&self.0, name, flags, Mode::empty())?;
                // By now it may be another one.
                if idlewise::trace::is_mount_of_another(&made, &self.0)? {
                    return Err(refused("another user has mounted it".into()));
                }
                belongs(&fstat(&made)?)?;
                fchmod(&made, MODE)?;
                Ok(Self(made))
            }
            // Someone else was faster, perhaps another scrub.
            Err(Errno::EXIST) => {
                let folder = self.open_folder(name)?;
                if idlewise::trace::is_mount_of_another(&folder, &self.0)? {
                    return Err(refused("another user has mounted it".into()));
                }
                let stat = fstat(&folder)?;
                Self::ours(folder, &stat)
            }
            Err(errno) => Err(errno.into()),
        }
    }

    /// Syncs its names: a rename in it survives a crash then.
    ///
    /// # Errors
    /// What the file system says.
    pub fn sync(&self) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match openat(&self.0, ".", flags, Mode::empty()) {
            Ok(folder) => Ok(rustix::fs::fsync(folder)?),
            // Who may write to a folder need not be allowed to read it.
            Err(Errno::ACCESS) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Whether it is the folder of /proc with what this process has open.
    pub fn is_of_this_process(&self) -> bool {
        let own = openat(CWD, "/proc/self/fd", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).and_then(fstat);
        let same = |own: Stat, this: Stat| (own.st_dev, own.st_ino) == (this.st_dev, this.st_ino);
        own.and_then(|own| Ok(same(own, fstat(&self.0)?))).unwrap_or(false)
    }

    /// Number of the device that its file system is on.
    ///
    /// # Errors
    /// What the file system says.
    pub fn device(&self) -> io::Result<u64> {
        Ok(fstat(&self.0)?.st_dev)
    }

    /// Whether it was removed since it was opened: nothing can be made in it then.
    pub fn is_removed(&self) -> bool {
        fstat(&self.0).is_ok_and(|stat| stat.st_nlink == 0)
    }

    /// Whether it lies below a folder with these numbers of device and file, or is that folder.
    ///
    /// # Errors
    /// What the file system says.
    pub fn is_within(&self, numbers: (u64, u64)) -> io::Result<bool> {
        let number = |stat: &Stat| (stat.st_dev, stat.st_ino);
        let mut at = self.again()?;
        loop {
            let here = number(&fstat(&at)?);
            if here == numbers {
                return Ok(true);
            }
            let above = at.open_folder(OsStr::new(".."))?;
            // Others may have mounted something over it meanwhile.
            if idlewise::trace::is_mount_of_another(&above, &at)? {
                return Err(refused("a folder above it is one that another user has mounted".into()));
            }
            at = Self(above);
            // The root is its own parent.
            if number(&fstat(&at)?) == here {
                return Ok(false);
            }
        }
    }

    /// Removes a name from it.
    ///
    /// # Errors
    /// What the file system says.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Whether the group's bits of the mode are the mask of an access control list, and let others write.
pub(super) fn a_list_lets_others_write(folder: &OwnedFd, stat: &Stat) -> bool {
    stat.st_mode & 0o020 != 0 && has_list(folder)
}

fn has_list(folder: &OwnedFd) -> bool {
    let mut list = [0; 1 << 10];
    let Ok(folder) = openat(folder, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) else {
        return false;
    };
    // One that does not fit is one too.
    matches!(fgetxattr(&folder, c"system.posix_acl_access", &mut list[..]), Ok(_) | Err(Errno::RANGE))
}
