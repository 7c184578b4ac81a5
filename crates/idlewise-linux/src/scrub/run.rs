//! One run of a scrub: one request after another, each when the policy says so.

use std::time::Duration;

use idlewise::order::{Extent, Place, ScanOrder};
use idlewise::policy::{Decision, Policy};
use idlewise::{Bytes, Nanos};

use super::faults::Narrowing;
use super::lane::{Lane, TICK};
use super::{BadBlocks, Checkpoint, Doing, Measured, Pacing, Progress, Report, ScrubError, State};
use crate::device::verify::Fault;
use crate::monitor::now;

/// Time between two checkpoints.
const SAVE: Nanos = Nanos::from_secs(5);
/// After as many failures in a row, or as long without a success, places that should be readable are tried: is it the
/// medium, or is the device gone?
const SUSPICIOUS: (u64, Nanos) = (256, Nanos::from_secs(60));
/// Time between two looks for others that check the same disk.
const LOOK_FOR_OTHERS: Nanos = Nanos::from_secs(10);

/// An interval that is left alone to compare is so for as long at most: a quiet night is not to be given away.
const HELD_BACK: Nanos = Nanos::from_secs(10);

/// One run.
pub struct Run<'r, 'a> {
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
    /// Where the order stood when everything that it had handed out was settled: the place to resume from.
    settled: Place,
    /// The last stretch that could be read.
    last_good: Option<Extent>,
    /// Size and idle time of the last interval's first request.
    used: Option<(Bytes, Nanos)>,
    /// Failures since then, and how things stood before them.
    failing: Option<Failing>,
    retries: u64,
    /// No request before: something was in the way of the last one.
    not_before: Nanos,
    /// Who else checks the disk, and when that was last looked at.
    others: Option<(Option<String>, Nanos)>,
    resumed_at: u64,
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
    /// It is left alone until then, to compare.
    held_until: Nanos,
    /// When our last request in it ended.
    own_until: Nanos,
}

/// A row of failures without a success.
struct Failing {
    count: u64,
    tried: Nanos,
    place: Place,
    bad: Vec<BadBlocks>,
}

impl<'r, 'a> Run<'r, 'a> {
    /// A run from where `order` stands.
    pub fn new(
        lane: &'r mut Lane<'a>,
        order: &'r mut dyn ScanOrder,
        pacing: &'r mut Pacing,
        checkpoint: &'r mut Checkpoint,
        watch: &'r mut dyn FnMut(&Progress),
    ) -> Self {
        let told = *lane.foreground.measured();
        let policy = pacing.policy(&told, &told);
        let narrowing = Narrowing::new(lane.device.block, checkpoint.errors());
        let (began, settled) = (now(), order.place());
        Self {
            lane,
            order,
            pacing,
            policy,
            told,
            account_begins: told,
            checkpoint,
            narrowing,
            watch,
            interval: None,
            resumed_at: settled.visited,
            settled,
            last_good: None,
            used: None,
            failing: None,
            retries: 0,
            not_before: began,
            others: None,
            began,
            saved: began,
            failure: None,
        }
    }

    /// Until the pass is over, the device fails or it is asked to stop.
    pub fn run(mut self) -> Result<Report, ScrubError> {
        self.save(State::Running, Doing::IdleWait)?;
        let state = match self.until_over() {
            // What is settled stays settled, and the request is left to the kernel.
            Err(hung @ ScrubError::Hung { .. }) => {
                self.failure = Some(hung.to_string());
                if self.lane.stopped() { State::Interrupted } else { State::Failed }
            }
            other => other?,
        };
        self.save(state, Doing::IdleWait)?;
        Ok(self.report(state))
    }

    fn until_over(&mut self) -> Result<State, ScrubError> {
        loop {
            // What the foreground did until then counts.
            let stopped = self.lane.stopped();
            self.lane.poll(Duration::ZERO)?;
            if stopped {
                return Ok(State::Interrupted);
            }
            if self.pacing.again(&self.lane.foreground, now())? {
                self.told = *self.lane.foreground.measured();
                self.policy = self.pacing.policy(&self.account_begins, &self.told);
                self.interval = None;
            }
            if self.held_back()? {
                continue;
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

    /// Waits while something else than the foreground is in the way; whether it did.
    fn held_back(&mut self) -> Result<bool, ScrubError> {
        let due = self.others.as_ref().is_none_or(|(_, looked)| now().since(*looked) >= LOOK_FOR_OTHERS);
        if due && self.lane.idle_since().is_some() {
            self.others = Some((self.lane.others()?, now()));
        }
        if let Some((Some(who), _)) = self.others.clone() {
            self.wait(Doing::Others(who), TICK)?;
            return Ok(true);
        }
        let left = self.not_before.since(now());
        if left > Nanos::ZERO {
            self.wait(Doing::Retrying, Duration::from_nanos(left.0))?;
        }
        Ok(left > Nanos::ZERO)
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
            Interval { since, wanted: (0, Bytes(0)), stopped: false, held_until: since, own_until: since }
        });
        if interval.stopped || now() < interval.held_until {
            self.wait(Doing::PolicyStopped, TICK)?;
            return Ok(None);
        }
        if interval.wanted.0 == 0 {
            let elapsed = now().since(since);
            match policy.decide(elapsed) {
                Decision::Issue { size, count } => {
                    let first = interval.own_until == since;
                    if first && self.pacing.keeps_a_mean() && self.lane.foreground.hold_back() {
                        interval.held_until = Nanos(now().0 + HELD_BACK.0);
                        return Ok(None);
                    }
                    if first {
                        self.used = Some((size, elapsed));
                    }
                    interval.wanted = (count, size);
                }
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
        self.tell(doing)?;
        self.lane.poll(time)
    }

    /// The next stretch: of a failed one first.
    fn stretch(&mut self, size: Bytes) -> Option<Extent> {
        let block = u64::from(self.lane.device.block);
        let size = size.min(self.narrowing.longest());
        let size = Bytes((size.0 / block * block).max(block));
        self.narrowing.next().or_else(|| self.order.next(size))
    }

    /// Verifies a stretch; says why the device failed, if it did.
    fn verify(&mut self, extent: Extent) -> Result<Option<String>, ScrubError> {
        self.tell(if self.narrowing.settled() { Doing::Verifying } else { Doing::Narrowing })?;
        let mut progress = self.progress(Doing::Verifying);
        let (result, _) = self.lane.verify(extent, &mut |_, service| {
            progress.doing = Doing::Hung(service);
            (self.watch)(&progress);
            if now().since(self.saved) >= SAVE {
                self.saved = now();
                self.checkpoint.save(&self.settled, self.narrowing.bad(), State::Running, &progress)?;
            }
            Ok(())
        })?;
        if let Some(interval) = &mut self.interval {
            interval.own_until = now();
        }
        if let Some(failure) = self.settle(extent, result)? {
            return Ok(Some(failure));
        }
        if self.narrowing.settled() {
            self.settled = self.order.place();
        }
        Ok(None)
    }

    /// Takes in how a stretch went.
    fn settle(&mut self, extent: Extent, result: Result<(), Fault>) -> Result<Option<String>, ScrubError> {
        let (kind, at) = match result {
            Ok(()) => {
                (self.last_good, self.failing) = (Some(extent), None);
                self.narrowing.verified();
                return Ok(None);
            }
            Err(Fault::Device(failure)) => return Ok(Some(failure)),
            Err(Fault::Refused(_)) if self.narrowing.refused(extent) => return Ok(None),
            Err(Fault::Refused(failure)) => return Ok(Some(failure)),
            Err(Fault::Passing { kind }) => (kind, None),
            Err(Fault::Unreadable { kind, at }) => (kind, at),
        };
        let passing = matches!(result, Err(Fault::Passing { .. }));
        self.count_failure();
        if let Some(pause) = Some(extent).filter(|_| passing).and_then(|extent| self.narrowing.again(extent)) {
            self.retries += 1;
            self.not_before = Nanos(now().0 + pause.0);
            return Ok(None);
        }
        // What does not pass after all may be the medium, or the device.
        if self.device_is_gone(passing && self.narrowing.settled())? {
            return Ok(Some(format!("nothing on it can be read any more ({kind})")));
        }
        if let Some(offset) = self.narrowing.failed(extent, kind, at) {
            self.order.unreadable(offset);
        }
        Ok(None)
    }

    /// Counts a failure, and remembers how things stood before the first of its row.
    fn count_failure(&mut self) {
        let (place, bad) = (&self.settled, self.narrowing.bad());
        let failing = self.failing.get_or_insert_with(|| Failing {
            count: 0,
            tried: now(),
            place: place.clone(),
            bad: bad.to_vec(),
        });
        failing.count += 1;
    }

    /// After many failures in a row, or when `suspected`, tries places that should be readable. If none is, what failed in that
    /// row is forgotten: the medium is not to blame, and the next run begins there again.
    fn device_is_gone(&mut self, suspected: bool) -> Result<bool, ScrubError> {
        let Some(failing) = &mut self.failing else { return Ok(false) };
        let (many, long) = SUSPICIOUS;
        if !suspected && !failing.count.is_multiple_of(many) && now().since(failing.tried) < long {
            return Ok(false);
        }
        failing.tried = now();
        let block = u64::from(self.lane.device.block);
        let blocks = self.lane.device.size.0 / block;
        let good = self.last_good.map_or(0, |extent| extent.offset.0 / block);
        for place in [good, blocks / 2, blocks - 1] {
            let extent = Extent { offset: Bytes(place * block), length: Bytes(block) };
            if self.lane.verify(extent, &mut |_, _| Ok(()))?.0.is_ok() {
                return Ok(false);
            }
        }
        if let Some(Failing { place, bad, .. }) = self.failing.take() {
            self.narrowing = Narrowing::new(self.lane.device.block, &bad);
            self.settled = place;
        }
        Ok(true)
    }

    fn save(&mut self, state: State, doing: Doing) -> Result<(), ScrubError> {
        self.saved = now();
        let progress = self.progress(doing);
        Ok(self.checkpoint.save(&self.settled, self.narrowing.bad(), state, &progress)?)
    }

    fn progress(&self, doing: Doing) -> Progress {
        Progress {
            doing,
            verified: Bytes(self.settled.visited),
            verified_now: Bytes(self.settled.visited - self.resumed_at),
            size: self.lane.device.size,
            elapsed: now().since(self.began),
            bad_blocks: self.narrowing.bad_blocks(),
            retries: self.retries,
            measured: *self.lane.foreground.measured(),
            plan: self.pacing.parameters().or(self.used),
        }
    }

    /// Tells whoever watches, and every few seconds the checkpoint.
    fn tell(&mut self, doing: Doing) -> Result<(), ScrubError> {
        let progress = self.progress(doing.clone());
        (self.watch)(&progress);
        if now().since(self.saved) >= SAVE { self.save(State::Running, doing) } else { Ok(()) }
    }

    fn report(&self, state: State) -> Report {
        Report {
            state,
            failure: self.failure.clone(),
            verified: Bytes(self.settled.visited),
            verified_now: Bytes(self.settled.visited - self.resumed_at),
            errors: self.narrowing.bad().to_vec(),
            retries: self.retries,
            elapsed: now().since(self.began),
            measured: *self.lane.foreground.measured(),
            plan: self.pacing.parameters().or(self.used),
            lost_events: self.lane.monitor.lost(),
        }
    }
}
