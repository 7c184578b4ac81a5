//! A disk that is looked after: its scrub, what that gives, and what was said of it.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use idlewise::drive::Slowdowns;
use idlewise::schedule::{Standing, Week};
use idlewise::{Bytes, Nanos};
use idlewise_linux::content::shell_word;
use idlewise_linux::scrub::{BadBlocks, Doing, Pass, RunSoFar, in_words, is_claimed};

use crate::Wish;
use crate::daemon::{Options, WAS_SET_S};
use crate::decision::{Facts, Next, Outlook, Reason, is_another, is_of_the_goal};
use crate::finder::Elsewhere;
use crate::machine::{Moment, Present, Shared, shares};
use crate::messages::cannot_be_read;
use crate::record::{Cost, Done};
use crate::told::{Level, say};
use crate::worker::Worker;

/// After a scrub that failed it is tried again so much later, then twice as long each time, up to the longest.
const FIRST_RETRY_S: f64 = 60.0;
const LONGEST_RETRY_S: f64 = 6.0 * 3600.0;
/// A scrub that has run for so long is begun anew where what it may spend has changed by more than a quarter.
const SETTLED: Duration = Duration::from_secs(600);
/// What a disk tells of itself is waited for so long, and then beside whatever else is done.
const AT_ONCE: Duration = Duration::from_millis(500);
/// One that has not answered for so long has failed.
const SILENT_S: f64 = 60.0;
/// What a scrub does before its first request; nothing, where it has not said so yet.
const LEARNS: [&str; 3] = ["", "observing", "calibrating"];

/// A disk that is looked after.
pub struct Disk {
    /// Where it is.
    pub present: Present,
    /// What it shares with others, as of when its scrub was last begun.
    pub shares: Shared,
    /// Where the answer to that comes from, and since when it is waited for, in seconds since 1970.
    sharing: Option<(Receiver<Option<Shared>>, f64)>,
    /// What another checkpoint holds.
    pub elsewhere: Elsewhere,
    /// What its checkpoint holds, if that is of this disk.
    pub pass: Option<Pass>,
    /// How its scrub goes, or how the last one went.
    pub run: Option<RunSoFar>,
    /// Its scrub.
    pub worker: Option<Worker>,
    /// What was to be done with it at the last look, and how it stood.
    pub last: Option<(Next, Outlook)>,
    /// What its scrubs have cost, whom, and how much they have verified, since the service was started.
    pub so_far: (Cost, Slowdowns, Bytes),
    /// Since when a request of its scrub hangs, in seconds since 1970.
    hung: Option<f64>,
    /// Whether its scrub has ended.
    is_over: bool,
    /// When the last whole pass ended, as of when its scrub was begun; and the mean slowdown that this may cost, in seconds.
    begun: (Option<u64>, f64),
    /// How long others may have had to wait for its scrubs since the service was started, in seconds.
    pub allowed_s: f64,
    /// Whether `run` is what a scrub that is at work says of itself.
    pub is_live: bool,
    /// What the present hour gives.
    hour: Gives,
    /// How much was verified at the last look, and how its run stood.
    verified: Option<Bytes>,
    seen: Option<(f64, Cost, Slowdowns)>,
    failures: u32,
    retry: Option<f64>,
    said: Said,
}

/// What an hour gives: seconds in which a scrub ran, and bytes verified.
#[derive(Default)]
struct Gives {
    minute: u32,
    wanted_s: f64,
    bytes: u64,
}

/// What was said last, so that it is said once.
#[derive(Default)]
struct Said {
    doing: String,
    standing: String,
    unreadable: u64,
    is_ahead: bool,
    is_hung: bool,
}

impl Disk {
    /// Nothing is known of it yet.
    pub fn new(present: Present) -> Self {
        Self {
            present,
            shares: Shared::default(),
            sharing: None,
            pass: None,
            elsewhere: Elsewhere::default(),
            run: None,
            worker: None,
            last: None,
            so_far: (Cost::default(), Slowdowns::default(), Bytes(0)),
            hung: None,
            is_over: false,
            begun: (None, 0.0),
            allowed_s: 0.0,
            is_live: false,
            hour: Gives::default(),
            verified: None,
            seen: None,
            failures: 0,
            retry: None,
            said: Said::default(),
        }
    }

    /// Whether somebody scrubs a disk that it lies on, or something that lies there.
    pub fn is_claimed(&self) -> bool {
        self.shares.disks.iter().copied().any(is_claimed)
    }

    /// Asks what it shares with others, beside whatever else is done.
    ///
    /// # Errors
    /// Why there is no answer: it is silent, or it sleeps and is not to be woken up.
    pub fn ask_what_it_shares(&mut self, now: f64, wakes: bool) -> Result<(), Reason> {
        let path = &self.present.path;
        let (told, since) = self.sharing.take().unwrap_or_else(|| {
            let (tell, told) = channel();
            let path = path.clone();
            // Nobody may want it any more; and without a thread there is no answer.
            let _ = thread::Builder::new().name("shares".into()).spawn(move || _ = tell.send(shares(&path, wakes)));
            (told, now)
        });
        match told.recv_timeout(AT_ONCE) {
            Ok(Some(shares)) => {
                self.shares = shares;
                return Ok(());
            }
            Ok(None) => return Err(Reason::Asleep),
            Err(RecvTimeoutError::Timeout) => self.sharing = Some((told, since)),
            Err(RecvTimeoutError::Disconnected) => {}
        }
        Err(Reason::Silent(since))
    }

    /// When its last whole pass ended, in seconds since 1970. What is to be later than now was seen with a clock that was wrong; and of a
    /// disk that has grown, what is new was never read.
    fn completed(&self, now: f64) -> Option<u64> {
        let pass = self.pass.as_ref().filter(|pass| pass.device_bytes >= self.present.size.0)?;
        pass.completed_unix_s.filter(|at| *at as f64 <= now + WAS_SET_S)
    }

    /// Looks whether its scrub has ended.
    pub fn look_for_the_end(&mut self) {
        self.is_over = self.worker.as_mut().is_some_and(|worker| worker.ended().is_some());
    }

    fn name(&self) -> String {
        self.present.path.display().to_string()
    }

    /// Takes in what was verified since the last look; what an hour gave, when it is over, at the mean slowdown of the goal in seconds.
    pub fn account(&mut self, now: Moment, passed: Duration, goal_s: f64) -> Option<(u32, f64, u64)> {
        let verified = self.pass.as_ref().map(Pass::verified);
        if let Some(worker) = &self.worker {
            // What it learns first says nothing of how fast it will be: a scrub that is ended meanwhile would count as one that never ends.
            let learns = self.run.as_ref().is_none_or(|run| LEARNS.contains(&&*run.doing) && run.verified_bytes == 0);
            let is_learned = is_of_the_goal(worker.mean_s, goal_s);
            self.hour.wanted_s += if learns || !is_learned { 0.0 } else { passed.as_secs_f64() };
            // A new pass begins anew.
            let before = self.verified.filter(|before| Some(*before) <= verified).unwrap_or_default();
            let bytes = verified.unwrap_or_default().0 - before.0;
            self.hour.bytes += if is_learned { bytes } else { 0 };
            self.so_far.2.0 += bytes;
        }
        self.verified = verified;
        // What a scrub gave in a part of an hour tells of it as well.
        if !self.is_over && Week::hour(self.hour.minute) == Week::hour(now.minute) {
            return None;
        }
        let Gives { minute, wanted_s, bytes } = std::mem::take(&mut self.hour);
        self.hour.minute = now.minute;
        (wanted_s > 0.0).then_some((minute, wanted_s, bytes))
    }

    /// What its scrub has cost since the last look. What was there when it was first looked at is nobody's.
    pub fn cost(&mut self) -> Cost {
        let now = self.run.as_ref().map_or((0.0, Cost::default(), Slowdowns::default()), |run| {
            let slowdown_s = run.mean_slowdown_s * run.foreground_requests as f64;
            let cost = Cost { requests: run.foreground_requests, slowdown_s };
            (run.elapsed_s, cost, Slowdowns::of(&run.slowdowns))
        });
        let Some(mut before) = self.seen.replace(now) else { return Cost::default() };
        // Another run counts from its beginning.
        if now.0 < before.0 || now.1.requests < before.1.requests {
            before = (0.0, Cost::default(), Slowdowns::default());
        }
        let since =
            Cost { requests: now.1.requests - before.1.requests, slowdown_s: now.1.slowdown_s - before.1.slowdown_s };
        self.so_far.0.add(since);
        self.allowed_s += since.requests as f64 * self.begun.1;
        self.so_far.1.merge(&now.2.since(&before.2));
        since
    }

    /// Its last whole pass.
    pub fn done(&self, now: f64) -> Option<Done> {
        let pass = self.pass.as_ref().filter(|pass| pass.over())?;
        let completed_unix_s = self.completed(now)?;
        Some(Done {
            started_unix_s: pass.started_unix_s,
            completed_unix_s,
            // As it was before.
            due_unix_s: self.last.as_ref().map_or(completed_unix_s as f64, |(_, outlook)| outlook.deadline),
            device_bytes: pass.device_bytes,
            bad_blocks: self.bad_blocks(),
            cost: Cost::default(),
        })
    }

    /// Blocks that cannot be read, or are wrong.
    pub fn bad_blocks(&self) -> u64 {
        self.bad().iter().map(|run| run.blocks).sum()
    }

    /// Which they are.
    pub fn bad(&self) -> Vec<BadBlocks> {
        let known = self.pass.as_ref().map(Pass::known_errors).unwrap_or_default();
        let mut bad = [known, self.elsewhere.bad.clone()].concat();
        bad.sort_by_key(|run| run.lba);
        bad
    }

    /// How much of its last whole pass could not be compared, and why.
    pub fn not_compared(&self) -> Option<(u64, String)> {
        let own = self.pass.as_ref().and_then(Pass::not_compared).map(|(bytes, why)| (bytes.0, why.to_string()));
        own.or_else(|| self.elsewhere.not_compared.clone())
    }

    /// Somebody has set the clock: what is to be at a time is to be so much later.
    pub fn follow_the_clock(&mut self, by: f64) {
        let times = [self.retry.as_mut(), self.hung.as_mut(), self.sharing.as_mut().map(|(_, since)| since)];
        times.into_iter().flatten().for_each(|time| *time += by);
    }

    /// Somebody wants it to be scrubbed now: what failed is tried at once.
    pub fn try_at_once(&mut self) {
        self.retry = None;
    }

    /// The state it is in, one of [`STATES`](crate::overview::STATES), and what it waits for or does, in words.
    pub fn state(&self, now: f64) -> (&'static str, String) {
        let Some((next, _)) = &self.last else { return ("waiting", "has not been looked at yet".into()) };
        // What was ordered holds at once, also while the scrub saves where it is.
        let is_paused = matches!(next, Next::Wait(Reason::Paused(_)));
        let running = self.run.as_ref().filter(|run| self.worker.is_some() && !is_paused && !run.doing.is_empty());
        if let Some(since) = self.hangs(now) {
            return ("failed", format!("a request hangs: the disk has not answered for {}", within(now - since)));
        }
        let state = match next {
            _ if is_paused => "paused",
            _ if self.worker.is_some() => "running",
            Next::Rest(_) => "complete",
            Next::Wait(Reason::Failed(_)) => "failed",
            Next::Wait(Reason::Silent(since)) if now - since > SILENT_S => "failed",
            Next::Run(_) | Next::Wait(_) => "waiting",
        };
        let words = running.map_or_else(|| doing(next, now), |run| in_words(&run.doing).into());
        match self.passed_over().filter(|_| state == "complete") {
            // Somebody may have wanted such a scrub.
            Some(bytes) => (state, format!("{words}; {bytes} that nothing used were not read (--skip-free)")),
            None => (state, words),
        }
    }

    /// What its last whole pass has passed over, as nothing used it then.
    fn passed_over(&self) -> Option<Bytes> {
        let content = self.pass.as_ref().filter(|pass| pass.over()).and_then(|pass| pass.content.as_ref())?;
        Some(Bytes(content.skipped_bytes)).filter(|bytes| *bytes > Bytes(0))
    }

    /// Looks whether its scrub waits for a request that hangs; `is_noted` is whether the scrub itself says how it goes. One that does not
    /// even come to that has asked the disk for something else.
    pub fn look_for_hangs(&mut self, now: f64, is_noted: bool) {
        let says_so = self.run.as_ref().is_some_and(|run| run.doing == Doing::HUNG);
        let is_silent = |worker: &Worker| !is_noted && worker.began.elapsed().as_secs_f64() > SILENT_S;
        let is_hung = self.worker.as_ref().is_some_and(|worker| says_so || is_silent(worker));
        self.hung = if is_hung { self.hung.or(Some(now)) } else { None };
        let hangs = self.hangs(now).is_some();
        if hangs && !self.said.is_hung {
            say(Level::Error, &format!("{}: a request of its scrub hangs: the disk does not answer", self.name()));
        }
        self.said.is_hung = hangs;
    }

    /// Since when, if that is for so long that it has failed.
    fn hangs(&self, now: f64) -> Option<f64> {
        self.hung.filter(|since| now - since > SILENT_S)
    }

    /// Takes note of a scrub that has ended.
    pub fn reap(&mut self, now: f64) {
        let Some(worker) = &mut self.worker else { return };
        if worker.is_lost() {
            say(Level::Error, &format!("{}: its scrub does not end: the disk does not answer", self.name()));
        } else if let Some(went) = worker.ended().filter(|_| self.is_over) {
            // One that could not compare all of it fails, and is over all the same.
            let ended = self.pass.as_ref().filter(|pass| pass.over()).and_then(|pass| pass.completed_unix_s);
            if went || ended.is_some() && ended != self.begun.0 {
                (self.failures, self.retry) = (0, None);
                let content = self.pass.as_ref().filter(|pass| pass.over()).and_then(|pass| pass.content.as_ref());
                if let Some((bytes, why)) = content.and_then(|content| content.silent()) {
                    say(Level::Error, &format!("{}: {bytes} were not compared: {why}", self.name()));
                }
            } else {
                let after = (FIRST_RETRY_S * 2f64.powi(self.failures.min(16) as i32)).min(LONGEST_RETRY_S);
                (self.failures, self.retry) = (self.failures + 1, Some(now + after));
                let again = Nanos((after * 1e9) as u64);
                let why = self
                    .run
                    .as_ref()
                    .and_then(|run| run.failure.as_ref())
                    .map_or(String::new(), |why| format!(" ({why})"));
                say(Level::Error, &format!("{}: its scrub failed{why}, and is tried again in {again}", self.name()));
            }
        } else {
            return;
        }
        self.worker = None;
    }

    /// What is known of it now.
    pub fn facts(&self, now: Moment, on_battery: bool, taken: Option<String>, paused: Option<f64>) -> Facts {
        let left = |pass: &Pass| Bytes(self.present.size.0.saturating_sub(pass.verified().0));
        Facts {
            now,
            size: self.present.size,
            left: self.pass.as_ref().filter(|pass| !pass.over()).map(left),
            last: self.completed(now.unix_s).map(|last| last as f64),
            usual_mean_s: self.present.usual_mean_s,
            usual_max_s: self.present.usual_max_s,
            on_battery,
            taken,
            retry: self.retry,
            paused,
        }
    }

    /// Begins its scrub, or ends it.
    pub fn act(&mut self, next: &Next, wish: &Wish, options: &Options) {
        match (next, &mut self.worker) {
            (Next::Run(mean), None) => {
                let begun = self.pass.as_ref().filter(|pass| !pass.over()).map(|pass| pass.order);
                match Worker::start(&options.program, &self.present, wish, *mean, begun, options.states.path()) {
                    Ok(worker) => {
                        self.begun = (self.pass.as_ref().and_then(|pass| pass.completed_unix_s), worker.mean_s);
                        self.worker = Some(worker);
                    }
                    Err(error) => say(Level::Error, &format!("{}: no scrub can be started: {error}", self.name())),
                }
            }
            (Next::Run(mean), Some(worker)) => {
                let is_wished = worker.wished == wish.into();
                // What is allowed now holds at once; how much of it is spent changes all the time.
                if !is_wished || is_another(*mean, worker.mean_s) && worker.began.elapsed() > SETTLED {
                    worker.ask_to_end();
                }
            }
            (Next::Rest(_) | Next::Wait(_), Some(worker)) => worker.ask_to_end(),
            (Next::Rest(_) | Next::Wait(_), None) => {}
        }
    }

    /// Says what has changed.
    pub fn tell(&mut self, next: &Next, outlook: &Outlook, acknowledged: u64, now: f64) {
        let name = self.name();
        // That it failed or is paused was said.
        let is_said = matches!(next, Next::Wait(Reason::Failed(_) | Reason::Paused(_)));
        let doing = if is_said { String::new() } else { doing(next, now) };
        // By its words, not by its numbers, which change all the time.
        let words =
            |text: &str| text.split(|letter: char| letter.is_ascii_digit()).next().unwrap_or_default().to_string();
        if !doing.is_empty() && words(&doing) != words(&self.said.doing) {
            say(Level::Info, &format!("{name}: {doing}"));
        }
        self.said.doing = doing;
        let is_ahead =
            self.pass.as_ref().and_then(|pass| pass.completed_unix_s).is_some() && self.completed(now).is_none();
        if is_ahead && !self.said.is_ahead {
            let text = "its last pass ended later than now, so a clock was wrong: it counts as never verified";
            say(Level::Warning, &format!("{name}: {text}"));
        }
        self.said.is_ahead = is_ahead;
        let late = outlook.rest.filter(|rest| rest.expected_s.is_finite());
        let (level, standing) = match outlook.standing {
            Standing::Unknown | Standing::InTime => (Level::Notice, String::new()),
            Standing::Behind => {
                let late = late.map_or("never".into(), |rest| {
                    format!("{} late", within(now + rest.expected_s - outlook.deadline))
                });
                (Level::Warning, format!("is behind: its pass is expected to end {late}"))
            }
            Standing::Overdue => {
                (Level::Error, format!("is overdue: its pass was due {} ago", within(now - outlook.deadline)))
            }
        };
        if words(&standing) != words(&self.said.standing) {
            match standing.is_empty() {
                true => say(level, &format!("{name}: is expected to be verified in time again")),
                false => say(level, &format!("{name}: {standing}")),
            }
        }
        self.said.standing = standing;
        let unreadable = self.bad_blocks();
        if unreadable > self.said.unreadable.max(acknowledged) {
            let shell = shell_word(&name);
            say(Level::Error, &format!("{name}: {}: idlewise status {shell}", cannot_be_read(unreadable)));
        }
        self.said.unreadable = unreadable;
    }
}

/// What is to be done with a disk, in words.
fn doing(next: &Next, now: f64) -> String {
    match next {
        Next::Rest(until) => format!("verified; the next pass begins in {}", within(until - now)),
        Next::Run(mean) => format!("is being verified, at a mean slowdown of {}", Nanos((mean * 1e9) as u64)),
        Next::Wait(Reason::Paused(until)) if until.is_infinite() => "is paused".into(),
        Next::Wait(Reason::Paused(until)) => format!("is paused for {}", within(until - now)),
        Next::Wait(Reason::Window(minutes)) => {
            format!("waits for its window, which opens in {}", within(f64::from(*minutes) * 60.0))
        }
        Next::Wait(Reason::Battery) => "waits, as the machine runs on its battery".into(),
        Next::Wait(Reason::Taken(what)) => format!("waits for another part of {what}"),
        Next::Wait(Reason::Busy) => "waits for another idlewise, which is scrubbing it".into(),
        Next::Wait(Reason::Asleep) => "sleeps, and there is time".into(),
        Next::Wait(Reason::Silent(since)) if now - since < 1.0 => "has not answered yet".into(),
        Next::Wait(Reason::Silent(since)) => format!("has not answered for {}", within(now - since)),
        Next::Wait(Reason::Doubtful(until)) => {
            let begins = within(until - now);
            format!("nobody knows whether it is the disk that was verified; its next pass begins in {begins}")
        }
        Next::Wait(Reason::Failed(until)) => format!("its scrub failed, and is tried again in {}", within(until - now)),
    }
}

fn within(seconds: f64) -> Nanos {
    Nanos((seconds.max(0.0) * 1e9).min(1e18) as u64)
}
