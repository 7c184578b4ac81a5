//! How much memory may be taken: by the machine, by the control groups that the process is in, and by its own limit.

use std::fs;
use std::path::Path;

use idlewise::Bytes;
use rustix::process::{Resource, getrlimit};

use crate::files::told_by_kernel;

/// Half of what is free, for what must be read whole.
pub fn half_of_free_memory() -> Option<Bytes> {
    let machine = of_machine(&fs::read_to_string("/proc/meminfo").ok()?)?;
    let groups = told_by_kernel("/proc/self/cgroup").ok();
    let groups = groups.and_then(|groups| of_groups(&groups, Path::new("/sys/fs/cgroup")));
    let limit = getrlimit(Resource::As).current;
    Some(Bytes([Some(machine), groups, limit].into_iter().flatten().min()? / 2))
}

/// Bytes that can be had without swapping.
fn of_machine(meminfo: &str) -> Option<u64> {
    let free = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = free.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// What the strictest group leaves, of those of either version from that of the process up.
fn of_groups(groups: &str, root: &Path) -> Option<u64> {
    let named = |line: &str| line.split_once(':').map(|(_, rest)| rest.to_string());
    let left = groups.lines().filter_map(named).filter_map(|line| {
        let (controllers, group) = line.split_once(":/")?;
        let (root, files) = match controllers {
            "" => (root.to_path_buf(), ["memory.max", "memory.current"]),
            "memory" => (root.join("memory"), ["memory.limit_in_bytes", "memory.usage_in_bytes"]),
            _ => return None,
        };
        let folders = Path::new(group).ancestors().map(|group| root.join(group));
        let left = folders.filter_map(|folder| {
            let number = |file: &str| fs::read_to_string(folder.join(file)).ok()?.trim().parse::<u64>().ok();
            Some(number(files[0])?.saturating_sub(number(files[1])?))
        });
        left.min()
    });
    left.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strictest_limit_counts() {
        let meminfo = "MemTotal:       1000 kB\nMemAvailable:    600 kB\n";
        assert_eq!((of_machine(meminfo), of_machine("MemTotal: 7 kB\n")), (Some(600 << 10), None));
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a/b");
        fs::create_dir_all(&folder).unwrap();
        let write = |group: &str, file: &str, text: &str| fs::write(root.path().join(group).join(file), text).unwrap();
        write("a/b", "memory.max", "max\n");
        write("a/b", "memory.current", "10\n");
        assert_eq!(of_groups("1:cpu:/x\n0::/a/b\n", root.path()), None);
        write("a", "memory.max", "500\n");
        write("a", "memory.current", "200\n");
        assert_eq!(of_groups("0::/a/b\n", root.path()), Some(300));
        write("a/b", "memory.max", "5\n");
        assert_eq!(of_groups("0::/a/b\n", root.path()), Some(0));
        fs::create_dir_all(root.path().join("memory/c")).unwrap();
        write("memory/c", "memory.limit_in_bytes", "90\n");
        write("memory/c", "memory.usage_in_bytes", "20\n");
        assert_eq!(of_groups("4:memory:/c\n1:cpu:/x\n", root.path()), Some(70));
        assert_eq!(of_groups("4:memory:/c\n0::/a\n", root.path()), Some(70));
        assert!(half_of_free_memory() > Some(Bytes(0)));
    }
}
