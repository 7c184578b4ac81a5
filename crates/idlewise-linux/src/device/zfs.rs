//! Members of ZFS pools, by what lies on them; read only, and without the tools of ZFS.
//!
//! A member holds four copies of a label of 256 KiB, two at its beginning and two at its end. A label holds 16 KiB that are not
//! used here, 112 KiB of name and value pairs, and a ring of uberblocks, each of which begins with a magic number ("ZFS On-Disk
//! Specification", Sun Microsystems 2006, chapter 1).

use std::ops::Range;

const LABEL: u64 = 256 << 10;
/// Name and value pairs in a label, and its ring of uberblocks.
const PAIRS: Range<usize> = 16 << 10..128 << 10;
const RING: Range<usize> = 128 << 10..256 << 10;
/// The smallest uberblock; larger ones are a power of two of it.
const UBERBLOCK: usize = 1 << 10;
const MAGIC: u64 = 0x00ba_b10c;
/// As in `nvpair.h`: the type of a number and of a text.
const NUMBER: u32 = 8;
const TEXT: u32 = 9;
/// The longest name that ZFS gives out is shorter.
const LONGEST_NAME: usize = 255;
/// What other file systems and containers begin with, and where (`magic(5)` of each). A pool's member has none of it: who makes
/// a pool on Linux clears the first 4 KiB, and a label holds other things behind them.
const OTHERS: [(usize, &[u8]); 22] = [
    (0, b"XFSB"),
    (0, b"LUKS"),
    (3, b"NTFS    "),
    (3, b"EXFAT   "),
    (0x36, b"FAT1"),
    (0x52, b"FAT32"),
    (0x200, b"LABELONE"),
    // F2FS; ext2, ext3 and ext4; NILFS2; HFS+.
    (0x400, b"\x10\x20\xf5\xf2"),
    (0x438, b"\x53\xef"),
    (0x406, b"\x34\x34"),
    (0x400, b"H+"),
    (0x400, b"OCFSV2"),
    (0x1000, b"OCFSV2"),
    (0x2000, b"OCFSV2"),
    // bcachefs; ReiserFS 3.5; UDF; GFS2.
    (0x1018, b"\xc6\x85\x73\xf6"),
    (0x2034, b"ReIsEr"),
    (0x8001, b"BEA01"),
    (0x1_0000, b"\x01\x16\x19\x70"),
    // A table of partitions, which are other devices.
    (0x1fe, b"\x55\xaa"),
    (0x8000, b"JFS1"),
    (0x1_0034, b"ReIsEr"),
    (0x1_0040, b"_BHRfS_M"),
];

/// A pool that a device is a member of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    pub name: String,
    pub guid: u64,
}

/// The pool that the device at these bytes of a disk is a member of; `read` gives so many bytes of the disk from there on. What ZFS has
/// left on a disk that something else uses now is mostly at one end: only labels of one pool at both ends count. Who may write files to another
/// file system may place such labels there: where one begins, they do not count.
pub fn pool(place: Range<u64>, mut read: impl FnMut(u64, usize) -> Option<Vec<u8>>) -> Option<Pool> {
    let end = place.start + (place.end - place.start) / LABEL * LABEL;
    if end - place.start < 4 * LABEL {
        return None;
    }
    let mut label = |at: u64| parse(&read(at, LABEL as usize)?);
    let first = [place.start, place.start + LABEL].into_iter().find_map(&mut label)?;
    let last = [end - 2 * LABEL, end - LABEL].into_iter().find_map(&mut label)?;
    // Where it cannot be read, it may be anything.
    let begin = read(place.start, LABEL as usize)?;
    (first == last && !OTHERS.iter().any(|(at, magic)| begin.get(*at..).is_some_and(|rest| rest.starts_with(magic))))
        .then_some(first)
}

/// The pool that a label names, if it is one.
fn parse(label: &[u8]) -> Option<Pool> {
    let magic = |block: &[u8]| {
        let word = block.get(..8).and_then(|word| word.try_into().ok()).unwrap_or_default();
        u64::from_le_bytes(word) == MAGIC || u64::from_be_bytes(word) == MAGIC
    };
    if !label.get(RING)?.chunks(UBERBLOCK).any(magic) {
        return None;
    }
    let (mut name, mut guid) = (None, None);
    let mut pairs = Xdr(label.get(PAIRS)?);
    // The encoding, XDR, its byte order, and the version and flags of the list.
    if pairs.take(1)? != [1] {
        return None;
    }
    pairs.take(3 + 8)?;
    while let Some(length) = pairs.number().filter(|length| *length > 0) {
        // The length counts itself.
        let mut pair = Xdr(pairs.take((length as usize).checked_sub(4)?)?);
        pair.take(4)?;
        let key = pair.text()?;
        match (key, pair.number()?, pair.number()?) {
            (b"name", TEXT, 1) => name = pair.text().and_then(valid),
            (b"pool_guid", NUMBER, 1) => guid = Some(u64::from_be_bytes(pair.take(8)?.try_into().ok()?)),
            _ => {}
        }
    }
    Some(Pool { name: name?, guid: guid? })
}

/// A name as ZFS allows it, which can be part of a path and of a command.
fn valid(name: &[u8]) -> Option<String> {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-:. ".contains(byte);
    let valid = name.first()?.is_ascii_alphabetic() && name.iter().all(allowed) && name.len() <= LONGEST_NAME;
    valid.then(|| String::from_utf8_lossy(name).into_owned())
}

/// Reads XDR (RFC 4506): big-endian words, texts padded to whole words.
struct Xdr<'a>(&'a [u8]);

impl<'a> Xdr<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.number()? as usize;
        self.take(length.checked_next_multiple_of(4)?)?.get(..length)
    }
}

#[cfg(test)]
#[path = "../../../../tests/common/zfs_label.rs"]
mod zfs_label;

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use proptest::prelude::*;

    use super::zfs_label::label;
    use super::*;

    /// A member of `size` bytes behind `start` others, with the labels that `keep` names.
    fn member(start: u64, size: u64, keep: &[usize], name: &str) -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(start + size + 512).unwrap();
        let end = size / LABEL * LABEL;
        let places = [0, LABEL, end - 2 * LABEL, end - LABEL];
        keep.iter().for_each(|copy| file.write_all_at(&label(name, 42), start + places[*copy]).unwrap());
        file
    }

    fn pool(disk: &File, place: Range<u64>) -> Option<Pool> {
        super::pool(place, |at, length| {
            let mut bytes = vec![0; length];
            disk.read_exact_at(&mut bytes, at).ok().map(|()| bytes)
        })
    }

    #[test]
    fn a_member_has_labels_at_both_ends() {
        let (start, size) = (1 << 20, (8 << 20) + 5_000);
        let found = |keep: &[usize]| pool(&member(start, size, keep, "tank"), start..start + size);
        let tank = Some(Pool { name: "tank".into(), guid: 42 });
        assert_eq!(found(&[0, 1, 2, 3]), tank);
        assert_eq!(found(&[1, 3]), tank, "one copy at each end is lost");
        assert_eq!((found(&[2, 3]), found(&[0, 1]), found(&[])), (None, None, None));
        assert_eq!(pool(&member(0, size, &[0, 1, 2, 3], "tank"), start..start + size), None, "elsewhere");
        assert_eq!(pool(&member(0, size, &[0, 3], "tank"), 0..LABEL), None, "too small");
    }

    /// ext4 leaves all of it but its own first blocks to files.
    #[test]
    fn labels_in_the_files_of_another_file_system_are_none() {
        let size = 8 << 20;
        let disk = member(0, size, &[1, 3], "tank");
        assert!(pool(&disk, 0..size).is_some());
        let unread = |at, length| {
            let mut bytes = vec![0; length];
            (at > 0).then(|| disk.read_exact_at(&mut bytes, at).unwrap())?;
            Some(bytes)
        };
        assert_eq!(super::pool(0..size, unread), None, "nobody knows what begins there");
        for (at, magic) in OTHERS {
            let disk = member(0, size, &[1, 3], "tank");
            disk.write_all_at(magic, at as u64).unwrap();
            assert_eq!(pool(&disk, 0..size), None, "{at:#x}");
        }
    }

    #[test]
    fn names_that_zfs_does_not_give_out_are_refused() {
        for name in ["-f", "../etc", "a/b", "", "a\nb", &"x".repeat(300)] {
            assert_eq!(parse(&label(name, 1)), None, "{name:?}");
        }
        assert!(parse(&label("rpool_2.b: x", 1)).is_some());
        let mut without = label("tank", 1);
        without[RING].fill(0);
        assert_eq!(parse(&without), None, "no uberblock");
        let mut big_endian = label("tank", 1);
        big_endian[RING].fill(0);
        big_endian[RING.start..RING.start + 8].copy_from_slice(&MAGIC.to_be_bytes());
        assert!(parse(&big_endian).is_some());
    }

    proptest! {
        /// Whatever lies there, it is a label or none.
        #[test]
        fn no_damage_makes_it_stumble(at in 0usize..200, bytes in prop::collection::vec(any::<u8>(), 1..16), cut in 0usize..1 << 18) {
            let mut damaged = label("tank", 42);
            damaged[PAIRS.start + at..PAIRS.start + at + bytes.len()].copy_from_slice(&bytes);
            let _ = parse(&damaged);
            let _ = parse(&damaged[..cut]);
        }
    }
}
