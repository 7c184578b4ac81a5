//! Work without end: a scrub, which begins again when it is through.

use super::{Served, Service, Tally, Work};
use crate::{Bytes, Nanos};

/// Requests of whatever size the policy asks for, as many as it likes.
#[derive(Clone, Debug)]
pub struct Scrub {
    service: Service,
    completed: u64,
}

impl Scrub {
    /// Requests that take so long.
    pub fn new(service: Service) -> Self {
        Self { service, completed: 0 }
    }
}

impl Work for Scrub {
    fn waits(&self) -> bool {
        true
    }

    fn serve(&mut self, _began: Nanos, size: Bytes, count: u64, room: u64) -> Served {
        let mut served = Served::default();
        if let Service::OfSize(_) = self.service {
            let each = self.service.next(size);
            served.requests = room.div_ceil(each).min(count);
            // Sizes and times beyond all reason end at the largest number, not in a circle.
            served.time = served.requests.saturating_mul(each);
        } else {
            while served.requests < count && served.time < room {
                served.requests += 1;
                served.time = served.time.saturating_add(self.service.next(size));
            }
        }
        served.bytes = served.requests.saturating_mul(size.0);
        self.completed += served.requests;
        served
    }

    fn tally(&self) -> Tally {
        Tally { completed: self.completed, ..Tally::default() }
    }
}
