//! A device of a btrfs as its own scrub goes through it.

use std::fs::File;
use std::io;
use std::ops::Range;

use super::chunks::{Piece, Stretch};
use super::{Btrfs, Content, Part, ioctl, trees};

/// A device of a mounted file system, for a scrub of its own.
pub struct OwnDevice(Btrfs);

impl OwnDevice {
    /// Of a part of a device; nothing where no btrfs is on it.
    ///
    /// # Errors
    /// Why it cannot be asked.
    pub fn of(part: &Part) -> Result<Option<Self>, String> {
        match Btrfs::of(part)? {
            Some(found) => found.absent().map_or(Ok(()), |why| Err(why.into())).map(|()| Some(Self(found))),
            None => Ok(None),
        }
    }

    /// The unique name of the file system, and the number of the device in it.
    pub fn name(&self) -> String {
        self.0.superblock.name_of_device()
    }

    /// The stretches of the device that are parts of its chunks now, in order, and whether any has parity.
    ///
    /// # Errors
    /// If they cannot be asked for.
    pub fn stretches(&mut self) -> io::Result<(Vec<Range<u64>>, bool)> {
        let mounted = self.0.mounted().map_err(|problem| io::Error::other(problem.why))?;
        self.0.asked = None;
        self.0.ask(&mounted)?;
        let chunks = &self.0.chunks;
        Ok((chunks.iter().map(|stretch| stretch.place.clone()).collect(), chunks.iter().any(Stretch::has_parity)))
    }

    /// How many bytes of data and of tree blocks lie in one of its stretches, as they were asked for last.
    ///
    /// # Errors
    /// If that cannot be asked.
    pub fn allocated_in(&mut self, place: &Range<u64>) -> io::Result<u64> {
        let mounted = self.0.mounted().map_err(|problem| io::Error::other(problem.why))?;
        let pieces = self.0.chunks.iter().flat_map(|stretch| stretch.pieces(place));
        let logical = |piece: Piece| Some(piece.logical?..piece.logical? + (piece.place.end - piece.place.start));
        let mut pieces: Vec<Range<u64>> = pieces.filter_map(logical).collect();
        pieces.sort_by_key(|piece| piece.start);
        let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { return Ok(0) };
        let allocated = trees::allocated(&mounted, &self.0.superblock, &(first.start..last.end))?;
        Ok(allocated.iter().map(|one| overlap(&pieces, &one.range)).sum())
    }

    /// The largest number of a device of the file system that a folder is on.
    ///
    /// # Errors
    /// What the system says.
    pub fn max_device(&self, folder: &File) -> io::Result<u64> {
        ioctl::max_device(&self.0.calls, folder)
    }

    /// A folder of the file system, and the number of the device in it.
    ///
    /// # Errors
    /// If it is not mounted any more.
    pub fn mounted(&mut self) -> io::Result<(File, u64)> {
        let mounted = self.0.mounted().map_err(|problem| io::Error::other(problem.why))?;
        Ok((mounted.file()?, self.0.superblock.device))
    }
}

/// How much of a range lies in pieces, which are in order and apart.
fn overlap(pieces: &[Range<u64>], range: &Range<u64>) -> u64 {
    let from = pieces.partition_point(|piece| piece.end <= range.start);
    let within = pieces[from..].iter().take_while(|piece| piece.start < range.end);
    within.map(|piece| piece.end.min(range.end) - piece.start.max(range.start)).sum()
}
