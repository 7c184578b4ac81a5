//! Any policy, within a budget of slowdown that holds whatever the workload does.

use super::{Account, Decision, Kind, Parameter, Policy, Tried};
use crate::Nanos;

/// How long an overdrawn account keeps a policy from working in an idle interval. Without an end it would waste the night:
/// a disk that nobody uses earns nothing.
const PATIENCE: Nanos = Nanos::from_secs(300);
/// What may be overdrawn in such long intervals: the earnings of so many requests.
const CREDIT: u64 = 900;
/// What the account begins with: an empty one would stop at the first collision, before anything was earned.
const OPENING: u64 = 100;

/// Lets a policy work only while its account is not overdrawn. It begins with the earnings of 100 requests; every foreground
/// request earns the target mean slowdown, and every delay spends what it cost. Once the device has been idle for five minutes,
/// the earnings of 900 requests may be overdrawn.
///
/// **The bound.** Let T be the target, N the foreground requests served so far, and C the most that one collision has cost:
/// the sum of the delays of all requests that it delayed. Then the sum of all delays is at most T (N + 1000) + C, and the
/// mean slowdown at most T (1 + 1000 / N) + C / N.
///
/// *Proof.* The balance is T (N + 100) less the sum of delays. Work starts in an interval only if the balance is at least -900 T
/// then, and only one request of it collides, at the interval's end. Until the delay of that collision is absorbed no other
/// interval is used. So between the start of that work and the next, delays are those of one collision, at most C, while
/// earnings only raise the balance: it never falls below -900 T - C.
///
/// Where a 99th percentile is to be kept as well, one request in a hundred may be slowed by more than that, by an account of the
/// same kind: with S requests slowed by more and C of them by one collision at most, 100 (S - C) is at most N + 1000.
#[derive(Debug)]
pub struct Budget<P> {
    inner: P,
    account: Account,
}

impl<P: Policy> Budget<P> {
    /// `inner` within a mean slowdown of `target`.
    pub fn new(inner: P, target: Nanos) -> Self {
        Self::with_account(inner, Account::opened(target, OPENING, CREDIT, PATIENCE))
    }

    /// `inner` within an account with other terms.
    pub fn with_account(inner: P, account: Account) -> Self {
        Self { inner, account }
    }

    /// The same within a 99th percentile, if one is given.
    pub fn and_p99(self, p99: Option<Nanos>) -> Self {
        let account = p99.map_or(self.account, |p99| self.account.and_tail(p99, OPENING, CREDIT));
        Self { account, ..self }
    }
}

impl<P: Policy> Policy for Budget<P> {
    fn interval_foreseen(&mut self, length: Nanos) {
        self.inner.interval_foreseen(length);
    }

    fn idle_began(&mut self, busy: Nanos, at: Nanos) {
        self.inner.idle_began(busy, at);
    }

    fn decide(&mut self, elapsed: Nanos) -> Decision {
        if !self.account.forbids(elapsed) {
            return self.inner.decide(elapsed);
        }
        self.account.may_go_on_at().map_or(Decision::Stop, |until| Decision::Wait { until })
    }

    fn foreground_arrived(&mut self, idle: Nanos, collision: Nanos) {
        self.inner.foreground_arrived(idle, collision);
    }

    fn foreground_served(&mut self, requests: u64, delays: Nanos) {
        self.inner.foreground_served(requests, delays);
        self.account.served(requests, delays);
    }

    fn account(&self) -> Option<Account> {
        Some(self.account)
    }
}

impl Policy for Box<dyn Policy> {
    fn interval_foreseen(&mut self, length: Nanos) {
        self.as_mut().interval_foreseen(length);
    }

    fn idle_began(&mut self, busy: Nanos, at: Nanos) {
        self.as_mut().idle_began(busy, at);
    }

    fn decide(&mut self, elapsed: Nanos) -> Decision {
        self.as_mut().decide(elapsed)
    }

    fn foreground_arrived(&mut self, idle: Nanos, collision: Nanos) {
        self.as_mut().foreground_arrived(idle, collision);
    }

    fn foreground_served(&mut self, requests: u64, delays: Nanos) {
        self.as_mut().foreground_served(requests, delays);
    }

    fn account(&self) -> Option<Account> {
        self.as_ref().account()
    }
}

/// Mean slowdown within which any policy is held. Every policy takes it.
pub const BUDGET: Parameter = Parameter {
    name: "budget",
    about: "Keep any policy within this mean slowdown: it pauses while its account is overdrawn",
    kind: Kind::Time,
    tried: Tried::Ratios { from: 1e-5, to: 0.1, steps: 12 },
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Bytes;
    use crate::disk::DiskModel;
    use crate::idle::Interval;
    use crate::policy::Waiting;
    use crate::simulate::{Lane, Scrub, Service, Simulation};

    const SIZE: Bytes = Bytes(1_000);

    #[test]
    fn an_overdrawn_account_stops_work_until_it_has_earned_enough() {
        let mut policy = Budget::new(Waiting { idle_wait: Nanos::ZERO, request_size: SIZE }, Nanos(10));
        assert!(matches!(policy.decide(Nanos::ZERO), Decision::Issue { .. }));
        policy.foreground_served(2, Nanos(50 + 10 * OPENING));
        assert_eq!(policy.decide(Nanos::ZERO), Decision::Wait { until: PATIENCE });
        assert!(matches!(policy.decide(PATIENCE), Decision::Issue { .. }));
        policy.foreground_served(0, Nanos(10 * CREDIT));
        assert!(policy.account().is_some_and(|account| account.overdrawn() > Nanos(10 * CREDIT)));
        assert_eq!(policy.decide(PATIENCE), Decision::Stop);
        policy.foreground_served(3 + CREDIT, Nanos(0));
        assert!(matches!(policy.decide(Nanos::ZERO), Decision::Issue { .. }));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        /// Whatever the intervals, the sum of delays stays within the target times the requests, plus one collision.
        #[test]
        fn the_bound_holds_on_adversarial_intervals(
            intervals in prop::collection::vec((prop_oneof![1u64..5, 1u64..100, 1u64..5_000], prop_oneof![1u64..4, 1u64..500]), 1..200),
            target in 0u64..300, service in 1u64..500, wait in 0u64..200, patience in prop_oneof![50u64..2_000, Just(u64::MAX)], credit in 0u64..20, opening in 0u64..20,
            p99 in prop::option::of(0u64..400),
        ) {
            let waiting = Waiting { idle_wait: Nanos(wait), request_size: SIZE };
            let account = Account::opened(Nanos(target), opening, credit, Nanos(patience));
            let account = p99.map_or(account, |p99| account.and_tail(Nanos(p99), opening, credit));
            let policy = Budget::with_account(waiting, account);
            let lane = Lane::new(Box::new(policy), Box::new(Scrub::new(Service::OfSize(DiskModel::in_proportion(service)))));
            let mut simulation = Simulation::new(&crate::idle::Idleness::default(), vec![lane]);
            simulation.limit = p99.map(Nanos);
            let (mut requests, mut costliest, mut before, mut collisions) = (0u128, 0, 0, 0);
            let (mut most_slowed, mut slowed_before) = (0, 0);
            for (length, followers) in intervals {
                let interval = Interval { length: Nanos(length), followers, busy_before: Nanos(1) };
                simulation.interval(&interval, std::iter::empty());
                requests += u128::from(followers);
                if simulation.outcome.collisions > collisions {
                    (before, collisions) = (simulation.outcome.delay_sum, simulation.outcome.collisions);
                    // The delays of this interval's busy period are this collision's already.
                    before -= u128::from(simulation.carried().0) * u128::from(followers);
                    let slowed = p99.is_some_and(|p99| simulation.carried() > Nanos(p99));
                    slowed_before = simulation.outcome.slowed - if slowed { followers } else { 0 };
                }
                most_slowed = most_slowed.max(simulation.outcome.slowed - slowed_before);
                let allowed = requests + u128::from(credit + opening) + 100 * u128::from(most_slowed);
                prop_assert!(100 * u128::from(simulation.outcome.slowed) <= allowed);
                costliest = costliest.max(simulation.outcome.delay_sum - before);
                let earned = u128::from(target) * (requests + u128::from(credit + opening));
                prop_assert!(simulation.outcome.delay_sum <= earned + costliest);
            }
        }
    }
}
