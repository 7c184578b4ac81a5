//! The loop: it looks at each disk every few seconds, and does what is to be done with it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use idlewise::schedule::Week;
use idlewise_linux::scrub::StateFolder;

use crate::Config;
use crate::decision::{Next, next};
use crate::disk::Disk;
use crate::machine::{Moment, on_battery, present, shares};
use crate::record::{Known, Record};
use crate::told::{Level, notify, say, watchdog};
use crate::worker::Worker;

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
            self.wait(self.options.look_every.min(alive.unwrap_or(Duration::MAX)));
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

    /// Until the next look, or until there is something to do.
    fn wait(&self, time: Duration) {
        const STEP: Duration = Duration::from_millis(100);
        let until = Instant::now() + time;
        let is_told = || self.options.stop.load(Ordering::Relaxed) || self.options.reload.load(Ordering::Relaxed);
        while !is_told() && Instant::now() < until {
            std::thread::sleep(until.saturating_duration_since(Instant::now()).min(STEP));
        }
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
        let passed = self.follow_the_clock(now.unix_s);
        // Before their checkpoints are read: those of scrubs that are over are final.
        self.disks.values_mut().for_each(Disk::look_for_the_end);
        self.find_disks(now.unix_s);
        let battery = on_battery(Path::new("/sys/class/power_supply"));
        for identity in self.by_deadline(now) {
            let taken = self.taken(&identity);
            let (wish, _) = self.config.of(&identity, &self.disks[&identity].present.path);
            let known = self.record.disks.get(&identity).cloned().unwrap_or_default();
            let Some(disk) = self.disks.get_mut(&identity) else { continue };
            let gave = disk.account(now, passed);
            if let (Some((minute, wanted_s, bytes)), Some(known)) = (gave, self.record.disks.get_mut(&identity)) {
                known.week.add(minute, wanted_s, bytes);
            }
            disk.reap(now.unix_s);
            let facts = disk.facts(now, battery, taken);
            let (next, outlook) = next(&identity, &wish, &known, &facts);
            if matches!(next, Next::Run(_)) && disk.worker.is_none() {
                // Others may have been put together since; before, nothing is read from a disk.
                disk.shares = shares(&disk.present.path);
                if self.taken(&identity).is_some() {
                    continue;
                }
            }
            let Some(disk) = self.disks.get_mut(&identity) else { continue };
            disk.tell(&next, &outlook, now.unix_s);
            disk.act(&next, &wish, &self.options);
        }
        if self.saved.elapsed() > Duration::from_secs(3600) {
            self.saved = Instant::now();
            if let Err(error) = self.record.save() {
                say(Level::Warning, &format!("what each hour gives cannot be saved: {error}"));
            }
        }
    }

    /// Whoever sets the clock makes no disk overdue of which only this service knows since when it is there. How long the last look is ago.
    fn follow_the_clock(&mut self, now: f64) -> Duration {
        let (before, at) = self.looked;
        let passed = at.elapsed();
        let by = now - before - passed.as_secs_f64();
        self.looked = (now, Instant::now());
        if by.abs() > WAS_SET_S {
            say(Level::Notice, "the clock was set, or the machine slept");
            self.record.disks.values_mut().for_each(|known| known.since_unix_s += by);
        }
        passed
    }

    fn find_disks(&mut self, now: f64) {
        let mut refused = Vec::new();
        let mut here = Vec::new();
        for found in present(&self.config) {
            match found {
                Ok((present, device)) if present.size.0 > 0 => {
                    if !self.config.of(&present.identity, &present.path).0.ignore {
                        // That of another disk of this name is none. What is wrong with one its scrub says.
                        let pass = self.options.states.pass(&device).ok().flatten();
                        here.push((present, pass));
                    }
                }
                Ok(_) => {}
                Err(why) => refused.push(why),
            }
        }
        refused.iter().filter(|why| !self.refused.contains(why)).for_each(|why| say(Level::Warning, why));
        self.refused = refused;
        let is_here: BTreeSet<String> = here.iter().map(|(present, _)| present.identity.clone()).collect();
        for (present, pass) in here {
            let known = self.record.disks.entry(present.identity.clone());
            let known = known.or_insert_with(|| Known { since_unix_s: now, seen_unix_s: now, week: Week::default() });
            known.seen_unix_s = now;
            let disk = self.disks.entry(present.identity.clone()).or_insert_with(|| Disk::new(present.clone()));
            (disk.present, disk.pass) = (present, pass);
        }
        // One that is gone, or ignored by now: its scrub ends by itself, or is asked to.
        self.disks.retain(|identity, disk| {
            let is_here = is_here.contains(identity);
            if !is_here && let Some(worker) = &mut disk.worker {
                worker.ask_to_end();
                return worker.ended().is_none() && !worker.is_lost();
            }
            is_here
        });
        self.record.disks.retain(|_, known| now - known.seen_unix_s < FORGOTTEN_S);
    }

    /// Who is due first has the first choice.
    fn by_deadline(&self, now: Moment) -> Vec<String> {
        let mut all: Vec<(bool, f64, String)> = Vec::new();
        for (identity, disk) in &self.disks {
            let (wish, _) = self.config.of(identity, &disk.present.path);
            let known = self.record.disks.get(identity).cloned().unwrap_or_default();
            let facts = disk.facts(now, false, None);
            all.push((disk.worker.is_none(), next(identity, &wish, &known, &facts).1.deadline, identity.clone()));
        }
        all.sort_by(|a, b| (a.0, a.1).partial_cmp(&(b.0, b.1)).unwrap_or(std::cmp::Ordering::Equal));
        all.into_iter().map(|(.., identity)| identity).collect()
    }

    /// What a disk shares with another that is being read.
    fn taken(&self, identity: &str) -> Option<String> {
        let disk = self.disks.get(identity).filter(|disk| disk.worker.is_none())?;
        let others = self.disks.iter().filter(|(other, one)| *other != identity && one.worker.is_some());
        let mut shared = others.flat_map(|(_, one)| &one.shares);
        shared.find(|name| disk.shares.contains(name)).cloned()
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
