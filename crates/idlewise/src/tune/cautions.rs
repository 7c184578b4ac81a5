//! What to be careful about in a plan.

use std::fmt;

use crate::Nanos;
use crate::idle::Idleness;
use crate::simulate::Outcome;
use crate::tune::Arrivals;

/// Fewer idle intervals are too few to plan from.
const FEW_INTERVALS: usize = 200;
/// With fewer collisions, where they fall is luck.
const FEW_COLLISIONS: u64 = 30;
/// Traces shorter than this say nothing of other hours.
const A_DAY: Nanos = Nanos::from_secs(86_400);

/// A reason to trust a plan less. As text it is one sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caution {
    /// The trace has only so many idle intervals.
    FewIntervals(usize),
    /// The trace covers only so long.
    ShortSpan(Nanos),
    /// Only so many scrub requests collide, at the recorded moments; [`Arrivals::AnyMoment`] plans for others.
    FewCollisions(u64),
}

/// What to be careful about in a plan that was simulated on these disks, with this outcome.
pub fn cautions(outcome: &Outcome, disks: &[Idleness], arrivals: Arrivals) -> Vec<Caution> {
    let span = disks.iter().map(Idleness::span).max().unwrap_or_default();
    let intervals: usize = disks.iter().map(|disk| disk.intervals.len()).sum();
    let collisions = outcome.collisions;
    let by_luck = (1..FEW_COLLISIONS).contains(&collisions) && arrivals == Arrivals::Recorded;
    let all = [
        (intervals < FEW_INTERVALS).then_some(Caution::FewIntervals(intervals)),
        (span < A_DAY).then_some(Caution::ShortSpan(span)),
        by_luck.then_some(Caution::FewCollisions(collisions)),
    ];
    all.into_iter().flatten().collect()
}

impl fmt::Display for Caution {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::FewIntervals(many) => {
                write!(f, "the trace is too short to plan from: it has {many} idle intervals")
            }
            Self::ShortSpan(span) => {
                write!(f, "the trace covers {span}: it does not show what the disk does at other hours of the day")
            }
            Self::FewCollisions(many) => write!(
                f,
                "only {many} scrub requests collide, and where they do is luck: another time the slowdown may be twice the goal"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idle::Interval;

    /// A disk with so many idle intervals in so many hours.
    fn disk(intervals: usize, hours: u64) -> Idleness {
        let interval = Interval { length: Nanos(1_000), ..Interval::default() };
        Idleness { intervals: vec![interval; intervals], end: Nanos::from_secs(hours * 3_600), ..Idleness::default() }
    }

    #[test]
    fn each_reason_is_told_where_it_holds() {
        let outcome = |collisions| Outcome { collisions, ..Outcome::default() };
        let told = |collisions, disk, arrivals| cautions(&outcome(collisions), &[disk], arrivals);
        assert_eq!(told(0, disk(200, 24), Arrivals::Recorded), []);
        assert_eq!(told(30, disk(200, 24), Arrivals::Recorded), []);
        assert_eq!(told(29, disk(200, 24), Arrivals::Recorded), [Caution::FewCollisions(29)]);
        assert_eq!(told(29, disk(200, 24), Arrivals::AnyMoment), []);
        let both = [Caution::FewIntervals(199), Caution::ShortSpan(Nanos::from_secs(23 * 3_600))];
        assert_eq!(told(0, disk(199, 23), Arrivals::Recorded), both);
    }
}
