//! What no policy can do, to measure policies by: the Oracle and Lossless Waiting (DSN 2012, section V-B, figure 14).

use super::{Decision, Entry, IDLE_WAIT, Kind, Parameter, Policy, Tried};
use crate::idle::Idleness;
use crate::{Bytes, Nanos};

/// Uses each interval longer than `longer_than` from its beginning: with the length of the shortest of the x % longest
/// intervals that is the Oracle, with the threshold of Waiting it is Lossless Waiting. Only a simulator can tell it how long
/// an interval will be; on a real device it does nothing.
#[derive(Clone, Copy, Debug)]
pub struct Clairvoyant {
    /// Length that an interval must exceed.
    pub longer_than: Nanos,
    /// Size of every request.
    pub request_size: Bytes,
    /// Length of the present interval.
    foreseen: Nanos,
}

impl Clairvoyant {
    /// A policy that uses intervals longer than `longer_than`.
    pub fn new(longer_than: Nanos, request_size: Bytes) -> Self {
        Self { longer_than, request_size, foreseen: Nanos::ZERO }
    }
}

impl Policy for Clairvoyant {
    fn interval_foreseen(&mut self, length: Nanos) {
        self.foreseen = length;
    }

    fn decide(&mut self, _elapsed: Nanos) -> Decision {
        if self.foreseen <= self.longer_than {
            return Decision::Stop;
        }
        Decision::Issue { size: self.request_size, count: u64::MAX }
    }

    fn foreground_arrived(&mut self, _idle: Nanos, _collision: Nanos) {
        self.foreseen = Nanos::ZERO;
    }
}

/// Share of the intervals, the longest.
pub const LONGEST: Parameter = Parameter {
    name: "longest",
    about: "Share of the intervals to use, the longest ones, such as 0.1",
    kind: Kind::Number { unit: "SHARE", least: 0.0, most: 1.0, expected: "a share from 0 to 1" },
    tried: Tried::Ratios { from: 1e-3, to: 1.0, steps: 40 },
};

pub(super) const LOSSLESS_WAITING: Entry = Entry {
    name: "lossless-waiting",
    about: "the intervals of waiting from their beginning (no real policy can)",
    parameters: &[IDLE_WAIT],
    build: |given| Ok(Box::new(Clairvoyant::new(given.time(IDLE_WAIT)?, given.size_or_smallest()))),
};

pub(super) const ORACLE: Entry = Entry {
    name: "oracle",
    about: "the --longest intervals, as a share, from their beginning (no real policy can)",
    parameters: &[LONGEST],
    build: |given| {
        let longer_than = shortest_of_longest(given.number(LONGEST)?, given.setting.past);
        Ok(Box::new(Clairvoyant::new(longer_than, given.size_or_smallest())))
    },
};

/// The length that the longest intervals of the past exceed, and no others.
fn shortest_of_longest(share: f64, past: &Idleness) -> Nanos {
    let mut lengths: Vec<Nanos> = past.intervals.iter().map(|interval| interval.length).collect();
    let count = (share * lengths.len() as f64).round() as usize;
    if count >= lengths.len() {
        return Nanos::ZERO;
    }
    let index = lengths.len() - count - 1;
    *lengths.select_nth_unstable(index).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idle::Interval;

    #[test]
    fn the_oracle_takes_as_many_as_it_is_told() {
        let interval = |ms| Interval { length: Nanos::from_millis(ms), followers: 1, busy_before: Nanos(1) };
        let past = Idleness { intervals: (1..=100).map(|k| interval(k * k % 37 + 1)).collect(), ..Idleness::default() };
        let asked = |longest| {
            let threshold = shortest_of_longest(longest, &past);
            past.intervals.iter().filter(|interval| interval.length > threshold).count()
        };
        assert_eq!((asked(0.0), asked(1.0)), (0, 100));
        // Lengths tie: no more than asked for.
        assert!((10..=15).contains(&asked(0.15)));
    }
}
