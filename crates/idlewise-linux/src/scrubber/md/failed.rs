//! Reads of members that fail while md checks them: it counts none of those that no redundancy can make up for, and goes on. Each is seen, and
//! looked at again in the end.

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::again::Again;
use super::limits::SECTOR;
use crate::device::{Device, WholeDisk};
use crate::monitor::{FailedReads, failed_reads};
use crate::scrubber::Unread;

/// No more pieces are kept: 1 GiB of them.
const MOST: usize = 1 << 18;
/// Bytes of a piece.
pub const PIECE: u64 = 4096;

/// Of which member, by its number in the array, and the first byte there.
pub type Piece = (u32, u64);

/// Reads of the members from now on.
pub struct Failed {
    members: Vec<Member>,
    reads: FailedReads,
    /// Pieces that could not be read.
    pieces: BTreeSet<Piece>,
    /// Beyond those.
    more: u64,
}

/// A member of the array.
struct Member {
    /// Its number in the array, which it keeps.
    slot: u32,
    /// The whole disk, and the member's part of it, in sectors.
    disk: (u32, u32),
    part: Range<u64>,
    path: PathBuf,
}

impl Failed {
    /// Begins to look. `known` are places that could not be read in an earlier run.
    ///
    /// # Errors
    /// Why they cannot be seen.
    pub fn listen(folder: &Path, known: &[Unread]) -> io::Result<Self> {
        let (members, disks) = members_of(folder)?;
        let reads = failed_reads(&disks).map_err(io::Error::other)?;
        Ok(Self { members, reads, pieces: pieces_of(known), more: 0 })
    }

    /// Takes in those since the last look.
    ///
    /// # Errors
    /// If not all of them are known.
    pub fn look(&mut self) -> io::Result<()> {
        for read in (self.reads)()? {
            for member in self.members.iter().filter(|member| member.disk == read.disk) {
                let end = read.sector + u64::from(read.bytes).div_ceil(SECTOR);
                let (begin, end) = (read.sector.max(member.part.start), end.min(member.part.end));
                let within = |sector: u64| (sector - member.part.start) * SECTOR / PIECE;
                for piece in if begin < end { within(begin)..within(end - 1) + 1 } else { 0..0 } {
                    let piece = (member.slot, piece * PIECE);
                    if self.pieces.len() < MOST {
                        self.pieces.insert(piece);
                    } else if !self.pieces.contains(&piece) {
                        self.more += 1;
                    }
                }
            }
        }
        Ok(())
    }

    /// One of them, in words.
    pub fn any(&self) -> Option<String> {
        let (slot, byte) = self.pieces.first()?;
        let member = self.members.iter().find(|member| member.slot == *slot)?;
        Some(format!("byte {byte} of {}", member.path.display()))
    }

    /// Those that were seen.
    pub fn places(&self) -> Vec<Unread> {
        places_of(self.pieces.iter().copied())
    }

    /// Bytes of those that are not kept.
    pub fn more(&self) -> u64 {
        self.more * PIECE
    }

    /// They are looked at again.
    ///
    /// # Errors
    /// If that cannot be begun.
    pub fn again(self) -> io::Result<Again> {
        look_again(self.members, self.pieces)
    }
}

/// Those of an earlier run are looked at again, whose check had come to its end.
///
/// # Errors
/// If that cannot be begun.
pub fn again(folder: &Path, known: &[Unread]) -> io::Result<Again> {
    look_again(members_of(folder)?.0, pieces_of(known))
}

fn look_again(members: Vec<Member>, pieces: BTreeSet<Piece>) -> io::Result<Again> {
    Again::begin(members.into_iter().map(|member| (member.slot, member.path)).collect(), pieces)
}

/// The members of an array, and their disks.
fn members_of(folder: &Path) -> io::Result<(Vec<Member>, Vec<WholeDisk>)> {
    let found = (0..).map_while(|slot| Member::of(folder, slot)).collect::<io::Result<Vec<_>>>()?;
    Ok(found.into_iter().unzip())
}

/// Pieces that are behind each other are one place.
pub fn places_of(pieces: impl Iterator<Item = Piece>) -> Vec<Unread> {
    let mut places: Vec<Unread> = Vec::new();
    for (member, byte) in pieces {
        match places.last_mut().filter(|last| last.member == member && last.byte + last.bytes == byte) {
            Some(last) => last.bytes += PIECE,
            None => places.push(Unread { member, byte, bytes: PIECE }),
        }
    }
    places
}

/// The pieces of places.
fn pieces_of(places: &[Unread]) -> BTreeSet<Piece> {
    let pieces = |place: &Unread| {
        let member = place.member;
        let end = place.byte.saturating_add(place.bytes);
        (place.byte / PIECE..end.div_ceil(PIECE)).take(MOST).map(move |piece| (member, piece * PIECE))
    };
    places.iter().flat_map(pieces).collect()
}

impl Member {
    /// The one of this number; none where there is no more of them.
    fn of(folder: &Path, slot: u32) -> Option<io::Result<(Self, WholeDisk)>> {
        let link = std::fs::read_link(folder.join(format!("rd{slot}"))).ok()?;
        let name = link.file_name()?.to_str()?.strip_prefix("dev-")?.to_owned();
        Some(Self::named(&name, slot))
    }

    fn named(name: &str, slot: u32) -> io::Result<(Self, WholeDisk)> {
        let path = Path::new("/dev").join(name.replace('!', "/"));
        let device = Device::open(&path).map_err(io::Error::other)?;
        let (start, size) = (device.start.0 / SECTOR, device.size.0 / SECTOR);
        Ok((Self { slot, disk: device.disk_numbers(), part: start..start + size, path }, device.whole()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::FailedRead;

    #[test]
    fn pieces_behind_each_other_are_one_place() {
        let pieces = [(0, 0), (0, 4096), (0, 12_288), (1, 16_384)];
        let places = places_of(pieces.into_iter());
        let bytes: Vec<_> = places.iter().map(|place| (place.member, place.byte, place.bytes)).collect();
        assert_eq!(bytes, [(0, 0, 8192), (0, 12_288, 4096), (1, 16_384, 4096)]);
        assert_eq!(pieces_of(&places), BTreeSet::from(pieces));
        let far = Unread { member: 0, byte: u64::MAX - 1, bytes: u64::MAX };
        assert!(pieces_of(&[far]).len() <= MOST);
    }

    #[test]
    fn what_fails_is_a_piece_of_the_member_that_it_lies_on() {
        // One of two arrays on a disk, and what fails on both: of the other nothing is known here.
        let member = Member { slot: 3, disk: (8, 0), part: 2048..4096, path: PathBuf::from("/dev/none") };
        let read = |disk, sector, bytes| FailedRead { disk, sector, bytes };
        let mut told =
            vec![read((8, 0), 2044, 4096), read((8, 0), 0, 4096), read((9, 9), 2048, 512), read((8, 0), 2064, 512)];
        let mut failed = Failed {
            members: vec![member],
            reads: Box::new(move || Ok(std::mem::take(&mut told))),
            pieces: BTreeSet::new(),
            more: 0,
        };
        failed.look().unwrap();
        assert_eq!(failed.pieces, BTreeSet::from([(3, 0), (3, 8192)]));
        assert_eq!(failed.any().unwrap(), "byte 0 of /dev/none");
        assert_eq!(failed.again().unwrap().places().len(), 2);
    }
}
