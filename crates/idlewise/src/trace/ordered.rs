//! Batches in order of arrival: of one input, and of several merged.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::decoder::{BadRecords, Batches};
use super::{Columns, ReadOptions, TraceError};
use crate::{Bytes, Nanos};

/// Where the batches of an input overlap in time, so many requests are held back to put them in order; of all inputs together
/// four times as many.
const HELD: usize = 1 << 19;
const FEWEST_HELD: usize = 1 << 9;

/// Bytes that a request takes in memory while requests are sorted.
const REQUEST: u64 = 64;

/// Room for requests that are read whole, of all inputs together.
#[derive(Clone)]
pub struct Room {
    limit: Option<Bytes>,
    left: Arc<AtomicU64>,
}

impl Room {
    pub fn new(limit: Option<Bytes>) -> Self {
        Self { limit, left: Arc::new(AtomicU64::new(limit.map_or(u64::MAX, |limit| limit.0 / REQUEST))) }
    }

    /// Takes room for so many requests; the limit, if there is not as much.
    fn take(&self, requests: usize) -> Result<(), Bytes> {
        let less = |left: u64| left.checked_sub(requests as u64);
        self.left.fetch_update(Relaxed, Relaxed, less).map(|_| ()).map_err(|_| self.limit.unwrap_or_default())
    }
}

/// One input in order of arrival.
pub struct Ordered<'a> {
    name: String,
    batches: Box<dyn Batches + 'a>,
    /// Read everything and sort it, however far out of order it is.
    whole: Option<Room>,
    /// Put before the names of volumes.
    prefix: Option<String>,
    /// What counts as time zero; the first arrival, once it is known, where traces are aligned.
    origin: Option<Nanos>,
    held: Columns,
    /// So many are held back.
    most_held: usize,
    given_until: Nanos,
    was_sorted: bool,
}

impl<'a> Ordered<'a> {
    pub fn new(
        name: String,
        batches: Box<dyn Batches + 'a>,
        prefix: Option<String>,
        options: &ReadOptions,
        room: &Room,
        inputs: usize,
    ) -> Self {
        Self {
            name,
            batches,
            whole: options.whole.then(|| room.clone()),
            prefix,
            origin: if options.aligned { None } else { Some(Nanos::ZERO) },
            held: Columns::default(),
            most_held: (4 * HELD / inputs).clamp(FEWEST_HELD, HELD),
            given_until: Nanos::ZERO,
            was_sorted: true,
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn was_sorted(&self) -> bool {
        self.was_sorted
    }

    pub fn bad(&self) -> &BadRecords {
        self.batches.bad()
    }

    /// The next requests in order of arrival; none at the end.
    fn next(&mut self) -> Result<Option<Columns>, TraceError> {
        while let Some(mut batch) = self.batches.next()? {
            if let Some(room) = &self.whole {
                let too_large = |limit| TraceError::TooLarge { path: self.name.clone(), limit };
                room.take(batch.len()).map_err(too_large)?;
                self.hold(batch)?;
                continue;
            }
            self.was_sorted &= batch.sort_by_arrival();
            if first(&batch) < self.given_until {
                return Err(TraceError::OutOfOrder(self.name.clone()));
            }
            if self.held.is_empty() {
                self.held = batch;
                continue;
            }
            if last(&self.held) <= first(&batch) {
                return self.give(batch).map(Some);
            }
            self.hold(batch)?;
            self.was_sorted &= self.held.sort_by_arrival();
            if self.held.len() >= self.most_held {
                let rest = self.held.split_off(self.held.len() / 2);
                return self.give(rest).map(Some);
            }
        }
        self.was_sorted &= self.held.sort_by_arrival();
        Ok(Some(self.give(Columns::default())?).filter(|columns| !columns.is_empty()))
    }

    fn hold(&mut self, batch: Columns) -> Result<(), TraceError> {
        self.held.append(batch).ok_or_else(|| TraceError::TooManyVolumes(self.name.clone()))
    }

    fn give(&mut self, rest: Columns) -> Result<Columns, TraceError> {
        let mut given = std::mem::replace(&mut self.held, rest);
        self.given_until = given.arrival.last().copied().unwrap_or(self.given_until);
        let origin = *self.origin.get_or_insert(first(&given));
        if origin > Nanos::ZERO {
            given.arrival.iter_mut().for_each(|arrival| *arrival = arrival.since(origin));
        }
        if let Some(prefix) = &self.prefix {
            let prefixed = given.volumes.renamed(|volume| format!("{prefix}:{volume}"));
            given.volumes = prefixed.ok_or_else(|| TraceError::LongPrefix(self.name.clone()))?;
        }
        Ok(given)
    }
}

fn first(columns: &Columns) -> Nanos {
    columns.arrival.first().copied().unwrap_or_default()
}

fn last(columns: &Columns) -> Nanos {
    columns.arrival.last().copied().unwrap_or_default()
}

/// Several inputs merged by arrival; where they tie, in the order of the inputs.
pub struct Merged<'a> {
    pub inputs: Vec<Ordered<'a>>,
    /// The next requests of each; `None` before the first and after the last.
    heads: Vec<Option<Columns>>,
}

impl<'a> Merged<'a> {
    pub fn new(inputs: Vec<Ordered<'a>>) -> Self {
        let heads = inputs.iter().map(|_| Some(Columns::default())).collect();
        Self { inputs, heads }
    }

    /// The next requests of all; none at the end.
    pub fn next(&mut self) -> Result<Option<Columns>, TraceError> {
        if let [input] = &mut self.inputs[..] {
            return input.next();
        }
        for (input, head) in self.inputs.iter_mut().zip(&mut self.heads) {
            if head.as_ref().is_some_and(Columns::is_empty) {
                *head = input.next()?;
            }
        }
        // Up to where the first of the heads ends, nothing can come any more.
        let Some(until) = self.heads.iter().flatten().map(last).min() else {
            return Ok(None);
        };
        let mut merged = Columns::default();
        for (input, head) in self.inputs.iter().zip(&mut self.heads) {
            let Some(columns) = head.as_mut().filter(|columns| first(columns) <= until) else { continue };
            let rest = columns.split_off(columns.arrival.partition_point(|&arrival| arrival <= until));
            let part = std::mem::replace(columns, rest);
            merged.append(part).ok_or_else(|| TraceError::TooManyVolumes(input.name.clone()))?;
        }
        merged.sort_by_arrival();
        Ok(Some(merged))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;
    use crate::trace::Request;

    struct Given(VecDeque<Vec<u64>>);

    impl Batches for Given {
        fn next(&mut self) -> Result<Option<Columns>, TraceError> {
            Ok(self.0.pop_front().map(|arrivals| {
                let mut columns = Columns::default();
                columns.volume_id("disk");
                arrivals.iter().for_each(|&at| columns.push(Request { arrival: Nanos(at), ..Request::default() }));
                columns
            }))
        }

        fn bad(&self) -> &BadRecords {
            BadRecords::NONE
        }
    }

    fn ordered(batches: &[Vec<u64>], whole: bool) -> Ordered<'static> {
        let options = ReadOptions { whole, ..ReadOptions::default() };
        within(batches, &options, &Room::new(None))
    }

    fn within(batches: &[Vec<u64>], options: &ReadOptions, room: &Room) -> Ordered<'static> {
        Ordered::new("t".into(), Box::new(Given(batches.iter().cloned().collect())), None, options, room, 1)
    }

    fn all(merged: &mut Merged) -> Result<Vec<u64>, TraceError> {
        let mut arrivals = Vec::new();
        while let Some(columns) = merged.next()? {
            arrivals.extend(columns.arrival.iter().map(|arrival| arrival.0));
        }
        Ok(arrivals)
    }

    #[test]
    fn what_comes_far_too_late_is_an_error_unless_all_is_read_first() {
        let batches = [vec![5, 6], vec![7, 8], vec![9], vec![1]];
        assert!(matches!(all(&mut Merged::new(vec![ordered(&batches, false)])), Err(TraceError::OutOfOrder(_))));
        assert_eq!(all(&mut Merged::new(vec![ordered(&batches, true)])).unwrap(), [1, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn what_is_read_whole_keeps_to_its_memory() {
        let options = ReadOptions { whole: true, ..ReadOptions::default() };
        let two = |room: &Room| Merged::new((0..2).map(|_| within(&[vec![5, 6], vec![1]], &options, room)).collect());
        assert_eq!(all(&mut two(&Room::new(Some(Bytes(6 * REQUEST))))).unwrap().len(), 6);
        let error = all(&mut two(&Room::new(Some(Bytes(6 * REQUEST - 1))))).unwrap_err().to_string();
        assert!(error.starts_with("t: takes more than 383 B of memory"), "{error}");
    }

    proptest! {
        #[test]
        fn merging_is_sorting(inputs in prop::collection::vec(
            prop::collection::vec(prop::collection::vec(0u64..1_000, 1..20), 0..6), 1..5))
        {
            let mut expected: Vec<u64> = inputs.iter().flatten().flatten().copied().collect();
            expected.sort_unstable();
            let mut whole = Merged::new(inputs.iter().map(|batches| ordered(batches, true)).collect());
            prop_assert_eq!(all(&mut whole).unwrap(), expected.clone());
            let mut streamed = Merged::new(inputs.iter().map(|batches| ordered(batches, false)).collect());
            if let Ok(arrivals) = all(&mut streamed) {
                prop_assert_eq!(arrivals, expected);
            }
        }
    }
}
