//! How large requests may be on a disk of which nothing was measured, where none may take longer than the maximum slowdown.

use idlewise::disk::SMALLEST_REQUEST;
use idlewise::{Bytes, Nanos};

/// Of so many requests the quickest counts: somebody else's may have been in the way of the others.
const TRIES: usize = 5;

/// Requests begin small, and grow as far as what they take allows.
#[derive(Clone, Debug)]
pub struct Ceiling {
    max: Nanos,
    wanted: Bytes,
    most: Bytes,
    /// A larger one took too long.
    cut: bool,
    /// One was quick enough: what is slow from then on is the disk's passing mood, or its end, and no reason to stop.
    fits: bool,
    /// Requests in a row that took too long: their size, the quickest, and how many.
    slow: (Bytes, Nanos, usize),
    /// The last one was as large as it may be, and it stays so.
    settled: bool,
}

impl Ceiling {
    /// For requests of `wanted` bytes, if that takes no longer than `max`.
    pub fn new(wanted: Bytes, max: Nanos) -> Self {
        let most = SMALLEST_REQUEST.min(wanted);
        Self { max, wanted, most, cut: false, fits: false, slow: (Bytes(0), Nanos::ZERO, 0), settled: false }
    }

    /// What none may take longer than.
    pub fn max(&self) -> Nanos {
        self.max
    }

    /// No request is larger for now.
    pub fn most(&self) -> Bytes {
        self.most
    }

    /// A request took so long, without an error.
    pub fn took(&mut self, size: Bytes, time: Nanos) {
        if time > self.max {
            self.took_too_long(size, time);
            return;
        }
        self.fits = true;
        if size >= self.slow.0 {
            self.slow.2 = 0;
        }
        // A request of twice the size takes no more than twice as long: only the transfer grows.
        let times = (self.max.0 / time.0.max(1)).max(1);
        let grown = Bytes(size.0.saturating_mul(times)).min(self.wanted).max(self.most);
        let grown = if self.cut { self.most } else { grown };
        self.settled = grown == self.most && size == self.most;
        self.most = grown;
    }

    fn took_too_long(&mut self, size: Bytes, time: Nanos) {
        let (slow, quickest, count) = self.slow;
        self.slow = if slow == size && count > 0 { (size, quickest.min(time), count + 1) } else { (size, time, 1) };
        if self.slow.2 == TRIES && !self.is_smallest(size) {
            (self.most, self.cut) = (Bytes(size.0 / 2).min(self.most), true);
            self.slow.2 = 0;
        }
    }

    fn is_smallest(&self, size: Bytes) -> bool {
        size <= SMALLEST_REQUEST.min(self.wanted)
    }

    /// How long the smallest ones take, if that is too long.
    pub fn too_slow(&self) -> Option<Nanos> {
        let (size, quickest, count) = self.slow;
        (count >= TRIES && self.is_smallest(size) && !self.fits).then_some(quickest)
    }

    /// The largest request, where that is less than was wanted.
    pub fn cut_to(&self) -> Option<Bytes> {
        Some(self.most).filter(|most| self.settled && *most < self.wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with a seek of 4 ms that reads 100 kB a millisecond; what is asked of it, until it stays the same.
    fn sizes(wanted: Bytes, max: Nanos) -> (Vec<u64>, Ceiling) {
        let mut ceiling = Ceiling::new(wanted, max);
        let mut asked = Vec::new();
        for _ in 0..60 {
            let size = ceiling.most();
            if asked.last() != Some(&size.0) {
                asked.push(size.0);
            }
            ceiling.took(size, Nanos(4_000_000 + size.0 * 10));
        }
        (asked, ceiling)
    }

    #[test]
    fn requests_grow_as_far_as_they_may_and_never_beyond() {
        let kib = 1 << 10;
        let (asked, ceiling) = sizes(Bytes(4096 * kib), Nanos::from_millis(20));
        assert_eq!(ceiling.cut_to(), Some(ceiling.most()));
        assert!(asked.iter().all(|size| 4_000_000 + size * 10 <= 20_000_000), "{asked:?}");
        assert!(ceiling.most().0 * 10 + 4_000_000 > 10_000_000, "{asked:?}");
        // What fits is not cut.
        let (asked, ceiling) = sizes(Bytes(256 * kib), Nanos::from_millis(20));
        assert_eq!((asked.last(), ceiling.cut_to(), ceiling.too_slow()), (Some(&(256 * kib)), None, None));
        // Nothing fits: after five of the smallest, it says so.
        let (asked, ceiling) = sizes(Bytes(4096 * kib), Nanos(1_000));
        assert_eq!((asked.len(), ceiling.too_slow()), (1, Some(Nanos(4_000_000 + SMALLEST_REQUEST.0 * 10))));
    }

    /// Somebody else's request in front of ours makes it neither smaller nor the disk too slow; a disk that has become slow does.
    #[test]
    fn one_in_five_must_be_quick() {
        let size = Bytes(1 << 20);
        let mut ceiling = Ceiling::new(size, Nanos::from_millis(20));
        ceiling.took(SMALLEST_REQUEST, Nanos(1_000));
        assert_eq!(ceiling.most(), size);
        for k in 0..40 {
            ceiling.took(size, Nanos::from_millis(if k % TRIES == 4 { 15 } else { 90 }));
            assert_eq!((ceiling.most(), ceiling.too_slow()), (size, None));
        }
        for _ in 0..TRIES {
            ceiling.took(size, Nanos::from_millis(25));
        }
        assert_eq!(ceiling.most(), Bytes(1 << 19));
        ceiling.took(Bytes(1 << 19), Nanos::from_millis(2));
        assert_eq!((ceiling.most(), ceiling.cut_to()), (Bytes(1 << 19), Some(Bytes(1 << 19))));
        // However slow it becomes, it was quick enough before.
        for _ in 0..10 * TRIES {
            ceiling.took(ceiling.most(), Nanos::from_secs(1));
        }
        assert_eq!((ceiling.most(), ceiling.too_slow()), (SMALLEST_REQUEST, None));
    }
}
