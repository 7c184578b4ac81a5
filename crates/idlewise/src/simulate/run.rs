//! A simulation of all disks of a trace, and what it tells besides sums.

use super::{Detail, Lane, Outcome, Scrub, Service, Simulation, Tally};
use crate::cdh::Cdh;
use crate::disk::DiskModel;
use crate::idle::Idleness;
use crate::policy::Policy;
use crate::{Bytes, Nanos, TotalTime};

/// What happened on all disks together.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The sums.
    pub outcome: Outcome,
    /// Delays of the foreground requests that have one.
    pub slowdowns: Cdh,
    /// What the foreground was.
    pub foreground: Foreground,
    /// What each kind of work did.
    pub tallies: Vec<Tally>,
    /// What else there is to say of each.
    pub details: Vec<Detail>,
    /// Response times of the foreground without background work; empty unless the disks kept them.
    pub responses_alone: Cdh,
    /// The same with background work.
    pub responses: Cdh,
}

/// The foreground of a simulation, over all times that it was run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Foreground {
    /// Requests.
    pub requests: u64,
    /// Sum of their response times without background work.
    pub response_sum: TotalTime,
    /// Time.
    pub span: TotalTime,
    /// Idle time without background work.
    pub idle: TotalTime,
}

/// Runs a new policy from `make` over each disk and adds up the outcomes of an endless scrub. Everything is simulated:
/// arrivals do not move, and delays spread as [`Simulation`] says.
pub fn simulate(disks: &[Idleness], model: &DiskModel, make: impl FnMut(&Idleness) -> Box<dyn Policy>) -> Outcome {
    scrub(disks, model, None, make).outcome
}

/// The same with all that there is to say of it. Requests that are delayed by more than `limit` are counted.
pub fn scrub(
    disks: &[Idleness],
    model: &DiskModel,
    limit: Option<Nanos>,
    mut make: impl FnMut(&Idleness) -> Box<dyn Policy>,
) -> Run {
    let mut all = Run::default();
    for disk in disks {
        let lane = Lane::new(make(disk), Box::new(Scrub::new(Service::OfSize(model.clone()))));
        let mut simulation = Simulation::new(disk, vec![lane]);
        simulation.limit = limit;
        all.add(&played(disk, simulation, |_, _| false));
    }
    all
}

/// Runs new lanes from `make` over each disk.
pub fn run(disks: &[Idleness], mut make: impl FnMut(&Idleness) -> Vec<Lane>) -> Run {
    let mut all = Run::default();
    for disk in disks {
        all.add(&run_while(disk, make(disk), |_, _| false));
    }
    all
}

/// Runs lanes over a disk once, and again as long as `again` of the simulation and the number of times says so. Then the trace's
/// first busy period follows its last at once, as one.
pub fn run_while(disk: &Idleness, lanes: Vec<Lane>, again: impl FnMut(&Simulation, u64) -> bool) -> Run {
    played(disk, Simulation::new(disk, lanes), again)
}

fn played(disk: &Idleness, mut simulation: Simulation, mut again: impl FnMut(&Simulation, u64) -> bool) -> Run {
    let mut run = Run::default();
    let mut times = 0;
    let mut late: Vec<(Nanos, Bytes)> = Vec::new();
    loop {
        let shift = |at: Nanos| Nanos(at.0.saturating_add(disk.span().0.saturating_mul(times)));
        let mut writes = disk.writes.iter().peekable();
        let mut responses = disk.responses.iter();
        let mut answer = |requests: u64, delay: u64| {
            for response in responses.by_ref().take(requests as usize) {
                run.responses_alone.add(*response);
                run.responses.add(Nanos(response.0.saturating_add(delay)));
            }
        };
        answer(disk.leading_requests(), simulation.carried().0);
        for (index, interval) in disk.intervals.iter().enumerate() {
            let written = std::iter::from_fn(|| writes.next_if(|write| write.busy_period as usize <= index));
            let written = written.map(|write| (shift(write.completed), write.offset));
            simulation.interval(interval, late.drain(..).chain(written));
            answer(interval.followers, simulation.carried().0);
        }
        late.extend(writes.map(|write| (shift(write.completed), write.offset)));
        times += 1;
        if !again(&simulation, times) {
            break;
        }
        simulation.again(disk);
    }
    simulation.end(Nanos(disk.begin.0.saturating_add(disk.span().0.saturating_mul(times))), late.into_iter());
    let foreground = Foreground {
        requests: disk.requests * times,
        response_sum: disk.response_sum * times,
        span: disk.span() * times,
        idle: disk.idle() * times,
    };
    let details = simulation.details();
    Run {
        outcome: simulation.outcome,
        tallies: simulation.tallies(),
        details,
        slowdowns: simulation.slowdowns,
        foreground,
        ..run
    }
}

impl Run {
    /// Adds that of another disk.
    pub fn add(&mut self, other: &Self) {
        self.outcome.add(&other.outcome);
        self.slowdowns.merge(&other.slowdowns);
        self.responses_alone.merge(&other.responses_alone);
        self.responses.merge(&other.responses);
        self.foreground.requests += other.foreground.requests;
        self.foreground.response_sum += other.foreground.response_sum;
        self.foreground.span += other.foreground.span;
        self.foreground.idle += other.foreground.idle;
        self.details.resize(other.details.len(), Detail::default());
        self.details.iter_mut().zip(&other.details).for_each(|(sum, detail)| sum.add(detail));
        self.tallies.resize(other.tallies.len(), Tally::default());
        for (sum, tally) in self.tallies.iter_mut().zip(&other.tallies) {
            sum.came += tally.came;
            sum.completed += tally.completed;
            sum.lost += tally.lost;
            sum.response_sum += tally.response_sum;
        }
    }

    /// Added over original mean response time of the foreground (SIGMETRICS 2009, D); zero without requests.
    pub fn relative_delay(&self) -> f64 {
        self.outcome.delay_sum.0 as f64 / self.foreground.response_sum.0.max(1) as f64
    }

    /// Share of the time in which the disk works, for the foreground or in the background.
    pub fn utilisation(&self) -> f64 {
        let Foreground { span, idle, .. } = self.foreground;
        (span.saturating_sub(idle) + self.outcome.used_idle).0 as f64 / span.0.max(1) as f64
    }

    /// The delay that 99 % of the foreground requests do not exceed, at most a bin of the histogram above, and not above
    /// `limit` where the exact count beyond that says so.
    pub fn slowdown_p99(&self, limit: Option<Nanos>) -> Nanos {
        let requests = self.foreground.requests;
        let p99 = self.slowdown_quantile(990, requests);
        limit.filter(|_| self.outcome.slowed <= requests / 100).map_or(p99, |limit| p99.min(limit))
    }

    /// The delay that so many of a thousand of `requests` foreground requests do not exceed, at most a bin of the histogram above.
    pub fn slowdown_quantile(&self, of_thousand: u64, requests: u64) -> Nanos {
        let rank = (u128::from(requests) * u128::from(of_thousand)).div_ceil(1_000) as u64;
        let undelayed = requests.saturating_sub(self.slowdowns.count());
        if rank > undelayed { self.slowdowns.at_rank(rank - undelayed) } else { Nanos::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Two kinds of delays that no bin has together: ranks must be exact.
        #[test]
        fn quantiles_are_those_of_all_requests(undelayed in 0u64..400, few in 0u64..400, many in 0u64..400) {
            let mut run = Run::default();
            run.slowdowns.add_many(Nanos(1 << 12), few);
            run.slowdowns.add_many(Nanos(1 << 22), many);
            let requests = undelayed + few + many;
            for of_thousand in [500, 900, 990, 999, 1_000] {
                let found = run.slowdown_quantile(of_thousand, requests);
                let within = |delayed: u64| delayed * 1_000 >= requests * of_thousand;
                let expected = if within(undelayed) { 0 } else if within(undelayed + few) { 1 << 12 } else { 1 << 22 };
                prop_assert!(found.0 >= expected && found.0 as f64 <= expected as f64 * (1.0 + 1.0 / 24.0), "{found} for {expected}");
            }
        }
    }
}
