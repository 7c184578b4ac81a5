//! How likely each interval is to be drawn: as likely as it is large.

use crate::sample::TraceInterval;

/// Those that are all but sure to be drawn are taken.
const SURE: f64 = 1.0 - 1e-9;

/// The sizes of intervals, and the order in which they are drawn.
pub struct Sizes {
    sizes: Vec<f64>,
    order: Vec<usize>,
}

impl Sizes {
    /// A size is made of seven shares of the trace: of its requests, of its bytes, and of how long each disk of [`crate::sample::served`] takes.
    /// Nobody knows which of them response times follow, and whatever an interval has much of makes it large: the root of the
    /// sum of their squares. The order is by how much of the size is queueing, so that intervals of each kind are drawn evenly.
    pub fn of(intervals: &[TraceInterval]) -> Self {
        let shares: [fn(&TraceInterval) -> f64; 7] = [
            |interval| interval.requests as f64,
            |interval| interval.traffic as f64,
            |interval| interval.served.quick.as_secs_f64(),
            |interval| interval.served.slow.as_secs_f64(),
            |interval| interval.served.slowest.as_secs_f64(),
            |interval| interval.served.waking.as_secs_f64(),
            |interval| interval.served.reads.as_secs_f64(),
        ];
        let mut squares = vec![0.0; intervals.len()];
        for share in shares {
            let sum: f64 = intervals.iter().map(share).sum();
            if sum > 0.0 {
                squares.iter_mut().zip(intervals).for_each(|(square, one)| *square += (share(one) / sum).powi(2));
            }
        }
        let sizes: Vec<f64> = squares.into_iter().map(f64::sqrt).collect();
        let queueing: Vec<f64> =
            intervals.iter().zip(&sizes).map(|(one, size)| one.served.slow.as_secs_f64() / size).collect();
        let mut order: Vec<usize> = (0..intervals.len()).collect();
        order.sort_by(|&a, &b| queueing[a].total_cmp(&queueing[b]));
        Self { sizes, order }
    }

    /// The probability of each interval to be among so many, at least one (Särndal, Swensson, Wretman, *Model Assisted Survey Sampling*, 1992,
    /// section 3.6): proportional to its size, but one at most.
    pub fn probabilities(&self, count: usize) -> Vec<f64> {
        if count >= self.sizes.len() {
            return vec![1.0; self.sizes.len()];
        }
        let mut sure = vec![false; self.sizes.len()];
        let (mut left, mut sum) = (count, self.sizes.iter().sum::<f64>());
        loop {
            let scale = left as f64 / sum;
            let more = (0..sure.len()).filter(|&at| !sure[at] && self.sizes[at] * scale >= SURE).collect::<Vec<_>>();
            if more.is_empty() {
                let probability = |(size, sure): (&f64, &bool)| if *sure { 1.0 } else { size * scale };
                return self.sizes.iter().zip(&sure).map(probability).collect();
            }
            left -= more.len();
            more.into_iter().for_each(|at| sure[at] = true);
            sum = self.sizes.iter().zip(&sure).filter(|(_, sure)| !**sure).map(|(size, _)| size).sum();
        }
    }

    /// The variance of an estimate by these probabilities over the square of what it estimates, where what is measured in an interval varies
    /// about its size with a coefficient of variation of one.
    pub fn prior(&self, probabilities: &[f64]) -> f64 {
        let all: f64 = self.sizes.iter().sum();
        let each = self.sizes.iter().zip(probabilities).filter(|(_, probability)| **probability < 1.0);
        each.map(|(size, probability)| (1.0 - probability) / probability * (size / all).powi(2)).sum()
    }

    /// The intervals that are drawn, in their turn, from a start between 0 and 1 on: systematic sampling with unequal probabilities
    /// (Madow, *Annals of Mathematical Statistics* 20, 1949).
    pub fn drawn(&self, probabilities: &[f64], start: f64) -> Vec<usize> {
        let last = self.order.last().copied();
        let all: f64 = probabilities.iter().sum();
        let passed = |sum: f64| (sum - start + 1e-12).floor();
        let mut sum = 0.0;
        let is_drawn = |&at: &usize| {
            let before = passed(sum);
            // What rounding has left is no matter in the end.
            sum = if Some(at) == last { all.round() } else { sum + probabilities[at] };
            passed(sum) > before
        };
        self.order.iter().copied().filter(is_drawn).collect()
    }
}
