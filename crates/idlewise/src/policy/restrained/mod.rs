//! Restrained utilisation of idleness: wait for I, then work for at most T (SIGMETRICS 2009), and which part of the idle
//! times to use (DSN 2008, section 4).

mod entries;
mod pairs;
mod parts;

pub(super) use entries::{BODY, MONITORING, RESTRAINED, TAIL, TAIL_BURSTY};
pub use entries::{BUSY_PERIOD, RELATIVE_DELAY};
pub use pairs::{Amount, NO_END, Pair, delaying_share, pairs, select};
pub use parts::{Choice, Part, Seen, choose};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{Decision, Policy};
use crate::{Bytes, Nanos, TotalTime};

/// Intervals before the first choice, and by how much their number grows until the next.
const FIRST: u64 = 100;
const GROWTH: f64 = 1.25;
/// Collisions that tell what one costs.
const SOME: u64 = 20;

/// Works from I until I + T, by given pairs or by pairs that follow what is monitored.
#[derive(Clone, Debug)]
pub struct Restrained {
    request_size: Bytes,
    /// S_BG, the mean service time of a background request; none starts that would end after I + T on average.
    service: Nanos,
    choice: Choice,
    monitor: Option<Monitor>,
    /// The pair of this interval, if it is used.
    pair: Option<Pair>,
    after_long: bool,
    random: Pcg64Mcg,
}

/// What the choice of pairs depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// D, the relative delay that the foreground may suffer.
    pub relative_delay: f64,
    /// RT_fg, the foreground's mean response time without background work.
    pub foreground_response: Nanos,
    /// How much work there is.
    pub amount: Amount,
    /// The part of the idle times to use.
    pub part: Part,
}

/// The idle times and penalties of the past.
#[derive(Clone, Debug)]
struct Monitor {
    target: Target,
    seen: Seen,
    /// Sum of all delays, foreground requests, and collisions.
    delays: TotalTime,
    requests: u64,
    collisions: u64,
    /// Number of intervals at which to choose again.
    next: u64,
}

impl Restrained {
    /// Works by these pairs.
    pub fn fixed(choice: Choice, request_size: Bytes, service: Nanos) -> Self {
        let random = Pcg64Mcg::seed_from_u64(73);
        Self { request_size, service, choice, monitor: None, pair: None, after_long: false, random }
    }

    /// Chooses pairs for the target from the idle times and penalties that it sees, and again as it sees more. It does nothing
    /// in the first hundred intervals.
    pub fn monitoring(target: Target, request_size: Bytes, service: Nanos) -> Self {
        let seen = Seen::default();
        let monitor = Monitor { target, seen, delays: TotalTime::ZERO, requests: 0, collisions: 0, next: FIRST };
        Self { monitor: Some(monitor), ..Self::fixed(Choice::default(), request_size, service) }
    }

    /// Changes the target while running (SIGMETRICS 2009, section 3): a larger relative delay makes background work more urgent.
    pub fn set_target(&mut self, target: Target) {
        if let Some(monitor) = &mut self.monitor {
            monitor.target = target;
            self.choice = monitor.choice(self.service);
        }
    }

    /// The pairs it works by.
    pub fn choice(&self) -> Choice {
        self.choice
    }
}

impl Monitor {
    /// The paper's W is the wait of the first request after a collision, and all busy periods have as many requests. Here it is
    /// what a collision cost all requests, over the requests of a mean busy period: with it equation 1 is no approximation.
    /// Until there are some collisions it is the rest of an exponential service time.
    fn choice(&self, service: Nanos) -> Choice {
        let shared = u128::from(self.collisions) * u128::from(self.requests);
        let cost = (self.delays * self.intervals()).0.checked_div(shared);
        let penalty = cost.filter(|_| self.collisions >= SOME).map_or(service, |cost| Nanos(cost as u64));
        let Target { relative_delay, foreground_response, amount, part } = self.target;
        let delaying = delaying_share(relative_delay, foreground_response, penalty);
        choose(part, &self.seen, delaying, service, amount)
    }

    fn intervals(&self) -> u64 {
        self.seen.after_short.count() + self.seen.after_long.count()
    }
}

impl Policy for Restrained {
    fn idle_began(&mut self, _busy: Nanos, _at: Nanos) {
        let pair = if self.after_long { self.choice.after_long } else { self.choice.after_short };
        let mut drawn = |pair: &Pair| pair.probability >= 1.0 || self.random.random::<f64>() < pair.probability;
        self.pair = pair.filter(&mut drawn);
    }

    fn decide(&mut self, elapsed: Nanos) -> Decision {
        let Some(pair) = self.pair else { return Decision::Stop };
        let end = pair.idle_wait.0.saturating_add(pair.busy_period.0);
        if elapsed < pair.idle_wait {
            Decision::Wait { until: pair.idle_wait }
        } else if pair.busy_period == NO_END {
            Decision::Issue { size: self.request_size, count: u64::MAX }
        } else {
            // The first moment from which one would end after I + T.
            let until = Nanos(end.saturating_add(1).saturating_sub(self.service.0));
            if elapsed < until { Decision::IssueUntil { size: self.request_size, until } } else { Decision::Stop }
        }
    }

    fn foreground_arrived(&mut self, idle: Nanos, collision: Nanos) {
        let Some(monitor) = &mut self.monitor else {
            return;
        };
        let count = monitor.intervals();
        let total = monitor.seen.after_short.total() + monitor.seen.after_long.total();
        let histogram = if self.after_long { &mut monitor.seen.after_long } else { &mut monitor.seen.after_short };
        histogram.add(idle);
        self.after_long = idle * count > total;
        monitor.collisions += u64::from(collision > Nanos::ZERO);
        if monitor.intervals() >= monitor.next {
            monitor.next = (monitor.next as f64 * GROWTH) as u64 + 1;
            self.choice = monitor.choice(self.service);
        }
    }

    fn foreground_served(&mut self, requests: u64, delays: Nanos) {
        if let Some(monitor) = &mut self.monitor {
            monitor.requests += requests;
            monitor.delays += delays;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const SIZE: Bytes = Bytes(65_536);

    #[test]
    fn works_from_i_until_i_and_t() {
        let pair = |t| Pair { idle_wait: Nanos(10), busy_period: Nanos(t), probability: 1.0, work: 0.0 };
        let policy = |t| {
            let choice = Choice { after_short: Some(pair(t)), after_long: None };
            let mut policy = Restrained::fixed(choice, SIZE, Nanos(6));
            policy.idle_began(Nanos::ZERO, Nanos::ZERO);
            policy
        };
        assert_eq!(policy(12).decide(Nanos(3)), Decision::Wait { until: Nanos(10) });
        assert_eq!(policy(12).decide(Nanos(16)), Decision::IssueUntil { size: SIZE, until: Nanos(17) });
        assert_eq!(policy(12).decide(Nanos(17)), Decision::Stop);
        assert_eq!(policy(NO_END.0).decide(Nanos(17)), Decision::Issue { size: SIZE, count: u64::MAX });
        let seldom = Pair { probability: 0.25, ..pair(12) };
        let mut policy = Restrained::fixed(Choice { after_short: Some(seldom), after_long: None }, SIZE, Nanos(6));
        let mut works = || {
            policy.idle_began(Nanos::ZERO, Nanos::ZERO);
            u32::from(policy.decide(Nanos::ZERO) != Decision::Stop)
        };
        let used: u32 = (0..4_000).map(|_| works()).sum();
        assert!((900..1_100).contains(&used), "{used}");
    }

    #[test]
    fn monitors_and_follows_a_changed_target() {
        let target = |relative_delay| Target {
            relative_delay,
            foreground_response: Nanos(12 * MS),
            amount: Amount::Infinite,
            part: Part::Any,
        };
        let mut policy = Restrained::monitoring(target(0.07), SIZE, Nanos(6 * MS));
        for k in 0..2_000u64 {
            assert_eq!(k < 100, policy.choice() == Choice::default(), "{k}");
            policy.foreground_arrived(Nanos((1 + k * k % 97) * MS), Nanos::ZERO);
            policy.foreground_served(2, Nanos::ZERO);
        }
        let before = policy.choice().after_short.unwrap();
        policy.set_target(target(0.2));
        assert!(policy.choice().after_short.unwrap().work > 1.5 * before.work);
        // What collisions cost counts: at ten times the penalty a tenth of the intervals may be used.
        for _ in 0..SOME {
            policy.foreground_arrived(Nanos(MS), Nanos(60 * MS));
            policy.foreground_served(2, Nanos::from_millis(120));
        }
        policy.set_target(target(0.07));
        assert!(policy.choice().after_short.unwrap().work < before.work / 3.0);
    }
}
