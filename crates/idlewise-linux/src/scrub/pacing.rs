//! Which policy runs, and tuning it again as more of the foreground is seen.

use idlewise::disk::{DiskModel, Point, SMALLEST_REQUEST};
use idlewise::drive::{LEFT_ALONE, SecondClock};
use idlewise::idle::Idleness;
use idlewise::policy::{Account, Adaptive, Budget, Policy, Waiting};
use idlewise::simulate::{Summary, scrub};
use idlewise::tune::{Arrivals, Goal, Predicted, Schedule, tune};
use idlewise::{Bytes, Nanos, Rate};

use super::learn::affordable;

/// Idle wait on a disk on which no foreground was seen yet.
const UNKNOWN_WAIT: Nanos = Nanos::from_millis(100);
/// Largest request on such a disk.
const UNKNOWN_SIZE: Bytes = Bytes::from_kib(1024);
/// Times of requests larger than those measured at the beginning, of which the median counts.
const TIMES: usize = 5;
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
    /// Times of requests of a size that is not in the model.
    times: (Bytes, Vec<Nanos>),
}

impl Pacing {
    /// As given.
    pub fn fixed(schedule: Schedule) -> Self {
        Self { how: How::Schedule(schedule), retune: None, predicted: None }
    }

    /// The policy that tunes itself, from the idle intervals seen and those to come.
    pub fn adaptive(goal: Goal, model: &DiskModel, foreground: &SecondClock) -> Self {
        let mut adaptive = Adaptive::new(&goal, model);
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
        let fits =
            model.sizes(affordable(&goal)).into_iter().map(|(size, _)| size).filter(|&size| size <= UNKNOWN_SIZE);
        let request_size = fits.max().unwrap_or(SMALLEST_REQUEST);
        let waiting = Waiting { idle_wait: UNKNOWN_WAIT, request_size };
        let how = How::Schedule(Schedule::Waiting(waiting));
        let mut pacing = Self {
            how,
            retune: Some(Retune { goal, model, next: now, times: (Bytes(0), Vec::new()) }),
            predicted: None,
        };
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
        self.predicted = Some(as_it_will_run(plan.policy(), seen, &retune.model, &retune.goal));
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

    /// A request of this size was verified in so much time: beyond the largest one that was measured, the model learns from it.
    pub fn took(&mut self, size: Bytes, time: Nanos) {
        let Some(Retune { model, times, .. }) = &mut self.retune else { return };
        let Some(last) = model.verify.last().filter(|last| last.size < size) else { return };
        if times.0 != size {
            *times = (size, Vec::new());
        }
        times.1.push(time);
        if times.1.len() == TIMES {
            times.1.sort_unstable();
            // A curve never falls.
            let time = times.1[TIMES / 2].max(last.time);
            model.verify.push(Point { size, time });
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

/// What a policy will do within its account, and with the intervals that are left alone to compare with.
fn as_it_will_run(policy: Waiting, seen: &[Idleness], model: &DiskModel, goal: &Goal) -> Predicted {
    let service = model.verify_time(policy.request_size);
    let budget = || Budget::new(policy, goal.mean_slowdown).and_p99(goal.p99_slowdown).expecting(service);
    let run = scrub(seen, model, goal.p99_slowdown, |_| Box::new(budget()));
    let p99 = run.slowdown_p99(goal.p99_slowdown);
    let predicted = Predicted::new(&Summary::new(&run.outcome, seen), p99, goal);
    let used = 1.0 - LEFT_ALONE;
    Predicted {
        mean_slowdown: Nanos((predicted.mean_slowdown.0 as f64 * used).round() as u64),
        throughput: Rate((predicted.throughput.0 as f64 * used).round() as u64),
        utilised_idle: predicted.utilised_idle * used,
        ..predicted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A prediction is of what will run: within the account, and with intervals that are left alone.
    #[test]
    fn the_prediction_has_pauses_and_controls() {
        let mut foreground = SecondClock::new(Nanos(0));
        for k in 1..3_000 {
            // Idle for 10 to 109 ms.
            let at = Nanos::from_millis(60 * k + k * 37 % 50);
            foreground.arrived(at);
            foreground.completed(Nanos(at.0 + 5_000_000), at);
        }
        let goal = Goal::new(Nanos::from_millis(1), Nanos::from_millis(50));
        let model = DiskModel::ultrastar_15k450();
        let pacing = Pacing::tuned(goal, model.clone(), &foreground, Nanos(0)).unwrap();
        let seen = std::slice::from_ref(foreground.undisturbed());
        let plan = tune(seen, &model, &goal, Arrivals::AnyMoment, &|_| ()).unwrap();
        let unbound = Summary::new(&plan.outcome, seen);
        let predicted = pacing.predicted().unwrap();
        assert!(
            predicted.throughput.0 as f64 <= unbound.throughput_bytes_per_s * 15.0 / 16.0,
            "{predicted:?} {unbound:?}"
        );
        assert!(predicted.throughput.0 as f64 >= unbound.throughput_bytes_per_s * 0.7, "{predicted:?} {unbound:?}");
        assert!(predicted.mean_slowdown <= goal.mean_slowdown, "{predicted:?}");
    }

    #[test]
    fn larger_requests_are_measured_as_they_are_verified() {
        let goal = Goal::new(Nanos::from_millis(1), Nanos::from_millis(50));
        let point = |kib, ms| Point { size: Bytes::from_kib(kib), time: Nanos::from_millis(ms) };
        let model = DiskModel { name: "d".into(), verify: vec![point(64, 8), point(256, 10)], read: None, write: None };
        let mut pacing = Pacing::tuned(goal, model, &SecondClock::new(Nanos(0)), Nanos(0)).unwrap();
        assert_eq!(pacing.parameters().map(|(size, _)| size), Some(Bytes::from_kib(1024)));
        assert_eq!(pacing.longest(), Nanos::from_millis(18));
        for ms in [30, 21, 90, 20, 22] {
            pacing.took(Bytes::from_kib(128), Nanos::from_millis(1));
            pacing.took(Bytes::from_kib(1024), Nanos::from_millis(ms));
        }
        assert_eq!(pacing.longest(), Nanos::from_millis(22));
    }
}
