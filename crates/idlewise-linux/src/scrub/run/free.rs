//! What nothing uses is not read, where that is wanted.

use idlewise::Bytes;
use idlewise::order::Extent;

use super::Run;

/// Shorter stretches are read: to pass over them would cost as much.
const WORTH: u64 = 256 << 10;

impl Run<'_, '_> {
    /// Takes in a stretch that the order has handed out, without what is free in it.
    pub(super) fn begin(&mut self, extent: Extent) {
        if !self.lane.judging.as_ref().is_some_and(|judging| judging.skips_free()) {
            return self.narrowing.begin(extent);
        }
        // Who tells is at work with what was read last.
        self.finish_judging();
        let size = self.lane.device.size;
        let free = self.ask(|judging, may_look| judging.free(extent, size, may_look)).unwrap_or_default();
        let mut from = extent.offset.0;
        // What could not be read before is read all the same: else nobody would know whether it still cannot.
        let free = free.into_iter().flat_map(|part| self.checkpoint.without_known(part)).collect::<Vec<_>>();
        for part in free.into_iter().filter(|part| part.length.0 >= WORTH.min(extent.length.0)) {
            // Whole blocks of what is used.
            let block = u64::from(self.lane.device.block);
            let (begin, end) = (part.offset.0.next_multiple_of(block), part.end().0 / block * block);
            if begin >= end {
                continue;
            }
            if from < begin {
                self.narrowing.begin(Extent { offset: Bytes(from), length: Bytes(begin - from) });
            }
            if !self.is_again(extent) {
                self.lane.judging.iter_mut().for_each(|judging| judging.skipped(Bytes(end - begin)));
                self.skipped += end - begin;
            }
            from = end;
        }
        if from < extent.end().0 {
            self.narrowing.begin(Extent { offset: Bytes(from), length: Bytes(extent.end().0 - from) });
        }
    }
}
