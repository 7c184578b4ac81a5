//! Several paths to one disk (multipath): where a storage is reached by more than one cable, the kernel has a disk for each of them.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use super::sysfs::{self, Place};
use super::{Device, DeviceError, Named, numbers};

/// Where the kernel tells of itself.
const SYS: &str = "/sys";

impl Place {
    /// The disk's world-wide name, which it has by all paths. Of two disks whose makers chose the same one each is watched for both.
    fn world_wide_name(&self) -> Option<String> {
        let is_given = |name: &str| ["naa.", "eui.", "uuid."].iter().any(|begin| name.starts_with(begin));
        self.says().filter(|(kind, name)| *kind == "wwn" && is_given(name)).map(|(_, name)| name)
    }

    /// Whether the kernel gets no answer by this path.
    fn is_offline(&self) -> bool {
        fs::read_to_string(self.disk.join("device/state")).is_ok_and(|state| state.trim().ends_with("offline"))
    }

    /// The other whole disks that are paths to the same one.
    fn other_paths(&self, sys: &Path) -> Vec<(u32, u32)> {
        let Some(own) = self.world_wide_name() else { return Vec::new() };
        let numbers = |name: String| numbers(&sys.join("block").join(name.replace('/', "!")));
        let is_other = |numbers: &(u32, u32)| {
            let place = Place::find(sys, rustix::fs::makedev(numbers.0, numbers.1)).ok();
            let place = place.filter(|place| place.disk_numbers() != self.disk_numbers() && !place.is_offline());
            place.and_then(|place| place.world_wide_name()).is_some_and(|name| name == own)
        };
        sysfs::disks(sys).into_iter().filter_map(numbers).filter(is_other).collect()
    }
}

impl Device {
    /// The same disk by its other paths, as a whole: requests of others that go there are seen there alone.
    ///
    /// # Errors
    /// If one of them cannot be opened.
    pub fn other_paths(&self) -> Result<Vec<Self>, DeviceError> {
        self.place.other_paths(Path::new(SYS)).into_iter().map(Self::with_numbers).collect()
    }

    /// What is the same for all paths to a disk or a part of it, and for no other disk; nothing where that is not sure.
    pub fn name_of_all_paths(path: &Path) -> Option<String> {
        let metadata = fs::metadata(path).ok().filter(|metadata| metadata.file_type().is_block_device())?;
        let place = Place::find(Path::new(SYS), metadata.rdev()).ok()?;
        place.world_wide_name().filter(|_| place.named() == Named::Alone).map(|_| place.identity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::sysfs::tests::fixture;

    /// Paths to one disk have the same name of a manufacturer's; serial numbers that somebody typed may be alike by chance.
    #[test]
    fn only_disks_of_one_world_wide_name_are_one() {
        let disks = [
            ("sda", "8:0", "naa.5000c5001", "running"),
            ("sdb", "8:16", "naa.5000c5001", "running"),
            ("sdc", "8:32", "naa.5000c5001", "transport-offline"),
            ("sdd", "8:48", "naa.5000c5002", "running"),
            ("sde", "8:64", "0QEMU    QEMU HARDDISK   drive-scsi1", "running"),
            ("sdf", "8:80", "0QEMU    QEMU HARDDISK   drive-scsi1", "running"),
        ];
        let files = disks.iter().flat_map(|(name, number, wwid, state)| {
            let file = |file: &str| format!("devices/pci0/block/{name}/{file}");
            [(file("dev"), *number), (file("wwid"), *wwid), (file("size"), "8"), (file("device/state"), *state)]
        });
        let files: Vec<_> = files.collect();
        let sys = fixture(&files.iter().map(|(path, text)| (&**path, *text)).collect::<Vec<_>>());
        for (name, number, ..) in disks {
            let folder = sys.path().join("devices/pci0/block").join(name);
            std::os::unix::fs::symlink(&folder, sys.path().join("dev/block").join(number)).unwrap();
            let _ = fs::create_dir(sys.path().join("block"));
            std::os::unix::fs::symlink(&folder, sys.path().join("block").join(name)).unwrap();
        }
        let others = |minor| Place::find(sys.path(), rustix::fs::makedev(8, minor)).unwrap().other_paths(sys.path());
        assert_eq!([0, 16, 32].map(others), [vec![(8, 16)], vec![(8, 0)], vec![(8, 0), (8, 16)]]);
        assert_eq!([48, 64, 80].map(others), [vec![], vec![], vec![]]);
    }
}
