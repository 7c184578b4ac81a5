//! Judging a stretch by what the trees say of it.

use std::io;

use idlewise::Bytes;
use idlewise::order::Extent;

use super::chunks::Piece;
use super::mounted::Mounted;
use super::superblock::{COPIES, LENGTH, Superblock};
use super::trees::BlockWanted;
use super::window::not_asked;
use super::{Btrfs, superblock, unasked};
use crate::content::{CHECKSUM, Judged, Suspect, TREE_BLOCK, Unasked};

impl Btrfs {
    /// Where the copies of the superblock are.
    fn copies(&self) -> impl Iterator<Item = u64> + use<> {
        let length = self.superblock.length;
        COPIES.into_iter().filter(move |place| place + LENGTH as u64 <= length)
    }

    /// The latest copy of the superblock that is on the disk now.
    ///
    /// # Errors
    /// If the disk does not answer, or no copy can be read.
    pub(super) fn latest(&self) -> io::Result<Option<Superblock>> {
        let (mut latest, mut unread) = (None::<Superblock>, None);
        for place in self.copies() {
            let mut bytes = [0; LENGTH];
            match self.calls.read_exact_at(&self.disk, &mut bytes, self.begin + place) {
                // A damaged copy says nothing.
                Ok(()) => {
                    let found = Superblock::parse(&bytes, place).ok().flatten();
                    let found = found.filter(|found| found.id == self.superblock.id);
                    latest = latest.into_iter().chain(found).max_by_key(|found| found.generation);
                }
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(error),
                Err(error) => unread = Some(error),
            }
        }
        unread.filter(|_| latest.is_none()).map_or(Ok(latest), Err)
    }

    /// Judges what begins in a piece before `end`; `bytes` are those of the piece.
    fn judge_piece(
        &mut self,
        mounted: Option<&Mounted>,
        piece: &Piece,
        end: u64,
        bytes: &[u8],
        judged: &mut Judged,
    ) -> io::Result<()> {
        let Some(logical) = piece.logical else { return Ok(()) };
        let range = logical..logical + (piece.place.end - piece.place.start);
        let own = logical..logical + (piece.place.end.min(end).saturating_sub(piece.place.start));
        let Superblock { sector, node, algorithm, .. } = self.superblock;
        let at = |address: u64, length: u64| {
            let from = (address - range.start) as usize;
            bytes.get(from..from + length as usize)
        };
        let begin = self.begin;
        let stretch = |address: u64, length: u64| Extent {
            offset: Bytes(begin + piece.place.start + (address - range.start)),
            length: Bytes(length),
        };
        let suspect = |address: u64, length: u64, kind: &'static str, expected: u64| Suspect {
            extent: stretch(address, length),
            kind,
            expected,
        };
        let before = judged.judged;
        if piece.data {
            for (address, sum) in self.sums(mounted, &range)?.into_iter().filter(|(address, _)| own.contains(address)) {
                let Some(data) = at(address, sector) else {
                    judged.open.push(stretch(address, sector));
                    continue;
                };
                judged.judged += sector;
                if !algorithm.fits(data, &sum) {
                    judged.suspects.push(suspect(address, sector, CHECKSUM, superblock::word(&sum, 0)));
                }
            }
        }
        if piece.trees {
            for (address, generation) in self.blocks(mounted, &own)? {
                let wanted = BlockWanted { superblock: &self.superblock, logical: address, generation };
                let Some(block) = at(address, node) else {
                    judged.open.push(stretch(address, node));
                    continue;
                };
                if wanted.fits(block) {
                    judged.judged += node;
                } else if mounted.is_none() {
                    return Err(not_asked());
                } else if self.latest().ok().flatten().is_some_and(|on_disk| generation <= on_disk.generation) {
                    judged.judged += node;
                    judged.suspects.push(suspect(address, node, TREE_BLOCK, generation));
                }
                // What the running transaction has made is in memory still.
            }
        }
        // What was allocated since that was asked may be judged already.
        let unjudged = (own.end - own.start).saturating_sub(judged.judged - before);
        judged.free += (own.end - own.start - self.allocated(mounted, &own)?.min(own.end - own.start)).min(unjudged);
        Ok(())
    }

    /// Judges by what the trees say now, or said a moment ago; whether all of it lies in chunks.
    pub(super) fn judge_lately(&mut self, extent: Extent, read: &[&[u8]]) -> Result<(Judged, bool), Unasked> {
        let mounted = self.mounted_lately()?;
        self.ask(&mounted).map_err(unasked)?;
        self.judge_by_map(Some(&mounted), extent, read).map_err(unasked)
    }

    /// Judges by the map that is known; whether all of it lies in chunks. Without a mount, only by what is known already.
    pub(super) fn judge_by_map(
        &mut self,
        mounted: Option<&Mounted>,
        extent: Extent,
        read: &[&[u8]],
    ) -> io::Result<(Judged, bool)> {
        let read = read.first().copied().unwrap_or_default();
        let begin = extent.offset.0 - self.begin;
        let range = begin..(begin + read.len() as u64).min(self.length);
        let end = (begin + extent.length.0).min(range.end);
        let mut judged = Judged::default();
        let pieces = self.pieces(&range);
        let all_mapped: u64 = pieces.iter().map(|piece| piece.place.end - piece.place.start).sum();
        let mapped: u64 = pieces.iter().map(|piece| piece.place.end.min(end).saturating_sub(piece.place.start)).sum();
        judged.free = (end - begin).saturating_sub(mapped);
        for piece in &pieces {
            let from = (piece.place.start - range.start) as usize;
            let bytes = &read[from..from + (piece.place.end - piece.place.start) as usize];
            self.judge_piece(mounted, piece, end, bytes, &mut judged)?;
        }
        let whole = |place: &u64| (begin..end).contains(place) && place + LENGTH as u64 <= range.end;
        for place in self.copies().filter(whole) {
            let bytes = &read[(place - range.start) as usize..][..LENGTH];
            let whole = Superblock::parse(bytes, place).ok().flatten().filter(|found| found.id == self.superblock.id);
            let extent = Extent { offset: Bytes(self.begin + place), length: Bytes(LENGTH as u64) };
            judged.judged += LENGTH as u64;
            judged.free = judged.free.saturating_sub(LENGTH as u64);
            if whole.is_none() {
                judged.suspects.push(Suspect { extent, kind: TREE_BLOCK, expected: 0 });
            }
        }
        Ok((judged, all_mapped == range.end - range.start))
    }
}
