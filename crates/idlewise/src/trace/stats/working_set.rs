//! How many different blocks are read and written: exact within a memory limit, and an estimate beyond it.

use std::collections::HashMap;

use crate::trace::Op;

/// Bytes of a block.
pub const BLOCK: u64 = 4096;
/// Blocks in a region, whose blocks are kept as bits.
const REGION: u64 = 512;
/// Regions kept: some 40 MB.
const MOST: usize = 1 << 18;
const WORDS: usize = (REGION / 64) as usize;

/// Numbers of different blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Blocks {
    /// Read at least once.
    pub read: u64,
    /// Written at least once.
    pub written: u64,
    /// Read or written.
    pub touched: u64,
}

/// The blocks of all volumes of a trace. Once too many regions have been touched only a half of them is kept, chosen by a hash
/// of where they are, then a quarter, and so on; counts are those of the regions kept, times two, four and so on (Wegman's
/// adaptive sampling; Flajolet, 1990). A quarter of a million regions hold 512 GiB.
#[derive(Debug)]
pub struct WorkingSet {
    regions: HashMap<(u16, u64), [[u64; WORDS]; 2]>,
    /// Only regions whose hash ends with so many zeros are kept.
    halvings: u32,
    most: usize,
}

impl Default for WorkingSet {
    fn default() -> Self {
        Self { regions: HashMap::new(), halvings: 0, most: MOST }
    }
}

impl WorkingSet {
    /// Adds a request.
    pub fn add(&mut self, volume: u16, offset: u64, length: u32, op: Op) {
        if length == 0 {
            return;
        }
        let (first, last) = (offset / BLOCK, offset.saturating_add(u64::from(length) - 1) / BLOCK);
        for region in first / REGION..=last / REGION {
            if !self.keeps(volume, region) {
                continue;
            }
            let from = first.max(region * REGION) % REGION;
            let to = last.min(region * REGION + REGION - 1) % REGION;
            let bits = &mut self.regions.entry((volume, region)).or_default()[usize::from(op == Op::Write)];
            for word in from / 64..=to / 64 {
                let (low, high) = (from.max(word * 64) % 64, to.min(word * 64 + 63) % 64);
                bits[word as usize] |= (u64::MAX << low) & (u64::MAX >> (63 - high));
            }
            while self.regions.len() > self.most {
                self.halvings += 1;
                let halvings = self.halvings;
                self.regions.retain(|&(volume, region), _| hash(volume, region).trailing_zeros() >= halvings);
            }
        }
    }

    fn keeps(&self, volume: u16, region: u64) -> bool {
        hash(volume, region).trailing_zeros() >= self.halvings
    }

    /// Whether the counts are exact.
    pub fn is_exact(&self) -> bool {
        self.halvings == 0
    }

    /// The blocks of each volume; those of all are their sum.
    pub fn of_volumes(&self) -> HashMap<u16, Blocks> {
        let mut found: HashMap<u16, Blocks> = HashMap::new();
        for (&(volume, _), [read, written]) in &self.regions {
            let ones = |words: &mut dyn Iterator<Item = u64>| {
                words.map(|word| u64::from(word.count_ones())).sum::<u64>() << self.halvings
            };
            let blocks = found.entry(volume).or_default();
            blocks.read += ones(&mut read.iter().copied());
            blocks.written += ones(&mut written.iter().copied());
            blocks.touched += ones(&mut read.iter().zip(written).map(|(read, written)| read | written));
        }
        found
    }
}

/// The finaliser of splitmix64.
fn hash(volume: u16, region: u64) -> u64 {
    let mut z = (region ^ u64::from(volume) << 48).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn beyond_the_limit_it_is_an_estimate() {
        let mut set = WorkingSet { most: 1_000, ..WorkingSet::default() };
        // One block in each of 100,000 regions, read and in every other region also written.
        for region in 0..100_000u64 {
            set.add(0, region * REGION * BLOCK, 1, Op::Read);
            if region % 2 == 0 {
                set.add(0, region * REGION * BLOCK, 4096, Op::Write);
            }
        }
        let blocks = set.of_volumes()[&0];
        assert!(!set.is_exact() && set.regions.len() <= 1_000);
        // Of 500 to 1,000 regions: a standard error of 3 to 4 %.
        for (found, exact) in [(blocks.read, 100_000.0), (blocks.written, 50_000.0), (blocks.touched, 100_000.0)] {
            assert!((found as f64 / exact - 1.0).abs() < 0.15, "{found} for {exact}");
        }
    }

    #[test]
    fn the_end_of_the_address_space_is_no_trouble() {
        let mut set = WorkingSet::default();
        set.add(7, u64::MAX - 10, u32::MAX, Op::Write);
        set.add(7, 0, 0, Op::Write);
        assert_eq!(set.of_volumes()[&7], Blocks { read: 0, written: 1, touched: 1 });
    }

    proptest! {
        #[test]
        fn counts_what_a_set_of_blocks_counts(
            requests in prop::collection::vec((0u16..2, 0u64..9_000_000, 0u32..4_000_000, any::<bool>()), 1..40),
        ) {
            let (mut set, mut read, mut written) = (WorkingSet::default(), BTreeSet::new(), BTreeSet::new());
            for (volume, offset, length, reads) in requests {
                set.add(volume, offset, length, if reads { Op::Read } else { Op::Write });
                let end = (offset + u64::from(length)).div_ceil(BLOCK);
                let blocks = (offset / BLOCK..end).filter(|_| length > 0).map(|block| (volume, block));
                if reads { read.extend(blocks) } else { written.extend(blocks) }
            }
            let total = set.of_volumes().into_values().fold([0; 3], |[a, b, c], blocks| {
                [a + blocks.read, b + blocks.written, c + blocks.touched]
            });
            let touched = read.union(&written).count() as u64;
            prop_assert!(set.is_exact());
            prop_assert_eq!(total, [read.len() as u64, written.len() as u64, touched]);
        }
    }
}
