//! Clock jumps and stitched sessions: holes in a trace that are no idle time.

use super::Trace;
use crate::Nanos;

/// No request for so long may be a hole.
const LONG: Nanos = Nanos::from_secs(30 * 60);
/// How much longer than the longest pause that is none a hole is.
const TIMES: u64 = 10;
/// Holes are rare: at most one pause in so many, or the one there is.
const RARE: u64 = 50;

/// A stretch without requests that does not look like idle time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Arrival of the last request before it.
    pub at: Nanos,
    /// Time to the next arrival.
    pub length: Nanos,
}

/// Finds the holes of a trace: its longest pauses between arrivals, if they stand apart. They last at least half an hour and
/// ten times as long as the longest other pause, and are at most one pause in fifty. A disk that is used every few hours has
/// pauses of hours and no holes; so has one with nights and weekends. A trace in which requests come every second, and
/// then none for an hour, was put together from sessions.
#[derive(Clone, Debug, Default)]
pub struct GapFinder {
    last: Option<Nanos>,
    pauses: u64,
    /// The longest pause of less than half an hour.
    longest_short: Nanos,
    long: Vec<Gap>,
}

impl GapFinder {
    /// Takes the next arrival.
    pub fn arrival(&mut self, at: Nanos) {
        if let Some(last) = self.last.replace(at) {
            let gap = Gap { at: last, length: at.since(last) };
            self.pauses += 1;
            if gap.length >= LONG {
                self.long.push(gap);
            } else {
                self.longest_short = self.longest_short.max(gap.length);
            }
        }
    }

    /// The holes so far.
    pub fn gaps(&self) -> Vec<Gap> {
        let mut lengths: Vec<u64> = self.long.iter().map(|gap| gap.length.0).collect();
        lengths.sort_unstable_by(|a, b| b.cmp(a));
        let most = (self.pauses / RARE).max(1) as usize;
        let below = |count: usize| lengths.get(count).copied().unwrap_or(self.longest_short.0);
        let stand_apart = |&count: &usize| lengths[count - 1] / TIMES >= below(count).max(1);
        match (1..=lengths.len().min(most)).rev().find(stand_apart) {
            Some(count) => self.long.iter().copied().filter(|gap| gap.length.0 >= lengths[count - 1]).collect(),
            None => Vec::new(),
        }
    }
}

impl Trace {
    /// The holes of the trace.
    pub fn gaps(&self) -> Vec<Gap> {
        let mut finder = GapFinder::default();
        self.columns.arrival.iter().for_each(|&at| finder.arrival(at));
        finder.gaps()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Columns, Provenance, Request};

    fn trace(pauses_s: impl IntoIterator<Item = u64>) -> Trace {
        let mut columns = Columns::default();
        columns.volume_id("d");
        let mut arrival = Nanos::ZERO;
        for pause in pauses_s {
            arrival.0 += Nanos::from_secs(pause).0;
            columns.push(Request { arrival, length: 512, ..Request::default() });
        }
        Trace::from_columns(Provenance::default(), columns)
    }

    #[test]
    fn sessions_have_holes_and_a_quiet_disk_has_none() {
        let sessions = trace((0..3_000).map(|k| if k == 1_500 { 7_200 } else { 1 }));
        assert_eq!(sessions.gaps(), [Gap { at: Nanos::from_secs(1_499), length: Nanos::from_secs(7_200) }]);
        assert_eq!(trace((0..500).map(|k| 600 + k % 7 * 1_000)).gaps(), []);
        assert_eq!(trace([0]).gaps(), []);
    }

    #[test]
    fn many_sessions_and_jumps_of_different_lengths_are_found() {
        let sessions = trace((1..5_001).map(|k| if k % 500 == 0 { 7_200 } else { 1 }));
        assert_eq!(sessions.gaps().len(), 10);
        let jumps = trace((0..1_000).map(|k| {
            if k == 300 {
                365 * 86_400
            } else if k == 600 {
                535 * 86_400
            } else {
                1
            }
        }));
        assert_eq!(jumps.gaps().len(), 2);
        // Bursts every hour are a load, not sessions.
        assert_eq!(trace((0..500).map(|k| if k % 4 == 0 { 3_600 } else { 1 })).gaps(), []);
    }

    #[test]
    fn a_short_trace_of_two_sessions_has_a_hole_too() {
        let sessions = trace((0..20).map(|k| if k == 10 { 7_200 } else { 1 }));
        assert_eq!(sessions.gaps().len(), 1);
    }
}
