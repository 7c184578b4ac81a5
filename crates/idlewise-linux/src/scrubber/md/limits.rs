//! A check goes as far as its limit, and stands there until that is moved on: by steps, or once, just before the end.

use crate::knobs::NO_LIMIT;

pub const SECTOR: u64 = 512;
/// A step of each member, in sectors: a smaller one costs as many writes of superblocks.
const STEP: u64 = (16 << 20) / SECTOR;
/// How it is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// By its speed.
    Gate,
    /// By a limit that is moved on.
    Steps,
}

/// How far it may go next: to the last place that is a limit, and only from there to the end, so that it is known who has ended it.
pub fn next_limit(how: How, from: u64, unit: u64, all: u64) -> u64 {
    let last = all.saturating_sub(1) / unit * unit;
    let step = match how {
        // The whole system's limits would hold it in the middle of a step.
        How::Gate => all,
        How::Steps => STEP.next_multiple_of(unit),
    };
    if from >= last { all } else { (from + step).min(last) }
}

/// As md takes a limit: the last one need not be a multiple of the chunk.
pub fn limit_of(limit: u64, all: u64) -> String {
    if limit >= all { NO_LIMIT.into() } else { limit.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_multiples_of_the_chunk_and_the_end_comes_by_itself() {
        assert_eq!([limit_of(8, 16), limit_of(16, 16)], ["8", "max"]);
        let limits = |how, begin: u64, unit, all| {
            let next = |from: &u64| Some(next_limit(how, *from, unit, all)).filter(|_| *from < all);
            std::iter::successors(Some(begin), next).collect::<Vec<_>>()
        };
        assert_eq!(limits(How::Gate, 0, 1024, 100_000), [0, 99_328, 100_000]);
        assert_eq!(limits(How::Steps, 1024, 1024, 100_000), [1024, 33_792, 66_560, 99_328, 100_000]);
        // A chunk that is larger than a step; an array that is one chunk.
        assert_eq!(limits(How::Steps, 0, 131_072, 262_144), [0, 131_072, 262_144]);
        assert_eq!(limits(How::Gate, 0, 1024, 1024), [0, 1024]);
    }
}
