//! What device-mapper tells of a device (the kernel's include/uapi/linux/dm-ioctl.h). Nothing is changed by asking.

use std::fs::File;
use std::io;
use std::mem::size_of;
use std::os::fd::AsRawFd;

use libc::c_ulong;

const CONTROL: &str = "/dev/mapper/control";
/// Of the interface, whose numbers behind it only add to it.
const VERSION: [u32; 3] = [4, 0, 0];
/// The table rather than where it stands.
const TABLE: u32 = 1 << 4;
/// Neither waits until what was written has reached the disk.
const NO_FLUSH: u32 = 1 << 11;
const DID_NOT_FIT: u32 = 1 << 8;
/// Room for what is told, at first and at most.
const ROOM: usize = 16 << 10;
const MOST_ROOM: usize = 1 << 20;

#[repr(C)]
#[derive(Clone, Copy)]
struct Head {
    version: [u32; 3],
    data_size: u32,
    data_start: u32,
    targets: u32,
    open: i32,
    flags: u32,
    event: u32,
    padding: u32,
    device: u64,
    name: [u8; 128],
    id: [u8; 129],
    data: [u8; 7],
}

const _: () = assert!(size_of::<Head>() == 312);
/// Of the kernel's `struct dm_target_spec`: first sector, length, status, where the next one is, and the kind.
const SPECIFICATION: usize = 40;

/// A stretch of a device-mapper device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// First sector of 512 bytes, and how many.
    pub sectors: (u64, u64),
    /// Its kind, such as `raid`.
    pub kind: String,
    /// What it was made with, or how it stands.
    pub words: String,
}

/// The targets of the device with these numbers, major and minor: with what they were made.
///
/// # Errors
/// What the system says; asking takes `CAP_SYS_ADMIN`.
pub fn table(device: (u32, u32)) -> io::Result<Vec<Target>> {
    ask(device, TABLE | NO_FLUSH)
}

/// The same: how they stand.
///
/// # Errors
/// As [`table`].
pub fn status(device: (u32, u32)) -> io::Result<Vec<Target>> {
    ask(device, NO_FLUSH)
}

/// How often it is open, by whomever.
///
/// # Errors
/// As [`table`].
pub fn open_count(device: (u32, u32)) -> io::Result<u32> {
    let mut answer = vec![0; ROOM];
    told(&control()?, device, NO_FLUSH, &mut answer)?;
    word(&answer, 24).ok_or_else(|| io::Error::other("device-mapper tells what is not understood"))
}

fn control() -> io::Result<File> {
    File::options().read(true).write(true).open(CONTROL)
}

fn ask(device: (u32, u32), flags: u32) -> io::Result<Vec<Target>> {
    let control = control()?;
    let mut room = ROOM;
    loop {
        let mut answer = vec![0; room];
        if told(&control, device, flags, &mut answer)? {
            return targets(&answer).ok_or_else(|| io::Error::other("device-mapper tells what is not understood"));
        }
        room *= 4;
        if room > MOST_ROOM {
            return Err(io::Error::other("device-mapper tells too much"));
        }
    }
}

/// Whether the answer fitted.
fn told(control: &File, (major, minor): (u32, u32), flags: u32, answer: &mut [u8]) -> io::Result<bool> {
    const TABLE_STATUS: c_ulong = 3 << 30 | (size_of::<Head>() as c_ulong) << 16 | 0xfd << 8 | 12;
    // The kernel's own form of a device number: the minor's bits on both sides of the major's.
    let (major, minor) = (u64::from(major), u64::from(minor));
    let head = Head {
        version: VERSION,
        data_size: answer.len() as u32,
        data_start: size_of::<Head>() as u32,
        targets: 0,
        open: 0,
        flags,
        event: 0,
        padding: 0,
        device: minor & 0xff | major << 8 | (minor & !0xff) << 12,
        name: [0; 128],
        id: [0; 129],
        data: [0; 7],
    };
    assert!(answer.len() >= size_of::<Head>());
    // SAFETY: the answer is at least as long, and bytes may be written at any place.
    unsafe { answer.as_mut_ptr().cast::<Head>().write_unaligned(head) };
    // SAFETY: the kernel reads the head, and writes no more than `data_size`, which is the length of the answer.
    let done = unsafe { libc::ioctl(control.as_raw_fd(), TABLE_STATUS as _, answer.as_mut_ptr()) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(word(answer, 28).is_some_and(|flags| flags & DID_NOT_FIT == 0))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// Reads an answer; `None` where it is none.
fn targets(answer: &[u8]) -> Option<Vec<Target>> {
    let double = |at: usize| Some(u64::from_ne_bytes(answer.get(at..at.checked_add(8)?)?.try_into().ok()?));
    let (start, count) = (word(answer, 16)? as usize, word(answer, 20)?);
    let until_zero = |from: usize| {
        let bytes = answer.get(from..)?;
        let text = bytes.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(text).into_owned())
    };
    let (mut at, mut found) = (start, Vec::new());
    for _ in 0..count {
        let kind = answer.get(at + 24..at + SPECIFICATION)?.split(|byte| *byte == 0).next()?;
        found.push(Target {
            sectors: (double(at)?, double(at + 8)?),
            kind: String::from_utf8_lossy(kind).into_owned(),
            words: until_zero(at + SPECIFICATION)?,
        });
        // Of an answer the distances are from its beginning.
        let next = start + word(answer, at + 20)? as usize;
        if next <= at {
            break;
        }
        at = next;
    }
    (found.len() == count as usize).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(targets: &[(u64, u64, &str, &str)]) -> Vec<u8> {
        let mut bytes = vec![0; size_of::<Head>()];
        bytes[16..20].copy_from_slice(&(size_of::<Head>() as u32).to_ne_bytes());
        bytes[20..24].copy_from_slice(&(targets.len() as u32).to_ne_bytes());
        let mut distance = 0;
        for (first, length, kind, words) in targets {
            let mut one = [first.to_ne_bytes(), length.to_ne_bytes()].concat();
            let size = (SPECIFICATION + words.len() + 1).next_multiple_of(8);
            distance += size as u32;
            one.extend(0u32.to_ne_bytes());
            one.extend(distance.to_ne_bytes());
            one.extend(kind.as_bytes());
            one.resize(SPECIFICATION, 0);
            one.extend(words.as_bytes());
            one.resize(size, 0);
            bytes.extend(one);
        }
        bytes
    }

    #[test]
    fn an_answer_is_read_or_refused() {
        let whole = answer(&[(0, 8000, "linear", "8:0 0"), (8000, 2, "error", ""), (8002, 7, "raid", "raid1 3 0")]);
        let found = targets(&whole).unwrap();
        let kinds: Vec<_> = found.iter().map(|one| (one.sectors, &*one.kind, &*one.words)).collect();
        assert_eq!(kinds, [((0, 8000), "linear", "8:0 0"), ((8000, 2), "error", ""), ((8002, 7), "raid", "raid1 3 0")]);
        for length in 0..whole.len() {
            // Cut anywhere it is refused, or all the same but for the end of the last words.
            if let Some(cut) = targets(&whole[..length]) {
                assert!(cut.len() == 3 && cut[..2] == found[..2], "{length}");
            }
        }
        let mut circle = whole.clone();
        circle[size_of::<Head>() + 20] = 0;
        assert_eq!(targets(&circle), None);
    }
}
