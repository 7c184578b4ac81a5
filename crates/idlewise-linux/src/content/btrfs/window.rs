//! What the trees say ahead of what is judged: each request would else ask them for its own part.

use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

use super::mounted::Mounted;
use super::trees::{self, Allocated, Sum};
use super::{AGAIN, Btrfs, FRESH};

/// What is free is asked for so many addresses at a time.
const WINDOW: u64 = 64 << 20;
/// The same of checksums, where one answer has those of as many, or nearly, and of tree blocks.
const NEAR: u64 = 8 << 20;

/// A range, and what follows on it up to so many addresses.
fn ahead(range: &Range<u64>, length: u64) -> Range<u64> {
    range.start..range.end.max(range.start.saturating_add(length))
}

/// Of what would have to be asked for.
pub(super) fn not_asked() -> io::Error {
    io::ErrorKind::WouldBlock.into()
}

/// What its trees say of a range of addresses, and when they were asked.
pub struct Window<T> {
    known: Option<(Range<u64>, Instant)>,
    items: Vec<T>,
}

impl<T> Default for Window<T> {
    fn default() -> Self {
        Self { known: None, items: Vec::new() }
    }
}

impl<T> Window<T> {
    /// Whether it has all of a range, and is no older.
    fn has(&self, range: &Range<u64>, age: Duration) -> bool {
        let has = |(known, asked): &(Range<u64>, Instant)| {
            known.start <= range.start && range.end <= known.end && asked.elapsed() <= age
        };
        self.known.as_ref().is_some_and(has)
    }

    /// Those whose addresses, in order, are in a range.
    fn within(&self, range: Range<u64>, address: impl Fn(&T) -> u64) -> Vec<T>
    where
        T: Clone,
    {
        let first = self.items.partition_point(|item| address(item) < range.start);
        self.items[first..].iter().take_while(|item| address(item) < range.end).cloned().collect()
    }
}

impl Btrfs {
    /// How many bytes of these addresses are allocated. Without a mount only what was asked ahead is told, as in [`Btrfs::sums`].
    pub(super) fn allocated(&mut self, mounted: Option<&Mounted>, range: &Range<u64>) -> io::Result<u64> {
        if !self.allocated.has(range, FRESH) {
            let (window, asked) = (ahead(range, WINDOW), Instant::now());
            let allocated = trees::allocated(mounted.ok_or_else(not_asked)?, &self.superblock, &window)?;
            let items = allocated.into_iter().map(|Allocated { range, .. }| range).collect();
            self.allocated = Window { known: Some((window, asked)), items };
        }
        let first = self.allocated.items.partition_point(|one| one.end <= range.start);
        let within = self.allocated.items[first..].iter().take_while(|one| one.start < range.end);
        Ok(within.map(|one| one.end.min(range.end) - one.start.max(range.start)).sum())
    }

    /// What the sectors in these addresses should be, in order; as of a moment ago where that was asked with those before them. A sector
    /// that was given to others meanwhile differs, and is then judged by what is true now. One that had no checksum then, or has kept what
    /// it held before, is judged by the next pass.
    pub(super) fn sums(&mut self, mounted: Option<&Mounted>, range: &Range<u64>) -> io::Result<Vec<Sum>> {
        if !self.sums.has(range, AGAIN) {
            let (window, asked) = (ahead(range, NEAR), Instant::now());
            let items = trees::sums(mounted.ok_or_else(not_asked)?, &self.superblock, &window)?;
            self.sums = Window { known: Some((window, asked)), items };
        }
        let end = range.end.saturating_sub(self.superblock.sector - 1);
        Ok(self.sums.within(range.start..end, |(address, _)| *address))
    }

    /// The tree blocks that begin in these addresses, and the transaction that wrote each: as of a moment ago, as in [`Btrfs::sums`].
    pub(super) fn blocks(&mut self, mounted: Option<&Mounted>, range: &Range<u64>) -> io::Result<Vec<(u64, u64)>> {
        if !self.blocks.has(range, AGAIN) {
            let (window, asked) = (ahead(range, NEAR), Instant::now());
            let items = trees::blocks(mounted.ok_or_else(not_asked)?, &self.superblock, &window)?;
            self.blocks = Window { known: Some((window, asked)), items };
        }
        Ok(self.blocks.within(range.clone(), |(address, _)| *address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_what_it_asked_for_until_it_is_old() {
        let window = |known| Window::<u8> { known, items: Vec::new() };
        let now = window(Some((10..20, Instant::now())));
        assert!(now.has(&(10..20), AGAIN) && now.has(&(12..13), AGAIN));
        assert!(!now.has(&(9..12), AGAIN) && !now.has(&(19..21), AGAIN));
        let old = window(Instant::now().checked_sub(2 * AGAIN).map(|asked| (10..20, asked)));
        assert!(!old.has(&(12..13), AGAIN) && old.has(&(12..13), FRESH));
        assert!(!window(None).has(&(0..0), FRESH));
    }

    #[test]
    fn a_part_of_a_window_begins_in_it() {
        let window = Window { known: None, items: vec![10, 14, 18] };
        let within = |range| window.within(range, |address| *address);
        assert_eq!(within(11..18), [14]);
        assert_eq!([within(10..11), within(0..10), within(18..99)], [vec![10], vec![], vec![18]]);
    }

    #[test]
    fn what_is_asked_for_ahead_has_the_whole_range() {
        assert_eq!([ahead(&(5..6), 10), ahead(&(5..99), 10)], [5..15, 5..99]);
        assert_eq!(ahead(&(u64::MAX - 1..u64::MAX), 10), u64::MAX - 1..u64::MAX);
    }
}
