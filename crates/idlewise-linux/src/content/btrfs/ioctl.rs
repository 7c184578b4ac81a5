//! What is asked of a mounted btrfs (the kernel's include/uapi/linux/btrfs.h), which changes nothing. It is asked by a process apart: where a device of the file system does not answer, neither does this.

use std::fs::File;
use std::io;
use std::mem::offset_of;

use libc::c_ulong;

use super::mounted::Mounted;
use crate::apart::{Argument, Calls};

/// Bytes of items that one search brings at most: no tree block is larger, and the fewer it reads, the sooner it makes way.
const ROOM: usize = 64 << 10;
/// Places of files that one question brings at most, in words of three.
const PLACES: usize = 3 * 512;

/// The place of an item in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub object: u64,
    pub kind: u8,
    pub offset: u64,
}

impl Key {
    /// The first one of the next object.
    fn behind_object(self) -> Option<Self> {
        self.object.checked_add(1).map(|object| Self { object, kind: 0, offset: 0 })
    }

    /// The one behind it.
    fn next(self) -> Option<Self> {
        let Self { object, kind, offset } = self;
        if let Some(offset) = offset.checked_add(1) {
            return Some(Self { offset, ..self });
        }
        if let Some(kind) = kind.checked_add(1) {
            return Some(Self { kind, offset: 0, object });
        }
        self.behind_object()
    }
}

#[repr(C)]
struct SearchArguments {
    tree: u64,
    min_object: u64,
    max_object: u64,
    min_offset: u64,
    max_offset: u64,
    min_transaction: u64,
    max_transaction: u64,
    min_kind: u32,
    max_kind: u32,
    items: u32,
    unused: u32,
    unused_more: [u64; 4],
    room: u64,
}

/// How many words that is.
const WORDS: usize = 14;
const _: () = assert!(size_of::<SearchArguments>() == WORDS * size_of::<u64>());

#[repr(C)]
struct FileSystem {
    max_device: u64,
    devices: u64,
    id: [u8; 16],
    node: u32,
    sector: u32,
    clone_alignment: u32,
    sum_kind: u16,
    sum_length: u16,
    flags: u64,
    generation: u64,
    metadata_id: [u8; 16],
    reserved: [u8; 944],
}

const _: () = assert!(size_of::<FileSystem>() == 1024);

#[repr(C)]
struct DeviceInfo {
    number: u64,
    id: [u8; 16],
    rest: [u64; 509],
}

const _: () = assert!(size_of::<DeviceInfo>() == 4096);

#[repr(C)]
struct Path {
    tree: u64,
    object: u64,
    name: [u8; 4080],
}

pub(super) const fn request(reads: bool, number: u8, size: usize) -> c_ulong {
    const BTRFS: c_ulong = 0x94;
    let direction: c_ulong = if reads { 2 } else { 3 };
    direction << 30 | (size as c_ulong) << 16 | BTRFS << 8 | number as c_ulong
}

/// Asks by a process apart.
///
/// # Safety
/// The argument is what the kernel expects of this request: integers that point to nothing.
unsafe fn ask<T>(calls: &Calls, file: &File, request: c_ulong, argument: &mut T) -> io::Result<()> {
    const { assert!(align_of::<T>() == align_of::<u64>() && size_of::<T>().is_multiple_of(size_of::<u64>())) };
    let count = size_of::<T>() / size_of::<u64>();
    // SAFETY: it is as long and as aligned as so many words, of integers, and borrowed for as long.
    let words = unsafe { std::slice::from_raw_parts_mut((&raw mut *argument).cast::<u64>(), count) };
    let whole = words.to_vec();
    let argument = Argument { words: &whole, room: count, pointer: None };
    // SAFETY: the caller vouches for the argument.
    unsafe { calls.ioctl(file, request, argument, |after| words.copy_from_slice(after)) }
}

/// The unique name of the device that has a number in a file system; nothing where none has.
pub fn device_with_number(calls: &Calls, file: &File, number: u64) -> io::Result<Option<[u8; 16]>> {
    const DEVICE_INFO: c_ulong = request(false, 30, size_of::<DeviceInfo>());
    let mut info = DeviceInfo { number, id: [0; 16], rest: [0; 509] };
    // SAFETY: the structure is the kernel's, as asserted above.
    match unsafe { ask(calls, file, DEVICE_INFO, &mut info) } {
        Ok(()) => Ok(Some(info.id)),
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The unique name of the file system that a file is on.
pub fn file_system(calls: &Calls, file: &File) -> io::Result<[u8; 16]> {
    file_system_info(calls, file).map(|info| info.id)
}

fn file_system_info(calls: &Calls, file: &File) -> io::Result<FileSystem> {
    const FS_INFO: c_ulong = request(true, 31, size_of::<FileSystem>());
    // SAFETY: all of it is integers, for which zeros are values.
    let mut info: FileSystem = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is the kernel's, as asserted above.
    unsafe { ask(calls, file, FS_INFO, &mut info) }?;
    Ok(info)
}

/// Shows `each` the items of a tree from one key to another, both included, in order, and waits for the gate before each piece of it. Of an object with many items of a kind above
/// `kinds` they are not all shown: anybody may give an extent a million references.
pub fn search(
    mounted: &Mounted,
    tree: u64,
    (from, to): (Key, Key),
    kinds: u8,
    mut each: impl FnMut(Key, &[u8]),
) -> io::Result<()> {
    const TREE_SEARCH_V2: c_ulong = request(false, 17, size_of::<SearchArguments>());
    let mut next = Some(from);
    while let Some(from) = next.filter(|from| *from <= to) {
        mounted.gate.pass();
        let file = mounted.file()?;
        let arguments = SearchArguments {
            tree,
            min_object: from.object,
            max_object: to.object,
            min_offset: from.offset,
            max_offset: to.offset,
            min_transaction: 0,
            max_transaction: u64::MAX,
            min_kind: from.kind.into(),
            max_kind: to.kind.into(),
            items: u32::MAX,
            unused: 0,
            unused_more: [0; 4],
            room: ROOM as u64,
        };
        // SAFETY: it is so many words of integers, without gaps between them, and lives as long as they are used.
        let words = unsafe { std::slice::from_raw_parts((&raw const arguments).cast::<u64>(), WORDS) };
        let argument = Argument { words, room: WORDS + ROOM / size_of::<u64>(), pointer: None };
        // SAFETY: behind the arguments there is as much room as they say.
        let found = unsafe {
            mounted
                .calls
                .ioctl(&file, TREE_SEARCH_V2, argument, |after| show(after, mounted.node, (from, to), kinds, &mut each))
        };
        next = found??;
    }
    Ok(())
}

/// Shows what a search has found; where the next one begins, unless there would have been room for one more item.
fn show(
    after: &[u64],
    node: u64,
    (from, to): (Key, Key),
    kinds: u8,
    each: &mut impl FnMut(Key, &[u8]),
) -> io::Result<Option<Key>> {
    const HEADER: usize = 32;
    // SAFETY: there are so many words, and the numbers of the arguments may be any.
    let found = unsafe { (*after.as_ptr().cast::<SearchArguments>()).items };
    let items = &after[WORDS..];
    // SAFETY: words are bytes of any value, and are borrowed for as long.
    let bytes = unsafe { std::slice::from_raw_parts(items.as_ptr().cast::<u8>(), size_of_val(items)) };
    let (mut at, mut last, mut next) = (0, None, None);
    for _ in 0..found {
        let Some(header) = bytes.get(at..at + HEADER) else { break };
        let word = |at: usize| u64::from_ne_bytes(header[at..at + 8].try_into().expect("eight bytes"));
        let (kind, length) = (word(24) as u32, (word(24) >> 32) as usize);
        let (kind, length) =
            if cfg!(target_endian = "little") { (kind, length) } else { (length as u32, kind as usize) };
        let key = Key { object: word(8), kind: kind as u8, offset: word(16) };
        // Else it would be asked for ever.
        if last.is_some_and(|last| last >= key) || key < from || key > to {
            return Err(io::Error::other("its tree is out of order"));
        }
        let Some(data) = bytes.get(at + HEADER..at + HEADER + length) else { break };
        each(key, data);
        last = Some(key);
        next = if key.kind > kinds { key.behind_object() } else { key.next() };
        at += HEADER + length;
    }
    let is_full = (bytes.len() - at) < HEADER + node as usize;
    Ok(next.filter(|_| is_full))
}

/// The largest number of a device of the file system.
pub fn max_device(calls: &Calls, file: &File) -> io::Result<u64> {
    file_system_info(calls, file).map(|info| info.max_device)
}

/// In which files a byte of the file system's own addresses lies, or anything of the extent that it is in: each as tree and number of the file.
pub fn files_at(mounted: &Mounted, logical: u64, anywhere_in_extent: bool) -> io::Result<Vec<(u64, u64)>> {
    /// The words of `struct btrfs_ioctl_logical_ino_args`, of which the last one points to the places.
    const WORDS: usize = 7;
    const LOGICAL_INO_V2: c_ulong = request(false, 59, WORDS * size_of::<u64>());
    const IGNORE_OFFSET: u64 = 1;
    const HEADER: usize = 2;
    let mut words = [0; WORDS];
    (words[0], words[1]) = (logical, ((HEADER + PLACES) * size_of::<u64>()) as u64);
    words[WORDS - 2] = if anywhere_in_extent { IGNORE_OFFSET } else { 0 };
    let argument = Argument { words: &words, room: WORDS + HEADER + PLACES, pointer: Some((WORDS - 1, WORDS)) };
    let files = |after: &[u64]| {
        let places = &after[WORDS..];
        // Two words of 32 bits each: bytes left and missing, then values and those left out.
        let count = (places[1] as u32 as usize).min(PLACES);
        let places = places[HEADER..HEADER + count].chunks_exact(3);
        places.map(|place| (place[2], place[0])).collect::<Vec<_>>()
    };
    // SAFETY: behind the structure there are as many bytes as it says, and it is made to point there.
    let mut files = unsafe { mounted.calls.ioctl(&mounted.file()?, LOGICAL_INO_V2, argument, files) }?;
    files.sort_unstable();
    files.dedup();
    Ok(files)
}

/// The path of a file or folder within its tree, as bytes; empty for the tree's own folder.
pub fn path_in_tree(mounted: &Mounted, tree: u64, object: u64) -> io::Result<Vec<u8>> {
    const INO_LOOKUP: c_ulong = request(false, 18, size_of::<Path>());
    const _: () = assert!(size_of::<Path>() == 4096 && offset_of!(Path, name) == 16);
    let mut path = Path { tree, object, name: [0; 4080] };
    // SAFETY: the structure is the kernel's, as asserted above.
    unsafe { ask(&mounted.calls, &mounted.file()?, INO_LOOKUP, &mut path) }?;
    Ok(path.name.iter().copied().take_while(|byte| *byte != 0).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_follow_each_other() {
        let key = |object, kind, offset| Key { object, kind, offset };
        assert_eq!(key(1, 2, 3).next(), Some(key(1, 2, 4)));
        assert_eq!(key(1, 2, u64::MAX).next(), Some(key(1, 3, 0)));
        assert_eq!(key(1, 255, u64::MAX).next(), Some(key(2, 0, 0)));
        assert_eq!(key(u64::MAX, 255, u64::MAX).next(), None);
        assert_eq!(key(1, 178, 9).behind_object(), Some(key(2, 0, 0)));
    }

    #[test]
    fn requests_are_the_kernels() {
        assert_eq!(request(false, 17, 112), 0xc070_9411);
        assert_eq!(request(true, 31, 1024), 0x8400_941f);
    }
}
