//! A wait whose slowdown is above the goal, for a policy that an account holds to it by using some of the intervals only.
//!
//! Where idle intervals are all about as long, as behind a timer, a wait either collides at the end of each or never runs. With
//! [`crate::policy::Budget`] it may run in one interval of several: what it scrubs then is its own throughput times the share that
//! the goal allows. So the wait is sought that scrubs most for what it delays.

use super::goal::Goal;
use super::sample::sample;
use super::waiting::Waits;
use crate::disk::{DiskModel, SMALLEST_REQUEST, Timing};
use crate::idle::Idleness;
use crate::policy::Waiting;
use crate::simulate::Outcome;
use crate::{Bytes, Nanos};

/// Stretches of intervals that are looked at of each disk, and intervals of all.
const STRETCHES: usize = 128;
const MOST: usize = 16_384;
/// Waits tried for each size, each longer than the one before by this factor.
const WAITS: usize = 64;
const LONGER: f64 = 1.2;
/// Each stands for itself and some that are longer by parts of a service: when a request ends is as good as random.
const SHIFTS: u64 = 4;

/// The request size and wait that scrub most within an account of this goal, as far as sums tell; `None` where none scrubs anything.
pub fn throttled(disks: &[Idleness], model: &DiskModel, goal: &Goal) -> Option<Waiting> {
    let disks = sample(disks, STRETCHES, MOST);
    let doubled = |size: Bytes| (size.0 / SMALLEST_REQUEST.0).is_power_of_two();
    let sizes = model.sizes(goal.max_slowdown).into_iter().filter(|(size, _)| doubled(*size));
    let best = sizes.filter_map(|(size, timing)| of_size(&disks, size, timing, goal));
    let (_, waiting) = best.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    Some(waiting)
}

/// What the best wait of this size scrubs within the account, in bytes.
fn of_size(disks: &[Idleness], size: Bytes, timing: Timing, goal: &Goal) -> Option<(f64, Waiting)> {
    let mut waits: Vec<_> = disks.iter().map(|disk| Waits::new(&disk.intervals).beyond(goal.p99_slowdown)).collect();
    let allowed = goal.allows(disks);
    let mut wait = timing.time.0 as f64 / 4.0;
    let mut best: Option<(f64, Waiting)> = None;
    for _ in 0..WAITS {
        let idle_wait = Nanos(wait as u64);
        waits.iter_mut().for_each(|disk| disk.raise(idle_wait));
        let mut sum = Outcome::default();
        for shift in 0..SHIFTS {
            let shifted = Nanos(idle_wait.0 + shift * timing.time.0 / SHIFTS);
            waits.iter().for_each(|disk| sum.add(&disk.outcome(shifted, timing, size)));
        }
        if sum.scrubbed == Bytes(0) {
            break;
        }
        let share =
            |allowed: f64, spent: f64| if spent > 0.0 { (allowed * SHIFTS as f64 / spent).min(1.0) } else { 1.0 };
        let delays = share(allowed.delay_sum.0 as f64, sum.delay_sum.0 as f64);
        let slowed = goal.p99_slowdown.map_or(1.0, |_| share(allowed.slowed as f64, sum.slowed as f64));
        let scrubbed = sum.scrubbed.0 as f64 / SHIFTS as f64 * delays.min(slowed);
        if best.is_none_or(|(most, _)| scrubbed > most) {
            best = Some((scrubbed, Waiting { idle_wait, request_size: size }));
        }
        wait *= LONGER;
    }
    best
}

#[cfg(all(test, feature = "files"))]
mod tests {
    use super::super::{Arrivals, tune};
    use super::*;
    use crate::idle::IdlenessBuilder;
    use crate::policy::Budget;
    use crate::simulate::simulate;

    const MS: u64 = 1_000_000;

    /// A request of 6 ms, every so often and a little.
    fn regular(period: u64, more: impl Fn(u64) -> u64) -> Idleness {
        let mut builder = IdlenessBuilder::new("d");
        for request in 0..2_000 {
            let at = request * period + more(request);
            builder.request(Nanos(at), Nanos(at + 6 * MS));
        }
        builder.finish()
    }

    /// Behind a timer no fixed wait keeps the goal and scrubs; some of the gaps, used from early on, do.
    #[test]
    fn some_of_regular_gaps_are_used() {
        let disks = [regular(400 * MS, |request| request * 7_919 % 3 * MS)];
        let (model, goal) = (DiskModel::ultrastar_15k450(), Goal::new(Nanos(MS), Nanos(50 * MS)));
        let alone = tune(&disks, &model, &goal, Arrivals::AnyMoment, &|_| ()).unwrap();
        let found = throttled(&disks, &model, &goal).unwrap();
        let run = simulate(&disks, &model, |_| {
            let service = model.verify_time(found.request_size);
            Box::new(Budget::new(found, goal.mean_slowdown).expecting(service))
        });
        assert!(run.scrubbed.0 > 100 * alone.outcome.scrubbed.0.max(1 << 20), "{run:?} {alone:?}");
        assert!(run.delay_sum <= goal.mean_slowdown * disks[0].requests, "{run:?}");
        assert!(found.idle_wait < Nanos(100 * MS), "{found:?}");
    }

    #[test]
    fn without_idle_time_there_is_none() {
        let goal = Goal::new(Nanos(MS), Nanos(50 * MS));
        assert_eq!(throttled(&[regular(6 * MS, |_| 0)], &DiskModel::ultrastar_15k450(), &goal), None);
    }
}
