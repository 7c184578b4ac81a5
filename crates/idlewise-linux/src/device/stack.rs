//! Which disks a file system writes to, and a device reads from, through whatever they lie on.

use std::collections::BTreeSet;
use std::path::Path;

use rustix::fs::{major, minor};

use super::sysfs::Place;
use super::{Device, loops};
use crate::files::told_by_kernel;

/// File systems without a disk of this machine.
const WITHOUT_A_DISK: [&str; 8] = ["tmpfs", "ramfs", "nfs", "nfs4", "cifs", "9p", "virtiofs", "ceph"];
/// Devices on top of each other, at most.
const LEVELS: usize = 16;

impl Device {
    /// Numbers of the whole disks and volumes that what is read of it is read from: its own, and those below. Also of the device below a loop
    /// device, but not of a file system there.
    pub fn disks(&self) -> BTreeSet<(u32, u32)> {
        let (mut found, mut look) = (BTreeSet::from([self.place.disk_numbers()]), self.place.devices_below());
        while let Some(number) = look.pop() {
            let Ok(place) = Place::find(Path::new("/sys"), number) else { continue };
            // None is looked at twice, however they lie on each other.
            if found.insert(place.disk_numbers()) {
                look.extend(place.devices_below());
            }
        }
        found
    }
}

impl Place {
    /// Numbers of the devices that it is made of, or lies on as a loop device.
    pub(super) fn devices_below(&self) -> Vec<u64> {
        let device = loops::backing(&self.disk).ok().flatten().and_then(|backing| backing.device);
        self.slaves().into_iter().chain(device).collect()
    }
}

/// Whether what is written to the file system of this device number may reach the disk with these numbers. Where that cannot be
/// told, as of btrfs and overlays, it may.
pub fn shares_disk(file_system: u64, disk: (u32, u32)) -> bool {
    reaches(Path::new("/sys"), &told_by_kernel("/proc/self/mountinfo").unwrap_or_default(), file_system, disk)
}

fn reaches(sys: &Path, mounts: &str, file_system: u64, disk: (u32, u32)) -> bool {
    let mut look = vec![file_system];
    for _ in 0..LEVELS {
        let mut below = Vec::new();
        for number in look {
            match Place::find(sys, number) {
                Ok(place) if place.disk_numbers() == disk => return true,
                Ok(place) => match place.parts() {
                    Ok(parts) => below.extend(parts),
                    Err(_) => return true,
                },
                Err(_) if has_no_disk(mounts, number) => {}
                Err(_) => return true,
            }
        }
        look = below;
    }
    // What is still on something else is too deep to tell.
    !look.is_empty()
}

/// By the kernel's list of mounts (proc_pid_mountinfo(5)): the third field is the number, the first behind the dash the type.
pub fn has_no_disk(mounts: &str, number: u64) -> bool {
    let number = format!("{}:{}", major(number), minor(number));
    mounts.lines().filter(|line| line.split(' ').nth(2) == Some(&number)).any(|line| {
        let kind = line.split_once(" - ").and_then(|(_, behind)| behind.split(' ').next());
        kind.is_some_and(|kind| WITHOUT_A_DISK.contains(&kind))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::device::sysfs::tests::fixture;

    #[test]
    fn through_partitions_arrays_and_files_to_the_disk() {
        let sys = fixture(&[
            ("block/sda/dev", "8:0\n"),
            ("block/sda/sda2/dev", "8:2\n"),
            ("block/sda/sda2/start", "2048\n"),
            ("block/sda/sda2/partition", "2\n"),
            ("block/sdb/dev", "8:16\n"),
            ("block/dm-0/dev", "253:0\n"),
            ("block/dm-1/dev", "253:1\n"),
            ("block/loop9999/dev", "7:9999\n"),
            ("block/loop9999/loop/backing_file", "/x\n"),
        ]);
        // A part that tells no number; and a loop device that this machine does not have.
        for folder in ["block/dm-0/slaves", "block/dm-1/slaves/sdx"] {
            fs::create_dir_all(sys.path().join(folder)).unwrap();
        }
        let link = |to: &str, from: &str| {
            std::os::unix::fs::symlink(sys.path().join(to), sys.path().join(from)).unwrap();
        };
        link("block/sda/sda2", "block/dm-0/slaves/sda2");
        for (name, number) in [
            ("sda", "8:0"),
            ("sda/sda2", "8:2"),
            ("sdb", "8:16"),
            ("dm-0", "253:0"),
            ("dm-1", "253:1"),
            ("loop9999", "7:9999"),
        ] {
            link(&format!("block/{name}"), &format!("dev/block/{number}"));
        }
        let mounts = "22 1 0:20 / /run rw - tmpfs tmpfs rw\n23 1 0:30 / /data rw - btrfs /dev/sda3 rw\n";
        let reaches = |major, minor, disk| reaches(sys.path(), mounts, rustix::fs::makedev(major, minor), disk);
        assert!(reaches(8, 2, (8, 0)) && reaches(253, 0, (8, 0)) && reaches(8, 16, (8, 16)));
        assert!(!reaches(8, 2, (8, 16)) && !reaches(253, 0, (8, 16)) && !reaches(0, 20, (8, 0)));
        assert!(reaches(0, 30, (8, 0)) && reaches(0, 99, (8, 0)), "what cannot be told");
        assert!(reaches(253, 1, (8, 0)) && reaches(7, 9999, (8, 0)), "nor through what it goes");
    }
}
