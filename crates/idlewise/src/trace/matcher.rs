//! Events into requests: a queueing, an issue and a completion that touch the same bytes of the same volume.
//!
//! The kernel merges requests and splits them on the way, so that one completion may end several arrivals, and one arrival
//! may need several completions. Each byte completed goes to the oldest request that still waits for it.

use std::collections::{BTreeSet, VecDeque};

use super::columns::Stage;
use super::{Columns, Request, Unmatched};
use crate::Nanos;

/// A request whose completion has not come for so long lost it.
const LOST_AFTER: Nanos = Nanos::from_secs(300);
/// More requests than this are not kept waiting behind one without a completion.
const MOST_KEPT: usize = 1 << 18;

/// Makes requests of events that come in order of time.
#[derive(Default)]
pub struct Matcher {
    /// Requests in order of arrival, the first with number `given`.
    kept: VecDeque<Kept>,
    given: u64,
    /// Volume, first byte and number of those that are not complete.
    open: BTreeSet<(u16, u64, u64)>,
    longest: u64,
    pub unmatched: Unmatched,
}

struct Kept {
    request: Request,
    /// Bytes not yet completed.
    remaining: u64,
}

impl Matcher {
    /// Takes events in order of time, and gives the requests that are settled, in order of arrival.
    pub fn settle(&mut self, events: &Columns) -> Columns {
        for (event, &stage) in events.requests().zip(&events.stage) {
            match stage {
                Stage::Queued => self.begin(event),
                Stage::Issued => self.issue(event),
                Stage::Completed => self.complete(event),
            }
        }
        let now = events.arrival.last().copied().unwrap_or_default();
        self.give(events.with_volumes_of(), |kept, waiting| {
            kept.remaining == 0 || waiting > MOST_KEPT || now.since(kept.request.arrival) > LOST_AFTER
        })
    }

    /// Gives the rest.
    pub fn finish(&mut self, volumes: Columns) -> Columns {
        self.give(volumes, |_, _| true)
    }

    fn give(&mut self, mut settled: Columns, done: impl Fn(&Kept, usize) -> bool) -> Columns {
        while self.kept.front().is_some_and(|kept| done(kept, self.kept.len())) {
            let Some(kept) = self.kept.pop_front() else { break };
            if kept.remaining > 0 {
                self.unmatched.without_completion += 1;
                self.open.remove(&(kept.request.volume, kept.request.offset.0, self.given));
            }
            self.given += 1;
            settled.push(kept.request);
        }
        settled
    }

    fn begin(&mut self, request: Request) {
        let number = self.given + self.kept.len() as u64;
        self.open.insert((request.volume, request.offset.0, number));
        self.longest = self.longest.max(u64::from(request.length));
        self.kept.push_back(Kept { request, remaining: u64::from(request.length) });
    }

    /// Those not complete that share bytes with `event` and do the same, by place and then by age. Of a heap of them at one
    /// place only some are looked at: no disk has so many.
    fn touched(&self, event: &Request, pass: impl Fn(&Request) -> bool) -> Vec<u64> {
        const MOST: usize = 256;
        let (begin, end) = (event.offset.0, event.offset.0.saturating_add(u64::from(event.length)));
        let from = (event.volume, begin.saturating_sub(self.longest), 0);
        let mut touched = Vec::new();
        let mut covered = 0;
        for &(_, _, number) in self.open.range(from..(event.volume, end, 0)).take(MOST) {
            let request = &self.kept[(number - self.given) as usize].request;
            if request.op == event.op && self.end_of(number) > begin && pass(request) {
                touched.push(number);
                covered += u64::from(request.length);
                if covered >= u64::from(event.length) && request.offset.0 <= begin {
                    break;
                }
            }
        }
        touched
    }

    fn end_of(&self, number: u64) -> u64 {
        let request = &self.kept[(number - self.given) as usize].request;
        request.offset.0.saturating_add(u64::from(request.length))
    }

    fn issue(&mut self, event: Request) {
        let touched = self.touched(&event, |request| request.queued.is_none());
        for &number in &touched {
            let request = &mut self.kept[(number - self.given) as usize].request;
            request.queued.get_or_insert(event.arrival.since(request.arrival));
        }
        if touched.is_empty() && self.touched(&event, |_| true).is_empty() {
            // Traces of issues and completions alone: to be issued is to arrive.
            self.begin(Request { queued: Some(Nanos::ZERO), ..event });
        }
    }

    fn complete(&mut self, event: Request) {
        let mut left = vec![(event.offset.0, event.offset.0.saturating_add(u64::from(event.length)))];
        let touched = self.touched(&event, |_| true);
        self.unmatched.without_arrival += u64::from(touched.is_empty());
        for number in touched {
            let end = self.end_of(number);
            let kept = &mut self.kept[(number - self.given) as usize];
            let begin = kept.request.offset.0;
            let taken = take(&mut left, begin, end).min(kept.remaining);
            kept.remaining -= taken;
            if kept.remaining == 0 && taken > 0 {
                kept.request.response = Some(event.arrival.since(kept.request.arrival));
                self.open.remove(&(kept.request.volume, begin, number));
            }
        }
    }
}

/// Takes the bytes from `begin` to `end` out of `ranges`, and says how many there were.
fn take(ranges: &mut Vec<(u64, u64)>, begin: u64, end: u64) -> u64 {
    let mut taken = 0;
    let mut left = Vec::with_capacity(ranges.len() + 1);
    for &(from, to) in ranges.iter() {
        let (cut_from, cut_to) = (from.max(begin), to.min(end));
        if cut_from >= cut_to {
            left.push((from, to));
            continue;
        }
        taken += cut_to - cut_from;
        left.extend([(from, cut_from), (cut_to, to)].into_iter().filter(|(from, to)| from < to));
    }
    *ranges = left;
    taken
}

#[cfg(test)]
mod tests {
    use super::Stage::{Completed, Issued, Queued};
    use super::*;
    use crate::Bytes;

    /// Arrival, time to issue and response.
    type Times = (u64, Option<u64>, Option<u64>);

    fn requests(events: &[(u64, Stage, u64, u32)]) -> (Vec<Times>, Unmatched) {
        let mut columns = Columns::default();
        columns.volume_id("disk");
        for &(at, stage, offset, length) in events {
            let (arrival, offset) = (Nanos(at), Bytes(offset));
            columns.push_event(stage, Request { arrival, offset, length, ..Request::default() });
        }
        let mut matcher = Matcher::default();
        let mut all = matcher.settle(&columns);
        all.append(matcher.finish(columns.with_volumes_of())).unwrap();
        let times = |r: Request| (r.arrival.0, r.queued.map(|t| t.0), r.response.map(|t| t.0));
        (all.requests().map(times).collect(), matcher.unmatched)
    }

    #[test]
    fn a_completion_ends_all_that_were_merged_into_it_and_a_split_request_needs_both() {
        let merged = [(1, Queued, 0, 8), (2, Queued, 8, 8), (3, Issued, 0, 16), (9, Completed, 0, 16)];
        assert_eq!(requests(&merged).0, [(1, Some(2), Some(8)), (2, Some(1), Some(7))]);
        let split = [(1, Queued, 0, 16), (2, Issued, 0, 8), (4, Completed, 0, 8), (6, Completed, 8, 8)];
        assert_eq!(requests(&split).0, [(1, Some(1), Some(5))]);
    }

    #[test]
    fn two_of_the_same_place_end_one_after_the_other() {
        let same = [(1, Queued, 0, 8), (2, Queued, 0, 8), (5, Completed, 0, 8), (9, Completed, 0, 8)];
        assert_eq!(requests(&same), (vec![(1, None, Some(4)), (2, None, Some(7))], Unmatched::default()));
    }

    #[test]
    fn a_heap_at_one_place_takes_no_time() {
        let heap = (0..40_000).map(|k| (k, Queued, 0, 8)).chain((0..40_000).map(|k| (50_000 + k, Completed, 0, 8)));
        let (requests, unmatched) = requests(&heap.collect::<Vec<_>>());
        assert!(requests.iter().all(|(_, _, response)| *response == Some(50_000)));
        assert_eq!(unmatched, Unmatched::default());
    }

    #[test]
    fn what_is_missing_is_counted() {
        let partial = [(1, Queued, 0, 8), (2, Completed, 64, 8), (3, Issued, 128, 8), (4, Completed, 128, 8)];
        let (requests, unmatched) = requests(&partial);
        assert_eq!(requests, [(1, None, None), (3, Some(0), Some(1))]);
        assert_eq!(unmatched, Unmatched { without_completion: 1, without_arrival: 1 });
    }
}
