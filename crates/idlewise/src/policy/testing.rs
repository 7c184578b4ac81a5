//! For tests of policies, and of what drives them.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{Account, COMMON, Decision, Entry, Parameters, Policy};
use crate::{Bytes, Nanos};

/// Histories that a policy is driven through.
const HISTORIES: u64 = 200;
/// Idle intervals in each.
const INTERVALS: usize = 40;
/// Decisions in an interval, at most: some policies never stop.
const DECISIONS: usize = 200;

/// A policy whose calls and answers are looked at: it panics where whoever drives it, or the policy, breaks the protocol of
/// [`Policy`].
#[derive(Clone, Debug)]
pub struct Checked<P> {
    inner: P,
    phase: Phase,
}

/// Where a policy is in the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Busy,
    /// Last asked at this elapsed time.
    Idle(Nanos),
    Stopped,
}

impl<P: Policy> Checked<P> {
    /// Looks at what `inner` is told and answers, from before the first interval on.
    pub fn new(inner: P) -> Self {
        Self { inner, phase: Phase::Busy }
    }

    /// What was looked at.
    pub fn into_inner(self) -> P {
        self.inner
    }
}

impl<P: Policy> Policy for Checked<P> {
    fn interval_foreseen(&mut self, length: Nanos) {
        assert_eq!(self.phase, Phase::Busy, "an interval is foreseen while one is");
        self.inner.interval_foreseen(length);
    }

    fn idle_began(&mut self, busy: Nanos, at: Nanos) {
        assert_eq!(self.phase, Phase::Busy, "an interval begins while one is");
        self.phase = Phase::Idle(Nanos::ZERO);
        self.inner.idle_began(busy, at);
    }

    fn decide(&mut self, elapsed: Nanos) -> Decision {
        match self.phase {
            Phase::Busy => panic!("a policy is asked while the device is busy"),
            Phase::Stopped => panic!("a policy is asked after it stopped"),
            Phase::Idle(last) => assert!(elapsed >= last, "a policy is asked for {elapsed} of idle time after {last}"),
        }
        self.phase = Phase::Idle(elapsed);
        let decision = self.inner.decide(elapsed);
        match decision {
            Decision::Wait { until } => assert!(until > elapsed, "it waits until {until} when {elapsed} are over"),
            Decision::Issue { size, count } => assert!(size > Bytes(0) && count > 0, "it issues {count} of {size}"),
            Decision::IssueUntil { size, until } => assert!(
                size > Bytes(0) && until > elapsed,
                "it issues requests of {size} until {until} when {elapsed} are over"
            ),
            Decision::Paced { size, .. } => assert!(size > Bytes(0), "it issues requests of {size}"),
            Decision::Stop => self.phase = Phase::Stopped,
        }
        decision
    }

    fn foreground_arrived(&mut self, idle: Nanos, collision: Nanos) {
        assert_ne!(self.phase, Phase::Busy, "foreground work ends an interval that never began");
        self.phase = Phase::Busy;
        self.inner.foreground_arrived(idle, collision);
    }

    fn foreground_served(&mut self, requests: u64, delays: Nanos) {
        assert!(requests > 0 || delays == Nanos::ZERO, "nobody was delayed by {delays}");
        self.inner.foreground_served(requests, delays);
    }

    fn account(&self) -> Option<Account> {
        self.inner.account()
    }
}

/// Drives new policies from `make` through some hundred random and adversarial histories: intervals from a nanosecond to a year, bursts,
/// idle times that nobody foresees, requests without an end, delays of centuries. The same histories for the same `seed`.
///
/// # Panics
/// Where a policy panics, waits for the past, or issues nothing; the message has the seed.
///
/// # Examples
/// ```
/// use idlewise::policy::{Waiting, testing};
/// use idlewise::{Bytes, Nanos};
///
/// testing::check(|| Waiting { idle_wait: Nanos::from_millis(10), request_size: Bytes::from_kib(64) }, 1);
/// ```
pub fn check<P: Policy>(make: impl Fn() -> P, seed: u64) {
    for history in 0..HISTORIES {
        let random = Pcg64Mcg::seed_from_u64(seed.wrapping_add(history));
        let run = std::panic::AssertUnwindSafe(|| History { random, clock: 0 }.drive(&mut Checked::new(make())));
        if let Err(cause) = std::panic::catch_unwind(run) {
            let said = cause.downcast_ref::<String>().map(String::as_str);
            let said = said.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
            panic!("policy, seed {}: {said}", seed.wrapping_add(history));
        }
    }
}

struct History {
    random: Pcg64Mcg,
    clock: u64,
}

impl History {
    fn drive(mut self, policy: &mut Checked<impl Policy>) {
        // In some histories all intervals are alike, in others none is.
        let (usual, regular) = (self.time(), self.random.random_bool(0.3));
        for _ in 0..INTERVALS {
            let length = if regular { usual } else { self.time() };
            let busy = Nanos(self.time().0.min(1 << 40));
            self.clock = self.clock.saturating_add(busy.0);
            if self.random.random_bool(0.2) {
                policy.interval_foreseen(length);
            }
            policy.idle_began(busy, Nanos(self.clock));
            let over = self.interval(policy, length);
            self.clock = self.clock.saturating_add(length.0).saturating_add(over.0);
            policy.foreground_arrived(length, over);
            let bits = self.random.random_range(0..20u32);
            let requests = self.random.random_range(1..=1u64 << bits);
            policy.foreground_served(requests, Nanos(over.0.saturating_mul(requests)));
        }
    }

    /// Asks as a worker would whose requests take some random time; by how much the last one overruns the interval.
    fn interval(&mut self, policy: &mut impl Policy, length: Nanos) -> Nanos {
        let (mut elapsed, service) = (Nanos::ZERO, self.time());
        // Whoever works may come late, or not at all.
        match self.random.random_range(0..10) {
            0 => return Nanos::ZERO,
            1..3 => elapsed = Nanos(self.random.random_range(0..length.0)),
            _ => {}
        }
        for _ in 0..DECISIONS {
            let (count, pause) = match policy.decide(elapsed) {
                Decision::Stop => return Nanos::ZERO,
                Decision::Wait { until } => {
                    elapsed = until;
                    if elapsed >= length {
                        return Nanos::ZERO;
                    }
                    continue;
                }
                Decision::Issue { count, .. } => (count.min(1 + self.random.random_range(0..100)), Nanos::ZERO),
                Decision::IssueUntil { until, .. } => {
                    let fit = until.since(elapsed).0.div_ceil(service.0);
                    (fit.min(1 + self.random.random_range(0..100)), Nanos::ZERO)
                }
                Decision::Paced { pause, .. } => (1, pause),
            };
            let worked = elapsed.0.saturating_add(service.0.saturating_mul(count));
            if worked >= length.0 {
                return Nanos(worked).since(length).min(service);
            }
            elapsed = Nanos(worked.saturating_add(pause.0));
            if elapsed >= length {
                return Nanos::ZERO;
            }
        }
        Nanos::ZERO
    }

    /// From a nanosecond to a year, of any magnitude.
    fn time(&mut self) -> Nanos {
        let bits = self.random.random_range(0..55u32);
        Nanos(1 + self.random.random_range(0..1u64 << bits))
    }
}

/// Values with which a policy of the table can be built: the usual one of each parameter.
pub fn parameters_of(entry: &Entry) -> Parameters {
    let all = entry.parameters.iter().chain(&COMMON);
    all.fold(Parameters::default(), |parameters, one| parameters.with(*one, one.usual()))
}

#[cfg(all(test, feature = "files"))]
mod tests {
    use super::*;
    use crate::disk::DiskModel;
    use crate::idle::Idleness;
    use crate::policy::{BUDGET, POLICIES, Setting, build};

    #[test]
    fn every_policy_of_the_table_keeps_the_protocol() {
        let (past, model) = (Idleness::default(), DiskModel::ultrastar_15k450());
        let mut checked = 0;
        for entry in POLICIES.iter() {
            let held = parameters_of(entry);
            for given in [held.clone().without(BUDGET), held] {
                let setting = Setting::scrub(&past, &model);
                // Some need a past to learn from.
                let Ok(_) = build(entry.name, &given, &setting) else { continue };
                check(|| build(entry.name, &given, &setting).unwrap(), 7);
                checked += 1;
            }
        }
        assert!(checked > POLICIES.names().len(), "{checked}");
    }

    struct Wrong(Decision);

    impl Policy for Wrong {
        fn decide(&mut self, _elapsed: Nanos) -> Decision {
            self.0
        }
    }

    #[test]
    fn misuse_is_found() {
        let wrong = [
            Decision::Wait { until: Nanos::ZERO },
            Decision::Issue { size: Bytes(0), count: 1 },
            Decision::Issue { size: Bytes(1), count: 0 },
            Decision::IssueUntil { size: Bytes(1), until: Nanos::ZERO },
            Decision::Paced { size: Bytes(0), pause: Nanos(1) },
        ];
        for decision in wrong {
            assert!(std::panic::catch_unwind(|| check(|| Wrong(decision), 1)).is_err(), "{decision:?}");
        }
        let mut stopped = Checked::new(Wrong(Decision::Stop));
        stopped.idle_began(Nanos(1), Nanos(1));
        stopped.decide(Nanos(0));
        let again = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| stopped.decide(Nanos(1))));
        assert!(again.is_err());
    }
}
