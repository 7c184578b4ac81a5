//! From an unreadable stretch to its exact blocks.

use idlewise::Bytes;
use idlewise::order::Extent;
use serde::{Deserialize, Serialize};

/// A run of unreadable logical blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadBlocks {
    /// First block, counted in the device's logical blocks.
    pub lba: u64,
    /// How many.
    pub blocks: u64,
    /// What the kernel said: `medium`, `protection`, `timeout` or `io`.
    pub kind: String,
}

/// Stretches still to be looked at because one of them failed, and the bad blocks found.
#[derive(Clone, Debug)]
pub struct Narrowing {
    block: u64,
    /// The next one last.
    pending: Vec<Extent>,
    bad: Vec<BadBlocks>,
}

impl Narrowing {
    /// Nothing pending; `bad` is known from before.
    pub fn new(block: u32, bad: &[BadBlocks]) -> Self {
        Self { block: u64::from(block), pending: Vec::new(), bad: bad.to_vec() }
    }

    /// The next stretch to look at again.
    pub fn next(&mut self) -> Option<Extent> {
        self.pending.pop()
    }

    /// A stretch was unreadable: a single block is bad, a longer one is halved.
    pub fn failed(&mut self, extent: Extent, kind: &str) {
        if extent.length.0 <= self.block {
            self.record(extent.offset.0 / self.block, kind);
            return;
        }
        let half = (extent.length.0 / 2).next_multiple_of(self.block);
        let (offset, length) = (extent.offset.0, extent.length.0);
        self.pending.push(Extent { offset: Bytes(offset + half), length: Bytes(length - half) });
        self.pending.push(Extent { offset: extent.offset, length: Bytes(half) });
    }

    fn record(&mut self, lba: u64, kind: &str) {
        if self.bad.iter().any(|bad| (bad.lba..bad.lba + bad.blocks).contains(&lba)) {
            return; // Found before the scrub was resumed.
        }
        match self.bad.last_mut() {
            Some(last) if last.lba + last.blocks == lba && last.kind == kind => last.blocks += 1,
            _ => self.bad.push(BadBlocks { lba, blocks: 1, kind: kind.into() }),
        }
    }

    /// The first byte not yet settled, if any is pending.
    pub fn unsettled(&self) -> Option<Bytes> {
        self.pending.iter().map(|extent| extent.offset).min()
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn finds_exactly_the_bad_blocks(
            blocks in 1u64..600, bad in prop::collection::btree_set(0u64..600, 0..40), block in prop_oneof![Just(512u32), Just(4096)],
        ) {
            let size = u64::from(block);
            let mut narrowing = Narrowing::new(block, &[]);
            let mut next = Some(Extent { offset: Bytes(0), length: Bytes(blocks * size) });
            let mut settled = 0;
            while let Some(extent) = next {
                prop_assert_eq!(extent.offset.0, settled);
                let range = extent.offset.0 / size..extent.end().0 / size;
                if bad.range(range).next().is_some() {
                    narrowing.failed(extent, "io");
                    if extent.length.0 == size { settled = extent.end().0; }
                } else {
                    settled = extent.end().0;
                }
                if let Some(unsettled) = narrowing.unsettled() {
                    prop_assert_eq!(unsettled.0, settled);
                }
                next = narrowing.next();
            }
            prop_assert_eq!(settled, blocks * size);
            let found: Vec<u64> = narrowing.bad().iter().flat_map(|bad| bad.lba..bad.lba + bad.blocks).collect();
            let expected: Vec<u64> = bad.into_iter().filter(|&lba| lba < blocks).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
