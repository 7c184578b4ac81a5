//! The loop: it looks at each disk every few seconds, and does what is to be done with it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use idlewise::schedule::{Standing, Week};
use idlewise::{Bytes, Nanos};
use idlewise_linux::scrub::{Pass, StateFolder};

use crate::disk::{Facts, Next, Outlook, Reason, next};
use crate::machine::{Moment, Present, on_battery, present};
use crate::record::{Known, Record};
use crate::told::{Level, notify, say, watchdog};
use crate::worker::Worker;
use crate::{Config, Wish};

/// After a scrub that failed it is tried again so much later, then twice as long each time, up to the longest.
const FIRST_RETRY_S: f64 = 60.0;
const LONGEST_RETRY_S: f64 = 6.0 * 3600.0;
/// A scrub that has run for so long is begun anew where what it may spend has changed by more than a quarter.
const SETTLED: Duration = Duration::from_secs(600);
/// A clock that differs from the time that has passed by more than this was set.
const WAS_SET_S: f64 = 3600.0;
/// A disk that was away for so long is forgotten.
const FORGOTTEN_S: f64 = 180.0 * 86_400.0;

/// How the service runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is wished.
    pub config: PathBuf,
    /// Where checkpoints are, and what is remembered.
    pub states: StateFolder,
    /// The command `idlewise`.
    pub program: PathBuf,
    /// Time between two looks.
    pub look_every: Duration,
    /// It is to end.
    pub stop: Arc<AtomicBool>,
    /// The configuration is to be read again.
    pub reload: Arc<AtomicBool>,
}

/// The service.
pub struct Daemon {
    options: Options,
    config: Config,
    record: Record,
    disks: BTreeMap<String, Disk>,
    /// What was said of devices that cannot be looked after.
    refused: Vec<String>,
    /// The last look: by the machine's clock, and by one that nobody sets.
    looked: (f64, Instant),
    saved: Instant,
}

/// A disk that is looked after.
struct Disk {
    present: Present,
    worker: Option<Worker>,
    /// Whether that has ended.
    is_over: bool,
    /// What the present hour gives.
    hour: Gives,
    /// How much was verified at the last look.
    verified: Option<Bytes>,
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
}

impl Daemon {
    /// Reads the configuration and what is remembered.
    ///
    /// # Errors
    /// If the configuration cannot be used.
    pub fn new(options: Options) -> anyhow::Result<Self> {
        let config = Config::read(&options.config)?;
        let (record, wrong) = Record::read(options.states.path());
        if let Some(wrong) = wrong {
            say(Level::Warning, &format!("{wrong}: what each hour gives is learned anew"));
        }
        let looked = (Moment::now().unix_s, Instant::now());
        Ok(Self { options, config, record, disks: BTreeMap::new(), refused: Vec::new(), looked, saved: Instant::now() })
    }

    /// Looks after the disks until it is to end.
    ///
    /// # Errors
    /// If what it remembers cannot be saved at the end.
    pub fn run(&mut self) -> anyhow::Result<()> {
        self.look();
        notify("READY=1");
        let alive = watchdog();
        let mut told = Instant::now();
        while !self.options.stop.load(Ordering::Relaxed) {
            std::thread::sleep(self.options.look_every.min(alive.unwrap_or(Duration::MAX)));
            if alive.is_some_and(|alive| told.elapsed() >= alive / 2) {
                notify("WATCHDOG=1");
                told = Instant::now();
            }
            if self.options.reload.swap(false, Ordering::Relaxed) {
                self.reload();
            }
            self.look();
        }
        notify("STOPPING=1");
        self.end_all();
        self.record.save().context("what each hour gives cannot be saved")
    }

    /// A file that cannot be used changes nothing.
    fn reload(&mut self) {
        match Config::read(&self.options.config) {
            Ok(config) => {
                self.config = config;
                say(Level::Notice, "the configuration was read again");
            }
            Err(error) => say(Level::Error, &format!("{error}; going on as before")),
        }
    }

    /// One look at everything.
    fn look(&mut self) {
        let now = Moment::now();
        self.follow_the_clock(now.unix_s);
        self.find_disks(now.unix_s);
        // Before their checkpoints are read: those of scrubs that are over are final.
        self.disks.values_mut().for_each(Disk::look_for_the_end);
        let passes = self.passes();
        let battery = on_battery(Path::new("/sys/class/power_supply"));
        for identity in self.by_deadline(&passes, now) {
            let taken = self.taken(&identity);
            let (wish, _) = self.config.of(&identity, &self.disks[&identity].present.path);
            let known = self.record.disks.get(&identity).cloned().unwrap_or_default();
            let Some(disk) = self.disks.get_mut(&identity) else { continue };
            let pass = passes.get(&identity);
            let passed_s = disk.account(pass, now, self.options.look_every);
            if let (Some((minute, wanted_s, bytes)), Some(known)) = (passed_s, self.record.disks.get_mut(&identity)) {
                known.week.add(minute, wanted_s, bytes);
            }
            disk.reap(now.unix_s);
            let facts = disk.facts(pass, now, battery, taken);
            let (next, outlook) = next(&identity, &wish, &known, &facts);
            disk.tell(&next, &outlook, pass, now.unix_s);
            disk.act(&next, &wish, &self.options);
        }
        if self.saved.elapsed() > Duration::from_secs(3600) {
            self.saved = Instant::now();
            if let Err(error) = self.record.save() {
                say(Level::Warning, &format!("what each hour gives cannot be saved: {error}"));
            }
        }
    }

    /// Whoever sets the clock makes no disk overdue of which only this service knows since when it is there.
    fn follow_the_clock(&mut self, now: f64) {
        let (before, at) = self.looked;
        let by = now - before - at.elapsed().as_secs_f64();
        self.looked = (now, Instant::now());
        if by.abs() > WAS_SET_S {
            say(Level::Notice, "the clock was set, or the machine slept");
            self.record.disks.values_mut().for_each(|known| known.since_unix_s += by);
        }
    }

    fn find_disks(&mut self, now: f64) {
        let mut refused = Vec::new();
        let mut here = Vec::new();
        for found in present(&self.config) {
            match found {
                Ok(present) if present.size.0 > 0 => {
                    if !self.config.of(&present.identity, &present.path).0.ignore {
                        here.push(present);
                    }
                }
                Ok(_) => {}
                Err(why) => refused.push(why),
            }
        }
        refused.iter().filter(|why| !self.refused.contains(why)).for_each(|why| say(Level::Warning, why));
        self.refused = refused;
        for present in here.iter().cloned() {
            let known = self.record.disks.entry(present.identity.clone());
            let known = known.or_insert_with(|| Known { since_unix_s: now, seen_unix_s: now, week: Week::default() });
            known.seen_unix_s = now;
            match self.disks.get_mut(&present.identity) {
                Some(disk) => disk.present = present,
                None => {
                    self.disks.insert(present.identity.clone(), Disk::new(present));
                }
            }
        }
        // One that is gone, or ignored by now: its scrub ends by itself, or is asked to.
        self.disks.retain(|identity, disk| {
            let is_here = here.iter().any(|present| present.identity == *identity);
            if !is_here && let Some(worker) = &mut disk.worker {
                worker.ask_to_end();
                return worker.ended().is_none() && !worker.is_lost();
            }
            is_here
        });
        self.record.disks.retain(|_, known| now - known.seen_unix_s < FORGOTTEN_S);
    }

    fn passes(&self) -> BTreeMap<String, Pass> {
        let listed = self.options.states.list().unwrap_or_default();
        // What is wrong with a checkpoint its scrub says.
        listed.into_iter().filter_map(|one| one.pass.ok()).map(|pass| (pass.identity.clone(), pass)).collect()
    }

    /// Who is due first has the first choice.
    fn by_deadline(&self, passes: &BTreeMap<String, Pass>, now: Moment) -> Vec<String> {
        let mut all: Vec<(bool, f64, String)> = Vec::new();
        for (identity, disk) in &self.disks {
            let (wish, _) = self.config.of(identity, &disk.present.path);
            let known = self.record.disks.get(identity).cloned().unwrap_or_default();
            let facts = disk.facts(passes.get(identity), now, false, None);
            all.push((disk.worker.is_none(), next(identity, &wish, &known, &facts).1.deadline, identity.clone()));
        }
        all.sort_by(|a, b| (a.0, a.1).partial_cmp(&(b.0, b.1)).unwrap_or(std::cmp::Ordering::Equal));
        all.into_iter().map(|(.., identity)| identity).collect()
    }

    /// What a disk shares with another that is being read.
    fn taken(&self, identity: &str) -> Option<String> {
        let disk = self.disks.get(identity).filter(|disk| disk.worker.is_none())?;
        let others = self.disks.iter().filter(|(other, one)| *other != identity && one.worker.is_some());
        let mut shared = others.flat_map(|(_, one)| &one.present.shares);
        shared.find(|name| disk.present.shares.contains(name)).cloned()
    }

    fn end_all(&mut self) {
        let began = Instant::now();
        self.disks.values_mut().filter_map(|disk| disk.worker.as_mut()).for_each(Worker::ask_to_end);
        let is_left = |disk: &mut Disk| disk.worker.as_mut().is_some_and(|worker| worker.ended().is_none());
        while self.disks.values_mut().any(is_left) && began.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Disk {
    fn new(present: Present) -> Self {
        Self {
            present,
            worker: None,
            is_over: false,
            hour: Gives::default(),
            verified: None,
            failures: 0,
            retry: None,
            said: Said::default(),
        }
    }

    fn look_for_the_end(&mut self) {
        self.is_over = self.worker.as_mut().is_some_and(|worker| worker.ended().is_some());
    }

    fn name(&self) -> String {
        self.present.path.display().to_string()
    }

    /// Takes in what was verified since the last look; what an hour gave, when it is over.
    fn account(&mut self, pass: Option<&Pass>, now: Moment, looked: Duration) -> Option<(u32, f64, u64)> {
        let verified = pass.map(Pass::verified);
        if self.worker.is_some() {
            self.hour.wanted_s += looked.as_secs_f64();
            // A new pass begins anew.
            let before = self.verified.filter(|before| Some(*before) <= verified).unwrap_or_default();
            self.hour.bytes += verified.unwrap_or_default().0 - before.0;
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

    /// Takes note of a scrub that has ended.
    fn reap(&mut self, now: f64) {
        let Some(worker) = &mut self.worker else { return };
        if worker.is_lost() {
            say(Level::Error, &format!("{}: its scrub does not end: the disk does not answer", self.name()));
        } else if let Some(went) = worker.ended().filter(|_| self.is_over) {
            if went {
                (self.failures, self.retry) = (0, None);
            } else {
                let after = (FIRST_RETRY_S * 2f64.powi(self.failures.min(16) as i32)).min(LONGEST_RETRY_S);
                (self.failures, self.retry) = (self.failures + 1, Some(now + after));
                let again = Nanos((after * 1e9) as u64);
                say(Level::Error, &format!("{}: its scrub failed, and is tried again in {again}", self.name()));
            }
        } else {
            return;
        }
        self.worker = None;
    }

    fn facts(&self, pass: Option<&Pass>, now: Moment, on_battery: bool, taken: Option<String>) -> Facts {
        let left = |pass: &Pass| Bytes(self.present.size.0.saturating_sub(pass.verified().0));
        Facts {
            now,
            size: self.present.size,
            left: pass.filter(|pass| !pass.over()).map(left),
            last: pass.and_then(|pass| pass.completed_unix_s).map(|last| last as f64),
            usual_mean_s: self.present.usual_mean_s,
            on_battery,
            taken,
            retry: self.retry,
        }
    }

    /// Begins its scrub, or ends it.
    fn act(&mut self, next: &Next, wish: &Wish, options: &Options) {
        match (next, &mut self.worker) {
            (Next::Run(mean), None) => {
                match Worker::start(&options.program, &self.present, wish, *mean, options.states.path()) {
                    Ok(worker) => self.worker = Some(worker),
                    Err(error) => say(Level::Error, &format!("{}: no scrub can be started: {error}", self.name())),
                }
            }
            (Next::Run(mean), Some(worker)) => {
                let has_changed = (mean - worker.mean_s).abs() > 0.25 * worker.mean_s;
                if has_changed && worker.began.elapsed() > SETTLED {
                    worker.ask_to_end();
                }
            }
            (Next::Rest(_) | Next::Wait(_), Some(worker)) => worker.ask_to_end(),
            (Next::Rest(_) | Next::Wait(_), None) => {}
        }
    }

    /// Says what has changed.
    fn tell(&mut self, next: &Next, outlook: &Outlook, pass: Option<&Pass>, now: f64) {
        let name = self.name();
        let within = |seconds: f64| Nanos((seconds.max(0.0) * 1e9).min(1e18) as u64);
        let doing = match next {
            Next::Rest(until) => format!("verified; the next pass begins in {}", within(until - now)),
            Next::Run(mean) => format!("is being verified, at a mean slowdown of {}", Nanos((mean * 1e9) as u64)),
            Next::Wait(Reason::Window(minutes)) => {
                format!("waits for its window, which opens in {}", within(f64::from(*minutes) * 60.0))
            }
            Next::Wait(Reason::Battery) => "waits, as the machine runs on its battery".into(),
            Next::Wait(Reason::Taken(what)) => format!("waits for another part of {what}"),
            Next::Wait(Reason::Failed(_)) => String::new(),
        };
        // By its words, not by its numbers, which change all the time.
        let words =
            |text: &str| text.split(|letter: char| letter.is_ascii_digit()).next().unwrap_or_default().to_string();
        if !doing.is_empty() && words(&doing) != words(&self.said.doing) {
            say(Level::Info, &format!("{name}: {doing}"));
        }
        self.said.doing = doing;
        let late = outlook.rest.filter(|rest| rest.expected_s.is_finite());
        let (level, standing) = match outlook.standing {
            Standing::Unknown | Standing::InTime => (Level::Notice, String::new()),
            Standing::Behind { .. } => {
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
        let unreadable = pass.map_or(0, |pass| pass.known_errors().iter().map(|run| run.blocks).sum());
        if unreadable > self.said.unreadable {
            say(
                Level::Error,
                &format!("{name}: {unreadable} blocks cannot be read, or are wrong: idlewise status {name}"),
            );
        }
        self.said.unreadable = unreadable;
    }
}
