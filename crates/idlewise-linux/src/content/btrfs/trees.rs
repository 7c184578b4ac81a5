//! What the trees of a mounted btrfs say of a range of its own addresses. They are those of the running transaction, as in memory.

use std::io;
use std::ops::Range;

use super::algorithm::LONGEST;
use super::ioctl::{Key, search};
use super::mounted::Mounted;
use super::superblock::{Superblock, word};

const EXTENT_TREE: u64 = 2;
const CHECKSUM_TREE: u64 = 7;
const CHECKSUMS: u64 = 10u64.wrapping_neg();
const EXTENT_CSUM: u8 = 128;
const EXTENT_ITEM: u8 = 168;
const METADATA_ITEM: u8 = 169;

/// No extent of data is longer.
const LONGEST_EXTENT: u64 = 128 << 20;

/// Address of a sector, and its checksum with zeros behind.
pub type Sum = (u64, [u8; LONGEST]);

/// The checksums of the sectors in a range, in order.
pub fn sums(mounted: &Mounted, superblock: &Superblock, range: &Range<u64>) -> io::Result<Vec<Sum>> {
    // An item is within one tree block, and may begin before the range.
    let most = superblock.node / superblock.algorithm.length() as u64 * superblock.sector;
    let key = |offset| Key { object: CHECKSUMS, kind: EXTENT_CSUM, offset };
    let (from, to) = (key(range.start.saturating_sub(most)), key(range.end.saturating_sub(1)));
    let mut found = Vec::new();
    search(mounted, CHECKSUM_TREE, (from, to), u8::MAX, |key, item| {
        take_sums(superblock, range, key, item, &mut found)
    })?;
    Ok(found)
}

/// Adds what an item says of the range behind what was found. Between two answers an item may have been split: then the second part of it
/// comes once more.
fn take_sums(superblock: &Superblock, range: &Range<u64>, key: Key, item: &[u8], found: &mut Vec<Sum>) {
    let Superblock { sector, algorithm, .. } = *superblock;
    if key.kind != EXTENT_CSUM {
        return;
    }
    let length = algorithm.length();
    let begin = found.last().map_or(range.start, |(address, _)| address + sector);
    let before = usize::try_from(begin.saturating_sub(key.offset).div_ceil(sector)).unwrap_or(usize::MAX);
    for (at, sum) in item.chunks_exact(length).enumerate().skip(before) {
        let address = key.offset + at as u64 * sector;
        if address + sector > range.end {
            break;
        }
        let mut padded = [0; LONGEST];
        padded[..length].copy_from_slice(sum);
        found.push((address, padded));
    }
}

/// An extent, as the extent tree has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocated {
    pub range: Range<u64>,
    /// Of a tree block: the transaction that wrote it.
    pub tree_block_of: Option<u64>,
}

impl Allocated {
    fn of(key: Key, item: &[u8], node: u64) -> Option<Self> {
        /// The item is of a tree block.
        const TREE_BLOCK: u64 = 2;
        let (generation, flags) = (word(item, 8), word(item, 16));
        let tree_block_of = Some(generation).filter(|_| flags & TREE_BLOCK != 0);
        let length = match key.kind {
            EXTENT_ITEM => key.offset,
            METADATA_ITEM => node,
            _ => return None,
        };
        Some(Self { range: key.object..key.object.saturating_add(length), tree_block_of })
    }
}

/// What is allocated in a range, in order; the first may begin before it, and the last may end behind it.
pub fn allocated(mounted: &Mounted, superblock: &Superblock, range: &Range<u64>) -> io::Result<Vec<Allocated>> {
    let key = |object, kind, offset| Key { object, kind, offset };
    let from = key(range.start.saturating_sub(LONGEST_EXTENT), 0, 0);
    let to = key(range.end.saturating_sub(1), u8::MAX, u64::MAX);
    let mut found = Vec::new();
    search(mounted, EXTENT_TREE, (from, to), METADATA_ITEM, |key, item| {
        found.extend(Allocated::of(key, item, superblock.node).filter(|one| one.range.end > range.start));
    })?;
    Ok(found)
}

/// The tree blocks that begin in a range: address, and the transaction that wrote each.
pub fn blocks(mounted: &Mounted, superblock: &Superblock, range: &Range<u64>) -> io::Result<Vec<(u64, u64)>> {
    let key = |object, kind, offset| Key { object, kind, offset };
    let (from, to) = (key(range.start, 0, 0), key(range.end.saturating_sub(1), u8::MAX, u64::MAX));
    let mut found = Vec::new();
    search(mounted, EXTENT_TREE, (from, to), METADATA_ITEM, |key, item| {
        let one = Allocated::of(key, item, superblock.node);
        let one = one.and_then(|one| Some((one.range.start, one.tree_block_of?)));
        // Given to another meanwhile, at another level.
        let is_known = |(address, _): &(u64, u64)| found.last().is_some_and(|(last, _)| last == address);
        found.extend(one.filter(|one| !is_known(one)));
    })?;
    Ok(found)
}

/// What a tree block must be (`btrfs_header`).
pub struct BlockWanted<'a> {
    pub superblock: &'a Superblock,
    pub logical: u64,
    pub generation: u64,
}

impl BlockWanted<'_> {
    /// Whether these bytes are it.
    pub fn fits(&self, block: &[u8]) -> bool {
        let Superblock { algorithm, metadata_id, .. } = self.superblock;
        block.len() as u64 == self.superblock.node
            && block[32..48] == *metadata_id
            && word(block, 48) == self.logical
            && word(block, 80) == self.generation
            && algorithm.fits(&block[32..], block)
    }
}

#[cfg(test)]
mod tests {
    use super::super::superblock::tests::valid;
    use super::*;

    #[test]
    fn extents_are_those_of_their_items() {
        let item =
            |generation: u64, flags: u64| [1u64.to_le_bytes(), generation.to_le_bytes(), flags.to_le_bytes()].concat();
        let key = |kind, offset| Key { object: 1 << 20, kind, offset };
        let range = |length: u64| (1 << 20)..(1 << 20) + length;
        let of = |key, item: &[u8]| Allocated::of(key, item, 16384);
        assert_eq!(
            of(key(METADATA_ITEM, 0), &item(5, 2)),
            Some(Allocated { range: range(16384), tree_block_of: Some(5) })
        );
        assert_eq!(
            of(key(EXTENT_ITEM, 8192), &item(5, 1)),
            Some(Allocated { range: range(8192), tree_block_of: None })
        );
        assert_eq!(of(key(192, 8192), &item(5, 1)), None);
        assert!(of(key(EXTENT_ITEM, 8192), &[]).is_some());
    }

    /// An item that is split while it is asked for comes in part once more, and each sector counts once.
    #[test]
    fn each_sector_has_one_checksum() {
        let superblock = Superblock::parse(&valid(65536), 65536).unwrap().unwrap();
        let (sector, length) = (superblock.sector, superblock.algorithm.length());
        let item = |sectors: std::ops::Range<u8>| sectors.flat_map(|at| vec![at; length]).collect::<Vec<_>>();
        let mut found = Vec::new();
        let range = 2 * sector..20 * sector;
        for (first, items) in [(0, 0..8), (5, 5..8), (6, 6..12), (19, 19..24), (24, 24..25)] {
            let key = Key { object: CHECKSUMS, kind: EXTENT_CSUM, offset: first * sector };
            take_sums(&superblock, &range, key, &item(items), &mut found);
        }
        let sectors: Vec<_> = found.iter().map(|(address, sum)| (address / sector, u64::from(sum[0]))).collect();
        assert_eq!(sectors, (2..12).chain([19]).map(|at| (at, at)).collect::<Vec<_>>());
    }

    /// A bit changed, one that lies elsewhere, and one of before.
    #[test]
    fn a_tree_block_is_known_by_all_that_its_header_says() {
        let superblock = Superblock::parse(&valid(65536), 65536).unwrap().unwrap();
        let mut block = vec![3; 16384];
        block[32..48].copy_from_slice(&[7; 16]);
        block[48..56].copy_from_slice(&(1u64 << 30).to_le_bytes());
        block[80..88].copy_from_slice(&9u64.to_le_bytes());
        let sum = superblock.algorithm.sum(&block[32..]);
        block[..32].copy_from_slice(&sum);
        let wanted = |logical, generation| BlockWanted { superblock: &superblock, logical, generation };
        assert!(wanted(1 << 30, 9).fits(&block));
        assert!(!wanted(1 << 29, 9).fits(&block) && !wanted(1 << 30, 8).fits(&block));
        assert!(!wanted(1 << 30, 9).fits(&block[..4096]));
        block[9999] ^= 1;
        assert!(!wanted(1 << 30, 9).fits(&block));
    }
}
