//! A scrubber of one device, what it can do, and how a run ends.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use idlewise::disk::DiskModel;
use idlewise::drive::{Compared, Measured, SecondClock};
use idlewise::order::ScanOrder;
use idlewise::policy::Account;
use idlewise::tune::Goal;
use idlewise::{Bytes, Nanos};

use super::judging::Judging;
use super::lane::Lane;
use super::learn::{self, Watch};
use super::run::{Foretold, Run};
use super::{BadBlocks, Checkpoint, CheckpointError, ContentSoFar, Pacing, Progress, RateCap, ReactionSoFar, State};
use crate::content::Found;
use crate::device::Device;
use crate::device::verify::Verifier;
use crate::monitor::{Monitor, MonitorError, now};
use crate::watched::since_1970;

/// A scrub cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ScrubError {
    /// The monitor failed.
    #[error(transparent)]
    Monitor(#[from] MonitorError),
    /// The checkpoint cannot be saved.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// No plan keeps the goal.
    #[error(transparent)]
    Tune(#[from] idlewise::tune::TuneError),
    /// The device does not work.
    #[error("the device failed: {0}")]
    Device(String),
    /// A request never came back.
    #[error("a request at byte {} has been in service for {service}: given up", place.0)]
    Hung {
        /// Where it reads.
        place: Bytes,
        /// For how long.
        service: Nanos,
    },
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Report {
    /// Complete, interrupted or failed.
    pub state: State,
    /// Why it failed.
    pub failure: Option<String>,
    /// Bytes of the device verified in this pass, those of earlier runs included.
    pub verified: Bytes,
    /// Bytes verified in this run.
    pub verified_now: Bytes,
    /// Unreadable blocks of this pass.
    pub errors: Vec<BadBlocks>,
    /// Requests of this run that had to be repeated, as something else than the medium was in the way.
    pub retries: u64,
    /// Time of this run, with what it learned first.
    pub elapsed: Nanos,
    /// Time since it had learned that.
    pub scrubbing: Nanos,
    /// What that time was spent on, under the names of [`Doing`](super::Doing).
    pub spent: BTreeMap<&'static str, Nanos>,
    /// What the foreground suffered in this run.
    pub measured: Measured,
    /// What was predicted while it ran, and what was verified in that time; nothing without a prediction of its own.
    pub forecast: Option<Foretold>,
    /// Request size and idle wait at the end, if they were chosen.
    pub plan: Option<(Bytes, Nanos)>,
    /// How the account of the mean slowdown stands, if one is kept.
    pub account: Option<Account>,
    /// What comparing used idle intervals with some left alone has found.
    pub compared: Option<Compared>,
    /// How soon it acted, and how often too late; `None` where the monitor does not see when.
    pub reaction: Option<ReactionSoFar>,
    /// Events that the monitor lost.
    pub lost_events: u64,
    /// What the owners of the data said, where they were asked.
    pub content: Option<ContentSoFar>,
    /// Why its end could not be saved.
    pub unsaved: Option<String>,
}

/// Works on one device, through one monitor.
pub struct Scrubber<'a> {
    lane: Lane<'a>,
}

impl<'a> Scrubber<'a> {
    /// Begins to watch the foreground of `device`; `stop` ends whatever it does within one request.
    pub fn new(
        device: &'a Device,
        verifier: Box<dyn Verifier>,
        monitor: Box<dyn Monitor>,
        stop: &'a AtomicBool,
    ) -> Self {
        Self { lane: Lane::new(device, verifier, monitor, stop) }
    }

    /// From now on what a run reads is judged by the owners of the data, and what they say is free is not read if `skip_free`; `checkpoint`
    /// says what they have said in this pass.
    ///
    /// # Errors
    /// If no thread can be made.
    pub fn judge_by(&mut self, found: Found, skip_free: bool, checkpoint: &mut Checkpoint) -> std::io::Result<()> {
        found.without_checksums().into_iter().for_each(|extent| checkpoint.compared(extent));
        self.lane.judging = Some(Judging::new(found, skip_free, checkpoint.compared_so_far().as_ref())?);
        self.lane.watched.monitor.own_lookups();
        Ok(())
    }

    /// Keeps the scrub within a rate that it may share with others.
    pub fn keep_within(&mut self, cap: &'a RateCap) {
        self.lane.cap = Some(cap);
    }

    /// Keeps everything from now on within a goal, with what the account of the run before owed and what was learnt until then. Some
    /// idle intervals are left alone, to compare with.
    pub fn keep(&mut self, goal: &Goal, checkpoint: &Checkpoint) {
        let mut account = checkpoint.account().copied().unwrap_or_default().resumed(goal, since_1970());
        if let Some(learnt) = checkpoint.learnt() {
            account.reserve.go_on_with(&learnt.delays);
            self.lane.watched.driver.go_on_with(learnt.comparing);
        }
        self.lane.watch_only(Some(account));
        if checkpoint.failed_before {
            // What hung there may hang again: anywhere but where the first run measures.
            self.lane.measured_from = 2 + now().0 % 8;
        }
        self.lane.watched.driver.compare(true);
        self.lane.watched.driver.count_beyond(goal.p99_slowdown);
    }

    /// From now on each foreground request earns another mean.
    pub fn keep_mean(&mut self, mean: Nanos) {
        self.lane.watch_only(self.account().map(|account| account.with_goal(mean)));
    }

    /// How the account of the slowdown stands, if one is kept.
    pub fn account(&self) -> Option<Account> {
        self.lane.watched.driver.account()
    }

    /// Name of the verifier.
    pub fn verifier(&self) -> &'static str {
        self.lane.verifier.name()
    }

    /// Name of the monitor.
    pub fn monitor(&self) -> &'static str {
        self.lane.watched.monitor.name()
    }

    /// The foreground as seen so far.
    pub fn foreground(&self) -> &SecondClock {
        self.lane.watched.driver.clock()
    }

    /// Watches the foreground for a while without a request of ours; whether it was asked to stop.
    ///
    /// # Errors
    /// If the monitor fails.
    pub fn observe(&mut self, time: Nanos, watch: Watch) -> Result<bool, ScrubError> {
        learn::observe(&mut self.lane, time, watch)
    }

    /// Measures the disk's verify curve, in its idle times and with requests that the goal can afford; `None` when asked to stop.
    ///
    /// # Errors
    /// If the monitor or the device fails.
    pub fn curve(&mut self, name: &str, goal: &Goal, watch: Watch) -> Result<Option<DiskModel>, ScrubError> {
        learn::curve(&mut self.lane, name, goal, watch)
    }

    /// Scrubs in `order` from where it stands, paced by `pacing`, until the pass is over, the device fails or it is asked
    /// to stop. What the foreground suffered while the curve was measured counts.
    ///
    /// # Errors
    /// If the monitor or the checkpoint fails; the position saved last is then kept.
    pub fn run(
        &mut self,
        order: &mut dyn ScanOrder,
        pacing: &mut Pacing,
        checkpoint: &mut Checkpoint,
        watch: &mut dyn FnMut(&Progress),
    ) -> Result<Report, ScrubError> {
        Run::new(&mut self.lane, order, pacing, checkpoint, watch).run()
    }
}

impl Report {
    /// Of a scrub that was stopped before its first request.
    pub fn before_the_first_request(checkpoint: &Checkpoint, scrubber: &Scrubber) -> Self {
        Self {
            state: State::Interrupted,
            failure: None,
            verified: checkpoint.verified(),
            verified_now: Bytes(0),
            errors: checkpoint.errors().to_vec(),
            retries: 0,
            elapsed: scrubber.lane.elapsed(),
            scrubbing: Nanos::ZERO,
            spent: scrubber.lane.spent.until(now()),
            measured: *scrubber.foreground().measured(),
            forecast: None,
            plan: None,
            account: scrubber.account(),
            compared: scrubber.foreground().compared(),
            reaction: None,
            lost_events: scrubber.lane.watched.monitor.lost(),
            content: checkpoint.content().cloned(),
            unsaved: None,
        }
    }
}
