//! What the owners of the data say of what a run reads.

use std::time::Duration;

use idlewise::order::Extent;
use idlewise::{Bytes, Nanos};

use super::Run;
use crate::monitor::now;
use crate::scrub::judging::{Judging, Verdict};
use crate::scrub::{BadBlocks, ContentSoFar, Doing, Owned, Progress};

/// Requests of at least so many bytes are whole multiples of that: what is judged as one is rarely cut by their ends.
const UNIT: u64 = 64 << 10;
/// Time between two looks at members that differ.
const APART: Nanos = Nanos::from_millis(100);
/// So long after an owner did not answer in time it is asked about the same once more.
const LATER: Nanos = Nanos::from_secs(1);
/// So long the owners wait for gaps as long as the policy does, then for any.
const AS_PLANNED: Nanos = Nanos::from_secs(10);
/// Of so many runs of bad blocks it is told what lies in them.
const NAMED: usize = 256;
/// No more are asked for after so long, as an extent may be part of very many files, and none is reported.
const NAMING: Nanos = Nanos::from_secs(10);
/// An owner learns of so many bytes at once that they cannot be read.
const REPORTED: u64 = 1 << 20;

impl Run<'_, '_> {
    /// A size in whole units, if what is read is judged.
    pub(super) fn in_units(&self, size: u64) -> u64 {
        if self.lane.judging.is_some() && size >= UNIT { size / UNIT * UNIT } else { size }
    }

    /// A stretch with what must be read behind it to judge all of it. Beside unreadable blocks nothing is added.
    pub(super) fn whole(&self, extent: Extent) -> Extent {
        let Some(judging) = self.lane.judging.as_ref().filter(|_| self.second_look.is_none()) else { return extent };
        let usual =
            self.has_looked || self.narrowing.settled() || extent.length.0 >= UNIT || judging.suspects(extent.offset);
        let readable = usual && self.alone != Some(extent);
        if readable { judging.whole(extent) } else { extent }
    }

    /// The order has handed out a stretch once more.
    pub(super) fn visits_again(&mut self, extent: Extent) {
        match self.again.last_mut().filter(|last| last.end() == extent.offset) {
            Some(last) => last.length.0 += extent.length.0,
            None => self.again.push(extent),
        }
    }

    /// Whether the pass has been there before.
    pub(super) fn is_again(&self, extent: Extent) -> bool {
        self.again.iter().any(|one| one.offset <= extent.offset && extent.end() <= one.end())
    }

    /// Hands over what was read.
    pub(super) fn judge(&mut self, extent: Extent, read: Bytes) {
        self.finish_judging();
        let again = self.is_again(extent);
        let lane = &mut *self.lane;
        if let Some(judging) = &mut lane.judging {
            judging.take((extent, again), read, &mut *lane.verifier);
            self.unjudged = judging.at_work().then_some(extent);
        }
    }

    /// Asks the owners. What they have to look up on the disk they look up while the foreground leaves it idle, as the policy waits.
    pub(super) fn ask<T>(&mut self, ask: impl FnOnce(&mut Judging, &mut dyn FnMut() -> bool) -> T) -> Option<T> {
        let mut judging = self.lane.judging.take()?;
        let (so_far, began) = (judging.so_far().clone(), now());
        let answer = ask(&mut judging, &mut || self.may_look(began, &so_far));
        self.lane.judging = Some(judging);
        Some(answer)
    }

    /// Whether they may, who were asked at `began`.
    fn may_look(&mut self, began: Nanos, so_far: &ContentSoFar) -> bool {
        // If the monitor fails, it says so once more.
        let _ = self.lane.poll(Duration::ZERO);
        // The load may be another one by now, for which nothing is tuned before they have answered.
        let waits = now().since(began) < AS_PLANNED;
        let wait = self.pacing.parameters().filter(|_| waits).map_or(Nanos::ZERO, |(_, wait)| wait);
        let may = self.lane.stopped() || self.lane.idle_since().is_some_and(|since| now().since(since) >= wait);
        if !may {
            let doing = Doing::ForegroundActive;
            self.spent.turn_to(&doing, now());
            let progress = Progress { content: Some(so_far.clone()), ..self.progress(doing) };
            (self.watch)(&progress);
        }
        may
    }

    /// Waits until all that was read is judged; whether there is something to read once more.
    pub(super) fn finish_judging(&mut self) -> bool {
        let Some(verdict) = self.ask(|judging, may_look| judging.finish(may_look)) else { return false };
        self.unjudged = None;
        let again = !verdict.again.is_empty() || !verdict.late.is_empty();
        self.act_on(verdict);
        again
    }

    fn act_on(&mut self, verdict: Verdict) {
        let Verdict { again, late, wrong, compared } = verdict;
        compared.into_iter().for_each(|extent| self.checkpoint.compared(extent));
        if self.lane.device.is_by_members() && !again.is_empty() {
            // What one member has written already reaches the others meanwhile.
            self.not_before = Nanos(now().0 + APART.0);
        }
        if !late.is_empty() {
            self.not_before = Nanos(now().0 + LATER.0);
        }
        for extent in again.into_iter().chain(late).rev() {
            self.narrowing.look_again(extent);
            // All else that is left stays so: what is read at the moment is among it.
            self.settled.left.narrowing.insert(0, (extent.offset.0, extent.end().0));
        }
        wrong.into_iter().for_each(|(extent, kind)| self.narrowing.wrong(extent, kind));
    }

    /// Asks what lies in bad blocks, and has their owners learn of them, once, at the end of a run.
    pub(super) fn name_what_is_bad(&mut self) {
        let block = u64::from(self.lane.device.block);
        let bad: Vec<_> = self.narrowing.certain().into_iter().take(NAMED).collect();
        let stretch = |bad: &BadBlocks| Extent { offset: Bytes(bad.lba * block), length: Bytes(bad.blocks * block) };
        let began = now();
        for bad in &bad {
            if now().since(began) >= NAMING {
                break;
            }
            // That one is not told says nothing of the others.
            self.ask(|judging, may_look| {
                if let Some(names) = judging.owners(stretch(bad), may_look) {
                    judging.keep_owned(Owned { lba: bad.lba, blocks: bad.blocks, names });
                }
            });
        }
        let began = now();
        for piece in bad.iter().flat_map(|bad| pieces(stretch(bad))) {
            if now().since(began) >= NAMING {
                break;
            }
            self.ask(|judging, may_look| judging.report(piece, may_look));
        }
    }
}

/// An extent in parts that an owner reads at once.
fn pieces(extent: Extent) -> impl Iterator<Item = Extent> {
    let (from, to) = (extent.offset.0, extent.end().0);
    let piece = move |at: u64| Extent { offset: Bytes(at), length: Bytes(REPORTED.min(to - at)) };
    (from..to).step_by(REPORTED as usize).map(piece)
}
