//! The framework of SIGMETRICS 2009, section 2: how long to wait and for how long to work, from the histogram of idle times.

use crate::Nanos;
use crate::cdh::Cdh;

/// The busy period of a pair that works until the foreground comes.
pub const NO_END: Nanos = Nanos(u64::MAX);
/// By how much E grows until some pair has room for a request (section 2.3.1).
const INCREMENT: f64 = 0.05;
/// Sums of equation 5 with more terms are taken as integrals.
const MOST_TERMS: u64 = 4096;

/// An idle wait I and a background busy period T.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The idle wait I.
    pub idle_wait: Nanos,
    /// The background busy period T; [`NO_END`] for as long as the device stays idle.
    pub busy_period: Nanos,
    /// Share of the intervals longer than I in which it works; less than 1 only where no pair of the wanted E has room for
    /// a request: E / E' of section 2.3.1.
    pub probability: f64,
    /// Background work that it serves in an interval on average, in nanoseconds: B of equation 5.
    pub work: f64,
}

/// How much background work there is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// More than ever gets done.
    Infinite,
    /// Jobs.
    Finite {
        /// Nanoseconds of them for each idle interval (section 2.3.2, B).
        work: f64,
        /// Mean time of one, which may be several requests: T has room for it.
        job: Nanos,
    },
}

impl Amount {
    /// The shortest T where requests take `service`.
    pub fn room(self, service: Nanos) -> Nanos {
        match self {
            Self::Infinite => service,
            Self::Finite { job, .. } => job.max(service),
        }
    }
}

/// E, the share of idle intervals that may delay the foreground (equation 4): D RT / W, at most 1.
pub fn delaying_share(relative_delay: f64, foreground_response: Nanos, penalty: Nanos) -> f64 {
    (relative_delay * foreground_response.0 as f64 / penalty.0.max(1) as f64).min(1.0)
}

/// Every pair of which the share `delaying` of the idle intervals, and no more, ends between I and I + T, and that has room
/// for a request of `service`. If there is none, the share is raised until there is, and fewer intervals are used.
pub fn pairs(lengths: &Cdh, delaying: f64, service: Nanos) -> Vec<Pair> {
    pairs_where(lengths, delaying, service, |_| true)
}

/// Those of the pairs that are wanted; the share is raised until there is one of them.
pub fn pairs_where(lengths: &Cdh, delaying: f64, service: Nanos, wanted: impl Fn(&Pair) -> bool) -> Vec<Pair> {
    let mut share = delaying;
    while lengths.count() > 0 && delaying > 0.0 {
        let mut found = pairs_of(lengths, share, service, (delaying / share).min(1.0));
        found.retain(&wanted);
        if !found.is_empty() || share >= 1.0 {
            return found;
        }
        share = (share + INCREMENT).min(1.0);
    }
    Vec::new()
}

fn pairs_of(lengths: &Cdh, share: f64, service: Nanos, probability: f64) -> Vec<Pair> {
    let points: Vec<(Nanos, f64)> = std::iter::once((Nanos::ZERO, 0.0)).chain(lengths.pairs()).collect();
    let (work, longest) = (Work::new(lengths), points[points.len() - 1].0);
    let mut end = 0;
    let mut pairs = Vec::new();
    for &(idle_wait, c) in &points {
        // Rounding must not cost the last pair.
        while end + 1 < points.len() && points[end + 1].1 - c <= share + 1e-12 {
            end += 1;
        }
        let busy_period = if end + 1 == points.len() { NO_END } else { points[end].0.since(idle_wait) };
        if idle_wait < longest && busy_period >= service {
            let work = probability * work.of(idle_wait, busy_period, service);
            pairs.push(Pair { idle_wait, busy_period, probability, work });
        }
    }
    pairs
}

/// The pair to use: for work without end the one that serves most; for so much work the shortest wait that serves more
/// than there is (section 2.3.2), or the one that serves most if none does.
pub fn select(pairs: &[Pair], amount: Amount) -> Option<Pair> {
    let enough = |pair: &&Pair| matches!(amount, Amount::Finite { work, .. } if pair.work > work);
    let shortest = pairs.iter().filter(enough).min_by_key(|pair| pair.idle_wait);
    // Of two that serve as much, the one that waits longer delays less.
    shortest.or_else(|| pairs.iter().max_by(|a, b| a.work.total_cmp(&b.work))).copied()
}

/// Equation 5.
struct Work {
    cumulative: crate::cdh::Cumulative,
    /// The histogram's pairs, with the share of each bin.
    bins: Vec<(Nanos, f64)>,
}

impl Work {
    fn new(lengths: &Cdh) -> Self {
        let mut before = 0.0;
        let bins = lengths.pairs().into_iter().map(|(end, c)| (end, c - std::mem::replace(&mut before, c))).collect();
        Self { cumulative: lengths.cumulative(), bins }
    }

    fn of(&self, idle_wait: Nanos, busy_period: Nanos, service: Nanos) -> f64 {
        let end = Nanos(idle_wait.0.saturating_add(busy_period.0));
        let longer = if busy_period == NO_END { 0.0 } else { 1.0 - self.cumulative.at(end) };
        let whole = if longer > 0.0 { busy_period.0 as f64 * longer } else { 0.0 };
        let (longest, s) = (self.bins.last().map_or(0, |bin| bin.0.0), service.0.max(1));
        let terms = end.0.min(longest).saturating_sub(idle_wait.0).div_ceil(s);
        if terms <= MOST_TERMS {
            let c = |r: u64| self.cumulative.at(Nanos(idle_wait.0.saturating_add(r.saturating_mul(s))).min(end));
            return whole + (1..=terms).map(|r| r.saturating_mul(s) as f64 * (c(r) - c(r - 1))).sum::<f64>();
        }
        // So many terms: an interval serves what is left of it, and half a request more.
        let within = self.bins.iter().filter(|(bin, _)| idle_wait < *bin && *bin <= end);
        whole + within.map(|(bin, share)| share * (bin.0 - idle_wait.0).saturating_add(s / 2) as f64).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use rand_distr::{Distribution, Exp1};

    use super::*;

    const MS: u64 = 1_000_000;

    fn exponential(mean_ms: f64) -> Cdh {
        let mut random: rand_pcg::Pcg64 = rand::SeedableRng::seed_from_u64(9);
        let mut lengths = Cdh::default();
        for _ in 0..50_000 {
            let draw: f64 = Exp1.sample(&mut random);
            lengths.add(Nanos((draw * mean_ms * MS as f64) as u64));
        }
        lengths
    }

    #[test]
    fn equation_4() {
        assert_eq!(delaying_share(0.07, Nanos(12 * MS), Nanos(6 * MS)), 0.14);
        assert_eq!(delaying_share(0.07, Nanos(1), Nanos::ZERO), 0.07);
        assert_eq!(delaying_share(10.0, Nanos(12 * MS), Nanos(6 * MS)), 1.0);
    }

    #[test]
    fn every_pair_delays_no_more_than_its_share() {
        let lengths = exponential(92.0);
        let cumulative = lengths.cumulative();
        let pairs = pairs(&lengths, 0.14, Nanos(6 * MS));
        assert!(pairs.len() > 50);
        for pair in &pairs {
            let end = Nanos(pair.idle_wait.0.saturating_add(pair.busy_period.0));
            let share = cumulative.at(end) - cumulative.at(pair.idle_wait);
            assert!(share <= 0.14 + 1e-9 && pair.probability == 1.0, "{pair:?} {share}");
        }
        // Of exponential lengths all pairs with T without end serve what memorylessness says: all that is left.
        let last = pairs.iter().find(|pair| pair.busy_period == NO_END).unwrap();
        let expected = 0.14 * (92.0 + 3.0) * MS as f64;
        assert!((last.work / expected - 1.0).abs() < 0.05, "{} {expected}", last.work);
    }

    #[test]
    fn equation_5_by_hand() {
        let mut lengths = Cdh::default();
        [10, 20, 30, 40].iter().for_each(|ms| lengths.add(Nanos(ms * MS)));
        // From 5 ms for 12 ms with 6 ms requests: those of 20, 30 and 40 ms serve all of it, that of 10 ms one request.
        let work = Work::new(&lengths).of(Nanos(5 * MS), Nanos(12 * MS), Nanos(6 * MS));
        assert!((work / (0.75 * 12.0 + 0.25 * 6.0) / MS as f64 - 1.0).abs() < 1e-6, "{work}");
    }

    #[test]
    fn long_requests_are_served_seldom_rather_than_never() {
        let lengths = exponential(1.0);
        let pairs = pairs(&lengths, 0.02, Nanos(20 * MS));
        assert!(pairs.iter().all(|pair| pair.probability <= 1.0 && pair.busy_period >= Nanos(20 * MS)), "{pairs:?}");
        assert!(!pairs.is_empty());
        let mut fixed = Cdh::default();
        (0..100).for_each(|_| fixed.add(Nanos(10 * MS)));
        // All intervals are alike: whoever uses one uses all, or a part of all.
        let pair = select(&super::pairs(&fixed, 0.1, Nanos(12 * MS)), Amount::Infinite).unwrap();
        assert!((pair.probability - 0.1).abs() < 1e-9, "{pair:?}");
    }

    #[test]
    fn finite_work_takes_the_shortest_wait_that_serves_it() {
        let lengths = exponential(92.0);
        let pairs = pairs(&lengths, 0.14, Nanos(6 * MS));
        let little = select(&pairs, Amount::Finite { work: MS as f64, job: Nanos(6 * MS) }).unwrap();
        let most = select(&pairs, Amount::Infinite).unwrap();
        assert!(little.idle_wait <= most.idle_wait && little.work > MS as f64 && most.work >= little.work);
        assert_eq!(select(&pairs, Amount::Finite { work: f64::MAX, job: Nanos(6 * MS) }), Some(most));
        assert_eq!(select(&[], Amount::Infinite), None);
    }
}
