//! The other way round: the smallest slowdown that is enough for something.

use super::search::tune_for;
use super::{Arrivals, Goal, Plan, TuneError, tune};
use crate::disk::DiskModel;
use crate::idle::Idleness;
use crate::{Bytes, Nanos};

/// By how much the goal grows until it is enough, and how often.
const FACTOR: u64 = 4;
const GROWTHS: u32 = 11;
/// Where the search begins: most goals are near.
const START: Nanos = Nanos(256_000);
/// Halvings of the last factor, on a logarithmic scale: the goal is found to within two percent.
const HALVINGS: u32 = 6;

/// What a search for the smallest goal found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gentlest {
    /// This goal, and its plan.
    Found(Goal, Plan),
    /// Not even this plan, which no mean slowdown holds back, is enough.
    NotEnough(Plan),
}

/// The smallest mean slowdown from that of `least` on, with its maximum, at which the tuned plan scrubs `enough`. `watch` is told
/// the share done.
///
/// # Errors
/// As [`tune`].
pub fn gentlest(
    disks: &[Idleness],
    model: &DiskModel,
    least: &Goal,
    arrivals: Arrivals,
    enough: Bytes,
    watch: &dyn Fn(f64),
) -> Result<Gentlest, TuneError> {
    let mut steps = 0;
    let at = |goal: &Goal| {
        let plan = tune_for(disks, model, goal, arrivals, enough, &|_| ())?;
        steps += 1;
        watch(f64::from(steps) / f64::from(GROWTHS + HALVINGS));
        Ok(plan)
    };
    Ok(match smallest(least, at)? {
        Ok((goal, plan)) => Gentlest::Found(goal, plan),
        Err(most) => Gentlest::NotEnough(tune(disks, model, &most, arrivals, &|_| ())?),
    })
}

/// The smallest mean slowdown from that of `least` on, with its maximum, at which something is enough, and what that is; or else the
/// largest one that was tried. `at` says what is enough at a goal: more of it is enough wherever less is.
///
/// # Errors
/// As `at`.
pub fn smallest<T, E>(
    least: &Goal,
    mut at: impl FnMut(&Goal) -> Result<Option<T>, E>,
) -> Result<Result<(Goal, T), Goal>, E> {
    let mut at = |mean: u64| {
        let goal = Goal { mean_slowdown: Nanos(mean), ..*least };
        Ok(at(&goal)?.map(|enough| (goal, enough)))
    };
    let floor = least.mean_slowdown.0.max(1);
    let mut low = floor;
    let mut mean = floor.max(START.0);
    let mut found = at(mean)?;
    if let Some((goal, _)) = &found {
        // Down to where it is no longer enough.
        let mut high = goal.mean_slowdown.0;
        while high > floor {
            low = (high / FACTOR).max(floor);
            let Some(lower) = at(low)? else { break };
            high = low;
            found = Some(lower);
        }
    }
    // Or up to where it is.
    for _ in 0..GROWTHS {
        if found.is_some() {
            break;
        }
        low = mean;
        mean = mean.saturating_mul(FACTOR);
        found = at(mean)?;
    }
    let Some(mut found) = found else { return Ok(Err(Goal { mean_slowdown: Nanos(mean), ..*least })) };
    for _ in 0..HALVINGS {
        let middle = (low as f64 * found.0.mean_slowdown.0 as f64).sqrt() as u64;
        if middle <= low {
            break;
        }
        match at(middle)? {
            Some(between) => found = between,
            None => low = middle,
        }
    }
    Ok(Ok(found))
}

#[cfg(all(test, feature = "files"))]
mod tests {
    use super::*;
    use crate::trace::synth::PUBLISHED;

    #[test]
    fn finds_the_smallest_goal_that_is_enough() {
        let published = PUBLISHED.iter().find(|row| row.name == "sigmetrics2009-t1").unwrap();
        let trace = published.shape().trace(1).unwrap();
        let model = DiskModel::ultrastar_15k450();
        let disks = Idleness::of_trace(&trace, &model).unwrap();
        let goal = |us: u64| Goal::new(Nanos(us * 1_000), Nanos::from_millis(50));
        let tuned = |goal: &Goal| tune(&disks, &model, goal, Arrivals::Recorded, &|_| ()).unwrap();
        let wanted = tuned(&goal(800)).outcome.scrubbed;
        let search = |enough: Bytes| gentlest(&disks, &model, &goal(1), Arrivals::Recorded, enough, &|_| ()).unwrap();
        let Gentlest::Found(found, plan) = search(wanted) else { panic!("there is one") };
        assert!(found.mean_slowdown <= goal(820).mean_slowdown && plan.outcome.scrubbed >= wanted, "{found:?}");
        let less = Goal { mean_slowdown: Nanos(found.mean_slowdown.0 * 97 / 100), ..found };
        assert!(tuned(&less).outcome.scrubbed < wanted);
        assert!(matches!(search(Bytes(u64::MAX)), Gentlest::NotEnough(_)));
    }
}
