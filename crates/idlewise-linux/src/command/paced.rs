//! Runs processes in the gaps of the disks that they use.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroU64;
use std::time::Duration;

use idlewise::drive::{Compared, Measured};
use idlewise::policy::Account;
use idlewise::tune::{Goal, TuneError};
use idlewise::{Bytes, Nanos};
use rustix::thread::set_current_timer_slack;

use super::disks::{Disks, How, Opened};
use super::held::Held;
use super::lane::{Lane, Overruns, Why};
use crate::device::WholeDisk;
use crate::monitor::{Counter, Monitor, MonitorError, Own, WRITTEN_BY, now};

/// Time between two looks while the command runs: the foreground waits for it at least half as long on average.
const LOOK: Duration = Duration::from_micros(500);
/// And while it is held: between the shortest and the longest, by what it waits for.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);
const LONGEST_WAIT: Duration = Duration::from_millis(10);
/// Time between two looks for disks that have come to be used.
const LOOK_FOR_DISKS: Nanos = Nanos::from_secs(1);
/// Disks that are watched from the beginning, at most: those with the most requests so far. Others are when one is seen to work.
const AT_FIRST: usize = 8;
/// Disks that are watched, at most: each costs every request of the machine some nanoseconds.
const MOST: usize = 64;
/// So much time is left to processes that were asked to end.
const GRACE: Nanos = Nanos::from_secs(5);

/// How processes are run.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The mean slowdown that the foreground may suffer; that of each kind of disk where none is given.
    pub mean_slowdown: Option<Nanos>,
    /// The largest, which is told of where it is passed.
    pub max_slowdown: Option<Nanos>,
    /// The idle wait, where it is not to be tuned.
    pub idle_wait: Option<Nanos>,
    /// The disks, where it is not to be found out which they are.
    pub disks: Option<Vec<WholeDisk>>,
}

/// It cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A monitor failed.
    #[error(transparent)]
    Monitor(#[from] MonitorError),
    /// The processes cannot be held or let go.
    #[error("the processes cannot be held: {0}")]
    Hold(#[source] io::Error),
    /// Nothing can be tuned.
    #[error(transparent)]
    Tune(#[from] TuneError),
}

/// Processes that are run in the gaps.
pub struct Paced {
    held: Held,
    main: Option<u32>,
    settings: Settings,
    lanes: Vec<Lane>,
    /// Those that are not watched.
    disks: Disks,
    looked: Nanos,
    began: Nanos,
    /// Since when it has been as it is now, and how long the processes have run before.
    since: Nanos,
    ran: Nanos,
    why: Why,
    /// The disk that keeps them from running.
    against: Option<(u32, u32)>,
    spent: BTreeMap<&'static str, Nanos>,
    /// Until when they run whatever the foreground does: they were asked to end.
    grace: Nanos,
    paused: bool,
    /// Why the coarser monitor is used.
    pub coarse: Option<String>,
    /// Where the kernel does not say for whom it writes: what counts the bytes that the processes write, how many those were, and when more
    /// were last seen.
    writes: Option<(Counter, u64, Nanos)>,
    /// What is to be said, once each.
    warnings: Vec<String>,
    warned: [bool; 3],
}

/// Where it stands, for whoever watches.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Whether the processes run, and why not.
    pub why: Why,
    /// Name of the disk that keeps them from it.
    pub disk: Option<String>,
    /// For how long there was anything to run.
    pub elapsed: Nanos,
    /// For how long they ran.
    pub ran: Nanos,
    /// What the time went on, by the names of [`Why`].
    pub spent: BTreeMap<&'static str, Nanos>,
    /// The disks that they have used, or all that were named.
    pub disks: Vec<DiskSoFar>,
}

/// What they cost the foreground of one disk.
#[derive(Clone, Debug)]
pub struct DiskSoFar {
    /// Its name.
    pub name: String,
    /// What is to be kept.
    pub goal: Goal,
    /// What the foreground suffered, and what the processes moved.
    pub measured: Measured,
    /// How the account stands.
    pub account: Option<Account>,
    /// What comparing used idle intervals with some left alone has found.
    pub compared: Option<Compared>,
    /// How long the foreground waited until the processes were held.
    pub overruns: Overruns,
    /// The idle wait.
    pub idle_wait: Nanos,
    /// Name of the monitor.
    pub monitor: &'static str,
    /// Events that it lost.
    pub lost_events: u64,
}

impl Paced {
    /// Begins to watch the disks; the processes run on as long as nobody holds them.
    ///
    /// # Errors
    /// If none of the disks that were named can be watched.
    pub fn new(held: Held, settings: Settings) -> Result<Self, RunError> {
        let at = now();
        let mut paced = Self {
            held,
            main: None,
            settings,
            lanes: Vec::new(),
            disks: Disks::default(),
            looked: at,
            began: at,
            since: at,
            ran: Nanos::ZERO,
            why: Why::Runs,
            against: None,
            spent: BTreeMap::new(),
            grace: Nanos::ZERO,
            paused: false,
            coarse: None,
            writes: None,
            warnings: Vec::new(),
            warned: [false; 3],
        };
        if !paced.held.group().is_some_and(|group| group.has_writes()) {
            paced.writes = Some((paced.held.counter(), 0, Nanos::ZERO));
        }
        match paced.settings.disks.take() {
            Some(disks) => disks.into_iter().try_for_each(|disk| paced.watch(disk, true))?,
            None => {
                let most = paced.disks.all().into_iter().take(AT_FIRST).filter(|(completed, _)| *completed > 0);
                for (_, disk) in most {
                    let numbers = disk.numbers();
                    if paced.watch(disk, false).is_err() {
                        paced.disks.refuse(numbers);
                    }
                }
            }
        }
        Ok(paced)
    }

    /// From now on this thread paces the processes: its waits end when they should. `main` is the one that the others come from; a child of
    /// this process is the caller's to wait for.
    pub fn begin(&mut self, main: Option<u32>) {
        self.main = main;
        // What is started from this thread would inherit it.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        (self.began, self.since) = (now(), now());
    }

    /// The processes.
    pub fn held(&self) -> &Held {
        &self.held
    }

    /// Looks what the foreground does, holds the processes or lets them go, and waits for a moment.
    ///
    /// # Errors
    /// If a monitor fails, or the processes cannot be held.
    pub fn turn(&mut self) -> Result<(), RunError> {
        if now().since(self.looked) >= LOOK_FOR_DISKS {
            self.look_for_disks();
        }
        self.take_opened();
        let runs = !self.held.is_held();
        let (ran, mut wait) = (self.ran_until(now()), self.wait());
        let mut vanished = Vec::new();
        for (place, lane) in self.lanes.iter_mut().enumerate() {
            match lane.poll(std::mem::take(&mut wait), ran) {
                Err(error) if WholeDisk::with_numbers(lane.disk.numbers()).is_ok() => return Err(error.into()),
                Err(_) => vanished.push(place),
                Ok(()) => lane.tune()?,
            }
        }
        for place in vanished.into_iter().rev() {
            let name = self.lanes.remove(place).disk.name();
            self.warnings.push(format!("{name} is gone, and is not watched any more"));
        }
        // Without a disk nobody has waited.
        if !wait.is_zero() {
            std::thread::sleep(wait);
        }
        let why = self.decide(runs, ran);
        self.turn_to(why)
    }

    /// What each disk says; the first that is against it counts.
    fn decide(&mut self, runs: bool, ran: Nanos) -> Why {
        if self.paused {
            return Why::Paused;
        }
        if now() < self.grace {
            return Why::Runs;
        }
        let writes =
            self.writes.as_ref().is_some_and(|(.., last)| *last > Nanos::ZERO && now().since(*last) < WRITTEN_BY);
        let used = self.lanes.iter_mut().filter(|lane| lane.is_used(ran, writes));
        let mut each = used.map(|lane| (lane.decide(runs), lane.disk.numbers()));
        let against = each.find(|(why, _)| *why != Why::Runs);
        self.against = against.map(|(_, disk)| disk);
        against.map(|(why, _)| why).unwrap_or_default()
    }

    fn turn_to(&mut self, why: Why) -> Result<(), RunError> {
        let at = now();
        self.spent.entry(self.why.name()).or_default().0 += at.since(self.since).0;
        self.ran = self.ran_until(at);
        (self.since, self.why) = (at, why);
        let held = why != Why::Runs;
        if held == self.held.is_held() {
            return Ok(());
        }
        if !held {
            // Before their first request.
            self.lanes.iter_mut().for_each(|lane| lane.watched.monitor.own(Own::Processes));
        }
        match self.held.hold(held) {
            // It has ended meanwhile.
            Err(_) if self.held.is_over() => {}
            other => other.map_err(RunError::Hold)?,
        }
        if held {
            self.lanes.iter_mut().for_each(|lane| lane.watched.monitor.own(Own::Nothing));
        }
        Ok(())
    }

    fn ran_until(&self, at: Nanos) -> Nanos {
        if self.held.is_held() { self.ran } else { self.ran + at.since(self.since) }
    }

    /// How long to wait before it looks again.
    fn wait(&self) -> Duration {
        match self.why {
            Why::Runs => LOOK,
            Why::IdleWait { until, .. } => {
                Duration::from(until.since(now())).clamp(Duration::from_micros(50), LONGEST_WAIT)
            }
            Why::Foreground | Why::Finishing => SHORTEST_WAIT,
            _ => LONGEST_WAIT,
        }
    }

    /// Watches disks that have come to work since the last look.
    fn look_for_disks(&mut self) {
        self.looked = now();
        self.held.look_after(self.main);
        self.look_for_writes();
        self.look_outside();
        let watched: Vec<_> = self.lanes.iter().map(|lane| lane.disk.numbers()).collect();
        let mut found = self.disks.at_work(|numbers| watched.contains(&numbers));
        if found.is_empty() {
            return;
        }
        let closing = self.make_room(&mut found);
        let (group, held) = (self.group(), &self.held);
        self.disks.open(found, closing, || How { group, counter: held.counter() });
    }

    /// Takes disks out of the watch that the processes were not seen to use, where there are too many; and others out of those found, where
    /// that leaves no room for them.
    fn make_room(&mut self, found: &mut Vec<WholeDisk>) -> Vec<Box<dyn Monitor>> {
        let mut closing = Vec::new();
        while self.lanes.len() + found.len() > MOST {
            if !std::mem::replace(&mut self.warned[2], true) {
                self.warnings.push(format!(
                    "more than {MOST} disks are at work, and those that it was not seen to use are watched in turn: name its own by --device"
                ));
            }
            match self.lanes.iter().position(|lane| !lane.was_used()) {
                Some(place) => closing.push(self.lanes.remove(place).watched.monitor),
                None => found.truncate(MOST.saturating_sub(self.lanes.len())),
            }
        }
        closing
    }

    /// Watches what was opened beside the pacing.
    fn take_opened(&mut self) {
        while let Some((disk, opened)) = self.disks.opened() {
            // What happened until now is nobody's.
            let ready = opened.and_then(|(mut monitor, coarse)| {
                monitor.poll(Duration::ZERO, &mut Vec::new())?;
                Ok((monitor, coarse))
            });
            match ready {
                Ok(opened) => self.add(disk, opened, false),
                Err(_) => self.disks.refuse(disk.numbers()),
            }
        }
    }

    /// Whether the processes have written more, which the kernel does later.
    fn look_for_writes(&mut self) {
        const WORTH_SAYING: u64 = 16 << 20;
        let Some((counter, before, last)) = &mut self.writes else { return };
        let written = counter().written;
        if written > std::mem::replace(before, written) {
            *last = now();
        }
        if written > WORTH_SAYING && !std::mem::replace(&mut self.warned[0], true) {
            let text = "it writes, and here the kernel does not say for whom it writes later: that holds it back, but what that costs others \
                        is in no account";
            self.warnings.push(text.into());
        }
    }

    /// Whether processes have left the group.
    fn look_outside(&mut self) {
        let outside = self.main.map_or(Vec::new(), |main| self.held.outside(main));
        if let Some(pid) = outside.first()
            && !std::mem::replace(&mut self.warned[1], true)
        {
            self.warnings.push(format!("process {pid} is in another control group, and is not held there"));
        }
    }

    /// What is to be said since this was last called.
    pub fn warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    fn group(&self) -> Option<u64> {
        self.held.group().and_then(|group| group.number().ok())
    }

    fn watch(&mut self, disk: WholeDisk, named: bool) -> Result<(), RunError> {
        let opened = How { group: self.group(), counter: self.held.counter() }.open(&disk)?;
        self.add(disk, opened, named);
        Ok(())
    }

    fn add(&mut self, disk: WholeDisk, (mut monitor, coarse): Opened, named: bool) {
        if let Some(why) = coarse {
            self.coarse.get_or_insert(why);
        }
        if !self.held.is_held() {
            monitor.own(Own::Processes);
        }
        let default = disk.kind().goal();
        let goal = Goal::new(
            self.settings.mean_slowdown.unwrap_or(default.mean_slowdown),
            self.settings.max_slowdown.unwrap_or(default.max_slowdown),
        );
        self.lanes.push(Lane::new(disk, monitor, goal, self.settings.idle_wait, named));
    }

    /// They were asked to end: they run for some seconds, so that they can.
    pub fn let_end(&mut self) -> Result<(), RunError> {
        self.grace = Nanos(now().0 + GRACE.0);
        self.turn_to(Why::Runs)
    }

    /// Holds them until it is to go on.
    ///
    /// # Errors
    /// If they cannot be held.
    pub fn pause(&mut self, paused: bool) -> Result<(), RunError> {
        self.paused = paused;
        if paused { self.turn_to(Why::Paused) } else { Ok(()) }
    }

    /// Where it stands.
    pub fn progress(&mut self) -> Progress {
        let (at, ran) = (now(), self.ran_until(now()));
        let mut spent = self.spent.clone();
        spent.entry(self.why.name()).or_default().0 += at.since(self.since).0;
        let against = self.against.filter(|_| self.held.is_held());
        let disk = self.lanes.iter().find(|lane| Some(lane.disk.numbers()) == against);
        let disk = disk.map(|lane| lane.disk.name());
        let disks = self.lanes.iter_mut().filter(|lane| lane.was_used()).map(DiskSoFar::of).collect();
        Progress { why: self.why, disk, elapsed: at.since(self.began), ran, spent, disks }
    }
}

impl DiskSoFar {
    fn of(lane: &mut Lane) -> Self {
        let driver = &mut lane.watched.driver;
        driver.tell();
        Self {
            name: lane.disk.name(),
            goal: lane.goal,
            measured: *driver.measured(),
            account: driver.account(),
            compared: driver.clock().compared(),
            overruns: lane.overruns.clone(),
            idle_wait: lane.waiting.idle_wait,
            monitor: lane.watched.monitor.name(),
            lost_events: lane.watched.monitor.lost(),
        }
    }

    /// Bytes that the processes moved.
    pub fn moved(&self) -> Bytes {
        self.measured.worked
    }
}

impl Why {
    /// Its name, as in `--json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Foreground => "foreground-active",
            Self::IdleWait { .. } => "idle-wait",
            Self::Overdrawn { .. } => "overdrawn",
            Self::Control => "control",
            Self::Finishing => "finishing",
            Self::PolicyStopped => "policy-stopped",
            Self::Paused => "paused",
        }
    }
}
