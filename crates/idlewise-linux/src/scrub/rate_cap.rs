//! A cap of the rate at which disks are scrubbed, all of them together.

use std::sync::{Mutex, PoisonError};

use idlewise::{Bytes, Nanos, Rate};

/// So many bytes a second at most, whichever disks they are of. What is not used is not saved up.
#[derive(Debug)]
pub struct RateCap {
    rate: Rate,
    /// When the next request may begin.
    next: Mutex<Nanos>,
}

impl RateCap {
    /// A cap that begins now.
    pub fn new(rate: Rate) -> Self {
        Self { rate, next: Mutex::new(Nanos::ZERO) }
    }

    /// How long to wait before the next request.
    pub fn left(&self, now: Nanos) -> Nanos {
        self.next().since(now)
    }

    /// A request of this size begins.
    pub fn take(&self, size: Bytes, now: Nanos) {
        let mut next = self.next();
        *next = Nanos(next.max(now).0.saturating_add(self.rate.time_for(size).0));
    }

    fn next(&self) -> std::sync::MutexGuard<'_, Nanos> {
        // A time is whole whatever thread panicked.
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_all_disks_share_the_rate() {
        let cap = RateCap::new(Rate(1_000));
        assert_eq!(cap.left(Nanos::from_secs(5)), Nanos::ZERO);
        cap.take(Bytes(500), Nanos::from_secs(5));
        cap.take(Bytes(1_500), Nanos::from_secs(5));
        assert_eq!(cap.left(Nanos::from_secs(6)), Nanos::from_secs(1));
        // Nothing is saved up while nobody asks.
        cap.take(Bytes(1_000), Nanos::from_secs(100));
        assert_eq!(cap.left(Nanos::from_secs(100)), Nanos::from_secs(1));
        cap.take(Bytes(u64::MAX), Nanos(u64::MAX));
        assert_eq!(cap.left(Nanos::ZERO), Nanos(u64::MAX));
    }
}
