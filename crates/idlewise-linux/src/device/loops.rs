//! What loop devices lie on, as they say themselves: from here, the path of a backing file may lead elsewhere, or nowhere.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{OFlags, makedev};
use rustix::io::Errno;
use rustix::ioctl::{Getter, ioctl};

use super::sysfs::numbers;

const LOOP_GET_STATUS64: rustix::ioctl::Opcode = 0x4C05;
/// `struct loop_info64` (linux/loop.h): numbers of the file's file system, of the file, and of the device that the file is, then more.
type LoopInfo = [u64; 29];

/// Of the device with this folder in sysfs, the number of the device that it lies on, or of the file system of its file; nothing of what is
/// no loop device in use.
///
/// # Errors
/// If it is one and cannot be asked.
pub fn lies_on(folder: &Path) -> io::Result<Option<u64>> {
    if !folder.join("loop").try_exists()? {
        return Ok(None);
    }
    let (major, minor) = numbers(folder).ok_or(Errno::NODEV)?;
    let path = Path::new("/dev").join(folder.file_name().unwrap_or_default());
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.file_type().is_block_device() || metadata.rdev() != makedev(major, minor) {
        return Err(Errno::NODEV.into());
    }
    // SAFETY: this command writes one such structure, of 232 bytes, and any bits are numbers.
    match unsafe { ioctl(&file, Getter::<LOOP_GET_STATUS64, LoopInfo>::new()) } {
        Ok([file_system, _, 0, ..]) => Ok(Some(file_system)),
        Ok([_, _, device, ..]) => Ok(Some(device)),
        // It was let go of meanwhile.
        Err(Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
