//! Files that nobody named: those in a folder, where others may have put what harms whoever reads it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

const DENIED: io::ErrorKind = io::ErrorKind::PermissionDenied;

/// The files in a folder whose names pass, in order.
pub fn files(folder: &Path, pass: impl Fn(&str) -> bool) -> io::Result<Vec<PathBuf>> {
    let entries = folder.read_dir()?.collect::<io::Result<Vec<_>>>()?;
    let paths = entries.into_iter().map(|entry| entry.path());
    // The kernel may refuse to look through a link, which `open` then tells from other files.
    let is_file = |path: &Path| path.metadata().map_or_else(|error| error.kind() == DENIED, |found| found.is_file());
    let passes = |path: &PathBuf| is_file(path) && path.file_name().is_some_and(|name| pass(&name.to_string_lossy()));
    let mut files: Vec<_> = paths.filter(passes).collect();
    files.sort();
    Ok(files)
}

/// The folder that a path is in.
pub fn of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Opens a file found in a folder. None for what is not to be read: a link that another user may have put there, and what is no
/// regular file or an empty one, as those of /proc and tracefs are, some of which never end, and for what is gone meanwhile or
/// held by its owner.
#[cfg(target_os = "linux")]
pub fn open(path: &Path) -> io::Result<Option<File>> {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat};

    let kind = |stat: &Stat| FileType::from_raw_mode(stat.st_mode);
    let has_content = |stat: &Stat| kind(stat) == FileType::RegularFile && stat.st_size > 0;
    let mut path = path.to_path_buf();
    // As many links as the kernel follows.
    for _ in 0..40 {
        let thing = match openat(CWD, &path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) {
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            other => other?,
        };
        let stat = fstat(&thing)?;
        if kind(&stat) == FileType::Symlink {
            if !may_follow(&stat, &rustix::fs::stat(of(&path))?) {
                return Ok(None);
            }
            path = of(&path).join(OsString::from_vec(readlinkat(&thing, "", Vec::new())?.into_bytes()));
            continue;
        }
        if !has_content(&stat) {
            return Ok(None);
        }
        // By now it may be another thing: to open a pipe would wait, and a terminal could become ours.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match openat(CWD, &path, flags, Mode::empty()) {
            // Gone, or its owner holds a lease of it, which the kernel takes back after some 45 seconds.
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::AGAIN) => return Ok(None),
            other => other?,
        };
        return Ok(has_content(&fstat(&file)?).then(|| file.into()));
    }
    Err(rustix::io::Errno::LOOP.into())
}

#[cfg(not(target_os = "linux"))]
pub fn open(path: &Path) -> io::Result<Option<File>> {
    File::open(path).map(Some)
}

/// Whether to go where a link leads: if it belongs to the caller or to root, and for others than root also where only the folder's
/// owner could have put it there.
#[cfg(target_os = "linux")]
fn may_follow(link: &rustix::fs::Stat, folder: &rustix::fs::Stat) -> bool {
    let caller = rustix::process::geteuid();
    let of_the_folders_owner = link.st_uid == folder.st_uid && folder.st_mode & 0o022 == 0;
    link.st_uid == 0 || link.st_uid == caller.as_raw() || (!caller.is_root() && of_the_folders_owner)
}
