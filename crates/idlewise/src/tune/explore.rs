//! The plane of idle waits and busy periods: what every pair does, and which one the framework takes (SIGMETRICS 2009, figures 6
//! and 7).

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use serde::Serialize;

use crate::cdh::Cdh;
use crate::idle::Idleness;
use crate::policy::Restrained;
use crate::policy::restrained::{Amount, Choice, NO_END, Pair, Part, Seen, choose, delaying_share};
use crate::simulate::{Lane, Run, Work, run};
use crate::{Bytes, Nanos, TotalTime};

/// Steps along each side of the plane.
const STEPS: usize = 22;
/// Rounds in which the choice and what its collisions cost are brought together.
const ROUNDS: usize = 8;

/// What is to be done in the background, and how much the foreground may suffer.
pub struct Question<'a> {
    /// The disks' idle times.
    pub disks: &'a [Idleness],
    /// Makes background work that nothing was done of yet.
    pub work: &'a (dyn Fn() -> Box<dyn Work> + Sync),
    /// How much of it there is.
    pub amount: Amount,
    /// Mean service time of one request.
    pub service: Nanos,
    /// Its size.
    pub size: Bytes,
    /// D, the relative delay allowed.
    pub relative_delay: f64,
}

/// A pair, and what it does in simulation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PairPoint {
    /// I.
    pub idle_wait_s: f64,
    /// T; none for as long as the disk stays idle.
    pub busy_period_s: Option<f64>,
    /// Share of the eligible intervals that are used.
    pub probability: f64,
    /// Added over original response time of the foreground.
    pub relative_delay: f64,
    /// Background requests completed.
    pub completed: u64,
    /// Jobs lost because the buffer was full.
    pub lost: u64,
}

/// The plane and the marks on it.
#[derive(Clone, Debug, Serialize)]
pub struct Plane {
    /// The idle waits, ascending.
    pub idle_waits_s: Vec<f64>,
    /// The busy periods, ascending; the last is without end.
    pub busy_periods_s: Vec<Option<f64>>,
    /// For each idle wait all busy periods.
    pub points: Vec<PairPoint>,
}

/// W, penalty of a collision over the foreground's mean service time, and the pair that the framework takes then
/// (SIGMETRICS 2009, figure 4).
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Penalty {
    /// Over the mean busy time of a foreground request.
    pub of_foreground_service: f64,
    /// E, the share of intervals that delay the foreground.
    pub delaying: f64,
    /// I.
    pub idle_wait_s: f64,
    /// I + T; none for as long as the disk stays idle.
    pub end_s: Option<f64>,
    /// Share of the intervals that are used.
    pub utilised: f64,
}

impl Question<'_> {
    /// What a pair does.
    pub fn point(&self, pair: Pair) -> PairPoint {
        let (run, _) = self.run(pair);
        self.told(pair, &run)
    }

    /// The pair that the framework takes. The penalty W that it needs depends on what is done, so pair and penalty are brought
    /// together in some rounds; of those that keep the target, the one that completes most.
    pub fn chosen(&self) -> Option<PairPoint> {
        let mut penalty = self.service;
        let mut tried: Vec<PairPoint> = Vec::new();
        let seen = Seen { after_short: histogram(self.disks), ..Seen::default() };
        for _ in 0..ROUNDS {
            let delaying = delaying_share(self.relative_delay, self.mean_response(), penalty);
            let pair = choose(Part::Any, &seen, delaying, self.service, self.amount).after_short?;
            let (run, cost) = self.run(pair);
            tried.push(self.told(pair, &run));
            match cost {
                Some(cost) if cost.0.abs_diff(penalty.0) > penalty.0 / 200 => penalty = cost,
                _ => break,
            }
        }
        let keeps = |point: &&PairPoint| point.relative_delay <= self.relative_delay;
        let best = tried.iter().filter(keeps).max_by_key(|point| point.completed);
        let nearest = || tried.iter().min_by(|a, b| a.relative_delay.total_cmp(&b.relative_delay));
        best.or_else(nearest).copied()
    }

    /// Every pair of a grid: waits and busy periods in equal ratios from a quarter of a request's service time up to where
    /// hardly an interval is longer.
    pub fn plane(&self, progress: &(dyn Fn(f64) + Sync)) -> Plane {
        let lengths = histogram(self.disks);
        let (low, high) =
            (self.service.0 as f64 / 4.0, lengths.quantile(0.999).0.max(self.service.0.saturating_mul(2)) as f64);
        let grid = |low: f64| (0..STEPS).map(move |k| low * (high / low).powf(k as f64 / (STEPS - 1) as f64));
        let waits: Vec<Nanos> = std::iter::once(0.0).chain(grid(low)).map(|wait| Nanos(wait as u64)).collect();
        let periods: Vec<Nanos> =
            grid(self.service.0 as f64).map(|period| Nanos(period as u64)).chain([NO_END]).collect();
        let done = AtomicUsize::new(0);
        let count = waits.len() * periods.len();
        let pairs: Vec<Pair> = waits.iter().flat_map(|&wait| periods.iter().map(move |&p| always(wait, p))).collect();
        let points = pairs.into_par_iter().map(|pair| {
            let point = self.point(pair);
            progress((done.fetch_add(1, Ordering::Relaxed) + 1) as f64 / count as f64);
            point
        });
        Plane {
            points: points.collect(),
            idle_waits_s: waits.iter().map(|wait| wait.as_secs_f64()).collect(),
            busy_periods_s: periods.iter().map(|&period| finite(period)).collect(),
        }
    }

    /// The pairs of common practice: no wait, and a wait as long as a request; both until the foreground comes.
    pub fn practices(&self) -> [PairPoint; 2] {
        [Nanos::ZERO, self.service].map(|wait| self.point(always(wait, NO_END)))
    }

    /// What the framework takes at penalties from half to sixty times the foreground's service time.
    pub fn penalties(&self) -> Vec<Penalty> {
        let seen = Seen { after_short: histogram(self.disks), ..Seen::default() };
        let cumulative = seen.after_short.cumulative();
        let requests: u64 = self.disks.iter().map(|disk| disk.requests).sum();
        let busy: f64 = self.disks.iter().map(|disk| disk.busy().0 as f64).sum();
        let service = busy / requests.max(1) as f64;
        let at = |factor: f64| {
            let penalty = Nanos((factor * service) as u64);
            let delaying = delaying_share(self.relative_delay, self.mean_response(), penalty);
            // A request takes as long as its penalty.
            let pair = choose(Part::Any, &seen, delaying, penalty, self.amount).after_short?;
            Some(Penalty {
                of_foreground_service: factor,
                delaying,
                idle_wait_s: pair.idle_wait.as_secs_f64(),
                end_s: finite(pair.busy_period).map(|period| pair.idle_wait.as_secs_f64() + period),
                utilised: (1.0 - cumulative.at(pair.idle_wait)) * pair.probability,
            })
        };
        [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 60.0].into_iter().filter_map(at).collect()
    }

    fn mean_response(&self) -> Nanos {
        let requests: u64 = self.disks.iter().map(|disk| disk.requests).sum();
        self.disks.iter().map(|disk| disk.response_sum).sum::<TotalTime>().mean(requests)
    }

    /// Simulates a pair; with what a collision cost all requests, over those of a mean busy period.
    fn run(&self, pair: Pair) -> (Run, Option<Nanos>) {
        let choice = Choice { after_short: Some(pair), after_long: Some(pair) };
        let policy = || Restrained::fixed(choice, self.size, self.service);
        let run = run(self.disks, |_| vec![Lane::new(Box::new(policy()), (self.work)())]);
        let requests: u64 = self.disks.iter().map(|disk| disk.requests).sum();
        let intervals: usize = self.disks.iter().map(|disk| disk.intervals.len()).sum();
        let shared = u128::from(run.outcome.collisions) * u128::from(requests);
        let cost = (run.outcome.delay_sum * intervals as u64).0.checked_div(shared);
        (run, cost.map(|cost| Nanos(cost as u64)))
    }

    fn told(&self, pair: Pair, run: &Run) -> PairPoint {
        let responses: TotalTime = self.disks.iter().map(|disk| disk.response_sum).sum();
        PairPoint {
            idle_wait_s: pair.idle_wait.as_secs_f64(),
            busy_period_s: finite(pair.busy_period),
            probability: pair.probability,
            relative_delay: run.outcome.delay_sum.0 as f64 / responses.0.max(1) as f64,
            completed: run.outcome.background_requests,
            lost: run.tallies.first().map_or(0, |tally| tally.lost),
        }
    }
}

impl PairPoint {
    /// The pair.
    pub fn pair(&self) -> Pair {
        let nanos = |seconds: f64| Nanos((seconds * 1e9).round() as u64);
        let busy_period = self.busy_period_s.map_or(NO_END, nanos);
        Pair { idle_wait: nanos(self.idle_wait_s), busy_period, probability: self.probability, work: 0.0 }
    }
}

fn always(idle_wait: Nanos, busy_period: Nanos) -> Pair {
    Pair { idle_wait, busy_period, probability: 1.0, work: 0.0 }
}

fn finite(period: Nanos) -> Option<f64> {
    (period != NO_END).then(|| period.as_secs_f64())
}

fn histogram(disks: &[Idleness]) -> Cdh {
    let mut lengths = Cdh::default();
    disks.iter().flat_map(|disk| &disk.intervals).for_each(|interval| lengths.add(interval.length));
    lengths
}

#[cfg(all(test, feature = "files"))]
mod tests {
    use super::*;
    use crate::disk::DiskModel;
    use crate::simulate::{Scrub, Service};
    use crate::trace::synth::PUBLISHED;

    /// Figure 6, first column: the chosen pair keeps the target, and hardly a pair of the plane that keeps it does more.
    #[test]
    fn the_chosen_pair_is_in_the_good_region() {
        let shape = PUBLISHED.iter().find(|row| row.name == "sigmetrics2009-t1").unwrap().shape();
        let disks = Idleness::of_trace(&shape.trace(1).unwrap(), &DiskModel::ultrastar_15k450()).unwrap();
        let service = Nanos::from_millis(6);
        let question = Question {
            disks: &disks,
            work: &|| Box::new(Scrub::new(Service::exponential(Nanos::from_millis(6)))),
            amount: Amount::Infinite,
            service,
            size: Bytes::from_kib(64),
            relative_delay: 0.07,
        };
        let chosen = question.chosen().unwrap();
        assert!((0.06..=0.07).contains(&chosen.relative_delay), "{chosen:?}");
        let plane = question.plane(&|_| ());
        let within = plane.points.iter().filter(|point| point.relative_delay <= 0.07);
        let best = within.map(|point| point.completed).max().unwrap();
        assert!(chosen.completed as f64 >= 0.95 * best as f64, "{chosen:?} {best}");
        let [no_wait, short] = question.practices();
        assert!(no_wait.relative_delay > 0.1 && short.relative_delay > 0.1, "{no_wait:?} {short:?}");
        let utilised: Vec<f64> = question.penalties().iter().map(|penalty| penalty.utilised).collect();
        assert!(utilised[0] > utilised[4] && utilised.len() == 8, "{utilised:?}");
    }
}
