//! What sysfs says of a block device. The root is a parameter, so that tests use plain folders.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use idlewise::Bytes;
use rustix::fs::{major, minor};

/// Sectors in sysfs are of 512 bytes, whatever the disk's blocks are.
const SECTOR: u64 = 512;

/// Where a block device and its disk are in sysfs.
#[derive(Debug)]
pub struct Place {
    /// The device's own folder.
    device: PathBuf,
    /// The whole disk's folder: the same, or its parent for a partition.
    pub disk: PathBuf,
}

impl Place {
    /// Finds the device with this number.
    pub fn find(sys: &Path, number: u64) -> io::Result<Self> {
        let device = fs::canonicalize(sys.join(format!("dev/block/{}:{}", major(number), minor(number))))?;
        let partition = device.join("partition").exists();
        let disk = device.parent().filter(|_| partition).unwrap_or(&device).to_path_buf();
        Ok(Self { device, disk })
    }

    pub fn size(&self) -> Bytes {
        Bytes(number(&self.device.join("size")).unwrap_or(0) * SECTOR)
    }

    pub fn start(&self) -> Bytes {
        Bytes(number(&self.device.join("start")).unwrap_or(0) * SECTOR)
    }

    pub fn disk_numbers(&self) -> (u32, u32) {
        let text = text(&self.disk.join("dev")).unwrap_or_default();
        let (major, minor) = text.split_once(':').unwrap_or_default();
        (major.parse().unwrap_or(0), minor.parse().unwrap_or(0))
    }

    pub fn largest_request(&self) -> u64 {
        const PAGE: u64 = 4096;
        let sectors = number(&self.disk.join("queue/max_sectors_kb")).unwrap_or(512) * 1024;
        let segments = number(&self.disk.join("queue/max_segments")).unwrap_or(u64::from(u16::MAX)) * PAGE;
        sectors.min(segments)
    }

    /// The disk's world-wide name, serial number, UUID or backing file, with the number of the partition; where it has
    /// none of them, its name, which another disk may get after a restart.
    pub fn identity(&self) -> String {
        const NAMES: [(&str, &str); 7] = [
            ("wwn", "wwid"),
            ("wwn", "device/wwid"),
            ("serial", "serial"),
            ("serial", "device/serial"),
            ("dm", "dm/uuid"),
            ("md", "md/uuid"),
            ("loop", "loop/backing_file"),
        ];
        let found =
            NAMES.iter().find_map(|(kind, file)| text(&self.disk.join(file)).map(|value| format!("{kind}-{value}")));
        let disk =
            found.unwrap_or_else(|| format!("name-{}", self.disk.file_name().unwrap_or_default().to_string_lossy()));
        match number(&self.device.join("partition")) {
            Some(partition) => format!("{disk}-part{partition}"),
            None => disk,
        }
    }
}

fn text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_string()).filter(|text| !text.is_empty())
}

fn number(path: &Path) -> Option<u64> {
    text(path)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture(files: &[(&str, &str)]) -> tempfile::TempDir {
        let sys = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = sys.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        fs::create_dir_all(sys.path().join("dev/block")).unwrap();
        sys
    }

    #[test]
    fn a_partition_is_a_place_on_its_disk() {
        let sys = fixture(&[
            ("block/sda/dev", "8:0\n"),
            ("block/sda/device/wwid", "naa.5000c500a1b2c3d4\n"),
            ("block/sda/queue/max_sectors_kb", "1280\n"),
            ("block/sda/queue/max_segments", "168\n"),
            ("block/sda/sda2/partition", "2\n"),
            ("block/sda/sda2/start", "2048\n"),
            ("block/sda/sda2/size", "100\n"),
        ]);
        std::os::unix::fs::symlink("../../block/sda/sda2", sys.path().join("dev/block/8:2")).unwrap();
        let place = Place::find(sys.path(), rustix::fs::makedev(8, 2)).unwrap();
        assert_eq!((place.size(), place.start()), (Bytes(51_200), Bytes(1_048_576)));
        assert_eq!((place.disk_numbers(), place.largest_request()), ((8, 0), 168 * 4096));
        assert_eq!(place.identity(), "wwn-naa.5000c500a1b2c3d4-part2");
        assert!(Place::find(sys.path(), rustix::fs::makedev(9, 9)).is_err());
    }

    #[test]
    fn a_disk_without_identity_is_known_by_its_name() {
        let sys = fixture(&[("block/vdb/dev", "254:16\n"), ("block/vdb/size", "8\n")]);
        std::os::unix::fs::symlink("../../block/vdb", sys.path().join("dev/block/254:16")).unwrap();
        let place = Place::find(sys.path(), rustix::fs::makedev(254, 16)).unwrap();
        assert_eq!(place.identity(), "name-vdb");
        assert_eq!((place.start(), place.size()), (Bytes(0), Bytes(4_096)));
    }
}
