//! Block devices: what they are, where they lie on their disk, and how to recognise them again.

mod sysfs;
pub mod verify;

use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use idlewise::Bytes;
use rustix::fs::OFlags;
use rustix::io::Errno;

/// An open block device. It is opened without write access: nothing here can write to it.
#[derive(Debug)]
pub struct Device {
    /// The path it was opened by.
    pub path: PathBuf,
    /// Open for reading, past the page cache.
    pub file: File,
    /// Size.
    pub size: Bytes,
    /// Size of a logical block, in which errors are told.
    pub block: u32,
    /// First byte on the whole disk; zero unless it is a partition.
    pub start: Bytes,
    /// A name that stays with the disk, such as its WWN.
    pub identity: String,
    place: sysfs::Place,
}

/// A device cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// There is none of that name.
    #[error("{0}: no such device")]
    Missing(String),
    /// A file, a folder or something else.
    #[error("{0}: not a block device; give a disk or partition such as /dev/sda")]
    NotABlockDevice(String),
    /// It may not be read.
    #[error("{0}: no permission to read it: run as root, or as a member of the group that owns it")]
    Permission(String),
    /// The system refused otherwise.
    #[error("{path}: {problem}")]
    Io {
        /// The device.
        path: String,
        /// What the system said.
        problem: String,
    },
}

impl Device {
    /// Opens a block device for reading, without the page cache.
    ///
    /// # Errors
    /// [`DeviceError`] says why it cannot be used.
    pub fn open(path: &Path) -> Result<Self, DeviceError> {
        let name = path.display().to_string();
        let metadata = fs::metadata(path).map_err(|error| refused(&name, &error))?;
        if !metadata.file_type().is_block_device() {
            return Err(DeviceError::NotABlockDevice(name));
        }
        let file = fs::OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::DIRECT.bits() as i32)
            .open(path)
            .map_err(|error| refused(&name, &error))?;
        let other = |problem: String| DeviceError::Io { path: name.clone(), problem };
        let place = sysfs::Place::find(Path::new("/sys"), metadata.rdev()).map_err(|e| other(e.to_string()))?;
        let block = rustix::fs::ioctl_blksszget(&file).map_err(|errno| other(errno.to_string()))?;
        let (size, start, identity) = (place.size(), place.start(), place.identity());
        Ok(Self { path: path.to_path_buf(), file, size, block, start, identity, place })
    }

    /// Major and minor number of the whole disk.
    pub fn disk_numbers(&self) -> (u32, u32) {
        self.place.disk_numbers()
    }

    /// The whole disk's folder in sysfs.
    pub fn disk_folder(&self) -> &Path {
        &self.place.disk
    }

    /// The largest request that the kernel sends to the disk in one piece, in bytes.
    pub fn largest_request(&self) -> u64 {
        self.place.largest_request()
    }

    /// Why the disk has no requests to trace, if it has none: device-mapper and md pass on whole bios.
    pub fn without_requests(&self) -> Option<String> {
        let name = self.place.disk.file_name().unwrap_or_default().to_string_lossy();
        (!self.place.disk.join("mq").exists())
            .then(|| format!("{name} is stacked on other disks and has no requests of its own"))
    }
}

fn refused(name: &str, error: &std::io::Error) -> DeviceError {
    match Errno::from_io_error(error) {
        Some(Errno::NOENT | Errno::NXIO | Errno::NODEV | Errno::NOTDIR) => DeviceError::Missing(name.into()),
        Some(Errno::ACCESS | Errno::PERM) => DeviceError::Permission(name.into()),
        _ => DeviceError::Io { path: name.into(), problem: error.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_block_device_is_refused() {
        let error = |path: &str| Device::open(Path::new(path)).unwrap_err().to_string();
        assert_eq!(error("/dev/no-such-disk"), "/dev/no-such-disk: no such device");
        assert!(error("/dev/null").contains("not a block device"));
        assert!(error("/etc").contains("not a block device"));
    }
}
