//! A policy's background work run against recorded idle intervals: what gets done, and what the foreground pays.

mod engine;
#[cfg(test)]
mod naive;
mod summary;

pub use engine::{Outcome, Simulation};
pub use summary::Summary;

use crate::disk::DiskModel;
use crate::idle::Idleness;
use crate::policy::Policy;

/// Runs a new policy from `make` over each disk and adds up the outcomes. Everything is simulated: arrivals do not move,
/// and delays spread as [`Simulation`] says.
pub fn simulate(disks: &[Idleness], model: &DiskModel, mut make: impl FnMut(&Idleness) -> Box<dyn Policy>) -> Outcome {
    let mut total = Outcome::default();
    for disk in disks {
        let mut simulation = Simulation::default();
        let mut policy = make(disk);
        policy.foreground_served(disk.leading_requests(), 0);
        for interval in &disk.intervals {
            simulation.interval(interval, policy.as_mut(), model);
        }
        total.add(&simulation.outcome);
    }
    total
}
