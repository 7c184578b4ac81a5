//! Block devices: what they are, where they lie on their disk, and how to recognise them again.

pub(crate) mod occupied;
pub(crate) mod read_cache;
mod sg;
mod sysfs;
pub mod verify;

use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use idlewise::Bytes;
use rustix::fs::OFlags;
use rustix::io::Errno;

use verify::Fault;

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
    #[error(
        "{0}: no permission to read it: that takes membership of the group that owns it, CAP_DAC_READ_SEARCH, or root"
    )]
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
        let file = open_direct(path).map_err(|error| refused(&name, &error))?;
        let other = |problem: String| DeviceError::Io { path: name.clone(), problem };
        let place = sysfs::Place::find(Path::new("/sys"), metadata.rdev()).map_err(|e| other(e.to_string()))?;
        let block = rustix::fs::ioctl_blksszget(&file).map_err(|errno| other(errno.to_string()))?;
        let (size, start, identity) = (place.size(), place.start(), place.identity());
        Ok(Self { path: path.to_path_buf(), file, size, block, start, identity, place })
    }

    /// Opens a block device or a plain file, which anyone may probe who may read it.
    ///
    /// # Errors
    /// [`DeviceError`] says why it cannot be used.
    pub fn open_any(path: &Path) -> Result<Self, DeviceError> {
        /// Direct I/O on files is aligned to their file system's blocks, which are no larger.
        const BLOCK: u32 = 4096;
        let name = path.display().to_string();
        let metadata = fs::metadata(path).map_err(|error| refused(&name, &error))?;
        if !metadata.is_file() {
            return Self::open(path);
        }
        let file = open_direct(path).map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::INVAL) => {
                let problem = "its file system has no direct I/O: put it on another one".into();
                DeviceError::Io { path: name.clone(), problem }
            }
            _ => refused(&name, &error),
        })?;
        let size = Bytes(metadata.len() / u64::from(BLOCK) * u64::from(BLOCK));
        let (start, identity, place) = (Bytes(0), format!("file-{name}"), sysfs::Place::nowhere());
        Ok(Self { path: path.to_path_buf(), file, size, block: BLOCK, start, identity, place })
    }

    /// Whether it is a plain file.
    pub fn is_file(&self) -> bool {
        self.place.is_nowhere()
    }

    /// The whole disks of this machine: what has a device behind it and is not removable.
    pub fn all() -> Vec<PathBuf> {
        sysfs::disks(Path::new("/sys")).into_iter().map(|name| Path::new("/dev").join(name)).collect()
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

    /// How many requests the disk, or the kernel for it, takes at once; 1 where neither tells.
    pub fn queue_depth(&self) -> u32 {
        self.place.queue_depth().and_then(|depth| u32::try_from(depth).ok()).unwrap_or(1)
    }

    /// Whether it is set read-only.
    pub fn read_only(&self) -> bool {
        self.place.read_only()
    }

    /// The disk as a whole, to send commands to.
    fn open_disk(&self) -> Result<File, Fault> {
        self.open_node(&self.place.name())
    }

    /// The character device of an NVMe namespace.
    fn open_generic(&self) -> Result<File, Fault> {
        self.open_node(&self.place.name().replacen("nvme", "ng", 1))
    }

    fn open_node(&self, name: &str) -> Result<File, Fault> {
        let path = Path::new("/dev").join(name);
        File::open(&path).map_err(|error| Fault::Refused(format!("{}: {error}", path.display())))
    }

    /// Who made the disk, as SCSI tells: `ATA` where the kernel translates for an ATA disk.
    pub fn vendor(&self) -> Option<String> {
        self.place.attribute("device/vendor")
    }

    /// Number of the NVMe namespace, if it is one.
    pub fn namespace(&self) -> Option<u32> {
        let nvme = self.place.name().starts_with("nvme");
        self.place.attribute("nsid").filter(|_| nvme)?.parse().ok()
    }

    /// Names of the arrays that it is part of, or is: at any height, md or device-mapper.
    pub fn arrays(&self) -> Vec<String> {
        self.place.arrays().into_iter().map(|array| array.name).collect()
    }

    /// The md array that this very device, and not another part of its disk, is a member of.
    pub fn md_array(&self) -> Option<String> {
        self.place.md_array()
    }

    /// Its name in sysfs: of the partition, if it is one.
    pub fn name(&self) -> String {
        self.place.device_name()
    }

    /// Why its blocks are not those of one disk, if they are not.
    pub fn stacked(&self) -> Option<String> {
        if self.is_file() {
            return Some("it is a file, not a disk".into());
        }
        let name = self.place.name();
        let what = [("dm", "a device-mapper device"), ("md", "an md array"), ("loop", "a file")];
        let kind = what.into_iter().find(|(folder, _)| self.place.disk.join(folder).exists());
        kind.map(|(_, what)| format!("{name} is {what}, not a disk"))
    }

    /// Why the disk has no requests to trace, if it has none: device-mapper and md pass on whole bios.
    pub fn without_requests(&self) -> Option<String> {
        let name = self.place.name();
        (!self.place.disk.join("mq").exists())
            .then(|| format!("{name} is stacked on other disks and has no requests of its own"))
    }
}

fn open_direct(path: &Path) -> std::io::Result<File> {
    fs::OpenOptions::new().read(true).custom_flags(OFlags::DIRECT.bits() as i32).open(path)
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
