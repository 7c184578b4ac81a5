//! Where requests begin and which sectors they touch: exact, from sorted extents, without a set of sectors.

use super::entropy::add_up;

/// Sectors, in bytes: what offsets are multiples of (SIGMETRICS 2015, section 4.3).
pub const SECTOR: u64 = 512;

/// So many extents wait at least before they are sorted in.
const WAITING: usize = 1 << 20;

/// The places that the requests of an interval touch on one volume.
#[derive(Clone, Debug, Default)]
pub(super) struct WorkingSet {
    /// First sectors and the sectors behind the last ones, as they came.
    waiting: Vec<(u64, u64)>,
    /// First sectors, growing, and the requests that begin there.
    starts: Vec<(u64, u64)>,
    /// Extents that do not touch each other, growing.
    extents: Vec<(u64, u64)>,
}

impl WorkingSet {
    /// Adds a request.
    #[inline]
    pub fn push(&mut self, offset: u64, length: u32) {
        let first = offset / SECTOR;
        // Nothing touches no sector, wherever it begins.
        let end = if length == 0 { first } else { offset.saturating_add(u64::from(length)).div_ceil(SECTOR) };
        self.waiting.push((first, end));
        if self.waiting.len() >= WAITING && self.waiting.len() >= self.starts.len() + self.extents.len() {
            self.settle();
        }
    }

    /// Whether there is no request.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.starts.is_empty()
    }

    /// First sectors, growing, and the requests that begin at each.
    pub fn starts(&mut self) -> &mut Vec<(u64, u64)> {
        self.settle();
        &mut self.starts
    }

    /// The number of different sectors; the next interval begins.
    pub fn finish(&mut self) -> u64 {
        self.settle();
        self.starts.clear();
        self.extents.drain(..).map(|(first, end)| end - first).sum()
    }

    fn settle(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        self.waiting.sort_unstable_by_key(|extent| extent.0);
        // Two runs in order: a stable sort merges them.
        self.starts.extend(self.waiting.iter().map(|&(first, _)| (first, 1)));
        self.starts.sort();
        add_up(&mut self.starts);
        self.extents.extend(self.waiting.drain(..).filter(|&(first, end)| first < end));
        self.extents.sort_by_key(|extent| extent.0);
        self.extents.dedup_by(|next, kept| {
            let touches = next.0 <= kept.1;
            kept.1 = if touches { kept.1.max(next.1) } else { kept.1 };
            touches
        });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_sector_touched_in_part_counts_once() {
        let mut set = WorkingSet::default();
        for (offset, length) in [(0, 1), (100, 100), (511, 2), (4096, 0), (9_000, 0), (u64::MAX - 10, 4096)] {
            set.push(offset, length);
        }
        assert_eq!(set.finish(), 3);
        assert!(set.is_empty());
    }

    proptest! {
        #[test]
        fn counts_what_a_set_of_sectors_counts(
            requests in prop::collection::vec((0u64..100_000, 0u32..20_000), 1..80),
            settled in prop::collection::vec(any::<bool>(), 80),
        ) {
            let (mut set, mut sectors, mut starts) = (WorkingSet::default(), BTreeSet::new(), BTreeMap::new());
            for (&(offset, length), settle) in requests.iter().zip(settled) {
                set.push(offset, length);
                if settle {
                    set.settle();
                }
                let end = offset + u64::from(length);
                sectors.extend((offset..end).step_by(512).chain(end.checked_sub(1).filter(|_| length > 0)).map(|at| at / 512));
                *starts.entry(offset / 512).or_insert(0) += 1;
            }
            prop_assert_eq!(set.starts().clone(), starts.into_iter().collect::<Vec<_>>());
            prop_assert_eq!(set.finish(), sectors.len() as u64);
        }
    }
}
