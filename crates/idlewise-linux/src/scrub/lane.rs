//! One scrub request at a time on a watched disk: what the scrub and the calibration share.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use idlewise::drive::{Driver, Next};
use idlewise::order::Extent;
use idlewise::policy::{Account, Budget, Decision, Policy, Waiting};
use idlewise::{Bytes, Nanos};
use rustix::thread::set_current_timer_slack;

use super::engine::ScrubError;
use super::reaction::Reaction;
use super::spent::Spent;
use super::{Doing, Progress, RateCap};
use crate::device::verify::{Fault, Verifier};
use crate::device::{Device, occupied};
use crate::monitor::{Event, EventKind, Monitor, Own, Untold, now};

/// How often a wait looks up: for signals and for whoever watches.
pub const TICK: Duration = Duration::from_millis(100);
/// A request in service for longer is reported, and given up when asked to stop.
const HUNG: Nanos = Nanos::from_secs(10);
/// A request in service for longer is given up: the kernel has long aborted any that it can.
const LOST: Nanos = Nanos::from_secs(600);

/// Before a request whose time is to be measured the disk must have been idle for as long; for half as long each time that these
/// requests have waited for gaps for `PATIENCE` in all, as a steady load may leave few or none of that length.
const QUIET: Nanos = Nanos::from_millis(20);
const PATIENCE: Nanos = Nanos::from_secs(10);
const SHORTEST_QUIET: Nanos = Nanos::from_micros(100);

/// How a request whose time was measured went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timed {
    /// Verified in so much time; `follows` says that nobody used the disk between the one before and this one.
    Good { time: Nanos, follows: bool },
    /// Unreadable, or something was in the way.
    Bad,
    /// The device takes no request of this length.
    Refused,
}

/// Nothing may run: the foreground is only watched.
struct Never;

impl Policy for Never {
    fn decide(&mut self, _elapsed: Nanos) -> Decision {
        Decision::Stop
    }
}

/// The device, its monitor and what the foreground does there.
pub struct Lane<'a> {
    pub device: &'a Device,
    pub verifier: Box<dyn Verifier>,
    pub monitor: Box<dyn Monitor>,
    pub driver: Driver<Box<dyn Policy>>,
    /// Caps the rate of the scrub, with that of others.
    pub cap: Option<&'a RateCap>,
    stop: &'a AtomicBool,
    events: Vec<Event>,
    /// There were events since somebody last asked.
    told: bool,
    lost: u64,
    /// By the monitor's count the disk was idle at the last look, by the events it was not.
    idle: bool,
    /// Since when the disk had been idle when its last request ended.
    used: Option<Nanos>,
    /// How long it must have been before the next.
    quiet: Nanos,
    /// For how long such requests have waited for gaps of that length.
    waited: Nanos,
    /// When it began, and on what its time went before the first request of the scrub.
    began: Nanos,
    pub spent: Spent,
    /// How soon it knows and acts.
    pub reaction: Reaction,
    /// From which tenth of the device on its times are measured.
    pub measured_from: u64,
}

impl<'a> Lane<'a> {
    pub fn new(
        device: &'a Device,
        verifier: Box<dyn Verifier>,
        monitor: Box<dyn Monitor>,
        stop: &'a AtomicBool,
    ) -> Self {
        let driver = Driver::new(Box::new(Never) as Box<dyn Policy>, now()).with_epoch(epoch());
        // A wait is to end when it should: the kernel lets others end up to 50 us later.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        Self {
            device,
            verifier,
            monitor,
            driver,
            cap: None,
            stop,
            events: Vec::new(),
            told: false,
            lost: 0,
            idle: false,
            used: None,
            quiet: QUIET,
            waited: Nanos::ZERO,
            began: now(),
            spent: Spent::new(&Doing::Calibrating, now()),
            reaction: Reaction::default(),
            measured_from: 1,
        }
    }

    /// Whether to stop.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Where it stands before the first request of the scrub.
    pub fn progress(&mut self, doing: Doing) -> Progress {
        self.spent.turn_to(&doing, now());
        Progress {
            doing,
            elapsed: self.elapsed(),
            paused: self.spent.paused(now()),
            account: self.driver.account(),
            compared: self.driver.clock().compared(),
            measured: *self.driver.measured(),
            ..Progress::default()
        }
    }

    /// How long it has been there.
    pub fn elapsed(&self) -> Nanos {
        now().since(self.began)
    }

    /// Whether nothing happened on the disk since this was last asked.
    pub fn was_quiet(&mut self) -> bool {
        !std::mem::take(&mut self.told)
    }

    /// Takes in what the foreground did, and waits for so long, or a tick.
    pub fn poll(&mut self, wait: Duration) -> Result<(), ScrubError> {
        self.events.clear();
        self.monitor.poll(wait.min(TICK), &mut self.events)?;
        self.told |= !self.events.is_empty();
        for event in &self.events {
            self.reaction.told(event);
            match (event.own, event.kind) {
                (true, EventKind::Arrival) => self.driver.step_began(event.at, Bytes(event.length.into())),
                (true, EventKind::Completion) => self.driver.step_ended(event.at),
                // It may have waited for a place in the queue.
                (false, EventKind::Arrival) => self.driver.arrived(event.arrival),
                (false, EventKind::Completion) => completed(&mut self.driver, event),
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
        Ok(())
    }

    /// Since when the disk has been idle, by the events and by the monitor's own count.
    pub fn idle_since(&mut self) -> Option<Nanos> {
        self.driver.clock().idle_since().filter(|_| self.monitor.outstanding() == 0)
    }

    /// Whether nobody used the disk since its last request.
    pub fn follows(&self) -> bool {
        self.used.is_some() && self.used == self.driver.clock().idle_since()
    }

    /// Who else checks this disk at the moment.
    pub fn others(&mut self) -> Result<Option<String>, ScrubError> {
        self.monitor.own(Own::Command);
        let who = occupied::who(self.device);
        self.monitor.own(Own::Nothing);
        self.poll(Duration::ZERO)?;
        self.driver.steps_are_over();
        Ok(who)
    }

    /// Verifies a stretch, and says how long it took. `hung` is told when that is unusually long.
    pub fn verify(
        &mut self,
        extent: Extent,
        hung: &mut dyn FnMut(&mut Self, Nanos) -> Result<(), ScrubError>,
    ) -> Result<(Result<(), Fault>, Nanos), ScrubError> {
        let start = self.device.start.0;
        self.monitor.own(match self.verifier.reads() {
            true => Own::Read(start + extent.offset.0..start + extent.end().0),
            false => Own::Command,
        });
        let began = now();
        let mut done = self.verifier.start(extent).err().map(Err);
        while done.is_none() {
            done = self.verifier.wait(TICK);
            let service = now().since(began);
            if done.is_none() && service > HUNG {
                hung(self, service)?;
                if self.stopped() || service > LOST {
                    return Err(ScrubError::Hung { place: extent.offset, service });
                }
            }
        }
        let service = now().since(began);
        self.monitor.own(Own::Nothing);
        self.poll(Duration::ZERO)?;
        // A monitor may have missed the end of it.
        self.driver.steps_are_over();
        self.used = self.driver.clock().idle_since();
        Ok((done.unwrap_or(Ok(())), service))
    }

    /// Nothing may run, within a goal or without one.
    pub fn watch_only(&mut self, account: Option<Account>) {
        let policy: Box<dyn Policy> = match account {
            Some(account) => Box::new(Budget::with_account(Never, account)),
            None => Box::new(Never),
        };
        self.driver.set_policy(policy);
    }

    /// Verifies a stretch as soon as the disk has been idle for a moment, for its time, and where a goal is to be kept as soon as its
    /// account covers a request that takes `expected`; `None` when asked to stop. `pause` is told of a wait for the account.
    pub fn timed(
        &mut self,
        extent: Extent,
        expected: Nanos,
        pause: &mut dyn FnMut(Progress),
    ) -> Result<Option<Timed>, ScrubError> {
        let Some(since) = self.quiet_since(extent.length, expected, pause)? else { return Ok(None) };
        let follows = self.follows();
        let hung = &mut |lane: &mut Self, service| {
            pause(lane.progress(Doing::Hung(service)));
            Ok(())
        };
        let (result, time) = match self.verify(extent, hung) {
            Err(ScrubError::Hung { .. }) if self.stopped() => return Ok(None),
            other => other?,
        };
        // What the foreground arrived beside may have taken longer for that.
        let follows = follows && self.used == Some(since);
        Ok(Some(match result {
            Ok(()) => Timed::Good { time, follows },
            Err(Fault::Device(problem)) => return Err(ScrubError::Device(problem)),
            Err(Fault::Refused(_)) => Timed::Refused,
            Err(_) => Timed::Bad,
        }))
    }
}

impl Lane<'_> {
    /// Waits until the disk has been idle for a moment and its account allows for a request; since when it has been.
    fn quiet_since(
        &mut self,
        size: Bytes,
        expected: Nanos,
        pause: &mut dyn FnMut(Progress),
    ) -> Result<Option<Nanos>, ScrubError> {
        let mut before = now();
        self.wait_for(size, expected);
        loop {
            if self.stopped() {
                // What the foreground did until then counts.
                self.driver.tell();
                return Ok(None);
            }
            let at = now();
            self.waited = self.waited + at.since(std::mem::replace(&mut before, at));
            if self.waited > PATIENCE && self.quiet > SHORTEST_QUIET {
                (self.quiet, self.waited) = (Nanos(self.quiet.0 / 2).max(SHORTEST_QUIET), Nanos::ZERO);
                self.wait_for(size, expected);
            }
            let Some(since) = self.idle_since() else {
                self.poll(Duration::from(self.quiet))?;
                continue;
            };
            let until = match self.driver.next(at) {
                Next::Step(_) => return Ok(Some(since)),
                Next::Paused { until } => {
                    self.driver.tell();
                    pause(self.progress(Doing::Overdrawn { left: until.since(at) }));
                    self.poll(Duration::from_nanos(until.since(at).0))?;
                    // It waited for the account, not for a gap.
                    before = now();
                    continue;
                }
                Next::AskAt(until) => until,
                Next::WhenIdle => Nanos(at.0 + self.quiet.0),
            };
            self.poll(Duration::from_nanos(until.since(at).0))?;
        }
    }

    /// From now on one request of this size is wanted once the disk has been idle for a moment.
    fn wait_for(&mut self, size: Bytes, expected: Nanos) {
        let waiting = Waiting { idle_wait: self.quiet, request_size: size };
        self.driver.tell();
        let policy: Box<dyn Policy> = match self.driver.account() {
            Some(account) => Box::new(Budget::with_account(waiting, account).expecting(expected)),
            None => Box::new(waiting),
        };
        self.driver.set_policy(policy);
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
    use super::*;
    use crate::monitor::{EventOp, MonitorError};

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
                own: false,
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

    struct NoVerifier;

    impl Verifier for NoVerifier {
        fn name(&self) -> &'static str {
            "none"
        }

        fn start(&mut self, _extent: Extent) -> Result<(), Fault> {
            Ok(())
        }

        fn wait(&mut self, _timeout: Duration) -> Option<Result<(), Fault>> {
            Some(Ok(()))
        }
    }

    /// While something is found lost, a request comes that is counted already, and told only later.
    #[test]
    fn a_request_that_comes_meanwhile_keeps_no_disk_busy_for_ever() {
        use EventKind::{Arrival, Completion};
        let file = tempfile::Builder::new().tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        file.as_file().set_len(8192).unwrap();
        let device = Device::open_any(file.path()).unwrap();
        let looks = vec![(vec![], 1, 1), (vec![Arrival], 1, 1), (vec![Completion], 0, 1), (vec![], 0, 1)];
        let monitor = Scripted(looks.into_iter(), 0, 0);
        let stop = AtomicBool::new(false);
        let mut lane = Lane::new(&device, Box::new(NoVerifier), Box::new(monitor), &stop);
        for _ in 0..4 {
            lane.poll(Duration::ZERO).unwrap();
        }
        assert!(lane.idle_since().is_some());
        // The last look saw nothing, but those before it did.
        assert!(!lane.was_quiet() && lane.was_quiet());
    }
}
