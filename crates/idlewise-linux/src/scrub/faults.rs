//! From an unreadable stretch to its exact blocks.

use std::collections::VecDeque;

use idlewise::order::Extent;
use idlewise::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use super::Left;
use super::pass::written;

/// A run of unreadable logical blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadBlocks {
    /// First block, counted in the device's logical blocks.
    pub lba: u64,
    /// How many.
    pub blocks: u64,
    /// What the device or the kernel said: `medium`, `protection`, `io`; or what kept being in the way at each attempt:
    /// `timeout`, `transport`, `aborted`, `hardware`, `not-ready`. `recovered` could be read at the end of the pass: the medium is weak
    /// there, or the device was away for a moment. `doubtful` was found by an earlier pass over a disk of this name, which may have been
    /// another disk, and has not been read again yet.
    pub kind: String,
}

impl BadBlocks {
    /// The kind of blocks that could be read after all.
    pub const RECOVERED: &str = "recovered";
    /// Kind of a run that was found on a disk of this name, which may have been another one.
    pub const DOUBTFUL: &str = "doubtful";
}

/// A stretch that something else than the medium kept from being verified is tried so often again.
const RETRIES: u32 = 3;
/// So many unreadable blocks in a row are a dead stretch: a sector of 4 KiB is eight of 512 bytes.
const DEAD: u64 = 32;
/// How far is skipped in it first; twice as far each time that it is not over there, up to a share of the device.
const FIRST_SKIP: u64 = 1 << 20;
const LARGEST_SHARE: u64 = 64;

/// Stretches still to be looked at because one of them failed, and the bad blocks found.
#[derive(Clone, Debug)]
pub struct Narrowing {
    block: u64,
    /// The next one last.
    pending: Vec<Extent>,
    /// Behind dead blocks, to come back to when the order is through; the next one first.
    skipped: VecDeque<Extent>,
    bad: Vec<BadBlocks>,
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
        let extent = |&(begin, end): &(u64, u64)| Extent { offset: Bytes(begin), length: Bytes(end - begin) };
        Self {
            block: u64::from(block),
            pending: left.narrowing.iter().rev().map(extent).collect(),
            skipped: left.skipped.iter().map(extent).collect(),
            bad: bad.to_vec(),
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
        if let Some(dead) = self.dead.as_mut().filter(|dead| dead.skip > 0) {
            dead.skip = dead.skip.saturating_sub(extent.length.0);
            self.put_off(extent);
            return;
        }
        let end = extent.end().0;
        let first = self.bad.partition_point(|run| (run.lba + run.blocks) * self.block <= extent.offset.0);
        let known = self.bad[first..].iter().map(|run| (run.lba * self.block, (run.lba + run.blocks) * self.block));
        let (mut begin, mut pieces) = (extent.offset.0, Vec::new());
        for (bad, behind) in known.take_while(|(bad, _)| *bad < end).chain([(end, end)]) {
            if begin < bad {
                pieces.push(Extent { offset: Bytes(begin), length: Bytes(bad - begin) });
            }
            begin = begin.max(behind);
        }
        self.pending.extend(pieces.into_iter().rev());
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
        while let Some(extent) = self.pending.pop() {
            self.put_off(extent);
        }
        let skip = self.dead.map_or(FIRST_SKIP, |dead| dead.next);
        self.dead = Some(Dead { skip, next: (2 * skip).min(self.largest_skip) });
        self.row = 0;
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

    /// A stretch was verified.
    pub fn verified(&mut self) {
        (self.attempts, self.row, self.dead) = (0, 0, None);
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
            self.record(extent.offset.0 / self.block, kind);
            self.row += 1;
            if self.row >= DEAD {
                self.skip();
            }
            return Some(extent.offset);
        }
        // Still dead here: what is skipped is narrowed down when the order is through.
        if self.dead.is_some() {
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
        let (begin, end) = (extent.offset.0 / self.block, extent.end().0 / self.block);
        let Some(at) = self.bad.iter().position(|run| run.lba <= begin && end <= run.lba + run.blocks) else { return };
        let run = self.bad.remove(at);
        let (kind, recovered) = (&*run.kind, BadBlocks::RECOVERED);
        let parts = [(run.lba, begin, kind), (begin, end, recovered), (end, run.lba + run.blocks, kind)];
        let parts = parts.into_iter().filter(|(from, to, _)| from < to);
        let parts = parts.map(|(lba, to, kind)| BadBlocks { lba, blocks: to - lba, kind: kind.into() });
        self.bad.splice(at..at, parts);
        self.bad.dedup_by(|next, run| {
            let joins = next.kind == run.kind && next.kind == recovered && next.lba == run.lba + run.blocks;
            run.blocks += if joins { next.blocks } else { 0 };
            joins
        });
    }

    /// Keeps the list in order, with neighbours of one kind as one run.
    fn record(&mut self, lba: u64, kind: &str) {
        let at = self.bad.partition_point(|bad| bad.lba <= lba);
        let before = at.checked_sub(1).map(|index| &mut self.bad[index]);
        if before.as_ref().is_some_and(|run| lba < run.lba + run.blocks) {
            return; // Found before the scrub was resumed.
        }
        match before {
            Some(run) if run.lba + run.blocks == lba && run.kind == kind => {
                run.blocks += 1;
                let end = run.lba + run.blocks;
                if self.bad.get(at).is_some_and(|next| next.lba == end && next.kind == kind) {
                    self.bad[at - 1].blocks += self.bad.remove(at).blocks;
                }
            }
            _ => match self.bad.get_mut(at) {
                Some(next) if next.lba == lba + 1 && next.kind == kind => {
                    (next.lba, next.blocks) = (lba, next.blocks + 1)
                }
                _ => self.bad.insert(at, BadBlocks { lba, blocks: 1, kind: kind.into() }),
            },
        }
    }

    /// Whether no stretch is being narrowed down.
    pub fn settled(&self) -> bool {
        self.pending.is_empty()
    }

    /// The bad blocks found.
    pub fn bad(&self) -> &[BadBlocks] {
        &self.bad
    }

    /// How many blocks that is.
    pub fn bad_blocks(&self) -> u64 {
        self.bad.iter().map(|bad| bad.blocks).sum()
    }
}

fn split(extent: Extent, at: u64) -> [Extent; 2] {
    let (offset, length) = (extent.offset.0, extent.length.0);
    let at = at.min(length);
    [(offset, at), (offset + at, length - at)]
        .map(|(offset, length)| Extent { offset: Bytes(offset), length: Bytes(length) })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_can_be_read_after_all_is_told_apart() {
        let run = |lba, blocks| BadBlocks { lba, blocks, kind: "io".into() };
        let well = |lba, blocks| BadBlocks { lba, blocks, kind: BadBlocks::RECOVERED.into() };
        let mut narrowing = Narrowing::new(512, Bytes(1 << 30), &[run(4, 6), run(20, 1)], &Left::default());
        let mut recovered = |lba: u64, blocks: u64| {
            narrowing.recovered(Extent { offset: Bytes(512 * lba), length: Bytes(512 * blocks) });
            narrowing.bad().to_vec()
        };
        assert_eq!(recovered(6, 2), [run(4, 2), well(6, 2), run(8, 2), run(20, 1)]);
        assert_eq!(recovered(4, 2), [well(4, 4), run(8, 2), run(20, 1)]);
        assert_eq!(recovered(20, 1), [well(4, 4), run(8, 2), well(20, 1)]);
        // Not known.
        assert_eq!(recovered(30, 1), [well(4, 4), run(8, 2), well(20, 1)]);
    }

    const MIB: u64 = 1 << 20;

    /// A device of which some blocks cannot be read, as a verifier sees it.
    struct Disk {
        block: u64,
        blocks: u64,
        bad: BTreeSet<u64>,
        /// Which block it names: none, the first bad one, or a wrong one.
        names: u64,
        longest: u64,
    }

    impl Disk {
        /// Scans from `place` until the end or for so many requests; the place, and what was read of each block.
        fn scan(&self, narrowing: &mut Narrowing, mut place: u64, size: u64, requests: usize) -> (u64, Vec<u64>) {
            let mut read = Vec::new();
            for _ in 0..requests {
                let wanted = Bytes(size * self.block).min(narrowing.longest());
                let extent = loop {
                    if let Some(extent) = narrowing.next(wanted) {
                        break extent;
                    }
                    let length = wanted.0.min(self.blocks * self.block - place);
                    if length > 0 {
                        narrowing.begin(Extent { offset: Bytes(place), length: Bytes(length) });
                        place += length;
                    } else if !narrowing.come_back() {
                        return (place, read);
                    }
                };
                let range = extent.offset.0 / self.block..extent.end().0 / self.block;
                let named = match self.names {
                    0 => None,
                    1 => self.bad.range(range.clone()).next().copied(),
                    _ => Some(range.end - 1),
                };
                if range.end - range.start > self.longest {
                    assert!(narrowing.refused(extent) && narrowing.longest() < extent.length);
                } else if self.bad.range(range.clone()).next().is_some() {
                    read.extend(Some(range.start).filter(|_| range.end - range.start == 1));
                    let _ = narrowing.failed(extent, "io", named.map(|lba| Bytes(lba * self.block)));
                } else {
                    read.extend(range);
                    narrowing.verified();
                }
            }
            (place, read)
        }
    }

    proptest! {
        /// Whether the device names the first bad block, names a wrong one, or none, whatever length it takes at most, and however
        /// often the scan is interrupted and goes on from what was saved: every block is settled, once.
        #[test]
        fn finds_exactly_the_bad_blocks(
            blocks in 1u64..9_000, scattered in prop::collection::btree_set(0u64..9_000, 0..40),
            dead in prop::collection::vec((0u64..9_000, 0u64..3_000), 0..3), block in prop_oneof![Just(512u32), Just(4096)],
            names in 0u64..3, longest in 1u64..700, size in 1u64..4_000, runs in prop::collection::vec(1usize..60, 0..6),
        ) {
            let dead = dead.iter().flat_map(|&(begin, length)| begin..begin + length);
            let bad: BTreeSet<u64> = scattered.into_iter().chain(dead).filter(|&lba| lba < blocks).collect();
            let disk = Disk { block: u64::from(block), blocks, bad: bad.clone(), names, longest };
            let bytes = Bytes(blocks * u64::from(block));
            let mut narrowing = Narrowing::new(block, bytes, &[], &Left::default());
            let (mut place, mut settled) = (0, Vec::new());
            for requests in runs.into_iter().chain([usize::MAX]) {
                let (stopped, read) = disk.scan(&mut narrowing, place, size, requests);
                (place, settled) = (stopped, [settled, read].concat());
                narrowing = Narrowing::new(block, bytes, narrowing.bad(), &narrowing.left());
            }
            prop_assert!(narrowing.left().is_empty());
            settled.sort_unstable();
            prop_assert_eq!(settled, (0..blocks).collect::<Vec<_>>());
            let found: Vec<u64> = narrowing.bad().iter().flat_map(|bad| bad.lba..bad.lba + bad.blocks).collect();
            prop_assert_eq!(found, bad.into_iter().collect::<Vec<_>>());
        }
    }

    /// Behind a dead stretch of a quarter of the device, all is read before more than a few dozen blocks of it are.
    #[test]
    fn what_is_behind_a_dead_stretch_comes_first() {
        let blocks = 256 * MIB / 512;
        let bad: BTreeSet<u64> = (blocks / 4..blocks / 2).collect();
        let disk = Disk { block: 512, blocks, bad, names: 0, longest: u64::MAX };
        let mut narrowing = Narrowing::new(512, Bytes(256 * MIB), &[], &Left::default());
        let mut place = 0;
        while place < 256 * MIB {
            place = disk.scan(&mut narrowing, place, 2048, 1).0;
        }
        assert!((DEAD..2 * DEAD).contains(&narrowing.bad_blocks()), "{}", narrowing.bad_blocks());
        // Of what can be read, no more than the last and longest skip is put off.
        let left = narrowing.left().bytes();
        assert!(left <= 64 * MIB + 2 * 4 * MIB, "{left}");
        let (_, read) = disk.scan(&mut narrowing, place, 2048, usize::MAX);
        assert!(narrowing.left().is_empty() && read.len() as u64 >= blocks / 4);
        assert_eq!(narrowing.bad_blocks(), blocks / 4);
    }

    #[test]
    fn runs_grow_together_in_any_order() {
        let mut narrowing = Narrowing::new(512, Bytes(MIB), &[], &Left::default());
        for lba in [5, 9, 3, 4, 7, 8, 4, 20] {
            narrowing.record(lba, "io");
        }
        narrowing.record(6, "medium");
        let runs: Vec<_> = narrowing.bad().iter().map(|bad| (bad.lba, bad.blocks, &*bad.kind)).collect();
        assert_eq!(runs, [(3, 3, "io"), (6, 1, "medium"), (7, 3, "io"), (20, 1, "io")]);
    }

    #[test]
    fn what_passes_is_tried_again_but_not_for_ever() {
        let mut narrowing = Narrowing::new(512, Bytes(MIB), &[], &Left::default());
        let extent = Extent { offset: Bytes(0), length: Bytes(1024) };
        let all = Bytes(MIB);
        let waits: Vec<_> = (0..4)
            .map(|_| narrowing.again(extent).inspect(|_| assert_eq!(narrowing.next(all), Some(extent))))
            .collect();
        assert_eq!(
            waits,
            [Some(Nanos::from_millis(200)), Some(Nanos::from_millis(400)), Some(Nanos::from_millis(800)), None]
        );
        assert_eq!(narrowing.failed(extent, "timeout", None), None);
        let first = narrowing.next(all).unwrap();
        assert_eq!(first.length, Bytes(512));
        assert!(narrowing.again(first).is_some());
    }
}
