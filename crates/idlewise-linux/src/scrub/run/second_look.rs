//! A last look at what could not be read, when the rest of the pass is over: a device that was away for a moment has left
//! unreadable blocks behind that are none.

use std::collections::VecDeque;

use idlewise::Bytes;
use idlewise::order::Extent;

use super::super::BadBlocks;

/// A dead block may take seconds: after so many that are unreadable indeed, no more are looked at.
const MOST: usize = 256;

/// What is still to be looked at.
#[derive(Debug)]
pub(super) struct SecondLook {
    block: u64,
    left: VecDeque<Extent>,
    /// The stretch that is being read.
    now: Option<Extent>,
    failed: usize,
}

impl SecondLook {
    pub fn new(bad: &[BadBlocks], block: u32) -> Self {
        let block = u64::from(block);
        let extent = |run: &BadBlocks| Extent { offset: Bytes(run.lba * block), length: Bytes(run.blocks * block) };
        Self {
            block,
            left: bad.iter().filter(|run| run.kind != BadBlocks::RECOVERED).map(extent).collect(),
            now: None,
            failed: 0,
        }
    }

    /// The next stretch, of at most `size`.
    pub fn next(&mut self, size: Bytes) -> Option<Extent> {
        let whole = self.left.pop_front().filter(|_| self.failed < MOST)?;
        let first = self.part(whole, size.0.max(self.block));
        self.now = Some(first);
        Some(first)
    }

    /// How the last one went: of a stretch that is unreadable, each half is looked at.
    pub fn looked(&mut self, readable: bool) {
        let Some(now) = self.now.take().filter(|_| !readable) else { return };
        self.failed += 1;
        if now.length.0 > self.block {
            let first = self.part(now, (now.length.0 / 2).next_multiple_of(self.block));
            self.left.push_front(first);
        }
    }

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
    fn a_dead_stretch_is_not_looked_at_for_long() {
        let mut look = SecondLook::new(&[run(0, 1 << 30)], 512);
        let mut looks = 0;
        while look.next(Bytes(1 << 20)).is_some() {
            look.looked(false);
            looks += 1;
        }
        assert_eq!(looks, MOST);
    }
}
