//! Where on a device the file system's own addresses lie. A chunk maps a range of them to stretches of its devices (the kernel's
//! fs/btrfs/volumes.c, `btrfs_map_block`).

use std::io;
use std::ops::Range;

use super::ioctl::{Key, search};
use super::mounted::Mounted;
use super::superblock::word;

const CHUNK_TREE: u64 = 3;
const CHUNKS: u64 = 256;
const CHUNK_ITEM: u8 = 228;

/// Flags of a chunk.
const DATA: u64 = 1;
const RAID0: u64 = 1 << 3;
const RAID10: u64 = 1 << 6;
const RAID5: u64 = 1 << 7;
const RAID6: u64 = 1 << 8;

/// A stretch of a device that is a stripe of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// On the device.
    pub place: Range<u64>,
    /// First address of the chunk.
    logical: u64,
    flags: u64,
    stripe_length: u64,
    stripes: u64,
    sub_stripes: u64,
    /// Which of its stripes it is.
    index: u64,
}

/// A piece of a device whose addresses follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// On the device.
    pub place: Range<u64>,
    /// Its first address; nothing where it is parity.
    pub logical: Option<u64>,
    /// Whether it holds data, and whether it holds tree blocks; of small file systems, both.
    pub data: bool,
    pub trees: bool,
}

impl Stretch {
    /// Those of one device, by what an item of the chunk tree says.
    fn of(logical: u64, item: &[u8], device: u64) -> Vec<Self> {
        const HEADER: usize = 48;
        const STRIPE: usize = 32;
        let (length, stripe_length, flags) = (word(item, 0), word(item, 16), word(item, 24));
        let counts = word(item, 44);
        let (stripes, sub_stripes) = (counts & 0xffff, counts >> 16 & 0xffff);
        let copies = match flags {
            _ if flags & RAID0 != 0 => stripes,
            _ if flags & RAID10 != 0 => stripes / sub_stripes.max(1),
            _ if flags & RAID5 != 0 => stripes.saturating_sub(1),
            _ if flags & RAID6 != 0 => stripes.saturating_sub(2),
            _ => 1,
        };
        if copies == 0 || stripe_length == 0 {
            return Vec::new();
        }
        let own = |index: u64| {
            let at = HEADER + usize::try_from(index).ok()? * STRIPE;
            let stripe = item.get(at..at + STRIPE).filter(|stripe| word(stripe, 0) == device)?;
            let begin = word(stripe, 8);
            let place = begin..begin.checked_add(length / copies)?;
            Some(Self { place, logical, flags, stripe_length, stripes, sub_stripes: sub_stripes.max(1), index })
        };
        (0..stripes).filter_map(own).collect()
    }

    /// What of a range of the device lies in it, in pieces.
    pub fn pieces(&self, range: &Range<u64>) -> Vec<Piece> {
        let (begin, end) = (range.start.max(self.place.start), range.end.min(self.place.end));
        let mut pieces = Vec::new();
        let mut at = begin;
        while at < end {
            let within = at - self.place.start;
            let next = if self.is_striped() { at + self.stripe_length - within % self.stripe_length } else { end };
            let next = next.min(end);
            let logical = self.logical_at(within);
            pieces.push(Piece {
                place: at..next,
                logical,
                data: self.flags & DATA != 0,
                trees: self.flags & !DATA & 7 != 0,
            });
            at = next;
        }
        pieces
    }

    /// Whether the chunk holds parity, somewhere.
    pub fn has_parity(&self) -> bool {
        self.flags & (RAID5 | RAID6) != 0
    }

    fn is_striped(&self) -> bool {
        self.flags & (RAID0 | RAID10 | RAID5 | RAID6) != 0
    }

    /// The address of a byte of it; nothing for parity.
    fn logical_at(&self, within: u64) -> Option<u64> {
        if !self.is_striped() {
            return Some(self.logical + within);
        }
        let (row, rest) = (within / self.stripe_length, within % self.stripe_length);
        let stripe = match self.flags {
            flags if flags & RAID0 != 0 => row * self.stripes + self.index,
            flags if flags & RAID10 != 0 => row * (self.stripes / self.sub_stripes) + self.index / self.sub_stripes,
            flags => {
                let parity = if flags & RAID6 != 0 { 2 } else { 1 };
                let data = self.stripes - parity;
                // Each row begins one stripe further on.
                let position = (self.index + self.stripes - row % self.stripes) % self.stripes;
                if position >= data {
                    return None;
                }
                row * data + position
            }
        };
        Some(self.logical + stripe * self.stripe_length + rest)
    }
}

/// The stretches of a device, in order.
pub fn stretches(mounted: &Mounted, device: u64) -> io::Result<Vec<Stretch>> {
    let mut found = Vec::new();
    let key = |offset: u64| Key { object: CHUNKS, kind: CHUNK_ITEM, offset };
    search(mounted, CHUNK_TREE, (key(0), key(u64::MAX)), u8::MAX, |key, item| {
        if key.kind == CHUNK_ITEM {
            found.extend(Stretch::of(key.offset, item, device));
        }
    })?;
    found.sort_by_key(|stretch| stretch.place.start);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB64: u64 = 64 << 10;

    /// An item of a chunk over devices 1, 2, ..., each from a MiB for its number on.
    fn item(length: u64, flags: u64, stripes: u64, sub_stripes: u64) -> Vec<u8> {
        let mut item = vec![0; 48];
        item[..8].copy_from_slice(&length.to_le_bytes());
        item[16..24].copy_from_slice(&KIB64.to_le_bytes());
        item[24..32].copy_from_slice(&flags.to_le_bytes());
        item[44..46].copy_from_slice(&(stripes as u16).to_le_bytes());
        item[46..48].copy_from_slice(&(sub_stripes as u16).to_le_bytes());
        for device in 1..=stripes {
            item.extend([device.to_le_bytes(), (device << 20).to_le_bytes(), [0; 8], [0; 8]].concat());
        }
        item
    }

    /// Every address of a chunk, by the forward map of fs/btrfs/volumes.c: which devices it lies on, and where.
    fn forward(at: u64, flags: u64, stripes: u64, sub_stripes: u64) -> Vec<(u64, u64)> {
        let (stripe, rest) = (at / KIB64, at % KIB64);
        let place = |index: u64, row: u64| (index + 1, ((index + 1) << 20) + row * KIB64 + rest);
        match flags & !DATA {
            RAID0 => vec![place(stripe % stripes, stripe / stripes)],
            RAID10 => {
                let groups = stripes / sub_stripes;
                let first = stripe % groups * sub_stripes;
                (0..sub_stripes).map(|copy| place(first + copy, stripe / groups)).collect()
            }
            RAID5 | RAID6 => {
                let data = stripes - if flags & RAID6 != 0 { 2 } else { 1 };
                let row = stripe / data;
                vec![place((stripe % data + row) % stripes, row)]
            }
            _ => (0..stripes).map(|index| (index + 1, ((index + 1) << 20) + at)).collect(),
        }
    }

    #[test]
    fn each_address_is_found_where_the_file_system_puts_it() {
        let start = 1 << 40;
        for (flags, stripes, sub_stripes) in
            [(0, 1, 1), (1 << 4, 2, 1), (RAID0, 3, 1), (RAID10, 6, 2), (RAID5, 4, 1), (RAID6, 5, 1), (1 << 9, 3, 1)]
        {
            let copies = match flags {
                RAID0 => stripes,
                RAID10 => stripes / sub_stripes,
                RAID5 => stripes - 1,
                RAID6 => stripes - 2,
                _ => 1,
            };
            let rows = 8;
            let length = rows * copies * KIB64;
            let item = item(length, flags | DATA, stripes, sub_stripes);
            let mut found = Vec::new();
            let mut parity = 0;
            for device in 1..=stripes {
                let [stretch] = &Stretch::of(start, &item, device)[..] else { panic!("one stripe a device") };
                assert_eq!(stretch.place, (device << 20)..(device << 20) + rows * KIB64);
                // From the middle of a stripe on, and in one piece more than there are.
                for piece in stretch.pieces(&(stretch.place.start + 4096..u64::MAX)) {
                    assert!(piece.data && !piece.trees);
                    match piece.logical {
                        Some(logical) => found.extend(
                            (piece.place.clone())
                                .step_by(4096)
                                .map(|place| (logical - start + place - piece.place.start, device, place)),
                        ),
                        None => parity += 1,
                    }
                }
            }
            assert_eq!(
                parity,
                match flags {
                    RAID5 => rows,
                    RAID6 => 2 * rows,
                    _ => 0,
                },
                "flags {flags:#x}"
            );
            for (at, device, place) in &found {
                assert!(
                    forward(*at, flags | DATA, stripes, sub_stripes).contains(&(*device, *place)),
                    "{flags:#x} {at}"
                );
            }
            let all: u64 =
                (0..length).step_by(4096).map(|at| forward(at, flags | DATA, stripes, sub_stripes).len() as u64).sum();
            // The first sector of each device was left out, where it is data.
            let left_out = (1..=stripes)
                .filter(|device| {
                    (0..length)
                        .step_by(4096)
                        .any(|at| forward(at, flags | DATA, stripes, sub_stripes).contains(&(*device, device << 20)))
                })
                .count() as u64;
            assert_eq!(found.len() as u64, all - left_out, "flags {flags:#x}");
        }
    }

    #[test]
    fn no_item_makes_it_stumble() {
        let whole = item(1 << 30, RAID6, 2, 0);
        assert_eq!(Stretch::of(0, &whole, 1), []);
        for length in 0..whole.len() {
            let _ = Stretch::of(0, &whole[..length], 1);
        }
        assert_eq!(Stretch::of(0, &item(1 << 30, RAID10, 4, 0), 9), []);
    }
}
