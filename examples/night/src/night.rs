//! A policy that waits less at night, and keeps away from the hour of the backup. It knows the time of day from whoever drives it: a
//! scrub, or a trace whose times are those of a clock.

use idlewise::policy::{Decision, Entry, Kind, Parameter, Policy, REQUEST_SIZE, Tried, Value};
use idlewise::{Bytes, Nanos};

/// Hours are those of UTC.
#[derive(Clone, Debug)]
pub struct Night {
    night_wait: Nanos,
    day_wait: Nanos,
    request_size: Bytes,
    /// When the idle interval began, in nanoseconds since 1970.
    since: Nanos,
}

const HOUR: Nanos = Nanos::from_secs(3_600);

impl Policy for Night {
    fn idle_began(&mut self, _busy: Nanos, at: Nanos) {
        self.since = at;
    }

    fn decide(&mut self, elapsed: Nanos) -> Decision {
        let wait = match (self.since + elapsed).0 / HOUR.0 % 24 {
            // The backup runs: ask again a minute later.
            2 => return Decision::Wait { until: elapsed + Nanos::from_secs(60) },
            22.. | 0..6 => self.night_wait,
            _ => self.day_wait,
        };
        if elapsed < wait {
            return Decision::Wait { until: wait };
        }
        // One at a time, so that it is asked again behind each: the hour may be over.
        Decision::Issue { size: self.request_size, count: 1 }
    }
}

/// Becomes the option `--night-wait`.
const NIGHT_WAIT: Parameter = Parameter {
    name: "night-wait",
    about: "Idle time before the first background request from 22 to 6 o'clock UTC",
    kind: Kind::Time,
    tried: Tried::IdleLengths,
};

/// Becomes the option `--day-wait`.
const DAY_WAIT: Parameter = Parameter {
    name: "day-wait",
    about: "Idle time before the first background request from 6 to 22 o'clock UTC",
    kind: Kind::Time,
    tried: Tried::One(Value::Time(Nanos::from_secs(1))),
};

/// The line of the table.
pub const NIGHT: Entry = Entry {
    name: "night",
    about: "wait for --night-wait at night and for --day-wait by day; nothing from 2 to 3 o'clock",
    parameters: &[NIGHT_WAIT, DAY_WAIT],
    build: |given| {
        let (night_wait, day_wait) = (given.time(NIGHT_WAIT)?, given.time(DAY_WAIT)?);
        Ok(Box::new(Night { night_wait, day_wait, request_size: given.size(REQUEST_SIZE)?, since: Nanos::ZERO }))
    },
};

#[cfg(test)]
mod tests {
    use idlewise::drive::{Driver, Next};
    use idlewise::policy::{Budget, testing};

    use super::*;

    fn policy() -> Night {
        let ms = Nanos::from_millis;
        Night { night_wait: ms(20), day_wait: ms(500), request_size: Bytes::from_kib(512), since: Nanos::ZERO }
    }

    #[test]
    fn keeps_the_protocol() {
        testing::check(policy, 1);
    }

    #[test]
    fn waits_less_at_night_and_not_at_all_during_the_backup() {
        let at = |hour: u64| {
            let mut driver = Driver::new(Budget::new(policy(), Nanos::from_millis(1)), Nanos::ZERO);
            driver = driver.with_epoch(Nanos(hour * HOUR.0));
            match driver.next(Nanos::ZERO) {
                Next::AskAt(wait) => wait,
                other => panic!("{other:?} at once"),
            }
        };
        assert_eq!([at(23), at(12), at(2)], [20, 500, 60_000].map(Nanos::from_millis));
    }
}
