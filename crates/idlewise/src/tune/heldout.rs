//! What a way of tuning is worth on times that it was not tuned on.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::waiting::Waits;
use super::{Goal, Plan, Schedule};
use crate::disk::DiskModel;
use crate::idle::Idleness;
use crate::policy::{Policy, Waiting};
use crate::simulate::{Outcome, simulate};
use crate::{Bytes, Nanos};

/// Goals tried, as parts of the one asked for: what is fitted to one time does more or less on another.
const PARTS: [f64; 5] = [0.4, 0.7, 1.0, 1.5, 2.5];
/// Parts of the time, each of which is held out once.
const FOLDS: usize = 4;
/// Waits tried, in equal ratios of the share of intervals that exceed them.
const WAITS: usize = 160;
/// Shaped is worth its trouble if it does so much more in all, and more in so many of the parts.
const WORTH: f64 = 1.02;
const WINS: usize = 3;
/// With fewer collisions in all, what wins in a part of the time is luck.
const KNOWN: u64 = 50;

/// A policy fitted to a goal.
pub type Fitted = Box<dyn Fn() -> Box<dyn Policy>>;

/// Throughput in bytes on `test` of what `fit` makes of another time, at exactly the mean slowdown of the goal: policies are
/// fitted for smaller and larger goals, and the two whose slowdown on `test` is next to the goal are mixed. So ways of tuning
/// can be compared, though none meets the goal exactly on what it has not seen.
pub fn held_out(test: &[Idleness], model: &DiskModel, goal: &Goal, fit: &dyn Fn(&Goal) -> Option<Fitted>) -> f64 {
    let requests: u64 = test.iter().map(|disk| disk.requests).sum();
    let allowed = goal.mean_slowdown.0 as f64 * requests as f64;
    let mut points = vec![(0.0, 0.0)];
    for part in PARTS {
        let goal = Goal { mean_slowdown: Nanos((goal.mean_slowdown.0 as f64 * part) as u64), ..*goal };
        if let Some(fitted) = fit(&goal) {
            let Outcome { delay_sum, scrubbed, .. } = simulate(test, model, |_| fitted());
            points.push((delay_sum.0 as f64, scrubbed.0 as f64));
        }
    }
    mixed(points, allowed)
}

/// The highest value at `x` of mixtures of points; beyond the last that of the last.
fn mixed(points: Vec<(f64, f64)>, x: f64) -> f64 {
    let mut best = 0.0f64;
    for &(low, below) in points.iter().filter(|point| point.0 <= x) {
        best = best.max(below);
        for &(high, above) in points.iter().filter(|point| point.0 > x) {
            best = best.max(below + (above - below) * (x - low) / (high - low));
        }
    }
    best
}

/// How Shaped did against Waiting on times held out.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Validation {
    /// Throughput of Shaped over that of Waiting at the same slowdown, over all parts of the time.
    pub gain: f64,
    /// Parts in which it did more.
    pub wins: usize,
    /// All parts.
    pub folds: usize,
    /// Whether its steps differ after long intervals.
    pub context: bool,
    /// Whether that is enough to choose it.
    pub chosen: bool,
}

/// Steps instead of a plan, if they are worth their trouble on times held out, and scrub more on these disks as well; else the plan. And
/// what was found on the times held out. `progress` is told the share done.
pub fn steps_or(
    plan: &Plan,
    disks: &[Idleness],
    model: &DiskModel,
    goal: &Goal,
    progress: &(dyn Fn(f64) + Sync),
) -> (Schedule, Validation) {
    let validation = validate(disks, model, goal, progress);
    let steps = super::shaped(disks, model, goal, validation.context);
    let steps = steps.filter(|(_, outcome)| validation.chosen && outcome.scrubbed > plan.outcome.scrubbed);
    let validation = Validation { chosen: steps.is_some(), ..validation };
    (steps.map_or(Schedule::Waiting(plan.policy()), |(steps, _)| Schedule::Shaped(steps)), validation)
}

/// Holds each quarter of the time out once, fits Waiting and both kinds of Shaped to the rest, and compares them on it.
/// `progress` is told the share done.
pub fn validate(disks: &[Idleness], model: &DiskModel, goal: &Goal, progress: &(dyn Fn(f64) + Sync)) -> Validation {
    let parts: Vec<Vec<Idleness>> = disks.iter().map(|disk| disk.parts(FOLDS)).collect();
    let done = AtomicUsize::new(0);
    let folds: Vec<[f64; 3]> = (0..FOLDS)
        .into_par_iter()
        .map(|fold| {
            let test: Vec<Idleness> = parts.iter().map(|parts| parts[fold].clone()).collect();
            let others = |parts: &Vec<Idleness>| [&parts[..fold], &parts[fold + 1..]].concat();
            let train: Vec<Idleness> = parts.iter().flat_map(others).collect();
            let grid = WaitingGrid::new(&train, model, goal);
            let waiting = held_out(&test, model, goal, &|goal| grid.best(goal));
            let shaped =
                [false, true].map(|context| held_out(&test, model, goal, &|goal| shaped(&train, model, goal, context)));
            progress((done.fetch_add(1, Ordering::Relaxed) + 1) as f64 / FOLDS as f64);
            [waiting, shaped[0], shaped[1]]
        })
        .collect();
    let sum = |way: usize| folds.iter().map(|fold| fold[way]).sum::<f64>();
    let way = if sum(2) > sum(1) { 2 } else { 1 };
    let gain = if sum(0) > 0.0 { sum(way) / sum(0) } else { 1.0 };
    let wins = folds.iter().filter(|fold| fold[way] > fold[0]).count();
    let context = way == 2;
    let known = || super::shaped(disks, model, goal, context).is_some_and(|(_, done)| done.collisions >= KNOWN);
    let chosen = gain >= WORTH && wins >= WINS && known();
    Validation { gain, wins, folds: FOLDS, context, chosen }
}

/// What Waiting does on some intervals with every size and many waits, to take the best for any goal from. It is coarser than
/// [`super::tune`], which finds waits that are good by luck; what is held out knows no such luck.
pub struct WaitingGrid {
    requests: u64,
    points: Vec<(Outcome, Waiting)>,
}

impl WaitingGrid {
    /// Tries all sizes that take no longer than the maximum slowdown of the goal. Its 99th percentile is that of all goals to come.
    pub fn new(train: &[Idleness], model: &DiskModel, goal: &Goal) -> Self {
        let (sizes, waits) = (model.sizes(goal.max_slowdown), super::compare::waits(train, WAITS));
        let beyond = goal.p99_slowdown;
        let mut fast: Vec<Waits> = train.iter().map(|disk| Waits::new(&disk.intervals).beyond(beyond)).collect();
        let mut points = Vec::new();
        for idle_wait in waits {
            fast.iter_mut().for_each(|disk| disk.raise(idle_wait));
            for &(request_size, timing) in &sizes {
                let mut outcome = Outcome::default();
                for disk in &fast {
                    outcome.add(&disk.outcome(idle_wait, timing, request_size));
                }
                points.push((outcome, Waiting { idle_wait, request_size }));
            }
        }
        Self { requests: train.iter().map(|disk| disk.requests).sum(), points }
    }

    /// The pair that verifies most within the goal.
    pub fn best(&self, goal: &Goal) -> Option<Fitted> {
        let allowed = goal.allows_requests(self.requests);
        let within = self.points.iter().filter(|(outcome, _)| allowed.keeps(outcome) && outcome.scrubbed > Bytes(0));
        let policy = within.max_by_key(|(outcome, _)| outcome.scrubbed)?.1;
        Some(Box::new(move || Box::new(policy)))
    }
}

/// Shaped as [`super::shaped`] fits it.
pub fn shaped(train: &[Idleness], model: &DiskModel, goal: &Goal, context: bool) -> Option<Fitted> {
    let (policy, _) = super::shaped::shaped(train, model, goal, context)?;
    Some(Box::new(move || Box::new(policy.clone())))
}

#[cfg(all(test, feature = "files"))]
mod tests {
    use rand::RngExt;
    use rand_distr::{Distribution, Exp1};

    use super::*;
    use crate::idle::IdlenessBuilder;

    #[test]
    fn mixtures_lie_between_points() {
        let points = vec![(0.0, 0.0), (1.0, 10.0), (2.0, 12.0), (4.0, 30.0)];
        assert_eq!(mixed(points.clone(), 1.0), 10.0);
        assert_eq!(mixed(points.clone(), 2.5), 20.0);
        assert_eq!(mixed(points, 9.0), 30.0);
    }

    fn disk(length: &dyn Fn(&mut rand_pcg::Pcg64) -> u64) -> Vec<Idleness> {
        let mut random = rand::SeedableRng::seed_from_u64(31);
        let mut builder = IdlenessBuilder::new("d");
        let mut now = 0;
        for _ in 0..2_500 {
            builder.request(Nanos(now), Nanos(now + 1_000_000));
            builder.request(Nanos(now), Nanos(now + 1_000_000));
            now += 1_000_000 + length(&mut random);
        }
        vec![builder.finish()]
    }

    /// Idle lengths near the multiples of a tick are worth steps; exponential ones are not.
    #[test]
    fn shaped_is_chosen_where_it_wins_on_times_held_out() {
        let model = DiskModel::ultrastar_15k450();
        let goal = Goal::new(Nanos(100_000), Nanos::from_millis(12));
        let validated = |length: &dyn Fn(&mut rand_pcg::Pcg64) -> u64| {
            let disks = disk(length);
            let (_, outcome) = super::super::shaped(&disks, &model, &goal, false).unwrap();
            let requests = disks[0].requests;
            assert!(outcome.delay_sum <= goal.mean_slowdown * requests, "the goal is broken");
            validate(&disks, &model, &goal, &|_| ())
        };
        let ticks = validated(&|random| 15_625_000 * random.random_range(1..12u64) + random.random_range(0..1_000_000));
        assert!(ticks.chosen && ticks.gain > 1.3, "{ticks:?}");
        let exponential = validated(&|random| {
            let draw: f64 = Exp1.sample(random);
            (draw * 1e8) as u64 + 1
        });
        assert!(exponential.gain < 1.1 && exponential.wins < 4, "{exponential:?}");
    }
}
