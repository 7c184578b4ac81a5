//! The unreadable blocks found, as runs of neighbours of one kind: quickly told and found, however many there are, and never too
//! many for a checkpoint.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::content::{CHECKSUM, DIFFERS, TREE_BLOCK};

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
    /// another disk, and has not been read again yet. `checksum`, `tree-block` and `differs` can be read, and hold something else than they should.
    pub kind: String,
}

impl BadBlocks {
    /// The kind of blocks that could be read after all.
    pub const RECOVERED: &str = "recovered";
    /// Kind of a run that was found on a disk of this name, which may have been another one.
    pub const DOUBTFUL: &str = "doubtful";
    /// Kind of a stretch with so many runs in it that they are not told one by one: some of its blocks can be read.
    pub const SCATTERED: &str = "scattered";

    /// Whether it can be read, and holds something else than it should.
    pub fn is_wrong(&self) -> bool {
        [CHECKSUM, TREE_BLOCK, DIFFERS].contains(&&*self.kind)
    }

    /// The block behind it.
    pub fn end(&self) -> u64 {
        self.lba.saturating_add(self.blocks)
    }
}

/// Runs that are told one by one. The disk of more is beyond repair, and its checkpoint could not be read again.
pub(super) const MOST: usize = 1 << 16;

/// Runs, by their first blocks.
#[derive(Clone, Debug, Default)]
pub struct BadRuns {
    runs: BTreeMap<u64, BadBlocks>,
    blocks: u64,
}

impl BadRuns {
    /// Of a list without overlaps.
    pub fn of(list: &[BadBlocks]) -> Self {
        let mut runs = Self::default();
        list.iter().for_each(|run| runs.insert(run.lba, run.blocks, &run.kind));
        runs.bound();
        runs
    }

    /// All of them, in order.
    pub fn list(&self) -> Vec<BadBlocks> {
        self.runs.values().cloned().collect()
    }

    /// How many blocks that is.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The runs that have blocks in a stretch, in order.
    pub fn within(&self, begin: u64, end: u64) -> impl Iterator<Item = &BadBlocks> {
        let before = self.before(begin).filter(|run| run.end() > begin);
        before.into_iter().chain(self.runs.range(begin..end.max(begin)).map(|(_, run)| run))
    }

    /// Adds a block, with neighbours of its kind as one run; nothing if it is known.
    pub fn record(&mut self, lba: u64, kind: &str) {
        self.add(lba, lba.saturating_add(1), kind);
        self.bound();
    }

    /// Adds the blocks of a stretch that can be read and hold something else than they should. That some could be read only later is
    /// the lesser news.
    pub fn wrong(&mut self, begin: u64, end: u64, kind: &str) {
        let recovered = self.within(begin, end).filter(|run| run.kind == BadBlocks::RECOVERED);
        let recovered: Vec<_> = recovered.map(|run| run.lba).collect();
        for lba in recovered {
            let run = self.remove(lba);
            for (from, to) in [(run.lba, begin), (end, run.end())] {
                self.insert(from, to.saturating_sub(from), &run.kind);
            }
        }
        self.add(begin, end, kind);
        self.bound();
    }

    /// Takes all of others in: what is known stays as it is.
    pub fn take(&mut self, others: &mut Self) {
        for run in std::mem::take(others).runs.into_values() {
            self.add(run.lba, run.end(), &run.kind);
        }
        self.bound();
    }

    /// A stretch within one run can be read after all. It stays, under another kind; but among scattered ones it may have been readable
    /// all the time.
    pub fn recovered(&mut self, begin: u64, end: u64) {
        let Some(run) = self.within(begin, end).next() else { return };
        if begin < run.lba || end > run.end() {
            return;
        }
        let run = self.remove(run.lba);
        for (from, to) in [(run.lba, begin), (end, run.end())] {
            self.insert(from, to - from, &run.kind);
        }
        if run.kind != BadBlocks::SCATTERED {
            self.join(begin, end, BadBlocks::RECOVERED);
        }
        self.bound();
    }

    /// Adds the blocks of a stretch that are not known.
    fn add(&mut self, begin: u64, end: u64, kind: &str) {
        let known: Vec<_> = self.within(begin, end).map(|run| (run.lba, run.end())).chain([(end, end)]).collect();
        let mut from = begin;
        for (known, behind) in known {
            if from < known {
                self.join(from, known, kind);
            }
            from = from.max(behind);
        }
    }

    /// Adds a stretch none of which is known, with neighbours of its kind as one run.
    fn join(&mut self, mut begin: u64, mut end: u64, kind: &str) {
        if let Some(before) = self.before(begin).filter(|run| run.end() == begin && run.kind == kind) {
            begin = self.remove(before.lba).lba;
        }
        if self.runs.get(&end).is_some_and(|next| next.kind == kind) {
            end = self.remove(end).end();
        }
        self.insert(begin, end - begin, kind);
    }

    fn before(&self, lba: u64) -> Option<&BadBlocks> {
        self.runs.range(..lba).next_back().map(|(_, run)| run)
    }

    fn insert(&mut self, lba: u64, blocks: u64, kind: &str) {
        if blocks > 0 {
            self.blocks = self.blocks.saturating_add(blocks);
            self.runs.insert(lba, BadBlocks { lba, blocks, kind: kind.into() });
        }
    }

    fn remove(&mut self, lba: u64) -> BadBlocks {
        let run = self.runs.remove(&lba).expect("it was found there");
        self.blocks -= run.blocks;
        run
    }

    /// Where there are too many, those with the fewest blocks between them become one. That halves them at least, so that it is
    /// done seldom.
    fn bound(&mut self) {
        if self.runs.len() <= MOST {
            return;
        }
        let mut gap = 1;
        while self.runs.len() > MOST / 2 {
            let mut merged: Vec<BadBlocks> = Vec::with_capacity(self.runs.len());
            for run in std::mem::take(&mut self.runs).into_values() {
                match merged.last_mut().filter(|last| run.lba - last.end() <= gap) {
                    Some(last) => {
                        let both = [&*last, &run];
                        let wrong = both.into_iter().find(|run| run.is_wrong()).map(|run| run.kind.clone());
                        let doubtful = both.into_iter().any(|run| run.kind == BadBlocks::DOUBTFUL);
                        // What can be read and is wrong is forgotten unless its kind says so.
                        let other = if doubtful { BadBlocks::DOUBTFUL } else { BadBlocks::SCATTERED };
                        last.kind = wrong.unwrap_or_else(|| other.into());
                        last.blocks = run.end() - last.lba;
                    }
                    None => merged.push(run),
                }
            }
            self.blocks = merged.iter().fold(0, |sum, run| run.blocks.saturating_add(sum));
            self.runs = merged.into_iter().map(|run| (run.lba, run)).collect();
            gap = gap.saturating_mul(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;

    fn told(runs: &BadRuns) -> Vec<(u64, u64, String)> {
        runs.list().into_iter().map(|run| (run.lba, run.blocks, run.kind)).collect()
    }

    /// The kinds of single blocks, as runs.
    fn naive(kinds: &BTreeMap<u64, &str>) -> Vec<(u64, u64, String)> {
        let mut runs: Vec<(u64, u64, String)> = Vec::new();
        for (&lba, &kind) in kinds {
            match runs.last_mut().filter(|run| run.0 + run.1 == lba && run.2 == kind) {
                Some(run) => run.1 += 1,
                None => runs.push((lba, 1, kind.into())),
            }
        }
        runs
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn equals_a_table_of_blocks(
            steps in prop::collection::vec((0u64..60, 1u64..6, 0usize..4), 0..80), begin in 0u64..60, length in 0u64..20,
        ) {
            const KINDS: [&str; 3] = ["io", "medium", "timeout"];
            let (mut runs, mut fresh, mut kinds, mut unseen) =
                (BadRuns::default(), BadRuns::default(), BTreeMap::new(), BTreeMap::new());
            for (lba, blocks, what) in steps {
                match KINDS.get(what) {
                    Some(kind) if blocks == 5 => {
                        fresh.record(lba, kind);
                        unseen.entry(lba).or_insert(*kind);
                    }
                    Some(kind) => {
                        runs.record(lba, kind);
                        kinds.entry(lba).or_insert(*kind);
                    }
                    None if blocks > 3 => {
                        runs.take(&mut fresh);
                        for (lba, kind) in std::mem::take(&mut unseen) {
                            kinds.entry(lba).or_insert(kind);
                        }
                    }
                    None => {
                        let within = told(&runs).iter().any(|run| run.0 <= lba && lba + blocks <= run.0 + run.1);
                        runs.recovered(lba, lba + blocks);
                        kinds.extend((lba..lba + blocks).filter(|_| within).map(|lba| (lba, BadBlocks::RECOVERED)));
                    }
                }
                prop_assert_eq!(told(&runs), naive(&kinds));
                prop_assert_eq!(runs.blocks(), kinds.len() as u64);
            }
            let within: Vec<_> = runs.within(begin, begin + length).map(|run| run.lba).collect();
            let expected = naive(&kinds).into_iter().filter(|run| run.0 < begin + length && run.0 + run.1 > begin);
            prop_assert_eq!(within, expected.map(|run| run.0).collect::<Vec<_>>());
            prop_assert_eq!(told(&BadRuns::of(&runs.list())), told(&runs));
        }
    }

    #[test]
    fn what_is_readable_among_scattered_ones_was_perhaps_always() {
        let mut runs = BadRuns::of(&[BadBlocks { lba: 10, blocks: 10, kind: BadBlocks::SCATTERED.into() }]);
        runs.recovered(12, 19);
        let scattered = || BadBlocks::SCATTERED.to_string();
        assert_eq!(told(&runs), [(10, 2, scattered()), (19, 1, scattered())]);
    }

    /// Of wrong ones it is kept that they are wrong: who can read them has not compared them.
    #[test]
    fn too_many_wrong_runs_stay_wrong() {
        let list: Vec<_> = (0..2 * MOST as u64)
            .map(|at| BadBlocks { lba: 4 * at, blocks: 1, kind: [CHECKSUM, "medium"][at as usize % 2].into() })
            .collect();
        let runs = BadRuns::of(&list);
        assert!(runs.list().len() <= MOST);
        for run in list.iter().filter(|run| run.is_wrong()) {
            assert!(runs.within(run.lba, run.lba + 1).next().is_some_and(BadBlocks::is_wrong), "{run:?}");
        }
    }

    /// However many there are, their list stays short, and no unreadable block is left out of it.
    #[test]
    fn too_many_runs_become_stretches_of_scattered_ones() {
        let mut runs = BadRuns::default();
        let lba = |at: u64| at * 7_919 % 400_000 * 3;
        let began = Instant::now();
        for at in 0..400_000 {
            runs.record(lba(at), "io");
        }
        let list = runs.list();
        assert!(list.len() <= MOST && list.len() > MOST / 64, "{}", list.len());
        assert_eq!(runs.blocks(), list.iter().map(|run| run.blocks).sum::<u64>());
        assert!(list.is_sorted_by(|run, next| run.end() <= next.lba));
        assert!((0..400_000).all(|at| runs.within(lba(at), lba(at) + 1).count() == 1));
        assert!(list.iter().any(|run| run.kind == BadBlocks::SCATTERED));
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        // What may be another disk's is still told apart.
        let doubtful = |at: u64| BadBlocks { lba: 2 * at, blocks: 1, kind: BadBlocks::DOUBTFUL.into() };
        let list: Vec<_> = (0..MOST as u64 + 1).map(doubtful).collect();
        assert_eq!(told(&BadRuns::of(&list)), [(0, 2 * MOST as u64 + 1, BadBlocks::DOUBTFUL.into())]);
    }
}
