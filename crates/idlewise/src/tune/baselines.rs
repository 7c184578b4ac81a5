//! What the usual schedules do on the same intervals, to put beside a plan.

use rayon::prelude::*;

use crate::disk::DiskModel;
use crate::disk::SMALLEST_REQUEST;
use crate::idle::Idleness;
use crate::policy::{DELAY, Parameters, REQUEST_SIZE, Setting, build};
use crate::simulate::{Summary, scrub};
use crate::{Bytes, Nanos};

/// One usual schedule, simulated.
#[derive(Clone, Debug)]
pub struct Baseline {
    /// Its name, as in `--json`.
    pub name: &'static str,
    /// Size of its requests.
    pub request_size: Bytes,
    /// Idle wait, or delay between requests.
    pub wait: Nanos,
    /// What it does.
    pub summary: Summary,
    /// The slowdown that 99 % of the foreground requests do not exceed.
    pub slowdown_p99: Nanos,
}

/// CFQ's idle class (10 ms idle, 64 KiB; DSN 2012, section III-B), back to back, and a fixed delay of 16 and of 64 ms
/// between requests (section IV-B), all with 64 KiB requests.
pub fn baselines(disks: &[Idleness], model: &DiskModel) -> Vec<Baseline> {
    let schedules = [
        ("cfq-idle", "cfq-idle", Nanos::from_millis(10)),
        ("back-to-back", "back-to-back", Nanos::ZERO),
        ("fixed-delay-16ms", "fixed-delay", Nanos::from_millis(16)),
        ("fixed-delay-64ms", "fixed-delay", Nanos::from_millis(64)),
    ];
    let run = |(name, policy, wait)| baseline(disks, model, name, policy, wait, SMALLEST_REQUEST);
    schedules.into_par_iter().map(run).collect()
}

/// Halvings of the delay between requests, on a logarithmic scale from [`DELAYS`]: it is found to within half a percent.
const HALVINGS: u32 = 11;
const DELAYS: [f64; 2] = [1e4, 1e11];

/// What compares with a plan: the idle class and back to back with requests of its size, and of the fixed delays between
/// such requests the shortest whose mean slowdown is not above the plan's.
pub fn baselines_of_plan(disks: &[Idleness], model: &DiskModel, size: Bytes, mean_slowdown_s: f64) -> Vec<Baseline> {
    let delayed = |delay: f64| {
        let name = "fixed-delay-plan-slowdown";
        baseline(disks, model, name, "fixed-delay", Nanos(delay as u64), size)
    };
    let kept = |tried: &Baseline| tried.summary.mean_slowdown_s <= mean_slowdown_s;
    let shortest = || {
        let [mut low, mut high] = DELAYS;
        let mut best = Some(delayed(high)).filter(kept)?;
        for _ in 0..HALVINGS {
            let middle = (low * high).sqrt();
            let tried = delayed(middle);
            if kept(&tried) {
                (high, best) = (middle, tried);
            } else {
                low = middle;
            }
        }
        Some(best)
    };
    let idle_class = || baseline(disks, model, "cfq-idle-plan-size", "cfq-idle", Nanos::from_millis(10), size);
    let back_to_back = || baseline(disks, model, "back-to-back-plan-size", "back-to-back", Nanos::ZERO, size);
    let (delay, (idle_class, back_to_back)) = rayon::join(shortest, || rayon::join(idle_class, back_to_back));
    [idle_class, back_to_back].into_iter().chain(delay).collect()
}

fn baseline(
    disks: &[Idleness],
    model: &DiskModel,
    name: &'static str,
    policy: &str,
    wait: Nanos,
    request_size: Bytes,
) -> Baseline {
    let parameters = Parameters::default().with(REQUEST_SIZE, request_size);
    let parameters = if policy == "fixed-delay" { parameters.with(DELAY, wait) } else { parameters };
    let make = |disk: &Idleness| {
        build(policy, &parameters, &Setting::scrub(disk, model)).expect("the baselines' parameters are complete")
    };
    let run = scrub(disks, model, None, make);
    let (summary, slowdown_p99) = (Summary::new(&run.outcome, disks), run.slowdown_p99(None));
    Baseline { name, request_size, wait, summary, slowdown_p99 }
}

#[cfg(all(test, feature = "files"))]
mod tests {
    use super::*;
    use crate::trace::synth::PUBLISHED;

    #[test]
    fn those_of_a_plan_have_its_size_and_its_slowdown() {
        let model = DiskModel::ultrastar_15k450();
        let disks = Idleness::of_trace(&PUBLISHED[0].shape().trace(1).unwrap(), &model).unwrap();
        let (size, slowdown) = (Bytes::from_kib(512), 1e-3);
        let found = baselines_of_plan(&disks, &model, size, slowdown);
        let names: Vec<_> = found.iter().map(|one| one.name).collect();
        assert_eq!(names, ["cfq-idle-plan-size", "back-to-back-plan-size", "fixed-delay-plan-slowdown"]);
        assert!(found.iter().all(|one| one.request_size == size));
        let mean = found[2].summary.mean_slowdown_s;
        assert!(mean <= slowdown && mean > 0.97 * slowdown, "{mean}");
        assert!(found[1].summary.mean_slowdown_s > mean);
        // No delay slows nothing down.
        assert_eq!(baselines_of_plan(&disks, &model, size, -1.0).len(), 2);
    }
}
