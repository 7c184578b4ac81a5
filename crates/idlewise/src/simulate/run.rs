//! A simulation of all disks of a trace, and what it tells besides sums.

use super::{Detail, Lane, Outcome, Scrub, Service, Simulation, Tally};
use crate::Nanos;
use crate::cdh::Cdh;
use crate::disk::DiskModel;
use crate::idle::Idleness;
use crate::policy::Policy;

/// What happened on all disks together.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The sums.
    pub outcome: Outcome,
    /// Delays of the foreground requests that have one.
    pub slowdowns: Cdh,
    /// What each kind of work did.
    pub tallies: Vec<Tally>,
    /// What else there is to say of each.
    pub details: Vec<Detail>,
    /// Response times of the foreground without background work; empty unless the disks kept them.
    pub responses_alone: Cdh,
    /// The same with background work.
    pub responses: Cdh,
}

/// Runs a new policy from `make` over each disk and adds up the outcomes of an endless scrub. Everything is simulated:
/// arrivals do not move, and delays spread as [`Simulation`] says.
pub fn simulate(disks: &[Idleness], model: &DiskModel, mut make: impl FnMut(&Idleness) -> Box<dyn Policy>) -> Outcome {
    let lane =
        |disk: &Idleness| Lane { policy: make(disk), work: Box::new(Scrub::new(Service::OfSize(model.clone()))) };
    let mut lane = lane;
    run(disks, |disk| vec![lane(disk)]).outcome
}

/// Runs new lanes from `make` over each disk.
pub fn run(disks: &[Idleness], mut make: impl FnMut(&Idleness) -> Vec<Lane>) -> Run {
    let mut all = Run::default();
    for disk in disks {
        let mut simulation = Simulation::new(disk, make(disk));
        let mut writes = disk.writes.iter().peekable();
        let mut responses = disk.responses.iter();
        let mut answer = |all: &mut Run, requests: u64, delay: u64| {
            for response in responses.by_ref().take(requests as usize) {
                all.responses_alone.add(*response);
                all.responses.add(Nanos(response.0.saturating_add(delay)));
            }
        };
        answer(&mut all, disk.leading_requests(), 0);
        for (index, interval) in disk.intervals.iter().enumerate() {
            let written = std::iter::from_fn(|| writes.next_if(|write| write.busy_period as usize <= index));
            simulation.interval(interval, written.map(|write| (write.completed, write.offset)));
            answer(&mut all, interval.followers, simulation.carried());
        }
        all.add(&simulation);
    }
    all
}

impl Run {
    fn add(&mut self, simulation: &Simulation) {
        self.outcome.add(&simulation.outcome);
        self.slowdowns.merge(&simulation.slowdowns);
        self.details.resize(simulation.lanes.len(), Detail::default());
        for (sum, lane) in self.details.iter_mut().zip(&simulation.lanes) {
            sum.add(&lane.work.detail());
        }
        let tallies = simulation.tallies();
        self.tallies.resize(tallies.len(), Tally::default());
        for (sum, tally) in self.tallies.iter_mut().zip(tallies) {
            sum.came += tally.came;
            sum.completed += tally.completed;
            sum.lost += tally.lost;
            sum.response_sum += tally.response_sum;
        }
    }

    /// The delay that this share of `requests` foreground requests does not exceed, at most a bin of the histogram above.
    pub fn slowdown_quantile(&self, share: f64, requests: u64) -> Nanos {
        let (delayed, rank) = (self.slowdowns.count(), share * requests as f64);
        let undelayed = requests.saturating_sub(delayed) as f64;
        if rank <= undelayed || delayed == 0 {
            return Nanos::ZERO;
        }
        self.slowdowns.quantile((rank - undelayed) / delayed as f64)
    }
}
