//! Intra-disk parity, brought up to date in idle time: an update for each segment that a WRITE has made dirty (DSN 2008, sections
//! 5 and 7).

use std::collections::{HashMap, VecDeque};

use super::{Detail, Served, Service, Tally, Work};
use crate::{Bytes, Nanos, TotalTime};

/// Updates of the parity of segments, first come first served. Each is two requests, a READ of the segment and a WRITE of its parity;
/// one that foreground work stops after the READ begins again. WRITEs to a segment whose update waits are part of it.
#[derive(Clone, Debug)]
pub struct ParityUpdates {
    read: Service,
    write: Service,
    segment: Bytes,
    /// Whether a READ is always followed by its WRITE, whatever the policy says, unless the foreground comes.
    whole: bool,
    waiting: VecDeque<u64>,
    /// Whether the first that waits was read, and nothing came in between.
    was_read: bool,
    /// When the WRITEs came that made a segment dirty.
    dirty: HashMap<u64, Vec<Nanos>>,
    /// The latest time that is known of.
    now: Nanos,
    tally: Tally,
    detail: Detail,
}

impl ParityUpdates {
    /// Updates that read and write so long, of segments of so many bytes. A policy may stop between the READ and the WRITE.
    pub fn new(read: Service, write: Service, segment: Bytes) -> Self {
        Self {
            read,
            write,
            segment: segment.max(Bytes(1)),
            whole: false,
            waiting: VecDeque::new(),
            was_read: false,
            dirty: HashMap::new(),
            now: Nanos::ZERO,
            tally: Tally::default(),
            detail: Detail::default(),
        }
    }

    /// The same, but a policy that let the READ begin lets the WRITE follow.
    pub fn whole(self) -> Self {
        Self { whole: true, ..self }
    }

    /// The next request of the update that waits longest.
    fn request(&mut self, began: Nanos) -> Option<u64> {
        let &segment = self.waiting.front()?;
        if !self.was_read {
            self.was_read = true;
            return Some(self.read.next(Bytes(0)));
        }
        let time = self.write.next(Bytes(0));
        self.was_read = false;
        self.waiting.pop_front();
        self.updated(segment, Nanos(began.0.saturating_add(time)));
        Some(time)
    }

    /// The update of a segment is done.
    fn updated(&mut self, segment: u64, at: Nanos) {
        let writes = self.dirty.remove(&segment).unwrap_or_default();
        for came in &writes {
            let response = at.since(*came);
            self.tally.completed += 1;
            self.tally.response_sum += response;
            self.detail.times.add(response);
        }
        self.detail.hit(writes.len());
        self.detail.dirty += writes.first().map_or(Nanos::ZERO, |first| at.since(*first));
        self.now = self.now.max(at);
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
        self.now = self.now.max(at);
    }

    fn foreground_arrived(&mut self) {
        self.was_read = false;
    }

    fn ended(&mut self, at: Nanos) {
        self.now = self.now.max(at);
    }

    fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn serve(&mut self, began: Nanos, _size: Bytes, count: u64, room: Nanos) -> Served {
        let mut served = Served::default();
        while served.time < room && (served.requests < count || self.whole && self.was_read) {
            let Some(time) = self.request(Nanos(began.0.saturating_add(served.time.0))) else { break };
            served.requests += 1;
            served.time = Nanos(served.time.0.saturating_add(time));
        }
        served
    }

    fn tally(&self) -> Tally {
        self.tally
    }

    /// Segments that are dirty now were so until now.
    fn detail(&self) -> Detail {
        let since = |writes: &Vec<Nanos>| writes.first().map_or(Nanos::ZERO, |first| self.now.since(*first));
        let waiting: TotalTime = self.dirty.values().map(since).sum();
        Detail { dirty: self.detail.dirty + waiting, ..self.detail.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{DiskModel, Point};

    /// Takes so long, whatever the size.
    fn takes(time: u64) -> Service {
        let point = |size| Point::new(Bytes(size), Nanos(time));
        Service::OfSize(DiskModel { name: "t".into(), verify: vec![point(1), point(2)], read: None, write: None })
    }

    fn wrote_once() -> ParityUpdates {
        let mut work = ParityUpdates::new(takes(20), takes(10), Bytes(1_000));
        work.foreground_wrote(Nanos(5), Bytes(100));
        work
    }

    #[test]
    fn an_update_stopped_after_its_read_begins_again() {
        let mut work = wrote_once();
        // Room for the READ, and no more: 20 of 20.
        let stopped = work.serve(Nanos(10), Bytes(0), u64::MAX, Nanos(20));
        assert_eq!((stopped.requests, stopped.time, work.tally().completed), (1, Nanos(20), 0));
        work.foreground_arrived();
        // A WRITE that began completes, behind the foreground's arrival.
        let done = work.serve(Nanos(50), Bytes(0), u64::MAX, Nanos(25));
        assert_eq!((done.requests, done.time), (2, Nanos(30)));
        assert_eq!(work.tally(), Tally { came: 1, completed: 1, lost: 0, response_sum: TotalTime(75) });
        assert!(!work.waits());
    }

    #[test]
    fn a_policy_may_stop_between_read_and_write_unless_updates_are_whole() {
        let mut work = wrote_once();
        assert_eq!(work.serve(Nanos(10), Bytes(0), 1, Nanos(100)).time, Nanos(20));
        assert_eq!(work.detail().dirty, TotalTime::ZERO);
        // It goes on after a pause of the policy's, which is none of the foreground's.
        assert_eq!(work.serve(Nanos(50), Bytes(0), 1, Nanos(60)).time, Nanos(10));
        assert_eq!((work.tally().completed, work.detail().dirty), (1, TotalTime(55)));
        let mut whole = wrote_once().whole();
        assert_eq!(
            whole.serve(Nanos(10), Bytes(0), 1, Nanos(100)),
            Served { requests: 2, bytes: Bytes(0), time: Nanos(30), ..Served::default() }
        );
    }

    #[test]
    fn writes_to_a_dirty_segment_are_part_of_its_update() {
        let mut work = ParityUpdates::new(takes(2), takes(1), Bytes(1_000));
        for (at, offset) in [(1, 0), (2, 999), (3, 1_000), (4, 500)] {
            work.foreground_wrote(Nanos(at), Bytes(offset));
        }
        let served = work.serve(Nanos(10), Bytes(0), u64::MAX, Nanos(1_000));
        assert_eq!((served.requests, served.time), (4, Nanos(6)));
        // The first segment's three at 13, the other's at 16.
        assert_eq!(work.tally(), Tally { came: 4, completed: 4, lost: 0, response_sum: TotalTime(12 + 11 + 9 + 13) });
        assert_eq!((work.detail().hits, work.detail().dirty), (vec![1, 0, 1], TotalTime(12 + 13)));
        // Clean again, the next WRITE makes it dirty anew, until the end of what is known.
        work.foreground_wrote(Nanos(20), Bytes(0));
        work.foreground_wrote(Nanos(27), Bytes(5_000));
        assert!(work.waits());
        assert_eq!(work.detail().dirty, TotalTime(12 + 13 + 7));
        work.ended(Nanos(30));
        assert_eq!(work.detail().dirty, TotalTime(12 + 13 + 10 + 3));
    }
}
