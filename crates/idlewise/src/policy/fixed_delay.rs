//! One request a while, whatever the foreground does: the pacing of today's scrubbers (DSN 2012, section IV-B).

use super::{Decision, Entry, Kind, Parameter, Policy, Tried};
use crate::{Bytes, Nanos};

/// Issues one request a `delay` after the last one ended; if that moment falls into a busy period, as soon as the device
/// is idle again. The first one is due when the device first becomes idle.
#[derive(Clone, Debug)]
pub struct FixedDelay {
    delay: Nanos,
    request_size: Bytes,
    /// Elapsed idle time at which the next request is due.
    due: Nanos,
    /// Whether the requests asked for have completed, so that the next question means a new delay.
    issued: bool,
}

impl FixedDelay {
    /// A request of `request_size` every `delay`.
    pub fn new(delay: Nanos, request_size: Bytes) -> Self {
        Self { delay, request_size, due: Nanos::ZERO, issued: false }
    }
}

impl Policy for FixedDelay {
    fn idle_began(&mut self, busy: Nanos, _at: Nanos) {
        self.due = self.due.since(busy);
    }

    fn decide(&mut self, elapsed: Nanos) -> Decision {
        if self.issued {
            self.due = Nanos(elapsed.0.saturating_add(self.delay.0));
            self.issued = false;
        }
        if elapsed < self.due {
            return Decision::Wait { until: self.due };
        }
        self.issued = true;
        Decision::Paced { size: self.request_size, pause: self.delay }
    }

    fn foreground_arrived(&mut self, idle: Nanos, collision: Nanos) {
        // From here on `due` counts from the foreground's arrival, until the device is idle again.
        if self.issued {
            self.due = Nanos(collision.0.saturating_add(self.delay.0));
            self.issued = false;
        } else {
            self.due = self.due.since(idle);
        }
    }
}

/// Time from the end of one background request to the start of the next.
pub const DELAY: Parameter = Parameter {
    name: "delay",
    about: "Time from one background request to the next, such as 16ms",
    kind: Kind::Time,
    tried: Tried::IdleLengths,
};

pub(super) const FIXED_DELAY: Entry = Entry {
    name: "fixed-delay",
    about: "issue one request --delay after the last one, 64KiB unless given",
    parameters: &[DELAY],
    build: |given| Ok(Box::new(FixedDelay::new(given.time(DELAY)?, given.size_or_smallest()))),
};

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_delay_runs_on_through_busy_periods() {
        let size = Bytes(65_536);
        let pause = Nanos(16 * MS);
        let mut policy = FixedDelay::new(pause, size);
        policy.idle_began(Nanos(5), Nanos::ZERO);
        assert_eq!(policy.decide(Nanos(0)), Decision::Paced { size, pause });
        assert_eq!(policy.decide(Nanos(5 * MS)), Decision::Wait { until: Nanos(21 * MS) });
        policy.foreground_arrived(Nanos(11 * MS), Nanos::ZERO);
        // 10 ms were left, 4 of which passed while busy.
        policy.idle_began(Nanos(4 * MS), Nanos::ZERO);
        assert_eq!(policy.decide(Nanos(0)), Decision::Wait { until: Nanos(6 * MS) });
        assert_eq!(policy.decide(Nanos(6 * MS)), Decision::Paced { size, pause });
        policy.foreground_arrived(Nanos(7 * MS), Nanos(4 * MS));
        policy.idle_began(Nanos(50 * MS), Nanos::ZERO);
        assert_eq!(policy.decide(Nanos(0)), Decision::Paced { size, pause });
    }
}
