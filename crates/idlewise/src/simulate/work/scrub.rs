//! Work without end: a scrub, which begins again when it is through.

use super::{Detail, Served, Service, Tally, Work};
use crate::{Bytes, Nanos};

/// Requests of whatever size the policy asks for, as many as it likes.
#[derive(Clone, Debug)]
pub struct Scrub {
    service: Service,
    completed: u64,
    passes: Option<Passes>,
}

/// Passes over the disk, one after the other.
#[derive(Clone, Debug)]
struct Passes {
    /// Bytes of a pass.
    capacity: u64,
    /// Bytes left of the present one.
    left: u64,
    /// When it began.
    began: Nanos,
    detail: Detail,
}

impl Scrub {
    /// Requests that take so long.
    pub fn new(service: Service) -> Self {
        Self { service, completed: 0, passes: None }
    }

    /// The same, and how long each pass over so many bytes takes, from the end of the one before; the first begins at `began`. A pass
    /// ends with the request that verifies the last of its bytes; what that verifies beyond them is of the next one.
    pub fn timing_passes(self, capacity: Bytes, began: Nanos) -> Self {
        let capacity = capacity.0.max(1);
        Self { passes: Some(Passes { capacity, left: capacity, began, detail: Detail::default() }), ..self }
    }

    /// Requests with a pause between each and the next, added up as far as the pass goes.
    fn spaced(&mut self, began: Nanos, size: Bytes, count: u64, pause: Nanos, room: Nanos) -> Served {
        let (mut served, mut free_at) = (Served::default(), 0u64);
        while served.requests < count && free_at < room.0 {
            let left = self.passes.as_ref().map_or(u64::MAX, |passes| passes.left.div_ceil(size.0.max(1)));
            let most = left.min(count - served.requests);
            let (many, busy) = self.service.some(size, pause.0, most, room.0 - free_at);
            served.requests += many;
            served.paused = Nanos(pause.0.saturating_mul(served.requests - 1));
            served.time = Nanos(free_at.saturating_add(busy).saturating_add(pause.0.saturating_mul(many - 1)));
            free_at = served.time.0.saturating_add(pause.0);
            if let Some(passes) = &mut self.passes {
                passes.verified(many.saturating_mul(size.0), Nanos(began.0.saturating_add(served.time.0)));
            }
        }
        served.bytes = Bytes(served.requests.saturating_mul(size.0));
        served.interference = self.service.interference(size);
        self.completed += served.requests;
        served
    }
}

impl Passes {
    /// So many bytes were verified until `at`.
    fn verified(&mut self, mut bytes: u64, at: Nanos) {
        if bytes >= self.left {
            bytes -= std::mem::replace(&mut self.left, self.capacity);
            self.detail.times.add(at.since(self.began));
            // Those that the same request ends besides take no time.
            let besides = bytes / self.capacity;
            if besides > 0 {
                self.detail.times.add_many(Nanos::ZERO, besides);
            }
            bytes %= self.capacity;
            self.began = at;
        }
        self.left -= bytes;
    }
}

impl Work for Scrub {
    fn waits(&self) -> bool {
        true
    }

    fn serve(&mut self, began: Nanos, size: Bytes, count: u64, room: Nanos) -> Served {
        self.spaced(began, size, count, Nanos::ZERO, room)
    }

    fn serve_until(&mut self, began: Nanos, size: Bytes, until: Nanos, room: Nanos) -> Served {
        self.spaced(began, size, u64::MAX, Nanos::ZERO, room.min(until))
    }

    fn serve_paced(&mut self, began: Nanos, size: Bytes, pause: Nanos, room: Nanos) -> Served {
        self.spaced(began, size, u64::MAX, pause, room)
    }

    fn tally(&self) -> Tally {
        Tally { completed: self.completed, ..Tally::default() }
    }

    fn detail(&self) -> Detail {
        self.passes.as_ref().map_or(Detail::default(), |passes| passes.detail.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TotalTime;
    use crate::disk::{DiskModel, Point};

    #[test]
    fn a_pass_ends_with_the_request_that_verifies_its_last_byte() {
        let point = |size| Point::new(Bytes(size), Nanos(10));
        let model = DiskModel { name: "t".into(), verify: vec![point(1), point(2)], read: None, write: None };
        let mut scrub = Scrub::new(Service::OfSize(model)).timing_passes(Bytes(2_500), Nanos(3));
        // Five requests of 1,000: the third ends the first pass, 500 of it of the second, which the fifth ends.
        let served = scrub.serve(Nanos(100), Bytes(1_000), 5, Nanos(1_000));
        assert_eq!((served.requests, served.time), (5, Nanos(50)));
        let detail = scrub.detail();
        assert_eq!((detail.times.count(), detail.times.total()), (2, TotalTime(127 + 20)));
        // One at a time is the same.
        scrub.serve(Nanos(200), Bytes(1_000), 1, Nanos(1_000));
        assert_eq!(scrub.detail().times.count(), 2);
        scrub.serve(Nanos(300), Bytes(10_000), 1, Nanos(1_000));
        assert_eq!((scrub.detail().times.count(), scrub.detail().times.total()), (6, TotalTime(127 + 20 + 160)));
        // As many as there are bytes are not counted one by one.
        let mut bytewise = Scrub::new(scrub.service.clone()).timing_passes(Bytes(1), Nanos(0));
        bytewise.serve(Nanos(0), Bytes(u64::MAX), 1, Nanos(1));
        bytewise.serve(Nanos(1), Bytes(u64::MAX), 1, Nanos(1));
        assert_eq!(bytewise.detail().times.count(), u64::MAX);
    }
}
