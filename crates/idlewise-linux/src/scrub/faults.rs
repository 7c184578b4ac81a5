//! From an unreadable stretch to its exact blocks.

use std::collections::VecDeque;

use idlewise::order::Extent;
use idlewise::{Bytes, Nanos};

use super::bad_runs::BadRuns;
use super::pass::written;
use super::{BadBlocks, Left};

/// A stretch that something else than the medium kept from being verified is tried so often again.
const RETRIES: u32 = 3;
/// So many unreadable blocks in a row are a dead stretch: a sector of 4 KiB is eight of 512 bytes.
const DEAD: u64 = 32;
/// How far is skipped in it first; twice as far each time that it is not over there, up to a share of the device.
const FIRST_SKIP: u64 = 1 << 20;
const LARGEST_SHARE: u64 = 64;
/// Stretches to come back to, at most: with more, dead stretches are narrowed down where they are.
pub(super) const MOST_SKIPPED: usize = 1 << 14;

/// Stretches still to be looked at because one of them failed, and the bad blocks found.
#[derive(Clone, Debug)]
pub struct Narrowing {
    block: u64,
    /// The next one last.
    pending: Vec<Extent>,
    /// Behind dead blocks or where a request hung, to come back to when the order is through; the next one first.
    skipped: VecDeque<Extent>,
    bad: BadRuns,
    /// Of those that failed since a stretch was verified, for which the device may be to blame.
    doubted: BadRuns,
    /// Unreadable blocks in a row.
    row: u64,
    dead: Option<Dead>,
    /// Attempts at the stretch that is next.
    attempts: u32,
    /// Longest request that the device takes, where it has refused a longer one.
    longest: Bytes,
    largest_skip: u64,
}

/// A dead stretch, whose end is being looked for.
#[derive(Clone, Copy, Debug)]
struct Dead {
    /// Bytes to skip before the next look.
    skip: u64,
    /// And the next time.
    next: u64,
}

impl Narrowing {
    /// On a device of `size`; `bad` and `left` are known from before.
    pub fn new(block: u32, size: Bytes, bad: &[BadBlocks], left: &Left) -> Self {
        Self {
            block: u64::from(block),
            pending: left.narrowing.iter().rev().map(read).collect(),
            skipped: left.skipped.iter().map(read).collect(),
            bad: BadRuns::of(bad),
            doubted: BadRuns::default(),
            row: 0,
            dead: None,
            attempts: 0,
            longest: Bytes(u64::MAX),
            largest_skip: (size.0 / LARGEST_SHARE).max(FIRST_SKIP),
        }
    }

    /// What is not settled of all that the order has handed out.
    pub fn left(&self) -> Left {
        Left {
            narrowing: self.pending.iter().rev().map(written).collect(),
            skipped: self.skipped.iter().map(written).collect(),
        }
    }

    /// Takes a stretch in that the order has handed out. Blocks that are known to be bad are settled: each may take seconds.
    pub fn begin(&mut self, extent: Extent) {
        if self.skipped.len() >= MOST_SKIPPED {
            self.dead = None;
        }
        if let Some(dead) = self.dead.as_mut().filter(|dead| dead.skip > 0) {
            dead.skip = dead.skip.saturating_sub(extent.length.0);
            self.put_off(extent);
            return;
        }
        let pieces = without(extent, &self.put_aside(extent));
        self.pending.extend(pieces.into_iter().rev());
    }

    /// What of a stretch is known to be bad, or is skipped for now: a request that hung is not met again.
    fn put_aside(&self, extent: Extent) -> Vec<(u64, u64)> {
        let (begin, end) = (extent.offset.0 / self.block, extent.end().0.div_ceil(self.block));
        // Of scattered ones it is not known which, nor of wrong ones that are too many to be told one by one.
        let known = [&self.bad, &self.doubted].into_iter().flat_map(|runs| runs.within(begin, end));
        let known = known.filter(|run| run.kind != BadBlocks::SCATTERED && !run.is_wrong());
        let known = known.map(|run| (run.lba * self.block, run.end() * self.block));
        let skipped = self.skipped.iter().filter(|one| one.offset < extent.end() && one.end() > extent.offset);
        let mut aside: Vec<_> = known.chain(skipped.map(written)).collect();
        aside.sort_unstable();
        aside
    }

    /// A request for this stretch was never answered: others come first, also in the runs after this one.
    pub fn hung(&mut self, extent: Extent) {
        let pending = std::mem::take(&mut self.pending);
        self.pending =
            pending.into_iter().flat_map(|one| without(one, &[written(&extent)]).into_iter().rev()).collect();
        let skipped = std::mem::take(&mut self.skipped);
        self.skipped = skipped.into_iter().flat_map(|one| without(one, &[written(&extent)])).collect();
        self.put_off(extent);
    }

    /// When the order is through: goes back to what was skipped; whether there is any.
    pub fn come_back(&mut self) -> bool {
        self.dead = None;
        let Some(extent) = self.skipped.pop_front() else { return false };
        self.pending.push(extent);
        true
    }

    /// Skips the rest of a stretch, and some of what follows it.
    fn skip(&mut self) {
        self.row = 0;
        if self.skipped.len() + self.pending.len() >= MOST_SKIPPED {
            self.dead = None;
            return;
        }
        while let Some(extent) = self.pending.pop() {
            self.put_off(extent);
        }
        let skip = self.dead.map_or(FIRST_SKIP, |dead| dead.next);
        self.dead = Some(Dead { skip, next: (2 * skip).min(self.largest_skip) });
    }

    fn put_off(&mut self, extent: Extent) {
        match self.skipped.back_mut().filter(|last| last.end() == extent.offset) {
            Some(last) => last.length.0 += extent.length.0,
            None => self.skipped.push_back(extent),
        }
    }

    /// Longest request that the device is known to take.
    pub fn longest(&self) -> Bytes {
        self.longest
    }

    /// A stretch was verified: the medium is to blame for what failed before.
    pub fn verified(&mut self) {
        (self.attempts, self.row, self.dead) = (0, 0, None);
        self.believe();
    }

    /// What failed until now is the medium's.
    pub fn believe(&mut self) {
        self.bad.take(&mut self.doubted);
    }

    /// What failed since a stretch was verified is the device's: as it was before, with this `left`.
    pub fn forget(&mut self, left: &Left) {
        self.pending = left.narrowing.iter().rev().map(read).collect();
        self.skipped = left.skipped.iter().map(read).collect();
        self.doubted = BadRuns::default();
        (self.attempts, self.row, self.dead, self.longest) = (0, 0, None, Bytes(u64::MAX));
    }

    /// Something else than the medium was in the way: looks at it again, in the end as if it were the medium. How long to
    /// wait before; `None` when it has been tried often enough. The halves of a stretch are not tried again, single blocks are.
    pub fn again(&mut self, extent: Extent) -> Option<Nanos> {
        if self.attempts >= RETRIES || (!self.pending.is_empty() && extent.length.0 > self.block) {
            return None;
        }
        self.attempts += 1;
        self.pending.push(extent);
        Some(Nanos::from_millis(100 << self.attempts))
    }

    /// The device does not take so long a request: halves it, and asks for no longer one; whether that is possible.
    pub fn refused(&mut self, extent: Extent) -> bool {
        if extent.length.0 <= self.block {
            return false;
        }
        let half = (extent.length.0 / 2).next_multiple_of(self.block);
        self.longest = Bytes(half);
        self.pending.extend(split(extent, half).into_iter().rev());
        true
    }

    /// The next stretch to look at, of at most `size`.
    pub fn next(&mut self, size: Bytes) -> Option<Extent> {
        let extent = self.pending.pop()?;
        let [first, rest] = split(extent, size.0.max(self.block));
        if rest.length.0 > 0 {
            self.pending.push(rest);
        }
        Some(first)
    }

    /// A stretch was unreadable. A single block is bad, and told; a longer one is halved, or cut around the block that the
    /// device named, which is not believed but looked at.
    pub fn failed(&mut self, extent: Extent, kind: &str, at: Option<Bytes>) -> Option<Bytes> {
        self.attempts = 0;
        if extent.length.0 <= self.block {
            let lba = extent.offset.0 / self.block;
            // Not what was found before the scrub was resumed.
            if self.bad.within(lba, lba + 1).next().is_none() {
                self.doubted.record(lba, kind);
            }
            self.row += 1;
            if self.row >= DEAD {
                self.skip();
            }
            return Some(extent.offset);
        }
        // Still dead here: what is skipped is narrowed down when the order is through.
        if self.dead.is_some() && self.skipped.len() < MOST_SKIPPED {
            self.put_off(extent);
            self.skip();
            return None;
        }
        let half = (extent.length.0 / 2).next_multiple_of(self.block);
        let pieces = match at.map(|at| (at.0 - extent.offset.0) / self.block * self.block) {
            Some(named) => {
                let [front, rest] = split(extent, named);
                let [block, behind] = split(rest, self.block);
                vec![front, block, behind]
            }
            None => split(extent, half).to_vec(),
        };
        self.pending.extend(pieces.into_iter().rev().filter(|piece| piece.length.0 > 0));
        None
    }

    /// A stretch within one run of bad blocks can be read after all. It stays in the list, under another kind.
    pub fn recovered(&mut self, extent: Extent) {
        self.believe();
        self.bad.recovered(extent.offset.0 / self.block, extent.end().0 / self.block);
    }

    /// A stretch that could be read is to be read once more, before all else.
    pub fn look_again(&mut self, extent: Extent) {
        self.pending.push(extent);
    }

    /// A stretch that could be read at last is to be read once more, after all others: nobody has judged it yet.
    pub fn judge_at_last(&mut self, extent: Extent) {
        match self.pending.first_mut().filter(|first| first.offset <= extent.end() && extent.offset <= first.end()) {
            Some(first) => {
                let (begin, end) = (first.offset.0.min(extent.offset.0), first.end().0.max(extent.end().0));
                *first = read(&(begin, end));
            }
            None => self.pending.insert(0, extent),
        }
    }

    /// A stretch can be read, and holds something else than it should.
    pub fn wrong(&mut self, extent: Extent, kind: &str) {
        self.bad.wrong(extent.offset.0 / self.block, extent.end().0.div_ceil(self.block), kind);
    }

    /// Whether no stretch is being narrowed down.
    pub fn settled(&self) -> bool {
        self.pending.is_empty()
    }

    /// The bad blocks found, with those for which the device may be to blame.
    pub fn bad(&self) -> Vec<BadBlocks> {
        let mut all = self.bad.clone();
        all.take(&mut self.doubted.clone());
        all.list()
    }

    /// Those for which the medium is to blame.
    pub fn certain(&self) -> Vec<BadBlocks> {
        self.bad.list()
    }

    /// How many blocks were found.
    pub fn bad_blocks(&self) -> u64 {
        self.bad.blocks() + self.doubted.blocks()
    }
}

/// A stretch as it was written.
fn read(&(begin, end): &(u64, u64)) -> Extent {
    Extent { offset: Bytes(begin), length: Bytes(end - begin) }
}

/// What is left of a stretch without some others, which are sorted.
pub(super) fn without(extent: Extent, others: &[(u64, u64)]) -> Vec<Extent> {
    let (mut begin, end, mut pieces) = (extent.offset.0, extent.end().0, Vec::new());
    for &(other, behind) in others.iter().filter(|other| other.0 < end).chain(&[(end, end)]) {
        if begin < other {
            pieces.push(read(&(begin, other)));
        }
        begin = begin.max(behind);
    }
    pieces
}

fn split(extent: Extent, at: u64) -> [Extent; 2] {
    let (offset, length) = (extent.offset.0, extent.length.0);
    let at = at.min(length);
    [(offset, at), (offset + at, length - at)]
        .map(|(offset, length)| Extent { offset: Bytes(offset), length: Bytes(length) })
}

#[cfg(test)]
mod tests;
