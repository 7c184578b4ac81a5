//! Any policy, within a budget of slowdown that holds whatever the workload does.

use super::{Account, Decision, Kind, Parameter, Policy, Terms, Tried};
use crate::Nanos;

/// Lets a policy work only while its account holds what one more collision may cost. Every foreground request earns the target mean
/// slowdown, and every delay spends what it cost. What a collision may cost is learnt: as much as nine in ten would have, if one had
/// begun with each busy period of late ([`super::Reserve`]).
///
/// At first it may hold less than that, by what 100 requests earn, and by less and less until 500 are served: an empty account may begin. When
/// the account has held too little for five minutes, in which the device was idle for nine tenths of the time, it may work in an idle interval
/// all the same: a disk that nobody uses earns nothing, and whoever reads just when it works must not end that. The next time it may after a
/// hundred times as long as that took, or more if the goal is small, but after a day at most.
/// And what is owed halves every six hours: a flood of requests behind one delay must not end the work for months.
///
/// **The bound.** Let T be the target, N the foreground requests served so far, C the most that one collision has cost, which is the sum
/// of the delays of all requests that it delayed, E the number of those exceptions, and H the time passed in units of six
/// hours. Then the sum of all delays is at most T N + (1 + E) (1 + H) C.
///
/// *Proof.* Work that is no exception starts only if the sum of delays is at most T N, and only one request of it collides, at the interval's
/// end. Until the delay of that collision is absorbed no other interval is used. So at any time the sum is at most what T N was
/// when such work last started, and one C for that and for each exception since. So no more than (1 + E) C is ever owed; of that a
/// share of ln 2 = 0.7 is forgotten in each six hours at most.
///
/// As work starts only if the account holds what nine in ten collisions cost at most, the sum is mostly at most T N, but for the first 500
/// requests, where it may be one C more.
///
/// Where a 99th percentile is to be kept as well, one request in a hundred may be slowed by more than that, by an account of the
/// same kind: with S requests slowed by more and C of them by one collision at most, 100 (S - (1 + E) (1 + H) C) is at most N.
#[derive(Clone, Debug)]
pub struct Budget<P> {
    inner: P,
    account: Account,
}

impl<P: Policy> Budget<P> {
    /// `inner` within a mean slowdown of `target`.
    pub fn new(inner: P, target: Nanos) -> Self {
        Self::with_account(inner, Account::new(target, Terms::default()))
    }

    /// `inner` within an account that stands otherwise or has other terms.
    pub fn with_account(inner: P, account: Account) -> Self {
        Self { inner, account }
    }

    /// The same within a 99th percentile, if one is given.
    pub fn and_p99(self, p99: Option<Nanos>) -> Self {
        let account = p99.map_or(self.account, |p99| self.account.and_tail(p99));
        Self { account, ..self }
    }

    /// The same where requests of the background work may take so long: it need not find that out.
    pub fn expecting(mut self, service: Nanos) -> Self {
        self.account.reserve.expect(service);
        self
    }
}

impl<P: Policy> Policy for Budget<P> {
    fn interval_foreseen(&mut self, length: Nanos) {
        self.inner.interval_foreseen(length);
    }

    fn idle_began(&mut self, busy: Nanos, at: Nanos) {
        self.account.idle_began(at);
        self.inner.idle_began(busy, at);
    }

    fn decide(&mut self, elapsed: Nanos) -> Decision {
        if self.account.forbids(elapsed) {
            return Decision::Wait { until: self.account.may_go_on_at() };
        }
        let decision = self.inner.decide(elapsed);
        if matches!(decision, Decision::Issue { .. } | Decision::IssueUntil { .. } | Decision::Paced { .. }) {
            self.account.used(elapsed);
        }
        decision
    }

    fn foreground_arrived(&mut self, idle: Nanos, collision: Nanos) {
        self.account.idle_ended(idle, collision);
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
    about: "Keep any policy within this mean slowdown: it pauses while its account holds too little for one more delay",
    kind: Kind::Time,
    tried: Tried::Ratios { from: 1e-5, to: 0.1, steps: 12 },
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Bytes;
    use crate::TotalTime;
    use crate::disk::DiskModel;
    use crate::idle::{Idleness, Interval};
    use crate::policy::Waiting;
    use crate::simulate::{Lane, Scrub, Service, Simulation};

    const SIZE: Bytes = Bytes(1_000);
    const PATIENCE: Nanos = Nanos::from_secs(300);
    const DAY: Nanos = Nanos::from_secs(24 * 3_600);

    fn at_once() -> Waiting {
        Waiting { idle_wait: Nanos::ZERO, request_size: SIZE }
    }

    fn works(policy: &mut impl Policy, elapsed: Nanos) -> bool {
        matches!(policy.decide(elapsed), Decision::Issue { .. })
    }

    #[test]
    fn work_stops_until_the_account_holds_what_a_collision_costs() {
        let mut policy = Budget::new(at_once(), Nanos(10)).expecting(Nanos(800));
        policy.idle_began(Nanos(1), Nanos(0));
        // Of the 800 that a collision costs, 1,000 need not be there yet; a busy period of three costs more.
        assert!(works(&mut policy, Nanos::ZERO));
        policy.foreground_served(3, Nanos(0));
        policy.idle_began(Nanos(1), Nanos(10));
        policy.foreground_arrived(Nanos(1_000), Nanos(0));
        policy.idle_began(Nanos(1), Nanos(20));
        assert_eq!(policy.decide(Nanos::ZERO), Decision::Wait { until: Nanos(PATIENCE.0 - 10) });
        // 30 earned, and 994 left that need not be there yet.
        let account = policy.account().unwrap();
        assert_eq!((account.reserve.requests(), account.lacks()), (3, Nanos(account.reserve.cost().0 - 994 - 30)));
        let requests = policy.account().and_then(|account| account.requests_to_go_on()).unwrap();
        policy.foreground_served(requests - 1, Nanos(0));
        assert!(!works(&mut policy, Nanos::ZERO));
        policy.foreground_served(1, Nanos(0));
        assert!(works(&mut policy, Nanos::ZERO));
    }

    /// Many thousand requests behind one collision must not end the work on a disk that nobody uses from then on.
    #[test]
    fn a_quiet_disk_is_used_whatever_it_owes() {
        let mut policy = Budget::new(at_once(), Nanos(1_000_000)).expecting(Nanos(10_000_000));
        policy.idle_began(Nanos(1), Nanos(1));
        assert!(works(&mut policy, Nanos::ZERO));
        policy.foreground_arrived(Nanos::ZERO, Nanos(10_000_000));
        policy.foreground_served(100_000, Nanos::from_secs(1_000));
        // Of the time since then it was busy for most.
        policy.idle_began(Nanos(1), Nanos::from_secs(1_000));
        assert_eq!(policy.decide(Nanos::ZERO), Decision::Wait { until: PATIENCE });
        // Once it began, it goes on in this interval.
        let half = Nanos(500_000_000);
        assert!(works(&mut policy, PATIENCE) && works(&mut policy, Nanos(PATIENCE.0 + half.0)));
        let ended = Nanos(PATIENCE.0 + half.0);
        policy.foreground_arrived(ended, half);
        policy.foreground_served(1, Nanos(5_000_000));
        // It took a second; the disk was busy for half a second, which counts ten times.
        let next = Nanos(Nanos::from_secs(1_000).0 + ended.0 + half.0);
        policy.idle_began(Nanos(1), next);
        let until = Nanos::from_secs(100);
        assert_eq!(policy.decide(PATIENCE.min(Nanos::from_secs(99))), Decision::Wait { until });
        assert!(works(&mut policy, until));
        // All the rest of the day, until somebody comes: then the next one is a day later.
        policy.foreground_arrived(DAY, Nanos::ZERO);
        policy.foreground_served(1, Nanos(5_000_000));
        policy.idle_began(Nanos(1), Nanos(next.0 + DAY.0));
        assert_eq!(policy.decide(Nanos::ZERO), Decision::Wait { until: DAY });
    }

    /// A goal that opens with less than a collision costs begins with an exception.
    #[test]
    fn a_disk_that_nobody_uses_is_worked_on() {
        let mut policy = Budget::new(at_once(), Nanos(1)).expecting(Nanos(400));
        policy.idle_began(Nanos(1), Nanos(77));
        assert_eq!(policy.decide(Nanos::ZERO), Decision::Wait { until: PATIENCE });
        assert!(works(&mut policy, PATIENCE));
        let mut unknown = Budget::new(at_once(), Nanos(1));
        unknown.idle_began(Nanos(1), Nanos(77));
        assert!(works(&mut unknown, Nanos::ZERO));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        /// Whatever the intervals, the sum of delays stays within the target times the requests, plus one collision, plus one for each
        /// exception.
        #[test]
        fn the_bound_holds_on_adversarial_intervals(
            intervals in prop::collection::vec((prop_oneof![1u64..5, 1u64..100, 1u64..5_000], prop_oneof![1u64..4, 1u64..500]), 1..200),
            target in 0u64..300, service in 1u64..500, wait in 0u64..200, patience in prop_oneof![50u64..2_000, Just(u64::MAX)],
            once_in in 1u64..50_000, halves_in in prop_oneof![100u64..100_000, Just(u64::MAX)], (taken_back_over, opening) in (0u64..40).prop_flat_map(|over| (Just(over), 0..=over)),
            told in any::<bool>(), p99 in prop::option::of(0u64..400),
        ) {
            let waiting = Waiting { idle_wait: Nanos(wait), request_size: SIZE };
            let terms = Terms {
                opening,
                taken_back_over,
                patience: Nanos(patience),
                once_in: Nanos(once_in),
                halves_in: Nanos(halves_in),
            };
            let account = Account::new(Nanos(target), terms);
            let policy = Budget::with_account(waiting, account).and_p99(p99.map(Nanos));
            let policy = if told { policy.expecting(Nanos(service)) } else { policy };
            let lane = Lane::new(Box::new(policy), Box::new(Scrub::new(Service::OfSize(DiskModel::in_proportion(service)))));
            let mut simulation = Simulation::new(&Idleness::default(), vec![lane]);
            simulation.limit = p99.map(Nanos);
            let (mut requests, mut costliest, mut before, mut collisions) = (0, TotalTime::ZERO, TotalTime::ZERO, 0);
            let (mut most_slowed, mut slowed_before, mut clock) = (0, 0, 0);
            for (length, followers) in intervals {
                let interval = Interval { length: Nanos(length), followers, busy_before: Nanos(1) };
                simulation.interval(&interval, std::iter::empty());
                requests += followers;
                clock += length + 1;
                if simulation.outcome.collisions > collisions {
                    (before, collisions) = (simulation.outcome.delay_sum, simulation.outcome.collisions);
                    // The delays of this interval's busy period are this collision's already.
                    before = before.saturating_sub(simulation.carried() * followers);
                    let slowed = p99.is_some_and(|p99| simulation.carried() > Nanos(p99));
                    slowed_before = simulation.outcome.slowed - if slowed { followers } else { 0 };
                }
                let apart = once_in.min(100 * service).min(patience);
                let exceptions = if patience == u64::MAX { 0 } else { 1 + clock / apart };
                let forgotten = if halves_in == u64::MAX { 0 } else { 1 + clock / halves_in };
                let collided = (1 + exceptions) * (1 + forgotten);
                most_slowed = most_slowed.max(simulation.outcome.slowed - slowed_before);
                let allowed = requests + 100 * most_slowed * collided;
                prop_assert!(100 * simulation.outcome.slowed <= allowed);
                costliest = costliest.max(simulation.outcome.delay_sum.saturating_sub(before));
                let bound = Nanos(target) * requests + costliest * collided;
                prop_assert!(simulation.outcome.delay_sum <= bound);
            }
        }
    }
}
