//! Where a path leads, name by name. What others may have planted on the way is told apart from what the caller or root put
//! there: the kernel's protection of links is a setting, and does not cover all of it (proc_sys_fs(5), protected_symlinks).

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, PROC_SUPER_MAGIC, ResolveFlags, Stat, fchmod, fgetxattr, fstat, fstatfs,
    mkdirat, openat, openat2, readlinkat,
};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};

/// Links on one path, at most: as many as the kernel follows.
const LINKS: usize = 40;
const STICKY: u32 = 0o1000;

/// An opened folder: what is done in it is done there, whatever becomes of the path that led to it.
#[derive(Debug)]
pub struct Folder(OwnedFd);

/// A name in an opened folder.
#[derive(Debug)]
pub struct Spot {
    /// The folder.
    pub folder: Folder,
    /// The name.
    pub name: OsString,
    /// What was there.
    pub found: Found,
}

/// What is there.
#[derive(Debug)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// Something that is no link, as it was looked at: by now its name may lead to another thing, which never answers.
    Thing(Thing),
    /// A link of /proc to what a process has open, which no path may lead to.
    OpenFile,
}

/// What was looked at.
#[derive(Debug)]
pub struct Thing {
    /// The thing itself, opened for nothing but this.
    itself: OwnedFd,
    /// What is known of it.
    pub stat: Stat,
}

impl Thing {
    /// Opens the thing that was looked at, whatever has its name now.
    pub fn open(&self, flags: OFlags) -> io::Result<File> {
        let way = format!("/proc/self/fd/{}", self.itself.as_raw_fd());
        Ok(openat(CWD, way, flags | OFlags::CLOEXEC, Mode::empty())?.into())
    }

    /// What the system knows of it.
    pub fn metadata(&self) -> io::Result<Metadata> {
        File::from(self.itself.try_clone()?).metadata()
    }
}

/// Which folders on the way are gone through.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Any. Only links are held against their owners.
    Any,
    /// Those that no other user can replace.
    Own,
    /// The same, and missing ones are made.
    OwnNew,
}

impl Spot {
    /// Finds the place of a file to be written. A link is followed if it belongs to the caller or to root, and for others than root
    /// also where only its owner could have put it there.
    ///
    /// # Errors
    /// What the file system says, or whose link is in the way.
    pub fn find(path: &Path) -> io::Result<Self> {
        walk(path, Way::Any)
    }
}

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
            Found::Thing(Thing { itself, stat }) => {
                belongs(&stat)?;
                if others_may_write(&stat) {
                    return Err(refused("others may write to this folder".into()));
                }
                if stat.st_mode & 0o020 != 0 && has_list(&itself) {
                    return Err(refused("an access list lets others write to this folder".into()));
                }
                Ok(Self(itself))
            }
        }
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
        let file = self.open_file(name)?;
        let written = file.metadata()?.modified().ok();
        Ok((super::content_of(file)?, written))
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
        let mut names = entries.collect::<Result<Vec<_>, Errno>>()?;
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

    fn make(&self, name: &OsStr) -> io::Result<Self> {
        const MODE: Mode = Mode::from_raw_mode(0o755);
        match mkdirat(&self.0, name, MODE) {
            Ok(()) => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let made = openat(&self.0, name, flags, Mode::empty())?;
                fchmod(&made, MODE)?;
                Ok(Self(made))
            }
            // Someone else was faster, perhaps another scrub.
            Err(Errno::EXIST) => {
                let folder = self.open_folder(name)?;
                belongs(&fstat(&folder)?)?;
                Ok(Self(folder))
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

/// Whether a file is of this kind.
pub fn is(stat: &Stat, kind: FileType) -> bool {
    FileType::from_raw_mode(stat.st_mode) == kind
}

/// Whether it is the caller's or root's.
pub fn is_ours(stat: &Stat) -> bool {
    stat.st_uid == 0 || stat.st_uid == geteuid().as_raw()
}

/// Whether anyone but the owner may write. A group of the caller's own is no other; of root's, only root's.
fn others_may_write(folder: &Stat) -> bool {
    let own = if geteuid().is_root() { 0 } else { getegid().as_raw() };
    folder.st_mode & 0o002 != 0 || (folder.st_mode & 0o020 != 0 && folder.st_gid != own)
}

/// Whether there is an access control list, whose mask the group's bits of the mode are then.
fn has_list(folder: &OwnedFd) -> bool {
    let mut list = [0; 1 << 10];
    let Ok(folder) = openat(folder, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) else {
        return false;
    };
    // One that does not fit is one too.
    matches!(fgetxattr(&folder, c"system.posix_acl_access", &mut list[..]), Ok(_) | Err(Errno::RANGE))
}

/// Refuses what belongs to another user.
pub fn belongs(stat: &Stat) -> io::Result<()> {
    if is_ours(stat) {
        return Ok(());
    }
    Err(refused(format!("belongs to another user (number {})", stat.st_uid)))
}

pub fn refused(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, problem)
}

fn walk(path: &Path, way: Way) -> io::Result<Spot> {
    let open = |name: &str| openat(CWD, name, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let mut folder = Folder(open(".")?);
    // Where the walk is, for messages.
    let mut at = PathBuf::new();
    let mut todo = names(path);
    let mut links = 0;
    while let Some(name) = todo.pop_front() {
        let last = todo.is_empty();
        if name == "/" {
            (folder, at) = (Folder(open("/")?), PathBuf::from("/"));
            continue;
        }
        at.push(&name);
        let thing = match openat(&folder, &name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) {
            Err(Errno::NOENT) if last => return Ok(Spot { folder, name, found: Found::Nothing }),
            Err(Errno::NOENT) if way == Way::OwnNew => {
                folder = folder.make(&name)?;
                continue;
            }
            other => other?,
        };
        if idlewise::trace::is_mount_of_another(&thing, &folder)? {
            return Err(refused(format!("on the way to it, {}: another user has mounted it", at.display())));
        }
        let stat = fstat(&thing)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => {
                if last && fstatfs(&folder)?.f_type == PROC_SUPER_MAGIC {
                    return Ok(Spot { folder, name, found: Found::OpenFile });
                }
                may_follow(&stat, &fstat(&folder)?, &at)?;
                links += 1;
                if links > LINKS {
                    return Err(Errno::LOOP.into());
                }
                let target = OsString::from_vec(readlinkat(&thing, "", Vec::new())?.into_bytes());
                names(Path::new(&target)).into_iter().rev().for_each(|name| todo.push_front(name));
                at.pop();
            }
            FileType::Directory if !last => {
                // Where names are protected, others cannot move ours.
                let open_to_all = others_may_write(&stat) && stat.st_mode & STICKY == 0;
                if way != Way::Any && (!is_ours(&stat) || open_to_all) {
                    let why = if open_to_all { "others may write to it" } else { "belongs to another user" };
                    return Err(refused(format!("on the way to it, {}: {why}", at.display())));
                }
                folder = Folder(thing);
            }
            _ if last => return Ok(Spot { folder, name, found: Found::Thing(Thing { itself: thing, stat }) }),
            _ => return Err(Errno::NOTDIR.into()),
        }
    }
    let found = Found::Thing(Thing { itself: folder.again()?.0, stat: fstat(&folder)? });
    Ok(Spot { folder, name: OsString::new(), found })
}

fn names(path: &Path) -> VecDeque<OsString> {
    let named = |component: &Component| *component != Component::CurDir;
    path.components().filter(named).map(|component| component.as_os_str().to_owned()).collect()
}

/// Whether to go where a link leads.
fn may_follow(link: &Stat, folder: &Stat, at: &Path) -> io::Result<()> {
    let of_the_folders_owner = link.st_uid == folder.st_uid && folder.st_mode & 0o022 == 0;
    if is_ours(link) || (!geteuid().is_root() && of_the_folders_owner) {
        return Ok(());
    }
    let (at, user) = (at.display(), link.st_uid);
    let why = format!("on the way to it, {at} is a link of another user (number {user}): name what it leads to");
    Err(refused(why))
}
