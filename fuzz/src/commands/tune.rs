//! `tune`: a plan keeps its goal, does what the simulation says, and is the same after it was written and read.

use idlewise::idle::{Idleness, Keep};
use idlewise::simulate::{Summary, simulate};
use idlewise::tune::{Arrivals, Goal, PlanFile, Schedule, baselines, shaped, tune};

use crate::load::{file, time};
use crate::models::model;
use crate::reading::Read;
use crate::{Result, Unstructured};

/// Sizes by waits look at each interval.
const MOST_REQUESTS: usize = 8;

pub fn run(mut from: Unstructured) -> Result<()> {
    let model = model(&mut from)?;
    let goal = Goal { mean_slowdown: time(&mut from)?, max_slowdown: time(&mut from)? };
    let arrivals = if from.arbitrary()? { Arrivals::AnyMoment } else { Arrivals::Recorded };
    let (with_steps, context) = (from.ratio(1u8, 32u8)?, from.arbitrary()?);
    let Some(read) = Read::short(&file(from)?).filter(|read| read.len() <= MOST_REQUESTS) else { return Ok(()) };
    let Some(disks) = read.idleness(&model, Keep::default()) else { return Ok(()) };
    if let Ok(plan) = tune(&disks, &model, &goal, arrivals, &|_| ()) {
        let outcome = simulate(&disks, &model, |_| Box::new(plan.policy()));
        assert_eq!(outcome, plan.outcome);
        keeps(&outcome, &goal, &disks);
        let summary = Summary::new(&outcome, &disks);
        again(&PlanFile::new(&Schedule::Waiting(plan.policy()), goal, &summary, "fuzzed", &model.name));
        assert!(baselines(&disks, &model).iter().all(|one| one.summary.mean_slowdown_s.is_finite()));
    }
    if let Some((steps, outcome)) = with_steps.then(|| shaped(&disks, &model, &goal, context)).flatten() {
        keeps(&outcome, &goal, &disks);
        again(&PlanFile::new(&Schedule::Shaped(steps), goal, &Summary::new(&outcome, &disks), "fuzzed", &model.name));
    }
    Ok(())
}

fn keeps(outcome: &idlewise::simulate::Outcome, goal: &Goal, disks: &[Idleness]) {
    let requests: u64 = disks.iter().map(|disk| disk.requests).sum();
    assert!(outcome.delay_sum <= u128::from(goal.mean_slowdown.0) * u128::from(requests), "{outcome:?} {goal:?}");
    assert!(outcome.longest_delay <= goal.max_slowdown, "{outcome:?} {goal:?}");
}

fn again(file: &PlanFile) {
    let read = PlanFile::from_toml(&file.to_toml()).expect("what is written can be read");
    assert_eq!((&read.schedule(), read.goal), (&file.schedule(), file.goal));
}
