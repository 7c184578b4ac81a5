//! One disk that a command uses: whether the command may run as far as this disk goes, and what it costs the foreground there.

use std::time::Duration;

use idlewise::disk::{DiskModel, Point};
use idlewise::drive::Next;
use idlewise::policy::{Account, Budget, Terms, Waiting};
use idlewise::tune::{Goal, TuneError};
use idlewise::{Bytes, Cdh, Nanos};

use crate::device::WholeDisk;
use crate::monitor::{Event, EventKind, EventOp, Monitor, MonitorError, Origin, now};
use crate::scrub::AccountSoFar;
use crate::scrub::retune::Retune;
use crate::watched::{Watched, since_1970};

/// Idle wait on a disk of whose foreground little was seen yet.
const UNKNOWN_WAIT: Nanos = Nanos::from_millis(100);
/// Fewer idle intervals say nothing yet.
const ENOUGH: usize = 20;
/// An overrun of which nothing was seen yet.
const UNKNOWN_OVERRUN: Nanos = Nanos::from_millis(10);
/// No overrun is taken to be shorter: holding takes time itself.
const SHORTEST_OVERRUN: Nanos = Nanos::from_micros(100);
/// An interval that is left alone to compare with is used after so long, if nobody came: many commands take no longer than that.
const LONGEST_CONTROL: Nanos = Nanos::from_secs(1);
/// What a step is, to a policy that asks for one: its size says nothing of what a command does.
const STEP: Bytes = Bytes::from_kib(64);
/// A disk that the command has not used for so long of its own time holds it back no more.
const USED_FOR: Nanos = Nanos::from_millis(500);
/// So long without a word of the command's own requests while it is held, and their ends were missed.
const MISSED: Nanos = Nanos::from_secs(5);

/// Whether the command may run, and why not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Why {
    /// It runs.
    #[default]
    Runs,
    /// Foreground requests are outstanding.
    Foreground,
    /// The disk is idle, but not yet for long enough.
    IdleWait {
        /// For how long it has to be.
        wait: Nanos,
        /// When it will have been.
        until: Nanos,
    },
    /// The account of the slowdown holds less than one more collision may cost.
    Overdrawn {
        /// Until then, if the disk stays idle.
        until: Nanos,
    },
    /// An idle interval that could be used is left alone, to compare with.
    Control,
    /// What the command asked for before it was held is not over yet.
    Finishing,
    /// The policy wants nothing more in this idle interval.
    PolicyStopped,
    /// Whoever started it has paused it.
    Paused,
}

/// How long foreground requests that came while the command used a disk waited until that was over.
#[derive(Clone, Debug, Default)]
pub struct Overruns {
    times: Cdh,
    sum: Nanos,
    longest: Nanos,
    uses: u64,
    /// What is assumed as long as there was none.
    assumed: Option<Nanos>,
}

/// One disk.
pub struct Lane {
    pub disk: WholeDisk,
    pub watched: Watched,
    pub goal: Goal,
    pub overruns: Overruns,
    retune: Option<Retune>,
    pub waiting: Waiting,
    /// Requests of the command outstanding, and since when the foreground has been waiting for their end.
    own_open: u64,
    awaited: Option<Nanos>,
    /// How long the command had run when it was last seen to use the disk.
    used_at: Option<Nanos>,
    /// When one of its requests was last seen.
    own_seen: Nanos,
    /// The disk was named: it counts whoever uses it.
    named: bool,
    /// How long the command had run when a write of somebody else's was last seen.
    others_wrote_at: Option<Nanos>,
}

impl Overruns {
    /// Adds one.
    fn add(&mut self, time: Nanos) {
        self.times.add(time);
        self.sum = self.sum + time;
        self.longest = self.longest.max(time);
    }

    /// Idle intervals in which the command ran until the foreground came, with requests of its own in service then or without.
    pub fn uses(&self) -> u64 {
        self.uses.max(self.count())
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.times.count()
    }

    /// A share of them was at most so long.
    pub fn quantile(&self, share: f64) -> Nanos {
        self.times.quantile(share)
    }

    /// The longest.
    pub fn longest(&self) -> Nanos {
        self.longest
    }

    /// Their mean, or what is assumed as long as there was none.
    pub fn mean(&self) -> Nanos {
        self.sum.0.checked_div(self.count()).map_or(self.assumed.unwrap_or(UNKNOWN_OVERRUN), Nanos)
    }

    /// What was assumed has let the command use no gap: a quarter of that is assumed from now on, as it would else never be measured.
    fn assume_less(&mut self) {
        self.assumed = Some(Nanos(self.mean().0 / 4).max(SHORTEST_OVERRUN));
    }
}

impl Lane {
    /// Begins to watch a disk, which was named or found; with an idle wait that is given, or one that is tuned.
    pub fn new(disk: WholeDisk, monitor: Box<dyn Monitor>, goal: Goal, idle_wait: Option<Nanos>, named: bool) -> Self {
        let overruns = Overruns::default();
        let waiting = Waiting { idle_wait: idle_wait.unwrap_or(UNKNOWN_WAIT), request_size: STEP };
        let account = Account::new(goal.mean_slowdown, Terms::default());
        let policy = Budget::with_account(waiting, account).expecting(overruns.mean());
        let mut watched = Watched::new(monitor, Box::new(policy));
        watched.driver.compare(true);
        watched.driver.compare_within(LONGEST_CONTROL);
        // How long an overrun is nobody can choose, so no plan is refused for that.
        let unlimited = Goal::new(goal.mean_slowdown, Nanos(u64::MAX));
        let retune = idle_wait.is_none().then(|| Retune::new(unlimited, model(&overruns)));
        let (own_open, awaited, used_at, own_seen, others_wrote_at) = (0, None, None, now(), None);
        Self {
            disk,
            watched,
            goal,
            overruns,
            retune,
            waiting,
            own_open,
            awaited,
            used_at,
            own_seen,
            named,
            others_wrote_at,
        }
    }

    /// Goes on with what the account of an earlier run owes.
    pub fn go_on_with(&mut self, account: &AccountSoFar) {
        self.keep(account.resumed(&self.goal, since_1970()));
    }

    /// Keeps to an account, with the idle wait and the overruns that are known by now.
    fn keep(&mut self, account: Account) {
        let policy = Budget::with_account(self.waiting, account).expecting(self.overruns.mean());
        self.watched.driver.set_policy(Box::new(policy));
    }

    /// Takes in what happened, and waits for so long; the command has run for `ran`. Whether its idle wait changed.
    ///
    /// # Errors
    /// If the monitor fails.
    pub fn poll(&mut self, wait: Duration, ran: Nanos) -> Result<(), MonitorError> {
        for event in self.watched.poll(wait)? {
            tally(event, &mut self.own_open, &mut self.awaited, &mut self.overruns);
            match event.origin {
                Origin::Own => (self.used_at, self.own_seen) = (Some(ran), event.at),
                Origin::Another => self.own_seen = event.at,
                Origin::Foreground if event.op == EventOp::Write => self.others_wrote_at = Some(ran),
                Origin::Foreground => {}
            }
        }
        if !self.watched.driver.clock().is_stepping() {
            self.forget_missed();
        }
        Ok(())
    }

    /// None of its requests is outstanding: those whose end was missed are not, and nobody waits for them.
    fn forget_missed(&mut self) {
        (self.own_open, self.awaited) = (0, None);
    }

    /// Whether the command uses this disk. What the kernel writes there may be written for it, where `writes` of its own are due.
    pub fn is_used(&self, ran: Nanos, writes: bool) -> bool {
        let lately = |at: Option<Nanos>| at.is_some_and(|at| ran.since(at) < USED_FOR);
        self.named || lately(self.used_at) || writes && lately(self.others_wrote_at)
    }

    /// Whether it ever did, or was named.
    pub fn was_used(&self) -> bool {
        self.used_at.is_some() || self.named
    }

    /// Whether the command may run, where it runs now or is held.
    pub fn decide(&mut self, runs: bool) -> Why {
        if self.watched.idle_since().is_none() {
            self.overruns.uses += u64::from(runs);
            return Why::Foreground;
        }
        let at = now();
        if self.watched.driver.clock().is_stepping() {
            if runs {
                return Why::Runs;
            }
            if at.since(self.own_seen) < MISSED {
                return Why::Finishing;
            }
            self.watched.driver.steps_are_over();
            self.forget_missed();
        }
        match self.watched.driver.next(at) {
            Next::Step(_) => Why::Runs,
            Next::AskAt(_) if self.watched.driver.is_comparing(at) => Why::Control,
            Next::AskAt(until) => Why::IdleWait { wait: self.waiting.idle_wait, until },
            Next::Paused { until } => Why::Overdrawn { until },
            Next::WhenIdle => Why::PolicyStopped,
        }
    }

    /// Tunes the idle wait to what was seen, beside the command; once there is enough, and every minute.
    ///
    /// # Errors
    /// If nothing can be tuned.
    pub fn tune(&mut self) -> Result<(), TuneError> {
        let Some(retune) = &mut self.retune else { return Ok(()) };
        let driver = &mut self.watched.driver;
        if let Some(tuned) = retune.done()? {
            self.waiting.idle_wait = tuned.policy.idle_wait;
            driver.tell();
            let fresh = || Account::new(self.goal.mean_slowdown, Terms::default());
            let account = driver.account().unwrap_or_else(fresh);
            self.keep(account);
        } else if driver.clock().undisturbed().intervals.len() >= ENOUGH && retune.is_due(now()) {
            if self.overruns.uses() == 0 {
                self.overruns.assume_less();
            }
            retune.model = model(&self.overruns);
            retune.begin(driver.clock(), now());
        }
        Ok(())
    }
}

/// Follows the command's own requests, and how long the foreground waits for them.
fn tally(event: &Event, open: &mut u64, awaited: &mut Option<Nanos>, overruns: &mut Overruns) {
    match (event.origin, event.kind) {
        (Origin::Own, EventKind::Arrival) => *open += 1,
        (Origin::Own, EventKind::Completion) => {
            *open = open.saturating_sub(1);
            if let Some(since) = awaited.take_if(|_| *open == 0) {
                overruns.add(event.at.since(since));
            }
        }
        (Origin::Foreground, EventKind::Arrival) if *open > 0 => drop(awaited.get_or_insert(event.arrival)),
        (Origin::Foreground | Origin::Another, _) => {}
    }
}

/// What a collision costs, as the tuning takes it: a foreground request comes at any moment of a step, and waits for half of it on average.
fn model(overruns: &Overruns) -> DiskModel {
    let step = 2 * overruns.mean().max(SHORTEST_OVERRUN).0;
    let point = |times: u64| Point::new(Bytes(times * STEP.0), Nanos(times.saturating_mul(step)));
    DiskModel { name: "overruns".into(), verify: vec![point(1), point(2)], read: None, write: None }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::Untold;

    #[test]
    fn an_overrun_is_from_the_first_request_of_others_until_the_last_of_ours_is_over() {
        use EventKind::{Arrival, Completion};
        let (mut open, mut awaited, mut overruns) = (0, None, Overruns::default());
        assert_eq!(overruns.mean(), UNKNOWN_OVERRUN);
        overruns.assume_less();
        assert_eq!(overruns.mean(), Nanos(UNKNOWN_OVERRUN.0 / 4));
        let mut tell = |at: u64, kind, origin| {
            let (at, op, untold) = (Nanos(at), EventOp::Read, Untold::default());
            let event = Event { at, arrival: at, issue: None, kind, offset: Bytes(0), length: 512, op, origin, untold };
            tally(&event, &mut open, &mut awaited, &mut overruns);
        };
        // The foreground alone; ours alone; two of ours that it comes to, twice; ours that come behind it.
        for (at, kind, origin) in [
            (5, Arrival, Origin::Foreground),
            (6, Completion, Origin::Foreground),
            (10, Arrival, Origin::Own),
            (20, Completion, Origin::Own),
            (30, Arrival, Origin::Own),
            (31, Arrival, Origin::Own),
            (35, Arrival, Origin::Foreground),
            (36, Arrival, Origin::Foreground),
            (40, Completion, Origin::Own),
            (55, Completion, Origin::Own),
            (60, Completion, Origin::Foreground),
            (61, Arrival, Origin::Own),
            (62, Completion, Origin::Own),
        ] {
            tell(at, kind, origin);
        }
        assert_eq!((overruns.count(), overruns.mean(), overruns.longest()), (1, Nanos(20), Nanos(20)));
        assert_eq!(overruns.quantile(0.5), Nanos(20));
        assert_eq!(model(&overruns).verify_time(STEP), Nanos(200_000), "holding takes time");
    }

    /// Sees what it is given, and nothing outstanding.
    struct Given(Vec<Vec<Event>>);

    impl Monitor for Given {
        fn name(&self) -> &'static str {
            "given"
        }

        fn poll(&mut self, _wait: Duration, events: &mut Vec<Event>) -> Result<(), MonitorError> {
            events.append(&mut self.0.pop().unwrap_or_default());
            Ok(())
        }

        fn outstanding(&mut self) -> u64 {
            0
        }

        fn own(&mut self, _own: crate::monitor::Own) {}

        fn lost(&self) -> u64 {
            0
        }
    }

    /// A request whose end was missed keeps nobody waiting until the next one's.
    #[test]
    fn a_completion_that_was_missed_is_no_overrun() {
        use EventKind::{Arrival, Completion};
        let Some(disk) = WholeDisk::all().pop() else {
            eprintln!("SKIPPED: there is no disk");
            return;
        };
        let began = now().0;
        let event = |after: u64, kind, origin| {
            let (at, op, untold) = (Nanos(began + after), EventOp::Read, Untold::default());
            Event { at, arrival: at, issue: None, kind, offset: Bytes(0), length: 512, op, origin, untold }
        };
        // The last first: ours, to which the foreground comes, and whose end is missed; much later another one of ours.
        let later = vec![event(5_000_000_000, Arrival, Origin::Own), event(5_000_001_000, Completion, Origin::Own)];
        let missed = vec![
            event(10, Arrival, Origin::Own),
            event(20, Arrival, Origin::Foreground),
            event(30, Completion, Origin::Foreground),
        ];
        let goal = Goal::new(Nanos::from_millis(1), Nanos::from_millis(50));
        let mut lane = Lane::new(disk, Box::new(Given(vec![later, missed])), goal, Some(Nanos(1)), true);
        lane.poll(Duration::ZERO, Nanos::ZERO).unwrap();
        assert_eq!((lane.own_open, lane.awaited), (1, Some(Nanos(began + 20))));
        lane.own_seen = Nanos(began.saturating_sub(2 * MISSED.0));
        lane.decide(false);
        lane.poll(Duration::ZERO, Nanos::ZERO).unwrap();
        assert_eq!((lane.overruns.count(), lane.own_open, lane.awaited), (0, 0, None));
    }
}
