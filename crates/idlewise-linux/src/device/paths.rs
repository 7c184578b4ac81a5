//! Several paths to one disk (multipath): where a storage is reached by more than one cable, the kernel has a disk for each of them. And
//! several parts of one drive (namespaces of NVMe), each of which the kernel calls a disk: requests to one wait for those to another.

use std::fs;
use std::os::unix::fs::{DirEntryExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

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

    /// The other whole disks that are paths to the same one, whether the kernel gets an answer by them or not.
    fn other_paths(&self, sys: &Path) -> Vec<Self> {
        let Some(own) = self.world_wide_name() else { return Vec::new() };
        self.others(sys).filter(|place| place.world_wide_name().is_some_and(|name| name == own)).collect()
    }

    /// All whole disks but its own.
    fn others(&self, sys: &Path) -> impl Iterator<Item = Self> {
        let (sys, own) = (sys.to_path_buf(), self.disk_numbers());
        sysfs::disks(&sys).into_iter().filter_map(move |name| {
            let (major, minor) = numbers(&sys.join("block").join(name.replace('/', "!")))?;
            Self::find(&sys, rustix::fs::makedev(major, minor)).ok().filter(|place| place.disk_numbers() != own)
        })
    }

    /// The drive of which it is a namespace, and may be one of several: as the kernel calls its controller, or all its controllers.
    fn drive(&self) -> Option<PathBuf> {
        fs::canonicalize(self.disk.join("device")).ok().filter(|_| self.name().starts_with("nvme"))
    }

    /// The other namespaces of its drive.
    fn siblings(&self, sys: &Path) -> Vec<Self> {
        let Some(own) = self.drive() else { return Vec::new() };
        self.others(sys).filter(|place| place.drive().is_some_and(|drive| drive == own)).collect()
    }
}

/// The other paths to a disk, which come and go: a cable is mended, a controller starts anew; and the other namespaces of its drive.
pub struct OtherPaths {
    place: Place,
    sys: PathBuf,
    /// The disks of this machine by what the kernel numbers each new one with.
    disks: Vec<u64>,
    /// Looks until what has come says which disk it is.
    unsettled: u8,
    paths: Vec<Place>,
    siblings: Vec<Place>,
}

impl OtherPaths {
    /// A disk that has just come may not yet say which one it is.
    const UNSETTLED: u8 = 10;

    fn of(place: &Place, sys: &Path) -> Self {
        let (place, sys) = (place.whole(), sys.to_path_buf());
        Self { place, sys, disks: Vec::new(), unsettled: 1, paths: Vec::new(), siblings: Vec::new() }
    }

    /// The paths that there are now, opened; namespaces are disks of their own.
    ///
    /// # Errors
    /// If one of them cannot be.
    pub fn open(mut self) -> Result<Vec<Device>, DeviceError> {
        self.now();
        let paths = self.paths.iter().filter(|path| !path.is_offline());
        paths.map(|path| Device::with_numbers(path.disk_numbers())).collect()
    }

    /// The numbers of those disks that are paths to it now, or share its drive: whose requests it has to wait for. As long as no disk comes
    /// or goes, a look costs next to nothing.
    pub fn now(&mut self) -> Vec<(u32, u32)> {
        let entries = fs::read_dir(self.sys.join("block")).into_iter().flatten().flatten();
        let mut disks: Vec<u64> = entries.map(|entry| entry.ino()).collect();
        disks.sort_unstable();
        if disks != self.disks {
            self.unsettled = if self.disks.is_empty() { 1 } else { Self::UNSETTLED };
            self.disks = disks;
        }
        if self.unsettled > 0 {
            self.unsettled -= 1;
            self.paths = self.place.other_paths(&self.sys);
            // A path to a namespace is not beside it.
            let is_path = |place: &Place| self.paths.iter().any(|path| path.disk_numbers() == place.disk_numbers());
            self.siblings = self.place.siblings(&self.sys).into_iter().filter(|place| !is_path(place)).collect();
        }
        self.paths.iter().chain(&self.siblings).filter(|path| !path.is_offline()).map(Place::disk_numbers).collect()
    }
}

impl Device {
    /// The other paths to the disk: requests of others that go there are seen there alone.
    pub fn other_paths(&self) -> OtherPaths {
        OtherPaths::of(&self.place, Path::new(SYS))
    }

    /// Whether it says by which name it is known by all paths, or may be one of several parts of a drive.
    pub fn may_have_other_paths(&self) -> bool {
        self.place.world_wide_name().is_some() || self.place.drive().is_some()
    }

    /// The drive that it shares with other namespaces, which are not to be read at once.
    pub fn shared_drive(&self) -> Option<String> {
        let drive = self.place.drive().filter(|_| !self.place.siblings(Path::new(SYS)).is_empty())?;
        Some(drive.file_name()?.to_string_lossy().into_owned())
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
        let paths = |minor| {
            let place = Place::find(sys.path(), rustix::fs::makedev(8, minor)).unwrap();
            OtherPaths::of(&place, sys.path())
        };
        let others = |minor| paths(minor).now();
        assert_eq!([0, 16, 32].map(others), [vec![(8, 16)], vec![(8, 0)], vec![(8, 0), (8, 16)]]);
        assert_eq!([48, 64, 80].map(others), [vec![], vec![], vec![]]);

        // They come and go.
        let mut meanwhile = paths(0);
        assert_eq!(meanwhile.now(), [(8, 16)]);
        let state = sys.path().join("devices/pci0/block/sdc/device/state");
        fs::write(&state, "running").unwrap();
        assert_eq!(meanwhile.now(), [(8, 16), (8, 32)]);
        let entry = sys.path().join("block/sdb");
        let place = fs::read_link(&entry).unwrap();
        fs::remove_file(&entry).unwrap();
        assert_eq!(meanwhile.now(), [(8, 32)]);
        let wwid = place.join("wwid");
        fs::write(&wwid, "").unwrap();
        std::os::unix::fs::symlink(&place, &entry).unwrap();
        assert_eq!(meanwhile.now(), [(8, 32)]);
        fs::write(&wwid, "naa.5000c5001").unwrap();
        assert_eq!(meanwhile.now(), [(8, 16), (8, 32)]);
    }

    /// Namespaces of one drive are watched for each other; those of another drive, and units of one SCSI target, are not.
    #[test]
    fn namespaces_of_a_drive_wait_for_each_other() {
        let disks = [
            ("nvme0n1", "259:0", "nvme0"),
            ("nvme0n2", "259:1", "nvme0"),
            ("nvme1n1", "259:2", "nvme1"),
            ("sda", "8:0", "target0"),
            ("sdb", "8:16", "target0"),
        ];
        let files = disks.iter().flat_map(|(name, number, drive)| {
            let file = |file: &str| format!("devices/{drive}/{name}/{file}");
            [(file("dev"), *number), (file("size"), "8")]
        });
        let files: Vec<_> = files.collect();
        let sys = fixture(&files.iter().map(|(path, text)| (&**path, *text)).collect::<Vec<_>>());
        let link = |to: PathBuf, from: PathBuf| {
            let _ = fs::create_dir_all(from.parent().unwrap());
            std::os::unix::fs::symlink(to, from).unwrap();
        };
        for (name, number, drive) in disks {
            let folder = sys.path().join("devices").join(drive).join(name);
            link(folder.clone(), sys.path().join("dev/block").join(number));
            link(folder.clone(), sys.path().join("block").join(name));
            link(sys.path().join("devices").join(drive), folder.join("device"));
        }
        let others = |major, minor| {
            let place = Place::find(sys.path(), rustix::fs::makedev(major, minor)).unwrap();
            OtherPaths::of(&place, sys.path()).now()
        };
        assert_eq!((others(259, 0), others(259, 1)), (vec![(259, 1)], vec![(259, 0)]));
        assert_eq!((others(259, 2), others(8, 0)), (vec![], vec![]));
    }
}
