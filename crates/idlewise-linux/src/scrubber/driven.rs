//! An owner's scrub, opened in the gaps and closed when somebody comes.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use idlewise::Nanos;
use idlewise::tune::{Goal, TuneError};

use super::marked::{Marked, Marks};
use super::{Scrubber, Standing, Unread};
use crate::command::{DiskSoFar, Lane, Why};
use crate::monitor::{EventKind, MonitorError, now};
use crate::scrub::AccountSoFar;

/// Time between two looks while it is at work, and while it is not.
const LOOK: Duration = Duration::from_millis(1);
const SHORTEST_WAIT: Duration = Duration::from_micros(50);
const LONGEST_WAIT: Duration = Duration::from_millis(10);
/// So long it rests at the end before it is stopped, and this much longer if it is still at work.
const LEAST_REST: Duration = Duration::from_millis(150);
const MOST_REST: Duration = Duration::from_secs(1);

/// How it is driven.
#[derive(Clone, Copy, Debug, Default)]
pub struct DrivenSettings {
    /// The mean slowdown that the foreground may suffer; that of each kind of disk where none is given.
    pub mean_slowdown: Option<Nanos>,
    /// The largest, which is told of where it is passed.
    pub max_slowdown: Option<Nanos>,
    /// The idle wait, where it is not to be tuned.
    pub idle_wait: Option<Nanos>,
}

/// It cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum DrivenError {
    /// A monitor failed.
    #[error(transparent)]
    Monitor(#[from] MonitorError),
    /// Nothing can be tuned.
    #[error(transparent)]
    Tune(#[from] TuneError),
    /// The owner does not go on.
    #[error(transparent)]
    Scrubber(#[from] io::Error),
}

/// The scrub, and the disks that it is at.
pub struct Driven {
    scrubber: Box<dyn Scrubber>,
    lanes: Vec<(Lane, Marks)>,
    standing: Standing,
    /// Whether it was opened, and since when it has been at work.
    open: bool,
    at_work: Option<Nanos>,
    began: Nanos,
    since: Nanos,
    why: Why,
    spent: BTreeMap<&'static str, Nanos>,
    opens: u64,
    /// How long it was at work in all; how often it was closed, and how long it took then until it was quiet.
    worked: Nanos,
    closed_at: Option<Nanos>,
    closes: u64,
    closing: Nanos,
    longest_closing: Nanos,
}

/// Where it stands.
#[derive(Clone, Debug)]
pub struct SoFar {
    /// Whether it is at work, and why not.
    pub why: Why,
    /// How far the scrub is.
    pub standing: Standing,
    /// What could not be read, as far as that is known.
    pub unread: Vec<Unread>,
    /// Since it began.
    pub elapsed: Nanos,
    /// For how long it was at work.
    pub worked: Nanos,
    /// What the time went on.
    pub spent: BTreeMap<&'static str, Nanos>,
    /// How often it was opened.
    pub opens: u64,
    /// From closing until it was quiet, on average and at most.
    pub closing: (Nanos, Nanos),
    /// What it cost on each disk that is watched.
    pub disks: Vec<DiskSoFar>,
}

impl Driven {
    /// Begins to watch. `accounts` are those of the run before, a disk each: what they owe stays owed.
    ///
    /// # Errors
    /// If users of its disks cannot be seen.
    pub fn new(
        mut scrubber: Box<dyn Scrubber>,
        settings: DrivenSettings,
        accounts: &[AccountSoFar],
    ) -> Result<Self, DrivenError> {
        let users = scrubber.users()?;
        let standing = scrubber.look()?;
        let mut before = accounts.iter();
        let lane = |(disk, users): (crate::device::WholeDisk, _)| {
            let default = disk.kind().goal();
            let goal = Goal::new(
                settings.mean_slowdown.unwrap_or(default.mean_slowdown),
                settings.max_slowdown.unwrap_or(default.max_slowdown),
            );
            let marks = Marks::default();
            let monitor = Box::new(Marked { users, marks: marks.clone() });
            let mut lane = Lane::new(disk, monitor, goal, settings.idle_wait, true);
            before.next().into_iter().for_each(|account| lane.go_on_with(account));
            (lane, marks)
        };
        let at = now();
        Ok(Self {
            scrubber,
            lanes: users.into_iter().map(lane).collect(),
            standing,
            open: false,
            at_work: None,
            began: at,
            since: at,
            why: Why::default(),
            spent: BTreeMap::new(),
            opens: 0,
            worked: Nanos::ZERO,
            closed_at: None,
            closes: 0,
            closing: Nanos::ZERO,
            longest_closing: Nanos::ZERO,
        })
    }

    /// Looks what others do, opens or closes the scrub, and waits for a moment; whether it is over.
    ///
    /// # Errors
    /// If a monitor fails, or the scrub does not go on.
    pub fn turn(&mut self) -> Result<bool, DrivenError> {
        let (mut wait, ran) = (self.wait(), self.worked());
        for (lane, _) in &mut self.lanes {
            lane.poll(std::mem::take(&mut wait), ran)?;
            lane.tune()?;
        }
        self.standing = self.scrubber.look()?;
        if self.standing.is_over {
            self.rests();
            return Ok(true);
        }
        match (self.open, self.standing.is_quiet) {
            (false, true) => self.rests(),
            // Held, md still does a little now and then.
            (false, false) => self.works(now()),
            _ => {}
        }
        let open = self.open;
        let why = self.lanes.iter_mut().map(|(lane, _)| lane.decide(open)).find(|why| *why != Why::Runs);
        self.turn_to(why.unwrap_or_default())?;
        Ok(false)
    }

    fn turn_to(&mut self, why: Why) -> Result<(), DrivenError> {
        let at = now();
        self.spent.entry(self.why.name()).or_default().0 += at.since(self.since).0;
        (self.since, self.why) = (at, why);
        match (self.open, why == Why::Runs) {
            (false, true) => {
                self.works(at);
                (self.open, self.closed_at) = (true, None);
                self.opens += 1;
                self.scrubber.open()?;
            }
            (true, false) => {
                (self.open, self.closed_at) = (false, Some(at));
                self.scrubber.close()?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Something of it is under way.
    fn works(&mut self, at: Nanos) {
        if self.at_work.is_none() {
            self.at_work = Some(at);
            self.mark(at, EventKind::Arrival);
        }
    }

    /// Nothing of it is under way any more.
    fn rests(&mut self) {
        let at = now();
        let Some(since) = self.at_work.take() else { return };
        self.mark(at, EventKind::Completion);
        self.worked = self.worked + at.since(since);
        if let Some(closed) = self.closed_at.take() {
            let closing = at.since(closed);
            self.closes += 1;
            self.closing = self.closing + closing;
            self.longest_closing = self.longest_closing.max(closing);
        }
    }

    fn mark(&self, at: Nanos, kind: EventKind) {
        self.lanes.iter().for_each(|(_, marks)| marks.add(at, kind));
    }

    fn worked(&self) -> Nanos {
        self.worked + self.at_work.map_or(Nanos::ZERO, |since| now().since(since))
    }

    fn wait(&self) -> Duration {
        match self.why {
            _ if self.at_work.is_some() => LOOK,
            Why::IdleWait { until, .. } => Duration::from(until.since(now())).clamp(SHORTEST_WAIT, LONGEST_WAIT),
            Why::Foreground => LOOK,
            _ => LONGEST_WAIT,
        }
    }

    /// Ends it, and puts back what was set.
    ///
    /// # Errors
    /// What could not be put back.
    pub fn stop(&mut self) -> io::Result<()> {
        // One that cannot be closed may still be stopped.
        if std::mem::take(&mut self.open) && self.scrubber.close().is_ok() {
            self.closed_at = Some(now());
        }
        // What it has counted is surer when nothing is under way any more.
        let until = Instant::now() + LEAST_REST;
        while !self.standing.is_over
            && (self.at_work.is_some() || Instant::now() < until)
            && Instant::now() < until + MOST_REST
        {
            // Why it does not go on was told already.
            let Ok(standing) = self.scrubber.look() else { break };
            self.standing = standing;
            if standing.is_quiet {
                self.rests();
            }
            std::thread::sleep(LOOK);
        }
        // The last time that it was closed cost something as well.
        let ran = self.worked();
        for (lane, _) in &mut self.lanes {
            let _ = lane.poll(Duration::ZERO, ran);
        }
        self.scrubber.stop()?;
        // What was passed over may be known only now.
        self.standing.skipped = self.scrubber.look().map_or(self.standing.skipped, |standing| standing.skipped);
        Ok(())
    }

    /// Where it stands.
    pub fn so_far(&mut self) -> SoFar {
        let mut spent = self.spent.clone();
        spent.entry(self.why.name()).or_default().0 += now().since(self.since).0;
        let mean = Nanos(self.closing.0 / self.closes.max(1));
        SoFar {
            why: self.why,
            standing: self.standing,
            unread: self.scrubber.unread(),
            elapsed: now().since(self.began),
            worked: self.worked(),
            spent,
            opens: self.opens,
            closing: (mean, self.longest_closing),
            disks: self.lanes.iter_mut().map(|(lane, _)| DiskSoFar::of(lane)).collect(),
        }
    }
}
