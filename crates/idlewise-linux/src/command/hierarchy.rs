//! Where control groups of version 2 are (cgroups(7)).

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::files::told_by_kernel;

/// So many groups that belong to other users, or are below such, are looked at.
const MOST_OF_OTHERS: usize = 4_096;

/// The hierarchy of this machine, or what a container sees of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    mounted: PathBuf,
}

impl Hierarchy {
    /// Where it is mounted.
    ///
    /// # Errors
    /// If it is not.
    pub fn find() -> io::Result<Self> {
        let mounted = mount(&told_by_kernel("/proc/self/mountinfo")?);
        mounted.map(|mounted| Self { mounted }).ok_or_else(|| io::Error::other("no cgroup2 file system is mounted"))
    }

    /// The group that a process is in.
    ///
    /// # Errors
    /// If there is no such process, or its group is not to be seen from here.
    pub fn of_process(&self, process: &str) -> io::Result<PathBuf> {
        let told = fs::read(format!("/proc/{process}/cgroup"))?;
        let path = path(&told).map(|path| self.mounted.join(path)).filter(|path| path.exists());
        path.ok_or_else(|| io::Error::other("its control group is not to be seen from here"))
    }

    /// The group of a unit of systemd.
    ///
    /// # Errors
    /// If there is none of that name, which is so while the unit does not run.
    pub fn of_unit(&self, name: &str) -> io::Result<PathBuf> {
        // Those nearest to the top come first.
        let named = |group: &PathBuf| group.file_name().is_some_and(|last| last == name);
        let found = self.groups().into_iter().find(|group| named(group) && is_ours(group));
        found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such unit is running"))
    }

    /// All groups, those above before those below; of those that belong to other users, and what is below them, the first and behind the
    /// others: somebody who may make groups may make any number.
    pub fn groups(&self) -> Vec<PathBuf> {
        let (mut of_others, mut groups) = (Vec::new(), vec![self.mounted.clone()]);
        let mut next = 0;
        while let Some(group) = groups.get(next) {
            let (ours, others): (Vec<_>, Vec<_>) = just_below(group).partition(is_ours);
            groups.extend(ours);
            of_others.extend(others.into_iter().take(MOST_OF_OTHERS - of_others.len()));
            next += 1;
        }
        let mut next = 0;
        while let Some(group) = of_others.get(next) {
            let more: Vec<_> = just_below(group).take(MOST_OF_OTHERS - of_others.len()).collect();
            of_others.extend(more);
            next += 1;
        }
        groups.extend(of_others);
        groups
    }
}

/// Whoever may make groups in a part of the hierarchy may call them anything.
fn is_ours(group: &PathBuf) -> bool {
    let owner = fs::metadata(group).map(|metadata| metadata.uid());
    owner.is_ok_and(|owner| owner == 0 || owner == rustix::process::geteuid().as_raw())
}

/// The groups in a group.
fn just_below(group: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(group).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|folder| folder.path())
}

/// A group and all those below it, those above first.
pub fn below(group: &Path) -> Vec<PathBuf> {
    let mut groups = vec![group.to_path_buf()];
    let mut next = 0;
    while let Some(group) = groups.get(next) {
        let more = just_below(group);
        groups.extend(more);
        next += 1;
    }
    groups
}

/// The mount of the whole hierarchy, by the kernel's list (proc_pid_mountinfo(5)).
fn mount(list: &str) -> Option<PathBuf> {
    list.lines().find_map(|line| {
        let (fields, kind) = line.split_once(" - ")?;
        let mut fields = fields.split(' ').skip(3);
        let (root, place) = (fields.next()?, fields.next()?);
        (kind.starts_with("cgroup2 ") && root == "/").then(|| PathBuf::from(place))
    })
}

/// The path of a process's group below the mount (cgroups(7)); none of one that lies above what can be seen. Behind that of a group that is
/// gone the kernel writes so, which makes it the name of none.
fn path(told: &[u8]) -> Option<&Path> {
    let path = told.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"0::/"))?;
    let path = Path::new(OsStr::from_bytes(path));
    (!path.starts_with("..")).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_where_the_kernel_says() {
        let list = "22 1 0:20 / /proc rw - proc proc rw\n\
            30 1 0:26 /a /mnt/part rw - cgroup2 cgroup2 rw\n\
            31 1 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
        assert_eq!(mount(list), Some("/sys/fs/cgroup".into()));
        assert_eq!(mount("31 1 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"), None);
        let named = |told: &'static [u8]| path(told).map(|path| path.as_os_str().as_bytes());
        assert_eq!(named(b"9:name=systemd:/x\n0::/user.slice/a.scope\n"), Some(&b"user.slice/a.scope"[..]));
        assert_eq!(named(b"0::/\n"), Some(&b""[..]));
        assert_eq!(named(b"0::/..a/\xff\n"), Some(&b"..a/\xff"[..]), "any bytes");
        assert_eq!([path(b"0::/../b\n"), path(b"1:cpu:/a\n")], [None; 2]);
    }

    /// Whoever makes very many groups is not followed through all of them.
    #[test]
    fn root_of_others_only_some_are_looked_at() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: another user's folder needs root");
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let theirs = root.path().join("a");
        (0..MOST_OF_OTHERS + 100).for_each(|number| fs::create_dir_all(theirs.join(number.to_string())).unwrap());
        let ours = root.path().join("b/c");
        fs::create_dir_all(&ours).unwrap();
        std::os::unix::fs::chown(&theirs, Some(1234), None).unwrap();
        let groups = Hierarchy { mounted: root.path().into() }.groups();
        assert_eq!(groups.len(), MOST_OF_OTHERS + 3);
        assert_eq!(groups[..3], [root.path().to_path_buf(), root.path().join("b"), ours]);
    }

    #[test]
    fn those_above_come_first() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/b/c")).unwrap();
        fs::write(root.path().join("a/cgroup.procs"), "").unwrap();
        let hierarchy = Hierarchy { mounted: root.path().into() };
        let groups = hierarchy.groups();
        let names: Vec<_> = groups.iter().map(|group| group.strip_prefix(root.path()).unwrap()).collect();
        assert_eq!(names, ["", "a", "a/b", "a/b/c"].map(Path::new));
        assert_eq!(hierarchy.of_unit("b").unwrap(), root.path().join("a/b"));
        assert!(hierarchy.of_unit("d").is_err());
    }
}
