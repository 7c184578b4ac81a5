//! How large requests may be so that none takes longer than the maximum slowdown, by what requests took so far.
//!
//! The first request of an idle interval finds the disk's head where the foreground left it. Those that follow may come from the disk's
//! read-ahead, many times sooner. So each kind is judged by its own times, and begins small.

use idlewise::disk::SMALLEST_REQUEST;
use idlewise::{Bytes, Nanos};

/// After so many in a row that were quick, requests of twice the size are tried.
const ENOUGH: u32 = 16;
/// Of the last 32, so many may be slow: somebody else's request may have been in the way.
const FORGIVEN: u32 = 2;
/// After a larger size was slow it takes twice as long until it is tried again; at most so many times as long.
const LONGEST_PATIENCE: u32 = 64;
/// Where the smallest are slow, none is tried for so long; each time twice as long.
const FIRST_REST: Nanos = Nanos::from_secs(1);
const LONGEST_REST: Nanos = Nanos::from_secs(60);

/// The largest requests for now.
#[derive(Clone, Debug)]
pub struct Ceiling {
    max: Nanos,
    first: Scale,
    following: Scale,
}

/// A request that was verified.
#[derive(Clone, Copy, Debug)]
pub struct Took {
    pub size: Bytes,
    pub time: Nanos,
    /// When it ended.
    pub at: Nanos,
    /// Whether nobody used the disk between the scrub's request before and this one.
    pub follows: bool,
}

/// The largest requests of one kind.
#[derive(Clone, Debug)]
struct Scale {
    most: Bytes,
    /// Which of the last 32 were slow.
    slow: u32,
    /// Of those as large as they may be, in a row: how many, the quickest and the longest.
    quick: (u32, Nanos, Nanos),
    /// So often as many must be quick before larger ones are tried; and how often they were.
    patience: u32,
    patient: u32,
    /// Twice the size would take too long.
    settled: bool,
    /// The last rest, and when it ends; zero once the smallest are quick.
    rest: Nanos,
    rests_until: Nanos,
}

impl Ceiling {
    /// Where none may take longer than `max`.
    pub fn new(max: Nanos) -> Self {
        Self { max, first: Scale::new(), following: Scale::new() }
    }

    /// No request is larger for now.
    pub fn most(&self, follows: bool) -> Bytes {
        if follows { self.following.most } else { self.first.most }
    }

    /// A request was verified.
    pub fn took(&mut self, took: Took) {
        let scale = if took.follows { &mut self.following } else { &mut self.first };
        match took.time > self.max {
            true => scale.was_slow(took),
            false => scale.was_quick(took, self.max),
        }
    }

    /// Until when none is tried, as even the smallest take too long.
    pub fn rests_until(&self, follows: bool) -> Nanos {
        if follows { self.following.rests_until } else { self.first.rests_until }
    }

    /// The largest request in the middle of an idle interval, where larger ones would take too long.
    pub fn settled(&self) -> Option<Bytes> {
        self.following.settled.then_some(self.following.most)
    }
}

impl Scale {
    fn new() -> Self {
        let none = (0, Nanos(u64::MAX), Nanos::ZERO);
        Self {
            most: SMALLEST_REQUEST,
            slow: 0,
            quick: none,
            patience: 1,
            patient: 0,
            settled: false,
            rest: Nanos::ZERO,
            rests_until: Nanos::ZERO,
        }
    }

    fn begin_again(&mut self) {
        (self.quick, self.patient) = (Self::new().quick, 0);
    }

    fn was_slow(&mut self, Took { size, at, .. }: Took) {
        self.slow = self.slow << 1 | 1;
        self.begin_again();
        if self.slow.count_ones() <= FORGIVEN && self.rest == Nanos::ZERO {
            return;
        }
        self.slow = 0;
        if size > SMALLEST_REQUEST {
            self.most = Bytes(size.min(self.most).0 / 2).max(SMALLEST_REQUEST);
            (self.patience, self.settled) = ((2 * self.patience).min(LONGEST_PATIENCE), true);
        } else {
            self.rest = Nanos(2 * self.rest.0).clamp(FIRST_REST, LONGEST_REST);
            self.rests_until = Nanos(at.0.saturating_add(self.rest.0));
        }
    }

    fn was_quick(&mut self, Took { size, time, .. }: Took, max: Nanos) {
        self.slow <<= 1;
        // Whole blocks may be a little less.
        if size.0 < self.most.0 / 16 * 15 && self.rest == Nanos::ZERO {
            return;
        }
        let (count, quickest, longest) = self.quick;
        self.quick = (count + 1, quickest.min(time), longest.max(time));
        let (count, quickest, longest) = self.quick;
        if count < ENOUGH {
            return;
        }
        self.quick = Self::new().quick;
        (self.rest, self.rests_until) = (Nanos::ZERO, Nanos::ZERO);
        // Only the transfer grows with the size, and it is no longer than the quickest took.
        self.settled = longest.0.saturating_add(quickest.0) > max.0;
        self.patient = if self.settled { 0 } else { self.patient + 1 };
        if self.patient >= self.patience && size.0 >= self.most.0 / 16 * 15 {
            (self.most, self.patient) = (Bytes(self.most.0.saturating_mul(2)), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;

    /// A disk that reads 100 kB a millisecond behind a seek of so long; what is asked of it, where `wanted` would be.
    struct Disk(Ceiling, u64);

    impl Disk {
        fn new(max: Nanos) -> Self {
            Self(Ceiling::new(max), 0)
        }

        fn asks(&mut self, wanted: Bytes, follows: bool, seek: Nanos) -> Took {
            let size = wanted.min(self.0.most(follows));
            self.1 = self.0.rests_until(follows).0.max(self.1);
            let time = Nanos(seek.0 + size.0 * 10);
            self.1 += time.0;
            let took = Took { size, time, at: Nanos(self.1), follows };
            self.0.took(took);
            took
        }

        fn serve(&mut self, wanted: Bytes, follows: bool, seek: Nanos) {
            self.asks(wanted, follows, seek);
        }
    }

    const SEEK: Nanos = Nanos::from_millis(4);

    #[test]
    fn requests_grow_as_far_as_they_may_and_never_beyond() {
        let mut disk = Disk::new(Nanos::from_millis(20));
        let mut took = Vec::new();
        for _ in 0..1_000 {
            took.push(disk.asks(Bytes(4096 * KIB), true, SEEK));
        }
        assert!(took.iter().all(|took| took.time <= disk.0.max));
        assert_eq!(disk.0.settled(), Some(took[999].size));
        assert!(took[999].time > Nanos::from_millis(9), "{:?}", took[999]);
        // What is not wanted is not tried.
        let mut disk = Disk::new(Nanos::from_millis(20));
        (0..1_000).for_each(|_| disk.serve(Bytes(100 * KIB), true, SEEK));
        assert_eq!((disk.0.most(true), disk.0.settled()), (Bytes(128 * KIB), None));
    }

    /// Read-ahead makes those that follow quick, and says nothing of the first of the next interval.
    #[test]
    fn the_first_of_an_interval_are_judged_by_themselves() {
        let mut disk = Disk::new(Nanos::from_millis(8));
        for _ in 0..200 {
            let first = disk.asks(Bytes(4096 * KIB), false, SEEK);
            assert!(first.time <= disk.0.max, "{first:?}");
            (0..10).for_each(|_| disk.serve(Bytes(4096 * KIB), true, Nanos::ZERO));
        }
        assert!(
            disk.0.most(false) < disk.0.most(true) && disk.0.most(true) == Bytes(512 * KIB),
            "{disk:?}",
            disk = disk.0
        );
    }

    /// Somebody else's requests, of which nothing is seen, are in front of each of ours for a while.
    #[test]
    fn after_a_slow_time_they_are_as_large_as_before() {
        let wanted = Bytes(1024 * KIB);
        let mut disk = Disk::new(Nanos::from_millis(30));
        (0..500).for_each(|_| disk.serve(wanted, true, SEEK));
        assert_eq!(disk.asks(wanted, true, SEEK).size, wanted);
        // Two in 32 are forgiven.
        for k in 0..320 {
            disk.asks(wanted, true, if k % 32 < 2 { Nanos::from_secs(1) } else { SEEK });
        }
        assert_eq!(disk.asks(wanted, true, SEEK).size, wanted);
        let (began, mut slow) = (disk.1, 0);
        while disk.1 - began < 3_600_000_000_000 {
            slow += u32::from(disk.asks(wanted, true, Nanos::from_secs(1)).time > disk.0.max);
        }
        // One a minute, once a few of each size were slow.
        assert!((60..90).contains(&slow), "{slow}");
        assert_eq!(disk.0.most(true), SMALLEST_REQUEST);
        assert!(disk.0.rests_until(true).0 > disk.1 && disk.0.rests_until(false) == Nanos::ZERO);
        let mut tries = 0;
        while disk.0.most(true) < wanted {
            disk.asks(wanted, true, SEEK);
            tries += 1;
        }
        assert!(tries < 4_000, "{tries}");
    }

    /// A size that is slow now and then is tried less and less often.
    #[test]
    fn what_was_slow_is_tried_less_often() {
        let mut disk = Disk::new(Nanos::from_millis(30));
        let mut slow = 0;
        for _ in 0..20_000 {
            let jumps = disk.0.most(true) >= Bytes(256 * KIB);
            let took = disk.asks(Bytes(256 * KIB), true, if jumps { Nanos::from_millis(30) } else { SEEK });
            slow += u32::from(took.time > disk.0.max);
        }
        assert!((3..80).contains(&slow), "{slow}");
    }
}
