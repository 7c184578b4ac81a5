//! What a scrub gives and costs in each hour of a trace, by simulation.

use std::collections::BTreeMap;
use std::iter::empty;

use idlewise::disk::DiskModel;
use idlewise::idle::Idleness;
use idlewise::simulate::{Lane, Outcome, Scrub, Service, Simulation};
use idlewise::tune::{Arrivals, Goal, TuneError, tune};
use idlewise::{Bytes, Nanos, TotalTime};

use crate::decision::ANOTHER;

const HOUR_S: f64 = 3600.0;
const DAY: u64 = 24;
const WEEK: u64 = 7 * DAY;

/// What an hour gives while a scrub runs in it, and what its foreground is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gives {
    /// Bytes verified in a second.
    pub bytes: f64,
    /// Foreground requests in a second.
    pub requests: f64,
    /// How long these wait for the scrub, all together, in seconds of each second.
    pub slowdown_s: f64,
    /// The longest that one of them waits.
    pub longest_s: f64,
}

/// The foreground of a disk: a trace that is played over and over.
pub struct Foreground {
    disk: Idleness,
    model: DiskModel,
    goal: Goal,
    hours: u64,
    /// The hour of the day in which it begins.
    shift: u64,
    /// By how many rungs the mean slowdown is above that of the goal.
    plans: BTreeMap<i32, Vec<Gives>>,
}

impl Foreground {
    /// Of a trace. It comes again after whole weeks, or whole days, or hours if it is shorter than that.
    pub fn new(disk: Idleness, model: DiskModel, goal: Goal) -> Self {
        let long = disk.span().as_secs_f64() / HOUR_S;
        // Few traces of a week or a day are a minute longer than that.
        let nearly = |unit: u64| (long / unit as f64 + 0.02).floor() as u64 * unit;
        let hours = [WEEK, DAY, 1].into_iter().map(nearly).find(|hours| *hours > 0).unwrap_or(1);
        let shift = match hours % DAY {
            0 => (disk.origin.0.saturating_add(disk.begin.0) as f64 / 1e9 / HOUR_S) as u64 % DAY,
            _ => 0,
        };
        Self { disk, model, goal, hours, shift, plans: BTreeMap::new() }
    }

    /// After how many hours it comes again.
    pub fn hours(&self) -> u64 {
        self.hours
    }

    /// What an hour gives, counted from a midnight, with the plan of the goal, and with those of larger mean slowdowns up to so many times
    /// that of the goal.
    ///
    /// # Errors
    /// If no request is short enough for the goal.
    pub fn gives(&mut self, hour: u64, times: f64) -> Result<Vec<Gives>, TuneError> {
        let rungs = (times.max(1.0).ln() / ANOTHER.ln() + 1e-9).floor() as i32;
        let at = (hour + self.hours - self.shift % self.hours) % self.hours;
        let mut gives = Vec::new();
        for rung in 0..=rungs {
            if !self.plans.contains_key(&rung) {
                let mean = self.goal.mean_slowdown.0 as f64 * ANOTHER.powi(rung);
                let mean_slowdown = Nanos(mean.round() as u64).min(self.goal.max_slowdown);
                self.plans.insert(rung, self.planned(&Goal { mean_slowdown, ..self.goal })?);
            }
            gives.push(self.plans[&rung].get(at as usize).copied().unwrap_or_default());
        }
        Ok(gives)
    }

    /// Each hour, with the plan that is the fastest for a goal.
    fn planned(&self, goal: &Goal) -> Result<Vec<Gives>, TuneError> {
        let disks = std::slice::from_ref(&self.disk);
        let policy = match tune(disks, &self.model, goal, Arrivals::AnyMoment, &|_| ()) {
            Ok(plan) => plan.policy(),
            // It has no gap to use: nothing is verified.
            Err(TuneError::NoIdleTime) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let scrub = Scrub::new(Service::OfSize(self.model.clone()));
        let sums = by_hour(&self.disk, Lane::new(Box::new(policy), Box::new(scrub)));
        let long_s = self.disk.span().as_secs_f64();
        let gives = |(hour, sum): (usize, &Sum)| {
            // The last one may be a part of an hour.
            let seconds = (long_s - hour as f64 * HOUR_S).clamp(1.0, HOUR_S);
            Gives {
                bytes: sum.bytes / seconds,
                requests: sum.requests as f64 / seconds,
                slowdown_s: sum.slowdown.as_secs_f64() / seconds,
                longest_s: sum.longest.as_secs_f64(),
            }
        };
        Ok(sums.iter().enumerate().map(gives).collect())
    }
}

/// What came and was done in an hour.
#[derive(Clone, Debug, Default)]
struct Sum {
    bytes: f64,
    requests: u64,
    slowdown: TotalTime,
    longest: Nanos,
}

/// What a lane does in each hour from the trace's beginning on. What it verifies in an interval comes evenly over that.
fn by_hour(disk: &Idleness, lane: Lane) -> Vec<Sum> {
    let hour = |at: u64| (at as f64 / 1e9 / HOUR_S) as usize;
    let mut sums = vec![Sum::default(); hour(disk.span().0) + 1];
    let mut simulation = Simulation::new(disk, vec![lane]);
    sums[0].requests += disk.leading_requests();
    let mut now = 0;
    for interval in &disk.intervals {
        let before = simulation.outcome;
        simulation.outcome.longest_delay = Nanos::ZERO;
        simulation.interval(interval, empty());
        let Outcome { scrubbed: Bytes(bytes), delay_sum, longest_delay, .. } = simulation.outcome;
        let begin = now + interval.busy_before.0;
        now = begin + interval.length.0;
        let verified = (bytes - before.scrubbed.0) as f64;
        for (at, sum) in sums.iter_mut().enumerate().take(hour(now) + 1).skip(hour(begin)) {
            let (from, to) = (at as f64 * HOUR_S * 1e9, (at + 1) as f64 * HOUR_S * 1e9);
            let within = (now as f64).min(to) - (begin as f64).max(from);
            sum.bytes += verified * within.max(0.0) / interval.length.0 as f64;
        }
        let sum = &mut sums[hour(now)];
        sum.requests += interval.followers;
        sum.slowdown += delay_sum.saturating_sub(before.delay_sum);
        sum.longest = sum.longest.max(longest_delay);
    }
    sums
}

#[cfg(test)]
mod tests {
    use idlewise::simulate::simulate;

    use super::super::tests::random as disk;
    use super::*;

    fn goal() -> Goal {
        Goal::new(Nanos::from_millis(1), Nanos::from_millis(50))
    }

    #[test]
    fn the_hours_together_are_the_whole() {
        let (disk, model) = (disk(5.3, 20.0, 11), DiskModel::ultrastar_15k450());
        let policy = tune(std::slice::from_ref(&disk), &model, &goal(), Arrivals::AnyMoment, &|_| ()).unwrap().policy();
        let whole = simulate(std::slice::from_ref(&disk), &model, |_| Box::new(policy));
        let lane = || Lane::new(Box::new(policy), Box::new(Scrub::new(Service::OfSize(model.clone()))));
        let sums = by_hour(&disk, lane());
        assert_eq!(sums.len(), 6);
        let bytes: f64 = sums.iter().map(|sum| sum.bytes).sum();
        assert!((bytes / whole.scrubbed.0 as f64 - 1.0).abs() < 1e-9 && whole.scrubbed.0 > 0);
        assert_eq!(sums.iter().map(|sum| sum.requests).sum::<u64>(), disk.requests);
        assert_eq!(sums.iter().map(|sum| sum.slowdown).sum::<TotalTime>(), whole.delay_sum);
        assert_eq!(sums.iter().map(|sum| sum.longest).max(), Some(whole.longest_delay));
    }

    #[test]
    fn a_trace_comes_again() {
        for (hours, again) in [(0.5, 1), (5.3, 5), (23.9, 24), (50.0, 48), (167.5, 168)] {
            let foreground = Foreground::new(disk(hours, 500.0, 3), DiskModel::ultrastar_15k450(), goal());
            assert_eq!(foreground.hours(), again, "{hours}");
        }
        let mut foreground = Foreground::new(disk(5.3, 20.0, 11), DiskModel::ultrastar_15k450(), goal());
        let gives: Vec<Gives> = (0..10).map(|hour| foreground.gives(hour, 1.0).unwrap()[0]).collect();
        assert!(gives[..5] == gives[5..] && gives.iter().all(|gives| gives.bytes > 0.0), "{gives:?}");
        // More may be spent: no less is verified.
        let most = foreground.gives(0, 3.0).unwrap().len() - 1;
        let more: f64 = (0..5).map(|hour| foreground.gives(hour, 3.0).unwrap()[most].bytes).sum();
        assert_eq!(most, 4, "1.25^4 is 2.4");
        assert!(more >= gives[..5].iter().map(|gives| gives.bytes).sum::<f64>());
        // It begins at 22 o'clock.
        let late = Idleness { origin: Nanos::from_secs(22 * 3600), ..disk(24.0, 60.0, 4) };
        let mut shifted = Foreground::new(late, DiskModel::ultrastar_15k450(), goal());
        let mut plain = Foreground::new(disk(24.0, 60.0, 4), DiskModel::ultrastar_15k450(), goal());
        assert_eq!(shifted.gives(23, 1.0), plain.gives(1, 1.0));
        assert_eq!(shifted.gives(0, 1.0), plain.gives(2, 1.0));
    }
}
