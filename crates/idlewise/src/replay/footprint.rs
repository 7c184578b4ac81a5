//! How much of a device requests touch, each sector counted once.

use std::collections::BTreeMap;

use crate::Bytes;

const SECTOR: u64 = 512;

/// The sectors of 512 bytes that have been touched, as stretches that do not meet.
#[derive(Clone, Debug, Default)]
pub struct Footprint {
    /// Ends by beginnings, in sectors.
    stretches: BTreeMap<u64, u64>,
    sectors: u64,
}

impl Footprint {
    /// What has been touched.
    pub fn size(&self) -> Bytes {
        Bytes(self.sectors * SECTOR)
    }

    /// Adds a request, of which a sector counts as a whole.
    pub fn touch(&mut self, offset: Bytes, length: u32) {
        let mut begin = offset.0 / SECTOR;
        let mut end = (offset.0 + u64::from(length)).div_ceil(SECTOR).max(begin + 1);
        // From the last stretch that begins before the request's end backwards, as far as they meet it.
        while let Some((&from, &to)) = self.stretches.range(..=end).next_back().filter(|(_, to)| **to >= begin) {
            self.stretches.remove(&from);
            self.sectors -= to - from;
            (begin, end) = (begin.min(from), end.max(to));
        }
        self.stretches.insert(begin, end);
        self.sectors += end - begin;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(5), ..ProptestConfig::default() })]

        #[test]
        fn as_sector_by_sector(requests in prop::collection::vec((0u64..40_000, 1u32..6_000), 0..60)) {
            let (mut footprint, mut sectors) = (Footprint::default(), HashSet::new());
            for (offset, length) in requests {
                footprint.touch(Bytes(offset), length);
                sectors.extend((offset..offset + u64::from(length)).map(|byte| byte / SECTOR));
                prop_assert_eq!(footprint.size().0, sectors.len() as u64 * SECTOR);
            }
        }
    }
}
