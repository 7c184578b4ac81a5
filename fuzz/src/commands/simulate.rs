//! `simulate`: any policy with any parameters on any work; sums of disks are those of all.

use idlewise::TotalTime;
use idlewise::disk::{Interference, SMALLEST_REQUEST};
use idlewise::idle::{Idleness, Keep};
use idlewise::policy::{REQUEST_SIZE, Setting, build};
use idlewise::simulate::{self, Lane, Run, Summary};

use super::work::{kind, policy};
use crate::load::{file, share};
use crate::models::model;
use crate::reading::Read;
use crate::{Result, Unstructured};

pub fn run(mut from: Unstructured) -> Result<()> {
    let (model, kind, (name, parameters)) = (model(&mut from)?, kind(&mut from)?, policy(&mut from)?);
    let drawn = if from.ratio(1u8, 4u8)? { Some(share(&mut from)?) } else { None };
    let Some(read) = Read::short(&file(from)?) else { return Ok(()) };
    let keep = Keep { responses: true, writes: kind.writes(drawn) };
    let Some(disks) = read.idleness(&model, keep) else { return Ok(()) };
    let size = parameters.size(REQUEST_SIZE).unwrap_or(SMALLEST_REQUEST);
    // What is refused, the command refuses before it reads.
    if build(name, &parameters, &Setting::scrub(&Idleness::default(), &model)).is_err() {
        return Ok(());
    }
    let lane = |disk: &Idleness| {
        let amount = kind.amount(disk, &model, size);
        let setting = Setting { past: disk, model: &model, service: kind.mean_service(), amount };
        vec![Lane::new(build(name, &parameters, &setting).expect("checked before"), kind.work(&model))]
    };
    let all = simulate::run(&disks, lane);
    let waits_for_all = model.verify.iter().all(|point| point.interference == Interference::FULL);
    check(&all, &disks, kind.per_write(), waits_for_all);
    let mut sum = Run::default();
    for disk in disks.chunks(1) {
        let one = simulate::run(disk, lane);
        check(&one, disk, kind.per_write(), waits_for_all);
        sum.add(&one);
    }
    assert_eq!((sum.outcome, sum.foreground, sum.tallies), (all.outcome, all.foreground, all.tallies));
    Ok(())
}

fn check(run: &Run, disks: &[Idleness], per_write: bool, waits_for_all: bool) {
    let (outcome, requests) = (&run.outcome, disks.iter().map(|disk| disk.requests).sum::<u64>());
    let intervals = disks.iter().map(|disk| disk.intervals.len() as u64).sum::<u64>();
    assert!(outcome.collisions <= outcome.background_requests && outcome.collisions <= intervals);
    assert!(outcome.used_idle <= run.foreground.idle && run.foreground.idle <= run.foreground.span);
    // The longest is that of the request which waits for all that is left; on average one may wait for less.
    assert!(!waits_for_all || TotalTime::from(outcome.longest_delay) <= outcome.delay_sum);
    assert!(outcome.delay_sum <= outcome.longest_delay * requests);
    assert!(run.slowdowns.count() <= requests && run.foreground.requests == requests);
    assert_eq!(run.responses.count(), requests);
    assert!((0.0..=1.0).contains(&run.utilisation()));
    assert!(run.slowdown_quantile(900, requests) <= run.slowdown_quantile(990, requests));
    if per_write {
        let writes = disks.iter().map(|disk| disk.writes.len() as u64).sum::<u64>();
        let tally = run.tallies.first().copied().unwrap_or_default();
        assert!(tally.completed + tally.lost <= tally.came && tally.came <= writes, "{tally:?} of {writes}");
    }
    let summary = Summary::new(outcome, disks);
    assert!((0.0..=1.0).contains(&summary.utilised_idle) && summary.mean_slowdown_s.is_finite());
    assert!(summary.throughput_bytes_per_s.is_finite());
}
