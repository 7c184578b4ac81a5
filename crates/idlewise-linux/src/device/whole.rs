//! Whole disks as sysfs knows them: nothing of them is opened.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::FileType;

use super::sysfs::{self, Place};
use super::{Device, DeviceError, Kind};
use crate::files;

/// Devices on top of each other, at most.
const LEVELS: usize = 16;

/// A whole disk, which is watched for its requests.
#[derive(Clone, Debug)]
pub struct WholeDisk(Place);

impl WholeDisk {
    /// The disk that a device is on.
    pub(super) fn of(place: &Place) -> Self {
        Self(place.whole())
    }

    /// The disk with these numbers, major and minor.
    ///
    /// # Errors
    /// If there is none.
    pub fn with_numbers((major, minor): (u32, u32)) -> io::Result<Self> {
        Place::find(Path::new("/sys"), rustix::fs::makedev(major, minor)).map(|place| Self::of(&place))
    }

    /// The disks of this machine that have requests to watch, loop devices included.
    pub fn all() -> Vec<Self> {
        let of = |number| Self::with_numbers(number).ok().filter(Self::has_requests);
        sysfs::all(Path::new("/sys")).into_iter().filter_map(of).collect()
    }

    /// The disks that what is at this path lies on, through partitions, device-mapper and md, down to those that have requests to watch:
    /// a block device, or a file or folder of a file system.
    ///
    /// # Errors
    /// If there is no such path, or nobody tells which disks those are.
    pub fn below(path: &Path) -> io::Result<Vec<Self>> {
        let stat = files::stat_at(path)?;
        let is_device = files::is(&stat, FileType::BlockDevice);
        let mut look = vec![if is_device { stat.st_rdev } else { stat.st_dev }];
        let mut found = BTreeMap::new();
        for _ in 0..LEVELS {
            let mut next = Vec::new();
            for number in look {
                let place = Place::find(Path::new("/sys"), number)
                    .map_err(|_| io::Error::other("the kernel does not tell on which disks it lies"))?;
                let disk = Self::of(&place);
                match disk.has_requests() {
                    true => drop(found.insert(disk.numbers(), disk)),
                    false => next.extend(place.parts()?),
                }
            }
            look = next;
        }
        match found.is_empty() {
            true => Err(io::Error::other("no disk below it has requests to watch")),
            false => Ok(found.into_values().collect()),
        }
    }

    /// Opens it, as the kernel names it.
    ///
    /// # Errors
    /// If it is gone, or cannot be opened.
    pub fn open(&self) -> Result<Device, DeviceError> {
        Device::with_numbers(self.numbers())
    }

    /// Its name, as in /dev.
    pub fn name(&self) -> String {
        self.0.name()
    }

    /// Major and minor number.
    pub fn numbers(&self) -> (u32, u32) {
        self.0.disk_numbers()
    }

    /// Its folder in sysfs.
    pub fn folder(&self) -> &Path {
        &self.0.disk
    }

    /// Which kind of disk it is.
    pub fn kind(&self) -> Kind {
        Kind::of(&self.0)
    }

    /// Requests that it has completed since the machine was started, of any kind.
    pub fn completed(&self) -> u64 {
        // Documentation/block/stat.rst of the kernel: reads, writes, discards and flushes.
        let stat = self.0.attribute("stat").unwrap_or_default();
        let fields: Vec<u64> = stat.split_whitespace().map_while(|word| word.parse().ok()).collect();
        [0, 4, 11, 15].into_iter().filter_map(|field| fields.get(field)).sum()
    }

    /// The largest request that the kernel sends to it in one piece, in bytes.
    pub fn largest_request(&self) -> u64 {
        self.0.largest_request()
    }

    /// With so many requests in its queue, others may have to wait for a place.
    #[cfg(feature = "bpf")]
    pub(crate) fn crowd(&self) -> u32 {
        u32::try_from(self.0.crowd()).unwrap_or(u32::MAX)
    }

    /// Whether its requests go by hidden paths of the kernel's own (native multipath of NVMe), where nobody sees them.
    pub fn has_hidden_paths(&self) -> bool {
        let is_head = fs::canonicalize(self.folder().join("device")).is_ok_and(|device| {
            device.file_name().is_some_and(|name| name.to_string_lossy().starts_with("nvme-subsys"))
        });
        is_head && !self.has_requests()
    }

    /// The disks of this machine of which that is so.
    pub fn all_with_hidden_paths() -> Vec<Self> {
        let of = |number| Self::with_numbers(number).ok().filter(Self::has_hidden_paths);
        sysfs::all(Path::new("/sys")).into_iter().filter_map(of).collect()
    }

    /// Whether it has requests of its own: device-mapper and md pass on whole bios to the disks below them.
    pub fn has_requests(&self) -> bool {
        self.folder().join("mq").exists()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_on_no_disk_is_said() {
        assert!(WholeDisk::below(Path::new("/no/such/path")).is_err());
        let error = WholeDisk::below(Path::new("/proc/self/status")).unwrap_err().to_string();
        assert_eq!(error, "the kernel does not tell on which disks it lies");
        assert!(WholeDisk::with_numbers((4095, 4095)).is_err());
        for disk in WholeDisk::all() {
            assert_eq!(WholeDisk::with_numbers(disk.numbers()).unwrap().name(), disk.name());
        }
    }
}
