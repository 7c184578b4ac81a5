//! Block devices: what they are, where they lie on their disk, and how to recognise them again.

mod ground;
mod identity;
mod kind;
mod loops;
pub(crate) mod mapper;
mod mapping;
mod member;
mod node;
pub(crate) mod occupied;
mod paths;
mod power;
mod present;
pub(crate) mod read_cache;
mod sg;
pub(crate) mod stack;
mod sysfs;
pub mod verify;
mod whole;
mod zfs;
pub(crate) mod zpool;

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use idlewise::Bytes;
use rustix::fs::FileType;
use rustix::io::Errno;

pub use ground::Ground;
pub use identity::{Marks, Named, Which};
pub use kind::Kind;
pub use member::Member;
use node::Node;
pub use paths::OtherPaths;
pub use present::{Devices, Glance};
pub(crate) use stack::shares_disk;
pub(crate) use sysfs::numbers;
use verify::Fault;
pub use whole::WholeDisk;

use crate::files;

/// An open block device. It is opened without write access: nothing here can write to it.
#[derive(Debug)]
pub struct Device {
    /// The path it was opened by.
    pub path: PathBuf,
    /// Open for reading, past the page cache.
    pub file: File,
    /// Size in whole blocks.
    pub size: Bytes,
    /// Size of a logical block, in which errors are told.
    pub block: u32,
    /// First byte on the whole disk; zero unless it is a partition.
    pub start: Bytes,
    /// A name that stays with the disk, such as its WWN.
    pub identity: String,
    /// What tells it from another of this identity.
    pub marks: Marks,
    /// Whether another disk may get this identity.
    pub named: Named,
    /// It is an array of which each member is scrubbed.
    by_members: bool,
    /// What was opened; nothing for a plain file.
    node: Option<Node>,
    place: sysfs::Place,
    /// Looked for when first asked for.
    pools: OnceLock<Vec<(u64, zfs::Pool)>>,
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
        "{0}: no permission to read it: that takes root (try sudo), CAP_DAC_READ_SEARCH, or a group that may read it"
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
        let other = |problem: String| DeviceError::Io { path: name.clone(), problem };
        let found = node::Found::at(path).map_err(|error| refused(&name, &error))?;
        if !found.metadata.file_type().is_block_device() {
            return Err(DeviceError::NotABlockDevice(name));
        }
        let file = found.open().map_err(|error| refused(&name, &error))?;
        let node = Node::of(&file).map_err(|error| refused(&name, &error))?;
        let place = sysfs::Place::find(Path::new("/sys"), node.number).map_err(|e| other(e.to_string()))?;
        // What is told of it must be told of this one, not of its successor.
        if node.diskseq.is_some() && place.diskseq().is_some_and(|diskseq| Some(diskseq) != node.diskseq) {
            return Err(other("another disk took its place while it was opened".into()));
        }
        let block = rustix::fs::ioctl_blksszget(&file).map_err(|errno| other(errno.to_string()))?;
        let size = Bytes(node.size / u64::from(block.max(1)) * u64::from(block.max(1)));
        let (identity, named) = (place.identity(), place.named());
        let (start, marks) = (place.start(), Marks::of(&place, node.diskseq));
        Ok(Self {
            path: path.into(),
            file,
            size,
            block,
            start,
            identity,
            marks,
            named,
            by_members: false,
            node: Some(node),
            place,
            pools: OnceLock::new(),
        })
    }

    /// Opens the block device with these numbers, major and minor.
    ///
    /// # Errors
    /// As [`Device::open`].
    pub(crate) fn with_numbers((major, minor): (u32, u32)) -> Result<Self, DeviceError> {
        let name = format!("{major}:{minor}");
        let missing = || DeviceError::Missing(name.clone());
        let link = fs::read_link(Path::new("/sys/dev/block").join(&name)).map_err(|_| missing())?;
        let node = link.file_name().map(|name| name.to_string_lossy().replace('!', "/")).ok_or_else(missing)?;
        let device = Self::open(&Path::new("/dev").join(node))?;
        if device.numbers() == Some((major, minor)) { Ok(device) } else { Err(missing()) }
    }

    /// Its major and minor number; nothing of a file.
    pub(crate) fn numbers(&self) -> Option<(u32, u32)> {
        let number = self.node?.number;
        Some((rustix::fs::major(number), rustix::fs::minor(number)))
    }

    /// The identity of the block device that a path leads to at the moment, which is not opened; nothing where it leads to none.
    pub fn identity_at(path: &Path) -> Option<String> {
        // Others may have chosen the path: nothing of theirs is asked for it.
        let stat = files::stat_at(path).ok().filter(|stat| files::is(stat, FileType::BlockDevice))?;
        Some(sysfs::Place::find(Path::new("/sys"), stat.st_rdev).ok()?.identity())
    }

    /// Its size in whole blocks, if it has become larger since it was opened.
    pub fn has_grown_to(&self) -> Option<Bytes> {
        let size = node::size(&self.file).ok().filter(|_| self.node.is_some() && !self.is_by_members())?;
        let size = Bytes(size / u64::from(self.block) * u64::from(self.block));
        (size > self.size).then_some(size)
    }

    /// How much of ours may be in service at once so that half of its queue is left to others.
    pub(crate) fn most_in_service(&self) -> Bytes {
        match self.is_file() {
            true => Bytes(u64::MAX),
            false => Bytes(self.place.largest_request().saturating_mul((self.place.queue_places() / 2).max(1))),
        }
    }

    /// Whether its medium is another now than when it was opened: the card of a reader was changed, the file of a loop device.
    pub fn has_another_medium(&self) -> bool {
        let now = node::diskseq(&self.file);
        now.is_some() && self.node.is_some_and(|node| node.diskseq.is_some() && node.diskseq != now)
    }

    /// Opens the very device once more, exclusively: refused while it is mounted or otherwise claimed, and if it is another now; for
    /// writing also while a loop device lies on it, or while what it lies on as a loop device is mounted or claimed.
    pub(crate) fn open_exclusively(&self, write: bool) -> io::Result<File> {
        let node = self.node.ok_or(Errno::NOTBLK)?;
        let file = node::open_exclusively(&self.file, &node, write)?;
        if write && let Some(other) = self.place.loop_on_it(Path::new("/sys"))? {
            return Err(io::Error::other(format!("/dev/{other} lies on it, or may: writes are refused")));
        }
        if write {
            self.place.is_free_below(Path::new("/sys"))?;
        }
        Ok(file)
    }

    /// Opens the very device once more to write to it, though others use it: whoever calls this knows that they do not write there.
    pub(crate) fn open_for_writing(&self) -> io::Result<File> {
        let node = self.node.ok_or(Errno::NOTBLK)?;
        node::open_for_writing(&self.file, &node)
    }

    /// Opens a block device or a plain file, which anyone may probe who may read it.
    ///
    /// # Errors
    /// [`DeviceError`] says why it cannot be used.
    pub fn open_any(path: &Path) -> Result<Self, DeviceError> {
        /// Direct I/O on files is aligned to their file system's blocks, which are no larger.
        const BLOCK: u32 = 4096;
        let name = path.display().to_string();
        let found = node::Found::at(path).map_err(|error| refused(&name, &error))?;
        if !found.metadata.is_file() {
            return Self::open(path);
        }
        let file = found.open().map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::INVAL) => {
                let problem = "its file system has no direct I/O: put it on another one".into();
                DeviceError::Io { path: name.clone(), problem }
            }
            _ => refused(&name, &error),
        })?;
        let metadata = file.metadata().map_err(|error| refused(&name, &error))?;
        if !metadata.is_file() {
            return Err(DeviceError::NotABlockDevice(name));
        }
        let size = Bytes(metadata.len() / u64::from(BLOCK) * u64::from(BLOCK));
        let (start, identity, place) = (Bytes(0), format!("file-{name}"), sysfs::Place::nowhere());
        let (marks, named) = (Marks::default(), Named::ForNow);
        Ok(Self {
            path: path.into(),
            file,
            size,
            block: BLOCK,
            start,
            identity,
            marks,
            named,
            by_members: false,
            node: None,
            place,
            pools: OnceLock::new(),
        })
    }

    /// Behind the identity of an array that is scrubbed by its members.
    pub const BY_MEMBERS: &str = "-by-members";

    /// An array, of which so much of each of these members is scrubbed: its places are those of the members.
    #[must_use]
    pub fn by_members<'a>(self, size: Bytes, members: impl Iterator<Item = &'a Self>) -> Self {
        let identity = self.identity.clone() + Self::BY_MEMBERS;
        let members = members.map(Self::which).collect();
        let marks = Marks { members, below: Vec::new(), ..self.marks.clone() };
        Self { identity, size, marks, by_members: true, ..self }
    }

    /// Which disk it is, as a member of an array.
    pub fn which(&self) -> Which {
        self.place.which(self.marks.diskseq)
    }

    /// Whether the volume lies on other disks now than when it was opened.
    pub fn lies_elsewhere(&self) -> bool {
        Marks::of(&self.place, None).lies_elsewhere_than(&self.marks)
    }

    /// The identity of the device itself, also of an array that is scrubbed by its members.
    pub fn itself(identity: &str) -> &str {
        identity.strip_suffix(Self::BY_MEMBERS).unwrap_or(identity)
    }

    /// Whether it is one.
    pub fn is_by_members(&self) -> bool {
        self.by_members
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

    /// Size of the whole disk.
    pub(crate) fn disk_size(&self) -> Bytes {
        self.place.whole().size()
    }

    /// Whether the file system of this number, of which a file says that it is on it, may lie on this disk.
    pub fn may_hold(&self, file_system: u64) -> bool {
        shares_disk(file_system, self.disk_numbers())
    }

    /// The whole disk's folder in sysfs.
    pub fn disk_folder(&self) -> &Path {
        &self.place.disk
    }

    /// The disk as a whole.
    pub fn whole(&self) -> WholeDisk {
        WholeDisk::of(&self.place)
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
        self.open_node(&self.place.name(), self.place.disk_numbers())
    }

    /// The character device of an NVMe namespace.
    fn open_generic(&self) -> Result<File, Fault> {
        let name = self.place.name().replacen("nvme", "ng", 1);
        let numbers = sysfs::numbers(&Path::new("/sys/class/nvme-generic").join(&name));
        self.open_node(&name, numbers.ok_or_else(|| Fault::Refused(format!("the kernel has no {name}")))?)
    }

    /// Opens what /dev calls so, if the kernel calls it so as well.
    fn open_node(&self, name: &str, (major, minor): (u32, u32)) -> Result<File, Fault> {
        let path = Path::new("/dev").join(name);
        let refused = |problem: String| Fault::Refused(format!("{}: {problem}", path.display()));
        let file = File::open(&path).map_err(|error| refused(error.to_string()))?;
        let metadata = file.metadata().map_err(|error| refused(error.to_string()))?;
        let node = metadata.file_type().is_block_device() || metadata.file_type().is_char_device();
        if !node || metadata.rdev() != rustix::fs::makedev(major, minor) {
            return Err(refused(format!("is not the device {major}:{minor}, which the kernel calls so")));
        }
        Ok(file)
    }

    /// Who made the disk, as SCSI tells: `ATA` where the kernel translates for an ATA disk.
    pub fn vendor(&self) -> Option<String> {
        self.place.attribute("device/vendor")
    }

    /// What its maker calls it, where it says so.
    pub fn model(&self) -> Option<String> {
        self.place.attribute("device/model")
    }

    /// Number of the NVMe namespace, if it is one.
    pub fn namespace(&self) -> Option<u32> {
        let nvme = self.place.name().starts_with("nvme");
        self.place.attribute("nsid").filter(|_| nvme)?.parse().ok()
    }

    /// Names of the arrays that it is part of, or is: at any height, md or device-mapper; and of ZFS pools, by their labels.
    pub fn arrays(&self) -> Vec<String> {
        let mut names: Vec<_> = self.place.arrays().into_iter().map(|array| array.name).collect();
        names.extend(self.pools().iter().map(|(_, pool)| format!("zpool {}", pool.name)));
        names.dedup();
        names
    }

    /// The md array that this very device, and not another part of its disk, is a member of.
    pub fn md_array(&self) -> Option<String> {
        self.place.md_array()
    }

    /// Its name in sysfs: of the partition, if it is one.
    pub fn name(&self) -> String {
        self.place.device_name()
    }

    /// What of it may hold a file system, with the kernel's names: its partitions, or itself where it has none; nothing of a plain file.
    pub(crate) fn parts(&self) -> Vec<(Range<u64>, String)> {
        let all = match (self.is_file(), self.place.partition()) {
            (true, _) => Vec::new(),
            (false, Some(_)) => vec![(0..self.size.0, self.name())],
            (false, None) => self.place.partitions(),
        };
        let end = self.size.0;
        let part =
            |(part, name): (Range<u64>, String)| (part.start < end).then_some((part.start..part.end.min(end), name));
        all.into_iter().filter_map(part).collect()
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
}

fn refused(name: &str, error: &std::io::Error) -> DeviceError {
    match Errno::from_io_error(error) {
        Some(Errno::NOENT | Errno::NXIO | Errno::NODEV | Errno::NOTDIR) => DeviceError::Missing(name.into()),
        Some(Errno::ACCESS) => DeviceError::Permission(name.into()),
        Some(Errno::PERM) => {
            let problem = "access is blocked, for root as well; in a container, pass the device in".into();
            DeviceError::Io { path: name.into(), problem }
        }
        _ => DeviceError::Io { path: name.into(), problem: error.to_string() },
    }
}

/// Whether a read failed because the medium cannot be read, and not because a cable or a driver is in the way.
pub(crate) fn is_of_the_medium(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::IO | Errno::NODATA | Errno::ILSEQ))
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
