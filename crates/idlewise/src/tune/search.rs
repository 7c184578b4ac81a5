//! The search over request sizes and, for each, idle waits.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use rayon::prelude::*;

use super::cost::{Cost, Ratio};
use super::goal::{Allowed, Arrivals, Goal, TuneError};
use super::plan::Plan;
use super::sample::sample;
use super::waiting::Waits;
use crate::disk::DiskModel;
use crate::idle::Idleness;
use crate::simulate::Outcome;
use crate::{Bytes, Nanos};

/// Steps of the search grow with the wait, so that no step is more than this part of it: on all intervals, and on the
/// sample that proposes waits.
const COARSE: u64 = 16;
const CLOSE: u64 = 1024;
/// Waits beyond as many service times are looked at less closely: how they meet a timer's ticks is luck.
const LONG: u64 = 32;
const LESS_CLOSE: u64 = 128;
/// Parts of the service time by which close steps are skipped where no wait so much longer can keep the goal.
const AHEAD: [u64; 2] = [16, 4];
/// Parts into which the last step is divided.
const FINE: u64 = 32;
/// Stretches of intervals in the sample that proposes waits.
const FEW: usize = 16;
/// Sizes with this share of the best throughput on the part are tuned on all.
const NEAR: f64 = 0.98;
/// What the first wait of a coarse search scrubs, of what the waits before it do at least.
const COARSELY: f64 = 0.9;
/// Steps of the search around a wait are this part of it at first.
const AROUND: u64 = 64;
/// Parts into which its last step is divided.
const LESS_FINE: u64 = 8;

/// Shifts tried for [`Arrivals::AnyMoment`].
const SHIFTS: u64 = 8;
/// Share of the goal that [`Arrivals::AnyMoment`] plans for.
const PLANNED: f64 = 0.9;

/// Finds the request size and idle wait that scrub fastest while the slowdown stays within the goal.
///
/// The paper finds the wait by binary search, as slowdown should fall with the wait. It does not always: where idle times
/// come in multiples of a timer tick it rises and falls with the tick. So for each size waits are first tried upwards from
/// zero in growing steps until one keeps the goal; then all shorter waits are tried in close steps on a sample of the
/// intervals, which proposes those that may keep it; and the last step is divided finely. Every wait taken was simulated
/// on all intervals, so no plan breaks the goal on them.
///
/// A size is given up once its throughput falls below the best found; so that there soon is a good one, all sizes are searched
/// coarsely first. Where there are more than some hundred thousand
/// intervals, every size is first tuned on a part of them; those that come near the best are then tuned on all, from the
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
        best(tuned(disks, model, goal, arrivals, &Enough::new(coarsely, 1.0), progress))
    } else {
        from_part(disks, model, goal, arrivals, stretches, progress)
    };
    Ok(plan.filter(|plan| plan.outcome.scrubbed >= least))
}

fn count(disks: &[Idleness]) -> usize {
    disks.iter().map(|disk| disk.intervals.len()).sum()
}

/// Every size on a part of the intervals, and those near the best on all.
fn from_part(
    disks: &[Idleness],
    model: &DiskModel,
    goal: &Goal,
    arrivals: Arrivals,
    stretches: usize,
    progress: &(dyn Fn(f64) + Sync),
) -> Option<Plan> {
    let part = sample(disks, stretches);
    let near = tuned(&part, model, goal, arrivals, &Enough::new(Bytes(0), NEAR), &|done| progress(done / 4.0));
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
struct Enough {
    bytes: AtomicU64,
    /// Share of the best found that is enough.
    near: f64,
}

impl Enough {
    fn new(least: Bytes, near: f64) -> Self {
        Self { bytes: AtomicU64::new(least.0), near }
    }

    fn found(&self, outcome: &Outcome) {
        let own = outcome.scrubbed.0;
        let near = if self.near < 1.0 { (self.near * own as f64) as u64 } else { own };
        self.bytes.fetch_max(near, Ordering::Relaxed);
    }

    fn is(&self, bytes: Bytes) -> bool {
        bytes.0 >= self.bytes.load(Ordering::Relaxed)
    }
}

/// The best plan of each size, without those whose throughput is not enough.
fn tuned(
    disks: &[Idleness],
    model: &DiskModel,
    goal: &Goal,
    arrivals: Arrivals,
    enough: &Enough,
    progress: &(dyn Fn(f64) + Sync),
) -> Vec<Plan> {
    let sizes = model.sizes(goal.max_slowdown);
    let (few, done) = (sample(disks, FEW), AtomicUsize::new(0));
    // All sizes take part in each of the three searches.
    let step = || progress((done.fetch_add(1, Ordering::Relaxed) + 1) as f64 / (3 * sizes.len()) as f64);
    let coarse = sizes.par_iter().map(|&(size, _)| {
        let search = Search::new(disks, model, goal, arrivals, size);
        let (limit, found) = search.coarse(enough);
        step();
        (search, limit, found)
    });
    let coarse: Vec<_> = coarse.collect();
    let close = coarse.into_par_iter().map(|(search, limit, found)| {
        let closer = if arrivals == Arrivals::Recorded { search.proposed(&few, limit, enough) } else { None };
        step();
        (search, closer.or(found))
    });
    let close: Vec<_> = close.collect();
    let fine = close.into_par_iter().filter_map(|(search, found)| {
        let plan = found.and_then(|found| search.smallest_wait(found, enough));
        step();
        plan
    });
    fine.collect()
}

fn best(plans: Vec<Plan>) -> Option<Plan> {
    // Ties: the smaller slowdown, then the smaller request.
    let rank = |plan: &Plan| (plan.outcome.scrubbed, Reverse(plan.outcome.delay_sum), Reverse(plan.request_size));
    plans.into_iter().max_by_key(rank)
}

struct Search<'a> {
    disks: &'a [Idleness],
    size: Bytes,
    service: Nanos,
    arrivals: Arrivals,
    /// A wait that does nothing whatever the shift, and so keeps any goal.
    longest: u64,
    /// How finely waits are distinguished.
    resolution: u64,
    p99: Option<Nanos>,
    allowed: Allowed,
}

/// A wait that keeps the goal, the one tried before it, which does not, and what it does.
#[derive(Clone, Copy)]
struct Found {
    failed: u64,
    /// What the one before it scrubs: no wait between them scrubs more.
    most: Bytes,
    wait: u64,
    outcome: Outcome,
}

impl<'a> Search<'a> {
    fn new(disks: &'a [Idleness], model: &DiskModel, goal: &Goal, arrivals: Arrivals, size: Bytes) -> Self {
        let service = model.verify_time(size);
        let longest = disks.iter().flat_map(|disk| &disk.intervals).map(|interval| interval.length.0).max();
        Self {
            disks,
            size,
            service,
            arrivals,
            longest: longest.unwrap_or(0).saturating_add(service.0),
            resolution: (goal.mean_slowdown.0.min(service.0) / 16).max(1_000),
            p99: goal.p99_slowdown,
            allowed: goal.allows(disks),
        }
    }

    /// The plan with the smallest wait that keeps the goal before the one found; `None` if it cannot be enough.
    fn smallest_wait(&self, found: Found, enough: &Enough) -> Option<Plan> {
        if !enough.is(found.most) {
            return None;
        }
        let plan = self.plan(self.refined(self.refined(found, FINE), FINE));
        enough.found(&plan.outcome);
        Some(plan)
    }

    /// The plan with the smallest wait that keeps the goal around a wait that nearly does.
    fn around(&self, wait: u64) -> Plan {
        let judged = |wait| {
            let (outcome, cost) = self.judged(&mut self.waits(self.disks), wait);
            (outcome, cost.is_within(&self.allowed))
        };
        let (mut step, mut wait) = ((wait / AROUND).max(self.resolution), wait);
        let (mut outcome, mut keeps) = judged(wait);
        let mut most = outcome.scrubbed;
        if keeps {
            // Down to the first that does not.
            loop {
                let lower = wait.saturating_sub(step);
                let (next, kept) = judged(lower);
                if !kept || lower == 0 {
                    let found = if kept { (lower, next) } else { (wait, outcome) };
                    return self.closer(Found { failed: lower, most: next.scrubbed, wait: found.0, outcome: found.1 });
                }
                (wait, outcome, step) = (lower, next, step + step / 2);
            }
        }
        let mut failed = wait;
        while !keeps {
            (failed, most) = (wait, outcome.scrubbed);
            wait = wait.saturating_add(step).min(self.longest);
            (outcome, keeps) = judged(wait);
            step = step.saturating_add(step / 2);
        }
        self.closer(Found { failed, most, wait, outcome })
    }

    fn closer(&self, found: Found) -> Plan {
        self.plan(self.refined(self.refined(found, LESS_FINE), LESS_FINE))
    }

    fn plan(&self, found: Found) -> Plan {
        Plan { request_size: self.size, idle_wait: Nanos(found.wait), outcome: found.outcome }
    }

    /// The first wait in growing steps that keeps the goal, or at which the throughput is not enough: then nothing.
    fn coarse(&self, enough: &Enough) -> (u64, Option<Found>) {
        let mut waits = self.waits(self.disks);
        let (mut failed, mut most, mut wait) = (0, Bytes(u64::MAX), 0);
        loop {
            let (outcome, cost) = self.judged(&mut waits, wait);
            if !enough.is(outcome.scrubbed) {
                return (wait, None);
            }
            if cost.is_within(&self.allowed) {
                enough.found(&outcome);
                return (wait, Some(Found { failed, most, wait, outcome }));
            }
            (failed, most) = (wait, outcome.scrubbed);
            wait = wait.saturating_add((self.service.0 / 4).max(wait / COARSE)).min(self.longest);
        }
    }

    /// The first wait below `limit` that keeps the goal, of those that the sample proposes.
    fn proposed(&self, few: &[Idleness], limit: u64, enough: &Enough) -> Option<Found> {
        // What so many intervals do need not be asked of all of them again.
        let few_are_all = count(few) == count(self.disks);
        let (mut few, mut all) = (self.waits(few), self.waits(self.disks));
        // What it costs on all intervals over what it costs on the sample, where they were last compared.
        let mut ratio = Ratio::default();
        let limit = if few_are_all { self.not_enough(limit, enough) } else { limit };
        let (mut failed, mut most, mut wait) = (0, Bytes(u64::MAX), 0);
        while wait < limit {
            let step = |wait| {
                let part = if wait < LONG * self.service.0 { CLOSE } else { LESS_CLOSE };
                self.resolution.max(wait / part)
            };
            // What is ahead of a single step is not worth knowing.
            let ahead = AHEAD.map(|part| Nanos(self.service.0 / part).max(Nanos(step(wait))));
            let ahead = if ahead[1].0 <= step(wait) { [Nanos::ZERO; AHEAD.len()] } else { ahead };
            let until = match self.guessed(&mut few, wait, ahead, self.allowed.delay_sum as f64 / ratio.delay) {
                None => wait.saturating_add(ahead[1].0),
                Some((guessed, left)) => {
                    let guess = Cost::of(&guessed);
                    if guess.times(ratio).is_within(&self.allowed) {
                        let (outcome, cost) = if few_are_all { (guessed, guess) } else { self.judged(&mut all, wait) };
                        if !enough.is(outcome.scrubbed) {
                            return None;
                        }
                        if cost.is_within(&self.allowed) {
                            enough.found(&outcome);
                            return Some(Found { failed, most, wait, outcome });
                        }
                        ratio = cost.over(&guess);
                    }
                    // What a sample scrubs says little of what all do.
                    most = if few_are_all { guessed.scrubbed } else { most };
                    let hopeless = left[0] as f64 * ratio.delay > self.allowed.delay_sum as f64;
                    wait.saturating_add(if hopeless { ahead[0].0 } else { 0 })
                }
            };
            while {
                failed = wait;
                wait = wait.saturating_add(step(wait));
                wait <= until && wait > failed
            } {}
        }
        None
    }

    /// The smallest wait of a fine grid between the one that failed and the one found.
    fn refined(&self, found: Found, parts: u64) -> Found {
        let mut waits = self.waits(self.disks);
        let step = (found.wait - found.failed).div_ceil(parts).max(1);
        let tried = (found.failed..found.wait).step_by(step as usize).skip(1);
        for wait in tried {
            let (outcome, cost) = self.judged(&mut waits, wait);
            if cost.is_within(&self.allowed) {
                return Found { failed: wait - step, wait, outcome, ..found };
            }
        }
        Found { failed: found.wait.saturating_sub(step).max(found.failed), ..found }
    }

    /// What the wait does, and the cost to hold against the goal. Waits must not fall from call to call.
    fn judged(&self, waits: &mut [Waits], wait: u64) -> (Outcome, Cost) {
        if self.arrivals == Arrivals::Recorded {
            waits.iter_mut().for_each(|disk| disk.raise(Nanos(wait)));
            let outcome = self.outcome(waits, wait);
            return (outcome, Cost::of(&outcome));
        }
        let lowest = wait.saturating_sub(self.service.0 / 2);
        waits.iter_mut().for_each(|disk| disk.raise(Nanos(lowest)));
        let outcome = self.outcome(waits, wait);
        let shifted = |shift| Cost::of(&self.outcome(waits, lowest + shift * self.service.0 / SHIFTS));
        let costs: [Cost; SHIFTS as usize] = std::array::from_fn(|shift| shifted(shift as u64));
        let own = Cost::of(&outcome);
        let delay = own.delay.max(planned(costs.map(|cost| cost.delay as f64)) as u128);
        let slowed = own.slowed.max(planned(costs.map(|cost| cost.slowed as f64)) as u64);
        (outcome, Cost { delay, slowed })
    }

    /// The first wait below `limit`, about, whose throughput is not enough.
    fn not_enough(&self, limit: u64, enough: &Enough) -> u64 {
        let waits = self.waits(self.disks);
        let (mut low, mut high) = (0, limit);
        while high - low > self.resolution.max(high / CLOSE) {
            let middle = low + (high - low) / 2;
            if enough.is(self.outcome(&waits, middle).scrubbed) { low = middle } else { high = middle }
        }
        high
    }

    /// What the wait does, and the delay that is left of waits longer by each of `ahead`; `None` if that is more than `most`
    /// for the last of them. Waits must not fall from call to call.
    fn guessed(
        &self,
        waits: &mut [Waits],
        wait: u64,
        ahead: [Nanos; AHEAD.len()],
        most: f64,
    ) -> Option<(Outcome, [u128; AHEAD.len()])> {
        let (mut total, mut left) = (Outcome::default(), [0; AHEAD.len()]);
        for disk in waits {
            disk.raise(Nanos(wait));
            let rest = (most as u128).checked_sub(left[1])?;
            let (outcome, own) = disk.outcome_ahead(Nanos(wait), self.service, self.size, ahead, rest)?;
            total.add(&outcome);
            left.iter_mut().zip(own).for_each(|(left, own)| *left += own);
        }
        Some((total, left))
    }

    fn waits<'b>(&self, disks: &'b [Idleness]) -> Vec<Waits<'b>> {
        disks.iter().map(|disk| Waits::new(&disk.intervals).beyond(self.p99)).collect()
    }

    fn outcome(&self, waits: &[Waits], wait: u64) -> Outcome {
        let mut total = Outcome::default();
        for disk in waits {
            total.add(&disk.outcome(Nanos(wait), self.service, self.size));
        }
        total
    }
}

/// What [`Arrivals::AnyMoment`] plans for, of a number at each shift.
fn planned(shifted: [f64; SHIFTS as usize]) -> f64 {
    let mean = shifted.iter().sum::<f64>() / SHIFTS as f64;
    let variance = shifted.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (SHIFTS - 1) as f64;
    (mean + 2.0 * variance.sqrt()) / PLANNED
}

#[cfg(all(test, feature = "files"))]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::idle::IdlenessBuilder;
    use crate::idle::Interval;
    use crate::simulate::{Lane, Scrub, Service, naive, scrub};

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
        assert_eq!(plan.outcome.delay_sum, 0);
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
            let allowed = u128::from(goal.mean_slowdown.0) * u128::from(disk.requests);
            assert!(plan.outcome.delay_sum <= allowed);
            let mut best = 0;
            let (mut falls, mut last) = (0, 0);
            for (size, _) in model.sizes(goal.max_slowdown).into_iter().take(10) {
                let waits = Waits::new(&disk.intervals);
                for wait in (0..110 * MS).step_by(20_000) {
                    let outcome = waits.outcome(Nanos(wait), model.verify_time(size), size);
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
            let plan = from_part(&disks, &model, &goal, arrivals, 64, &|_| ()).unwrap();
            assert!(plan.outcome.delay_sum <= u128::from(goal.mean_slowdown.0) * u128::from(disks[0].requests));
            let whole = tune(&disks, &model, &goal, arrivals, &|_| ()).unwrap();
            let share = plan.outcome.scrubbed.0 as f64 / whole.outcome.scrubbed.0 as f64;
            assert!(share > 0.995, "{share} with seed {seed}");
        }
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
            let allowed = u128::from(goal.mean_slowdown.0) * u128::from(disk.requests);
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
                    let sum: u128 = (0..8).map(|shift| run(shifted(shift)).delay_sum).sum();
                    // A nanosecond of rounding a shift may let a request more collide.
                    prop_assert!(sum / 8 <= allowed + allowed / 100, "{} {}", sum / 8, allowed);
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
