//! When each request of a stretch is due, as the ones before it end.

use std::ops::Range;

use super::Causality;
use crate::Nanos;
use crate::trace::Columns;

/// The due times of requests that follow one another, on whatever clock they are played on. A due time is counted from
/// due times and ends, never from when something was really issued: lateness does not add up.
#[derive(Clone, Debug)]
pub struct Schedule<'a> {
    requests: &'a Columns,
    causality: &'a Causality,
    stretch: Range<usize>,
    /// Of each request of the stretch, as far as is known.
    due: Vec<Nanos>,
    /// How many ends each of them still waits for.
    waits_for: Vec<u32>,
    /// First request whose due time is open.
    next: usize,
}

impl<'a> Schedule<'a> {
    /// The due times of the requests in `stretch`, of which nobody waits for those before it.
    pub fn new(requests: &'a Columns, causality: &'a Causality, stretch: Range<usize>) -> Self {
        let mut waits_for = vec![0; stretch.len()];
        for index in stretch.clone() {
            if let Some(released) = causality.released_by(index).filter(|released| stretch.contains(released)) {
                waits_for[released - stretch.start] += 1;
            }
        }
        let due = vec![Nanos::ZERO; stretch.len()];
        Self { requests, causality, next: stretch.start, stretch, due, waits_for }
    }

    /// The requests.
    pub fn stretch(&self) -> Range<usize> {
        self.stretch.clone()
    }

    /// The first request is due at `at`.
    pub fn begin(&mut self, at: Nanos) {
        self.due[0] = at;
    }

    /// The next request, and when it is due: `None` while it waits for a read, or when there is none left.
    pub fn upcoming(&self) -> Option<(usize, Nanos)> {
        let (index, place) = (self.next, self.next - self.stretch.start);
        (index < self.stretch.end && self.waits_for[place] == 0).then(|| (index, self.due[place]))
    }

    /// Whether every request has been issued.
    pub fn is_over(&self) -> bool {
        self.next == self.stretch.end
    }

    /// The next request has been issued.
    pub fn issued(&mut self) {
        let (index, place) = (self.next, self.next - self.stretch.start);
        self.next += 1;
        if self.next < self.stretch.end && self.causality.released_by(index) != Some(self.next) {
            let arrival = &self.requests.arrival;
            let due = self.due[place].0.saturating_add(arrival[self.next].since(arrival[index]).0);
            self.due[place + 1] = self.due[place + 1].max(Nanos(due));
        }
    }

    /// A request of the stretch ended at `at`.
    pub fn ended(&mut self, index: usize, at: Nanos) {
        let released = self.causality.released_by(index).filter(|released| self.stretch.contains(released));
        let Some(released) = released else { return };
        let place = released - self.stretch.start;
        let end = self.requests.request(index).end().unwrap_or_default();
        let due = at.0.saturating_add(self.requests.arrival[released].since(end).0);
        self.due[place] = self.due[place].max(Nanos(due));
        self.waits_for[place] -= 1;
    }

    /// When a request that has been issued was due.
    pub fn due(&self, index: usize) -> Nanos {
        self.due[index - self.stretch.start]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;
    use crate::trace::{Op, Request};

    const BEGIN: Nanos = Nanos(1_000);

    /// Arrival, recorded end, operation, and how long the device of the replay takes.
    type Row = (u64, u64, Op, u64);

    fn columns(rows: &[Row]) -> Columns {
        let mut columns = Columns::default();
        for &(arrival, end, op, _) in rows {
            let response = Some(Nanos(end - arrival));
            columns.push(Request { arrival: Nanos(arrival), response, op, ..Request::default() });
        }
        columns
    }

    /// Plays the schedule on a device that takes its times, issuing each request `late`; the due times, from the first one on.
    fn played(rows: &[Row], closed: bool, late: u64) -> Vec<u64> {
        let columns = columns(rows);
        let causality =
            if closed { Causality::inferred(&columns).unwrap() } else { Causality::open_loop(columns.len()) };
        let mut schedule = Schedule::new(&columns, &causality, 0..columns.len());
        schedule.begin(BEGIN);
        let mut running: Vec<(Nanos, usize)> = Vec::new();
        while !schedule.is_over() {
            let first = running.iter().copied().min();
            match (schedule.upcoming(), first) {
                (Some((index, due)), first) if first.is_none_or(|(end, _)| due < end) => {
                    schedule.issued();
                    running.push((Nanos(due.0 + late + rows[index].3), index));
                }
                (_, Some(first)) => {
                    running.retain(|other| *other != first);
                    schedule.ended(first.1, first.0);
                }
                (_, None) => unreachable!("a request waits for nobody that runs"),
            }
        }
        (0..rows.len()).map(|index| schedule.due(index).since(BEGIN).0).collect()
    }

    /// Figure 11: B, which followed A's end, follows it on a slower device as well; in an open loop it does not wait.
    #[test]
    fn figure_11() {
        let rows = [(0, 10, Op::Read, 50), (15, 20, Op::Read, 5)];
        assert_eq!(played(&rows, true, 0), [0, 55]);
        assert_eq!(played(&rows, false, 0), [0, 15]);
    }

    /// Figure 12: E is due at max(end of C + 20, end of D + 10), whichever ends first.
    #[test]
    fn figure_12() {
        let rows = |c, d| {
            [
                (0, 10, Op::Read, 30),
                (15, 45, Op::Write, 900),
                (20, 40, Op::Read, c),
                (30, 50, Op::Read, d),
                (60, 70, Op::Read, 1),
            ]
        };
        // A takes 20 longer, and all that follow are shifted by that, however long the write takes.
        assert_eq!(played(&rows(20, 20), true, 0), [0, 35, 40, 50, 80]);
        assert_eq!(played(&rows(90, 20), true, 0), [0, 35, 40, 50, 40 + 90 + 20]);
        assert_eq!(played(&rows(20, 90), true, 0), [0, 35, 40, 50, 50 + 90 + 10]);
        assert_eq!(played(&rows(5, 5), true, 0), [0, 35, 40, 50, 65]);
    }

    /// The rule of the module's words, request by request and looking at all before it.
    fn naive(rows: &[Row]) -> Vec<u64> {
        let mut due = vec![0u64; rows.len()];
        for index in 1..rows.len() {
            let (arrival, before) = (rows[index].0, rows[index - 1]);
            let finished = |read: usize| rows[read].2 == Op::Read && rows[read].1 <= arrival;
            let ends = (0..index).filter(|&read| finished(read) && (rows[read].1 > before.0 || read == index - 1));
            let after_ends = ends.map(|read| due[read] + rows[read].3 + arrival - rows[read].1).max();
            let after_issue = (!finished(index - 1)).then(|| due[index - 1] + arrival - before.0);
            due[index] = after_ends.max(after_issue).unwrap();
        }
        due
    }

    prop_compose! {
        fn rows()(rows in prop::collection::vec((0u64..8, 0u64..25, any::<bool>(), 0u64..40), 1..50)) -> Vec<Row> {
            let mut at = 0;
            rows.into_iter().map(|(gap, response, read, takes)| {
                at += gap;
                (at, at + response, if read { Op::Read } else { Op::Write }, takes)
            }).collect()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(11), ..ProptestConfig::with_cases(1_000) })]

        #[test]
        fn closed_loop_is_as_by_the_rule(rows in rows()) {
            prop_assert_eq!(played(&rows, true, 0), naive(&rows));
        }

        /// On the device of the trace, and in an open loop on any, requests come as they came.
        #[test]
        fn the_recorded_times_come_back(rows in rows(), late in 0u64..5) {
            let same: Vec<Row> = rows.iter().map(|&(arrival, end, op, _)| (arrival, end, op, end - arrival)).collect();
            let arrivals: Vec<u64> = rows.iter().map(|row| row.0 - rows[0].0).collect();
            prop_assert_eq!(&played(&same, true, 0), &arrivals);
            prop_assert_eq!(&played(&rows, false, late), &arrivals);
        }

        /// Lateness in issuing does not add up where nobody waits for a read.
        #[test]
        fn writes_are_never_later_for_the_ones_before(rows in rows(), late in 0u64..5) {
            let writes: Vec<Row> = rows.iter().map(|&(arrival, end, _, takes)| (arrival, end, Op::Write, takes)).collect();
            prop_assert_eq!(played(&writes, true, late), played(&writes, true, 0));
        }
    }
}
