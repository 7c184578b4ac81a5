//! The loop: it looks at each disk every few seconds, and does what is to be done with it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use anyhow::Context;
use idlewise::Nanos;
use idlewise_linux::Hold;
use idlewise_linux::device::Device;
use idlewise_linux::scrub::{Note, RunSoFar, StateFolder, notes};

use crate::control::{Asked, Control, Shown};
use crate::decision::{Next, Reason, next, wakes};
use crate::disk::Disk;
use crate::finder::Finder;
use crate::machine::{Moment, on_battery};
use crate::overview::{Loaded, Overview};
use crate::record::{Known, Record};
use crate::told::{Level, notify, say, watchdog};
use crate::web::Request;
use crate::web::listen::{Answer, listen};
use crate::web::page::in_words;
use crate::worker::Worker;
use crate::{Config, WhenBehind, Wish};

/// The version of idlewise.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// A clock that differs from the time that has passed by more than this was set.
pub const WAS_SET_S: f64 = 3600.0;
/// So long nothing ends for a clock that was set.
const CLOCK_SETTLES: Duration = Duration::from_secs(60);

/// How the service runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is wished.
    pub config: PathBuf,
    /// Where checkpoints are, and what is remembered.
    pub states: StateFolder,
    /// The command `idlewise`.
    pub program: PathBuf,
    /// The socket on which it is asked and told what to do, if systemd hands over none.
    pub socket: PathBuf,
    /// Time between two looks.
    pub look_every: Duration,
    /// It is to end.
    pub stop: Arc<AtomicBool>,
    /// The configuration is to be read again.
    pub reload: Arc<AtomicBool>,
}

/// The service.
pub struct Daemon {
    pub(crate) options: Options,
    pub(crate) config: Config,
    pub(crate) loaded: Loaded,
    pub(crate) record: Record,
    pub(crate) disks: BTreeMap<String, Disk>,
    /// What was said of devices that cannot be looked after.
    pub(crate) refused: Vec<String>,
    /// Whether it was said that no disk is looked after.
    pub(crate) said_idle: bool,
    /// What answers those who ask, and where their orders come from.
    control: Control,
    pub(crate) finder: Finder,
    orders: Receiver<Asked>,
    /// The last look: by the machine's clock, and by one that nobody sets.
    looked: (f64, Instant, Nanos),
    saved: Instant,
    /// When the clock was set. Until it is surely right nothing ends for it.
    clock_set: Option<Instant>,
    began: Instant,
    /// Why nobody could be told at the last look.
    pub(crate) untold: Option<String>,
    /// Nobody else remembers anything in this folder.
    _hold: Hold,
}

impl Daemon {
    /// Reads the configuration and what is remembered.
    ///
    /// # Errors
    /// If the configuration or the folder of checkpoints cannot be used, or another daemon uses that folder.
    pub fn new(options: Options) -> anyhow::Result<Self> {
        let config = Config::read(&options.config)?;
        let folder = || options.states.path().display().to_string();
        let hold = options.states.hold("schedule.lock").with_context(folder)?;
        let hold =
            hold.with_context(|| format!("{}: another daemon uses this folder (holds schedule.lock)", folder()))?;
        let (record, wrong) = Record::read(options.states.path());
        if let Some(wrong) = wrong {
            say(Level::Warning, &format!("{wrong}: what each hour gives is learned anew"));
        }
        let paused = record.disks.values().filter_map(|known| Some((&*known.device, known.paused.as_ref()?)));
        for (of, paused) in record.paused.iter().map(|paused| ("all disks", paused)).chain(paused) {
            say(Level::Notice, &format!("{of}: {}", in_words(paused)));
        }
        let looked = (Moment::now().unix_s, Instant::now(), since_boot());
        let loaded = Loaded { path: options.config.display().to_string(), read_unix_s: looked.0, problem: None };
        let (send, orders) = channel();
        let hosts = Arc::new(RwLock::new(config.hosts().to_vec()));
        let overview = Overview { version: VERSION, config: loaded.clone(), ..Overview::default() };
        let control = Control { shown: Arc::new(RwLock::new(Arc::new(Shown::of(overview)))), orders: send, hosts };
        Ok(Self {
            options,
            config,
            loaded,
            record,
            disks: BTreeMap::new(),
            refused: Vec::new(),
            said_idle: false,
            control,
            finder: Finder::default(),
            orders,
            looked,
            saved: Instant::now(),
            // A machine that has just begun may not know the time yet.
            began: Instant::now(),
            clock_set: None,
            untold: None,
            _hold: hold,
        })
    }

    /// Looks after the disks until it is to end.
    ///
    /// # Errors
    /// If nobody can reach it, or what it remembers cannot be saved at the end.
    pub fn run(&mut self) -> anyhow::Result<()> {
        let control = self.control.clone();
        let answer: Answer = Arc::new(move |request: &Request, from| control.answer(request, from));
        listen(&self.options.socket, &answer)?;
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
                // What is wrong with it was said.
                let _ = self.reload();
            }
            self.look();
        }
        notify("STOPPING=1");
        self.end_all();
        self.record.save().context("what is to be remembered of the disks cannot be saved")
    }

    /// Until the next look, or until there is something to do. Orders are obeyed at once.
    fn wait(&mut self, time: Duration) {
        const STEP: Duration = Duration::from_millis(250);
        let until = Instant::now() + time;
        let is_told =
            |options: &Options| options.stop.load(Ordering::Relaxed) || options.reload.load(Ordering::Relaxed);
        while !is_told(&self.options) && Instant::now() < until {
            let step = until.saturating_duration_since(Instant::now()).min(STEP);
            match self.orders.recv_timeout(step) {
                Ok(Asked { order, disk, answer }) => {
                    let done = self.obey(&order, disk.as_deref());
                    self.look();
                    // Whoever asked may be gone.
                    let _ = answer.send(done);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(step),
            }
        }
    }

    /// A file that cannot be used changes nothing; why it cannot.
    pub(crate) fn reload(&mut self) -> Result<(), String> {
        match Config::read(&self.options.config) {
            Ok(config) => {
                *self.control.hosts.write().unwrap_or_else(PoisonError::into_inner) = config.hosts().to_vec();
                self.config = config;
                self.loaded = Loaded { read_unix_s: Moment::now().unix_s, problem: None, ..self.loaded.clone() };
                say(Level::Notice, "the configuration was read again");
                Ok(())
            }
            Err(error) => {
                let problem = error.to_string();
                say(Level::Error, &format!("{problem}; going on as before"));
                self.loaded.problem = Some(problem.clone());
                Err(problem)
            }
        }
    }

    /// One look at everything.
    fn look(&mut self) {
        let now = Moment::now();
        let passed = self.follow_the_clock(now.unix_s);
        self.config.follow_links();
        // Before their checkpoints are read: those of scrubs that are over are final.
        self.disks.values_mut().for_each(Disk::look_for_the_end);
        self.find_disks(now.unix_s);
        let mut notes = notes(std::slice::from_ref(&self.options.states));
        // Those of an array's members are the array's.
        notes.iter_mut().for_each(|note| note.identity = Device::itself(&note.identity).into());
        if self.is_the_clock_right() {
            self.end_pauses(now.unix_s);
        }
        let was_just_set = self.was_just_set();
        let battery = on_battery(Path::new("/sys/class/power_supply"));
        let mut has_ended = false;
        for identity in self.by_deadline(now) {
            let taken = self.taken(&identity);
            let wish = self.wish(&identity, &self.disks[&identity]);
            let paused = self.paused(&identity);
            let Some(disk) = self.disks.get_mut(&identity) else { continue };
            let known = self.record.disks.entry(identity.clone()).or_default();
            disk.run = run(disk, &notes);
            disk.is_live = notes.iter().any(|note| note.identity == identity && !note.run.doing.is_empty());
            let goal_s = wish.mean_slowdown.map_or(disk.present.usual_mean_s, |mean| mean.as_secs_f64());
            let (gave, cost) = (disk.account(now, passed, goal_s), disk.cost());
            known.cost.add(cost);
            known.recent.add(now.unix_s, cost);
            if let Some((minute, wanted_s, bytes)) = gave {
                known.week.add(minute, wanted_s, bytes);
            }
            if disk.pass.is_some() {
                known.look_at(&disk.bad());
            }
            if disk.done(now.unix_s).is_some_and(|done| known.keep(done)) {
                (has_ended, known.wanted_unix_s) = (true, None);
            }
            disk.reap(now.unix_s);
            let facts = disk.facts(now, battery, taken, paused);
            // Nothing is spent for what it shows then, nor told.
            let when_behind = if was_just_set { WhenBehind::Say } else { wish.when_behind };
            let for_now = Wish { when_behind, ..wish.clone() };
            let (mut next, outlook) = next(&identity, &for_now, known, &facts);
            if matches!(next, Next::Run(_))
                && disk.worker.is_none()
                && notes.iter().any(|note| note.identity == identity)
            {
                next = Next::Wait(Reason::Busy);
            }
            if matches!(next, Next::Run(_)) && disk.worker.is_none() {
                // Others may have been put together since; before, nothing is read from a disk.
                let answered = disk.ask_what_it_shares(now.unix_s, wakes(&for_now, known, &outlook, now.unix_s));
                let is_claimed = disk.is_claimed();
                match (answered, self.taken(&identity)) {
                    (Err(reason), _) => next = Next::Wait(reason),
                    (Ok(()), Some(taken)) => next = Next::Wait(Reason::Taken(taken)),
                    (Ok(()), None) if is_claimed => next = Next::Wait(Reason::Busy),
                    (Ok(()), None) => {}
                }
            }
            let Some(disk) = self.disks.get_mut(&identity) else { continue };
            let acknowledged = self.record.disks.get(&identity).map_or(0, |known| known.acknowledged_of(&known.bad));
            disk.look_for_hangs(now.unix_s, notes.iter().any(|note| note.identity == identity));
            if !was_just_set {
                disk.tell(&next, &outlook, acknowledged, now.unix_s);
            }
            disk.act(&next, &wish, &self.options);
            disk.last = Some((next, outlook));
        }
        if has_ended || self.saved.elapsed() > Duration::from_secs(3600) {
            self.save();
        }
        let overview = self.overview(now.unix_s);
        if !was_just_set {
            self.tell_people(&overview);
        }
        *self.control.shown.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Shown::of(overview));
    }

    /// Keeps what is to be remembered. It is tried again later where that fails, for the reason that comes back.
    pub(crate) fn save(&mut self) -> Option<std::io::Error> {
        self.saved = Instant::now();
        let failed = self.record.save().err();
        if let Some(error) = &failed {
            say(Level::Warning, &format!("what is to be remembered of the disks cannot be saved: {error}"));
        }
        failed
    }

    /// What is wished for a disk.
    pub(crate) fn wish(&self, identity: &str, disk: &Disk) -> Wish {
        self.config.of(identity, &disk.present.path).0
    }

    /// Whoever sets the clock makes no disk overdue of which only this service knows since when it is there. How long the last look is ago.
    fn follow_the_clock(&mut self, now: f64) -> Duration {
        let (before, at, up) = self.looked;
        let (passed, up_now) = (at.elapsed(), since_boot());
        // A machine that sleeps sets no clock.
        let by = now - before - up_now.since(up).as_secs_f64();
        self.looked = (now, Instant::now(), up_now);
        if by.abs() > WAS_SET_S {
            say(Level::Notice, "the clock was set");
            self.clock_set = Some(Instant::now());
            // What another clock has told, before the machine was started again, stays.
            let told = self.record.disks.values_mut().filter(|known| known.since_unix_s <= before);
            told.for_each(|known| known.since_unix_s += by);
            self.disks.values_mut().for_each(|disk| disk.follow_the_clock(by));
        }
        passed
    }

    /// Whether it was set just now: one that jumps ahead often jumps back.
    fn was_just_set(&self) -> bool {
        self.clock_set.is_some_and(|set| set.elapsed() <= CLOCK_SETTLES)
    }

    /// Whether it was not, nor may be, as this has just begun.
    pub(crate) fn is_the_clock_right(&self) -> bool {
        self.began.elapsed() > CLOCK_SETTLES && !self.was_just_set()
    }

    /// Who is due first has the first choice.
    fn by_deadline(&self, now: Moment) -> Vec<String> {
        let (mut all, unknown) = (Vec::<(bool, f64, String)>::new(), Known::default());
        for (identity, disk) in &self.disks {
            let wish = self.wish(identity, disk);
            let known = self.record.disks.get(identity).unwrap_or(&unknown);
            let facts = disk.facts(now, false, None, None);
            all.push((disk.worker.is_none(), next(identity, &wish, known, &facts).1.deadline, identity.clone()));
        }
        all.sort_by(|a, b| (a.0, a.1).partial_cmp(&(b.0, b.1)).unwrap_or(std::cmp::Ordering::Equal));
        all.into_iter().map(|(.., identity)| identity).collect()
    }

    /// What a disk shares with another that is being read.
    fn taken(&self, identity: &str) -> Option<String> {
        let disk = self.disks.get(identity).filter(|disk| disk.worker.is_none())?;
        let others = self.disks.iter().filter(|(other, one)| *other != identity && one.worker.is_some());
        let mut shared = others.flat_map(|(_, one)| &one.shares.names);
        shared.find(|name| disk.shares.names.contains(name)).cloned()
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

/// How long the machine has been up, also asleep.
pub(crate) fn since_boot() -> Nanos {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// How the scrub of a disk goes: by its note, which is newer than its checkpoint.
fn run(disk: &Disk, notes: &[Note]) -> Option<RunSoFar> {
    let note = notes.iter().find(|note| note.identity == disk.present.identity && !note.run.doing.is_empty());
    note.map(|note| note.run.clone()).or_else(|| disk.pass.as_ref()?.run.clone())
}
