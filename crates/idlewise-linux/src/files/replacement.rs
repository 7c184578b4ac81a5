//! Files that are whole or not there.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use idlewise::Bytes;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fchmod, fstat, fstatvfs, linkat, openat, renameat};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::folder::Folder;
use super::path::{Found, Spot, Thing, belongs, is};

/// A file that takes the place of another when it is whole: whoever reads it sees the old or the new, also after a crash. Until
/// then it has no name, so that nothing is left of one that was given up. What is no regular file, such as a pipe or
/// `/dev/null`, is written as it is; a block device never is.
pub enum Replacement {
    /// A new file for a place.
    Beside(Beside),
    /// A pipe, a terminal or the like.
    Straight(File),
}

/// A file on its way to its place.
pub struct Beside {
    folder: Folder,
    name: OsString,
    file: File,
    /// Its name until then, on file systems that have no files without one.
    temporary: Option<OsString>,
}

impl Replacement {
    /// Begins a new file for `path`, which is not touched before [`Self::commit`]. A symbolic link is followed if it belongs to the
    /// caller or to root. Who may read the old file may read the new one; special bits are not carried over.
    ///
    /// # Errors
    /// What the file system says, that `path` is a block device, or whose link is in the way.
    pub fn new(path: &Path) -> io::Result<Self> {
        let spot = Spot::find(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => io::Error::new(io::ErrorKind::NotFound, "there is no such folder"),
            _ => error,
        })?;
        let mode = match &spot.found {
            Found::Nothing => None,
            Found::OpenFile => return straight(spot),
            Found::Thing(old) if is(&old.stat, FileType::Directory) => return Err(Errno::ISDIR.into()),
            Found::Thing(old) if is(&old.stat, FileType::RegularFile) => Some(mode_after(&old.stat)),
            Found::Thing(_) => return straight(spot),
        };
        Beside::new(spot.folder, spot.name, mode).map(Self::Beside)
    }

    /// How much its file system can still take, whatever lies at its path by now; none of what is no regular file.
    pub fn room(&self) -> Option<Bytes> {
        let Self::Beside(Beside { file, .. }) = self else { return None };
        let counts = fstatvfs(file).ok()?;
        Some(Bytes(counts.f_bavail.saturating_mul(counts.f_frsize)))
    }

    /// Number of the device that its file system is on; none of what is no regular file.
    pub fn device(&self) -> Option<u64> {
        let Self::Beside(Beside { folder, .. }) = self else { return None };
        folder.device().ok()
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// What the file system says; the old file is then untouched.
    pub fn commit(self) -> io::Result<()> {
        match self {
            Self::Straight(mut file) => file.flush(),
            Self::Beside(beside) => beside.commit(true),
        }
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Beside(Beside { file, .. }) | Self::Straight(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Beside(Beside { file, .. }) | Self::Straight(file) => file.flush(),
        }
    }
}

/// Where a file would be written, as it was looked at: whatever becomes of the path meanwhile. Nothing behind a link of another user is asked
/// for anything: it may be on a file system that never answers.
pub struct Destination(Spot);

impl Destination {
    /// # Errors
    /// What the file system says, or whose link is in the way.
    pub fn find(path: &Path) -> io::Result<Self> {
        Spot::find(path).map(Self)
    }

    /// What is known of what lies there, if anything does.
    ///
    /// # Errors
    /// What the file system says.
    pub fn metadata(&self) -> io::Result<Option<Metadata>> {
        let Spot { folder, name, found } = &self.0;
        match found {
            Found::Nothing => Ok(None),
            Found::OpenFile => {
                let thing = openat(folder, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
                File::from(thing).metadata().map(Some)
            }
            Found::Thing(thing) => thing.metadata().map(Some),
        }
    }

    /// Its folder, by the numbers of device and file, and its name in that.
    ///
    /// # Errors
    /// What the file system says.
    pub fn place(&self) -> io::Result<((u64, u64), &OsStr)> {
        let folder = fstat(&self.0.folder)?;
        Ok(((folder.st_dev, folder.st_ino), &self.0.name))
    }

    /// Whether it lies below a folder with these numbers of device and file.
    ///
    /// # Errors
    /// What the file system says.
    pub fn is_within(&self, folder: (u64, u64)) -> io::Result<bool> {
        self.0.folder.is_within(folder)
    }
}

/// What is known of what lies where a file would be written, if anything does, as [`Destination`] tells it.
///
/// # Errors
/// What the file system says, or whose link is in the way.
pub fn metadata_at(path: &Path) -> io::Result<Option<Metadata>> {
    Destination::find(path)?.metadata()
}

/// Replaces the file at `path` by `content`, whole or not at all.
///
/// # Errors
/// What the file system says; the old file is then untouched.
pub fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = Replacement::new(path)?;
    file.write_all(content)?;
    file.commit()
}

impl Folder {
    /// Replaces the file of this name by `content`, whole or not at all, for whom `mode` says whatever the umask; unless
    /// `lasting`, a crash of the machine may lose both.
    pub(crate) fn replace(&self, name: &OsStr, content: &[u8], mode: Mode, lasting: bool) -> io::Result<()> {
        let mut file = Beside::new(self.again()?, name.to_owned(), Some(mode))?;
        file.file.write_all(content)?;
        // Whoever writes in it holds a lock, so that one name is enough for all that is on its way, also after a crash.
        let mut on_its_way = OsString::from(".");
        on_its_way.push(name);
        match self.remove(&on_its_way) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        file.commit_by(lasting, Some(on_its_way))
    }
}

/// Opens a regular file to which lines are added, new or the caller's own; nothing else is written to.
///
/// # Errors
/// What the file system says, or what the file is.
pub fn append(path: &Path) -> io::Result<File> {
    let spot = Spot::find(path)?;
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match &spot.found {
        Found::Thing(thing) => {
            only_a_file(&thing.stat)?;
            thing.open(flags)?
        }
        Found::Nothing => {
            let new = flags | OFlags::CREATE | OFlags::EXCL;
            openat(&spot.folder, &spot.name, new, Mode::from_raw_mode(0o644))?.into()
        }
        Found::OpenFile => return Err(Errno::LOOP.into()),
    };
    let stat = fstat(&file)?;
    only_a_file(&stat)?;
    belongs(&stat)?;
    if stat.st_nlink > 1 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "has another name as well (a hard link)"));
    }
    Ok(file)
}

fn only_a_file(stat: &Stat) -> io::Result<()> {
    if is(stat, FileType::RegularFile) { Ok(()) } else { Err(not_written(stat)) }
}

fn not_written(stat: &Stat) -> io::Error {
    let what = match FileType::from_raw_mode(stat.st_mode) {
        FileType::BlockDevice => "is a block device, which is never written",
        _ => "is no regular file",
    };
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

/// Opens what is no regular file. The pipe of another user is not ours to fill, and might never be read.
fn straight(spot: Spot) -> io::Result<Replacement> {
    if let Found::Thing(Thing { stat, .. }) = &spot.found {
        if is(stat, FileType::BlockDevice) {
            return Err(not_written(stat));
        }
        belongs(stat)?;
    }
    // What is written there already stays, and what is written later comes behind.
    let standard: Option<OwnedFd> = match spot.name.to_str() {
        _ if !matches!(spot.found, Found::OpenFile) => None,
        Some("1") => Some(io::stdout().as_fd().try_clone_to_owned()?),
        Some("2") => Some(io::stderr().as_fd().try_clone_to_owned()?),
        _ => None,
    };
    if let Some(standard) = standard.filter(|_| spot.folder.is_of_this_process()) {
        return Ok(Replacement::Straight(standard.into()));
    }
    // At the end, where that is a file after all.
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match &spot.found {
        Found::Thing(thing) => thing.open(flags)?,
        _ => File::from(openat(&spot.folder, &spot.name, flags, Mode::empty())?),
    };
    let stat = fstat(&file)?;
    if is(&stat, FileType::BlockDevice) {
        return Err(not_written(&stat));
    }
    Ok(Replacement::Straight(file))
}

/// Who may read and write in place of an old file: as before if it was the caller's, and no more than usual if it was not.
fn mode_after(old: &Stat) -> Mode {
    let most = if old.st_uid == geteuid().as_raw() { 0o666 } else { 0o644 };
    Mode::from_raw_mode(old.st_mode & most)
}

impl Beside {
    /// Without a `mode` the file is its owner's to write and everyone's to read, as far as the umask allows.
    pub fn new(folder: Folder, name: OsString, mode: Option<Mode>) -> io::Result<Self> {
        const USUAL: Mode = Mode::from_raw_mode(0o644);
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let (file, temporary) = match openat(&folder, ".", flags | OFlags::TMPFILE, USUAL) {
            Ok(file) => (file, None),
            // A file system, or a kernel, without files that have no name.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => {
                let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
                let (file, name) = with_a_new_name(|name| openat(&folder, name, flags, USUAL)).map_err(named)?;
                (file, Some(name))
            }
            Err(errno) => return Err(named(errno)),
        };
        let beside = Self { folder, name, file: File::from(file), temporary };
        if let Some(mode) = mode {
            fchmod(&beside.file, mode)?;
        }
        Ok(beside)
    }

    /// Puts the file in its place.
    pub fn commit(self, lasting: bool) -> io::Result<()> {
        self.commit_by(lasting, None)
    }

    /// The same; on its way it has this name, if one is given.
    fn commit_by(mut self, lasting: bool, name: Option<OsString>) -> io::Result<()> {
        if lasting {
            self.file.sync_all()?;
        }
        // A name must survive a crash as well.
        let sync = |folder: &Folder| if lasting { folder.sync() } else { Ok(()) };
        if self.temporary.is_none() {
            if self.link(&self.name).is_ok() {
                return sync(&self.folder);
            }
            // Only a name can take the place of another.
            self.temporary = Some(match name {
                Some(name) => self.link(&name).map(|()| name)?,
                None => with_a_new_name(|name| self.link(name))?.1,
            });
        }
        let Some(temporary) = &self.temporary else { return Ok(()) };
        renameat(&self.folder, temporary, &self.folder, &self.name).map_err(|errno| match errno {
            Errno::BUSY => io::Error::other("is a mount of its own, which cannot be replaced: write to a folder"),
            _ => errno.into(),
        })?;
        self.temporary = None;
        sync(&self.folder)
    }

    /// Gives the file a name that is free.
    fn link(&self, name: &OsStr) -> rustix::io::Result<()> {
        let open = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        match linkat(CWD, open, &self.folder, name, AtFlags::SYMLINK_FOLLOW) {
            // Without /proc it takes a capability.
            Err(Errno::NOENT) => linkat(self.file.as_fd(), "", &self.folder, name, AtFlags::EMPTY_PATH),
            other => other,
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if let Some(name) = &self.temporary {
            let _ = self.folder.remove(name);
        }
    }
}

/// Tries names until one is free.
fn with_a_new_name<T>(mut make: impl FnMut(&OsStr) -> rustix::io::Result<T>) -> rustix::io::Result<(T, OsString)> {
    const TRIES: u32 = 100;
    for number in 0..TRIES {
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let name = OsString::from(format!(".idlewise-{}-{nanos:x}-{number}", std::process::id()));
        match make(&name) {
            Err(Errno::EXIST) => {}
            other => return Ok((other?, name)),
        }
    }
    Err(Errno::EXIST)
}

/// The name of the file beside means nothing to anyone.
fn named(errno: Errno) -> io::Error {
    match errno {
        Errno::ACCESS | Errno::PERM => io::Error::new(io::ErrorKind::PermissionDenied, "no permission to write there"),
        _ => errno.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};

    use super::*;

    #[test]
    fn replaces_and_leaves_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        for content in ["one", "two"] {
            replace_file(&path, content.as_bytes()).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
        }
        // What is given up was never there.
        let mut given_up = Replacement::new(&path).unwrap();
        given_up.write_all(b"three").unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        drop(given_up);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two");
        let error = replace_file(&folder.path().join("no/such/folder"), b"x").unwrap_err();
        assert_eq!(error.to_string(), "there is no such folder");
        assert_eq!(replace_file(folder.path(), b"x").unwrap_err().kind(), io::ErrorKind::IsADirectory);
    }

    #[test]
    fn a_file_system_without_unnamed_files_is_enough() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        std::fs::write(&path, "old").unwrap();
        let begun = |content: &[u8]| {
            let Spot { folder: opened, name, .. } = Spot::find(&path).unwrap();
            let file = File::options().write(true).create_new(true).open(folder.path().join(".idlewise-1")).unwrap();
            let mut beside = Beside { folder: opened, name, file, temporary: Some(".idlewise-1".into()) };
            beside.file.write_all(content).unwrap();
            beside
        };
        drop(begun(b"given up"));
        begun(b"new").commit(true).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn links_and_modes_stay_and_what_is_no_file_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "old").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o6700)).unwrap();
        symlink(&file, &link).unwrap();
        symlink("link", folder.path().join("relative")).unwrap();
        symlink(folder.path(), folder.path().join("folder")).unwrap();
        for (count, way) in ["link", "relative", "folder/folder/relative", "folder/../folder/link"].iter().enumerate() {
            // `..` of a link to a folder is the parent of that folder.
            let path = if way.contains("..") { folder.path().join("folder/link") } else { folder.path().join(way) };
            replace_file(&path, count.to_string().as_bytes()).unwrap();
            assert!(link.is_symlink());
            assert_eq!(std::fs::read_to_string(&file).unwrap(), count.to_string());
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o7777, 0o600);
        }
        symlink("round", folder.path().join("round")).unwrap();
        assert!(replace_file(&folder.path().join("round"), b"x").is_err());
        // A link that leads to nothing yet is where the file goes.
        symlink("nothing", folder.path().join("ahead")).unwrap();
        replace_file(&folder.path().join("ahead"), b"x").unwrap();
        assert_eq!(std::fs::read(folder.path().join("nothing")).unwrap(), b"x");
        // The null device swallows it, and stays.
        replace_file(Path::new("/dev/null"), b"x").unwrap();
        assert!(Path::new("/dev/null").metadata().unwrap().file_type().is_char_device());
    }

    #[test]
    fn lines_are_added_to_regular_files_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        for line in ["one\n", "two\n"] {
            append(&path).unwrap().write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        for other in ["/dev/null", "/tmp"] {
            assert_eq!(append(Path::new(other)).unwrap_err().to_string(), "is no regular file");
        }
    }
}
