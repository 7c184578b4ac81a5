//! A last look at what could not be read, when the rest of the pass is over: a device that was away for a moment has left
//! unreadable blocks behind that are none.

use std::collections::VecDeque;

use idlewise::Bytes;
use idlewise::order::Extent;

use super::super::BadBlocks;

/// A dead block may take seconds: when a run has failed so often, it is not halved any more, and neither is any when all have.
const MOST_OF_RUN: u64 = 40;
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
    from: From,
    failed: u64,
}

/// Where a run is looked at. What a moment's absence leaves behind may lie right beside what is dead: so from either end in stretches
/// that become twice as long until one is unreadable, and then half as long; then what is left between is halved.
#[derive(Clone, Copy, Debug, PartialEq)]
enum From {
    Whole,
    End(Stretch),
    Beginning(Stretch),
    Halves,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Stretch {
    length: u64,
    grows: bool,
}

impl Stretch {
    /// The next one, if there is any.
    fn next(self, readable: bool, block: u64) -> Option<Self> {
        let grows = self.grows && readable;
        let half = (self.length / 2).next_multiple_of(block);
        // A run may be as long as the device, and a look is no longer than a request.
        let length = if grows { self.length.saturating_mul(2) } else { half };
        (grows || self.length > block).then_some(Self { length, grows })
    }
}

impl SecondLook {
    pub fn new(bad: &[BadBlocks], block: u32) -> Self {
        let block = u64::from(block);
        let extent = |run: &BadBlocks| Extent { offset: Bytes(run.lba * block), length: Bytes(run.blocks * block) };
        let mut bad: Vec<_> =
            bad.iter().filter(|run| run.kind != BadBlocks::RECOVERED && !run.is_wrong()).map(extent).collect();
        bad.sort_by_key(|extent| extent.length);
        let runs = bad.into_iter().map(|extent| Run { left: [extent].into(), from: From::Whole, failed: 0 });
        Self { block, runs: runs.collect(), now: None, failed_again: 0 }
    }

    /// The next stretch, of at most `size`.
    pub fn next(&mut self, size: Bytes) -> Option<Extent> {
        let size = size.0.max(self.block);
        loop {
            let run = self.runs.front_mut()?;
            let enough = run.failed >= MOST_OF_RUN || run.failed > 0 && self.failed_again >= MOST;
            match run.left.pop_front().filter(|_| !enough) {
                Some(whole) => {
                    self.now = Some(run.part(whole, size));
                    return self.now;
                }
                None => drop(self.runs.pop_front()),
            }
        }
    }

    /// How the last one went.
    pub fn looked(&mut self, readable: bool) {
        let Some(now) = self.now.take() else { return };
        let Some(mut run) = self.runs.pop_front() else { return };
        let first = !readable && run.failed == 0;
        self.failed_again += u64::from(!readable && run.failed > 0);
        run.failed += u64::from(!readable);
        let was = run.from;
        if !readable && was != From::Halves {
            // It is left, with all that lies beside it.
            run.left.push_front(now);
            run.join();
        }
        let block = Stretch { length: self.block, grows: true };
        run.from = match was {
            From::Whole if readable => From::Whole,
            From::Whole => From::End(block),
            From::End(stretch) => stretch.next(readable, self.block).map_or(From::Beginning(block), From::End),
            From::Beginning(stretch) => stretch.next(readable, self.block).map_or(From::Halves, From::Beginning),
            From::Halves => From::Halves,
        };
        if !readable && was == From::Halves && now.length.0 > self.block {
            let half = Bytes((now.length.0 / 2).next_multiple_of(self.block));
            let rest = Extent { offset: Bytes(now.offset.0 + half.0), length: Bytes(now.length.0 - half.0) };
            run.left.extend([Extent { length: half, ..now }, rest]);
        }
        // The others have their first look before it has its second.
        match first {
            true if run.left.iter().any(|left| left.length.0 > self.block) => self.runs.push_back(run),
            true => {}
            false => self.runs.push_front(run),
        }
    }
}

impl Run {
    /// What is left in pieces that lie one behind the other is one stretch again.
    fn join(&mut self) {
        let (Some(first), Some(last)) = (self.left.front(), self.left.back()) else { return };
        let begin = first.offset.0.min(last.offset.0);
        let end = first.end().0.max(last.end().0);
        self.left = [Extent { offset: Bytes(begin), length: Bytes(end - begin) }].into();
    }

    /// A part of a stretch at the end from which it is looked at, at most so long; the rest is left.
    fn part(&mut self, whole: Extent, most: u64) -> Extent {
        let length = match self.from {
            From::End(stretch) | From::Beginning(stretch) => stretch.length.min(most),
            From::Whole | From::Halves => most,
        };
        let length = length.min(whole.length.0);
        let rest = whole.length.0 - length;
        let (part, rest) = match self.from {
            From::End(_) => (whole.offset.0 + rest, whole.offset.0),
            _ => (whole.offset.0, whole.offset.0 + length),
        };
        let left = Extent { offset: Bytes(rest), length: Bytes(whole.length.0 - length) };
        if left.length > Bytes(0) {
            self.left.push_front(left);
        }
        Extent { offset: Bytes(part), length: Bytes(length) }
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
            readable.sort_unstable();
            assert_eq!(readable, (0..12).filter(|block| *block != bad).collect::<Vec<_>>());
        }
    }

    /// A drive that resets does so where its bad sectors are.
    #[test]
    fn what_lies_beside_a_dead_stretch_is_found() {
        for (dead, before, behind) in [(16, 0, 8), (16, 8, 0), (3_000, 5, 70), (1, 1, 1), (40, 0, 1_000)] {
            let mut look = SecondLook::new(&[run(1_000, before + dead + behind)], 512);
            let (mut readable, mut looks) = (0, 0);
            while let Some(extent) = look.next(Bytes(64 << 10)) {
                let blocks = extent.offset.0 / 512..extent.end().0 / 512;
                let good = blocks.end <= 1_000 + before || blocks.start >= 1_000 + before + dead;
                look.looked(good);
                readable += if good { blocks.end - blocks.start } else { 0 };
                looks += 1;
            }
            assert!(readable >= before + behind, "{readable} of {before} and {behind} beside {dead}");
            assert!(looks < 100, "{looks}");
        }
    }

    /// Many looks of one block each: lengths must not double for ever, and a run whose first block is dead is not given up.
    #[test]
    fn in_requests_of_one_block_all_that_is_readable_is_found() {
        for dead in [0, 150, 299] {
            let mut look = SecondLook::new(&[run(0, 300)], 512);
            let mut readable = 0;
            while let Some(extent) = look.next(Bytes(512)) {
                let good = extent.offset.0 / 512 != dead;
                look.looked(good);
                readable += u64::from(good);
            }
            assert_eq!(readable, 299, "dead is {dead}");
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
