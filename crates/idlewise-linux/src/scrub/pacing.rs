//! Which policy runs, and tuning it again as more of the foreground is seen.

use idlewise::disk::{DiskModel, SMALLEST_REQUEST};
use idlewise::drive::SecondClock;
use idlewise::policy::{Account, Adaptive, Budget, Policy, Waiting};
use idlewise::simulate::{Summary, scrub};
use idlewise::tune::{Arrivals, Goal, Predicted, Schedule, tune};
use idlewise::{Bytes, Nanos};

/// Idle wait on a disk on which no foreground was seen yet.
const UNKNOWN_WAIT: Nanos = Nanos::from_millis(100);
/// Largest request on such a disk.
const UNKNOWN_SIZE: Bytes = Bytes::from_kib(1024);
/// There, a request takes no longer than so many others earn.
const UNKNOWN_COST: u64 = 20;
/// Fewer idle intervals say nothing yet.
pub const ENOUGH: usize = 20;
/// Time between two tunings.
const RETUNE: Nanos = Nanos::from_secs(60);

/// A policy, and what it takes to replace it.
pub struct Pacing {
    how: How,
    retune: Option<Retune>,
    predicted: Option<Predicted>,
}

enum How {
    Schedule(Schedule),
    /// Tunes itself.
    Adaptive(Adaptive),
}

struct Retune {
    goal: Goal,
    model: DiskModel,
    next: Nanos,
}

impl Pacing {
    /// As given.
    pub fn fixed(schedule: Schedule) -> Self {
        Self { how: How::Schedule(schedule), retune: None, predicted: None }
    }

    /// The policy that tunes itself, from the idle intervals seen and those to come.
    pub fn adaptive(goal: Goal, model: &DiskModel, foreground: &SecondClock) -> Self {
        let mut adaptive = Adaptive::new(goal.mean_slowdown, goal.max_slowdown, model);
        for interval in &foreground.undisturbed().intervals {
            adaptive.foreground_arrived(interval.length, Nanos::ZERO);
            adaptive.foreground_served(interval.followers, Nanos::ZERO);
        }
        Self { how: How::Adaptive(adaptive), retune: None, predicted: None }
    }

    /// Request size and idle wait from the idle intervals seen, tuned again every minute.
    ///
    /// # Errors
    /// If no request fits the maximum slowdown.
    pub fn tuned(
        goal: Goal,
        model: DiskModel,
        foreground: &SecondClock,
        now: Nanos,
    ) -> Result<Self, idlewise::tune::TuneError> {
        let longest = goal.max_slowdown.min(Nanos(goal.mean_slowdown.0.saturating_mul(UNKNOWN_COST)));
        let fits = model.sizes(longest).into_iter().map(|(size, _)| size).filter(|&size| size <= UNKNOWN_SIZE);
        let request_size = fits.max().unwrap_or(SMALLEST_REQUEST);
        let waiting = Waiting { idle_wait: UNKNOWN_WAIT, request_size };
        let how = How::Schedule(Schedule::Waiting(waiting));
        let mut pacing = Self { how, retune: Some(Retune { goal, model, next: now }), predicted: None };
        pacing.again(foreground, now)?;
        Ok(pacing)
    }

    /// Tunes again when it is time; whether the policy changed.
    ///
    /// # Errors
    /// If no request fits the maximum slowdown.
    pub fn again(&mut self, foreground: &SecondClock, now: Nanos) -> Result<bool, idlewise::tune::TuneError> {
        let Some(retune) = self.retune.as_mut().filter(|retune| now >= retune.next) else { return Ok(false) };
        retune.next = Nanos(now.0 + RETUNE.0);
        let seen = foreground.undisturbed();
        let How::Schedule(present) = &self.how else { return Ok(false) };
        let fits = retune.model.verify_time(present.first().0) <= retune.goal.max_slowdown;
        if seen.intervals.len() < ENOUGH && fits {
            return Ok(false);
        }
        let seen = std::slice::from_ref(seen);
        let plan = tune(seen, &retune.model, &retune.goal, Arrivals::AnyMoment, &|_| ())?;
        let run = scrub(seen, &retune.model, retune.goal.p99_slowdown, |_| Box::new(plan.policy()));
        let p99 = run.slowdown_p99(retune.goal.p99_slowdown);
        self.predicted = Some(Predicted::new(&Summary::new(&plan.outcome, seen), p99, &retune.goal));
        let schedule = Schedule::Waiting(plan.policy());
        let changed = schedule != *present;
        self.how = How::Schedule(schedule);
        Ok(changed)
    }

    /// The policy to drive, within an account if one is kept.
    pub fn policy(&self, account: Option<Account>) -> Box<dyn Policy> {
        let policy: Box<dyn Policy> = match &self.how {
            How::Schedule(schedule) => schedule.policy(),
            How::Adaptive(adaptive) => Box::new(adaptive.clone()),
        };
        match account {
            Some(account) => Box::new(Budget::with_account(policy, account).expecting(self.longest())),
            None => policy,
        }
    }

    /// How long its requests take, as far as that is known beforehand.
    fn longest(&self) -> Nanos {
        match (&self.how, &self.retune) {
            (How::Schedule(schedule), Some(retune)) => retune.model.verify_time(schedule.first().0),
            (How::Schedule(schedule), None) => schedule.longest(),
            (How::Adaptive(adaptive), _) => adaptive.service(),
        }
    }

    /// What the last tuning predicted.
    pub fn predicted(&self) -> Option<Predicted> {
        self.predicted
    }

    /// Size of the first request of an interval, and the idle time before it; `None` where that keeps changing.
    pub fn parameters(&self) -> Option<(Bytes, Nanos)> {
        match &self.how {
            How::Schedule(schedule) => Some(schedule.first()),
            How::Adaptive(_) => None,
        }
    }
}
