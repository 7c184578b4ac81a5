//! What the owners of the data say of what a run reads.

use idlewise::order::Extent;
use idlewise::{Bytes, Nanos};

use super::Run;
use crate::monitor::now;
use crate::scrub::judging::Verdict;
use crate::scrub::{BadBlocks, Owned};

/// Requests of at least so many bytes are whole multiples of that: what is judged as one is rarely cut by their ends.
const UNIT: u64 = 64 << 10;
/// Time between two looks at members that differ.
const APART: Nanos = Nanos::from_millis(100);
/// Of so many runs of bad blocks it is told what lies in them.
const NAMED: usize = 256;
/// No more are asked for after so long: an extent may be part of very many files.
const NAMING: Nanos = Nanos::from_secs(10);

impl Run<'_, '_> {
    /// A size in whole units, if what is read is judged.
    pub(super) fn in_units(&self, size: u64) -> u64 {
        if self.lane.judging.is_some() && size >= UNIT { size / UNIT * UNIT } else { size }
    }

    /// A stretch with what must be read behind it to judge all of it. Beside unreadable blocks nothing is added.
    pub(super) fn whole(&self, extent: Extent) -> Extent {
        let Some(judging) = self.lane.judging.as_ref().filter(|_| self.second_look.is_none()) else { return extent };
        let usual = self.narrowing.settled() || extent.length.0 >= UNIT || judging.suspects(extent.offset);
        let readable = usual && self.alone != Some(extent);
        if readable { judging.whole(extent) } else { extent }
    }

    /// Hands over what was read.
    pub(super) fn judge(&mut self, extent: Extent, read: Bytes) {
        let lane = &mut *self.lane;
        let Some(judging) = &mut lane.judging else { return };
        let verdict = judging.take(extent, read, &mut *lane.verifier);
        self.act_on(verdict);
    }

    /// Waits until all that was read is judged; whether there is something to read once more.
    pub(super) fn finish_judging(&mut self) -> bool {
        let Some(judging) = &mut self.lane.judging else { return false };
        let verdict = judging.finish();
        let again = !verdict.again.is_empty();
        self.act_on(verdict);
        again
    }

    fn act_on(&mut self, verdict: Verdict) {
        let Verdict { again, wrong } = verdict;
        if self.lane.device.is_by_members() && !again.is_empty() {
            // What one member has written already reaches the others meanwhile.
            self.not_before = Nanos(now().0 + APART.0);
        }
        again.into_iter().rev().for_each(|extent| self.narrowing.look_again(extent));
        wrong.into_iter().for_each(|(extent, kind)| self.narrowing.wrong(extent, kind));
        self.settled.left = self.narrowing.left();
    }

    /// Asks what lies in bad blocks, once, at the end of a run.
    pub(super) fn name_what_is_bad(&mut self) {
        let block = u64::from(self.lane.device.block);
        let Some(judging) = &mut self.lane.judging else { return };
        let began = now();
        for BadBlocks { lba, blocks, .. } in self.narrowing.certain().into_iter().take(NAMED) {
            let extent = Extent { offset: Bytes(lba * block), length: Bytes(blocks * block) };
            if now().since(began) >= NAMING {
                break;
            }
            // That one is not told says nothing of the others.
            if let Some(names) = judging.owners(extent) {
                judging.keep_owned(Owned { lba, blocks, names });
            }
        }
    }
}
