//! Verification of what the foreground wrote: a READ for each WRITE (SIGMETRICS 2009, sections 2.3.2 and 2.3.3).

use std::collections::VecDeque;

use super::{Detail, Served, Service, Tally, Work};
use crate::idle::Idleness;
use crate::policy::restrained::Amount;
use crate::{Bytes, Nanos};

/// A READ for each foreground WRITE, in their order. What was written waits in a buffer; with one of N places, a WRITE that finds
/// N others waiting is never verified.
#[derive(Clone, Debug)]
pub struct WriteVerification {
    service: Service,
    places: Option<usize>,
    /// When the WRITEs that wait came.
    waiting: VecDeque<Nanos>,
    tally: Tally,
    detail: Detail,
}

impl WriteVerification {
    /// READs that take so long, of WRITEs that wait in a buffer of so many places, or in one without end.
    pub fn new(service: Service, places: Option<usize>) -> Self {
        Self { service, places, waiting: VecDeque::new(), tally: Tally::default(), detail: Detail::default() }
    }

    /// Jobs of so long for each WRITE: the work that comes with a busy period on average and that the buffer can hold is the sum of
    /// min(N, M) P(M) S (SIGMETRICS 2009, section 2.3.3). The disk must have kept its WRITEs.
    pub fn amount(disk: &Idleness, job: Nanos, places: Option<usize>) -> Amount {
        let most = places.unwrap_or(usize::MAX);
        let of_one_period = disk.writes.chunk_by(|a, b| a.busy_period == b.busy_period);
        let held: usize = of_one_period.map(|writes| writes.len().min(most)).sum();
        Amount::Finite { work: held as f64 * job.0 as f64 / disk.intervals.len().max(1) as f64, job }
    }
}

impl Work for WriteVerification {
    fn foreground_wrote(&mut self, at: Nanos, _offset: Bytes) {
        self.tally.came += 1;
        if self.places.is_some_and(|places| self.waiting.len() >= places) {
            self.tally.lost += 1;
        } else {
            self.waiting.push_back(at);
        }
    }

    fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn serve(&mut self, began: Nanos, size: Bytes, count: u64, room: Nanos) -> Served {
        let mut served = Served::default();
        while served.requests < count && served.time < room {
            let Some(came) = self.waiting.pop_front() else { break };
            served.requests += 1;
            served.time = Nanos(served.time.0.saturating_add(self.service.next(size)));
            let response = Nanos(began.0.saturating_add(served.time.0)).since(came);
            self.tally.completed += 1;
            self.tally.response_sum += response;
            self.detail.times.add(response);
        }
        served.bytes = Bytes(served.requests.saturating_mul(size.0));
        served.interference = self.service.interference(size);
        served
    }

    fn tally(&self) -> Tally {
        self.tally
    }

    fn detail(&self) -> Detail {
        self.detail.clone()
    }
}
