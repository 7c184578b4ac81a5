//! Which policy runs, and tuning it again as more of the foreground is seen.

use idlewise::disk::{DiskModel, SMALLEST_REQUEST};
use idlewise::drive::SecondClock;
use idlewise::idle::Idleness;
use idlewise::policy::{Account, Adaptive, Budget, Policy, Waiting};
use idlewise::tune::{Goal, Predicted, Schedule};
use idlewise::{Bytes, Nanos};

use super::ceiling::{Ceiling, Took};
use super::learn::affordable;
use super::retune::Retune;

/// Idle wait on a disk on which no foreground was seen yet.
const UNKNOWN_WAIT: Nanos = Nanos::from_millis(100);
/// Largest request on such a disk.
const UNKNOWN_SIZE: Bytes = Bytes::from_kib(1024);
/// Fewer idle intervals say nothing yet.
pub const ENOUGH: usize = 20;

/// A policy, and what it takes to replace it.
pub struct Pacing {
    how: How,
    retune: Option<Retune>,
    predicted: Option<Predicted>,
    /// How large requests may be, where a goal is to be kept.
    ceiling: Option<Ceiling>,
}

enum How {
    Schedule(Schedule),
    /// Tunes itself.
    Adaptive(Adaptive),
}

impl Pacing {
    /// As given, but no request longer than `max`, if that is to be kept.
    pub fn fixed(schedule: Schedule, max: Option<Nanos>) -> Self {
        Self { how: How::Schedule(schedule), retune: None, predicted: None, ceiling: max.map(Ceiling::new) }
    }

    /// The policy that tunes itself, from the idle intervals seen and those to come.
    pub fn adaptive(goal: Goal, model: &DiskModel, foreground: &SecondClock) -> Self {
        let mut adaptive = Adaptive::new(&goal, model);
        for interval in &foreground.undisturbed().intervals {
            adaptive.foreground_arrived(interval.length, Nanos::ZERO);
            adaptive.foreground_served(interval.followers, Nanos::ZERO);
        }
        let ceiling = Some(Ceiling::new(goal.max_slowdown));
        Self { how: How::Adaptive(adaptive), retune: None, predicted: None, ceiling }
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
        let mut retune = Retune::new(goal, model);
        let tuned = match has_to_be(&waiting, foreground.undisturbed(), &retune) {
            true => Some(retune.at_once(foreground, now)?),
            false => {
                retune.put_off(now);
                None
            }
        };
        let policy = tuned.map_or(waiting, |tuned| tuned.policy);
        let how = How::Schedule(Schedule::Waiting(policy));
        let ceiling = Some(Ceiling::new(goal.max_slowdown));
        Ok(Self { how, retune: Some(retune), predicted: tuned.map(|tuned| tuned.predicted), ceiling })
    }

    /// Tunes again when it is time, beside the scrub; whether the policy changed.
    ///
    /// # Errors
    /// If no request fits the maximum slowdown.
    pub fn again(&mut self, foreground: &SecondClock, now: Nanos) -> Result<bool, idlewise::tune::TuneError> {
        let (Some(retune), How::Schedule(Schedule::Waiting(present))) = (&mut self.retune, &mut self.how) else {
            return Ok(false);
        };
        if let Some(tuned) = retune.done()? {
            self.predicted = Some(tuned.predicted);
            return Ok(std::mem::replace(present, tuned.policy) != tuned.policy);
        }
        if retune.is_due(now) {
            let has_to_be = has_to_be(present, foreground.undisturbed(), retune);
            if has_to_be { retune.begin(foreground, now) } else { retune.put_off(now) }
        }
        Ok(false)
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

    /// A request was verified: beyond the largest one that was measured, the model learns from it.
    pub fn took(&mut self, took: Took) {
        self.retune.iter_mut().for_each(|retune| retune.took(took.size, took.time));
        self.ceiling.iter_mut().for_each(|ceiling| ceiling.took(took));
    }

    /// The largest request for now, of those that follow another of the scrub's or of those that do not.
    pub fn most(&self, follows: bool) -> Bytes {
        self.ceiling.as_ref().map_or(Bytes(u64::MAX), |ceiling| ceiling.most(follows))
    }

    /// The largest request, where larger ones were asked for that take longer than the maximum slowdown.
    pub fn cut_to(&self) -> Option<Bytes> {
        let (How::Schedule(schedule), None) = (&self.how, &self.retune) else { return None };
        let largest = schedule.sizes().into_iter().max()?;
        self.ceiling.as_ref()?.settled().filter(|&size| size < largest)
    }

    /// Until when no request is tried, as even the smallest take longer than the maximum slowdown.
    pub fn rests_until(&self, follows: bool) -> Nanos {
        self.ceiling.as_ref().map_or(Nanos::ZERO, |ceiling| ceiling.rests_until(follows))
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

/// Whether a policy has to be tuned: enough was seen, or its requests take too long as is known now.
fn has_to_be(policy: &Waiting, seen: &Idleness, retune: &Retune) -> bool {
    let fits = retune.model.verify_time(policy.request_size) <= retune.goal.max_slowdown;
    seen.intervals.len() >= ENOUGH || !fits
}

#[cfg(test)]
mod tests {
    use std::slice;

    use idlewise::disk::Point;
    use idlewise::policy::Terms;
    use idlewise::simulate::{Summary, simulate};
    use idlewise::tune::{Arrivals, tune};

    use super::*;

    /// Exponentially distributed, of 50 ms on average: a wait does as well by itself as within an account.
    fn gap(k: u64) -> Nanos {
        let share = ((k * 37 % 100) as f64 + 0.5) / 100.0;
        Nanos((-share.ln() * 50e6) as u64)
    }

    /// Idle for such times, so often; after the first so many for ten times as long.
    fn foreground(intervals: u64, first: u64) -> SecondClock {
        let (mut foreground, mut at) = (SecondClock::new(Nanos(0)), Nanos(0));
        for k in 0..intervals {
            at = Nanos(at.0 + gap(k).0 * if k < first { 1 } else { 10 });
            foreground.arrived(at);
            foreground.completed(Nanos(at.0 + 5_000_000), at);
            at.0 += 5_000_000;
        }
        foreground
    }

    /// The goal that is left where each slowdown is charged more than once.
    fn charged(goal: Goal, foreground: &SecondClock) -> Goal {
        let mean = goal.mean_slowdown.0 as f64 / foreground.charged();
        Goal { mean_slowdown: Nanos(mean.round() as u64), ..goal }
    }

    /// While it is tuned again, the scrub goes on with what it has.
    #[test]
    fn it_is_tuned_again_beside_the_scrub() {
        let goal = Goal::new(Nanos::from_millis(1), Nanos::from_millis(50));
        let model = DiskModel::ultrastar_15k450();
        let mut pacing = Pacing::tuned(goal, model.clone(), &foreground(1_000, 1_000), Nanos(0)).unwrap();
        let (before, seen) = (pacing.parameters(), foreground(3_000, 1_000));
        assert!(!pacing.again(&seen, Nanos::from_secs(59)).unwrap());
        let minute = Nanos::from_secs(60);
        assert!(!pacing.again(&seen, minute).unwrap(), "begun, not done");
        let began = std::time::Instant::now();
        while !pacing.again(&seen, minute).unwrap() {
            assert_eq!(pacing.parameters(), before);
            assert!(began.elapsed() < std::time::Duration::from_secs(60));
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let plan =
            tune(slice::from_ref(seen.undisturbed()), &model, &charged(goal, &seen), Arrivals::AnyMoment, &|_| ());
        let plan = plan.unwrap();
        assert_eq!(pacing.parameters(), Some((plan.request_size, plan.idle_wait)));
        assert_ne!(pacing.parameters(), before);
    }

    /// A prediction is of what will run: within the account, and with intervals that are left alone.
    #[test]
    fn the_prediction_has_pauses_and_controls() {
        let foreground = foreground(3_000, 3_000);
        let goal = Goal::new(Nanos::from_millis(1), Nanos::from_millis(50));
        let model = DiskModel::ultrastar_15k450();
        let pacing = Pacing::tuned(goal, model.clone(), &foreground, Nanos(0)).unwrap();
        let seen = slice::from_ref(foreground.undisturbed());
        let (request_size, idle_wait) = pacing.parameters().unwrap();
        let waiting = Waiting { idle_wait, request_size };
        let run = |policy: &dyn Fn() -> Box<dyn Policy>| {
            Summary::new(&simulate(seen, &model, |_| policy()), seen).throughput_bytes_per_s * 15.0 / 16.0
        };
        let unbound = run(&|| Box::new(waiting));
        let service = model.verify_time(request_size);
        let terms = Terms { opening: 0, ..Terms::default() };
        let account = Account::new(charged(goal, &foreground).mean_slowdown, terms);
        let bound = run(&|| Box::new(Budget::with_account(waiting, account).expecting(service)));
        let predicted = pacing.predicted().unwrap();
        assert!(
            (predicted.throughput.0 as f64 - bound).abs() < 2.0 && bound < unbound,
            "{predicted:?} {bound} {unbound}"
        );
        assert!(predicted.mean_slowdown <= goal.mean_slowdown, "{predicted:?}");
    }

    /// Behind a timer no wait keeps the goal by itself and runs: some of the gaps are used, and the prediction says how fast that is, though
    /// no more than half a minute was seen.
    #[test]
    fn regular_gaps_are_used_within_the_account() {
        let mut foreground = SecondClock::new(Nanos(0));
        for k in 1..75 {
            let at = Nanos::from_millis(400 * k + k * 7_919 % 3);
            foreground.arrived(at);
            foreground.completed(Nanos(at.0 + 6_000_000), at);
        }
        let goal = Goal::new(Nanos::from_millis(1), Nanos::from_millis(50));
        let pacing = Pacing::tuned(goal, DiskModel::ultrastar_15k450(), &foreground, Nanos(0)).unwrap();
        let (predicted, (_, wait)) = (pacing.predicted().unwrap(), pacing.parameters().unwrap());
        assert!(wait < Nanos::from_millis(200), "{wait}");
        assert!(predicted.throughput > idlewise::Rate(2_000_000), "{predicted:?}");
        assert!(predicted.mean_slowdown <= goal.mean_slowdown, "{predicted:?}");
    }

    #[test]
    fn larger_requests_are_measured_as_they_are_verified() {
        let goal = Goal::new(Nanos::from_millis(1), Nanos::from_millis(50));
        let point = |kib, ms| Point::new(Bytes::from_kib(kib), Nanos::from_millis(ms));
        let model = DiskModel { name: "d".into(), verify: vec![point(64, 8), point(256, 10)], read: None, write: None };
        let mut pacing = Pacing::tuned(goal, model, &SecondClock::new(Nanos(0)), Nanos(0)).unwrap();
        assert_eq!(pacing.parameters().map(|(size, _)| size), Some(Bytes::from_kib(1024)));
        assert_eq!(pacing.longest(), Nanos::from_millis(18));
        for ms in [30, 21, 90, 20, 22] {
            let took = |kib, ms| Took {
                size: Bytes::from_kib(kib),
                time: Nanos::from_millis(ms),
                at: Nanos::ZERO,
                follows: true,
            };
            pacing.took(took(128, 1));
            pacing.took(took(1024, ms));
        }
        assert_eq!(pacing.longest(), Nanos::from_millis(22));
    }
}
