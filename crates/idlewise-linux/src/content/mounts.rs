//! Where file systems are mounted, and how they are opened there.
//!
//! Others may have mounted something over them, such as a FUSE whose server never answers: nothing is asked of what a folder leads to
//! before the kernel's own table of mounts has said what it is. It is read again only where the kernel says that it has changed: it is asked
//! before each stretch that is judged.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

use crate::apart;
use crate::files::told_by_kernel;

/// So often one is looked for, so much later each time.
const TRIES: u32 = 5;
const AGAIN: Duration = Duration::from_millis(1);

/// Where the kernel lists what is mounted (proc_pid_mountinfo(5)).
const TABLE: &str = "/proc/self/mountinfo";

/// A mounted file system.
#[derive(Debug)]
pub struct Mount {
    /// The kernel's number of the mount.
    id: u64,
    pub folder: PathBuf,
    /// The folder of the file system that is seen there.
    root: PathBuf,
    /// Its kind, such as `btrfs`.
    pub kind: String,
    /// The device number of its files.
    pub number: (u32, u32),
    /// Since when it is known to be the right one.
    known: Option<Watch>,
}

/// Tells whether anything was mounted or unmounted since it was made.
#[derive(Debug)]
struct Watch(File);

impl Watch {
    fn new() -> io::Result<Self> {
        File::open(TABLE).map(Self)
    }

    /// Once it has said no, it begins anew.
    fn is_unchanged(&self) -> bool {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(&self.0, PollFlags::PRI)], Some(&at_once)) == Ok(0)
    }
}

/// All that this process sees of a kind.
pub fn of(kinds: &[&str]) -> Vec<Mount> {
    let table = told_by_kernel(TABLE).unwrap_or_default();
    table.lines().filter_map(parse).filter(|mount| kinds.contains(&&*mount.kind)).collect()
}

/// The path that a field of the kernel's tables stands for.
pub fn path(field: &str) -> PathBuf {
    PathBuf::from(OsString::from_vec(unescaped(field)))
}

impl Mount {
    /// The folder that it is mounted on, open for reading, if it is the right one. That is asked once, and again after anything was mounted
    /// or unmounted.
    ///
    /// # Errors
    /// If something else is mounted there by now, or what leads there would have to be asked; if it is not the right one; or what the system
    /// says.
    pub fn open(&mut self, is_right: impl Fn(&File) -> bool) -> io::Result<File> {
        // The kernel's table may miss a line while others mount something elsewhere.
        for _ in 1..TRIES {
            match self.open_once(&is_right) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::sleep(AGAIN),
                other => return other,
            }
        }
        self.open_once(&is_right)
    }

    fn open_once(&mut self, is_right: impl Fn(&File) -> bool) -> io::Result<File> {
        let reached = self.reached()?;
        // The number is given to no other mount while the descriptor is open.
        let info = told_by_kernel(format!("/proc/self/fdinfo/{}", reached.as_raw_fd()))?;
        let id = info.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok());
        if Some(self.id) != id {
            return Err(covered());
        }
        let open = || -> io::Result<File> {
            let read = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NONBLOCK;
            Ok(openat(reached.as_fd(), ".", read, Mode::empty())?.into())
        };
        if self.known.as_ref().is_some_and(Watch::is_unchanged) {
            return open();
        }
        self.known = None;
        let since = Watch::new()?;
        if !of(&[&self.kind]).iter().any(|mount| mount.id == self.id && mount.number == self.number) {
            return Err(covered());
        }
        let file = open()?;
        if !is_right(&file) {
            return Err(not_there());
        }
        self.known = Some(since);
        Ok(file)
    }

    /// Where what lies at a path within the file system is seen, through any of its mounts; nothing where it is seen through none.
    pub fn seen(&self, path: &Path) -> Option<PathBuf> {
        let all = of(&[&self.kind]).into_iter().filter(|mount| mount.number == self.number);
        let seen =
            all.filter_map(|mount| Some((mount.root.clone(), mount.folder.join(path.strip_prefix(&mount.root).ok()?))));
        seen.max_by_key(|(root, _)| root.as_os_str().len()).map(|(_, seen)| seen)
    }

    /// What its path leads to.
    fn reached(&self) -> io::Result<OwnedFd> {
        // A mount point and what leads to it are always in the kernel's memory.
        let reach = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // The kernel's table tells paths without links: one that is there now was put in the way.
        match openat2(CWD, &self.folder, reach, Mode::empty(), ResolveFlags::CACHED | ResolveFlags::NO_SYMLINKS) {
            // Before Linux 5.12 this cannot be asked for; and while others mount something, what is there is not always found.
            Err(Errno::INVAL | Errno::NOSYS | Errno::AGAIN) => apart::reached(&self.folder),
            other => other.map_err(io::Error::from),
        }
        .map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => not_there(),
            _ => error,
        })
    }
}

fn not_there() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "it is no longer mounted there")
}

fn covered() -> io::Error {
    io::Error::new(io::ErrorKind::WouldBlock, "something else is mounted over it")
}

/// A line of the table.
fn parse(line: &str) -> Option<Mount> {
    let (front, back) = line.split_once(" - ")?;
    let fields: Vec<_> = front.split(' ').collect();
    let id = fields[0].parse().ok()?;
    let (major, minor) = fields.get(2)?.split_once(':')?;
    let (root, folder) = (path(fields.get(3)?), path(fields.get(4)?));
    let kind = back.split(' ').next()?.to_string();
    Some(Mount { id, folder, root, kind, number: (major.parse().ok()?, minor.parse().ok()?), known: None })
}

/// The kernel writes blanks and the like as a backslash and three octal digits.
fn unescaped(field: &str) -> Vec<u8> {
    let (mut rest, mut bytes) = (field.as_bytes(), Vec::new());
    while let Some((&first, behind)) = rest.split_first() {
        let octal = behind.get(..3).filter(|_| first == b'\\');
        let octal = octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(octal.unwrap_or(first));
        rest = if octal.is_some() { &behind[3..] } else { behind };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_line_is_taken_apart() {
        let line = r"36 35 0:41 /@ /mnt/a\040b\134 rw,relatime shared:1 master:2 - btrfs /dev/sda1 rw,space_cache=v2";
        let Mount { id, folder, root, kind, number, known } = parse(line).unwrap();
        assert_eq!(root, PathBuf::from("/@"));
        assert_eq!((id, folder, &*kind, number), (36, r"/mnt/a b\".into(), "btrfs", (0, 41)));
        assert!(known.is_none());
        assert!(["", "1 2 3 - x", "1 2 a:b / / rw - x"].iter().all(|line| parse(line).is_none()));
        assert_eq!(unescaped(r"a\9\04"), br"a\9\04");
    }

    /// Who may write to the folder that a mount point is in may put a link in its place.
    #[test]
    fn no_link_leads_to_a_mount() {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = of(&["proc"]).into_iter().next().expect("/proc is mounted");
        for planted in ["link", "nothing", "link/self"] {
            let _ = std::os::unix::fs::symlink("/proc", folder.path().join("link"));
            mount.folder = folder.path().join(planted);
            assert_eq!(mount.open(|_| true).unwrap_err().to_string(), "it is no longer mounted there", "{planted}");
            assert!(apart::reached(&mount.folder).is_err(), "{planted}");
        }
        mount.folder = "/proc".into();
        assert!(apart::reached(&mount.folder).is_ok() && mount.open(|_| true).is_ok());
    }

    /// Others may mount something meanwhile.
    #[test]
    fn what_is_known_to_be_right_is_not_asked_again() {
        let asked = Cell::new(0);
        let is_right = |answer: bool| {
            asked.set(asked.get() + 1);
            answer
        };
        let mut mount = of(&["proc"]).into_iter().next().expect("/proc is mounted");
        let error = mount.open(|_| is_right(false)).unwrap_err();
        assert_eq!((error.kind(), asked.get()), (io::ErrorKind::NotFound, 1));
        for _ in 0..100 {
            assert!(mount.open(|_| is_right(true)).unwrap().metadata().unwrap().is_dir());
        }
        assert!((2..50).contains(&asked.get()), "asked {} times", asked.get());
    }
}
