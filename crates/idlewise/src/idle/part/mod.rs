//! Parts of a trace that were reduced apart, such as the files of a fleet, put together exactly.

mod bytes;

use super::{Idleness, Interval};
use crate::{Bytes, Nanos};

/// The busy and idle times of one disk in a part of its trace, with what the next part must know of it. Times are on the source's
/// clock, the same for all parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// What is known of the disk, but for `origin` and `responses_recorded`.
    disk: Idleness,
    /// When the last busy period began.
    busy_since: Nanos,
    /// The last arrival.
    last: Nanos,
    /// Requests whose response is the model's.
    modelled: u64,
}

/// Why two parts are not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PartError {
    /// They are of the same time.
    #[error("volume '{volume}': the parts overlap in time: one ends at {last}, the next begins at {begin}")]
    Overlap {
        /// The disk.
        volume: String,
        /// The last arrival of the first part.
        last: Nanos,
        /// The first of the next.
        begin: Nanos,
    },
    /// Requests of the next part would have waited for some of those before, and for others not.
    #[error(
        "volume '{0}': response times are recorded for some requests only, and a busy period goes on from part to part: reduce both as one"
    )]
    PartlyRecorded(String),
    /// Together they have more requests than can be counted: no trace has, but bytes may say so.
    #[error("volume '{0}': the parts have 2^64 requests or more together")]
    TooMany(String),
}

impl Part {
    pub(super) fn new(disk: Idleness, busy_since: Nanos, last: Nanos, modelled: u64) -> Self {
        Self { disk, busy_since, last, modelled }
    }

    /// The disk's name.
    pub fn volume(&self) -> &str {
        &self.disk.volume
    }

    /// The first arrival.
    pub fn begin(&self) -> Nanos {
        self.disk.begin
    }

    /// The last arrival.
    pub fn last(&self) -> Nanos {
        self.last
    }

    /// Memory that it takes at most, with all that is computed from it at a time.
    pub fn memory(&self) -> Bytes {
        self.disk.memory()
    }

    /// Whether `next` begins when this part has ended.
    ///
    /// # Errors
    /// [`PartError::Overlap`].
    pub fn precedes(&self, next: &Self) -> Result<(), PartError> {
        if next.begin() >= self.last {
            return Ok(());
        }
        Err(PartError::Overlap { volume: self.volume().into(), last: self.last, begin: next.begin() })
    }

    /// Adds the part that follows, as if the requests of both had been reduced as one. Where the disk was still busy, modelled requests
    /// wait for those before them; recorded ones took the time that they took.
    ///
    /// # Errors
    /// [`PartError`]; then this part is as it was.
    pub fn append(&mut self, next: &Self) -> Result<(), PartError> {
        self.precedes(next)?;
        // No other count of a part is more than its requests.
        let requests = self.disk.requests.checked_add(next.disk.requests);
        let requests = requests.ok_or_else(|| PartError::TooMany(self.volume().into()))?;
        let waits = next.begin() < self.disk.end && self.modelled + next.modelled > 0;
        if waits && self.modelled + next.modelled < requests {
            return Err(PartError::PartlyRecorded(self.volume().into()));
        }
        self.take_hours(&next.disk.requests_per_hour);
        self.disk.response_sum += next.disk.response_sum;
        let Idleness { begin, end, intervals, .. } = &next.disk;
        let mut busy = Busy { begin: *begin, length: Nanos::ZERO, requests: next.disk.leading_requests() };
        for (at, interval) in intervals.iter().enumerate() {
            busy.length = interval.busy_before;
            // The busy periods of what follows are as they were.
            if busy.begin > self.disk.end {
                self.begin_busy(busy.begin, busy.requests);
                self.disk.intervals.extend_from_slice(&intervals[at..]);
                (self.busy_since, self.disk.end) = (next.busy_since, *end);
                self.end_with(next);
                return Ok(());
            }
            self.go_on(busy, waits);
            let begin = Nanos(busy.begin.0 + busy.length.0 + interval.length.0);
            busy = Busy { begin, length: Nanos::ZERO, requests: interval.followers };
        }
        busy.length = end.since(busy.begin);
        if busy.begin > self.disk.end {
            self.begin_busy(busy.begin, busy.requests);
            self.disk.end = *end;
        } else {
            self.go_on(busy, waits);
        }
        self.end_with(next);
        Ok(())
    }

    fn end_with(&mut self, next: &Self) {
        self.disk.requests += next.disk.requests;
        self.modelled += next.modelled;
        self.last = next.last;
    }

    /// A busy period begins behind an idle interval.
    fn begin_busy(&mut self, begin: Nanos, followers: u64) {
        let (length, busy_before) = (begin.since(self.disk.end), self.disk.end.since(self.busy_since));
        self.disk.intervals.push(Interval { length, followers, busy_before });
        self.busy_since = begin;
    }

    /// A busy period begins while the disk is busy: each of its requests waits for what is left, if it waits at all.
    fn go_on(&mut self, busy: Busy, waits: bool) {
        if let Some(current) = self.disk.intervals.last_mut() {
            current.followers += busy.requests;
        }
        let left = self.disk.end.since(busy.begin);
        if waits {
            self.disk.response_sum += left * busy.requests;
            self.disk.end = self.disk.end + busy.length;
        } else {
            self.disk.end = self.disk.end.max(busy.begin + busy.length);
        }
    }

    /// The hour that one ends in may be that in which the next begins.
    fn take_hours(&mut self, hours: &[(u64, u64)]) {
        for &(hour, count) in hours {
            match self.disk.requests_per_hour.last_mut() {
                Some((last, so_far)) if *last == hour => *so_far += count,
                _ => self.disk.requests_per_hour.push((hour, count)),
            }
        }
    }

    /// The idle times of these disks, as [`Reducer::finish`](super::Reducer::finish) gives them of the whole trace.
    pub fn finish(parts: Vec<Self>) -> Vec<Idleness> {
        let of = |part: Self| {
            let responses_recorded = part.modelled < part.disk.requests;
            Idleness { responses_recorded, ..part.disk }
        };
        parts.into_iter().map(of).collect()
    }

    /// Requests whose response is the model's.
    pub fn modelled(&self) -> u64 {
        self.modelled
    }
}

/// A busy period of a part.
#[derive(Clone, Copy)]
struct Busy {
    begin: Nanos,
    length: Nanos,
    requests: u64,
}

#[cfg(all(test, feature = "files"))]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Bytes;
    use crate::disk::DiskModel;
    use crate::idle::Reducer;
    use crate::trace::{Columns, Request};

    /// Requests at these distances from each other, of so many blocks, and answered after so long where that is recorded.
    fn columns(rows: &[(u64, u32, u64)], recorded: bool) -> Columns {
        let mut columns = Columns::default();
        let mut at = 3_599_990_000_000;
        for &(after, blocks, response) in rows {
            at += after;
            let volume = columns.volume_id(if blocks % 3 == 0 { "a" } else { "b" }).unwrap();
            let response = recorded.then_some(Nanos(response));
            let (arrival, length) = (Nanos(at), blocks * 4096);
            columns.push(Request { arrival, length, volume, response, offset: Bytes(0), ..Request::default() });
        }
        columns
    }

    fn whole(columns: &Columns) -> Vec<Idleness> {
        let model = DiskModel::ultrastar_15k450();
        let mut reducer = Reducer::new(&model, Nanos::ZERO).unwrap();
        reducer.requests(columns).unwrap();
        sorted(reducer.finish(Nanos::ZERO))
    }

    /// The parts of all volumes of these requests.
    fn reduced(columns: &Columns) -> Vec<Part> {
        let model = DiskModel::ultrastar_15k450();
        let mut reducer = Reducer::new(&model, Nanos::ZERO).unwrap();
        reducer.requests(columns).unwrap();
        reducer.parts()
    }

    fn bytes_of(part: &Part) -> Vec<u8> {
        let mut bytes = Vec::new();
        part.write_to(&mut bytes);
        bytes
    }

    fn sorted(mut disks: Vec<Idleness>) -> Vec<Idleness> {
        disks.sort_by(|a, b| a.volume.cmp(&b.volume));
        disks
    }

    /// The parts between these borders, each of all volumes.
    fn cut(columns: &Columns, borders: &[usize]) -> Vec<Vec<Part>> {
        let mut borders: Vec<usize> = borders.iter().map(|border| border % (columns.len() + 1)).collect();
        borders.sort_unstable();
        let mut parts = Vec::new();
        let mut rest = columns.clone();
        for border in borders.into_iter().rev() {
            parts.insert(0, rest.split_off(border));
        }
        parts.insert(0, rest);
        parts.iter().map(reduced).collect()
    }

    fn joined(mut first: Vec<Part>, next: Vec<Part>) -> Vec<Part> {
        for part in next {
            match first.iter_mut().find(|one| one.volume() == part.volume()) {
                Some(one) => one.append(&part).unwrap(),
                None => first.push(part),
            }
        }
        first
    }

    proptest! {
        /// However a trace is cut, and in whatever order neighbours are put together, it is the trace.
        #[test]
        fn parts_are_the_whole(
            rows in prop::collection::vec((prop_oneof![0u64..20, 0u64..30_000_000], 1u32..40, prop_oneof![0u64..40, 0u64..90_000_000]), 1..60),
            borders in prop::collection::vec(any::<usize>(), 0..8),
            picks in prop::collection::vec(any::<usize>(), 8),
            recorded: bool,
        ) {
            let columns = columns(&rows, recorded);
            let mut parts = cut(&columns, &borders);
            for pick in picks {
                if parts.len() > 1 {
                    let at = pick % (parts.len() - 1);
                    let next = parts.remove(at + 1);
                    let first = std::mem::take(&mut parts[at]);
                    parts[at] = joined(first, next);
                }
            }
            for part in parts.iter_mut().flatten() {
                *part = Part::from_bytes(&bytes_of(part)).unwrap();
            }
            let all = parts.into_iter().reduce(joined).unwrap();
            prop_assert_eq!(sorted(Part::finish(all)), whole(&columns));
        }
    }

    /// Bytes that others damaged are no part, or one that can be worked with.
    #[test]
    fn damaged_bytes_do_no_harm() {
        let part = cut(&columns(&[(5, 3, 1), (50, 3, 1), (90_000_000, 3, 1)], true), &[])[0][0].clone();
        let whole = bytes_of(&part);
        assert!((0..whole.len()).all(|end| Part::from_bytes(&whole[..end]).is_none()));
        let mut sound = 0;
        for at in 0..8 * whole.len() {
            let mut bytes = whole.clone();
            bytes[at / 8] ^= 1 << (at % 8);
            if let Some(damaged) = Part::from_bytes(&bytes) {
                sound += 1;
                let _ = part.clone().append(&damaged);
                let _ = damaged.clone().append(&part);
                let idle = Part::finish(vec![damaged]).remove(0);
                assert!(idle.busy().0 + idle.idle().0 == idle.span().0);
            }
        }
        assert!(sound < whole.len() * 2, "{sound}");
    }

    #[test]
    fn parts_of_the_same_time_are_refused() {
        let parts = cut(&columns(&[(5, 3, 1), (5, 3, 1), (5, 3, 1)], true), &[1]);
        let [first, next] = [parts[0][0].clone(), parts[1][0].clone()];
        let mut wrong = next.clone();
        let refused = wrong.append(&first);
        assert!(matches!(refused, Err(PartError::Overlap { .. })), "{refused:?}");
        assert_eq!(wrong, next);
    }

    #[test]
    fn more_requests_than_can_be_counted_are_refused() {
        let mut huge = cut(&columns(&[(5, 3, 1)], true), &[])[0][0].clone();
        huge.disk.requests = 1 << 63;
        huge.disk.requests_per_hour[0].1 = 1 << 63;
        let read = Part::from_bytes(&bytes_of(&huge)).expect("its numbers agree");
        let mut both = read.clone();
        assert_eq!(both.append(&read), Err(PartError::TooMany("a".into())));
        assert_eq!(both, read);
    }

    #[test]
    fn what_is_recorded_only_in_part_is_put_together_where_the_disk_was_idle_between() {
        let [recorded, modelled] = [true, false].map(|recorded| columns(&[(5, 3, 1_000), (0, 3, 900)], recorded));
        let [first, close] = [&recorded, &modelled].map(|part| reduced(part).remove(0));
        let refused = first.clone().append(&close);
        assert!(matches!(refused, Err(PartError::PartlyRecorded(_))), "{refused:?}");
        let far = columns(&[(50_000, 3, 0)], false);
        let mut both = first;
        both.append(&reduced(&far)[0]).unwrap();
        let mut all = recorded.clone();
        all.append(far).unwrap();
        assert_eq!(Part::finish(vec![both]), whole(&all));
    }
}
