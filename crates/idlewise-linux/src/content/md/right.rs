//! Who is right where the members of an array differ, as far as they tell; and the rewriting of copies that most others outvote.

use std::ops::Range;
use std::os::unix::fs::FileExt;

use super::{Group, Level, Md, Place, Wrong, most};
use crate::device::is_of_the_medium;
use crate::memory::Buffer;

/// Whether what the members hold in a block fits together, and who is right if not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It does.
    Fits,
    /// Most of the copies that can be read are the same: the others are wrong.
    Outvoted,
    /// By both parities of RAID 6 only the one on this member is wrong.
    Parity(u64),
    /// By both parities of RAID 6 the data of this member are wrong. Where md has written them since, by what it had read of them before, the
    /// parities are.
    Data(u64),
    /// This member cannot be read, or these two, and the parities are enough for that.
    Unread(u64, Option<u64>),
    /// Nobody knows, or md does not read one of the members there.
    Unknown,
}

/// A copy that is wrong, or cannot be read.
#[derive(PartialEq, Eq)]
pub struct Outvoted {
    place: Place,
    /// The name of its member.
    pub member: String,
    /// What it holds; nothing where it cannot be read.
    pub is: Option<Vec<u8>>,
    /// What most hold.
    most: Vec<u8>,
}

impl Md {
    /// How the members stand in each block of a range of their data.
    ///
    /// # Errors
    /// If the array has changed.
    pub fn fit(&self, range: Range<u64>) -> Result<Vec<Fit>, String> {
        self.array.is_the_same()?;
        let passed_over = self.array.passed_over()?;
        // Who keeps the array reads another member there, so that nobody has to be right.
        let is_passed = |place: &Place| {
            let of_it = |(member, part): &(u64, Range<u64>)| {
                *member == place.member && part.start < place.at + self.block && place.at < part.end
            };
            passed_over.iter().any(of_it)
        };
        let fit = |at: u64| {
            let mut all = self.groups(at).into_iter().map(|group| match self.fit_of(at, &group) {
                fit if fit != Fit::Fits && group.places.iter().any(is_passed) => Fit::Unknown,
                fit => fit,
            });
            all.try_fold(Fit::Fits, |so_far, fit| match fit {
                Fit::Unknown => None,
                Fit::Fits => Some(so_far),
                fit => Some(fit),
            })
        };
        Ok(range.step_by(self.block as usize).map(|at| fit(at).unwrap_or(Fit::Unknown)).collect())
    }

    /// Whether md does not read one of the members somewhere in a range of their data: it would rewrite that member there as it checks.
    ///
    /// # Errors
    /// If it cannot be asked.
    pub fn is_passed_over(&self, range: &Range<u64>) -> Result<bool, String> {
        Ok(self.array.passed_over()?.iter().any(|(_, part)| part.start < range.end && range.start < part.end))
    }

    fn fit_of(&self, at: u64, group: &Group) -> Fit {
        let Some(all) = self.read_all(group) else { return Fit::Unknown };
        let unread: Vec<_> = group.places.iter().zip(&all).filter(|(_, read)| read.is_none()).collect();
        let unread: Vec<_> = unread.into_iter().map(|(place, _)| place.member).collect();
        let level = self.array.layout.level;
        if [Level::Mirror, Level::Copies].contains(&level) {
            let blocks: Vec<&[u8]> = all.iter().flatten().map(|block| &block[..]).collect();
            return match most(&blocks) {
                Some(_) if unread.is_empty() && self.fits(level, at, &blocks) => Fit::Fits,
                Some(_) => Fit::Outvoted,
                None => Fit::Unknown,
            };
        }
        // What is missing is told by what the rest lacks.
        let zeros = vec![0; self.block as usize];
        let blocks: Vec<&[u8]> = all.iter().map(|read| read.as_deref().unwrap_or(&zeros)).collect();
        match (level, &unread[..]) {
            (_, []) if self.fits(level, at, &blocks) => Fit::Fits,
            (Level::TwoParities, []) => match (self.who(at, &blocks), self.wrong_member(at, &blocks)) {
                (Some((Wrong::P | Wrong::Q, ..)), Some(member)) => Fit::Parity(member),
                (_, Some(member)) => Fit::Data(member),
                _ => Fit::Unknown,
            },
            (Level::Parity, [one]) => Fit::Unread(*one, None),
            (Level::TwoParities, [one])
                if self.who(at, &blocks).is_none() || self.wrong_member(at, &blocks) == Some(*one) =>
            {
                Fit::Unread(*one, None)
            }
            (Level::TwoParities, [one, other]) => Fit::Unread(*one, Some(*other)),
            _ => Fit::Unknown,
        }
    }

    /// What is in each place of a group, nothing where the medium cannot be read; `None` if anything else is in the way.
    fn read_all(&self, group: &Group) -> Option<Vec<Option<Vec<u8>>>> {
        let read = |place: &Place| match self.read(place) {
            Ok(read) => Some(Some(read)),
            Err(error) if is_of_the_medium(&error) => Some(None),
            Err(_) => None,
        };
        group.places.iter().map(read).collect()
    }

    /// Which bytes of the array lie in a block of its members, or are held by the same parities.
    pub fn of_array(&self, at: u64) -> Range<u64> {
        let groups = self.groups(at);
        let begin = groups.iter().map(|group| group.of_array.start).min().unwrap_or(0);
        begin..groups.iter().map(|group| group.of_array.end).max().unwrap_or(begin)
    }

    /// The copies of a block that are wrong or cannot be read. Nobody may write to the array there from before this until they are rewritten.
    pub fn outvoted(&self, at: u64) -> Vec<Outvoted> {
        let of_group = |group: Group| {
            let all = self.read_all(&group)?;
            let most = most(&all.iter().flatten().map(|block| &block[..]).collect::<Vec<_>>())?.to_vec();
            let wrong = group.places.into_iter().zip(all).filter(|(_, is)| is.as_ref() != Some(&most));
            let outvoted = |(place, is): (Place, Option<Vec<u8>>)| {
                let member = self.name(place.member);
                Outvoted { place, member, is, most: most.clone() }
            };
            Some(wrong.map(outvoted).collect::<Vec<_>>())
        };
        self.groups(at).into_iter().filter_map(of_group).flatten().collect()
    }

    /// Rewrites a wrong copy by what most hold. The array must not be written to meanwhile.
    ///
    /// # Errors
    /// If its member does not take it.
    pub fn rewrite(&self, wrong: &Outvoted) -> std::io::Result<()> {
        let member = &self.array.members[wrong.place.member as usize];
        let mut buffer = Buffer::new(wrong.most.len());
        let bytes = buffer.bytes(wrong.most.len());
        bytes.copy_from_slice(&wrong.most);
        let file = member.device.open_for_writing()?;
        file.write_all_at(bytes, member.begin + wrong.place.at)?;
        file.sync_data()
    }

    /// The name of a member, and what it holds there; nothing where some of it cannot be read.
    pub fn held_by(&self, member: u64, range: Range<u64>) -> (String, Vec<u8>) {
        let blocks = range.step_by(self.block as usize);
        let held = blocks.map(|at| self.read(&Place { member, at })).collect::<Result<Vec<_>, _>>();
        (self.name(member), held.unwrap_or_default().concat())
    }

    /// Where the array's data begin on a member, in bytes.
    pub fn begin_of(&self, member: u64) -> u64 {
        self.array.members[member as usize].begin
    }

    /// So many members may be wrong in a page that its parities are enough for them.
    pub fn parities(&self) -> usize {
        match self.array.layout.level {
            Level::Mirror | Level::Copies => 0,
            Level::Parity => 1,
            Level::TwoParities => 2,
        }
    }

    /// Whether md keeps it, and not device-mapper.
    pub fn is_of_md(&self) -> bool {
        self.array.is_of_md()
    }
}
