//! Intra-disk parity, brought up to date in idle time: an update for each segment that a WRITE has made dirty (DSN 2008, sections
//! 5 and 7).

use std::collections::{HashMap, VecDeque};

use super::{Detail, Served, Service, Tally, Work};
use crate::{Bytes, Nanos};

/// Updates of the parity of segments, first come first served. Each is a READ of the segment and then a WRITE of its parity; one
/// that foreground work stops after the READ begins again. WRITEs to a segment whose update waits are part of it.
#[derive(Clone, Debug)]
pub struct ParityUpdates {
    read: Service,
    write: Service,
    segment: Bytes,
    waiting: VecDeque<u64>,
    /// When the WRITEs came that made a segment dirty.
    dirty: HashMap<u64, Vec<Nanos>>,
    tally: Tally,
    detail: Detail,
}

impl ParityUpdates {
    /// Updates that read and write so long, of segments of so many bytes.
    pub fn new(read: Service, write: Service, segment: Bytes) -> Self {
        Self {
            read,
            write,
            segment: segment.max(Bytes(1)),
            waiting: VecDeque::new(),
            dirty: HashMap::new(),
            tally: Tally::default(),
            detail: Detail::default(),
        }
    }

    /// The update of a segment is done.
    fn updated(&mut self, segment: u64, at: Nanos) {
        let writes = self.dirty.remove(&segment).unwrap_or_default();
        for came in &writes {
            let response = at.since(*came);
            self.tally.completed += 1;
            self.tally.response_sum += u128::from(response.0);
            self.detail.times.add(response);
        }
        self.detail.hit(writes.len());
    }
}

impl Work for ParityUpdates {
    fn foreground_wrote(&mut self, at: Nanos, offset: Bytes) {
        self.tally.came += 1;
        let segment = offset.0 / self.segment.0;
        let writes = self.dirty.entry(segment).or_default();
        if writes.is_empty() {
            self.waiting.push_back(segment);
        }
        writes.push(at);
    }

    fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// `count` is of updates: a READ and a WRITE each.
    fn serve(&mut self, began: Nanos, _size: Bytes, count: u64, room: u64) -> Served {
        let mut served = Served::default();
        for _ in 0..count {
            let Some(&segment) = self.waiting.front() else { break };
            if served.time >= room {
                break;
            }
            served.requests += 1;
            served.time = served.time.saturating_add(self.read.next(Bytes(0)));
            if served.time >= room {
                // The foreground came: what was read is forgotten.
                break;
            }
            served.requests += 1;
            served.time = served.time.saturating_add(self.write.next(Bytes(0)));
            self.waiting.pop_front();
            self.updated(segment, Nanos(began.0.saturating_add(served.time)));
        }
        served
    }

    fn tally(&self) -> Tally {
        self.tally
    }

    fn detail(&self) -> Detail {
        self.detail.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{DiskModel, Point};

    /// Takes so long, whatever the size.
    fn takes(time: u64) -> Service {
        let point = |size| Point { size: Bytes(size), time: Nanos(time) };
        Service::OfSize(DiskModel { name: "t".into(), verify: vec![point(1), point(2)], read: None, write: None })
    }

    #[test]
    fn an_update_stopped_after_its_read_begins_again() {
        let mut work = ParityUpdates::new(takes(20), takes(10), Bytes(1_000));
        work.foreground_wrote(Nanos(5), Bytes(100));
        // Room for the READ, and no more: 20 of 20.
        let stopped = work.serve(Nanos(10), Bytes(0), u64::MAX, 20);
        assert_eq!((stopped.requests, stopped.time, work.tally().completed), (1, 20, 0));
        // A WRITE that began completes, behind the foreground's arrival.
        let done = work.serve(Nanos(50), Bytes(0), u64::MAX, 25);
        assert_eq!((done.requests, done.time), (2, 30));
        assert_eq!(work.tally(), Tally { came: 1, completed: 1, lost: 0, response_sum: 75 });
        assert!(!work.waits());
    }

    #[test]
    fn writes_to_a_dirty_segment_are_part_of_its_update() {
        let mut work = ParityUpdates::new(takes(2), takes(1), Bytes(1_000));
        for (at, offset) in [(1, 0), (2, 999), (3, 1_000), (4, 500)] {
            work.foreground_wrote(Nanos(at), Bytes(offset));
        }
        let served = work.serve(Nanos(10), Bytes(0), u64::MAX, 1_000);
        assert_eq!((served.requests, served.time), (4, 6));
        // The first segment's three at 13, the other's at 16.
        assert_eq!(work.tally(), Tally { came: 4, completed: 4, lost: 0, response_sum: 12 + 11 + 9 + 13 });
        assert_eq!(work.detail().hits, [1, 0, 1]);
        // Clean again, the next WRITE makes it dirty anew.
        work.foreground_wrote(Nanos(20), Bytes(0));
        assert!(work.waits());
    }
}
