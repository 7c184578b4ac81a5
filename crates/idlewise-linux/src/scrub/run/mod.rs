//! One run of a scrub: one request after another, each when the policy says so.

mod failing;
mod saving;

use std::time::Duration;

use idlewise::order::{Extent, ScanOrder};
use idlewise::policy::{Decision, Policy};
use idlewise::{Bytes, Nanos};

use super::faults::Narrowing;
use failing::Failing;
use saving::Settled;

use super::lane::{Lane, TICK};
use super::spent::Spent;
use super::{Checkpoint, Doing, Measured, Pacing, Progress, Report, ScrubError, State};
use crate::monitor::now;

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
    /// What is settled, to resume from: all that the order had handed out but for what is left.
    settled: Settled,
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
    spent: Spent,
    /// When a checkpoint was saved, or could not be, and what of it the disk knows.
    saved: Nanos,
    kept: Settled,
    /// Why the last one could not be saved.
    unsaved: Option<String>,
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
        let left = checkpoint.left().clone();
        let narrowing = Narrowing::new(lane.device.block, lane.device.size, checkpoint.errors(), &left);
        let (began, settled) = (now(), Settled { place: order.place(), left });
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
            resumed_at: settled.verified(),
            kept: settled.clone(),
            settled,
            last_good: None,
            used: None,
            failing: None,
            retries: 0,
            not_before: began,
            others: None,
            began,
            spent: Spent::new(&Doing::IdleWait, began),
            saved: began,
            unsaved: None,
            failure: None,
        }
    }

    /// Until the pass is over, the device fails or it is asked to stop.
    pub fn run(mut self) -> Result<Report, ScrubError> {
        self.save(State::Running, Doing::IdleWait);
        let mut state = match self.until_over() {
            // What is settled stays settled, and the request is left to the kernel.
            Err(hung @ ScrubError::Hung { .. }) => {
                self.failure = Some(hung.to_string());
                if self.lane.stopped() { State::Interrupted } else { State::Failed }
            }
            other => other?,
        };
        if state == State::Complete
            && let Some(size) = self.lane.device.has_grown_to()
        {
            let (was, is) = (self.lane.device.size, size);
            self.failure = Some(format!("the device grew from {was} to {is}: what is new has not been read yet"));
            state = State::Interrupted;
        }
        self.save(state, Doing::IdleWait);
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
                self.settled = Settled { place: self.order.place(), left: self.narrowing.left() };
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
            return Ok(true);
        }
        let left = self.lane.cap.map_or(Nanos::ZERO, |cap| cap.left(now()));
        let capped = left > Nanos::ZERO && self.lane.idle_since().is_some();
        if capped {
            self.wait(Doing::RateLimit, Duration::from_nanos(left.0))?;
        }
        Ok(capped)
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
        if now() < interval.held_until {
            self.wait(Doing::Control, TICK)?;
            return Ok(None);
        }
        let elapsed = now().since(since);
        if interval.stopped {
            let doing = self.overdrawn(elapsed).unwrap_or(Doing::PolicyStopped);
            self.wait(doing, TICK)?;
            return Ok(None);
        }
        if interval.wanted.0 == 0 {
            let (size, count) = match policy.decide(elapsed) {
                Decision::Issue { size, count } => (size, count),
                // It is asked again behind each.
                Decision::Paced { size, .. } => (size, 1),
                Decision::Wait { until } => {
                    let doing = self.overdrawn(elapsed).unwrap_or(Doing::IdleWait);
                    self.wait(doing, Duration::from_nanos(until.since(elapsed).0))?;
                    return Ok(None);
                }
                Decision::Stop => {
                    interval.stopped = true;
                    return Ok(None);
                }
            };
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
        interval.wanted.0 -= 1;
        Ok(Some(interval.wanted.1))
    }

    /// Whether it waits because the account is overdrawn, with the disk idle for `elapsed`.
    fn overdrawn(&self, elapsed: Nanos) -> Option<Doing> {
        let account = self.policy.account().filter(|account| account.forbids(elapsed))?;
        Some(Doing::Overdrawn { left: account.may_go_on_at().map(|at| at.since(elapsed)) })
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
        let size = size.min(self.narrowing.longest());
        let size = Bytes((size.0 / block * block).max(block));
        loop {
            if let Some(extent) = self.narrowing.next(size) {
                return Some(extent);
            }
            match self.order.next(size) {
                Some(extent) => self.narrowing.begin(extent),
                None if self.narrowing.come_back() => {}
                None => return None,
            }
        }
    }

    /// Verifies a stretch; says why the device failed, if it did.
    fn verify(&mut self, extent: Extent) -> Result<Option<String>, ScrubError> {
        self.tell(if self.narrowing.settled() { Doing::Verifying } else { Doing::Narrowing });
        if let Some(cap) = self.lane.cap {
            cap.take(extent.length, now());
        }
        let mut progress = self.progress(Doing::Verifying);
        let (result, _) = self.lane.verify(extent, &mut |_, service| {
            progress.doing = Doing::Hung(service);
            (self.watch)(&progress);
            Ok(())
        })?;
        if let Some(interval) = &mut self.interval {
            interval.own_until = now();
        }
        if let Some(failure) = self.settle(extent, result)? {
            return Ok(Some(failure));
        }
        self.settled = Settled { place: self.order.place(), left: self.narrowing.left() };
        Ok(None)
    }

    fn report(&self, state: State) -> Report {
        Report {
            state,
            failure: self.failure.clone(),
            verified: Bytes(self.settled.verified()),
            verified_now: Bytes(self.settled.verified().saturating_sub(self.resumed_at)),
            errors: self.narrowing.bad().to_vec(),
            retries: self.retries,
            elapsed: now().since(self.began),
            spent: self.spent.until(now()),
            measured: *self.lane.foreground.measured(),
            plan: self.pacing.parameters().or(self.used),
            account: self.policy.account(),
            lost_events: self.lane.monitor.lost(),
            unsaved: self.unsaved.clone(),
        }
    }
}
