//! Waiting that tunes itself again while it runs, from the idle intervals of late and from its account.

use std::collections::VecDeque;

use super::waiting::on_intervals;
use super::{Budget, Decision, Entry, Kind, Parameter, Policy, Tried, Value};
use crate::disk::{DiskModel, SMALLEST_REQUEST, Timing};
use crate::idle::{Interval, exceeded_by_shares};
use crate::tune::Goal;
use crate::{Bytes, Nanos};

/// Request sizes tried, as multiples of the smallest.
const SIZES: [u64; 20] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64];
/// Waits tried: lengths that shares of the intervals exceed, in equal ratios down to the last.
const WAITS: usize = 48;
const RAREST: f64 = 2e-3;
/// Intervals remembered.
const REMEMBERED: usize = 4_096;
/// What to do until some intervals are seen.
const UNKNOWN_WAIT: Nanos = Nanos::from_millis(100);
const FIRST: u64 = 50;
/// It tunes again after this share more intervals.
const AGAIN: u64 = 50;
/// Requests over which a surplus or a debt of the account is spread.
const HORIZON: f64 = 2_500.0;
/// The account may change the target by this factor at most.
const MOST: f64 = 2.0;
/// Intervals over which what delays were is held against what was expected.
const MEMORY: f64 = 2_000.0;
/// Requests' worth of the target that both begin with, so that the first collisions do not decide.
const DOUBT: f64 = 200.0;

/// Waiting with the pair of an idle wait and a request size that would have verified most in the last 4,096 idle intervals, within a mean
/// slowdown. It begins with 100 ms and 64 KiB; after 50 intervals it chooses, and again each time that it has seen 50 more.
///
/// A surplus of the account (every request earns the target, every delay spends) raises the slowdown that is aimed at, a
/// debt lowers it. Of many pairs tried the best is also a lucky one: what delays were, over what they should have been,
/// corrects that. To be held within the target whatever comes, it runs inside [`super::Budget`].
#[derive(Clone, Debug)]
pub struct Adaptive {
    target: f64,
    sizes: Vec<(Bytes, Timing)>,
    intervals: VecDeque<Interval>,
    seen: u64,
    /// Number of intervals seen at which to tune again.
    next: u64,
    wait: Nanos,
    size: Bytes,
    /// Delay of an interval on average with the present pair in the past, in nanoseconds.
    expected: f64,
    /// Delays that happened and that were expected, of late.
    happened: (f64, f64),
    /// Earned less spent, in nanoseconds of delay.
    balance: f64,
    /// Whether it was asked in this interval: an account that holds too little does not.
    asked: bool,
    /// The interval whose requests are to be told, without the delay carried into it.
    last: Option<Nanos>,
}

impl Adaptive {
    /// Keeps the goal's mean slowdown, with requests that take no longer than its maximum by the model: that bounds the delay of any
    /// foreground request as far as the model is right. Where no size is so short it never works, which [`Goal::check`] tells beforehand.
    /// It does not look at the goal's 99th percentile.
    pub fn new(goal: &Goal, model: &DiskModel) -> Self {
        let sizes = SIZES.iter().map(|k| Bytes(k * SMALLEST_REQUEST.0)).map(|size| (size, model.timing(size)));
        let sizes: Vec<_> = sizes.filter(|(_, timing)| timing.time <= goal.max_slowdown).collect();
        let size = sizes.first().map_or(Bytes(0), |(size, _)| *size);
        Self {
            target: goal.mean_slowdown.0 as f64,
            sizes,
            intervals: VecDeque::new(),
            seen: 0,
            next: FIRST,
            wait: UNKNOWN_WAIT,
            size,
            expected: 0.0,
            happened: (0.0, 0.0),
            balance: 0.0,
            asked: false,
            last: None,
        }
    }

    /// The wait and size it works with now.
    pub fn pair(&self) -> (Nanos, Bytes) {
        (self.wait, self.size)
    }

    /// How long a request of the present size takes, by the model.
    pub fn service(&self) -> Nanos {
        self.sizes.iter().find(|(size, _)| *size == self.size).map_or(Nanos::ZERO, |(_, timing)| timing.time)
    }

    /// Takes the pair that verified most within what the account allows.
    fn tune(&mut self) {
        let factor = (1.0 + self.balance / (self.target * HORIZON).max(1.0)).clamp(1.0 / MOST, MOST);
        let doubt = (self.target * DOUBT).max(1.0);
        let correction = (self.happened.0 + doubt) / (self.happened.1 + doubt);
        let intervals: &[Interval] = self.intervals.make_contiguous();
        let requests: u64 = intervals.iter().map(|interval| interval.followers).sum();
        let allowed = self.target * factor * requests as f64 / correction;
        let mut longer: Vec<u32> = (0..intervals.len() as u32).collect();
        let mut best = (0, 0.0, intervals.iter().map(|interval| interval.length).max().unwrap_or_default(), self.size);
        let mut lengths: Vec<Nanos> = intervals.iter().map(|interval| interval.length).collect();
        lengths.sort_unstable();
        for wait in exceeded_by_shares(&lengths, RAREST, WAITS) {
            longer.retain(|&index| intervals[index as usize].length > wait);
            for &(size, timing) in &self.sizes {
                let done = on_intervals(intervals, &longer, wait, timing, None, |_| true);
                let (bytes, delay) = (done.requests.saturating_mul(size.0), done.delay_sum.0 as f64);
                if delay <= allowed && bytes > best.0 {
                    best = (bytes, delay, wait, size);
                }
            }
        }
        (self.wait, self.size) = (best.2, best.3);
        self.expected = best.1 / intervals.len().max(1) as f64;
    }
}

impl Policy for Adaptive {
    fn decide(&mut self, elapsed: Nanos) -> Decision {
        self.asked = true;
        if elapsed < self.wait {
            return Decision::Wait { until: self.wait };
        }
        if self.size == Bytes(0) {
            return Decision::Stop;
        }
        Decision::Issue { size: self.size, count: u64::MAX }
    }

    fn foreground_arrived(&mut self, idle: Nanos, _collision: Nanos) {
        self.last = Some(idle);
    }

    fn foreground_served(&mut self, requests: u64, delays: Nanos) {
        self.balance += requests as f64 * self.target - delays.0 as f64;
        // What a delay carries on to later busy periods is part of what its collision cost.
        self.happened.0 += delays.0 as f64;
        let Some(length) = self.last.take() else {
            if let Some(last) = self.intervals.back_mut() {
                last.followers += requests;
            }
            return;
        };
        if self.intervals.len() == REMEMBERED {
            self.intervals.pop_front();
        }
        self.intervals.push_back(Interval { length, followers: requests, busy_before: Nanos::ZERO });
        if std::mem::take(&mut self.asked) {
            self.happened.1 += self.expected;
        }
        let fade = 1.0 - 1.0 / MEMORY;
        self.happened = (self.happened.0 * fade, self.happened.1 * fade);
        self.seen += 1;
        if self.seen >= self.next {
            self.tune();
            self.next = self.seen + (self.seen / AGAIN).max(FIRST);
        }
    }
}

/// Mean slowdown to tune for.
pub const MEAN_SLOWDOWN: Parameter = Parameter {
    name: "mean-slowdown",
    about: "Mean slowdown to tune for",
    kind: Kind::Time,
    tried: Tried::Ratios { from: 1e-5, to: 0.1, steps: 12 },
};

/// Service time that no request exceeds.
pub const MAX_SLOWDOWN: Parameter = Parameter {
    name: "max-slowdown",
    about: "Longest service time of a background request",
    kind: Kind::Time,
    tried: Tried::One(Value::Time(Nanos::from_millis(50))),
};

pub(super) const ADAPTIVE: Entry = Entry {
    name: "adaptive",
    about: "waiting, tuned again and again for --mean-slowdown and --max-slowdown, and held within it",
    parameters: &[MEAN_SLOWDOWN, MAX_SLOWDOWN],
    build: |given| {
        let (target, longest) = (given.time(MEAN_SLOWDOWN)?, given.time(MAX_SLOWDOWN)?);
        Ok(Box::new(Budget::new(Adaptive::new(&Goal::new(target, longest), given.setting.model), target)))
    },
};

#[cfg(all(test, feature = "files"))]
mod tests {
    use rand_distr::{Distribution, LogNormal};

    use super::super::Budget;
    use super::*;
    use crate::TotalTime;
    use crate::idle::{Idleness, IdlenessBuilder};
    use crate::simulate::simulate;

    const MS: u64 = 1_000_000;

    /// Busy periods of `followers` requests and lognormal idle times, some of them after others.
    fn disk(parts: &[(u32, f64, f64, u64)]) -> Vec<Idleness> {
        let mut random: rand_pcg::Pcg64 = rand::SeedableRng::seed_from_u64(17);
        let mut builder = IdlenessBuilder::new("d");
        let mut now = 0;
        for &(intervals, median_ms, sigma, followers) in parts {
            let lengths = LogNormal::new((median_ms * MS as f64).ln(), sigma).unwrap();
            for _ in 0..intervals {
                (0..followers).for_each(|_| builder.request(Nanos(now), Nanos(now + MS)));
                now += MS + (lengths.sample(&mut random) as u64).max(1);
            }
        }
        vec![builder.finish()]
    }

    /// Bytes that the best fixed pair verifies with at most so much delay.
    fn hindsight(disks: &[Idleness], model: &DiskModel, delay: TotalTime) -> f64 {
        let intervals = &disks[0].intervals;
        let mut longer: Vec<u32> = (0..intervals.len() as u32).collect();
        let mut best = 0;
        for wait in (0..80).map(|k| Nanos((1e6 * 1.12f64.powi(k)) as u64)) {
            longer.retain(|&index| intervals[index as usize].length > wait);
            for (size, _) in model.sizes(Nanos(u64::MAX)).into_iter().step_by(2) {
                let done = on_intervals(intervals, &longer, wait, model.timing(size), None, |_| true);
                if done.delay_sum <= delay {
                    best = best.max(done.requests * size.0);
                }
            }
        }
        best as f64
    }

    /// Ends within a tenth of what hindsight's best fixed pair does at the same mean slowdown where the workload stays; where it
    /// changes, of what the best pairs of both times do within the target in each. One pair for both may do more, with what a
    /// later time will earn: that is not there to be spent.
    #[test]
    fn nearly_as_good_as_hindsight() {
        let model = DiskModel::ultrastar_15k450();
        let (busy, calm) = ((10_000, 30.0, 1.5, 2), (4_000, 400.0, 2.0, 5));
        for parts in [&[busy][..], &[calm], &[calm, busy], &[busy, calm]] {
            let disks = disk(parts);
            for target in [250_000, MS, 4 * MS].map(Nanos) {
                let adaptive = || Budget::new(Adaptive::new(&Goal::new(target, Nanos(51 * MS)), &model), target);
                let adapted = simulate(&disks, &model, |_| Box::new(adaptive()));
                let allowed = |disks: &[Idleness]| target * disks[0].requests;
                let costliest = Nanos(MS) * (20 * 51);
                assert!(adapted.delay_sum <= allowed(&disks) + target * 1_000 + costliest);
                let best = if let [one] = parts {
                    hindsight(&disk(&[*one]), &model, adapted.delay_sum)
                } else {
                    let alone = |&part| {
                        let disks = disk(&[part]);
                        hindsight(&disks, &model, allowed(&disks))
                    };
                    parts.iter().map(alone).sum()
                };
                let share = adapted.scrubbed.0 as f64 / best;
                assert!(share > 0.9, "{parts:?} at {target}: {share}");
            }
        }
    }

    #[test]
    fn without_a_size_that_fits_nothing_is_issued() {
        let mut policy = Adaptive::new(&Goal::new(Nanos(MS), Nanos(1)), &DiskModel::ultrastar_15k450());
        assert_eq!(policy.decide(UNKNOWN_WAIT), Decision::Stop);
    }
}
