//! A disk that is watched: its monitor, and the driver that hears of what the monitor sees. What a scrub and a command that is run in the
//! gaps share.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use idlewise::drive::Driver;
use idlewise::policy::Policy;
use idlewise::{Bytes, Nanos};

use crate::monitor::{Event, EventKind, Monitor, MonitorError, Origin, Untold, now};

/// One disk.
pub struct Watched {
    pub monitor: Box<dyn Monitor>,
    pub driver: Driver<Box<dyn Policy>>,
    events: Vec<Event>,
    lost: u64,
    /// By the monitor's count the disk was idle at the last look, by the events it was not.
    idle: bool,
}

impl Watched {
    /// Begins to drive a policy by what the monitor sees.
    pub fn new(monitor: Box<dyn Monitor>, policy: Box<dyn Policy>) -> Self {
        let driver = Driver::new(policy, now()).with_epoch(epoch());
        Self { monitor, driver, events: Vec::new(), lost: 0, idle: false }
    }

    /// Takes in what happened on the disk, and waits for so long; what happened.
    ///
    /// # Errors
    /// If the monitor fails.
    pub fn poll(&mut self, wait: Duration) -> Result<&[Event], MonitorError> {
        self.events.clear();
        self.monitor.poll(wait, &mut self.events)?;
        for event in &self.events {
            match (event.origin, event.kind) {
                (Origin::Own, EventKind::Arrival) => self.driver.step_began(event.at, Bytes(event.length.into())),
                // What it costs is charged to both, so that together they keep what each of them promises.
                (Origin::Another, EventKind::Arrival) => self.driver.step_began(event.at, Bytes(0)),
                (Origin::Own | Origin::Another, EventKind::Completion) => self.driver.step_ended(event.at),
                // It may have waited for a place in the queue.
                (Origin::Foreground, EventKind::Arrival) => self.driver.arrived(event.arrival),
                (Origin::Foreground, EventKind::Completion) => completed(&mut self.driver, event),
            }
        }
        self.monitor.tell_each(self.driver.clock().wants_each());
        let (lost, outstanding) = (self.monitor.lost(), self.monitor.outstanding());
        // A request that arrived since the events were taken in is counted, and told of later: it would be counted twice for ever. And of
        // completions at the same moment the last one may be told of first.
        let idle = self.events.is_empty() && outstanding == 0 && self.driver.clock().idle_since().is_none();
        let stays_idle = std::mem::replace(&mut self.idle, idle) && idle;
        if lost > self.lost || lost > 0 && idle || stays_idle {
            self.lost = lost;
            self.driver.resynchronise(outstanding);
        }
        Ok(&self.events)
    }

    /// Since when the disk has been idle, by the events and by the monitor's own count.
    pub fn idle_since(&mut self) -> Option<Nanos> {
        self.driver.clock().idle_since().filter(|_| self.monitor.outstanding() == 0)
    }
}

fn completed(driver: &mut Driver<Box<dyn Policy>>, event: &Event) {
    let Untold { requests, responses, others } = event.untold;
    driver.completed_with(event.at, event.arrival, requests.into(), responses);
    others.into_iter().for_each(|others| driver.others_are_outstanding(others));
}

/// The time in nanoseconds since 1970.
pub fn since_1970() -> Nanos {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// What is added to [`now`] for that.
fn epoch() -> Nanos {
    since_1970().since(now())
}

#[cfg(test)]
mod tests {
    use idlewise::policy::{Budget, FixedDelay};

    use super::*;
    use crate::monitor::{EventOp, Own};

    /// Tells what a list says, look by look: events, requests outstanding behind them, and what was lost so far.
    struct Scripted(std::vec::IntoIter<(Vec<EventKind>, u64, u64)>, u64, u64);

    impl Monitor for Scripted {
        fn name(&self) -> &'static str {
            "scripted"
        }

        fn poll(&mut self, _wait: Duration, events: &mut Vec<Event>) -> Result<(), MonitorError> {
            let (kinds, outstanding, lost) = self.0.next().unwrap();
            (self.1, self.2) = (outstanding, lost);
            let event = |kind| Event {
                at: now(),
                arrival: now(),
                issue: None,
                offset: Bytes(0),
                length: 512,
                kind,
                op: EventOp::Read,
                origin: Origin::Foreground,
                untold: Untold::default(),
            };
            events.extend(kinds.into_iter().map(event));
            Ok(())
        }

        fn outstanding(&mut self) -> u64 {
            self.1
        }

        fn own(&mut self, _own: Own) {}

        fn lost(&self) -> u64 {
            self.2
        }
    }

    /// While something is found lost, a request comes that is counted already, and told only later.
    #[test]
    fn a_request_that_comes_meanwhile_keeps_no_disk_busy_for_ever() {
        use EventKind::{Arrival, Completion};
        let looks = vec![(vec![], 1, 1), (vec![Arrival], 1, 1), (vec![Completion], 0, 1), (vec![], 0, 1)];
        let monitor = Scripted(looks.into_iter(), 0, 0);
        let policy = Budget::new(FixedDelay::new(Nanos(1), Bytes(1)), Nanos(1));
        let mut watched = Watched::new(Box::new(monitor), Box::new(policy));
        let seen: Vec<usize> = (0..4).map(|_| watched.poll(Duration::ZERO).unwrap().len()).collect();
        assert_eq!(seen, [0, 1, 1, 0]);
        assert!(watched.idle_since().is_some());
    }
}
