//! The search over request sizes and, for each, idle waits.

mod hopeless;
mod judge;
mod one_size;

use std::cmp::Reverse;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::goal::{Arrivals, Goal, TuneError};
use super::plan::Plan;
use super::sample::sample;
use crate::Bytes;
use crate::disk::DiskModel;
use crate::idle::Idleness;
use crate::simulate::Outcome;
use one_size::Search;

/// Stretches of intervals of each disk in the sample that proposes waits, and intervals in it of all disks: many thousand waits
/// are tried on it.
const FEW: usize = 16;
const FEW_IN_ALL: usize = 2048;
/// Sizes with this share of the best throughput on the part are tuned on all.
const NEAR: f64 = 0.98;
/// What the first wait of a coarse search scrubs, of what the waits before it do at least.
const COARSELY: f64 = 0.9;
/// Sizes that are searched side by side.
const WAVE: usize = 8;

/// Finds the request size and idle wait that scrub fastest while the slowdown stays within the goal.
///
/// The paper finds the wait by binary search, as slowdown should fall with the wait. It does not always: where idle times
/// come in multiples of a timer tick it rises and falls with the tick. So for each size waits are first tried upwards from
/// zero in growing steps until one keeps the goal; then all shorter waits are tried in close steps on a sample of the
/// intervals, which proposes those that may keep it; and the last step is divided finely. Every wait taken was simulated
/// on all intervals, so no plan breaks the goal on them.
///
/// A size is given up once its throughput falls below the best found; so that there soon is a good one, all sizes are searched
/// coarsely first. What a close search may look at is bounded: beyond that, the coarse one has found its wait. Where there
/// are more than some hundred thousand intervals, every size is first tuned on a part of them; those that come near the best are then tuned on all, from the
/// wait found on the part. `progress` is told the share done, 0 to 1.
///
/// # Errors
/// [`TuneError`] where no request fits the maximum slowdown, or there is no idle time.
pub fn tune(
    disks: &[Idleness],
    model: &DiskModel,
    goal: &Goal,
    arrivals: Arrivals,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<Plan, TuneError> {
    let plan = tune_for(disks, model, goal, arrivals, Bytes(0), progress)?;
    Ok(plan.expect("the size with the highest throughput is never given up"))
}

/// The same, or `None` if that scrubs less than `least`: where that is much, it is known sooner.
///
/// # Errors
/// As [`tune`].
pub fn tune_for(
    disks: &[Idleness],
    model: &DiskModel,
    goal: &Goal,
    arrivals: Arrivals,
    least: Bytes,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<Option<Plan>, TuneError> {
    goal.check(model)?;
    let intervals = count(disks);
    if intervals == 0 {
        return Err(TuneError::NoIdleTime);
    }
    let coarsely = Bytes((COARSELY * least.0 as f64) as u64);
    // Beyond so many intervals a part of them, of so many stretches, tells where to look.
    let (many, stretches) = match arrivals {
        Arrivals::Recorded => (200_000, 512),
        // Each wait is simulated many times, and a live scrub does not want to think for long.
        Arrivals::AnyMoment => (16_384, 128),
    };
    let plan = if intervals <= many {
        best(tuned(disks, model, goal, arrivals, Enough::new(coarsely, 1.0), progress))
    } else {
        from_part(disks, model, goal, arrivals, (stretches, many), progress)
    };
    Ok(plan.filter(|plan| plan.outcome.scrubbed >= least))
}

fn count(disks: &[Idleness]) -> usize {
    disks.iter().map(|disk| disk.intervals.len()).sum()
}

/// Every size on a part of the intervals, of so many stretches of each disk and so many intervals at most, and those near the
/// best on all.
fn from_part(
    disks: &[Idleness],
    model: &DiskModel,
    goal: &Goal,
    arrivals: Arrivals,
    (stretches, many): (usize, usize),
    progress: &(dyn Fn(f64) + Sync),
) -> Option<Plan> {
    let part = sample(disks, stretches, many);
    let near = tuned(&part, model, goal, arrivals, Enough::new(Bytes(0), NEAR), &|done| progress(done / 4.0));
    let most = near.iter().map(|plan| plan.outcome.scrubbed.0).max().unwrap_or(0) as f64;
    let mut near: Vec<Plan> = near.into_iter().filter(|plan| plan.outcome.scrubbed.0 as f64 >= NEAR * most).collect();
    if most == 0.0 {
        // Where nothing may run, all sizes are alike.
        near = best(near).into_iter().collect();
    }
    let done = AtomicUsize::new(0);
    let plans = near.par_iter().map(|guess| {
        let plan = Search::new(disks, model, goal, arrivals, guess.request_size).around(guess.idle_wait.0);
        progress(0.25 + 0.75 * (done.fetch_add(1, Ordering::Relaxed) + 1) as f64 / near.len() as f64);
        plan
    });
    best(plans.collect())
}

/// Bytes below which a size is given up.
#[derive(Clone, Copy)]
struct Enough {
    bytes: u64,
    /// Share of the best found that is enough.
    near: f64,
}

impl Enough {
    fn new(least: Bytes, near: f64) -> Self {
        Self { bytes: least.0, near }
    }

    /// The same where so much was found.
    fn raised(self, found: Bytes) -> Self {
        let near = if self.near < 1.0 { (self.near * found.0 as f64) as u64 } else { found.0 };
        Self { bytes: self.bytes.max(near), ..self }
    }

    fn is(self, bytes: Bytes) -> bool {
        bytes.0 >= self.bytes
    }
}

/// Works on sizes in parallel, and tells what each found: by what those of the waves before it found others are given up. A wave is as long
/// whatever the number of threads is, so that the plan is the same.
fn in_waves<T: Send, R: Send>(
    mut sizes: Vec<T>,
    enough: &mut Enough,
    work: impl Fn(T, Enough) -> (R, Option<Outcome>) + Sync,
) -> Vec<R> {
    let mut done = Vec::new();
    while !sizes.is_empty() {
        let rest = sizes.split_off(sizes.len().min(WAVE));
        let bound = *enough;
        let wave: Vec<_> = sizes.into_par_iter().map(|size| work(size, bound)).collect();
        for (result, found) in wave {
            *enough = found.map_or(*enough, |found| enough.raised(found.scrubbed));
            done.push(result);
        }
        sizes = rest;
    }
    done
}

/// The best plan of each size, without those whose throughput is not enough.
fn tuned(
    disks: &[Idleness],
    model: &DiskModel,
    goal: &Goal,
    arrivals: Arrivals,
    mut enough: Enough,
    progress: &(dyn Fn(f64) + Sync),
) -> Vec<Plan> {
    let mut sizes: Vec<_> = (0u64..).zip(model.sizes(goal.max_slowdown)).collect();
    // Small, large and middling ones soon.
    sizes.sort_by_key(|(number, _)| number.reverse_bits());
    let (few, done) = (sample(disks, FEW, FEW_IN_ALL), AtomicUsize::new(0));
    // All sizes take part in each of the three searches.
    let steps = 3 * sizes.len();
    let step = || progress((done.fetch_add(1, Ordering::Relaxed) + 1) as f64 / steps as f64);
    let mut coarse = in_waves(sizes, &mut enough, |(_, (size, _)), enough| {
        let search = Search::new(disks, model, goal, arrivals, size).beginning(&few);
        let (limit, found) = search.coarse(enough);
        step();
        ((search, limit, found), found.map(|found| found.outcome))
    });
    coarse.sort_by_key(|(.., found)| Reverse(found.map(|found| found.outcome.scrubbed)));
    let mut close = in_waves(coarse, &mut enough, |(search, limit, found), enough| {
        let closer = if arrivals == Arrivals::Recorded { search.proposed(&few, limit, enough) } else { None };
        step();
        ((search, closer.or(found)), closer.map(|closer| closer.outcome))
    });
    close.sort_by_key(|(_, found)| Reverse(found.map(|found| found.outcome.scrubbed)));
    let fine = in_waves(close, &mut enough, |(search, found), enough| {
        let plan = found.and_then(|found| search.smallest_wait(found, enough));
        step();
        (plan, plan.map(|plan| plan.outcome))
    });
    fine.into_iter().flatten().collect()
}

fn best(plans: Vec<Plan>) -> Option<Plan> {
    // Ties: the smaller slowdown, then the smaller request.
    let rank = |plan: &Plan| (plan.outcome.scrubbed, Reverse(plan.outcome.delay_sum), Reverse(plan.request_size));
    plans.into_iter().max_by_key(rank)
}

#[cfg(all(test, feature = "files"))]
mod tests {
    use proptest::prelude::*;

    use super::super::waiting::Waits;
    use super::*;
    use crate::idle::IdlenessBuilder;
    use crate::idle::Interval;
    use crate::simulate::{Lane, Scrub, Service, naive, scrub};
    use crate::{Nanos, TotalTime};

    const MS: u64 = 1_000_000;

    fn disk(lengths: impl IntoIterator<Item = u64>) -> Idleness {
        let interval = |length| Interval { length: Nanos(length), followers: 3, busy_before: Nanos(MS) };
        let intervals: Vec<_> = lengths.into_iter().map(interval).collect();
        let end = Nanos(intervals.iter().map(|i| i.length.0 + MS).sum());
        Idleness { requests: 3 * intervals.len() as u64 + 3, end, intervals, ..Idleness::default() }
    }

    fn goal(mean_us: u64, max_ms: u64) -> Goal {
        Goal::new(Nanos(mean_us * 1_000), Nanos(max_ms * MS))
    }

    fn tuned(disk: &Idleness, goal: &Goal) -> Result<Plan, TuneError> {
        tuned_for(disk, goal, Arrivals::Recorded)
    }

    fn tuned_for(disk: &Idleness, goal: &Goal, arrivals: Arrivals) -> Result<Plan, TuneError> {
        tune(std::slice::from_ref(disk), &DiskModel::ultrastar_15k450(), goal, arrivals, &|_| ())
    }

    #[test]
    fn what_cannot_be_done_is_said() {
        let error = tuned(&disk([MS]), &goal(1_000, 3)).unwrap_err();
        assert!(error.to_string().ends_with("allow at least 4.80 ms"), "{error}");
        assert_eq!(tuned(&disk([]), &goal(1_000, 50)), Err(TuneError::NoIdleTime));
    }

    #[test]
    fn a_goal_of_no_slowdown_at_all_is_kept() {
        let plan = tuned(&disk([5 * MS, 70 * MS, 900 * MS]), &goal(0, 50)).unwrap();
        assert_eq!(plan.outcome.delay_sum, TotalTime::ZERO);
    }

    /// Whoever is done first decides nothing: with long and short intervals mixed, throughput rises and falls with the wait.
    #[test]
    fn a_plan_does_not_depend_on_the_number_of_threads() {
        let disk = disk((0..20_000u64).map(|k| 200_000 + k * k % 7_919 * 1_700 + k % 97 * 40_000));
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| [500, 1_000, 3_000].map(|mean_us| tuned(&disk, &goal(mean_us, 50)).unwrap()))
        };
        let one = with(1);
        for threads in [2, 8, 2, 8] {
            assert_eq!(with(threads), one, "{threads} threads");
        }
    }

    /// Idle times in multiples of a 15.625 ms tick: 192 KiB (6.25 ms) fits it 2.5 times, so the slowdown rises and falls
    /// with the wait. The plan must be as good as the best of a fine grid.
    #[test]
    fn timer_ticks_do_not_mislead_the_search() {
        let disk = disk((0..600u64).map(|k| 15_625_000 * (1 + k % 7) + k % 13 * 1_000));
        let model = DiskModel::ultrastar_15k450();
        for mean_us in [100, 300, 1_000] {
            let goal = goal(mean_us, 12);
            let plan = tuned(&disk, &goal).unwrap();
            let allowed = goal.mean_slowdown * disk.requests;
            assert!(plan.outcome.delay_sum <= allowed);
            let mut best = 0;
            let (mut falls, mut last) = (0, TotalTime::ZERO);
            for (size, _) in model.sizes(goal.max_slowdown).into_iter().take(10) {
                let waits = Waits::new(&disk.intervals);
                for wait in (0..110 * MS).step_by(20_000) {
                    let outcome = waits.outcome(Nanos(wait), model.timing(size), size);
                    falls += u32::from(outcome.delay_sum <= allowed && last > allowed);
                    last = outcome.delay_sum;
                    if outcome.delay_sum <= allowed {
                        best = best.max(outcome.scrubbed.0);
                    }
                }
            }
            assert!(falls > 10, "this workload should not be monotone");
            let found = plan.outcome.scrubbed.0 as f64;
            assert!(found >= 0.98 * best as f64, "{mean_us} us: {found} of {best}");
        }
    }

    /// Of many intervals a part tells where to look: the plan keeps the goal on all, and is as good as the one found on all.
    #[test]
    fn a_part_of_many_intervals_leads_to_as_good_a_plan() {
        let model = DiskModel::ultrastar_15k450();
        let seed = 5;
        let mut random: rand_pcg::Pcg64 = rand::SeedableRng::seed_from_u64(seed);
        let tail = rand_distr::LogNormal::new(18.0, 1.7).unwrap();
        let lengths = (0..40_000).map(|_| rand_distr::Distribution::<f64>::sample(&tail, &mut random) as u64 + 1);
        let disks = [disk(lengths)];
        for arrivals in [Arrivals::Recorded, Arrivals::AnyMoment] {
            let goal = goal(1_000, 50);
            let plan = from_part(&disks, &model, &goal, arrivals, (64, 200_000), &|_| ()).unwrap();
            assert!(plan.outcome.delay_sum <= goal.mean_slowdown * disks[0].requests);
            let whole = tune(&disks, &model, &goal, arrivals, &|_| ()).unwrap();
            let share = plan.outcome.scrubbed.0 as f64 / whole.outcome.scrubbed.0 as f64;
            assert!(share > 0.995, "{share} with seed {seed}");
        }
    }

    /// Many disks of few intervals each, of lengths of every magnitude: what the search looks at does not grow with their number.
    #[test]
    fn many_disks_take_no_longer_than_one() {
        let mut random: rand_pcg::Pcg64 = rand::SeedableRng::seed_from_u64(7);
        let mut length = || 10f64.powf(rand::RngExt::random_range(&mut random, 3.0..12.0)) as u64;
        let lengths: Vec<Vec<u64>> = (0..400).map(|_| (0..50).map(|_| length()).collect()).collect();
        let many: Vec<_> = lengths.iter().map(|lengths| disk(lengths.iter().copied())).collect();
        let one = [disk(lengths.concat())];
        let (model, goal) = (DiskModel::ultrastar_15k450(), goal(1_000, 50));
        let took = |disks: &[Idleness]| {
            let began = std::time::Instant::now();
            let plan = tune(disks, &model, &goal, Arrivals::Recorded, &|_| ()).unwrap();
            assert!(plan.outcome.delay_sum <= goal.allows(disks).delay_sum);
            (began.elapsed().as_secs_f64(), plan.outcome.scrubbed.0 as f64)
        };
        let ((slow, of_many), (quick, of_one)) = (took(&many), took(&one));
        assert!(slow < 6.0 * quick + 1.0, "{slow} s for many, {quick} s for one");
        assert!(of_many > 0.97 * of_one, "{of_many} {of_one}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn every_plan_keeps_its_goal_in_the_engine(
            lengths in prop::collection::vec(prop_oneof![1..MS, 1..50 * MS, 1..5_000 * MS], 1..60), mean_us in 0u64..4_000,
            p99_us in prop::option::of(0u64..25_000),
        ) {
            let disk = disk(lengths);
            let goal = Goal { p99_slowdown: p99_us.map(|us| Nanos(us * 1_000)), ..goal(mean_us, 30) };
            let model = DiskModel::ultrastar_15k450();
            let allowed = goal.mean_slowdown * disk.requests;
            let run = |policy| scrub(std::slice::from_ref(&disk), &model, goal.p99_slowdown, |_| Box::new(policy)).outcome;
            for arrivals in [Arrivals::Recorded, Arrivals::AnyMoment] {
                let plan = tuned_for(&disk, &goal, arrivals).unwrap();
                let outcome = run(plan.policy());
                prop_assert_eq!(outcome, plan.outcome);
                prop_assert!(outcome.delay_sum <= allowed);
                prop_assert!(outcome.longest_delay <= goal.max_slowdown);
                prop_assert!(outcome.slowed * 100 <= disk.requests, "{} of {}", outcome.slowed, disk.requests);
                if arrivals == Arrivals::AnyMoment {
                    let eighth = model.verify_time(plan.request_size).0 / 8;
                    let shifted = |shift: u64| crate::policy::Waiting {
                        idle_wait: Nanos(plan.idle_wait.0.saturating_sub(4 * eighth) + shift * eighth),
                        ..plan.policy()
                    };
                    let sum: TotalTime = (0..8).map(|shift| run(shifted(shift)).delay_sum).sum();
                    // A nanosecond of rounding a shift may let a request more collide.
                    prop_assert!(sum.0 / 8 <= allowed.0 + allowed.0 / 100, "{sum} of 8 times {allowed}");
                }
            }
        }

        /// Request by request: of those that are slowed by more than the goal's 99th percentile there is one in a hundred at most.
        #[test]
        fn the_99th_percentile_is_kept_request_by_request(
            gaps in prop::collection::vec((prop_oneof![0..MS, 1..50 * MS, 1..2_000 * MS], 1..20 * MS), 100..400),
            mean_us in 100u64..8_000, p99_us in 1u64..25_000,
        ) {
            let mut now = 0;
            let requests: Vec<_> = gaps.iter().map(|&(gap, response)| { now += gap; (now, response, false) }).collect();
            let mut builder = IdlenessBuilder::new("d");
            for &(arrival, response, _) in &requests {
                builder.request(Nanos(arrival), Nanos(arrival + response));
            }
            let disk = builder.finish();
            let (model, p99) = (DiskModel::ultrastar_15k450(), Some(Nanos(p99_us * 1_000)));
            let goal = Goal { p99_slowdown: p99, ..goal(mean_us, 30) };
            let plan = tuned(&disk, &goal).unwrap();
            let work = Scrub::new(Service::OfSize(model));
            let outcome = naive::simulate(&requests, &mut [Lane::new(Box::new(plan.policy()), Box::new(work))], p99);
            prop_assert_eq!(outcome, plan.outcome);
            prop_assert!(outcome.slowed * 100 <= requests.len() as u64);
            let looser = tuned(&disk, &Goal { p99_slowdown: None, ..goal }).unwrap();
            prop_assert!(looser.outcome.scrubbed.0 * 101 >= plan.outcome.scrubbed.0 * 100, "{:?} {:?}", looser, plan);
        }
    }
}
