//! md, and the arrays of device-mapper and LVM, which are md's: mirrors that must be the same, and parities that must fit. All members are read together, while all of them are idle.
//!
//! ```text
//! the same place on every member ─► RAID 1, 10: are the copies the same?
//!                                ├► RAID 4, 5:  is their sum zero?
//!                                └► RAID 6:     do both parities fit, and if not, who is wrong?
//! ```
//!
//! While md writes, members differ for a moment: what differs is looked at again when they have been idle meanwhile, and the writes of then are
//! over.

mod array;
mod compare;
mod layout;
mod mapped;
mod parity;
mod right;
mod unused;

use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use idlewise::order::Extent;

use super::{Content, Gate, Judged, Unasked};
use crate::device::verify::MemberPlace;
use crate::memory::Buffer;
pub use array::{Array, Member, geometry};
use layout::{Level, Place};
use parity::{Wrong, syndromes, wrong};
pub use right::{Fit, Outvoted};
use unused::Users;

/// An array whose members are compared.
pub struct Md {
    array: Arc<Array>,
    block: u64,
    /// When its members were last seen to be the same.
    seen: Option<Instant>,
    users: Users,
}

/// A member that is taken out is noticed within this time: what it holds fits still, and is none of the array's.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Places that are compared with each other, and the bytes of the array that they hold.
struct Group {
    places: Vec<Place>,
    of_array: Range<u64>,
}

/// What every member holds at a place, one behind the other for each section.
type Reads<'a> = &'a [&'a [u8]];

impl Array {
    /// What is read together: each member, for each section.
    pub fn places(&self) -> Vec<MemberPlace<'_>> {
        let sections = 0..self.layout.sections();
        let of = |section: u64| {
            let begin = move |member: &Member| member.begin + section * self.layout.section();
            self.members.iter().map(move |member| MemberPlace { device: &member.device, begin: begin(member) })
        };
        sections.flat_map(of).collect()
    }
}

impl Md {
    /// Its name on the command line.
    pub const NAME: &str = "md";

    /// With blocks of this size.
    pub fn new(array: Arc<Array>, block: u32) -> Self {
        Self::with(array, block, Gate::default())
    }

    /// The same, whose users may be asked while this is open.
    pub fn with(array: Arc<Array>, block: u32, gate: Gate) -> Self {
        let users = Users::of(array.name(), gate);
        Self { array, block: u64::from(block), seen: None, users }
    }

    /// RAID 6: who is wrong in a part of a row of chunks, with the members that hold its data.
    fn who(&self, at: u64, reads: Reads) -> Option<(Wrong, u64, u64, Vec<Option<u64>>)> {
        let (p, q, order) = self.array.layout.parities(at / self.array.layout.chunk);
        let zeros = vec![0; reads[0].len()];
        let data: Vec<_> =
            order.iter().map(|member| member.map_or(&zeros[..], |member| reads[member as usize])).collect();
        let (sum, weighed) = syndromes(&data, reads[p as usize], reads[q as usize]);
        wrong(&sum, &weighed, data.len()).map(|wrong| (wrong, p, q, order))
    }

    /// The member that is wrong in a part of a row of chunks, if only one is.
    fn wrong_member(&self, at: u64, reads: Reads) -> Option<u64> {
        let (wrong, p, q, order) = self.who(at, reads)?;
        match wrong {
            Wrong::P => Some(p),
            Wrong::Q => Some(q),
            Wrong::Data(which) => order.get(which).copied().flatten(),
            Wrong::Several => None,
        }
    }

    /// A block of a member.
    fn read(&self, place: &Place) -> io::Result<Vec<u8>> {
        let member = &self.array.members[place.member as usize];
        let mut buffer = Buffer::new(self.block as usize);
        let bytes = buffer.bytes(self.block as usize);
        member.device.file.read_exact_at(bytes, member.begin + place.at)?;
        Ok(bytes.to_vec())
    }

    fn name(&self, member: u64) -> String {
        self.array.members[member as usize].device.name()
    }

    /// The places that are compared with each other in a block, and where in the array that lies: of RAID 10 a part of several chunks, with
    /// parity all of the row.
    fn groups(&self, at: u64) -> Vec<Group> {
        let layout = &self.array.layout;
        let (row, within) = (at / layout.chunk.max(1), at % layout.chunk.max(1));
        let everywhere = || (0..layout.disks).map(|member| Place { member, at }).collect();
        let of_row = |data: u64| row * data * layout.chunk..(row + 1) * data * layout.chunk;
        match layout.level {
            Level::Copies => {
                let chunks = (layout.first_chunk(row)..layout.chunks).map(|chunk| (chunk, layout.copies(chunk)));
                let chunks = chunks.take_while(|(_, places)| places[0].at / layout.chunk == row);
                let group = |(chunk, places): (u64, Vec<Place>)| {
                    let begin = chunk * layout.chunk + within;
                    let places = places.into_iter().map(|one| Place { at: one.at + within, ..one }).collect();
                    Group { places, of_array: begin..begin + self.block }
                };
                chunks.map(group).collect()
            }
            Level::Mirror => vec![Group { places: everywhere(), of_array: at..at + self.block }],
            Level::Parity => vec![Group { places: everywhere(), of_array: of_row(layout.disks - 1) }],
            Level::TwoParities => vec![Group { places: everywhere(), of_array: of_row(layout.disks - 2) }],
        }
    }

    /// Who is wrong among the places of a block, or may be, and where in the array what they hold lies.
    fn suspects(&self, at: u64) -> (Vec<String>, Vec<Range<u64>>) {
        let layout = &self.array.layout;
        let (mut names, mut ranges) = (Vec::new(), Vec::new());
        for Group { places, of_array } in self.groups(at) {
            let before = names.len();
            let read: Vec<_> = places.iter().map(|place| self.read(place).ok()).collect();
            let silent = places.iter().zip(&read).filter(|(_, read)| read.is_none());
            names.extend(silent.map(|(place, _)| format!("member {}, which cannot be read", self.name(place.member))));
            if let Some(all) = read.into_iter().collect::<Option<Vec<_>>>() {
                let blocks: Vec<&[u8]> = all.iter().map(|block| &block[..]).collect();
                if !self.fits(layout.level, at, &blocks) {
                    names.push(self.blame(at, &places, &blocks));
                }
            }
            if names.len() > before {
                ranges.extend(self.blocks_in(at, of_array));
            }
        }
        (names, ranges)
    }

    /// The blocks of a row of chunks that lie at a place of the members.
    fn blocks_in(&self, at: u64, of_array: Range<u64>) -> Vec<Range<u64>> {
        let chunk = self.array.layout.chunk.max(1);
        match self.array.layout.level {
            Level::Mirror | Level::Copies => vec![of_array],
            Level::Parity | Level::TwoParities => {
                let first = of_array.start + at % chunk..of_array.end;
                first.step_by(chunk as usize).map(|begin| begin..begin + self.block).collect()
            }
        }
    }

    /// Which of some members is wrong, as far as they tell.
    fn blame(&self, at: u64, places: &[Place], blocks: Reads) -> String {
        let all = || places.iter().map(|place| self.name(place.member)).collect::<Vec<_>>().join(" or ");
        match self.array.layout.level {
            Level::TwoParities => {
                if let Some(member) = self.wrong_member(at, blocks) {
                    return format!("member {}, by both parities", self.name(member));
                }
            }
            Level::Mirror | Level::Copies => {
                if let Some(most) = most(blocks) {
                    let outvoted = places.iter().zip(blocks).filter(|(_, block)| **block != most);
                    let names: Vec<_> = outvoted.map(|(place, _)| self.name(place.member)).collect();
                    return format!("member {}, by the others", names.join(" and "));
                }
            }
            Level::Parity => {}
        }
        format!("member {}", all())
    }
}

/// What most of some blocks hold.
fn most<'a>(blocks: Reads<'a>) -> Option<&'a [u8]> {
    let votes = |block: &&[u8]| blocks.iter().filter(|other| *other == block).count();
    blocks.iter().copied().find(|block| 2 * votes(block) > blocks.len())
}

impl Content for Md {
    fn judge(&mut self, extent: Extent, read: Reads) -> Result<Judged, Unasked> {
        let (mut judged, mut differ) = self.compared(extent, read);
        self.without_unused(&mut judged, &mut differ);
        // Of RAID 10 several chunks may differ in one place.
        differ.sort_unstable_by_key(|one| (one.suspect.extent.offset, one.suspect.expected));
        differ.dedup_by_key(|one| one.suspect.extent.offset);
        judged.suspects = differ.into_iter().map(|one| one.suspect).collect();
        if !judged.suspects.is_empty() || self.seen.is_none_or(|seen| seen.elapsed() > LOOK_AGAIN) {
            self.array.is_the_same()?;
            self.seen = Some(Instant::now());
        }
        if !judged.suspects.is_empty() {
            // The next look is after all that was under way.
            self.array.wait_for_writes();
        }
        Ok(judged)
    }

    fn unit(&self) -> u64 {
        self.array.layout.unit()
    }

    fn owners(&mut self, extent: Extent) -> Result<Vec<String>, Unasked> {
        const MOST: usize = 64;
        self.array.is_the_same()?;
        let blocks = (extent.offset.0..extent.end().0).step_by(self.block as usize).take(MOST);
        let (mut names, mut ranges) = (Vec::new(), Vec::new());
        for at in blocks {
            let (wrong, of_array) = self.suspects(at);
            names.extend(wrong);
            ranges.extend(of_array);
        }
        names.extend(ranges.iter().flat_map(|range| self.users.names(range)));
        names.sort();
        names.dedup();
        Ok(names)
    }
}
