//! A last look at what could not be read, when the rest of the pass is over: a device that was away for a moment has left
//! unreadable blocks behind that are none.

use std::collections::VecDeque;

use idlewise::Bytes;
use idlewise::order::Extent;

use super::super::BadBlocks;

/// A dead block may take seconds: of more runs than these the first are looked at.
const MOST: usize = 256;

/// What is still to be looked at.
#[derive(Debug)]
pub(super) struct SecondLook {
    left: VecDeque<Extent>,
    /// The stretch that is being read.
    now: Option<Extent>,
}

impl SecondLook {
    pub fn new(bad: &[BadBlocks], block: u32) -> Self {
        let block = u64::from(block);
        let extent = |run: &BadBlocks| Extent { offset: Bytes(run.lba * block), length: Bytes(run.blocks * block) };
        Self { left: bad.iter().take(MOST).map(extent).collect(), now: None }
    }

    /// The next stretch, of at most `size`.
    pub fn next(&mut self, size: Bytes) -> Option<Extent> {
        let whole = self.left.pop_front()?;
        let first = Extent { length: whole.length.min(size), ..whole };
        if first.length < whole.length {
            let rest = Extent { offset: first.end(), length: Bytes(whole.length.0 - first.length.0) };
            self.left.push_front(rest);
        }
        self.now = Some(first);
        Some(first)
    }

    /// How the last one went: of a run that is unreadable indeed, the rest is not looked at.
    pub fn looked(&mut self, readable: bool) {
        let now = self.now.take();
        if !readable && self.left.front().is_some_and(|next| now.is_some_and(|now| now.end() == next.offset)) {
            self.left.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_looked_at_until_a_part_of_it_is_bad() {
        let run = |lba, blocks| BadBlocks { lba, blocks, kind: "io".into() };
        let mut look = SecondLook::new(&[run(0, 8), run(100, 1)], 512);
        let mut next = |readable| {
            let extent = look.next(Bytes(1_024)).map(|extent| (extent.offset.0 / 512, extent.length.0 / 512));
            look.looked(readable);
            extent
        };
        assert_eq!(
            [next(true), next(false), next(true), next(true)],
            [Some((0, 2)), Some((2, 2)), Some((100, 1)), None]
        );
    }
}
