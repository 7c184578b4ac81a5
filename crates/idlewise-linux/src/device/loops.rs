//! What loop devices lie on, as they say themselves: from here, the path of a backing file may lead elsewhere, or nowhere.

use std::ffi::{CStr, CString};
use std::io;
use std::os::raw::c_void;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::makedev;
use rustix::io::Errno;

use super::sysfs::numbers;
use crate::apart::{filled, last_error};
use crate::files::told_by_kernel;

const LOOP_GET_STATUS64: libc::Ioctl = 0x4C05;
/// Length of `struct loop_info64` (linux/loop.h), which begins with the numbers of the file's file system, of the file, and of the device
/// that the file is, with the part of it.
const LOOP_INFO: usize = 232;
/// One that hangs holds up whoever opens it.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a loop device lies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backing {
    /// Number of the device that it lies on, or of the file system of its file.
    pub number: u64,
    /// Of the device, if that is what it lies on.
    pub device: Option<u64>,
    /// Numbers of its file's file system and of the file.
    pub file: (u64, u64),
    /// Where it begins there, and how much of it it has, in bytes; 0 for all.
    pub part: (u64, u64),
}

/// Of the loop device with this folder in sysfs; nothing of what is no loop device in use.
///
/// # Errors
/// If it is one and cannot be asked, or does not answer.
pub fn backing(folder: &Path) -> io::Result<Option<Backing>> {
    if !folder.join("loop").try_exists()? {
        return Ok(None);
    }
    let (major, minor) = numbers(folder).ok_or(Errno::NODEV)?;
    let path = Path::new("/dev").join(folder.file_name().unwrap_or_default());
    let path = CString::new(path.into_os_string().into_vec()).map_err(|_| Errno::NODEV)?;
    let told = match filled(PATIENCE, LOOP_INFO, None, |info| ask(&path, makedev(major, minor), info)) {
        // It was let go of meanwhile, or whoever serves its file is gone, so that it takes no writes and makes none.
        Err(error) if [Some(libc::ENXIO), Some(libc::ENOTCONN)].contains(&error.raw_os_error()) => return Ok(None),
        other => other?,
    };
    let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|index| told[at * 8 + index]));
    let [system, file, device, from, length] = [0, 1, 2, 3, 4].map(word);
    let device = Some(device).filter(|device| *device != 0);
    Ok(Some(Backing { number: device.unwrap_or(system), device, file: (system, file), part: (from, length) }))
}

/// Whether the loop device with this folder in sysfs lies on another device, and reads it through the page cache.
pub fn is_cached(folder: &Path) -> bool {
    let is_direct = || told_by_kernel(folder.join("loop/dio")).is_ok_and(|text| text.trim() == "1");
    backing(folder).is_ok_and(|backing| backing.is_some_and(|backing| backing.device.is_some())) && !is_direct()
}

/// Has the loop device at this path, with this number, say where it lies. By system calls alone.
fn ask(path: &CStr, number: u64, info: *mut c_void) -> Result<(), i32> {
    // SAFETY: the path ends with a zero.
    let file =
        unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC) };
    if file < 0 {
        return Err(last_error());
    }
    // SAFETY: a structure of plain numbers, for which all zeros are a value.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, and the structure is there until the call returns.
    if unsafe { libc::fstat(file, &raw mut stat) } != 0 {
        return Err(last_error());
    }
    if stat.st_mode & libc::S_IFMT != libc::S_IFBLK || stat.st_rdev != number {
        return Err(libc::ENODEV);
    }
    // SAFETY: this command writes one such structure, and so many bytes are there.
    if unsafe { libc::ioctl(file, LOOP_GET_STATUS64, info) } == 0 { Ok(()) } else { Err(last_error()) }
}
