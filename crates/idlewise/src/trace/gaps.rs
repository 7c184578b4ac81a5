//! Clock jumps and stitched sessions: holes in a trace that are no idle time.

use super::Trace;
use crate::Nanos;

/// No request for so long may be a hole.
const LONG: Nanos = Nanos::from_secs(30 * 60);
/// How much longer than nearly all other pauses of the trace a hole is.
const TIMES: u64 = 20;
/// Of a thousand pauses, nearly all are not longer than the longest but this many.
const RARE: usize = 1_000;

/// A stretch without requests that does not look like idle time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Arrival of the last request before it.
    pub at: Nanos,
    /// Time to the next arrival.
    pub length: Nanos,
}

impl Trace {
    /// The holes of the trace: pauses between arrivals of at least half an hour that are more than 20 times as long as 999
    /// of 1,000 pauses. A disk that is used every few hours has pauses of hours and no holes; a telephone's trace in which
    /// requests come every second, and then none for an hour, was put together from sessions.
    pub fn gaps(&self) -> Vec<Gap> {
        let arrivals = &self.columns.arrival;
        let mut pauses: Vec<u64> = arrivals.windows(2).map(|pair| pair[1].since(pair[0]).0).collect();
        if pauses.is_empty() {
            return Vec::new();
        }
        let nearly_longest = pauses.len() - 1 - pauses.len() / RARE;
        let usual = *pauses.select_nth_unstable(nearly_longest).1;
        let hole = LONG.max(Nanos(usual.saturating_mul(TIMES)));
        let gap = |pair: &[Nanos]| Gap { at: pair[0], length: pair[1].since(pair[0]) };
        arrivals.windows(2).map(gap).filter(|gap| gap.length > hole).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Columns, Op, Request};

    fn trace(pauses_s: impl IntoIterator<Item = u64>) -> Trace {
        let mut columns = Columns::new(false);
        columns.volume_id("d");
        let (mut arrival, op) = (Nanos::ZERO, Op::Read);
        for pause in pauses_s {
            arrival.0 += Nanos::from_secs(pause).0;
            columns.push(Request { arrival, offset: crate::Bytes(0), length: 512, op, volume: 0, response: None });
        }
        Trace::from_columns("test", Nanos(1), columns)
    }

    #[test]
    fn sessions_have_holes_and_a_quiet_disk_has_none() {
        let sessions = trace((0..3_000).map(|k| if k == 1_500 { 7_200 } else { 1 }));
        assert_eq!(sessions.gaps(), [Gap { at: Nanos::from_secs(1_499), length: Nanos::from_secs(7_200) }]);
        assert_eq!(trace((0..500).map(|k| 600 + k % 7 * 1_000)).gaps(), []);
        assert_eq!(trace([0]).gaps(), []);
    }
}
