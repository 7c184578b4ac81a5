//! Policies side by side: how much idle time each uses at which rate of collisions (DSN 2012, figure 14).

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use serde::{Serialize, Serializer};

use crate::disk::DiskModel;
use crate::idle::{AutoRegression, Idleness, exceeded_by_shares};
use crate::policy::{Parameters, Setting, build};
use crate::simulate::{Summary, simulate};
use crate::{Bytes, Nanos};

/// Steps along each curve.
const STEPS: usize = 40;
/// Shares of the predictions that AR + Waiting's thresholds exceed (section V-B).
const THRESHOLDS: [f64; 4] = [0.2, 0.4, 0.6, 0.8];
/// The rarest share of intervals or predictions that a curve begins with.
const RAREST: f64 = 1e-3;

/// One policy with its parameters, simulated.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// Its name in the table of policies.
    pub policy: &'static str,
    /// What it ran with.
    #[serde(serialize_with = "as_seconds")]
    pub parameters: Parameters,
    /// Share of the idle time spent on background work.
    pub utilised_idle: f64,
    /// Collisions per foreground request.
    pub collision_rate: f64,
}

/// Only those that vary, as `--json` names them.
fn as_seconds<S: Serializer>(parameters: &Parameters, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Shown {
        #[serde(skip_serializing_if = "Option::is_none")]
        idle_wait_s: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        threshold_s: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        longest: Option<f64>,
    }
    Shown {
        idle_wait_s: parameters.idle_wait.map(Nanos::as_secs_f64),
        threshold_s: parameters.threshold.map(Nanos::as_secs_f64),
        longest: parameters.longest,
    }
    .serialize(serializer)
}

/// Runs Waiting, Lossless Waiting, AR, AR + Waiting and the Oracle with many parameters each, all with requests of `size`.
/// Waits are lengths that shares of the intervals exceed, from all of them down to one in a thousand; AR's thresholds
/// are predictions in the same way. `progress` is told the share done.
pub fn compare(disks: &[Idleness], model: &DiskModel, size: Bytes, progress: &(dyn Fn(f64) + Sync)) -> Vec<Point> {
    let runs = runs(disks, size);
    let done = AtomicUsize::new(0);
    let lengths = sorted_lengths(disks);
    let point = |(policy, parameters): &(&'static str, Parameters)| {
        // The longest intervals are those of all disks together, where the policy would take each disk's.
        let (name, run) = match parameters.longest {
            Some(share) => (
                "lossless-waiting",
                Parameters { longest: None, idle_wait: Some(exceeded_by(&lengths, share)), ..*parameters },
            ),
            None => (*policy, *parameters),
        };
        let make = |disk: &Idleness| {
            build(name, &run, &Setting::scrub(disk, model)).expect("the parameters are those of the policy")
        };
        let summary = Summary::new(&simulate(disks, model, make), disks);
        progress((done.fetch_add(1, Ordering::Relaxed) + 1) as f64 / runs.len() as f64);
        let Summary { utilised_idle, collision_rate, .. } = summary;
        Point { policy, parameters: *parameters, utilised_idle, collision_rate }
    };
    runs.par_iter().map(point).collect()
}

fn runs(disks: &[Idleness], size: Bytes) -> Vec<(&'static str, Parameters)> {
    let predictions = disks.iter().flat_map(|disk| predictions(&series(disk)));
    let mut predicted: Vec<Nanos> = predictions.map(|value| Nanos((value.max(0.0) * 1e9) as u64)).collect();
    predicted.sort_unstable();
    let waits = exceeded_by_shares(&sorted_lengths(disks), RAREST, STEPS);
    let thresholds = exceeded_by_shares(&predicted, RAREST, STEPS);
    let base = Parameters { request_size: Some(size), ..Parameters::default() };
    let with_wait = |idle_wait| Parameters { idle_wait: Some(idle_wait), ..base };
    let mut runs = Vec::new();
    runs.extend(waits.iter().map(|&wait| ("waiting", with_wait(wait))));
    runs.extend(waits.iter().map(|&wait| ("lossless-waiting", with_wait(wait))));
    runs.extend(thresholds.iter().map(|&threshold| ("ar", Parameters { threshold: Some(threshold), ..base })));
    for share in THRESHOLDS {
        let rank = (share * predicted.len() as f64) as usize;
        let threshold = predicted.get(rank).copied();
        runs.extend(waits.iter().map(|&wait| ("ar-waiting", Parameters { threshold, ..with_wait(wait) })));
    }
    let longest = |step| Some(RAREST.powf(1.0 - step as f64 / STEPS as f64));
    runs.extend((0..=STEPS).map(|step| ("oracle", Parameters { longest: longest(step), ..base })));
    runs.retain(|(policy, parameters)| *policy != "ar-waiting" || parameters.threshold.is_some());
    runs
}

fn series(disk: &Idleness) -> Vec<f64> {
    disk.intervals.iter().map(|interval| interval.length.as_secs_f64()).collect()
}

/// Idle waits that so many shares of the intervals exceed.
pub fn waits(disks: &[Idleness], steps: usize) -> Vec<Nanos> {
    exceeded_by_shares(&sorted_lengths(disks), RAREST, steps)
}

fn sorted_lengths(disks: &[Idleness]) -> Vec<Nanos> {
    let mut lengths: Vec<Nanos> =
        disks.iter().flat_map(|disk| &disk.intervals).map(|interval| interval.length).collect();
    lengths.sort_unstable();
    lengths
}

/// What AR predicts for each interval; nothing where it cannot be fitted.
fn predictions(series: &[f64]) -> Vec<f64> {
    AutoRegression::fit(series).map(|model| model.predictions(series)).unwrap_or_default()
}

/// The length that this share of sorted lengths exceeds, and no more.
fn exceeded_by(sorted: &[Nanos], share: f64) -> Nanos {
    let rest = sorted.len() - ((share * sorted.len() as f64).round() as usize).min(sorted.len());
    rest.checked_sub(1).map_or(Nanos::ZERO, |last| sorted[last])
}

/// The most idle time that a policy uses with at most so many collisions a foreground request; `None` if it never has so few.
pub fn best_within(points: &[Point], policy: &str, collision_rate: f64) -> Option<f64> {
    let within = points.iter().filter(|point| point.policy == policy && point.collision_rate <= collision_rate);
    within.map(|point| point.utilised_idle).max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::synth::Shape;

    #[test]
    fn the_oracle_is_above_all_and_lossless_waiting_close_to_it_where_tails_are_long() {
        let shape = Shape {
            requests: 20_000,
            idle_mean: Nanos::from_millis(200),
            idle_cov: 5.0,
            burstiness: 0.2,
            requests_per_busy: 2.0,
            together: false,
            tick: Nanos::ZERO,
            service: Nanos::from_millis(5),
            read_share: 0.5,
            sequential: 0.0,
            phase: 1.0,
            length: 4096,
            capacity: Bytes(1 << 40),
        };
        let model = DiskModel::ultrastar_15k450();
        let disks = Idleness::of_trace(&shape.trace(4).unwrap(), &model).unwrap();
        let points = compare(&disks, &model, Bytes::from_kib(64), &|_| ());
        for rate in [0.01, 0.05, 0.1, 0.2] {
            let best = |policy| best_within(&points, policy, rate).unwrap_or(0.0);
            let oracle = best("oracle");
            for policy in ["waiting", "ar", "ar-waiting", "lossless-waiting"] {
                assert!(
                    best(policy) <= oracle + 0.03,
                    "{policy} {} above the oracle's {oracle} at {rate}",
                    best(policy)
                );
            }
            assert!(best("lossless-waiting") > oracle - 0.05, "at {rate}");
            assert!(best("waiting") > best("ar"), "at {rate}");
        }
    }

    #[test]
    fn a_disk_without_intervals_compares_nothing() {
        let points = compare(&[Idleness::default()], &DiskModel::ultrastar_15k450(), Bytes::from_kib(64), &|_| ());
        assert!(points.iter().all(|point| point.utilised_idle == 0.0));
    }
}
