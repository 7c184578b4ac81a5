//! Stretches of waits that are passed over, as a few waits in them show that none keeps the goal.
//!
//! Where most intervals are longer than the wait, collisions follow from each other, and the delays of a longer wait are as good as drawn
//! anew: their sum varies little about its mean, unless intervals have lengths in common, such as a timer's ticks. How much it varies is
//! measured.

use super::super::goal::Allowed;
use super::super::waiting::Waits;
use super::judge::Judge;
use crate::Nanos;
use crate::idle::Idleness;

/// Waits that are looked at in a stretch.
const PROBES: usize = 8;
/// Standard deviations between what waits cost and what is allowed: none comes so far.
const FAR: f64 = 8.0;
/// A stretch is this part of its first wait, and so many service times at least.
const PART: u64 = 2;
const SERVICES: u64 = 4;
/// Phases of the service time at which the waits of a stretch lie: as far from each other as can be, however many they are.
const GOLDEN: f64 = 0.618_033_988_749_895;

/// The first wait of the first stretch in which one may keep the goal. These intervals are some or all of those that it is kept on.
pub(super) fn first_hopeful(judge: &Judge, intervals: &[Idleness], allowed: &Allowed, longest: u64) -> u64 {
    let (mut waits, mut wait) = (judge.waits(intervals), 0);
    while wait < longest {
        waits.iter_mut().for_each(|waits| waits.raise(Nanos(wait)));
        let length = (SERVICES * judge.timing.time.0).max(wait / PART);
        if may_keep(judge, &waits, (wait, length), allowed) {
            break;
        }
        wait = wait.saturating_add(length);
    }
    wait
}

/// Whether a wait of a stretch, given by its first and its length, may keep the goal.
fn may_keep(judge: &Judge, waits: &[Waits], (first, length): (u64, u64), allowed: &Allowed) -> bool {
    let allowed = allowed.delay_sum.0 as f64;
    let mut costs = [0.0; PROBES];
    for (probe, cost) in costs.iter_mut().enumerate() {
        let phase = (probe as f64 * GOLDEN).fract() * judge.timing.time.0 as f64;
        let wait = first.saturating_add(length / PROBES as u64 * probe as u64).saturating_add(phase as u64);
        *cost = judge.outcome(waits, wait).delay_sum.0 as f64;
        if *cost <= allowed {
            return true;
        }
    }
    // By differences, which do not count that costs fall with the wait.
    let squares = costs.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum::<f64>();
    let deviation = (squares / (2 * (PROBES - 1)) as f64).sqrt();
    let least = costs.into_iter().fold(f64::INFINITY, f64::min);
    least - FAR * deviation <= allowed
}

#[cfg(test)]
mod tests {
    use rand_distr::{Distribution, Exp1};

    use super::*;
    use crate::idle::Interval;
    use crate::tune::goal::{Arrivals, Goal};
    use crate::{Bytes, Nanos};

    const MS: u64 = 1_000_000;
    const SERVICE: Nanos = Nanos(8 * MS);

    fn judge() -> Judge {
        Judge { size: Bytes(1 << 19), timing: SERVICE.into(), arrivals: Arrivals::Recorded, p99: None }
    }

    /// Intervals of a disk, and the first wait that is not passed over for a mean slowdown.
    fn first(lengths: &[u64], mean_us: u64) -> (Vec<Idleness>, Allowed, u64) {
        let interval = |&length| Interval { length: Nanos(length), followers: 1, busy_before: Nanos(MS) };
        let intervals: Vec<_> = lengths.iter().map(interval).collect();
        let disks = vec![Idleness { requests: intervals.len() as u64 + 1, intervals, ..Idleness::default() }];
        let allowed = Goal::new(Nanos(1_000 * mean_us), Nanos(50 * MS)).allows(&disks);
        let longest = lengths.iter().max().unwrap() + SERVICE.0;
        let wait = first_hopeful(&judge(), &disks, &allowed, longest);
        (disks, allowed, wait)
    }

    /// Of exponential gaps most waits below the best are passed over, and in close steps none of them keeps the goal.
    #[test]
    fn what_is_passed_over_keeps_no_goal() {
        for seed in 0..20 {
            let mut random: rand_pcg::Pcg64 = rand::SeedableRng::seed_from_u64(seed);
            let mut length = || (5_000.0 * MS as f64 * Distribution::<f64>::sample(&Exp1, &mut random)) as u64;
            let lengths: Vec<u64> = (0..1_000).map(|_| length()).collect();
            let (disks, allowed, wait) = first(&lengths, 1_000);
            assert!(wait > 2_000 * MS, "seed {seed}: {wait}");
            let waits = Waits::new(&disks[0].intervals);
            let kept = (0..wait)
                .step_by(MS as usize / 2)
                .find(|&wait| waits.outcome(Nanos(wait), SERVICE, Bytes(1 << 19)).delay_sum <= allowed.delay_sum);
            assert_eq!(kept, None, "seed {seed}");
        }
    }

    /// Where gaps fit a number of requests by design, short waits are looked at.
    #[test]
    fn gaps_in_common_are_not_taken_for_chance() {
        for lengths in [vec![100 * MS; 500], (0..500).map(|k| 15_625_000 * (1 + k % 7)).collect()] {
            assert_eq!(first(&lengths, 200).2, 0);
        }
    }
}
