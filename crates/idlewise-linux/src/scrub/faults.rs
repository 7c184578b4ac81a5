//! From an unreadable stretch to its exact blocks.

use idlewise::order::Extent;
use idlewise::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// A run of unreadable logical blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadBlocks {
    /// First block, counted in the device's logical blocks.
    pub lba: u64,
    /// How many.
    pub blocks: u64,
    /// What the device or the kernel said: `medium`, `protection`, `io`; or what kept being in the way at each attempt:
    /// `timeout`, `transport`, `aborted`, `hardware`, `not-ready`.
    pub kind: String,
}

/// A stretch that something else than the medium kept from being verified is tried so often again.
const RETRIES: u32 = 3;

/// Stretches still to be looked at because one of them failed, and the bad blocks found.
#[derive(Clone, Debug)]
pub struct Narrowing {
    block: u64,
    /// The next one last.
    pending: Vec<Extent>,
    bad: Vec<BadBlocks>,
    /// Attempts at the stretch that is next.
    attempts: u32,
    /// Longest request that the device takes, where it has refused a longer one.
    longest: Bytes,
}

impl Narrowing {
    /// Nothing pending; `bad` is known from before.
    pub fn new(block: u32, bad: &[BadBlocks]) -> Self {
        let (pending, longest) = (Vec::new(), Bytes(u64::MAX));
        Self { block: u64::from(block), pending, bad: bad.to_vec(), attempts: 0, longest }
    }

    /// Longest request that the device is known to take.
    pub fn longest(&self) -> Bytes {
        self.longest
    }

    /// A stretch was verified.
    pub fn verified(&mut self) {
        self.attempts = 0;
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

    /// The next stretch to look at again.
    pub fn next(&mut self) -> Option<Extent> {
        self.pending.pop()
    }

    /// A stretch was unreadable. A single block is bad, and told; a longer one is halved, or cut around the block that the
    /// device named, which is not believed but looked at.
    pub fn failed(&mut self, extent: Extent, kind: &str, at: Option<Bytes>) -> Option<Bytes> {
        self.attempts = 0;
        if extent.length.0 <= self.block {
            self.record(extent.offset.0 / self.block, kind);
            return Some(extent.offset);
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

    /// Whether every stretch is settled.
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
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whether the device names the first bad block, names a wrong one, or none, and whatever length it takes at most.
        #[test]
        fn finds_exactly_the_bad_blocks(
            blocks in 1u64..600, bad in prop::collection::btree_set(0u64..600, 0..40), block in prop_oneof![Just(512u32), Just(4096)],
            names in 0u64..3, longest in 1u64..700,
        ) {
            let size = u64::from(block);
            let mut narrowing = Narrowing::new(block, &[]);
            let mut next = Some(Extent { offset: Bytes(0), length: Bytes(blocks * size) });
            let mut settled = 0;
            while let Some(extent) = next {
                prop_assert_eq!(extent.offset.0, settled);
                let range = extent.offset.0 / size..extent.end().0 / size;
                let named = match names {
                    0 => None,
                    1 => bad.range(range.clone()).next().copied(),
                    _ => Some(range.end - 1),
                };
                if extent.length.0 > longest * size {
                    prop_assert!(narrowing.refused(extent));
                    prop_assert!(narrowing.longest() < extent.length);
                } else if bad.range(range).next().is_some() {
                    let told = narrowing.failed(extent, "io", named.map(|lba| Bytes(lba * size)));
                    prop_assert_eq!(told, (extent.length.0 == size).then_some(extent.offset));
                    if told.is_some() { settled = extent.end().0; }
                } else {
                    settled = extent.end().0;
                }
                prop_assert_eq!(narrowing.settled(), settled == blocks * size);
                next = narrowing.next();
            }
            prop_assert_eq!(settled, blocks * size);
            let found: Vec<u64> = narrowing.bad().iter().flat_map(|bad| bad.lba..bad.lba + bad.blocks).collect();
            let expected: Vec<u64> = bad.into_iter().filter(|&lba| lba < blocks).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn runs_grow_together_in_any_order() {
        let mut narrowing = Narrowing::new(512, &[]);
        for lba in [5, 9, 3, 4, 7, 8, 4, 20] {
            narrowing.record(lba, "io");
        }
        narrowing.record(6, "medium");
        let runs: Vec<_> = narrowing.bad().iter().map(|bad| (bad.lba, bad.blocks, &*bad.kind)).collect();
        assert_eq!(runs, [(3, 3, "io"), (6, 1, "medium"), (7, 3, "io"), (20, 1, "io")]);
    }

    #[test]
    fn what_passes_is_tried_again_but_not_for_ever() {
        let mut narrowing = Narrowing::new(512, &[]);
        let extent = Extent { offset: Bytes(0), length: Bytes(1024) };
        let waits: Vec<_> =
            (0..4).map(|_| narrowing.again(extent).inspect(|_| assert_eq!(narrowing.next(), Some(extent)))).collect();
        assert_eq!(
            waits,
            [Some(Nanos::from_millis(200)), Some(Nanos::from_millis(400)), Some(Nanos::from_millis(800)), None]
        );
        assert_eq!(narrowing.failed(extent, "timeout", None), None);
        let first = narrowing.next().unwrap();
        assert_eq!(first.length, Bytes(512));
        assert!(narrowing.again(first).is_some());
    }
}
