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
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use super::PAGE_BYTES;
use super::keeper::Keeper;
use crate::content::{Fit, Md, Outvoted};
use crate::device::Device;
use crate::repair::{Fate, Outcome, RepairError, RepairLog, in_pieces, note};
use crate::scrub::BadBlocks;

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
    let mut repair = Repair {
        members,
        keeper: Keeper::of(device, members)?,
        block: u64::from(device.block),
        log,
        stop,
        tried: BTreeSet::new(),
    };
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
                // What nobody knew was not written by this.
                (Fit::Fits, _) | (Fit::Unknown, Fit::Fits) => Fate::Readable,
                (_, Fit::Fits) => Fate::Repaired,
                (Fit::Outvoted, Fit::Outvoted) => Fate::StillBad,
                (Fit::Parity(_), Fit::Parity(_)) if known => Fate::StillBad,
                (_, Fit::Data(_) | Fit::Unread(..)) if repair.has_tried(lba) => Fate::StillBad,
                (_, Fit::Data(_)) => Fate::ByParities,
                _ => Fate::Undecided,
            };
            note(&mut outcomes, lba, fate);
        }
    }
    Ok(outcomes)
}

/// How many bad blocks would be put right, and how many would not: at most so many, as what lies beside them may be in the way.
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
                Fit::Outvoted => all.known += 1,
                Fit::Parity(_) | Fit::Unread(..) if members.is_of_md() => all.known += 1,
                Fit::Data(_) if members.is_of_md() => all.by_parities += 1,
                _ => all.unknown += 1,
            }
        }
    }
    Ok(all)
}

/// A repair that is under way.
pub(super) struct Repair<'a> {
    pub members: &'a Md,
    pub keeper: Keeper,
    pub block: u64,
    pub log: &'a mut RepairLog,
    pub stop: &'a AtomicBool,
    /// The pages that md was to rewrite, by their first byte.
    pub tried: BTreeSet<u64>,
}

impl Repair<'_> {
    pub fn look(&self, range: Range<u64>) -> Result<Vec<Fit>, RepairError> {
        self.members.fit(range).map_err(|why| self.problem(why))
    }

    fn has_tried(&self, lba: u64) -> bool {
        self.tried.contains(&(lba * self.block / PAGE_BYTES * PAGE_BYTES))
    }

    pub fn problem(&self, problem: String) -> RepairError {
        RepairError::Array { array: self.keeper.name().into(), problem }
    }

    /// Rewrites the copies of a block that most others outvote.
    fn by_copies(&mut self, lba: u64) -> Result<(), RepairError> {
        let at = lba * self.block;
        let logged = self.members.outvoted(at);
        for wrong in &logged {
            self.log.say_what_was("will-write", lba, 1, &wrong.member, wrong.is.as_deref())?;
        }
        // The log may lie on the array: it is written before and after this.
        let held = self.keeper.hold_writes(&self.members.of_array(at))?;
        // Written meanwhile, it is another block.
        let is_same = self.members.fit(at..at + self.block).is_ok_and(|fit| fit == [Fit::Outvoted])
            && self.members.outvoted(at) == logged;
        let write = |wrong: &Outvoted| is_same && self.members.rewrite(wrong).is_ok();
        let written: Vec<_> = logged.iter().map(write).collect();
        drop(held);
        for (wrong, is_written) in logged.iter().zip(written) {
            self.log.say(if is_written { "written" } else { "failed" }, lba, 1, &wrong.member)?;
        }
        Ok(())
    }
}
