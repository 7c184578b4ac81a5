//! Which requests waited for which, inferred from a trace: reads block, writes do not (SIGMETRICS 2015, section 5.1).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Nanos;
use crate::trace::{Columns, Op};

/// Stands for nobody.
const NOBODY: u32 = u32::MAX;

/// Who waits for whom. A request depends on what happened last before it:
///
/// 1. on the end of each read that ended since the request before it arrived;
/// 2. on the arrival of the request before it, if that is a read which had not ended yet,
/// 3. or a write, ended or not.
///
/// It comes as long after each of them as in the trace, so at the latest of these times. What happened earlier it
/// depends on through the request before it. A read thus holds up the end of at most one request, the first to come after it.
#[derive(Clone, Debug)]
pub struct Causality {
    /// Of each request, the one that waits for its end.
    released: Vec<u32>,
}

/// Where no request has a response time, none can be said to have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the trace has no response times, from which a closed loop infers what waited for what: replay it open loop")]
pub struct NoResponseTimes;

impl Causality {
    /// Nobody waits: each request comes as long after the one before it as in the trace, whatever that one does.
    pub fn open_loop(requests: usize) -> Self {
        Self { released: vec![NOBODY; requests] }
    }

    /// Who waits for whom in a trace, sorted by arrival. A read without a response time is never seen to end.
    ///
    /// # Errors
    /// [`NoResponseTimes`] if no request has one.
    pub fn inferred(requests: &Columns) -> Result<Self, NoResponseTimes> {
        if !requests.has_responses() {
            return Err(NoResponseTimes);
        }
        let mut released = vec![NOBODY; requests.len()];
        let mut reading: BinaryHeap<Reverse<(Nanos, usize)>> = BinaryHeap::new();
        for (index, request) in requests.requests().enumerate() {
            while let Some(&Reverse((_, read))) = reading.peek().filter(|Reverse((end, _))| *end <= request.arrival) {
                released[read] = index as u32;
                reading.pop();
            }
            if let (Op::Read, Some(end)) = (request.op, request.end()) {
                reading.push(Reverse((end, index)));
            }
        }
        Ok(Self { released })
    }

    /// The request that waits for the end of this one.
    pub fn released_by(&self, index: usize) -> Option<usize> {
        (self.released[index] != NOBODY).then(|| self.released[index] as usize)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;
    use crate::trace::Request;

    pub(super) fn request(arrival: u64, end: u64, op: Op) -> Request {
        Request { arrival: Nanos(arrival), response: Some(Nanos(end - arrival)), op, ..Request::default() }
    }

    fn columns(requests: &[Request]) -> Columns {
        let mut columns = Columns::default();
        requests.iter().for_each(|request| columns.push(*request));
        columns
    }

    fn released(requests: &[Request]) -> Vec<Option<usize>> {
        let causality = Causality::inferred(&columns(requests)).unwrap();
        (0..requests.len()).map(|index| causality.released_by(index)).collect()
    }

    /// Figure 12: B waits for A; C, behind the write B, and D, before C's end, for no end; E for those of C and D.
    #[test]
    fn figure_12() {
        let a = request(0, 10, Op::Read);
        let b = request(15, 45, Op::Write);
        let c = request(20, 40, Op::Read);
        let d = request(30, 50, Op::Read);
        let e = request(60, 70, Op::Read);
        assert_eq!(released(&[a, b, c, d, e]), [Some(1), None, Some(4), Some(4), None]);
    }

    #[test]
    fn a_read_that_ends_as_another_request_arrives_is_waited_for() {
        let rows = [request(0, 5, Op::Read), request(5, 5, Op::Read), request(5, 9, Op::Write)];
        assert_eq!(released(&rows), [Some(1), Some(2), None]);
    }

    #[test]
    fn what_has_no_response_time_has_no_end() {
        let mut unknown = columns(&[Request::default()]);
        assert_eq!(Causality::inferred(&unknown).unwrap_err(), NoResponseTimes);
        unknown.push(request(3, 4, Op::Read));
        unknown.push(request(9, 9, Op::Read));
        let causality = Causality::inferred(&unknown).unwrap();
        assert_eq!((0..3).map(|index| causality.released_by(index)).collect::<Vec<_>>(), [None, Some(2), None]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(12), ..ProptestConfig::with_cases(1_000) })]

        /// The first request to arrive at or after the end of a read is the one that waits for it.
        #[test]
        fn as_by_looking_at_every_pair(rows in prop::collection::vec((0u64..6, 0u64..20, any::<bool>()), 1..60)) {
            let mut at = 0;
            let requests: Vec<Request> = rows.into_iter().map(|(gap, response, read)| {
                at += gap;
                request(at, at + response, if read { Op::Read } else { Op::Write })
            }).collect();
            let naive: Vec<Option<usize>> = (0..requests.len()).map(|read| {
                let waits = |&other: &usize| requests[read].op == Op::Read && requests[other].arrival >= requests[read].end().unwrap();
                (read + 1..requests.len()).find(waits)
            }).collect();
            prop_assert_eq!(released(&requests), naive);
        }
    }
}
