//! Runs processes in the gaps of the disks that they use.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroU64;
use std::time::Duration;

use idlewise::Nanos;
use idlewise::tune::TuneError;
use rustix::thread::set_current_timer_slack;

use super::family::Family;
use super::held::Held;
use super::lane::Why;
use super::lanes::Lanes;
use super::progress::{DiskSoFar, Progress};
use crate::device::WholeDisk;
use crate::monitor::{Counter, MonitorError, Moved, Own, WRITTEN_BY, now};
use crate::scrub::Process;

/// Time between two looks while the command runs: the foreground waits for it at least half as long on average.
const LOOK: Duration = Duration::from_micros(500);
/// And while it is held: between the shortest and the longest, by what it waits for.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);
const LONGEST_WAIT: Duration = Duration::from_millis(10);
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
    /// Those that come from it, wherever they are.
    all: Option<Family>,
    lanes: Lanes,
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
    /// Where the kernel does not say for whom it writes: what counts the bytes that the processes write, how many those were, and when more
    /// were last seen.
    writes: Option<(Counter, u64, Nanos)>,
    /// What is to be said, once each.
    warnings: Vec<String>,
    warned: [bool; 2],
}

impl Paced {
    /// Begins to watch the disks; the processes run on as long as nobody holds them.
    ///
    /// # Errors
    /// If none of the disks that were named can be watched.
    pub fn new(held: Held, settings: Settings) -> Result<Self, RunError> {
        let at = now();
        let lanes = Lanes::new(&held, settings)?;
        let counts = !held.group().is_some_and(|group| group.has_writes());
        Ok(Self {
            main: None,
            all: None,
            lanes,
            began: at,
            since: at,
            ran: Nanos::ZERO,
            why: Why::Runs,
            against: None,
            spent: BTreeMap::new(),
            grace: Nanos::ZERO,
            paused: false,
            writes: counts.then(|| (held.counter(), 0, Nanos::ZERO)),
            held,
            warnings: Vec::new(),
            warned: [false; 2],
        })
    }

    /// From now on this thread paces the processes: its waits end when they should. `main` is the one that the others come from; a child of
    /// this process is the caller's to wait for.
    pub fn begin(&mut self, main: Option<u32>) {
        self.main = main;
        self.all = main.and_then(Process::of).map(Family::of);
        // What is started from this thread would inherit it.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        (self.began, self.since) = (now(), now());
    }

    /// The processes.
    pub fn held(&self) -> &Held {
        &self.held
    }

    /// Whether they have all ended.
    pub fn is_over(&mut self) -> bool {
        self.held.is_over()
    }

    /// Looks what the foreground does, holds the processes or lets them go, and waits for a moment.
    ///
    /// # Errors
    /// If a monitor fails, or the processes cannot be held.
    pub fn turn(&mut self) -> Result<(), RunError> {
        if self.lanes.is_due() {
            self.held.look_after(self.main);
            self.look_for_writes();
            self.look_outside();
            self.lanes.look_for_disks(&self.held);
        }
        self.lanes.take_opened(&self.held);
        let (runs, ran) = (!self.held.is_held(), self.ran_until(now()));
        let left = self.lanes.poll(self.wait(), ran)?;
        // Without a disk nobody has waited.
        if !left.is_zero() {
            std::thread::sleep(left);
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
        let used = self.lanes.all.iter_mut().filter(|lane| lane.is_used(ran, writes));
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
            self.lanes.all.iter_mut().for_each(|lane| lane.watched.monitor.own(Own::Processes));
        }
        match self.held.hold(held) {
            // It has ended meanwhile.
            Err(_) if self.held.is_over() => {}
            other => other.map_err(RunError::Hold)?,
        }
        if held {
            self.lanes.all.iter_mut().for_each(|lane| lane.watched.monitor.own(Own::Nothing));
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

    /// Whether the processes have written more, which the kernel does later.
    fn look_for_writes(&mut self) {
        const WORTH_SAYING: u64 = 16 << 20;
        let Some((counter, before, last)) = &mut self.writes else { return };
        let Some(Moved { written, .. }) = counter() else { return };
        if written > std::mem::replace(before, written) {
            *last = now();
        }
        if written > WORTH_SAYING && !std::mem::replace(&mut self.warned[0], true) {
            let text = "it writes, and this kernel writes its pages later without saying for whom (no io and memory controllers of control \
                        groups, version 2): those writes hold it back as others' do, and what they cost others is in no account, so the \
                        goal may be missed";
            self.warnings.push(text.into());
        }
    }

    /// Whether processes have left the group.
    fn look_outside(&mut self) {
        if let Some((pid, why)) = self.held.outside(self.all.as_mut())
            && !std::mem::replace(&mut self.warned[1], true)
        {
            self.warnings.push(format!(
                "process {pid} {why}, and is not held: what it costs others is in no account, so the goal may be missed"
            ));
        }
    }

    /// What is to be said since this was last called.
    pub fn warnings(&mut self) -> Vec<String> {
        self.warnings.append(&mut self.lanes.warnings);
        std::mem::take(&mut self.warnings)
    }

    /// Why the coarser monitor is used, where it is.
    pub fn coarse(&self) -> Option<&str> {
        self.lanes.coarse.as_deref()
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
        let disk = self.lanes.all.iter().find(|lane| Some(lane.disk.numbers()) == against);
        let disk = disk.map(|lane| lane.disk.name());
        let disks = self.lanes.all.iter_mut().filter(|lane| lane.was_used()).map(DiskSoFar::of).collect();
        Progress { why: self.why, disk, elapsed: at.since(self.began), ran, spent, disks }
    }
}
