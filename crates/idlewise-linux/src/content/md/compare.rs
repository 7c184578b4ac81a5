//! What differs on the members of an array in what was read of them.

use std::ops::Range;

use idlewise::Bytes;
use idlewise::order::Extent;
use xxhash_rust::xxh64::Xxh64;

use super::layout::{Level, Place};
use super::parity::add;
use super::{Md, Reads};
use crate::content::{DIFFERS, Judged, Suspect};

/// A block of which the members differ.
pub(super) struct Difference {
    pub suspect: Suspect,
    pub of_array: Range<u64>,
    /// Bytes of a member, on average.
    pub length: u64,
}

impl Md {
    /// What differs in an extent, by what was read from its first byte on.
    pub(super) fn compared(&self, extent: Extent, reads: Reads) -> (Judged, Vec<Difference>) {
        match self.array.layout.level {
            Level::Copies => self.copies(extent, reads),
            level => {
                let length = extent.length.0.min(reads.iter().map(|read| read.len() as u64).min().unwrap_or(0));
                let (judged, mut differ) = (Judged { judged: length, ..Judged::default() }, Vec::new());
                let part = |from: u64, to: u64| -> Vec<&[u8]> {
                    reads.iter().map(|read| &read[from as usize..to as usize]).collect()
                };
                // Whole stretches fit nearly always.
                if self.fits(level, extent.offset.0, &part(0, length)) {
                    return (judged, differ);
                }
                for within in (0..length).step_by(self.block as usize) {
                    let (at, blocks) = (extent.offset.0 + within, part(within, within + self.block));
                    if !self.fits(level, at, &blocks) {
                        let (suspect, of_array) = (self.suspect(at, &blocks), at..at + self.block);
                        differ.push(Difference { suspect, of_array, length: self.block });
                    }
                }
                (judged, differ)
            }
        }
    }

    /// RAID 10: the same for the chunks of which the first copy lies in the extent.
    fn copies(&self, extent: Extent, reads: Reads) -> (Judged, Vec<Difference>) {
        let layout = &self.array.layout;
        let (chunk, begin, end) = (layout.chunk, extent.offset.0, extent.end().0);
        let bytes = |place: &Place, within: u64, length: u64| {
            let (section, at) = self.section(place.at);
            let from = usize::try_from((at + within).checked_sub(begin)?).ok()?;
            let read = reads.get((section * layout.disks + place.member) as usize)?;
            read.get(from..from + length as usize)
        };
        let (mut compared, mut judged, mut differ) = (0, Judged::default(), Vec::new());
        let all = layout.disks * layout.sections();
        for number in layout.first_chunk(begin / chunk)..layout.chunks {
            let places = layout.copies(number);
            let first = places[0].at;
            if first >= end {
                break;
            }
            let (from, to) = (begin.saturating_sub(first).min(chunk), (end - first).min(chunk));
            for at in (from..to).step_by(self.block as usize) {
                let copies: Option<Vec<_>> = places.iter().map(|place| bytes(place, at, self.block)).collect();
                let Some(copies) = copies else {
                    judged.open.push(self.block_at(first + at));
                    continue;
                };
                compared += self.block * copies.len() as u64;
                if copies.iter().any(|copy| copy != &copies[0]) {
                    let of_array = number * chunk + at..number * chunk + at + self.block;
                    let (suspect, length) = (self.suspect(first + at, &copies), self.block * copies.len() as u64 / all);
                    differ.push(Difference { suspect, of_array, length });
                }
            }
        }
        judged.judged = compared / all;
        (judged, differ)
    }

    /// In which section a place of a member is, and where the same place of the first section is.
    fn section(&self, at: u64) -> (u64, u64) {
        let layout = &self.array.layout;
        if layout.sections() > 1 { (at / layout.section(), at % layout.section()) } else { (0, at) }
    }

    /// Whether what the members hold from a place on fits together.
    pub(super) fn fits(&self, level: Level, at: u64, reads: Reads) -> bool {
        match level {
            Level::Mirror | Level::Copies => reads.iter().all(|read| read == &reads[0]),
            Level::Parity => {
                let mut sum = reads[0].to_vec();
                reads[1..].iter().for_each(|read| add(&mut sum, read));
                sum.iter().all(|byte| *byte == 0)
            }
            Level::TwoParities => {
                let (mut from, length, chunk) = (0, reads[0].len() as u64, self.array.layout.chunk);
                while from < length {
                    let to = (from + chunk - (at + from) % chunk).min(length);
                    let part: Vec<_> = reads.iter().map(|read| &read[from as usize..to as usize]).collect();
                    if self.who(at + from, &part).is_some() {
                        return false;
                    }
                    from = to;
                }
                true
            }
        }
    }

    /// Leaves out where copies differ that nothing needs.
    pub(super) fn without_unused(&mut self, judged: &mut Judged, differ: &mut Vec<Difference>) {
        let range =
            |all: Range<u64>, one: &Difference| all.start.min(one.of_array.start)..all.end.max(one.of_array.end);
        let Some(first) = differ.first() else { return };
        if !matches!(self.array.layout.level, Level::Mirror | Level::Copies) {
            return;
        }
        let unused = self.users.unused(&differ.iter().fold(first.of_array.clone(), range));
        differ.retain(|one| {
            let is_unused = is_within(&one.of_array, &unused);
            let length = if is_unused { one.length.min(judged.judged) } else { 0 };
            judged.judged -= length;
            judged.free += length;
            !is_unused
        });
    }

    fn suspect(&self, at: u64, blocks: Reads) -> Suspect {
        Suspect { extent: self.block_at(at), kind: DIFFERS, expected: fingerprint(blocks) }
    }

    fn block_at(&self, at: u64) -> Extent {
        Extent { offset: Bytes(at), length: Bytes(self.block) }
    }
}

/// Whether all of a range lies in some ranges, which are apart.
fn is_within(range: &Range<u64>, ranges: &[Range<u64>]) -> bool {
    let part = |one: &Range<u64>| one.end.min(range.end).saturating_sub(one.start.max(range.start));
    ranges.iter().map(part).sum::<u64>() == range.end - range.start
}

/// Stands for what some blocks hold.
fn fingerprint(blocks: Reads) -> u64 {
    let mut hash = Xxh64::new(0);
    blocks.iter().for_each(|block| hash.update(block));
    hash.digest()
}
