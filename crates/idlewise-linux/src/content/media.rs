//! Telling XFS what cannot be read (`XFS_IOC_VERIFY_MEDIA` of the kernel's fs/xfs/libxfs/xfs_fs.h, since Linux 7.0). It reads the place
//! itself, and tells whoever watches for its errors; with `rmapbt`, also which files have lost what.

use std::fs::File;
use std::io;
use std::ops::Range;

use crate::apart::{Argument, Calls};

const SECTOR: u64 = 512;

/// Has the file system that a file is on read a range of its device, and report it if it cannot.
///
/// # Errors
/// What the system says: `ENOTTY` before Linux 7.0.
pub fn report(calls: &Calls, file: &File, range: &Range<u64>) -> io::Result<()> {
    const VERIFY_MEDIA: libc::c_ulong = 0xc028_5846;
    let words = asked(range);
    let argument = Argument { words: &words, room: words.len(), pointer: None };
    // SAFETY: these are all words of the structure, and none points to anything.
    unsafe { calls.ioctl(file, VERIFY_MEDIA, argument, |_| ()) }
}

/// The kernel's `struct xfs_verify_media`: device and flags, first and last sector, error and size of a request, rest between them.
fn asked(range: &Range<u64>) -> [u64; 5] {
    const DATA: u32 = 1;
    const REPORT: u32 = 1;
    let halves = |first: u32, second: u32| {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&first.to_ne_bytes());
        bytes[4..].copy_from_slice(&second.to_ne_bytes());
        u64::from_ne_bytes(bytes)
    };
    let size = u32::try_from(range.end - range.start).unwrap_or(0);
    [halves(DATA, REPORT), range.start / SECTOR, range.end.div_ceil(SECTOR), halves(0, size), 0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_is_as_the_kernel_has_it() {
        let bytes: Vec<u8> = asked(&(4096..12288)).iter().flat_map(|word| word.to_ne_bytes()).collect();
        let short = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        let long = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
        assert_eq!((short(0), short(4), long(8), long(16)), (1, 1, 8, 24));
        assert_eq!((short(24), short(28), short(32), short(36)), (0, 8192, 0, 0));
    }
}
