//! One device's scrub, from opening it to its result.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use idlewise::disk::DiskModel;
use idlewise::order::{Order, ScanOrder, Surface};
use idlewise::policy::Account;
use idlewise::tune::{Goal, Predicted};
use idlewise::{Bytes, Nanos};
use idlewise_linux::device::{Device, Named};
use idlewise_linux::monitor::now;
use idlewise_linux::scrub::{
    Begun, Checkpoint, Claim, Doing, InTime, Pacing, Progress, RateCap, Report, Scrubber, State, StateFolder, in_time,
};

use super::bar::Bar;
use super::content::{self, Content, NotAsked};
use super::goal::{self, Wanted};
use super::result::{Names, Result};
use super::way::Way;
use super::{Pace, PolicyName};
use crate::bad::Bad;
use crate::dates::{date, unix_now};
use crate::exit::{Exit, UsageError};
use crate::live::{MonitorName, open_device};
use crate::output::say;

/// How devices are scrubbed.
pub struct Job {
    pub pace: Pace,
    pub wanted: Wanted,
    pub cap: Option<RateCap>,
    /// Set, before `stop`, when the time that it was to run is over.
    pub time_is_over: Option<Arc<AtomicBool>>,
    pub order: Order,
    pub verifier: Option<String>,
    pub content: String,
    pub skip_free: bool,
    pub monitor: MonitorName,
    pub observe: Nanos,
    pub restart: bool,
    pub states: StateFolder,
    pub stop: Arc<AtomicBool>,
}

impl Job {
    /// Scrubs one device and prints its result.
    pub fn alone(&self, path: &Path, quiet: bool, json: bool) -> anyhow::Result<Exit> {
        let device = self.open(path)?;
        if device.size == Bytes(0) {
            say!("idlewise: {}: the device is empty", device.path.display());
            return Ok(Exit::NothingToDo);
        }
        let mut bar = Bar::new(quiet, &device, None);
        let result = self.scrub(&device, &mut bar)?;
        drop(bar);
        result.print(json)?;
        result.exit()
    }

    /// Opens a device for a scrub.
    pub fn open(&self, path: &Path) -> anyhow::Result<Device> {
        let device = open_device(path)?;
        self.check_sizes(&device)?;
        if let Some(why) = device.hidden_by_a_cache() {
            return Err(UsageError(why).into());
        }
        Ok(match content::array(&device, &self.content, self.verifier.as_deref())? {
            Ok(Some(array)) => device.by_members(array.size, array.members.iter().map(|member| &member.device)),
            Ok(None) => device,
            // That is said when it begins.
            Err(_) => device,
        })
    }

    /// Scrubs a device from where its checkpoint is, until it is done, it fails, or it is asked to stop.
    pub fn scrub(&self, device: &Device, bar: &mut Bar) -> anyhow::Result<Result> {
        let mut claim = Claim::of(device, &self.states)?;
        let mut checkpoint = self.states.open(device, self.order, self.restart)?;
        let surface = Surface { size: device.size, block: device.block };
        say_how_it_begins(device, &checkpoint, bar);
        if claim.is_limited() {
            bar.say("another scrub of this disk is only seen if its checkpoints are in the same folder");
        }
        let order = self.order.make(surface, checkpoint.place());
        let mut order = order.map_err(|problem| UsageError(format!("{}: {problem}", device.path.display())))?;
        let way = self.way(device)?;
        let _claims = way.claims(device, &self.states)?;
        let monitor = way.monitor(device, self.monitor)?;
        // The members are open for as long as they are read.
        let Way { verifier, found, array: _array } = way;
        let mut scrubber = Scrubber::new(device, verifier, monitor, &self.stop);
        content::say(device, &found, bar);
        let not_asked = NotAsked::of(device, &found);
        if found.nobody_compares() && self.content == content::AUTO {
            checkpoint.nobody_compares();
        }
        if !found.is_empty() {
            scrubber.judge_by(found, self.skip_free, &mut checkpoint).context("a thread to compare checksums")?;
        }
        if let Some(cap) = &self.cap {
            scrubber.keep_within(cap);
        }
        let resumed = checkpoint.verified();
        mark(&mut checkpoint, State::Running, None, None, bar);
        let done = self.pass(device, (&mut scrubber, &mut *order), &mut checkpoint, &mut claim, bar);
        // Whoever looks later sees that it did not get to its first request.
        if let Err(error) = &done
            && checkpoint.is_running()
        {
            mark(&mut checkpoint, State::Failed, Some(error.to_string()), scrubber.account(), bar);
        }
        let (report, goal, predicted) = done.with_context(|| device.path.display().to_string())?;
        if report.state == State::Interrupted
            && self.time_is_over.as_ref().is_some_and(|over| over.load(Ordering::Relaxed))
        {
            bar.say("the time of --for is over; the next run goes on with the pass");
        }
        let names = Names { verifier: scrubber.verifier(), order: self.order.label(), monitor: scrubber.monitor() };
        let mut result = Result::new(device, &report, names, goal, predicted, resumed);
        result.not_asked = not_asked;
        result.errors_before =
            Bad::list(&checkpoint.still_wrong(), device.block, (device.start.0, device.is_by_members()), None);
        Ok(result)
    }

    /// Learns what there is to learn, and goes through the device; what came of it, for which goal, and what was predicted.
    fn pass(
        &self,
        device: &Device,
        (scrubber, order): (&mut Scrubber, &mut dyn ScanOrder),
        checkpoint: &mut Checkpoint,
        claim: &mut Claim,
        bar: &mut Bar,
    ) -> anyhow::Result<(Report, Option<Goal>, Option<Predicted>)> {
        let mut goal = self.goal(device);
        if let Some(goal) = &goal {
            scrubber.keep(goal, checkpoint);
        }
        let of_a_plan = matches!(self.pace, Pace::Given(_, _, Some(_)));
        if goal.is_some() && !of_a_plan && self.wanted.finish_within.is_none() {
            bar.say(&self.wanted.line(device.kind()));
        }
        let (pacing, planned) = match self.pace.clone() {
            Pace::Given(schedule, predicted, _) => {
                (Some(Pacing::fixed(schedule, goal.map(|goal| goal.max_slowdown))), predicted)
            }
            Pace::Learnt(model, policy) => {
                let learnt = self.learn(scrubber, device, checkpoint, (model, policy), claim, bar)?;
                if learnt.is_none() {
                    bar.warn(&format!(
                        "it ended before it had measured the disk, and verified nothing: each run first watches the disk for {} (--observe)",
                        self.observe
                    ));
                }
                goal = learnt.as_ref().map_or(goal, |(goal, _)| Some(*goal));
                (learnt.map(|(_, pacing)| pacing), None)
            }
        };
        match pacing {
            Some(mut pacing) => {
                let (mut pace, mut cut, mut slow) = (goal::Pace::new(&self.wanted), false, false);
                let mut unasked = false;
                if let Some(predicted) = planned.or(pacing.predicted()) {
                    let line = pace.at(predicted.throughput.0 as f64, device.size, "as predicted");
                    line.into_iter().for_each(|line| bar.warn(&line));
                }
                let watch = &mut |progress: &Progress| {
                    claim.tell(progress);
                    bar.show(progress);
                    pace.look(progress).into_iter().for_each(|line| bar.warn(&line));
                    if let Some(why) = progress.content.as_ref().and_then(|content| content.unasked.as_ref())
                        && !std::mem::replace(&mut unasked, true)
                    {
                        bar.warn(&format!("some of what is read is not compared, as nobody could be asked: {why}"));
                    }
                    if let Some(goal) = goal.filter(|_| progress.doing == Doing::TooSlow)
                        && !std::mem::replace(&mut slow, true)
                    {
                        bar.warn(&format!(
                            "even its smallest requests take longer than the {} of the maximum slowdown: it waits, and tries one at least once a \
                             minute",
                            goal.max_slowdown
                        ));
                    }
                    if let Some((size, goal)) = progress.cut_to.zip(goal).filter(|_| !std::mem::replace(&mut cut, true))
                    {
                        bar.warn(&format!(
                            "its requests are cut to {size}: larger ones take longer than the {} of the maximum slowdown",
                            goal.max_slowdown
                        ));
                    }
                };
                let report = scrubber.run(order, &mut pacing, checkpoint, watch)?;
                Ok((report, goal, planned.or(pacing.predicted())))
            }
            None => {
                mark(checkpoint, State::Interrupted, None, scrubber.account(), bar);
                let report = Report::before_the_first_request(checkpoint, scrubber);
                Ok((report, goal, None))
            }
        }
    }

    /// The goal that is to be kept on a device, if any: a plan's, or as given, or the default where the pace is learnt.
    pub fn goal(&self, device: &Device) -> Option<Goal> {
        match &self.pace {
            Pace::Given(_, _, Some(goal)) => Some(*goal),
            Pace::Given(..) if !self.wanted.any() => None,
            _ => Some(self.wanted.goal(device.kind())),
        }
    }

    /// The goal with which the pass ends in time, if that was asked for and is possible.
    fn in_time(
        &self,
        scrubber: &Scrubber,
        goal: Goal,
        model: &DiskModel,
        left: Bytes,
        began_unix_s: u64,
        bar: &Bar,
    ) -> anyhow::Result<Goal> {
        let Some(time) = self.wanted.time_left(began_unix_s) else { return Ok(goal) };
        let end = self.wanted.end(began_unix_s).unwrap_or_else(|| "its end".into());
        match in_time(scrubber.foreground(), model, &goal, left, time)? {
            InTime::Goal(goal) => {
                bar.say(&format!(
                    "{}: the smallest mean with which the pass ends by {end}, as far as the time watched tells",
                    goal::words(&goal)
                ));
                return Ok(goal);
            }
            InTime::Unknown => {
                bar.say(&format!("too little foreground was seen to choose a mean slowdown; {}", goal::words(&goal)));
            }
            InTime::Never(fastest) => {
                let soonest =
                    date(unix_now().saturating_add(fastest.0 / 1_000_000_000)).unwrap_or_else(|| "never".into());
                bar.warn(&format!(
                    "the pass cannot end by {end}: with at most {} for any request it ends {soonest} at the earliest; {}",
                    goal.max_slowdown,
                    goal::words(&goal)
                ));
            }
        }
        Ok(goal)
    }

    /// Measures the disk and watches the foreground, then chooses; `None` when asked to stop.
    fn learn(
        &self,
        scrubber: &mut Scrubber,
        device: &Device,
        checkpoint: &Checkpoint,
        (model, policy): (Option<DiskModel>, PolicyName),
        claim: &mut Claim,
        bar: &mut Bar,
    ) -> anyhow::Result<Option<(Goal, Pacing)>> {
        let goal = self.wanted.goal(device.kind());
        let verified = checkpoint.verified();
        let mut watch = |bar: &mut Bar, progress: Progress, done| {
            bar.learn(&progress, done);
            claim.tell(&Progress { verified, size: device.size, ..progress });
        };
        let measured = match model {
            Some(model) => {
                goal.check(&model)?;
                Some(model)
            }
            None => measure(scrubber, &goal, &mut watch, bar)?,
        };
        let Some(model) = measured else { return Ok(None) };
        let stopped = scrubber.observe(self.observe, &mut |progress, done| watch(bar, progress, done))?;
        if stopped {
            return Ok(None);
        }
        let left = Bytes(device.size.0.saturating_sub(verified.0));
        let goal = self.in_time(scrubber, goal, &model, left, checkpoint.started_unix_s(), bar)?;
        scrubber.keep_mean(goal.mean_slowdown);
        let pacing = match policy {
            PolicyName::Waiting => Pacing::tuned(goal, model, scrubber.foreground(), now())?,
            PolicyName::Adaptive => Pacing::adaptive(goal, &model, scrubber.foreground()),
        };
        Ok(Some((goal, pacing)))
    }

    /// Size of the first request in an idle interval, and the idle time before it; `None` where they are learnt.
    pub fn first_request(&self) -> Option<(Bytes, Nanos)> {
        if let Pace::Given(schedule, ..) = &self.pace { Some(schedule.first()) } else { None }
    }

    /// The longest request that is certain beforehand.
    pub fn largest(&self) -> Bytes {
        let sizes = if let Pace::Given(schedule, ..) = &self.pace { schedule.sizes() } else { Vec::new() };
        sizes.into_iter().max().unwrap_or_default()
    }

    /// Whether a goal can be kept by the disk model that was given.
    pub fn check_goal(&self, goal: Option<Goal>) -> anyhow::Result<()> {
        match (&self.pace, goal) {
            (Pace::Learnt(Some(model), _), Some(goal)) => Ok(goal.check(model)?),
            _ => Ok(()),
        }
    }

    /// Requests must be whole blocks.
    fn check_sizes(&self, device: &Device) -> anyhow::Result<()> {
        let Pace::Given(schedule, ..) = &self.pace else { return Ok(()) };
        let odd = schedule.sizes().into_iter().find(|size| !size.0.is_multiple_of(u64::from(device.block)));
        let Some(size) = odd else { return Ok(()) };
        let name = device.path.display();
        Err(UsageError(format!("{name}: request size {size} is no multiple of its {} byte blocks", device.block))
            .into())
    }
}

/// Measures the disk. Where it takes too long for the goal it may be busy with something that is not seen, such as writes that it had
/// cached, or with what somebody does on the same disk by another way: it is measured again, until it is quick enough. `None` when asked
/// to stop.
fn measure(
    scrubber: &mut Scrubber,
    goal: &Goal,
    watch: &mut dyn FnMut(&mut Bar, Progress, f64),
    bar: &mut Bar,
) -> anyhow::Result<Option<DiskModel>> {
    const PAUSE: Nanos = Nanos::from_secs(60);
    let mut said = false;
    loop {
        let Some(model) = scrubber.curve("this device", goal, &mut |progress, done| watch(bar, progress, done))? else {
            return Ok(None);
        };
        let Err(too_small) = goal.check(&model) else { return Ok(Some(model)) };
        if !std::mem::replace(&mut said, true) {
            bar.warn(&format!("{too_small}; until then it waits, and measures the disk again every minute"));
        }
        if scrubber.observe(PAUSE, &mut |progress, done| watch(bar, progress, done))? {
            return Ok(None);
        }
    }
}

/// Saves how a run stands before its first request. That it cannot be saved ends no scrub: it is tried again.
fn mark(checkpoint: &mut Checkpoint, state: State, failure: Option<String>, account: Option<Account>, bar: &mut Bar) {
    let saved = checkpoint.mark(state, failure, account.as_ref());
    bar.saved(saved.err().map(|error| error.to_string()).as_deref());
}

/// Says what a run goes on with, and what its checkpoints cost.
fn say_how_it_begins(device: &Device, checkpoint: &Checkpoint, bar: &Bar) {
    match checkpoint.begun() {
        Begun::Anew => {}
        Begun::AnewBecause(why) => bar.warn(&format!("begins a new pass: {why}")),
        Begun::Resumed => bar.say(&format!(
            "goes on at {} of the pass over {} that began {} ago; --restart begins a new one",
            checkpoint.verified(),
            device.identity,
            Nanos::from_secs(unix_now().saturating_sub(checkpoint.started_unix_s()))
        )),
    }
    if device.named == Named::Never {
        bar.say(
            "the kernel does not tell when something else is put behind it: a pass that is interrupted begins anew",
        );
    }
    if checkpoint.is_on_the_disk_of(device) {
        bar.say("its checkpoints are on this very disk: saved once a minute; --state-dir chooses another folder");
    }
}

impl Result {
    /// The exit code of one device.
    pub fn exit(&self) -> anyhow::Result<Exit> {
        if let Some(unsaved) = &self.unsaved {
            return Err(anyhow::anyhow!("{}: the end of the scrub could not be saved: {unsaved}", self.device));
        }
        match self.state {
            State::Complete | State::Interrupted | State::Running if !self.errors.is_empty() => Ok(Exit::ErrorsFound),
            State::Complete if !self.errors_before.is_empty() => Ok(Exit::ErrorsFound),
            State::Complete => match self.content.as_ref().and_then(Content::silent) {
                Some((bytes, why)) => Err(anyhow::anyhow!("{}: {bytes} were not compared: {why}", self.device)),
                None => Ok(Exit::Clean),
            },
            State::Failed => {
                let failure = self.failure.as_deref().unwrap_or_default();
                let after = Bytes(self.verified_bytes);
                Err(anyhow::anyhow!("{}: the device failed after {after} were verified: {failure}", self.device))
            }
            State::Interrupted | State::Running => Ok(Exit::Interrupted),
        }
    }
}
