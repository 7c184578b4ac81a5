//! A hard disk with its cache: it reads ahead into it, and buffers a write.

use super::{Geometry, Mechanical};
use crate::{Bytes, Nanos, Rate};

/// The constants of a hard disk's cache and of its way to the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cache {
    /// Time that a read takes which finds its data in the cache, besides the transfer.
    pub read: Nanos,
    /// Time that a buffered write takes, besides the transfer; `None` where writes are not buffered.
    pub write: Option<Nanos>,
    /// Transfer rate to and from the host.
    pub interface: Rate,
    /// Behind a read the disk reads on for so much.
    pub read_ahead: Bytes,
}

impl Cache {
    /// As fitted to the five drives of docs/results.md, about, at the transfer rate of a later one.
    pub fn usual() -> Self {
        Self {
            read: Nanos(500_000),
            write: Some(Nanos(600_000)),
            interface: Rate(300_000_000),
            read_ahead: Bytes::from_kib(256),
        }
    }
}

/// The state of a hard disk with a cache.
///
/// The cache holds the last read and what lies behind it, which is read on until there is enough of it or the head is needed elsewhere.
/// A buffered write is done at once, unless the one before it is not on the platter yet.
#[derive(Clone, Debug)]
pub struct Cached {
    mechanics: Mechanical,
    cache: Cache,
    held: Segment,
    /// When the write in the buffer is on the platter.
    written: u64,
}

/// A stretch of the disk in its cache. Times in nanoseconds, places in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    begin: u64,
    end: u64,
    /// It is read on to there.
    limit: u64,
    /// Since when the head has been reading on from `end`, where it does.
    since: Option<u64>,
}

impl Cached {
    /// A disk at rest over its first byte, with nothing in its cache.
    pub fn new(geometry: Geometry, cache: Cache) -> Self {
        Self { mechanics: Mechanical::new(geometry), cache, held: Segment::default(), written: 0 }
    }

    /// The time at which a read that arrives at `now` completes. Arrivals never go back.
    pub fn read(&mut self, now: Nanos, offset: Bytes, size: Bytes) -> Nanos {
        let (begin, end) = (offset.0, offset.0 + size.0);
        self.read_on(now.0);
        let wanted = end + self.cache.read_ahead.0;
        let comes = self.held.since.is_some() && end <= self.held.limit;
        if begin < self.held.begin || self.held.end < end && !comes {
            self.leave(now.0);
            let done = self.mechanics.serve(now, offset, size);
            self.held = Segment { begin, end, limit: wanted, since: Some(done.0) };
            return done;
        }
        let there = self.held.since.map_or(0, |since| since + self.reading(end.saturating_sub(self.held.end)));
        self.held.limit = self.held.limit.max(wanted);
        if self.held.since.is_none() && self.held.end < self.held.limit {
            self.held.since = Some(self.mechanics.reaches(now, Bytes(self.held.end)).0);
        }
        Nanos(there.max(now.0 + self.cache.read.0 + self.transfer(size)))
    }

    /// The time at which such a write does.
    pub fn write(&mut self, now: Nanos, offset: Bytes, size: Bytes) -> Nanos {
        self.leave(now.0);
        if offset.0 < self.held.end && self.held.begin < offset.0 + size.0 {
            self.held = Segment::default();
        }
        let free = now.0.max(self.written);
        self.written = self.mechanics.serve(now, offset, size).0;
        Nanos(self.cache.write.map_or(self.written, |write| free + write.0 + self.transfer(size)))
    }

    /// Brings the held segment up to a time.
    fn read_on(&mut self, now: u64) {
        let held = &mut self.held;
        let Some(since) = held.since.filter(|since| *since < now) else { return };
        let rate = self.mechanics.rate(held.end);
        held.end = held.limit.min(held.end + ((now - since) as f64 / 1e9 * rate) as u64);
        held.since = (held.end < held.limit).then_some(now);
        self.mechanics.stands_over(Bytes(held.end));
    }

    /// The head is needed elsewhere.
    fn leave(&mut self, now: u64) {
        self.read_on(now);
        self.held.since = None;
    }

    /// Time to read so many bytes behind the held segment.
    fn reading(&self, bytes: u64) -> u64 {
        (bytes as f64 / self.mechanics.rate(self.held.end) * 1e9).round() as u64
    }

    fn transfer(&self, size: Bytes) -> u64 {
        (size.0 as f64 / self.cache.interface.0 as f64 * 1e9) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const KIB: u64 = 1 << 10;

    fn disk() -> Cached {
        let geometry = Geometry {
            outer_rate: Rate(100_000_000),
            inner_rate: Rate(100_000_000),
            ..Geometry::fifteen_k(Bytes(1 << 40))
        };
        Cached::new(geometry, Cache { interface: Rate(1_000_000_000), read: Nanos(MS), ..Cache::usual() })
    }

    fn read(disk: &mut Cached, now: u64, offset: u64) -> u64 {
        disk.read(Nanos(now), Bytes(offset), Bytes(64 * KIB)).0 - now
    }

    fn write(disk: &mut Cached, now: u64, offset: u64) -> u64 {
        disk.write(Nanos(now), Bytes(offset), Bytes(64 * KIB)).0 - now
    }

    /// A hit is 1 ms and 65,536 ns of transfer; what follows a read is there 655 us a request later, up to 256 KiB.
    #[test]
    fn a_read_finds_what_was_read_ahead() {
        let hit = MS + 65_536;
        let mut disk = disk();
        let first = read(&mut disk, 0, 1 << 30);
        let done = first + 100 * MS;
        for k in 1..=4 {
            assert_eq!(read(&mut disk.clone(), done, (1 << 30) + k * 64 * KIB), hit, "{k}");
        }
        assert!(read(&mut disk.clone(), done, (1 << 30) + 5 * 64 * KIB) > hit, "no further");
        assert!(read(&mut disk.clone(), done, (1 << 30) - 64 * KIB) > hit, "not what lies before");
        // The fourth on is there when four of 655 us have passed: at once after the first it has to wait for that.
        assert_eq!(read(&mut disk.clone(), first, (1 << 30) + 4 * 64 * KIB), 4 * 655_360);
        assert_eq!(read(&mut disk.clone(), first + MS, (1 << 30) + 4 * 64 * KIB), 4 * 655_360 - MS);
        // Elsewhere nothing more is read ahead.
        read(&mut disk, first + 100, 1 << 35);
        assert!(read(&mut disk, done, (1 << 30) + 64 * KIB) > hit);
    }

    #[test]
    fn a_buffered_write_is_done_at_once_but_not_the_next() {
        let mut disk = disk();
        assert_eq!(write(&mut disk, 0, 1 << 30), 600_000 + 65_536);
        let platter = disk.written;
        assert!(platter > 2 * MS);
        assert_eq!(write(&mut disk.clone(), MS, 1 << 35), platter - MS + 600_000 + 65_536);
        assert_eq!(write(&mut disk.clone(), platter, 1 << 35), 600_000 + 65_536);
        // What is read meanwhile waits for the arm.
        assert!(read(&mut disk, MS, 1 << 35) > platter - MS);
    }

    #[test]
    fn what_was_written_over_is_read_again() {
        let mut disk = disk();
        let done = read(&mut disk, 0, 1 << 30) + 100 * MS;
        write(&mut disk, done, (1 << 30) + 4 * KIB);
        assert!(read(&mut disk, done + 100 * MS, 1 << 30) > MS + 65_536);
    }

    #[test]
    fn without_a_buffer_a_write_is_the_mechanics() {
        let geometry = Geometry::fifteen_k(Bytes(1 << 40));
        let mut cached = Cached::new(geometry, Cache { write: None, ..Cache::usual() });
        let mut mechanics = Mechanical::new(geometry);
        for k in 0..100 {
            let (now, offset) = (Nanos(k * 3 * MS), Bytes((k * 7_919 % 1_021) << 28));
            let expected = mechanics.serve(now, offset, Bytes(8192));
            assert_eq!(cached.write(now, offset, Bytes(8192)), expected);
        }
    }
}
