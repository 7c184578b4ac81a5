//! A piece of each region in turn (DSN 2012, sections II and IV-A; Oprea and Juels, FAST 2010).
//!
//! Errors come in bursts, so a first visit to each region tells early which of them has one. When a block cannot be read,
//! its whole region is visited at once, out of turn: first what the rounds have before them, which they then leave out, then
//! once more what they have behind them, as the burst may be younger than that.

use std::collections::BTreeSet;

use super::{Extent, Order, Place, ScanOrder, Surface, common};
use crate::Bytes;

/// The staggered order.
#[derive(Clone, Debug)]
pub struct Staggered {
    size: u64,
    /// Length of every region but the last ones, which may be shorter or empty.
    region: u64,
    regions: u64,
    /// Bytes of a region visited in one round.
    visit: u64,
    visited: u64,
    course: u64,
    ahead: BTreeSet<u64>,
    detour: Vec<(u64, u64)>,
    again: Vec<(u64, u64)>,
}

impl Staggered {
    /// Divides a device into `regions` parts and visits `visit` bytes of each in turn.
    ///
    /// # Errors
    /// A message if there is no region, or a visit is no positive multiple of a block.
    pub fn new(device: Surface, regions: u64, visit: Bytes) -> Result<Self, String> {
        let block = u64::from(device.block.max(1));
        if regions == 0 || visit.0 == 0 || !visit.0.is_multiple_of(block) {
            return Err(format!(
                "{regions} regions, visits of {visit}: both above zero, visits whole {block} byte blocks"
            ));
        }
        let region = device.size.0.div_ceil(regions).checked_next_multiple_of(block);
        let region = region.ok_or_else(|| format!("a device of {} bytes is too large", device.size.0))?.max(block);
        let (size, visit) = (device.size.0, visit.0);
        let (ahead, detour, again) = (BTreeSet::new(), Vec::new(), Vec::new());
        Ok(Self { size, region, regions, visit, visited: 0, course: 0, ahead, detour, again })
    }

    pub(super) fn make(order: &Order, device: Surface, place: &Place) -> Result<Box<dyn ScanOrder>, String> {
        let (Some(regions), Some(visit)) = (order.regions, order.visit) else {
            return Err("a staggered order needs its regions and the bytes of a visit".into());
        };
        let mut scan = Self::new(device, regions, visit)?;
        let block = u64::from(device.block.max(1));
        let whole = |&(begin, end): &(u64, u64)| {
            begin < end && end <= device.size.0 && begin.is_multiple_of(block) && end.is_multiple_of(block)
        };
        let known = place.ahead.iter().all(|&region| region < regions);
        if !known || !place.detour.iter().chain(&place.again).all(whole) {
            return Err("the place names regions that are not there".into());
        }
        (scan.visited, scan.course) = (place.visited, place.course);
        (scan.detour, scan.again) = (place.detour.clone(), place.again.clone());
        scan.ahead.extend(&place.ahead);
        Ok(Box::new(scan))
    }

    /// First byte and length of a region.
    fn bounds(&self, region: u64) -> (u64, u64) {
        let begin = region.saturating_mul(self.region).min(self.size);
        (begin, self.region.min(self.size - begin))
    }

    /// Where the regular course stands after `course` bytes: the region, the offset in it, and what is left of the visit.
    /// A round visits up to `visit` bytes of every region that is as long; they differ only in the last one.
    fn locate(&self, course: u64) -> Option<(u64, u64, u64)> {
        if course >= self.size {
            return None;
        }
        let (full, short) = (self.size / self.region, self.size % self.region);
        // Bytes behind the course when `round` rounds are over.
        let after = |round: u64| {
            let depth = round.saturating_mul(self.visit);
            full * depth.min(self.region) + depth.min(short)
        };
        let (mut low, mut high) = (0, self.region.div_ceil(self.visit));
        while low + 1 < high {
            let middle = u64::midpoint(low, high);
            if after(middle) <= course { low = middle } else { high = middle }
        }
        let depth = low * self.visit;
        let piece = self.visit.min(self.region - depth);
        let into = course - after(low);
        let region = (into / piece).min(full);
        let within = into - region * piece;
        let (_, length) = self.bounds(region);
        Some((region, depth + within, piece.min(length - depth) - within))
    }

    /// How much of a region the rounds have behind them: up to where they stand in it, or in those before and after.
    fn behind_in(&self, region: u64) -> u64 {
        let (_, length) = self.bounds(region);
        let behind = match self.locate(self.course) {
            None => length,
            Some((at, reached, left)) => {
                let round = (reached + left - 1) / self.visit;
                match region.cmp(&at) {
                    std::cmp::Ordering::Equal => reached,
                    std::cmp::Ordering::Less => (round + 1) * self.visit,
                    std::cmp::Ordering::Greater => round * self.visit,
                }
            }
        };
        behind.min(length)
    }
}

impl ScanOrder for Staggered {
    fn next(&mut self, size: Bytes) -> Option<Extent> {
        if size.0 == 0 {
            return None;
        }
        if let Some(extent) = take(&mut self.detour, size) {
            self.visited += extent.length.0;
            return Some(extent);
        }
        if let Some(extent) = take(&mut self.again, size) {
            return Some(extent);
        }
        loop {
            let (region, offset, left) = self.locate(self.course)?;
            if self.ahead.contains(&region) {
                self.course += left;
                continue;
            }
            let length = size.0.min(left);
            self.course += length;
            self.visited += length;
            return Some(Extent { offset: Bytes(self.bounds(region).0 + offset), length: Bytes(length) });
        }
    }

    fn unreadable(&mut self, offset: Bytes) {
        let region = offset.0 / self.region;
        if region >= self.regions || !self.ahead.insert(region) {
            return;
        }
        let ((begin, length), behind) = (self.bounds(region), self.behind_in(region));
        if behind < length {
            self.detour.push((begin + behind, begin + length));
        }
        // Not what this round has just visited.
        let before = behind.saturating_sub(1) / self.visit * self.visit;
        if before > 0 {
            self.again.push((begin, begin + before));
        }
    }

    fn place(&self) -> Place {
        Place {
            visited: self.visited,
            course: self.course,
            ahead: self.ahead.iter().copied().collect(),
            detour: self.detour.clone(),
            again: self.again.clone(),
        }
    }

    fn behind(&self, stretch: Extent) -> Bytes {
        let stretch = (stretch.offset.0, stretch.end().0.min(self.size));
        let regions = stretch.0 / self.region..stretch.1.div_ceil(self.region).min(self.regions);
        let of_region = |region: u64| {
            let (begin, length) = self.bounds(region);
            let behind = if self.ahead.contains(&region) { length } else { self.behind_in(region) };
            common(stretch, (begin, begin + behind))
        };
        let behind: u64 = regions.map(of_region).sum();
        let still: u64 = self.detour.iter().map(|left| common(stretch, *left)).sum();
        Bytes(behind.saturating_sub(still))
    }
}

/// The next piece of the last stretch.
fn take(stretches: &mut Vec<(u64, u64)>, size: Bytes) -> Option<Extent> {
    let (begin, end) = stretches.last_mut()?;
    let length = size.0.min(*end - *begin);
    let extent = Extent { offset: Bytes(*begin), length: Bytes(length) };
    *begin += length;
    if begin == end {
        stretches.pop();
    }
    Some(extent)
}

#[cfg(all(test, feature = "files"))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn visits_a_piece_of_each_region_in_turn() {
        // Ten blocks in three regions of four, four and two; two blocks a visit.
        let device = Surface { size: Bytes(10), block: 1 };
        let mut order = Staggered::new(device, 3, Bytes(2)).unwrap();
        let mut seen = Vec::new();
        while let Some(extent) = order.next(Bytes(2)) {
            seen.push((extent.offset.0, extent.length.0));
        }
        assert_eq!(seen, [(0, 2), (4, 2), (8, 2), (2, 2), (6, 2)]);
    }

    #[test]
    fn an_error_brings_its_whole_region_at_once() {
        let device = Surface { size: Bytes(12), block: 1 };
        let mut order = Staggered::new(device, 3, Bytes(1)).unwrap();
        let mut offsets = Vec::new();
        while let Some(extent) = order.next(Bytes(8)) {
            // Block 5 is found in the second round, when block 4 has been visited.
            if extent.offset == Bytes(5) {
                order.unreadable(extent.offset);
            }
            offsets.push((extent.offset.0, extent.length.0));
        }
        assert_eq!(
            offsets,
            [(0, 1), (4, 1), (8, 1), (1, 1), (5, 1), (6, 2), (4, 1), (9, 1), (2, 1), (10, 1), (3, 1), (11, 1)]
        );
        assert_eq!(order.place().visited, 12);
    }

    proptest! {
        /// Every block, whatever the sizes, with errors anywhere, resumed from its own place before any piece; twice only in
        /// regions with an error.
        #[test]
        fn visits_every_block(
            blocks in 1u64..300, regions in 1u64..40, visit in 1u64..20, sizes in prop::collection::vec(1u64..16, 1..8),
            bad in prop::collection::btree_set(0u64..300, 0..6), block in prop_oneof![Just(1u32), Just(512)],
        ) {
            let unit = u64::from(block);
            let device = Surface { size: Bytes(blocks * unit), block };
            let kind = Order::staggered(regions, Bytes(visit * unit));
            let mut order = kind.make(device, &Place::default()).unwrap();
            let mut visits = vec![0u64; blocks as usize];
            for turn in 0.. {
                let place = order.place();
                prop_assert_eq!(place.visited, visits.iter().filter(|&&count| count > 0).count() as u64 * unit);
                let from = turn as u64 * 7 % blocks;
                let to = (from + 1 + turn as u64 * 13 % 50).min(blocks);
                let stretch = Extent { offset: Bytes(from * unit), length: Bytes((to - from) * unit) };
                let behind = visits[from as usize..to as usize].iter().filter(|&&count| count > 0).count();
                prop_assert_eq!(order.behind(stretch), Bytes(behind as u64 * unit));
                let text = toml::to_string(&place).unwrap();
                order = kind.make(device, &toml::from_str(&text).unwrap()).unwrap();
                let Some(extent) = order.next(Bytes(sizes[turn % sizes.len()] * unit)) else { break };
                for block in extent.offset.0 / unit..extent.end().0 / unit {
                    visits[block as usize] += 1;
                    if bad.contains(&block) {
                        order.unreadable(Bytes(block * unit));
                    }
                }
            }
            let region = blocks.div_ceil(regions);
            for (at, &count) in visits.iter().enumerate() {
                let bad_region = bad.iter().any(|&bad| bad < blocks && bad / region == at as u64 / region);
                prop_assert!(count == 1 || count == 2 && bad_region, "{visits:?}");
            }
        }
    }
}
