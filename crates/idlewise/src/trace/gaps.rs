//! Clock jumps and stitched sessions: holes in a trace that are no idle time.

use super::Trace;
use crate::{Cdh, Nanos};

/// No request for so long may be a hole.
const LONG: Nanos = Nanos::from_secs(30 * 60);
/// How much longer than nearly all other pauses of the trace a hole is.
const TIMES: u64 = 20;
/// Nearly all pauses.
const NEARLY_ALL: f64 = 0.999;

/// A stretch without requests that does not look like idle time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Arrival of the last request before it.
    pub at: Nanos,
    /// Time to the next arrival.
    pub length: Nanos,
}

/// Finds the holes of a trace: pauses between arrivals of at least half an hour that are more than 20 times as long as 999
/// of 1,000 pauses. A disk that is used every few hours has pauses of hours and no holes; a telephone's trace in which
/// requests come every second, and then none for an hour, was put together from sessions.
#[derive(Clone, Debug, Default)]
pub struct GapFinder {
    last: Option<Nanos>,
    pauses: Cdh,
    long: Vec<Gap>,
}

impl GapFinder {
    /// Takes the next arrival.
    pub fn arrival(&mut self, at: Nanos) {
        if let Some(last) = self.last.replace(at) {
            let gap = Gap { at: last, length: at.since(last) };
            self.pauses.add(gap.length);
            if gap.length > LONG {
                self.long.push(gap);
            }
        }
    }

    /// The holes so far.
    pub fn gaps(&self) -> Vec<Gap> {
        // In a short trace the longest pause is among nearly all, and is no measure of itself.
        let share = NEARLY_ALL.min(1.0 - 1.5 / self.pauses.count().max(1) as f64);
        let usual = self.pauses.quantile(share.max(0.0));
        let hole = LONG.max(Nanos(usual.0.saturating_mul(TIMES)));
        self.long.iter().copied().filter(|gap| gap.length > hole).collect()
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
    fn a_short_trace_of_two_sessions_has_a_hole_too() {
        let sessions = trace((0..20).map(|k| if k == 10 { 7_200 } else { 1 }));
        assert_eq!(sessions.gaps().len(), 1);
    }
}
