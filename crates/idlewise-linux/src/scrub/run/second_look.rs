//! A last look at what could not be read, when the rest of the pass is over: a device that was away for a moment has left
//! unreadable blocks behind that are none.

use std::collections::VecDeque;

use idlewise::Bytes;
use idlewise::order::Extent;

use super::super::BadBlocks;

/// A dead block may take seconds: when a run has failed so often, it is not halved any more, and neither is any when all have.
const MOST_OF_RUN: u64 = 16;
const MOST: u64 = 256;

/// What is still to be looked at: first each run once, then the parts of those that are unreadable as a whole. Short runs come first:
/// a moment's absence leaves a short one behind.
#[derive(Debug)]
pub(super) struct SecondLook {
    block: u64,
    runs: VecDeque<Run>,
    /// The stretch that is being read, of the first of these.
    now: Option<Extent>,
    /// Failures of runs that had failed before.
    failed_again: u64,
}

/// What is left of a run.
#[derive(Debug)]
struct Run {
    left: VecDeque<Extent>,
    failed: u64,
}

impl SecondLook {
    pub fn new(bad: &[BadBlocks], block: u32) -> Self {
        let block = u64::from(block);
        let extent = |run: &BadBlocks| Extent { offset: Bytes(run.lba * block), length: Bytes(run.blocks * block) };
        let mut bad: Vec<_> = bad.iter().filter(|run| run.kind != BadBlocks::RECOVERED).map(extent).collect();
        bad.sort_by_key(|extent| extent.length);
        let runs = bad.into_iter().map(|extent| Run { left: [extent].into(), failed: 0 });
        Self { block, runs: runs.collect(), now: None, failed_again: 0 }
    }

    /// The next stretch, of at most `size`.
    pub fn next(&mut self, size: Bytes) -> Option<Extent> {
        loop {
            let run = self.runs.front_mut()?;
            let enough = run.failed >= MOST_OF_RUN || run.failed > 0 && self.failed_again >= MOST;
            match run.left.pop_front().filter(|_| !enough) {
                Some(whole) => {
                    let first = run.part(whole, size.0.max(self.block));
                    self.now = Some(first);
                    return self.now;
                }
                None => drop(self.runs.pop_front()),
            }
        }
    }

    /// How the last one went: of a stretch that is unreadable, each half is looked at.
    pub fn looked(&mut self, readable: bool) {
        let Some(now) = self.now.take().filter(|_| !readable) else { return };
        let Some(mut run) = self.runs.pop_front() else { return };
        self.failed_again += u64::from(run.failed > 0);
        run.failed += 1;
        if now.length.0 > self.block {
            let first = run.part(now, (now.length.0 / 2).next_multiple_of(self.block));
            run.left.push_front(first);
        }
        // The others have their first look before it has its second.
        if run.failed == 1 { self.runs.push_back(run) } else { self.runs.push_front(run) }
    }
}

impl Run {
    /// The beginning of a stretch, whose rest is left.
    fn part(&mut self, whole: Extent, length: u64) -> Extent {
        let first = Extent { length: Bytes(whole.length.0.min(length)), ..whole };
        if first.length < whole.length {
            let rest = Extent { offset: first.end(), length: Bytes(whole.length.0 - first.length.0) };
            self.left.push_front(rest);
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(lba: u64, blocks: u64) -> BadBlocks {
        BadBlocks { lba, blocks, kind: "io".into() }
    }

    #[test]
    fn what_is_bad_is_found_among_what_is_not() {
        for bad in 0..12 {
            let mut look = SecondLook::new(&[run(0, 12), run(100, 1)], 512);
            let mut readable = Vec::new();
            while let Some(extent) = look.next(Bytes(4_096)) {
                let blocks = extent.offset.0 / 512..extent.end().0 / 512;
                let good = !blocks.contains(&bad) && blocks.start < 100;
                look.looked(good);
                readable.extend(blocks.filter(|_| good));
            }
            assert_eq!(readable, (0..12).filter(|block| *block != bad).collect::<Vec<_>>());
        }
    }

    #[test]
    fn dead_runs_are_not_looked_at_for_long_and_hide_no_others() {
        let dead = (0..1_000).map(|at| run(at << 20, 1 << 19));
        let invented = run((1 << 32) + 7, 2);
        let mut look = SecondLook::new(&dead.chain([invented]).collect::<Vec<_>>(), 512);
        let (mut looks, mut found) = (0, Vec::new());
        while let Some(extent) = look.next(Bytes(1 << 20)) {
            let readable = extent.offset.0 >= 512 << 32;
            look.looked(readable);
            looks += 1;
            found.extend(Some(extent).filter(|_| readable));
        }
        assert_eq!(found, [Extent { offset: Bytes(((1 << 32) + 7) * 512), length: Bytes(1_024) }]);
        assert!((1_001..=1_001 + MOST).contains(&looks), "{looks}");
    }
}
