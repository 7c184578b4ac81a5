//! How many different blocks are read and written: exact within a memory limit, and an estimate beyond it.

use std::collections::HashMap;

use super::extents::{Extents, Joined};
use crate::trace::Op;

/// Bytes of a block.
pub const BLOCK: u64 = 4096;
/// Blocks in a region, whose blocks are kept as bits.
const REGION: u64 = 512;
/// Regions kept: some 40 MB.
const MOST: usize = 1 << 18;
const WORDS: usize = (REGION / 64) as usize;
/// Whole regions from which on a request is kept as one extent: it would be long work to touch each of them.
const LONG: u64 = 16;
/// Extents kept of long requests, apart from each other: some 50 MB.
const MOST_EXTENTS: usize = 1 << 21;

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
/// adaptive sampling; Flajolet, 1990). A quarter of a million regions hold 512 GiB. Regions that a long request touches as a whole
/// are exact besides.
#[derive(Debug)]
pub struct WorkingSet {
    regions: HashMap<(u16, u64), [[u64; WORDS]; 2]>,
    /// Whole regions that long requests read, and that they write.
    long: [Extents; 2],
    /// Only regions whose hash ends with so many zeros are kept.
    halvings: u32,
    most: usize,
    most_extents: usize,
}

impl Default for WorkingSet {
    fn default() -> Self {
        Self { regions: HashMap::new(), long: Default::default(), halvings: 0, most: MOST, most_extents: MOST_EXTENTS }
    }
}

impl WorkingSet {
    /// Adds a request.
    pub fn add(&mut self, volume: u16, offset: u64, length: u32, op: Op) {
        if length == 0 {
            return;
        }
        let (first, last) = (offset / BLOCK, offset.saturating_add(u64::from(length) - 1) / BLOCK);
        let whole = first.div_ceil(REGION)..(last + 1) / REGION;
        if whole.end.saturating_sub(whole.start) < LONG {
            return self.touch(volume, first, last, op);
        }
        if first < whole.start * REGION {
            self.touch(volume, first, whole.start * REGION - 1, op);
        }
        if last >= whole.end * REGION {
            self.touch(volume, whole.end * REGION, last, op);
        }
        self.long[usize::from(op == Op::Write)].push(volume, whole);
        self.keep_few_extents(op);
    }

    /// Touches blocks from the first to the last.
    fn touch(&mut self, volume: u16, first: u64, last: u64, op: Op) {
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

    /// More extents than can be kept become regions, as those of other requests.
    fn keep_few_extents(&mut self, op: Op) {
        let long = &mut self.long[usize::from(op == Op::Write)];
        if long.len() > self.most_extents {
            for (volume, regions) in std::mem::take(long).joined().iter() {
                self.touch(volume, regions.start * REGION, regions.end * REGION - 1, op);
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
        let [read, written] = [&self.long[0], &self.long[1]].map(|long| long.clone().joined());
        let touched = self.long[0].clone().with(&self.long[1]).joined();
        let mut add = |extents: &Joined, count: fn(&mut Blocks) -> &mut u64| {
            for (volume, regions) in extents.iter() {
                let blocks = count(found.entry(volume).or_default());
                *blocks = blocks.saturating_add((regions.end - regions.start).saturating_mul(REGION));
            }
        };
        add(&read, |blocks| &mut blocks.read);
        add(&written, |blocks| &mut blocks.written);
        add(&touched, |blocks| &mut blocks.touched);
        for (&(volume, region), [reads, writes]) in &self.regions {
            let ones = |extents: &Joined, words: &mut dyn Iterator<Item = u64>| match extents.contain(volume, region) {
                true => 0,
                false => words.map(|word| u64::from(word.count_ones())).sum::<u64>().saturating_mul(1 << self.halvings),
            };
            let blocks = found.entry(volume).or_default();
            blocks.read = blocks.read.saturating_add(ones(&read, &mut reads.iter().copied()));
            blocks.written = blocks.written.saturating_add(ones(&written, &mut writes.iter().copied()));
            let both = &mut reads.iter().zip(writes).map(|(read, written)| read | written);
            blocks.touched = blocks.touched.saturating_add(ones(&touched, both));
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
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    /// Blocks of a volume in the property test, more than its places and sizes reach.
    const VOLUME: usize = 100_000;

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
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(50), ..ProptestConfig::default() })]

        #[test]
        fn counts_what_a_set_of_blocks_counts(
            requests in prop::collection::vec(
                (0u16..2, 0u64..200_000_000, prop_oneof![0u32..4_000_000, 0u32..150_000_000], any::<bool>()), 1..40),
            most_extents in 0usize..6,
        ) {
            let mut set = WorkingSet { most_extents, ..WorkingSet::default() };
            // Of both volumes, whether each block was read, and written.
            let mut blocks = vec![[false; 2]; 2 * VOLUME];
            for (volume, offset, length, reads) in requests {
                set.add(volume, offset, length, if reads { Op::Read } else { Op::Write });
                let (first, end) = (offset / BLOCK, (offset + u64::from(length)).div_ceil(BLOCK));
                for block in (first..end).filter(|_| length > 0) {
                    blocks[usize::from(volume) * VOLUME + block as usize][usize::from(!reads)] = true;
                }
            }
            let total = set.of_volumes().into_values().fold([0; 3], |[a, b, c], blocks| {
                [a + blocks.read, b + blocks.written, c + blocks.touched]
            });
            let count = |which: fn(&[bool; 2]) -> bool| blocks.iter().filter(|one| which(one)).count() as u64;
            prop_assert!(set.is_exact());
            prop_assert_eq!(total, [count(|one| one[0]), count(|one| one[1]), count(|one| one[0] || one[1])]);
        }
    }
}
