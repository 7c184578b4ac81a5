//! Throughput against slowdown, for fixed request sizes and for sizes that grow (DSN 2012, figure 15).

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use serde::Serialize;

use super::compare::waits;
use super::goal::Arrivals;
use super::moments::{lowest, weighed};
use super::waiting::Waits;
use crate::disk::DiskModel;
use crate::idle::Idleness;
use crate::policy::{Growing, Growth};
use crate::simulate::{Outcome, Summary, simulate};
use crate::{Bytes, Nanos};

/// Waits tried for each fixed size, and for each way of growing.
const WAITS: usize = 200;
const FEWER_WAITS: usize = 40;
/// Waits tried for each way of growing where each takes nine simulations.
const FEWEST_WAITS: usize = 10;
/// Fixed sizes shown, in KiB.
const SIZES: [u64; 7] = [64, 128, 256, 512, 1024, 2048, 4096];
/// The factor a of exponential and linear growth, and the constant b of linear growth.
const FACTORS: [f64; 3] = [1.1, 1.5, 2.0];
const INCREMENTS: [Bytes; 2] = [Bytes::from_kib(64), Bytes::from_kib(256)];
/// Elapsed idle times t' at which swapping takes the largest size, as multiples of the wait.
const SWAPS: [u64; 3] = [2, 8, 32];

/// One way of choosing sizes, with one wait.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FrontierPoint {
    /// `fixed`, `exponential`, `linear` or `swapping`.
    pub policy: &'static str,
    /// Size of the first request, and of all where it is fixed.
    pub request_size_bytes: u64,
    /// Idle wait.
    pub idle_wait_s: f64,
    /// Growth, as a name for people; empty where it is fixed.
    pub growth: String,
    /// Mean slowdown of all foreground requests; with arrivals at any moment the one that a goal must allow.
    pub mean_slowdown_s: f64,
    /// Scrub throughput over the span.
    pub throughput_bytes_per_s: f64,
}

/// Every size with every wait, and growing sizes up to the largest that takes `longest` at most. `progress` is told the share
/// done.
pub fn frontier(
    disks: &[Idleness],
    model: &DiskModel,
    longest: Nanos,
    arrivals: Arrivals,
    progress: &(dyn Fn(f64) + Sync),
) -> Vec<FrontierPoint> {
    let fits = |kib: u64| model.verify_time(Bytes::from_kib(kib)) <= longest;
    let Some(largest) = (1..=64).map(|k| 64 * k).rfind(|&kib| fits(kib)).map(Bytes::from_kib) else {
        return Vec::new();
    };
    let few = if arrivals == Arrivals::Recorded { FEWER_WAITS } else { FEWEST_WAITS };
    let (close, waits) = (waits(disks, WAITS), waits(disks, few));
    let first = Bytes::from_kib(SIZES[0]);
    let mut grown: Vec<(&str, Growth, String)> = Vec::new();
    for factor in FACTORS {
        grown.push(("exponential", Growth::Each { factor, increment: Bytes(0) }, format!("times {factor}")));
        for increment in INCREMENTS {
            grown.push(("linear", Growth::Each { factor, increment }, format!("times {factor} plus {increment}")));
        }
    }
    let fixed: Vec<Bytes> = SIZES.into_iter().filter(|&kib| fits(kib)).map(Bytes::from_kib).collect();
    let (done, all) = (AtomicUsize::new(0), waits.len() * (grown.len() + SWAPS.len()) + fixed.len());
    let tick = || progress((done.fetch_add(1, Ordering::Relaxed) + 1) as f64 / all as f64);
    let point = |policy, size: Bytes, wait: Nanos, growth: &str, outcome: &Outcome| {
        let summary = Summary::new(outcome, disks);
        FrontierPoint {
            policy,
            request_size_bytes: size.0,
            idle_wait_s: wait.as_secs_f64(),
            growth: growth.into(),
            mean_slowdown_s: summary.mean_slowdown_s,
            throughput_bytes_per_s: summary.throughput_bytes_per_s,
        }
    };
    let of_size = |&size: &Bytes| {
        let mut fast: Vec<Waits> = disks.iter().map(|disk| Waits::new(&disk.intervals)).collect();
        let timing = model.timing(size);
        let one = |&wait: &Nanos| {
            fast.iter_mut().for_each(|disk| disk.raise(lowest(wait, timing.time, arrivals)));
            let run = |wait| {
                let mut outcome = Outcome::default();
                fast.iter().for_each(|disk| outcome.add(&disk.outcome(wait, timing, size)));
                outcome
            };
            point("fixed", size, wait, "", &weighed(wait, timing.time, arrivals, run))
        };
        let points: Vec<FrontierPoint> = close.iter().map(one).collect();
        tick();
        points
    };
    let mut points: Vec<FrontierPoint> = fixed.par_iter().flat_map_iter(of_size).collect();
    let mut runs: Vec<(&str, Growth, String, Nanos)> = Vec::new();
    for &wait in &waits {
        runs.extend(grown.iter().map(|(policy, growth, name)| (*policy, *growth, name.clone(), wait)));
        for swap in SWAPS {
            let at = Nanos(wait.0.saturating_mul(swap));
            runs.push(("swapping", Growth::Once { at }, format!("largest from {at} on"), wait));
        }
    }
    points.par_extend(runs.par_iter().map(|(policy, growth, name, wait)| {
        let run = |wait| simulate(disks, model, |_| Box::new(Growing::new(wait, first, largest, *growth)));
        // Most of what they do is done in requests of the largest size.
        let outcome = weighed(*wait, model.verify_time(largest), arrivals, run);
        tick();
        point(policy, first, *wait, name, &outcome)
    }));
    points
}

/// The points of which no other has more throughput at no more slowdown, by slowdown.
pub fn upper_edge(points: impl Iterator<Item = FrontierPoint>) -> Vec<FrontierPoint> {
    let mut points: Vec<FrontierPoint> = points.collect();
    points.sort_by(|a, b| a.mean_slowdown_s.total_cmp(&b.mean_slowdown_s));
    let mut best = 0.0;
    points.retain(|point| {
        let better = point.throughput_bytes_per_s > best;
        best = point.throughput_bytes_per_s.max(best);
        better
    });
    points
}

#[cfg(all(test, feature = "files"))]
mod tests {
    use super::*;
    use crate::trace::synth::Shape;

    #[test]
    fn no_way_of_growing_is_above_what_its_sizes_could_do_and_all_keep_the_longest() {
        let shape = Shape {
            requests: 4_000,
            idle_mean: Nanos::from_millis(200),
            idle_cov: 4.0,
            among: Default::default(),
            files: Default::default(),
            burstiness: 0.0,
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
        let points = frontier(&disks, &model, Nanos::from_millis(20), Arrivals::Recorded, &|_| ());
        assert!(
            points.iter().all(|point| model.verify_time(Bytes(point.request_size_bytes)) <= Nanos::from_millis(20))
        );
        for policy in ["fixed", "exponential", "linear", "swapping"] {
            let edge = upper_edge(points.iter().filter(|point| point.policy == policy).cloned());
            assert!(edge.len() > 5, "{policy}");
            assert!(edge.is_sorted_by(|a, b| a.throughput_bytes_per_s < b.throughput_bytes_per_s));
        }
        // Where requests arrive otherwise, no wait costs less.
        let safer = frontier(&disks, &model, Nanos::from_millis(20), Arrivals::AnyMoment, &|_| ());
        let fixed = |point: &&FrontierPoint| point.policy == "fixed";
        let pairs = || safer.iter().filter(fixed).zip(points.iter().filter(fixed));
        assert!(pairs().count() > 100 && safer.iter().any(|point| !fixed(&point)));
        assert!(pairs().all(|(safe, point)| safe.throughput_bytes_per_s == point.throughput_bytes_per_s));
        assert!(pairs().all(|(safe, point)| safe.mean_slowdown_s >= point.mean_slowdown_s));
        assert!(pairs().any(|(safe, point)| safe.mean_slowdown_s > 1.05 * point.mean_slowdown_s));
        assert!(frontier(&disks, &model, Nanos::from_millis(1), Arrivals::Recorded, &|_| ()).is_empty());
    }

    /// As of a clock that jumped twice: all but the swaps that would take for ever is there, at once.
    #[test]
    fn gaps_of_years_take_no_hours() {
        let mut builder = crate::idle::IdlenessBuilder::new("d");
        for at in [0, 600_000_000_000_000_000, 1_700_000_000_000_000_000] {
            builder.request(Nanos(at), Nanos(at + 5_000_000));
        }
        let disks = [builder.finish()];
        let model = DiskModel::ultrastar_15k450();
        let points = frontier(&disks, &model, Nanos::from_millis(20), Arrivals::AnyMoment, &|_| ());
        let of = |policy| points.iter().filter(|point| point.policy == policy).count();
        assert!(of("fixed") > 0 && of("linear") > 0 && of("swapping") < of("linear"), "{}", of("swapping"));
    }
}
