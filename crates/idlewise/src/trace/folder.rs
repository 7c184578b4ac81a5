//! Files that nobody named: those in a folder, where others may have put what harms whoever reads it.

#[cfg(target_os = "linux")]
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
#[cfg(target_os = "linux")]
use std::os::{fd::AsRawFd, unix::ffi::OsStringExt};
use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
use rustix::{
    fd::AsFd,
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, StatxFlags, fstat, openat, readlinkat, statx},
    io::Errno,
};

/// Of a folder, whoever has put them there.
#[cfg(target_os = "linux")]
const MOST_NAMES: usize = 1 << 18;
const DENIED: io::ErrorKind = io::ErrorKind::PermissionDenied;

/// The files in a folder whose names pass, in order. The folder was named, or found below one that was.
pub fn files(folder: &Found, pass: impl Fn(&str) -> bool) -> io::Result<Vec<PathBuf>> {
    let names = entries(folder)?.unwrap_or_default();
    let paths = names.into_iter().map(|(name, _)| folder.path.join(name));
    let is_file = |path: &Path| match walk(&Found { path: path.into(), ..folder.clone() }) {
        Ok(Way::End(thing)) => thing.metadata().is_ok_and(|found| found.is_file()),
        // What `open` tells from other files: a link that leads nowhere or is another user's, or one that the kernel refuses to look through.
        Ok(Way::Link) => true,
        Ok(Way::Nothing) => false,
        Err(error) => error.kind() == DENIED,
    };
    let passes = |path: &PathBuf| path.file_name().is_some_and(|name| pass(&name.to_string_lossy())) && is_file(path);
    let mut files: Vec<_> = paths.filter(passes).collect();
    files.sort();
    Ok(files)
}

/// The folder that a path is in.
pub fn of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A file or folder that nobody has named: one of a folder, or what a pattern fits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Where it is.
    pub path: PathBuf,
    /// The part of the path that the caller has named. Behind it, whoever may write to a folder may have put anything in the way.
    pub folder: PathBuf,
}

impl Found {
    /// What the caller has named itself.
    pub fn named(path: &Path) -> Self {
        Self { path: path.into(), folder: path.into() }
    }
}

/// What is known of what was found, if it is there and no link of another user is on its way. Nothing behind such a link is asked for
/// anything: it may be on a file system that never answers.
///
/// # Errors
/// What the file system says.
#[cfg(target_os = "linux")]
pub fn metadata(found: &Found) -> io::Result<Option<Metadata>> {
    walk(found)?.end().map(|thing| thing.metadata()).transpose()
}

/// The names in a folder that was found, and which of them are folders themselves; none where it is not there, or a link of another user is
/// on its way. By now its path may lead elsewhere: only who was looked at is asked.
///
/// # Errors
/// What the file system says.
#[cfg(target_os = "linux")]
pub fn entries(found: &Found) -> io::Result<Option<Vec<(OsString, bool)>>> {
    let Some(thing) = walk(found)?.end() else { return Ok(None) };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut names = Vec::new();
    for entry in Dir::new(openat(&thing, ".", flags, Mode::empty())?)? {
        if names.len() == MOST_NAMES {
            let why = format!("has more than {MOST_NAMES} names");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        let entry = entry?;
        let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
        let is_folder = match entry.file_type() {
            FileType::Unknown => Seen::at(&thing, &name).is_ok_and(|seen| seen.kind == FileType::Directory),
            kind => kind == FileType::Directory,
        };
        if name != "." && name != ".." {
            names.push((name, is_folder));
        }
    }
    Ok(Some(names))
}

/// Opens a file found below a folder. None for what is not to be read: what a link leads to that another user may have put there, and what is
/// no regular file or an empty one, as those of /proc and tracefs are, some of which never end, and for what is gone meanwhile or
/// held by its owner.
///
/// # Errors
/// What the file system says.
#[cfg(target_os = "linux")]
pub fn open(found: &Found) -> io::Result<Option<File>> {
    if found.path == found.folder {
        return File::open(&found.path).map(Some);
    }
    let has_content = |found: &File| found.metadata().map(|found| found.is_file() && found.len() > 0);
    let Some(thing) = walk(found)?.end() else { return Ok(None) };
    if !has_content(&thing)? {
        return Ok(None);
    }
    // What was looked at, and not its name: by now that may be another thing, which never answers.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file: File = match openat(CWD, format!("/proc/self/fd/{}", thing.as_raw_fd()), flags, Mode::empty()) {
        // Its owner holds a lease of it, which the kernel takes back after some 45 seconds.
        Err(Errno::AGAIN) => return Ok(None),
        other => other?.into(),
    };
    Ok(has_content(&file)?.then_some(file))
}

/// Where a way ends.
#[cfg(target_os = "linux")]
enum Way {
    /// At what lies there, which is no link.
    End(File),
    /// At a link of another user or what another user has mounted, or by a link at nothing.
    Link,
    Nothing,
}

#[cfg(target_os = "linux")]
impl Way {
    fn end(self) -> Option<File> {
        if let Self::End(end) = self { Some(end) } else { None }
    }
}

/// Goes name by name to what was found.
#[cfg(target_os = "linux")]
fn walk(Found { path, folder }: &Found) -> io::Result<Way> {
    let of_folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let (begin, rest) = match path.strip_prefix(folder) {
        Ok(rest) if !folder.as_os_str().is_empty() => (folder.as_path(), rest),
        // Of this path the caller has named nothing.
        _ => (Path::new(if path.has_root() { "/" } else { "." }), path.as_path()),
    };
    if rest.as_os_str().is_empty() {
        // It is what was named.
        let thing = openat(CWD, begin, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        return Ok(Way::End(thing.into()));
    }
    let mut at = openat(CWD, begin, of_folder, Mode::empty())?;
    let mut names: Vec<OsString> = rest.iter().rev().filter(|name| *name != "/").map(Into::into).collect();
    // As many links as the kernel follows.
    const LINKS: usize = 40;
    let mut links = LINKS;
    while let Some(name) = names.pop() {
        let thing = match openat(&at, &name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) {
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(if links < LINKS { Way::Link } else { Way::Nothing }),
            other => other?,
        };
        if is_mount_of_another(&thing, &at)? {
            return Ok(Way::Link);
        }
        let (seen, folder) = (Seen::of(&thing)?, Seen::of(&at)?);
        if seen.kind == FileType::Symlink {
            if !may_follow(&seen, &folder) {
                return Ok(Way::Link);
            }
            links -= 1;
            if links == 0 {
                return Err(Errno::LOOP.into());
            }
            let leads = PathBuf::from(OsString::from_vec(readlinkat(&thing, "", Vec::new())?.into_bytes()));
            // What is on its way may be another user's as well.
            if leads.has_root() {
                at = openat(CWD, "/", of_folder, Mode::empty())?;
            }
            names.extend(leads.iter().rev().filter(|name| *name != "/").map(Into::into));
        } else if names.is_empty() {
            return Ok(Way::End(thing.into()));
        } else {
            at = thing;
        }
    }
    // A link to the root.
    Ok(Way::Nothing)
}

#[cfg(not(target_os = "linux"))]
pub fn entries(found: &Found) -> io::Result<Option<Vec<(std::ffi::OsString, bool)>>> {
    let entry = |entry: io::Result<std::fs::DirEntry>| {
        let entry = entry?;
        Ok((entry.file_name(), entry.file_type()?.is_dir()))
    };
    found.path.read_dir()?.map(entry).collect::<io::Result<_>>().map(Some)
}

#[cfg(not(target_os = "linux"))]
pub fn metadata(found: &Found) -> io::Result<Option<Metadata>> {
    match found.path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

#[cfg(not(target_os = "linux"))]
pub fn open(found: &Found) -> io::Result<Option<File>> {
    File::open(&found.path).map(Some)
}

/// Flags for what the kernel knows by itself.
#[cfg(target_os = "linux")]
const UNASKED: AtFlags =
    AtFlags::EMPTY_PATH.union(AtFlags::SYMLINK_NOFOLLOW).union(AtFlags::NO_AUTOMOUNT).union(AtFlags::STATX_DONT_SYNC);

/// What the kernel knows of a file by itself: whose file system it lies on is not asked, as that may never answer.
#[cfg(target_os = "linux")]
struct Seen {
    kind: FileType,
    mode: u32,
    owner: u32,
}

#[cfg(target_os = "linux")]
impl Seen {
    fn of(thing: &impl AsFd) -> io::Result<Self> {
        match Self::at(thing, OsStr::new("")) {
            // Before Linux 4.11.
            Err(Errno::NOSYS) => {
                let stat = fstat(thing)?;
                let kind = FileType::from_raw_mode(stat.st_mode);
                Ok(Self { kind, mode: stat.st_mode, owner: stat.st_uid })
            }
            other => Ok(other?),
        }
    }

    /// Of a name in a folder, or of what is open itself.
    fn at(folder: &impl AsFd, name: &OsStr) -> Result<Self, Errno> {
        let found = statx(folder, name, UNASKED, StatxFlags::TYPE | StatxFlags::MODE | StatxFlags::UID)?;
        let mode = u32::from(found.stx_mode);
        Ok(Self { kind: FileType::from_raw_mode(mode), mode, owner: found.stx_uid })
    }
}

/// Whether what is open lies on a file system in user space that another user than root and the caller has mounted, and its folder does not:
/// whoever asks it for anything may wait for ever. It is not asked for this.
///
/// # Errors
/// What the system says.
#[cfg(target_os = "linux")]
pub fn is_mount_of_another(thing: &impl AsFd, folder: &impl AsFd) -> io::Result<bool> {
    let mount = Mount::of(thing)?;
    Ok(mount != Mount::of(folder)? && mount.is_of_another())
}

/// On which mount something lies.
#[cfg(target_os = "linux")]
#[derive(PartialEq, Eq)]
struct Mount {
    /// Its number, which Linux tells since 5.8.
    number: Option<u64>,
    device: (u32, u32),
}

#[cfg(target_os = "linux")]
impl Mount {
    fn of(thing: &impl AsFd) -> io::Result<Self> {
        // Whoever asks for more is refused by file systems of others.
        match statx(thing, "", UNASKED, StatxFlags::empty()) {
            // Before Linux 4.11.
            Err(Errno::NOSYS) => {
                let device = fstat(thing)?.st_dev;
                Ok(Self { number: None, device: (rustix::fs::major(device), rustix::fs::minor(device)) })
            }
            other => {
                let found = other?;
                let has_number = found.stx_mask & StatxFlags::MNT_ID.bits() != 0;
                let device = (found.stx_dev_major, found.stx_dev_minor);
                Ok(Self { number: has_number.then_some(found.stx_mnt_id), device })
            }
        }
    }

    /// By the kernel's list (proc_pid_mountinfo(5)), which has `user_id` among the options of such. One with a number that is not listed has been
    /// taken away meanwhile; of a device nothing is known then, such as of a part of a btrfs.
    fn is_of_another(&self) -> bool {
        // It may miss a line while others mount something elsewhere.
        const LOOKS: usize = 5;
        let is_it = |line: &&str| {
            let mut fields = line.split(' ');
            match self.number {
                Some(number) => fields.next() == Some(&number.to_string()),
                None => fields.nth(2) == Some(&format!("{}:{}", self.device.0, self.device.1)),
            }
        };
        let look = |_| {
            let table = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
            String::from_utf8_lossy(&table).lines().find(is_it).map(is_another_users)
        };
        (0..LOOKS).find_map(look).unwrap_or(self.number.is_some())
    }
}

/// Whether a line of the kernel's list is of a file system in user space of another user than root and the caller.
#[cfg(target_os = "linux")]
fn is_another_users(line: &str) -> bool {
    let caller = rustix::process::geteuid().as_raw().to_string();
    let owner = line
        .split_once(" - ")
        .filter(|(_, back)| back.starts_with("fuse"))
        .and_then(|(_, back)| back.rsplit(' ').next()?.split(',').find_map(|option| option.strip_prefix("user_id=")));
    owner.is_some_and(|owner| owner != "0" && owner != caller)
}

/// Whether to go where a link leads: if it belongs to the caller or to root, and for others than root also where only the folder's
/// owner could have put it there.
#[cfg(target_os = "linux")]
fn may_follow(link: &Seen, folder: &Seen) -> bool {
    let caller = rustix::process::geteuid();
    let of_the_folders_owner = link.owner == folder.owner && folder.mode & 0o022 == 0;
    link.owner == 0 || link.owner == caller.as_raw() || (!caller.is_root() && of_the_folders_owner)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::{chown, lchown, symlink};

    use super::*;

    fn read(path: &Path, folder: &Path) -> Option<String> {
        let mut text = String::new();
        let file = open(&Found { path: path.into(), folder: folder.into() }).unwrap();
        file.map(|mut file| file.read_to_string(&mut text).map(|_| text).unwrap())
    }

    #[test]
    fn own_links_are_gone_through_wherever_they_are() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir_all(at("a/b")).unwrap();
        fs::write(at("a/b/file"), "text").unwrap();
        fs::write(at("a/empty"), "").unwrap();
        symlink("a/b", at("folder")).unwrap();
        symlink("../a/b/../b/file", at("a/link")).unwrap();
        symlink(at("folder/file"), at("far")).unwrap();
        symlink("round", at("round")).unwrap();
        symlink("..", at("a/b/up")).unwrap();
        for name in ["a/b/file", "folder/file", "a/link", "far", "a/b/up/b/file", "a/b/../b/file"] {
            for folder in [root.path(), Path::new("/"), Path::new("/elsewhere"), Path::new(""), &at("a")] {
                assert_eq!(read(&at(name), folder).as_deref(), Some("text"), "{name}");
            }
        }
        assert!(metadata(&Found { path: at("far"), folder: root.path().into() }).unwrap().unwrap().is_file());
        for name in ["a/empty", "a", "none", "a/b/file/more", "a/b/up"] {
            assert_eq!(read(&at(name), root.path()), None, "{name}");
        }
        assert!(open(&Found { path: at("round"), folder: root.path().into() }).is_err());
    }

    #[test]
    fn links_of_others_lead_nowhere() {
        if !rustix::process::geteuid().is_root() {
            println!("SKIPPED: links of another user need root");
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for folder in ["secret", "home"] {
            fs::create_dir(at(folder)).unwrap();
            fs::write(at(folder).join("file"), folder).unwrap();
        }
        chown(at("home"), Some(1234), Some(1234)).unwrap();
        for (link, leads) in [("traces", at("secret")), ("file.csv", at("secret/file"))] {
            symlink(leads, at("home").join(link)).unwrap();
            lchown(at("home").join(link), Some(1234), Some(1234)).unwrap();
        }
        for name in ["home/traces/file", "home/file.csv", "home/traces/../secret/file"] {
            assert_eq!(read(&at(name), root.path()), None, "{name}");
            assert!(metadata(&Found { path: at(name), folder: root.path().into() }).unwrap().is_none(), "{name}");
        }
        for (name, folder, is_there) in
            [("home/traces", "", false), ("home/traces", "home/traces", true), ("secret", "", true)]
        {
            let names = entries(&Found { path: at(name), folder: at(folder) }).unwrap();
            assert_eq!(names, is_there.then(|| vec![("file".into(), false)]), "{name} below {folder}");
        }
        assert_eq!(read(&at("home/file"), root.path()).as_deref(), Some("home"));
        // A link of one's own through one of another user.
        for (link, leads) in [("own.csv", "traces/file"), ("own", "traces"), ("absolute.csv", "")] {
            let leads = if leads.is_empty() { at("home/traces/file") } else { leads.into() };
            symlink(leads, at("home").join(link)).unwrap();
        }
        for name in ["home/own.csv", "home/own/file", "home/absolute.csv"] {
            assert_eq!(read(&at(name), root.path()), None, "{name}");
        }
        // Who has named the link itself means what is behind it.
        assert_eq!(read(&at("home/traces/file"), &at("home/traces")).as_deref(), Some("secret"));
    }
}
