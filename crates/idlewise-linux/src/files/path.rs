//! Where a path leads, name by name. What others may have planted on the way is told apart from what the caller or root put
//! there: the kernel's protection of links is a setting, and does not cover all of it (proc_sys_fs(5), protected_symlinks).

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, PROC_SUPER_MAGIC, Stat, fstat, fstatfs, openat, readlinkat};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};

use super::folder::{Folder, a_list_lets_others_write};

/// Links on one path, at most: as many as the kernel follows.
const LINKS: usize = 40;
const STICKY: u32 = 0o1000;

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
    pub itself: OwnedFd,
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
pub enum Way {
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

/// Whether a file is of this kind.
pub fn is(stat: &Stat, kind: FileType) -> bool {
    FileType::from_raw_mode(stat.st_mode) == kind
}

/// Whether it is the caller's or root's.
pub fn is_ours(stat: &Stat) -> bool {
    stat.st_uid == 0 || stat.st_uid == geteuid().as_raw()
}

/// Whether anyone but the owner may write. A group of the caller's own is no other; of root's, only root's.
pub fn others_may_write(folder: &Stat) -> bool {
    let own = if geteuid().is_root() { 0 } else { getegid().as_raw() };
    folder.st_mode & 0o002 != 0 || (folder.st_mode & 0o020 != 0 && folder.st_gid != own)
}

/// Refuses what belongs to another user.
pub fn belongs(stat: &Stat) -> io::Result<()> {
    if is_ours(stat) {
        return Ok(());
    }
    Err(refused(format!("belongs to another user (number {})", stat.st_uid)))
}

/// What is not done for the sake of safety, and why.
pub fn refused(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, problem)
}

/// Follows a path to its end; no mount of another user is asked for anything.
pub fn walk(path: &Path, way: Way) -> io::Result<Spot> {
    let open = |name: &str| openat(CWD, name, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    // The present folder, which others may have removed or closed, is asked only where the path begins there; those above it are on the way.
    let gone = |error: io::Error| io::Error::other(format!("the present folder is not there any more: {error}"));
    let here = match way {
        _ if path.is_absolute() => PathBuf::new(),
        Way::Any => PathBuf::from("."),
        Way::Own | Way::OwnNew => std::env::current_dir().map_err(gone)?,
    };
    let mut folder = Folder(open(if here == Path::new(".") { "." } else { "/" })?);
    // Where the walk is, for messages.
    let mut at = PathBuf::new();
    let mut todo = names(&here.join(path));
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
                let open_to_all = stat.st_mode & STICKY == 0
                    && (others_may_write(&stat) || way != Way::Any && a_list_lets_others_write(&thing, &stat));
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

/// What the system knows of what a path leads to; no mount of another user is asked for anything.
///
/// # Errors
/// What the file system says, or whose link or mount is in the way.
pub fn stat_at(path: &Path) -> io::Result<Stat> {
    match walk(path, Way::Any)?.found {
        Found::Thing(thing) => Ok(thing.stat),
        Found::Nothing | Found::OpenFile => Err(Errno::NOENT.into()),
    }
}

/// The path without links of what a path leads to, found in the same way; nothing where that is nowhere.
pub fn leads_to(path: &Path) -> Option<PathBuf> {
    match walk(path, Way::Any).ok()?.found {
        Found::Thing(Thing { itself, .. }) => std::fs::read_link(format!("/proc/self/fd/{}", itself.as_raw_fd())).ok(),
        Found::Nothing | Found::OpenFile => None,
    }
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
