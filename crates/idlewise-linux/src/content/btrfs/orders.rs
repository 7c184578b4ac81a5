//! What a mounted btrfs is told to do: its own scrub, a commit, new superblocks (the kernel's include/uapi/linux/btrfs.h).
//! [`scrub_progress`] alone changes nothing.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use libc::c_ulong;

use super::ioctl::request;

/// The number of a request whose argument the kernel only reads.
const fn to_kernel(number: u8, size: usize) -> c_ulong {
    request(false, number, size) & !(2 << 30)
}

/// # Safety
/// `argument` is what the kernel expects of this request, and lives until it returns.
unsafe fn call<T>(file: &File, request: c_ulong, argument: *mut T) -> io::Result<()> {
    // SAFETY: the caller vouches for the argument, and the descriptor is open.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), request as _, argument) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Has the file system check what begins at a place of one of its devices, a chunk at a time, and rewrite what it has a good copy of, unless
/// it may only read. It ends with the chunk. What it has counted is told when it is cancelled too.
pub fn scrub_chunk(file: &File, device: u64, begin: u64, read_only: bool) -> (io::Result<()>, Counted) {
    const SCRUB: c_ulong = request(false, 27, size_of::<Scrub>());
    let flags = u64::from(read_only);
    let mut scrub = Scrub { device, begin, end: begin + 1, flags, counts: [0; 15], unused: [0; 109] };
    // SAFETY: the structure is the kernel's, as asserted below.
    let done = unsafe { call(file, SCRUB, &raw mut scrub) };
    (done, Counted::of(&scrub.counts))
}

/// Has the file system commit what it has changed, and waits for that.
pub fn commit(file: &File) -> io::Result<()> {
    const START: c_ulong = request(true, 24, size_of::<u64>());
    const WAIT: c_ulong = to_kernel(22, size_of::<u64>());
    let mut transaction = 0u64;
    // SAFETY: the kernel writes the number of a transaction.
    unsafe { call(file, START, &raw mut transaction) }?;
    // SAFETY: it reads that.
    unsafe { call(file, WAIT, &raw mut transaction) }
}

/// Has the file system write all its superblocks, by giving it the label that it has: that alone is always a change to commit.
pub fn rewrite_superblocks(file: &File) -> io::Result<()> {
    const LABEL: usize = 256;
    const GET: c_ulong = request(true, 49, LABEL);
    const SET: c_ulong = to_kernel(50, LABEL);
    let mut label = [0u8; LABEL];
    // SAFETY: the kernel writes so many bytes, the label and zeros.
    unsafe { call(file, GET, label.as_mut_ptr()) }?;
    // SAFETY: it reads as many.
    unsafe { call(file, SET, label.as_mut_ptr()) }
}

/// Ends all scrubs of the file system that are running.
pub fn cancel_scrub(file: &File) -> io::Result<()> {
    const CANCEL: c_ulong = request(false, 28, 0) & !(3 << 30);
    // SAFETY: it takes no argument.
    unsafe { call::<u8>(file, CANCEL, std::ptr::null_mut()) }
}

/// What the scrub of a device that is running has counted; nothing where none is.
pub fn scrub_progress(file: &File, device: u64) -> io::Result<Option<Counted>> {
    const PROGRESS: c_ulong = request(false, 29, size_of::<Scrub>());
    let mut scrub = Scrub { device, begin: 0, end: 0, flags: 0, counts: [0; 15], unused: [0; 109] };
    // SAFETY: the structure is the kernel's, as asserted below.
    match unsafe { call(file, PROGRESS, &raw mut scrub) } {
        Ok(()) => Ok(Some(Counted::of(&scrub.counts))),
        Err(error) if [Some(libc::ENOTCONN), Some(libc::ENODEV)].contains(&error.raw_os_error()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What a scrub has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Bytes of data and of tree blocks that it has read.
    pub bytes: u64,
    /// What could not be read, or held something else than it should, but for superblocks.
    pub wrong: u64,
    /// Superblocks of the device that did not, wherever the scrub was to read.
    pub superblocks: u64,
}

impl Counted {
    /// The kernel's `struct btrfs_scrub_progress`.
    fn of(counts: &[u64; 15]) -> Self {
        let [_, _, data, trees, read, sums, verify, _, _, superblocks, ..] = *counts;
        let wrong = [read, sums, verify].into_iter().fold(0, u64::saturating_add);
        Self { bytes: data.saturating_add(trees), wrong, superblocks }
    }
}

#[repr(C)]
struct Scrub {
    device: u64,
    begin: u64,
    end: u64,
    flags: u64,
    counts: [u64; 15],
    unused: [u64; 109],
}

const _: () = assert!(size_of::<Scrub>() == 1024);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_the_kernels() {
        assert_eq!(to_kernel(50, 256), 0x4100_9432);
    }
}
