//! The slowdown that [`Arrivals::AnyMoment`] holds against a goal.

use super::goal::Arrivals;
use crate::disk::DiskModel;
use crate::idle::Idleness;
use crate::policy::Waiting;
use crate::simulate::{Outcome, simulate};
use crate::{Nanos, TotalTime};

/// Shifts of the wait that are tried.
pub const SHIFTS: u64 = 8;
/// Share of the goal that is planned for.
const PLANNED: f64 = 0.9;

/// The shortest wait that [`weighed`] runs for this one.
pub fn lowest(wait: Nanos, service: Nanos, arrivals: Arrivals) -> Nanos {
    match arrivals {
        Arrivals::Recorded => wait,
        Arrivals::AnyMoment => wait.since(Nanos(service.0 / 2)),
    }
}

/// What `run` does with a wait. Its sum of delays is the one to hold against a goal: that of this wait, or what is planned for when
/// the wait is shifted by eighths of the service time.
pub fn weighed(wait: Nanos, service: Nanos, arrivals: Arrivals, run: impl Fn(Nanos) -> Outcome) -> Outcome {
    let outcome = run(wait);
    if arrivals == Arrivals::Recorded {
        return outcome;
    }
    let lowest = lowest(wait, service, arrivals);
    let shifted = |shift: u64| run(lowest + Nanos(shift * service.0 / SHIFTS)).delay_sum.0 as f64;
    let planned = planned(std::array::from_fn(|shift| shifted(shift as u64)));
    Outcome { delay_sum: outcome.delay_sum.max(TotalTime(planned as u128)), ..outcome }
}

/// What [`Arrivals::AnyMoment`] plans for, of a number at each shift.
pub fn planned(shifted: [f64; SHIFTS as usize]) -> f64 {
    let mean = shifted.iter().sum::<f64>() / SHIFTS as f64;
    let variance = shifted.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (SHIFTS - 1) as f64;
    (mean + 2.0 * variance.sqrt()) / PLANNED
}

/// The mean slowdown of waiting that is held against a goal.
pub fn mean_to_keep(disks: &[Idleness], model: &DiskModel, waiting: Waiting, arrivals: Arrivals) -> Nanos {
    let run = |idle_wait| simulate(disks, model, |_| Box::new(Waiting { idle_wait, ..waiting }));
    let outcome = weighed(waiting.idle_wait, model.verify_time(waiting.request_size), arrivals, run);
    let requests: u64 = disks.iter().map(|disk| disk.requests).sum();
    outcome.delay_sum.mean(requests)
}

#[cfg(all(test, feature = "files"))]
mod tests {
    use super::super::{Goal, tune};
    use super::*;
    use crate::trace::synth::PUBLISHED;

    /// What is weighed here is what the search weighs.
    #[test]
    fn a_plan_just_keeps_its_goal() {
        let model = DiskModel::ultrastar_15k450();
        let disks = Idleness::of_trace(&PUBLISHED[0].shape().trace(1).unwrap(), &model).unwrap();
        let goal = Goal::new(Nanos::from_millis(1), Nanos::from_millis(50));
        for arrivals in [Arrivals::Recorded, Arrivals::AnyMoment] {
            let plan = tune(&disks, &model, &goal, arrivals, &|_| ()).unwrap();
            let mean = mean_to_keep(&disks, &model, plan.policy(), arrivals);
            assert!(mean <= goal.mean_slowdown && mean.0 > 900_000, "{mean} {arrivals:?}");
        }
    }
}
