//! One scrub request at a time on a watched disk: what the scrub and the calibration share.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use idlewise::drive::Next;
use idlewise::order::Extent;
use idlewise::policy::{Account, Budget, Decision, Policy, Waiting};
use idlewise::{Bytes, Nanos};
use rustix::thread::set_current_timer_slack;

use super::engine::ScrubError;
use super::judging::Judging;
use super::reaction::Reaction;
use super::spent::Spent;
use super::{Doing, Progress, RateCap};
use crate::device::verify::{Fault, Verifier};
use crate::device::{Device, occupied};
use crate::monitor::{Monitor, Own, now};
use crate::watched::Watched;

/// How often a wait looks up: for signals and for whoever watches.
pub const TICK: Duration = Duration::from_millis(100);
/// A wait ends awake, from so long before its end on: a sleeper runs again within this, nearly always. That takes one in so many parts of the
/// time at most.
const AWAKE: Nanos = Nanos::from_micros(80);
const AWAKE_SHARE: u64 = 100;
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
    /// Unreadable, or something else was in the way.
    Bad { unreadable: bool },
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
    /// By the owners of the data, where they are asked.
    pub judging: Option<Judging>,
    pub watched: Watched,
    /// Caps the rate of the scrub, with that of others.
    pub cap: Option<&'a RateCap>,
    stop: &'a AtomicBool,
    /// There were events since somebody last asked.
    told: bool,
    /// Since when the disk had been idle when its last request ended.
    used: Option<Nanos>,
    /// How long it must have been before the next.
    quiet: Nanos,
    /// For how long such requests have waited for gaps of that length.
    waited: Nanos,
    /// When it began, and on what its time went before the first request of the scrub.
    began: Nanos,
    pub spent: Spent,
    /// For how long it was awake only in order not to be late.
    awake: Nanos,
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
        // A wait is to end when it should: the kernel lets others end up to 50 us later.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        Self {
            device,
            verifier,
            judging: None,
            watched: Watched::new(monitor, Box::new(Never)),
            cap: None,
            stop,
            told: false,
            used: None,
            quiet: QUIET,
            waited: Nanos::ZERO,
            began: now(),
            spent: Spent::new(&Doing::Calibrating, now()),
            awake: Nanos::ZERO,
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
            account: self.watched.driver.account(),
            compared: self.watched.driver.clock().compared(),
            measured: *self.watched.driver.measured(),
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
        let events = self.watched.poll(wait.min(TICK))?;
        self.told |= !events.is_empty();
        events.iter().for_each(|event| self.reaction.told(event));
        Ok(())
    }

    /// Waits until the policy may run, awake for the last of it: whoever sleeps wakes up late. A foreground request ends it, and others that
    /// want the processor have it meanwhile.
    pub fn poll_until(&mut self, due: Nanos) -> Result<(), ScrubError> {
        self.poll(Duration::from(due.since(now()).since(AWAKE)))?;
        let began = now();
        let left = due.since(began);
        if left > AWAKE {
            return Ok(());
        }
        if self.awake.0 > self.elapsed().0 / AWAKE_SHARE {
            return self.poll(Duration::from(left));
        }
        while now() < due && self.watched.monitor.outstanding() == 0 {
            rustix::thread::sched_yield();
        }
        self.awake = self.awake + now().since(began);
        self.poll(Duration::ZERO)
    }

    /// Since when the disk has been idle, by the events and by the monitor's own count.
    pub fn idle_since(&mut self) -> Option<Nanos> {
        self.watched.idle_since()
    }

    /// Whether nobody used the disk since its last request.
    pub fn follows(&self) -> bool {
        self.used.is_some() && self.used == self.watched.driver.clock().idle_since()
    }

    /// Who else checks this disk at the moment.
    pub fn others(&mut self) -> Result<Option<String>, ScrubError> {
        self.watched.monitor.own(Own::Command);
        let who = occupied::who(self.device);
        self.watched.monitor.own(Own::Nothing);
        self.poll(Duration::ZERO)?;
        self.watched.driver.steps_are_over();
        Ok(who)
    }

    /// Verifies a stretch, and says how long it took. `hung` is told when that is unusually long.
    pub fn verify(
        &mut self,
        extent: Extent,
        hung: &mut dyn FnMut(&mut Self, Nanos) -> Result<(), ScrubError>,
    ) -> Result<(Result<(), Fault>, Nanos), ScrubError> {
        let start = self.device.start.0;
        self.watched.monitor.own(match self.verifier.reads() {
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
        self.watched.monitor.own(Own::Nothing);
        self.poll(Duration::ZERO)?;
        // A monitor may have missed the end of it.
        self.watched.driver.steps_are_over();
        self.used = self.watched.driver.clock().idle_since();
        Ok((done.unwrap_or(Ok(())), service))
    }

    /// Nothing may run, within a goal or without one.
    pub fn watch_only(&mut self, account: Option<Account>) {
        let policy: Box<dyn Policy> = match account {
            Some(account) => Box::new(Budget::with_account(Never, account)),
            None => Box::new(Never),
        };
        self.watched.driver.set_policy(policy);
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
            Err(fault) => Timed::Bad { unreadable: matches!(fault, Fault::Unreadable { .. }) },
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
                self.watched.driver.tell();
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
            let until = match self.watched.driver.next(at) {
                Next::Step(_) => return Ok(Some(since)),
                Next::Paused { until } => {
                    self.watched.driver.tell();
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
        self.watched.driver.tell();
        let policy: Box<dyn Policy> = match self.watched.driver.account() {
            Some(account) => Box::new(Budget::with_account(waiting, account).expecting(expected)),
            None => Box::new(waiting),
        };
        self.watched.driver.set_policy(policy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::{Event, EventKind, EventOp, MonitorError, Origin, Untold};

    /// Sees one request after a while.
    struct Late(u32);

    impl Monitor for Late {
        fn name(&self) -> &'static str {
            "late"
        }

        fn poll(&mut self, _wait: Duration, events: &mut Vec<Event>) -> Result<(), MonitorError> {
            self.0 += 1;
            let (at, arrival, issue, length) = (now(), now(), None, 512);
            let (kind, op, untold) = (EventKind::Arrival, EventOp::Read, Untold::default());
            let event =
                Event { at, arrival, issue, kind, offset: Bytes(0), length, op, origin: Origin::Foreground, untold };
            events.extend((self.0 == 2).then_some(event));
            Ok(())
        }

        fn outstanding(&mut self) -> u64 {
            1
        }

        fn own(&mut self, _own: Own) {}

        fn lost(&self) -> u64 {
            0
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

    #[test]
    fn the_last_look_may_see_nothing_and_those_before_it_something() {
        let file = tempfile::Builder::new().tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        file.as_file().set_len(8192).unwrap();
        let device = Device::open_any(file.path()).unwrap();
        let stop = AtomicBool::new(false);
        let mut lane = Lane::new(&device, Box::new(NoVerifier), Box::new(Late(0)), &stop);
        for _ in 0..3 {
            lane.poll(Duration::ZERO).unwrap();
        }
        assert!(!lane.was_quiet() && lane.was_quiet());
    }
}
