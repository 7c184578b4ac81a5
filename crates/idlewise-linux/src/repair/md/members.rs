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
use std::fs::{self, File};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::suspended::{Suspended, Suspension};
use super::{Array, PAGE, SECTOR, WINDOW};
use crate::content::{self, Fit, Md, Outvoted};
use crate::device::{Device, mapper};
use crate::knobs::{self, KnobLedger};
use crate::ledger::Ledger;
use crate::repair::mirror::open_exclusively;
use crate::repair::{Fate, Outcome, RepairError, RepairLog, in_pieces, note};
use crate::scrub::BadBlocks;

/// md knows pages.
const PAGE_BYTES: u64 = PAGE * SECTOR;
/// So much is looked at, and checked, so that md forgets what it has in memory.
const MOST_ELSEWHERE: u64 = 32 << 20;

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
            let open = open_exclusively(device, true)?;
            // Some open it without claiming it, such as virtual machines.
            let others =
                mapper::open_count(device.disk_numbers()).map_err(|error| error.to_string()).and_then(|count| {
                    const OURS: u32 = 2;
                    if count > OURS { Err("others have it open: repair needs it to be unused".into()) } else { Ok(()) }
                });
            let problem = |problem| RepairError::Array { array: device.path.display().to_string(), problem };
            return others.map(|()| Self::Mapped { _open: open }).map_err(problem);
        }
        let array = Array::of_any_level(device.name())?;
        array.is_plain()?;
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

    /// Until what is returned is dropped, nobody writes to these bytes of the array.
    fn hold_writes(&mut self, bytes: &Range<u64>) -> Result<Option<Suspended<'_>>, RepairError> {
        let Self::Md(of) = self else { return Ok(None) };
        of.array.is_idle()?;
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
    /// The pages that md was to rewrite, by their first byte.
    tried: BTreeSet<u64>,
}

impl Repair<'_> {
    fn look(&self, range: Range<u64>) -> Result<Vec<Fit>, RepairError> {
        self.members.fit(range).map_err(|why| self.problem(why))
    }

    fn has_tried(&self, lba: u64) -> bool {
        self.tried.contains(&(lba * self.block / PAGE_BYTES * PAGE_BYTES))
    }

    fn problem(&self, problem: String) -> RepairError {
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
        let is_same = self.members.outvoted(at) == logged;
        let write = |wrong: &Outvoted| is_same && self.members.rewrite(wrong).is_ok();
        let written: Vec<_> = logged.iter().map(write).collect();
        drop(held);
        for (wrong, is_written) in logged.iter().zip(written) {
            self.log.say(if is_written { "written" } else { "failed" }, lba, 1, &wrong.member)?;
        }
        Ok(())
    }

    /// Has md rewrite what a member holds in the page of a block, or what two of RAID 6 do, from the others.
    fn by_others(&mut self, lba: u64, trust_parities: bool) -> Result<(), RepairError> {
        let page = lba * self.block / PAGE_BYTES * PAGE_BYTES..(lba * self.block / PAGE_BYTES + 1) * PAGE_BYTES;
        // What md has read lately it has in memory, and would write that.
        for is_in_memory in [false, true] {
            let wrong = Wrong::of(&self.look(page.clone())?, self.members.parities(), trust_parities);
            let Keeper::Md(of) = &self.keeper else { return Ok(()) };
            if wrong.is_none() || is_in_memory && wrong.marked.is_empty() {
                return Ok(());
            }
            of.array.is_idle()?;
            // md goes through whole windows, and rewrites what any member cannot read there.
            let (name, windows) = (of.array.name.clone(), of.array.windows(&page));
            if !self.is_safe(windows.clone(), &page)? {
                return Ok(());
            }
            if is_in_memory && !self.forget(&windows)? {
                return Ok(());
            }
            let (first, blocks) = (windows.start / self.block, (windows.end - windows.start) / self.block);
            if !self.mark(&page, &wrong, trust_parities)? {
                return Ok(());
            }
            self.log.say("will-check", first, blocks, &name)?;
            self.tried.insert(page.start);
            let done = self.go_through("check", page.clone())?;
            self.log.say(if done { "checked" } else { "stopped" }, first, blocks, &name)?;
            if !done {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Whether md, where it checks these windows, rewrites nothing but what the rest surely tells, one page left out.
    fn is_safe(&self, windows: Range<u64>, but: &Range<u64>) -> Result<bool, RepairError> {
        let fits = self.look(windows.clone())?;
        let of_page = (PAGE_BYTES / self.block) as usize;
        let pages = fits.chunks(of_page).enumerate();
        let mut others = pages.filter(|(at, _)| windows.start + *at as u64 * PAGE_BYTES != but.start);
        Ok(others.all(|(_, page)| is_safe(page, self.members.parities())))
    }

    /// Has md check so much elsewhere that it forgets what it has in memory of some windows; whether that was possible.
    fn forget(&mut self, windows: &Range<u64>) -> Result<bool, RepairError> {
        let Keeper::Md(of) = &mut self.keeper else { return Ok(false) };
        let length = 2 * of.array.number("stripe_cache_size")? * PAGE_BYTES;
        let begin = if windows.end + length <= of.array.data.1 * SECTOR { windows.end } else { 0 };
        let elsewhere = of.array.windows(&(begin..begin + length));
        if length > MOST_ELSEWHERE || !self.is_safe(elsewhere.clone(), &windows.clone())? {
            return Ok(false);
        }
        self.go_through("check", elsewhere)
    }

    /// Tells md that members that are wrong in a page cannot be read there; whether they still are. Killed behind that, md's next check, or whoever
    /// writes there, puts them right.
    fn mark(&mut self, page: &Range<u64>, wrong: &Wrong, trust_parities: bool) -> Result<bool, RepairError> {
        let Keeper::Md(of) = &self.keeper else { return Ok(false) };
        let folder = of.array.folder.clone();
        // md rewrites nothing on a member that has once failed to take a write.
        let has_failed =
            |member: &u64| of.array.read(&format!("rd{member}/state")).is_ok_and(|state| state.contains("write_error"));
        if wrong.marked.iter().any(has_failed) {
            return Ok(false);
        }
        let held = |member: &u64| self.members.held_by(*member, page.clone());
        let were: Vec<_> = wrong.marked.iter().map(held).collect();
        for (name, was) in &were {
            let (first, blocks) = (page.start / self.block, PAGE_BYTES / self.block);
            self.log.say_what_was("will-repair", first, blocks, name, Some(was))?;
        }
        if were.is_empty() {
            return Ok(true);
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
        marked.map_err(|error| self.problem(format!("{error}: its metadata have no list of bad blocks")))?;
        Ok(is_same)
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
    /// Whether md, where it checks the data between two sectors of each member, rewrites nothing but what the rest surely tells. Where members are
    /// missing nothing can be compared.
    ///
    /// # Errors
    /// If it is not.
    pub(super) fn is_safe(&self, begin: u64, end: u64, block: u32) -> Result<(), RepairError> {
        let device = Device::open(&Path::new("/dev").join(&self.name))?;
        let Ok(Some(array)) = content::Array::of(&device) else { return Ok(()) };
        let members = Md::new(Arc::new(array), block);
        let fits = members.fit(begin * SECTOR..end * SECTOR).map_err(|why| self.problem(why))?;
        let of_page = (PAGE_BYTES / u64::from(block)) as usize;
        match fits.chunks(of_page).position(|page| !is_safe(page, members.parities())) {
            None => Ok(()),
            Some(page) => Err(self.problem(format!(
                "holds something else than its parities tell in the 4 KiB from sector {} of its members' data, where one cannot be read: \
                 scrub and repair the array itself",
                begin + page as u64 * PAGE
            ))),
        }
    }
}

/// Whether md, where it checks a page, rewrites nothing, or what the rest surely tells.
fn is_safe(fits: &[Fit], parities: usize) -> bool {
    // Who can be read everywhere is not written by a check.
    let is_read = fits.iter().all(|fit| matches!(fit, Fit::Fits | Fit::Data(_) | Fit::Parity(_)));
    is_read || !Wrong::of(fits, parities, false).is_none()
}

impl Array {
    /// The whole windows around a range of bytes of its members' data.
    fn windows(&self, range: &Range<u64>) -> Range<u64> {
        let unit = WINDOW.max(self.chunk) * SECTOR;
        range.start / unit * unit..range.end.next_multiple_of(unit).min(self.data.1 * SECTOR)
    }

    /// # Errors
    /// If md is at work on it.
    fn is_idle(&self) -> Result<(), RepairError> {
        match self.read("sync_action")?.as_str() {
            "idle" => Ok(()),
            busy => Err(self.problem(format!("is busy ({busy})"))),
        }
    }

    /// # Errors
    /// If something of it is not looked at here: a member that replaces another one, or pages of another size.
    fn is_plain(&self) -> Result<(), RepairError> {
        for entry in fs::read_dir(&self.folder).map_err(|error| self.error("", &error))?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let replaces = |state: String| state.split(',').any(|word| word == "replacement");
            if name.starts_with("dev-") && self.read(&format!("{name}/state")).is_ok_and(replaces) {
                return Err(self.problem(format!("{} is about to replace a member", name.trim_start_matches("dev-"))));
            }
        }
        match self.read("stripe_size") {
            Ok(size) if size != PAGE_BYTES.to_string() => Err(self.problem(format!("its pages are of {size} bytes"))),
            _ => Ok(()),
        }
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
