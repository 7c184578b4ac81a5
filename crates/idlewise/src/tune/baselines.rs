//! What the usual schedules do on the same intervals, to put beside a plan.

use rayon::prelude::*;

use crate::disk::DiskModel;
use crate::disk::SMALLEST_REQUEST;
use crate::idle::Idleness;
use crate::policy::{Parameters, Setting, build};
use crate::simulate::{Summary, simulate};
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
    schedules
        .into_par_iter()
        .map(|(name, policy, wait)| {
            let delay = (policy == "fixed-delay").then_some(wait);
            let parameters = Parameters { delay, ..Parameters::default() };
            let make = |disk: &Idleness| {
                build(policy, &parameters, &Setting::scrub(disk, model))
                    .expect("the baselines' parameters are complete")
            };
            let summary = Summary::new(&simulate(disks, model, make), disks);
            Baseline { name, request_size: SMALLEST_REQUEST, wait, summary }
        })
        .collect()
}
