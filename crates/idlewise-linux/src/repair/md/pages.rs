//! Pages of arrays with parity, which md rewrites from the other members: what one or two of them cannot read or, where the user trusts the
//! parities of RAID 6, hold wrongly.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::keeper::Keeper;
use super::members::Repair;
use super::{Array, PAGE, PAGE_BYTES, SECTOR};
use crate::content::{self, Fit, Md};
use crate::device::Device;
use crate::knobs;
use crate::repair::RepairError;

/// So much is looked at, and checked, so that md forgets what it has in memory.
const MOST_ELSEWHERE: u64 = 32 << 20;

impl Repair<'_> {
    /// Has md rewrite what a member holds in the page of a block, or what two of RAID 6 do, from the others.
    pub(super) fn by_others(&mut self, lba: u64, trust_parities: bool) -> Result<(), RepairError> {
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
            if !self.is_safe(&windows, Some(page.start))? {
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

    /// Whether md, where it checks these windows, rewrites nothing but what the rest surely tells; one page may be left out.
    fn is_safe(&self, windows: &Range<u64>, but: Option<u64>) -> Result<bool, RepairError> {
        unsafe_page(self.members, self.block, windows, but).map(|page| page.is_none()).map_err(|why| self.problem(why))
    }

    /// Has md check so much elsewhere that it forgets what it has in memory of some windows; whether that was possible.
    fn forget(&mut self, windows: &Range<u64>) -> Result<bool, RepairError> {
        let Keeper::Md(of) = &mut self.keeper else { return Ok(false) };
        let length = 2 * of.array.number("stripe_cache_size")? * PAGE_BYTES;
        let begin = if windows.end + length <= of.array.data.1 * SECTOR { windows.end } else { 0 };
        let elsewhere = of.array.windows(&(begin..begin + length));
        if length > MOST_ELSEWHERE || !self.is_safe(&elsewhere, None)? {
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
    pub(super) fn by_data(&mut self, range: Range<u64>) -> Result<bool, RepairError> {
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
        let windows = begin * SECTOR..end * SECTOR;
        match unsafe_page(&members, u64::from(block), &windows, None).map_err(|why| self.problem(why))? {
            None => Ok(()),
            Some(page) => Err(self.problem(format!(
                "holds something else than its parities tell in the 4 KiB from sector {} of its members' data, where one cannot be read: \
                 scrub and repair the array itself",
                page / SECTOR
            ))),
        }
    }
}

/// The first page of some windows in which md would write what is not surely right as it checks them, if any; one may be left out.
fn unsafe_page(members: &Md, block: u64, windows: &Range<u64>, but: Option<u64>) -> Result<Option<u64>, String> {
    let fits = members.fit(windows.clone())?;
    for (at, page) in (windows.start..).step_by(PAGE_BYTES as usize).zip(fits.chunks((PAGE_BYTES / block) as usize)) {
        // It does not read a member there, and rewrites it.
        let is_passed = page.iter().any(|fit| *fit != Fit::Fits) && members.is_passed_over(&(at..at + PAGE_BYTES))?;
        if Some(at) != but && (is_passed || !is_safe(page, members.parities())) {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// Whether md, where it checks a page, rewrites nothing, or what the rest surely tells.
fn is_safe(fits: &[Fit], parities: usize) -> bool {
    // Who can be read everywhere is not written by a check.
    let is_read = fits.iter().all(|fit| matches!(fit, Fit::Fits | Fit::Data(_) | Fit::Parity(_)));
    is_read || !Wrong::of(fits, parities, false).is_none()
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
