//! Intervals drawn by lot, so that what they say of the whole trace comes with an interval of confidence.
//!
//! The likelier an interval is drawn, the less it counts: the estimate is right on average, whatever the intervals are like (Horvitz and
//! Thompson, *Journal of the American Statistical Association* 47, 1952). How far off it may be is told by how much those that were drawn
//! one after the other differ, and by what was to be expected before.

mod size;

use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::{MOST_CLUSTERS, TraceInterval};
use crate::Nanos;
use crate::quantiles::student;
use size::Sizes;

/// What was expected beforehand counts as much as so many intervals that are measured.
const EXPECTED: u64 = 20;

/// How many intervals are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// So many at most.
    Intervals(usize),
    /// As many as it is expected to take for the 95 % interval to reach no further than this share of the estimate.
    Error(f64),
}

impl Default for Amount {
    /// As many as the paper has clusters at most.
    fn default() -> Self {
        Self::Intervals(MOST_CLUSTERS)
    }
}

/// An interval that was drawn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drawn {
    /// Its number, from 0 on.
    pub index: u64,
    /// When it begins, since the trace's first request.
    pub begin: Nanos,
    /// Its requests.
    pub requests: u64,
    /// How likely it was to be drawn.
    pub probability: f64,
    /// In which turn it was drawn, from 0 on.
    pub turn: u32,
}

/// The intervals that were drawn from a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draw {
    /// The variance to be expected, over the square of what is estimated.
    pub prior: f64,
    /// In order of time.
    pub intervals: Vec<Drawn>,
}

/// What they say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean response time of the trace, in seconds.
    pub mean_response_s: f64,
    /// So far it may be off, with a confidence of 95 %; where that is known.
    pub half_width_s: Option<f64>,
}

impl Drawn {
    /// The requests that it stands for.
    pub fn weight(&self) -> f64 {
        self.requests as f64 / self.probability
    }
}

impl Draw {
    /// Draws from these intervals of a trace, which are so long; none where there is none.
    pub fn of(intervals: &[TraceInterval], length: Nanos, amount: Amount, seed: u64) -> Option<Self> {
        let mut random: rand_pcg::Pcg64 = rand::SeedableRng::seed_from_u64(seed);
        Self::from(intervals, length, amount, random.random())
    }

    /// The same from a start between 0 and 1 on.
    fn from(intervals: &[TraceInterval], length: Nanos, amount: Amount, start: f64) -> Option<Self> {
        let sizes = Sizes::of(intervals);
        let all = intervals.len();
        let expected = |count: usize| {
            let probabilities = sizes.probabilities(count);
            let sure = probabilities.iter().filter(|one| **one >= 1.0).count();
            half_width(sizes.prior(&probabilities), count - sure.min(count))
        };
        let count = match amount {
            Amount::Intervals(count) => count.clamp(1, all.max(1)),
            Amount::Error(error) => {
                // The more, the less: the first that is enough.
                let (mut few, mut enough) = (0, all.max(1));
                while enough - few > 1 {
                    let middle = few + (enough - few) / 2;
                    if expected(middle) <= error { enough = middle } else { few = middle }
                }
                enough
            }
        };
        let probabilities = sizes.probabilities(count);
        let drawn = |(turn, at): (usize, usize)| {
            let TraceInterval { index, requests, .. } = intervals[at];
            let begin = Nanos(index.saturating_mul(length.0));
            Drawn { index, begin, requests, probability: probabilities[at].min(1.0), turn: turn as u32 }
        };
        let mut drawn: Vec<_> = sizes.drawn(&probabilities, start).into_iter().enumerate().map(drawn).collect();
        drawn.sort_by_key(|one| one.index);
        (!drawn.is_empty()).then(|| Self { prior: sizes.prior(&probabilities), intervals: drawn })
    }

    /// How far off the estimate is expected to be, as a share of it, with a confidence of 95 %: before anything is measured.
    pub fn expected_error(&self) -> f64 {
        half_width(self.prior, self.by_lot().count())
    }

    /// What mean response times say of a trace of so many requests, in seconds, one for each interval; none where one is missing.
    pub fn estimate(&self, requests: u64, means: &[Option<f64>]) -> Option<Estimate> {
        let means: Vec<f64> = means.iter().copied().collect::<Option<_>>()?;
        let sum = |(one, mean): (&Drawn, &f64)| one.weight() * mean;
        let whole: f64 = self.intervals.iter().zip(&means).map(sum).sum();
        let mut turns: Vec<_> = self.intervals.iter().zip(&means).filter(|(one, _)| one.probability < 1.0).collect();
        turns.sort_by_key(|(one, _)| one.turn);
        // Successive differences (Wolter, *Introduction to Variance Estimation*, 2007, chapter 8).
        let squares: f64 = turns
            .windows(2)
            .map(|pair| {
                let left = |one: &Drawn| 1.0 - one.probability;
                (left(pair[0].0) * left(pair[1].0)).sqrt() * (sum(pair[0]) - sum(pair[1])).powi(2)
            })
            .sum();
        let count = turns.len() as f64;
        // Seen (times its degrees of freedom) and expected, each by its weight; what is seen is believed where it is more.
        let seen = if turns.len() > 1 { count * squares / 2.0 } else { 0.0 };
        let freedom = freedom(turns.len());
        let both = (EXPECTED as f64 * self.prior * whole * whole + seen) / freedom as f64;
        let variance = both.max(seen / (count - 1.0).max(1.0));
        let requests = requests as f64;
        let half = student(freedom) * variance.sqrt() / requests;
        Some(Estimate { mean_response_s: whole / requests, half_width_s: Some(half) })
    }

    /// What the response times that the trace itself has say of all that it has; none where it has none.
    pub(super) fn as_recorded(&self, intervals: &[TraceInterval]) -> Option<Estimate> {
        let recorded = intervals.iter().map(|interval| interval.responses).sum();
        let of = |one: &Drawn| {
            let interval = TraceInterval::find(intervals, one.index)?;
            Some((Drawn { requests: interval.responses, ..*one }, interval.mean_response().unwrap_or(0.0)))
        };
        let (known, means): (Vec<_>, Vec<_>) = self.intervals.iter().filter_map(of).unzip();
        let means: Vec<_> = means.into_iter().map(Some).collect();
        let draw = Self { prior: self.prior, intervals: known };
        draw.estimate(recorded, &means).filter(|_| recorded > 0)
    }

    /// Whether it makes sense; else what does not.
    pub(super) fn check(&self) -> Result<(), String> {
        if !self.prior.is_finite() || self.prior < 0.0 {
            return Err("prior must be zero or more".into());
        }
        for one in &self.intervals {
            if !(one.probability > 0.0 && one.probability <= 1.0 && one.weight().is_finite()) {
                return Err(format!("interval {} must have a probability above 0, and of 1 at most", one.index));
            }
        }
        let mut turns: Vec<u32> = self.intervals.iter().map(|one| one.turn).collect();
        turns.sort_unstable();
        match turns.iter().zip(0..).all(|(turn, expected)| *turn == expected) {
            true => Ok(()),
            false => Err("the turns must be 0, 1, 2, ..., each once".into()),
        }
    }

    /// Those that might not have been drawn.
    fn by_lot(&self) -> impl Iterator<Item = &Drawn> {
        self.intervals.iter().filter(|one| one.probability < 1.0)
    }
}

/// What a variance is known by, if so many were drawn by lot.
fn freedom(by_lot: usize) -> u64 {
    EXPECTED + (by_lot as u64).saturating_sub(1)
}

fn half_width(variance: f64, by_lot: usize) -> f64 {
    student(freedom(by_lot)) * variance.sqrt()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::TotalTime;

    const LENGTH: Nanos = Nanos::from_secs(10);

    /// Intervals with so many requests, which take so many milliseconds each.
    fn intervals(of: &[(u64, u64)]) -> Vec<TraceInterval> {
        let interval = |(index, &(requests, ms)): (usize, &(u64, u64))| {
            let response_sum = Nanos::from_millis(ms) * requests;
            let mut interval = TraceInterval { index: 2 * index as u64, requests, ..TraceInterval::default() };
            (interval.responses, interval.response_sum, interval.traffic) = (requests, response_sum, 4096 * requests);
            interval.served.quick = response_sum;
            interval.served.slow = TotalTime(response_sum.0 * (1 + index as u128 % 3));
            interval
        };
        of.iter().enumerate().map(interval).collect()
    }

    fn means(draw: &Draw, intervals: &[TraceInterval]) -> Vec<Option<f64>> {
        let mean = |one: &Drawn| intervals.iter().find(|interval| interval.index == one.index)?.mean_response();
        draw.intervals.iter().map(mean).collect()
    }

    #[test]
    fn all_of_few_intervals_are_drawn_and_say_what_is_true() {
        let all = intervals(&[(10, 1), (30, 5), (5, 2)]);
        for amount in [Amount::Intervals(3), Amount::Intervals(50), Amount::Error(0.0)] {
            let draw = Draw::of(&all, LENGTH, amount, 1).unwrap();
            assert_eq!(
                (draw.intervals.len(), draw.expected_error(), draw.intervals[1].begin),
                (3, 0.0, Nanos::from_secs(20))
            );
            let estimate = draw.estimate(45, &means(&draw, &all)).unwrap();
            assert!((estimate.mean_response_s - 0.17 / 45.0).abs() < 1e-12 && estimate.half_width_s == Some(0.0));
        }
        assert_eq!(Draw::of(&[], LENGTH, Amount::Intervals(3), 1), None);
        assert_eq!(Draw::of(&all, LENGTH, Amount::Error(1e9), 1).unwrap().intervals.len(), 1);
        let draw = Draw::of(&all, LENGTH, Amount::Intervals(2), 1).unwrap();
        assert_eq!(draw.estimate(45, &[Some(1.0), None]), None, "one was not measured");
        // What a trace has no response times of does not count.
        let mut some = all;
        (some[1].responses, some[1].response_sum) = (0, TotalTime::ZERO);
        let known = Draw::of(&some, LENGTH, Amount::Intervals(3), 1).unwrap().as_recorded(&some).unwrap();
        assert!((known.mean_response_s - 0.02 / 15.0).abs() < 1e-12, "{known:?}");
        some.iter_mut().for_each(|one| (one.responses, one.response_sum) = (0, TotalTime::ZERO));
        assert_eq!(Draw::of(&some, LENGTH, Amount::Intervals(3), 1).unwrap().as_recorded(&some), None);
    }

    /// Over all starts each interval is drawn as often as its probability says, and the mean of the estimates is what is true.
    #[test]
    fn the_estimate_is_right_on_average() {
        let of: Vec<_> = (0..40).map(|k| (1 + k * k % 37, 1 + k % 11)).collect();
        let all = intervals(&of);
        let requests: u64 = of.iter().map(|(requests, _)| requests).sum();
        let truth = of.iter().map(|(requests, ms)| requests * ms).sum::<u64>() as f64 / requests as f64 / 1e3;
        let (starts, mut sum, mut covered) = (2_000, 0.0, 0);
        let mut times = vec![0.0; all.len()];
        let mut probabilities = vec![0.0; all.len()];
        for start in 0..starts {
            let start = (start as f64 + 0.5) / starts as f64;
            let draw = Draw::from(&all, LENGTH, Amount::Intervals(9), start).unwrap();
            assert_eq!(draw.intervals.len(), 9);
            for one in &draw.intervals {
                times[one.index as usize / 2] += 1.0 / starts as f64;
                probabilities[one.index as usize / 2] = one.probability;
            }
            let estimate = draw.estimate(requests, &means(&draw, &all)).unwrap();
            sum += estimate.mean_response_s;
            covered += u64::from((estimate.mean_response_s - truth).abs() <= estimate.half_width_s.unwrap());
        }
        assert!((sum / starts as f64 / truth - 1.0).abs() < 1e-3, "{sum} for {truth}");
        times.iter().zip(&probabilities).for_each(|(times, one)| assert!((times - one).abs() < 2e-3, "{times} {one}"));
        assert!(covered >= 1_900, "{covered} of {starts}");
    }

    proptest! {
        /// Whatever the intervals are like: so many are drawn, each once, those that are sure among them.
        #[test]
        fn as_many_are_drawn_as_asked_for(
            of in prop::collection::vec((1u64..1 << 40, 0u64..1 << 20), 1..60), count in 1usize..70, start in 0.0..1.0f64,
        ) {
            let all = intervals(&of);
            let draw = Draw::from(&all, LENGTH, Amount::Intervals(count), start).unwrap();
            prop_assert_eq!(draw.intervals.len(), count.min(all.len()));
            prop_assert!(draw.intervals.is_sorted_by(|a, b| a.index < b.index));
            let sizes = Sizes::of(&all).probabilities(count.min(all.len()));
            let sum: f64 = sizes.iter().sum();
            prop_assert!((sum - count.min(all.len()) as f64).abs() < 1e-6, "{}", sum);
            let sure = sizes.iter().filter(|one| **one >= 1.0).count();
            prop_assert_eq!(draw.intervals.iter().filter(|one| one.probability >= 1.0).count(), sure);
            prop_assert!(draw.expected_error().is_finite());
        }

        /// As few as are enough, and no fewer.
        #[test]
        fn an_error_asks_for_as_many_as_it_takes(of in prop::collection::vec((1u64..1_000, 1u64..50), 3..80), error in 0.01..1.0f64) {
            let all = intervals(&of);
            let draw = Draw::of(&all, LENGTH, Amount::Error(error), 5).unwrap();
            prop_assert!(draw.expected_error() <= error);
            if draw.intervals.len() > 1 {
                let fewer = Draw::of(&all, LENGTH, Amount::Intervals(draw.intervals.len() - 1), 5).unwrap();
                prop_assert!(fewer.expected_error() > error);
            }
        }
    }
}
