//! The scrub itself: one request after another, each when the policy says so.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use idlewise::disk::DiskModel;
use idlewise::order::{Extent, ScanOrder};
use idlewise::policy::{Decision, Policy};
use idlewise::{Bytes, Nanos};

use super::faults::Narrowing;
use super::lane::{Lane, TICK};
use super::learn::{self, Watch};
use super::{BadBlocks, Checkpoint, CheckpointError, Doing, Foreground, Measured, Pacing, Progress, State};
use crate::device::Device;
use crate::device::verify::{DirectRead, Fault};
use crate::monitor::{Monitor, MonitorError, now};

/// Time between two checkpoints.
const SAVE: Nanos = Nanos::from_secs(5);
/// After as many failures in a row, places that should be readable are tried: is it the medium, or is the device gone?
const SUSPICIOUS: u64 = 256;

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
    /// Time of this run.
    pub elapsed: Nanos,
    /// What the foreground suffered in this run.
    pub measured: Measured,
    /// Request size and idle wait at the end, if they were chosen.
    pub plan: Option<(Bytes, Nanos)>,
    /// Events that the monitor lost.
    pub lost_events: u64,
}

/// Works on one device, through one monitor.
pub struct Scrubber<'a> {
    lane: Lane<'a>,
}

impl<'a> Scrubber<'a> {
    /// Begins to watch the foreground of `device`; `stop` ends whatever it does within one request.
    ///
    /// # Errors
    /// If reading past the page cache is not possible.
    pub fn new(
        device: &'a Device,
        monitor: Box<dyn Monitor>,
        stop: &'a AtomicBool,
        largest: Bytes,
    ) -> Result<Self, ScrubError> {
        let reader = DirectRead::new(device, largest.max(learn::LARGEST))
            .map_err(|fault| ScrubError::Device(fault.to_string()))?;
        Ok(Self { lane: Lane::new(device, Box::new(reader), monitor, stop) })
    }

    /// Name of the verifier.
    pub fn verifier(&self) -> &'static str {
        self.lane.verifier.name()
    }

    /// Name of the monitor.
    pub fn monitor(&self) -> &'static str {
        self.lane.monitor.name()
    }

    /// The foreground as seen so far.
    pub fn foreground(&self) -> &Foreground {
        &self.lane.foreground
    }

    /// Watches the foreground for a while without a request of ours; whether it was asked to stop.
    ///
    /// # Errors
    /// If the monitor fails.
    pub fn observe(&mut self, time: Nanos, watch: Watch) -> Result<bool, ScrubError> {
        learn::observe(&mut self.lane, time, watch)
    }

    /// Measures the disk's verify curve, in its idle times and with requests that take about `longest` at most; `None`
    /// when asked to stop.
    ///
    /// # Errors
    /// If the monitor or the device fails.
    pub fn curve(&mut self, name: &str, longest: Nanos, watch: Watch) -> Result<Option<DiskModel>, ScrubError> {
        learn::curve(&mut self.lane, name, longest, watch)
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
        let told = *self.lane.foreground.measured();
        let policy = pacing.policy(&told, &told);
        let narrowing = Narrowing::new(self.lane.device.block, checkpoint.errors());
        let began = now();
        let mut run = Run {
            lane: &mut self.lane,
            resumed_at: order.position(),
            order,
            pacing,
            policy,
            told,
            account_begins: told,
            checkpoint,
            narrowing,
            watch,
            interval: None,
            next: None,
            last_good: None,
            failing: None,
            began,
            saved: began,
            failure: None,
        };
        run.save(State::Running)?;
        let state = run.until_over()?;
        run.save(state)?;
        Ok(run.report(state))
    }
}

impl Report {
    /// Of a scrub that was stopped before its first request.
    pub fn before_the_first_request(checkpoint: &Checkpoint, measured: Measured) -> Self {
        Self {
            state: State::Interrupted,
            failure: None,
            verified: checkpoint.position(),
            verified_now: Bytes(0),
            errors: checkpoint.errors().to_vec(),
            elapsed: Nanos::ZERO,
            measured,
            plan: None,
            lost_events: 0,
        }
    }
}

/// One run.
struct Run<'r, 'a> {
    lane: &'r mut Lane<'a>,
    order: &'r mut dyn ScanOrder,
    pacing: &'r mut Pacing,
    policy: Box<dyn Policy>,
    /// What the policy knows of the foreground's slowdown.
    told: Measured,
    /// What it had suffered when the run began: learning is not charged to the account.
    account_begins: Measured,
    checkpoint: &'r mut Checkpoint,
    narrowing: Narrowing,
    watch: &'r mut dyn FnMut(&Progress),
    interval: Option<Interval>,
    /// A stretch handed out by the order and not verified yet.
    next: Option<Extent>,
    /// The last stretch that could be read.
    last_good: Option<Extent>,
    /// Failures since then, and how things stood before them.
    failing: Option<Failing>,
    resumed_at: Bytes,
    began: Nanos,
    saved: Nanos,
    failure: Option<String>,
}

/// The idle interval that the policy was told of.
struct Interval {
    since: Nanos,
    /// Requests that the policy still wants before it is asked again, and their size.
    wanted: (u64, Bytes),
    /// It wants no more in this interval.
    stopped: bool,
    /// When our last request in it ended.
    own_until: Nanos,
}

/// A row of failures without a success.
struct Failing {
    count: u64,
    position: Bytes,
    bad: Vec<BadBlocks>,
}

impl Run<'_, '_> {
    fn until_over(&mut self) -> Result<State, ScrubError> {
        loop {
            // What the foreground did until then counts.
            let stopped = self.lane.stopped();
            self.lane.poll(Duration::ZERO)?;
            if stopped {
                return Ok(State::Interrupted);
            }
            if now().since(self.saved) >= SAVE {
                self.save(State::Running)?;
            }
            if self.pacing.again(&self.lane.foreground, now())? {
                self.told = *self.lane.foreground.measured();
                self.policy = self.pacing.policy(&self.account_begins, &self.told);
                self.interval = None;
            }
            let Some(size) = self.turn()? else { continue };
            let Some(extent) = self.stretch(size) else {
                return Ok(State::Complete);
            };
            if let Some(failure) = self.verify(extent)? {
                self.failure = Some(failure);
                return Ok(State::Failed);
            }
        }
    }

    /// Asks the policy; the size of a request to issue now, or `None` after having waited for a while.
    fn turn(&mut self) -> Result<Option<Bytes>, ScrubError> {
        let Some(since) = self.lane.idle_since() else {
            self.end_interval();
            self.wait(Doing::ForegroundActive, TICK)?;
            return Ok(None);
        };
        if self.interval.as_ref().is_some_and(|interval| interval.since != since) {
            self.end_interval();
        }
        self.tell_policy();
        let policy = &mut self.policy;
        let busy = self.lane.foreground.busy();
        let interval = self.interval.get_or_insert_with(|| {
            policy.idle_began(busy);
            Interval { since, wanted: (0, Bytes(0)), stopped: false, own_until: since }
        });
        if interval.stopped {
            self.wait(Doing::PolicyStopped, TICK)?;
            return Ok(None);
        }
        if interval.wanted.0 == 0 {
            let elapsed = now().since(since);
            match policy.decide(elapsed) {
                Decision::Issue { size, count } => interval.wanted = (count, size),
                Decision::Wait { until } => {
                    self.wait(Doing::IdleWait, Duration::from_nanos(until.since(elapsed).0))?;
                    return Ok(None);
                }
                Decision::Stop => {
                    interval.stopped = true;
                    return Ok(None);
                }
            }
        }
        interval.wanted.0 -= 1;
        Ok(Some(interval.wanted.1))
    }

    /// Tells the policy what the foreground suffered since it was last told.
    fn tell_policy(&mut self) {
        let measured = *self.lane.foreground.measured();
        let requests = measured.foreground_requests - self.told.foreground_requests;
        if requests > 0 {
            self.policy.foreground_served(requests, measured.slowdown_sum - self.told.slowdown_sum);
            self.told = measured;
        }
    }

    /// Tells the policy that foreground work ended the interval.
    fn end_interval(&mut self) {
        if let Some(interval) = self.interval.take() {
            let arrived = self.lane.foreground.busy_since();
            self.policy.foreground_arrived(arrived.since(interval.since), interval.own_until.since(arrived));
        }
    }

    fn wait(&mut self, doing: Doing, time: Duration) -> Result<(), ScrubError> {
        self.tell(doing);
        self.lane.poll(time)
    }

    /// The next stretch: of a failed one first.
    fn stretch(&mut self, size: Bytes) -> Option<Extent> {
        let block = u64::from(self.lane.device.block);
        let size = Bytes((size.0 / block * block).max(block));
        self.next = self.narrowing.next().or_else(|| self.order.next(size));
        self.next
    }

    /// Verifies a stretch; says why the device failed, if it did.
    fn verify(&mut self, extent: Extent) -> Result<Option<String>, ScrubError> {
        self.tell(if self.narrowing.unsettled().is_some() { Doing::Narrowing } else { Doing::Verifying });
        let mut hung = Vec::new();
        let (result, _) = self.lane.verify(extent, &mut |_, service| hung.push(service))?;
        if let Some(interval) = &mut self.interval {
            interval.own_until = now();
        }
        if let Some(&service) = hung.last() {
            self.tell(Doing::Hung(service));
        }
        match result {
            Err(Fault::Device(failure)) => return Ok(Some(failure)),
            Err(Fault::Unreadable { kind }) => {
                if self.device_is_gone()? {
                    return Ok(Some("nothing on it can be read any more".into()));
                }
                self.narrowing.failed(extent, kind);
            }
            Ok(()) => (self.last_good, self.failing) = (Some(extent), None),
        }
        self.next = None;
        Ok(None)
    }

    /// Counts a failure; after many in a row, tries places that should be readable. If none is, what failed in that row
    /// is forgotten: the medium is not to blame, and the next run begins there again.
    fn device_is_gone(&mut self) -> Result<bool, ScrubError> {
        let position = self.position();
        let bad = self.narrowing.bad();
        let failing = self.failing.get_or_insert_with(|| Failing { count: 0, position, bad: bad.to_vec() });
        failing.count += 1;
        if !failing.count.is_multiple_of(SUSPICIOUS) {
            return Ok(false);
        }
        let block = u64::from(self.lane.device.block);
        let blocks = self.lane.device.size.0 / block;
        let good = self.last_good.map_or(0, |extent| extent.offset.0 / block);
        for place in [good, blocks / 2, blocks - 1] {
            let extent = Extent { offset: Bytes(place * block), length: Bytes(block) };
            if self.lane.verify(extent, &mut |_, _| ())?.0.is_ok() {
                return Ok(false);
            }
        }
        if let Some(Failing { position, bad, .. }) = self.failing.take() {
            self.narrowing = Narrowing::new(self.lane.device.block, &bad);
            self.next = Some(Extent { offset: position, length: Bytes(0) });
        }
        Ok(true)
    }

    /// Every byte in front of it was visited.
    fn position(&self) -> Bytes {
        let next = self.next.map(|extent| extent.offset);
        let unsettled = self.narrowing.unsettled();
        self.order.position().min(next.unwrap_or(Bytes(u64::MAX))).min(unsettled.unwrap_or(Bytes(u64::MAX)))
    }

    fn save(&mut self, state: State) -> Result<(), ScrubError> {
        self.saved = now();
        Ok(self.checkpoint.save(self.position(), self.narrowing.bad(), state)?)
    }

    fn tell(&mut self, doing: Doing) {
        let verified = self.position();
        (self.watch)(&Progress {
            doing,
            verified,
            verified_now: Bytes(verified.0 - self.resumed_at.0),
            size: self.lane.device.size,
            elapsed: now().since(self.began),
            bad_blocks: self.narrowing.bad_blocks(),
            measured: *self.lane.foreground.measured(),
            plan: Some(self.pacing.parameters()),
        });
    }

    fn report(&self, state: State) -> Report {
        let verified = self.position();
        Report {
            state,
            failure: self.failure.clone(),
            verified,
            verified_now: Bytes(verified.0 - self.resumed_at.0),
            errors: self.narrowing.bad().to_vec(),
            elapsed: now().since(self.began),
            measured: *self.lane.foreground.measured(),
            plan: Some(self.pacing.parameters()),
            lost_events: self.lane.monitor.lost(),
        }
    }
}
