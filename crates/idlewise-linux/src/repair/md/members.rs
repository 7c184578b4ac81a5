//! Repair of members of an array that differ or cannot be read, where it is known which of them is right.
//!
//! ```text
//! most copies are the same        ─► the others are rewritten, while writes to the array wait there
//! no more members than parities cannot be read
//!                                 ─► md checks it, and rewrites them from the others
//! by both parities the data of a member are wrong, and the user trusts them
//!                                 ─► the same, after md was told that the member cannot be read there
//! only a parity of RAID 6 differs ─► md's own repair, which takes the data for right
//! ```

use std::collections::BTreeSet;
use std::fs::File;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use super::suspended::{Suspended, Suspension};
use super::{Array, PAGE, SECTOR, WINDOW};
use crate::content::{Fit, Md};
use crate::device::Device;
use crate::knobs::{self, KnobLedger};
use crate::ledger::Ledger;
use crate::repair::mirror::open_exclusively;
use crate::repair::{Fate, Outcome, RepairError, RepairLog, in_pieces, note};
use crate::scrub::BadBlocks;

/// md knows pages.
const PAGE_BYTES: u64 = PAGE * SECTOR;

/// Puts right what differs on the members of the array `device`; those that are done when `stop` is set. What both parities of RAID 6 tell of
/// data is believed only if `trust_parities`: where md has written such data since they went wrong, the parities are what is wrong.
///
/// # Errors
/// [`RepairError`] if the array is busy, in use where its writes cannot wait, or has changed, or the log cannot be written.
pub fn through_members(
    device: &Device,
    members: &Md,
    bad: &[BadBlocks],
    trust_parities: bool,
    log: &mut RepairLog,
    stop: &AtomicBool,
) -> Result<Vec<Outcome>, RepairError> {
    let mut repair =
        Repair { members, keeper: Keeper::of(device, members)?, block: u64::from(device.block), log, stop };
    let mut outcomes = Vec::new();
    // All are looked at before the first is repaired: what md goes through at once has several of them in it.
    let mut all = Vec::new();
    for run in in_pieces(bad) {
        let before = repair.look(run.lba * repair.block..run.end() * repair.block)?;
        all.push((run, before));
    }
    // What is known of one member alone, before what is known of whole windows only.
    for (run, _) in &all {
        for (lba, fit) in (run.lba..).zip(repair.look(run.lba * repair.block..run.end() * repair.block)?) {
            match fit {
                _ if stop.load(Ordering::Relaxed) => break,
                Fit::Outvoted => repair.by_copies(lba)?,
                Fit::Data(_) | Fit::Unread(..) => repair.by_others(lba, trust_parities)?,
                _ => {}
            }
        }
    }
    for (run, before) in all {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let range = run.lba * repair.block..run.end() * repair.block;
        let known = repair.by_data(range.clone())?;
        for (lba, (before, after)) in (run.lba..).zip(before.into_iter().zip(repair.look(range)?)) {
            let fate = match (before, after) {
                (Fit::Fits, _) => Fate::Readable,
                (_, Fit::Fits) => Fate::Repaired,
                (Fit::Outvoted, Fit::Outvoted) => Fate::StillBad,
                (Fit::Parity(_), Fit::Parity(_)) if known => Fate::StillBad,
                (Fit::Unread(..), Fit::Unread(..)) if repair.keeper.is_md() => Fate::StillBad,
                (_, Fit::Data(_) | Fit::Unread(..)) => Fate::ByParities,
                _ => Fate::Undecided,
            };
            note(&mut outcomes, lba, fate);
        }
    }
    Ok(outcomes)
}

/// How many bad blocks would be put right, and how many would not.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Foreseen {
    /// Which of the members is right is known.
    pub known: u64,
    /// Only by both parities of RAID 6.
    pub by_parities: u64,
    /// Not known.
    pub unknown: u64,
}

/// What would become of bad blocks of an array, whose blocks are of this size.
///
/// # Errors
/// If the array has changed.
pub fn foreseen(members: &Md, block: u32, bad: &[BadBlocks]) -> Result<Foreseen, String> {
    let (mut all, block) = (Foreseen::default(), u64::from(block));
    for run in in_pieces(bad) {
        for fit in members.fit(run.lba * block..run.end() * block)? {
            match fit {
                Fit::Fits => {}
                Fit::Outvoted | Fit::Parity(_) | Fit::Unread(..) => all.known += 1,
                Fit::Data(_) => all.by_parities += 1,
                Fit::Unknown => all.unknown += 1,
            }
        }
    }
    Ok(all)
}

/// Who keeps the array, and how its users are kept from writing.
enum Keeper {
    Md(Box<OfMd>),
    /// Device-mapper, which nobody has open while this is.
    Mapped {
        _open: File,
    },
}

struct OfMd {
    array: Array,
    knobs: KnobLedger,
    suspensions: Ledger<Suspension>,
}

impl Keeper {
    fn of(device: &Device, members: &Md) -> Result<Self, RepairError> {
        if !members.is_of_md() {
            return Ok(Self::Mapped { _open: open_exclusively(device, true)? });
        }
        let array = Array::of_any_level(device.name())?;
        let knobs = KnobLedger::begin().map_err(|error| array.unnoted(&error))?;
        let suspensions = Ledger::begin().map_err(|error| array.unnoted(&error))?;
        Ok(Self::Md(Box::new(OfMd { array, knobs, suspensions })))
    }

    fn name(&self) -> &str {
        match self {
            Self::Md(of) => &of.array.name,
            Self::Mapped { .. } => "device-mapper",
        }
    }

    fn is_md(&self) -> bool {
        matches!(self, Self::Md(_))
    }

    /// Until what is returned is dropped, nobody writes to these bytes of the array.
    fn hold_writes(&mut self, bytes: &Range<u64>) -> Result<Option<Suspended<'_>>, RepairError> {
        let Self::Md(of) = self else { return Ok(None) };
        let suspended = Suspended::begin(&of.array.folder, bytes, &mut of.suspensions);
        suspended.map(Some).map_err(|error| of.array.problem(error.to_string()))
    }
}

struct Repair<'a> {
    members: &'a Md,
    keeper: Keeper,
    block: u64,
    log: &'a mut RepairLog,
    stop: &'a AtomicBool,
}

impl Repair<'_> {
    fn look(&self, range: Range<u64>) -> Result<Vec<Fit>, RepairError> {
        self.members.fit(range).map_err(|why| self.problem(why))
    }

    fn problem(&self, problem: String) -> RepairError {
        RepairError::Array { array: self.keeper.name().into(), problem }
    }

    /// Rewrites the copies of a block that most others outvote.
    fn by_copies(&mut self, lba: u64) -> Result<(), RepairError> {
        let at = lba * self.block;
        for wrong in self.members.outvoted(at) {
            self.log.say_what_was("will-write", lba, 1, &wrong.member, wrong.is.as_deref())?;
        }
        // The log may lie on the array: it is written before and after this.
        let held = self.keeper.hold_writes(&self.members.of_array(at))?;
        let outvoted = match self.members.fit(at..at + self.block) {
            Ok(fit) if fit == [Fit::Outvoted] => self.members.outvoted(at),
            _ => Vec::new(),
        };
        let written: Vec<_> =
            outvoted.into_iter().map(|one| (self.members.rewrite(&one).is_ok(), one.member)).collect();
        drop(held);
        for (is_written, member) in written {
            self.log.say(if is_written { "written" } else { "failed" }, lba, 1, &member)?;
        }
        Ok(())
    }

    /// Has md rewrite what a member holds in the page of a block, or what two of RAID 6 do, from the others.
    fn by_others(&mut self, lba: u64, trust_parities: bool) -> Result<(), RepairError> {
        let page = lba * self.block / PAGE_BYTES * PAGE_BYTES..(lba * self.block / PAGE_BYTES + 1) * PAGE_BYTES;
        let (first, blocks) = (page.start / self.block, PAGE_BYTES / self.block);
        // What md has read lately it has in memory, and would write that.
        for is_in_memory in [false, true] {
            let wrong = Wrong::of(&self.look(page.clone())?, self.members.parities(), trust_parities);
            let Keeper::Md(of) = &mut self.keeper else { return Ok(()) };
            if wrong.is_none() || is_in_memory && wrong.marked.is_empty() {
                return Ok(());
            }
            if is_in_memory {
                of.array.forget(page.start / SECTOR, &mut of.knobs, self.stop)?;
            }
            let name = of.array.name.clone();
            self.mark(&page, &wrong, trust_parities)?;
            self.log.say("will-check", first, blocks, &name)?;
            let done = self.go_through("check", page.clone())?;
            self.log.say(if done { "checked" } else { "stopped" }, first, blocks, &name)?;
            if !done {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Tells md that members that are wrong in a page cannot be read there, if they still are.
    fn mark(&mut self, page: &Range<u64>, wrong: &Wrong, trust_parities: bool) -> Result<(), RepairError> {
        let Keeper::Md(of) = &self.keeper else { return Ok(()) };
        let folder = of.array.folder.clone();
        let held = |member: &u64| self.members.held_by(*member, page.clone());
        let were: Vec<_> = wrong.marked.iter().map(held).collect();
        for (name, was) in &were {
            let (first, blocks) = (page.start / self.block, PAGE_BYTES / self.block);
            self.log.say_what_was("will-repair", first, blocks, name, Some(was))?;
        }
        if were.is_empty() {
            return Ok(());
        }
        let suspended = self.keeper.hold_writes(&self.members.of_array(page.start))?;
        // Written meanwhile, they are right, and the parities are not.
        let is_same = wrong.marked.iter().map(held).eq(were)
            && (self.members.fit(page.clone()))
                .is_ok_and(|fits| Wrong::of(&fits, self.members.parities(), trust_parities) == *wrong);
        let mark = |member: &u64| {
            let sector = (self.members.begin_of(*member) + page.start) / SECTOR;
            knobs::write(&folder, &format!("rd{member}/bad_blocks"), &format!("{sector} {PAGE}"))
        };
        let marked = if is_same { wrong.marked.iter().try_for_each(mark) } else { Ok(()) };
        drop(suspended);
        marked.map_err(|error| self.problem(format!("{error}: its metadata have no list of bad blocks")))
    }

    /// Has md make the parities of RAID 6 fit to the data, in the windows around a range; whether all of what differs there is known to be in a
    /// parity.
    fn by_data(&mut self, range: Range<u64>) -> Result<bool, RepairError> {
        let Keeper::Md(of) = &self.keeper else { return Ok(false) };
        if !self.look(range.clone())?.iter().any(|fit| matches!(fit, Fit::Parity(_))) {
            return Ok(false);
        }
        let windows = of.array.windows(&range);
        // All of the windows is made to fit, so all of it must be known.
        let known = self.look(windows.clone())?.iter().all(|fit| matches!(fit, Fit::Fits | Fit::Parity(_)));
        if known {
            let (first, count) = (windows.start / self.block, (windows.end - windows.start) / self.block);
            let name = of.array.name.clone();
            self.log.say("will-repair", first, count, &name)?;
            let done = self.go_through("repair", windows)?;
            self.log.say(if done { "repaired" } else { "stopped" }, first, count, &name)?;
        }
        Ok(known)
    }

    /// Has md go through the windows around a range; whether it did before it was stopped.
    fn go_through(&mut self, action: &str, range: Range<u64>) -> Result<bool, RepairError> {
        let Keeper::Md(of) = &mut self.keeper else { return Ok(false) };
        let windows = of.array.windows(&range);
        of.array.go_through(action, windows.start / SECTOR, windows.end / SECTOR, &mut of.knobs, self.stop)
    }
}

/// The members that are to be rewritten in a page. md knows pages only.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wrong {
    /// Which md is told of: they can be read, and are wrong.
    marked: BTreeSet<u64>,
    /// Which it sees by itself.
    unread: BTreeSet<u64>,
}

impl Wrong {
    /// Nobody, if the parities are not enough for all of them, or are not trusted.
    fn of(fits: &[Fit], parities: usize, trust_parities: bool) -> Self {
        let mut wrong = Self::default();
        for fit in fits {
            match *fit {
                Fit::Fits => {}
                Fit::Data(member) | Fit::Parity(member) if trust_parities => {
                    wrong.marked.insert(member);
                }
                Fit::Unread(one, other) => wrong.unread.extend([Some(one), other].into_iter().flatten()),
                _ => return Self::default(),
            }
        }
        // Who cannot be read here may be wrong there.
        let all = wrong.marked.union(&wrong.unread).count();
        if all > parities { Self::default() } else { wrong }
    }

    fn is_none(&self) -> bool {
        self.marked.is_empty() && self.unread.is_empty()
    }
}

impl Array {
    /// The whole windows around a range of bytes of its members' data.
    fn windows(&self, range: &Range<u64>) -> Range<u64> {
        let unit = WINDOW.max(self.chunk) * SECTOR;
        range.start / unit * unit..range.end.next_multiple_of(unit).min(self.data.1 * SECTOR)
    }

    /// Has md check so much elsewhere that it forgets what it has in memory of this sector.
    fn forget(&self, sector: u64, ledger: &mut KnobLedger, stop: &AtomicBool) -> Result<(), RepairError> {
        let unit = WINDOW.max(self.chunk);
        let length = (2 * self.number("stripe_cache_size")? * PAGE).next_multiple_of(unit);
        let behind = sector / unit * unit + unit;
        let begin = if behind + length <= self.data.1 { behind } else { 0 };
        self.go_through("check", begin, (begin + length).min(self.data.1), ledger, stop).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_rewritten_only_where_the_parities_are_enough() {
        use Fit::{Data, Fits, Parity, Unknown, Unread};
        let of = |fits: &[Fit], parities, trust| {
            let wrong = Wrong::of(fits, parities, trust);
            [wrong.marked, wrong.unread].map(|members| members.into_iter().collect::<Vec<_>>())
        };
        assert_eq!(of(&[Fits, Data(2), Fits, Data(2)], 2, true), [vec![2], vec![]]);
        assert_eq!(of(&[Parity(4), Unread(2, None)], 2, true), [vec![4], vec![2]]);
        assert_eq!(of(&[Unread(2, None), Data(2), Data(3)], 2, true), [vec![2, 3], vec![2]]);
        assert_eq!(of(&[Unread(2, None), Fits, Unread(2, None)], 1, false), [vec![], vec![2]]);
        assert_eq!(of(&[Unread(2, Some(3)), Fits], 2, false), [vec![], vec![2, 3]]);
        for (fits, parities, trust) in [
            (vec![Fits], 2, true),
            (vec![Data(2)], 2, false),
            (vec![Data(2), Data(1), Parity(0)], 2, true),
            (vec![Unknown, Data(2)], 2, true),
            (vec![Unread(1, None), Unread(2, None)], 1, false),
            (vec![Unread(1, None), Unknown], 1, false),
        ] {
            assert!(Wrong::of(&fits, parities, trust).is_none(), "{fits:?}");
        }
    }
}
