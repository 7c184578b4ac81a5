//! One run of a scrub: one request after another, each when the policy says so.

mod failing;
mod forecast;
mod free;
mod judged;
mod saving;
mod second_look;

use std::time::Duration;

use idlewise::drive::Next;
use idlewise::order::{Extent, ScanOrder};
use idlewise::{Bytes, Nanos};

use super::ceiling::Took;
use super::faults::Narrowing;
use failing::Failing;
use forecast::Forecast;
use saving::Settled;
use second_look::SecondLook;

use super::lane::{Lane, TICK};
use super::spent::Spent;
use super::{Checkpoint, Doing, Pacing, Progress, Report, ScrubError, State};
use crate::content::geometry;
use crate::device::Ground;
use crate::device::verify::Fault;
use crate::monitor::now;

pub use forecast::Foretold;

/// Time between two looks for others that check the same disk.
const LOOK_FOR_OTHERS: Nanos = Nanos::from_secs(10);

/// While the foreground is active, it is looked no more often than this whether the disk is idle. Where it is found busy again and again, it is
/// looked less and less often, until the looks cost a processor next to nothing.
const SHORTEST_WAIT: Duration = Duration::from_micros(250);
const BUSY_WAIT: Duration = Duration::from_millis(2);

/// One run.
pub struct Run<'r, 'a> {
    lane: &'r mut Lane<'a>,
    order: &'r mut dyn ScanOrder,
    pacing: &'r mut Pacing,
    checkpoint: &'r mut Checkpoint,
    narrowing: Narrowing,
    watch: &'r mut dyn FnMut(&Progress),
    /// What is settled, to resume from: all that the order had handed out but for what is left.
    settled: Settled,
    /// What was read, and is being judged.
    unjudged: Option<Extent>,
    /// The last stretch that could be read.
    last_good: Option<Extent>,
    /// Failures since then, and how things stood before them.
    failing: Option<Failing>,
    /// The stretch of a request that was never answered.
    hung: Option<Extent>,
    retries: u64,
    /// When the rest is over: what could not be read is read once more.
    second_look: Option<SecondLook>,
    /// That is over as well: what could be read then is judged.
    has_looked: bool,
    /// No request before: something was in the way of the last one.
    not_before: Nanos,
    /// Who else checks the disk, and when that was last looked at.
    others: Option<(Option<String>, Nanos)>,
    resumed_at: u64,
    /// The stretch that is to be read without anything behind it.
    alone: Option<Extent>,
    /// Stretches that the pass visits once more.
    again: Vec<Extent>,
    /// Bytes that this run has not read, as they are free.
    skipped: u64,
    /// How long it waits before it looks again, where nothing is due.
    rest: Duration,
    /// The same where the disk was busy at the last look.
    busy: Duration,
    /// No request is longer: others are to find room in the disk's queue.
    longest: Bytes,
    began: Nanos,
    spent: Spent,
    forecast: Forecast,
    /// When a checkpoint was saved, or could not be, and what of it the disk knows.
    saved: Nanos,
    kept: Settled,
    /// Why the last one could not be saved.
    unsaved: Option<String>,
    failure: Option<String>,
    /// How data lay on the members of an array when the run began, and what the device lay on.
    geometry: Option<String>,
    ground: Option<Ground>,
    /// Why what was read since the last checkpoint may have been read from elsewhere.
    left: Option<String>,
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
        lane.watched.driver.tell();
        lane.watched.driver.set_policy(pacing.policy(lane.watched.driver.account()));
        let left = checkpoint.left().clone();
        let narrowing = Narrowing::new(lane.device.block, lane.device.size, checkpoint.errors(), &left);
        let longest = lane.device.most_in_service();
        let device = lane.device;
        let (began, settled) = (now(), Settled { place: order.place(), left });
        Self {
            lane,
            order,
            pacing,
            checkpoint,
            narrowing,
            watch,
            resumed_at: settled.verified(),
            again: Vec::new(),
            skipped: 0,
            alone: None,
            rest: SHORTEST_WAIT,
            busy: Duration::ZERO,
            kept: settled.clone(),
            settled,
            unjudged: None,
            last_good: None,
            failing: None,
            hung: None,
            retries: 0,
            second_look: None,
            has_looked: false,
            not_before: began,
            others: None,
            longest,
            began,
            spent: Spent::new(&Doing::IdleWait, began),
            forecast: Forecast::default(),
            saved: began,
            unsaved: None,
            failure: None,
            geometry: geometry(device),
            ground: Ground::of(device),
            left: None,
        }
    }

    /// Until the pass is over, the device fails or it is asked to stop.
    pub fn run(mut self) -> Result<Report, ScrubError> {
        self.save(State::Running, Doing::IdleWait);
        let ended = self.until_over().and_then(|state| match state {
            State::Complete | State::Interrupted if self.device_is_gone_at_last()? => {
                self.failure = Some("nothing on it can be read any more".into());
                Ok(State::Failed)
            }
            other => Ok(other),
        });
        let mut state = match ended {
            // What is settled stays settled, and the request is left to the kernel.
            Err(hung @ ScrubError::Hung { .. }) => {
                self.failure = Some(hung.to_string());
                if self.lane.stopped() { State::Interrupted } else { State::Failed }
            }
            other => other?,
        };
        if let Some(hung) = self.hung.take() {
            self.put_off(hung);
        }
        self.forget_failures();
        if state == State::Complete
            && let Some(size) = self.lane.device.has_grown_to()
        {
            let (was, is) = (self.lane.device.size, size);
            self.failure = Some(format!("the device grew from {was} to {is}: what is new has not been read yet"));
            state = State::Interrupted;
        }
        if matches!(state, State::Complete | State::Interrupted)
            && let Some(why) = self.left.take().or_else(|| self.has_left())
        {
            self.finish_judging();
            self.failure = Some(format!("{why}: the next run begins at the beginning"));
            self.settled = Settled::default();
            state = State::Interrupted;
        }
        self.save(state, Doing::IdleWait);
        Ok(self.report(state))
    }

    /// Why what was read since the run began may have been read from elsewhere.
    fn has_left(&self) -> Option<String> {
        if geometry(self.lane.device) != self.geometry {
            return Some("the array was reshaped meanwhile, and its data lie elsewhere now".into());
        }
        self.ground.as_ref()?.was_left(self.lane.device).map(String::from)
    }

    fn until_over(&mut self) -> Result<State, ScrubError> {
        loop {
            if self.left.is_some() {
                return Ok(State::Interrupted);
            }
            // What the foreground did until then counts.
            let stopped = self.lane.stopped();
            self.lane.poll(Duration::ZERO)?;
            if stopped {
                self.lane.watched.driver.tell();
                return Ok(State::Interrupted);
            }
            if self.pacing.again(self.lane.watched.driver.clock(), now())? {
                self.lane.watched.driver.tell();
                let account = self.lane.watched.driver.account();
                self.lane.watched.driver.set_policy(self.pacing.policy(account));
            }
            if let Some(predicted) = self.pacing.predicted() {
                self.forecast.turn_to(predicted.throughput, now(), self.verified_now());
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
        let left = self.pacing.rests_until(self.lane.follows()).since(now());
        if left > Nanos::ZERO && self.lane.idle_since().is_some() {
            self.wait(Doing::TooSlow, Duration::from_nanos(left.0))?;
            return Ok(true);
        }
        let left = self.lane.cap.map_or(Nanos::ZERO, |cap| cap.left(now()));
        let capped = left > Nanos::ZERO && self.lane.idle_since().is_some();
        if capped {
            self.wait(Doing::RateLimit, Duration::from_nanos(left.0))?;
        }
        Ok(capped)
    }

    /// Asks the driver; the size of a request to issue now, or `None` after having waited for a while.
    fn turn(&mut self) -> Result<Option<Bytes>, ScrubError> {
        // Nothing wakes it up. Whatever idle interval begins meanwhile cannot be used sooner than after the wait; where nothing happens it is
        // looked less and less often.
        let shortest = self.pacing.parameters().map_or(SHORTEST_WAIT, |(_, wait)| Duration::from(wait));
        let shortest = shortest.clamp(SHORTEST_WAIT, TICK);
        self.rest = if self.lane.was_quiet() { (2 * self.rest).clamp(shortest, TICK) } else { shortest };
        if self.lane.idle_since().is_none() {
            let busy = self.busy.clamp(shortest, shortest.max(BUSY_WAIT));
            self.busy = 2 * busy;
            self.wait(Doing::ForegroundActive, busy)?;
            return Ok(None);
        }
        self.busy = Duration::ZERO;
        let at = now();
        let left = |until: Nanos| Duration::from_nanos(until.since(at).0);
        let (doing, time, due) = match self.lane.watched.driver.next(at) {
            Next::Step(size) => return Ok(Some(size)),
            Next::AskAt(_) if self.lane.watched.driver.is_comparing(at) => (Doing::Control, self.rest, None),
            Next::AskAt(until) => (Doing::IdleWait, left(until), Some(until)),
            Next::Paused { until } => (Doing::Overdrawn { left: until.since(at) }, left(until).min(self.rest), None),
            Next::WhenIdle => (Doing::PolicyStopped, self.rest, None),
        };
        self.wait_until(doing, time, due)?;
        Ok(None)
    }

    fn wait(&mut self, doing: Doing, time: Duration) -> Result<(), ScrubError> {
        self.wait_until(doing, time, None)
    }

    /// Waits for so long; the policy may run at `due`.
    fn wait_until(&mut self, doing: Doing, time: Duration, due: Option<Nanos>) -> Result<(), ScrubError> {
        self.lane.judging.iter().for_each(|judging| judging.may_look(false));
        self.lane.reaction.waits_until(due);
        self.tell(doing);
        match due {
            Some(due) => self.lane.poll_until(due),
            None => self.lane.poll(time),
        }
    }

    /// The next stretch: of a failed one first.
    fn stretch(&mut self, size: Bytes) -> Option<Extent> {
        let block = u64::from(self.lane.device.block);
        let most = self.pacing.most(self.lane.follows());
        let size = size.min(self.narrowing.longest()).min(self.longest).min(most);
        let size = Bytes(self.in_units(size.0 / block * block).max(block));
        loop {
            if let Some(look) = &mut self.second_look {
                if let Some(extent) = look.next(size) {
                    return Some(extent);
                }
                (self.second_look, self.has_looked) = (None, true);
            }
            if let Some(extent) = self.narrowing.next(size) {
                return Some(extent);
            }
            let visited = self.order.place().visited;
            match self.order.next(size) {
                Some(extent) => {
                    if self.order.place().visited == visited {
                        self.visits_again(extent);
                    }
                    self.begin(extent);
                }
                None if self.narrowing.come_back() => {}
                // What was read last may have to be read once more.
                None if self.finish_judging() => {}
                None if self.has_looked => return None,
                None => self.second_look = Some(SecondLook::new(&self.narrowing.bad(), self.lane.device.block)),
            }
        }
    }

    /// Verifies a stretch; says why the device failed, if it did.
    fn verify(&mut self, extent: Extent) -> Result<Option<String>, ScrubError> {
        self.tell(if self.narrowing.settled() { Doing::Verifying } else { Doing::Narrowing });
        self.lane.judging.iter().for_each(|judging| judging.may_look(true));
        if let Some(cap) = self.lane.cap {
            cap.take(extent.length, now());
        }
        self.lane.reaction.decides();
        let follows = self.lane.follows();
        let mut progress = self.progress(Doing::Verifying);
        let mut kept = self.failing.is_some() || self.second_look.is_some();
        // Blocks around unreadable ones say little of how long requests take.
        let usual = self.narrowing.settled() && self.second_look.is_none();
        let (whole, unjudged) = (self.whole(extent), self.unjudged);
        let verified = self.lane.verify(whole, &mut |_, service| {
            progress.doing = Doing::Hung(service);
            (self.watch)(&progress);
            // A machine that hangs is ended by a reset: the next run must not come to this place first.
            if !std::mem::replace(&mut kept, true) {
                let mut narrowing = self.narrowing.clone();
                narrowing.hung(extent);
                // What is not judged yet may be wrong.
                unjudged.into_iter().for_each(|extent| narrowing.look_again(extent));
                progress.content.iter().for_each(|content| self.checkpoint.keep_content(content));
                let (left, bad) = (narrowing.left(), narrowing.certain());
                let saved = self.checkpoint.save(&self.order.place(), &left, &bad, State::Running, &progress);
                self.unsaved = saved.err().map(|error| error.to_string());
            }
            Ok(())
        });
        if matches!(verified, Err(ScrubError::Hung { .. })) && self.second_look.is_none() {
            self.hung = Some(extent);
        }
        let (result, time) = verified?;
        if result.is_ok() && usual {
            self.pacing.took(Took { size: whole.length, time, at: now(), follows });
        }
        // Somewhere behind it may be a bad block that is no fault of it: it is read alone.
        if matches!(result, Err(Fault::Unreadable { .. })) && whole != extent {
            self.alone = Some(extent);
            self.narrowing.look_again(extent);
            self.settled = Settled { place: self.order.place(), left: self.narrowing.left() };
            return Ok(None);
        }
        self.alone = None;
        // Asked behind each request, so that all that was settled before is of the medium that was opened.
        if self.lane.device.has_another_medium() {
            return Ok(Some("its medium was exchanged for another one: run it again to scrub that".into()));
        }
        let readable = result.is_ok();
        if let Some(failure) = self.settle(extent, result)? {
            return Ok(Some(failure));
        }
        if readable && self.second_look.is_none() {
            self.judge(extent, whole.length);
        }
        self.settled = Settled { place: self.order.place(), left: self.narrowing.left() };
        Ok(None)
    }

    fn verified_now(&self) -> Bytes {
        Bytes(self.settled.verified().saturating_sub(self.resumed_at + self.skipped))
    }

    fn report(&self, state: State) -> Report {
        Report {
            state,
            failure: self.failure.clone(),
            verified: Bytes(self.settled.verified()),
            verified_now: self.verified_now(),
            errors: self.narrowing.bad(),
            retries: self.retries,
            elapsed: self.lane.elapsed(),
            scrubbing: now().since(self.began),
            spent: self.lane.spent.with(&self.spent, self.began, now()),
            measured: *self.lane.watched.driver.measured(),
            forecast: self.forecast.so_far(now(), self.verified_now()),
            plan: self.pacing.parameters().or(self.lane.watched.driver.last_used()),
            account: self.lane.watched.driver.account(),
            compared: self.lane.watched.driver.clock().compared(),
            reaction: self.lane.reaction.so_far().filter(|_| !self.lane.watched.monitor.is_coarse()),
            lost_events: self.lane.watched.monitor.lost(),
            content: self
                .lane
                .judging
                .as_ref()
                .map(|judging| judging.so_far())
                .or(self.checkpoint.content().filter(|before| before.is_told()))
                .cloned(),
            unsaved: self.unsaved.clone(),
        }
    }
}
