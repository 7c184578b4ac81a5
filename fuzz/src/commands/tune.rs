//! `tune`: a plan keeps its goal, does what the simulation says, and is the same after it was written and read.

use idlewise::idle::{Idleness, Keep};
use idlewise::simulate::{Summary, scrub};
use idlewise::tune::{Arrivals, Goal, PlanFile, Predicted, Schedule, baselines, shaped, tune};

use crate::load::{file, time};
use crate::models::model;
use crate::reading::Read;
use crate::{Result, Unstructured};

/// Sizes by waits look at each interval.
const MOST_REQUESTS: usize = 8;

pub fn run(mut from: Unstructured) -> Result<()> {
    let model = model(&mut from)?;
    let [mean_slowdown, max_slowdown, p99] = [time(&mut from)?, time(&mut from)?, time(&mut from)?];
    let goal = Goal { mean_slowdown, p99_slowdown: from.arbitrary::<bool>()?.then_some(p99), max_slowdown };
    let arrivals = if from.arbitrary()? { Arrivals::AnyMoment } else { Arrivals::Recorded };
    let (with_steps, context) = (from.ratio(1u8, 32u8)?, from.arbitrary()?);
    let Some(read) = Read::short(&file(from)?).filter(|read| read.len() <= MOST_REQUESTS) else { return Ok(()) };
    let Some(disks) = read.idleness(&model, Keep::default()) else { return Ok(()) };
    if let Ok(plan) = tune(&disks, &model, &goal, arrivals, &|_| ()) {
        let run = scrub(&disks, &model, goal.p99_slowdown, |_| Box::new(plan.policy()));
        assert_eq!(run.outcome, plan.outcome);
        keeps(&run.outcome, &goal, &disks);
        let p99 = run.slowdown_p99(goal.p99_slowdown);
        assert!(goal.p99_slowdown.is_none_or(|most| p99 <= most), "{p99} {goal:?}");
        let predicted = Predicted::new(&Summary::new(&run.outcome, &disks), p99, &goal);
        again(&PlanFile::new(&Schedule::Waiting(plan.policy()), goal, predicted, "fuzzed", &model.name));
        assert!(baselines(&disks, &model).iter().all(|one| one.summary.mean_slowdown_s.is_finite()));
    }
    if let Some((steps, outcome)) = with_steps.then(|| shaped(&disks, &model, &goal, context)).flatten() {
        keeps(&outcome, &goal, &disks);
        let predicted = Predicted::new(&Summary::new(&outcome, &disks), outcome.longest_delay, &goal);
        again(&PlanFile::new(&Schedule::Shaped(steps), goal, predicted, "fuzzed", &model.name));
    }
    Ok(())
}

fn keeps(outcome: &idlewise::simulate::Outcome, goal: &Goal, disks: &[Idleness]) {
    assert!(goal.allows(disks).keeps(outcome), "{outcome:?} {goal:?}");
    assert!(outcome.longest_delay <= goal.max_slowdown, "{outcome:?} {goal:?}");
}

fn again(file: &PlanFile) {
    let read = PlanFile::from_toml(&file.to_toml()).expect("what is written can be read");
    assert_eq!((&read.schedule(), read.goal), (&file.schedule(), file.goal));
}
