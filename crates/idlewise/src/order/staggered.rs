//! A piece of each region in turn (DSN 2012, sections II and IV-A; Oprea and Juels, FAST 2010).
//!
//! Errors come in bursts, so a first visit to each region tells early which of them has one. When a block cannot be read,
//! the rest of its region is visited at once, out of turn, and left out of the rounds that follow.

use std::collections::BTreeSet;

use super::{Extent, Order, Place, ScanOrder, Surface};
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
        let region = device.size.0.div_ceil(regions).next_multiple_of(block).max(block);
        let (ahead, detour) = (BTreeSet::new(), Vec::new());
        Ok(Self { size: device.size.0, region, regions, visit: visit.0, visited: 0, course: 0, ahead, detour })
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
        if place.ahead.iter().any(|&region| region >= regions) || !place.detour.iter().all(whole) {
            return Err("the place names regions that are not there".into());
        }
        (scan.visited, scan.course, scan.detour) = (place.visited, place.course, place.detour.clone());
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
}

impl ScanOrder for Staggered {
    fn next(&mut self, size: Bytes) -> Option<Extent> {
        if size.0 == 0 {
            return None;
        }
        if let Some((begin, end)) = self.detour.last_mut() {
            let length = size.0.min(*end - *begin);
            let extent = Extent { offset: Bytes(*begin), length: Bytes(length) };
            *begin += length;
            if begin == end {
                self.detour.pop();
            }
            self.visited += length;
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
        // How much of it the rounds have behind them: up to where they stand in this region, or in those before and after.
        let (begin, length) = self.bounds(region);
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
        if behind < length {
            self.detour.push((begin + behind, begin + length));
        }
    }

    fn place(&self) -> Place {
        Place {
            visited: self.visited,
            course: self.course,
            ahead: self.ahead.iter().copied().collect(),
            detour: self.detour.clone(),
        }
    }
}

#[cfg(test)]
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
    fn an_error_brings_the_rest_of_its_region_at_once() {
        let device = Surface { size: Bytes(12), block: 1 };
        let mut order = Staggered::new(device, 3, Bytes(1)).unwrap();
        let offsets: Vec<u64> = (0..12)
            .filter_map(|_| {
                let extent = order.next(Bytes(8))?;
                if extent.offset == Bytes(4) {
                    order.unreadable(extent.offset);
                }
                Some(extent.offset.0)
            })
            .collect();
        assert_eq!(offsets, [0, 4, 5, 8, 1, 9, 2, 10, 3, 11]);
    }

    proptest! {
        /// Every block once, whatever the sizes, with errors anywhere, resumed from its own place before any piece.
        #[test]
        fn visits_every_block_once(
            blocks in 1u64..300, regions in 1u64..40, visit in 1u64..20, sizes in prop::collection::vec(1u64..16, 1..8),
            bad in prop::collection::btree_set(0u64..300, 0..6), block in prop_oneof![Just(1u32), Just(512)],
        ) {
            let unit = u64::from(block);
            let device = Surface { size: Bytes(blocks * unit), block };
            let kind = Order::staggered(regions, Bytes(visit * unit));
            let mut order = kind.make(device, &Place::default()).unwrap();
            let mut visits = vec![0; blocks as usize];
            for turn in 0.. {
                let place = order.place();
                prop_assert_eq!(place.visited, visits.iter().sum::<u64>() * unit);
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
            prop_assert!(visits.iter().all(|&count| count == 1), "{visits:?}");
        }
    }
}
