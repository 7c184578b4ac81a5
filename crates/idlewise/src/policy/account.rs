//! The account of a slowdown: what the foreground has earned, what its delays have spent, and when work may begin.
//!
//! A 99th percentile has a tail of its own, counted in requests instead of time: each foreground request earns one, and each that is
//! slowed by more than the 99th percentile spends a hundred.

use super::Reserve;
use crate::{Nanos, TotalTime};

/// On what terms an account is kept. The default ones are those of [`super::Budget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// At first it may hold less than one more collision may cost, by what so many requests earn at most, but no less than nothing: an
    /// empty account would leave alone even a disk that nobody uses.
    pub opening: u64,
    /// That is taken back evenly while the first so many requests are served. It is no less than `opening`.
    pub taken_back_over: u64,
    /// Idle time after which work may begin though the account has held too little for all of it: a disk that nobody uses earns nothing.
    /// Each time that it was busy counts ten times against it.
    pub patience: Nanos,
    /// Then the next time after a hundred times as long as that work took, or later where the goal is small, but after so long at most.
    pub once_in: Nanos,
    /// What is owed halves in so much time: an hour of many requests behind one delay must not end the work for months.
    pub halves_in: Nanos,
}

/// Work for which the account held too little takes no more than this part of the time that nobody uses the device, and delays requests that
/// do not aim at it by no more than this part of the goal.
const EXCEPTED: u64 = 100;
const OF_THE_GOAL: u64 = 4;
/// How much the time that a device was busy counts against its idle time.
const BUSY: u64 = 10;

impl Default for Terms {
    fn default() -> Self {
        Self {
            opening: 100,
            taken_back_over: 500,
            patience: Nanos::from_secs(300),
            once_in: Nanos::from_secs(24 * 3_600),
            halves_in: Nanos::from_secs(6 * 3_600),
        }
    }
}

/// How the account stands. Every foreground request earns the mean slowdown that is the goal, every delay spends what it cost. Work may
/// begin while the account holds what one more collision may cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Account {
    /// The mean slowdown to keep: what a foreground request earns.
    pub goal: Nanos,
    /// On what terms it is kept.
    pub terms: Terms,
    /// Foreground requests that were served.
    pub requests: u64,
    /// Earned less spent, in nanoseconds of delay; overdrawn below zero.
    pub balance: i128,
    /// What one more collision may cost.
    pub reserve: Reserve,
    /// How the 99th percentile stands, where one is to be kept.
    pub tail: Option<Tail>,
    interval: Interval,
    /// From then on an idle interval may be used though the account holds too little, on the clock of [`super::Policy::idle_began`]; zero as
    /// long as that is not known. Busy times put it off.
    pub exception_from: Nanos,
    /// Idle time that must pass before.
    pause: Nanos,
}

/// How the account of a 99th percentile stands, in foreground requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    /// The 99th percentile to keep.
    pub goal: Nanos,
    /// Foreground requests, less a hundred for each that was slowed by more than the goal; overdrawn below zero.
    pub balance: i128,
}

/// The present idle interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Interval {
    since: Nanos,
    /// When it ended; its beginning as long as it has not.
    until: Nanos,
    /// It is used though the account holds too little, from so much idle time on.
    excepted: Option<Nanos>,
    /// What the busy period before it has come to so far.
    requests: u64,
    delays: Nanos,
}

impl Tail {
    /// What a request that is slowed by more than the goal spends.
    const PRICE: i128 = 100;

    fn served(&mut self, requests: u64, delays: Nanos) {
        let slowed = TotalTime::from(delays) > self.goal * requests;
        let earned = i128::from(requests) * if slowed { 1 - Self::PRICE } else { 1 };
        self.balance = self.balance.saturating_add(earned);
    }

    fn reserve(&self, reserve: &Reserve) -> i128 {
        if reserve.slowdown() > self.goal { Self::PRICE * i128::from(reserve.requests()) } else { 0 }
    }
}

impl Account {
    /// An account that begins now.
    pub fn new(goal: Nanos, terms: Terms) -> Self {
        Self {
            goal,
            terms,
            requests: 0,
            balance: 0,
            reserve: Reserve::default(),
            tail: None,
            interval: Interval::default(),
            exception_from: Nanos::ZERO,
            pause: terms.patience,
        }
    }

    /// The same from now on with another mean to keep: what is owed stays owed, but what was earned at another mean is not to be spent.
    pub fn with_goal(self, goal: Nanos) -> Self {
        if goal == self.goal { self } else { Self { goal, balance: self.balance.min(0), ..self } }
    }

    /// The same that also keeps a 99th percentile.
    pub fn and_tail(self, goal: Nanos) -> Self {
        Self { tail: Some(Tail { goal, balance: 0 }), ..self }
    }

    /// The device became idle, at `at` on the clock of [`super::Policy::idle_began`].
    pub fn idle_began(&mut self, at: Nanos) {
        // Told again, to another policy within the same account.
        if at == self.interval.since {
            return;
        }
        let Interval { since, until, requests, delays, .. } = self.interval;
        self.reserve.busy_period(requests, delays);
        if since > Nanos::ZERO {
            self.fade(at.since(since));
        }
        let latest = later(at, self.pause);
        let put_off = at.since(until).0.saturating_mul(BUSY);
        if self.exception_from == Nanos::ZERO {
            self.exception_from = latest;
        } else if !self.forbids_usually() {
            self.pause = self.pause.max(self.terms.patience);
            self.exception_from = self.exception_from.max(later(at, self.pause));
        } else if since > Nanos::ZERO {
            self.exception_from = later(self.exception_from, Nanos(put_off)).min(latest.max(self.exception_from));
        }
        self.interval = Interval { since: at, until: at, ..Interval::default() };
    }

    /// So much time has passed: part of what is owed is forgotten.
    fn fade(&mut self, time: Nanos) {
        let forgotten = 1.0 - (-(time.0 as f64) / self.terms.halves_in.0.max(1) as f64).exp2();
        let balances = [Some(&mut self.balance), self.tail.as_mut().map(|tail| &mut tail.balance)];
        for balance in balances.into_iter().flatten().filter(|balance| **balance < 0) {
            *balance = balance.saturating_add((balance.unsigned_abs() as f64 * forgotten) as i128);
        }
    }

    /// The interval ended after `length`, and work went on for `collision` after that.
    pub fn idle_ended(&mut self, length: Nanos, collision: Nanos) {
        self.reserve.idle(length);
        self.interval.until = later(self.interval.since, length);
        if let Some(from) = self.interval.excepted {
            let worked = later(length, collision).since(from);
            let of_the_goal = OF_THE_GOAL.saturating_mul(self.reserve.slowdown().0).checked_div(self.goal.0);
            let times = of_the_goal.unwrap_or(u64::MAX).max(EXCEPTED);
            self.pause = Nanos(worked.0.max(1).saturating_mul(times)).min(self.terms.once_in);
            self.exception_from = later(self.interval.until, self.pause);
        }
    }

    /// Work begins when the device has been idle for `elapsed`.
    pub fn used(&mut self, elapsed: Nanos) {
        if self.forbids_usually() && self.interval.excepted.is_none() {
            self.interval.excepted = Some(elapsed);
            // Until it is known how long it takes.
            self.exception_from = later(later(self.interval.since, elapsed), self.terms.once_in);
        }
    }

    /// So many requests were served, delayed by `delays` together: where a 99th percentile is kept, each of them by more
    /// than that, or none.
    pub fn served(&mut self, requests: u64, delays: Nanos) {
        let earned = i128::from(requests) * i128::from(self.goal.0);
        self.balance = self.balance.saturating_add(earned).saturating_sub(delays.0.into());
        self.requests = self.requests.saturating_add(requests);
        self.tail.iter_mut().for_each(|tail| tail.served(requests, delays));
        self.interval.requests = self.interval.requests.saturating_add(requests);
        self.interval.delays = Nanos(self.interval.delays.0.saturating_add(delays.0));
    }

    /// Whether no work may begin when the device has been idle for `elapsed`.
    pub fn forbids(&self, elapsed: Nanos) -> bool {
        self.forbids_usually() && self.interval.excepted.is_none() && elapsed < self.may_go_on_at()
    }

    /// Whether it holds less than one more collision may cost.
    fn forbids_usually(&self) -> bool {
        self.lacks() > Nanos::ZERO || self.lacks_requests() > 0
    }

    /// How much less it holds than it must: a sum of delays.
    pub fn lacks(&self) -> Nanos {
        let lacks = self.must_hold(self.requests).saturating_sub(self.balance);
        Nanos(u64::try_from(lacks.max(0)).unwrap_or(u64::MAX))
    }

    /// How many requests that of the 99th percentile lacks.
    pub fn lacks_requests(&self) -> u64 {
        let lacks = self.tail.map_or(0, |tail| self.tail_must_hold(&tail, self.requests).saturating_sub(tail.balance));
        u64::try_from(lacks.max(0)).unwrap_or(u64::MAX)
    }

    /// What it must hold for work to begin once so many requests are served: the reserve, but for what is left of the opening.
    fn must_hold(&self, served: u64) -> i128 {
        i128::from(self.reserve.cost().0).saturating_sub(self.opening(served, self.goal.0)).max(0)
    }

    fn tail_must_hold(&self, tail: &Tail, served: u64) -> i128 {
        tail.reserve(&self.reserve).saturating_sub(self.opening(served, 1)).max(0)
    }

    /// What is left of the opening once so many requests are served, where each earns `each`.
    fn opening(&self, served: u64, each: u64) -> i128 {
        let Terms { opening, taken_back_over, .. } = self.terms;
        let left = taken_back_over.saturating_sub(served);
        i128::from(each) * i128::from(opening) * i128::from(left) / i128::from(taken_back_over.max(1))
    }

    /// The idle time after which work may begin in this interval though it holds too little.
    pub fn may_go_on_at(&self) -> Nanos {
        match self.exception_from {
            Nanos::ZERO => self.terms.patience,
            from => from.since(self.interval.since),
        }
    }

    /// After so many more foreground requests, none of them delayed, it holds enough; `None` if they earn nothing.
    pub fn requests_to_go_on(&self) -> Option<u64> {
        // The least number of requests that earn enough; the opening is taken back on the way.
        let of = |balance: i128, each: u64, must_hold: &dyn Fn(u64) -> i128| {
            let enough = |requests: u64| {
                let holds = balance.saturating_add(i128::from(requests) * i128::from(each));
                holds >= must_hold(self.requests.saturating_add(requests))
            };
            if enough(0) || each == 0 {
                return enough(0).then_some(0);
            }
            let (mut few, mut many) = (0, u64::MAX);
            while many - few > 1 {
                let middle = few + (many - few) / 2;
                *(if enough(middle) { &mut many } else { &mut few }) = middle;
            }
            Some(many)
        };
        let time = of(self.balance, self.goal.0, &|served| self.must_hold(served))?;
        let tail =
            self.tail.map_or(Some(0), |tail| of(tail.balance, 1, &|served| self.tail_must_hold(&tail, served)))?;
        Some(time.max(tail))
    }
}

fn later(time: Nanos, by: Nanos) -> Nanos {
    Nanos(time.0.saturating_add(by.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn terms(opening: u64, taken_back_over: u64) -> Terms {
        Terms { opening, taken_back_over, ..Terms::default() }
    }

    #[test]
    fn says_by_how_much_and_until_when() {
        let mut account = Account::new(Nanos(10), terms(2, 4));
        assert!(!account.forbids(Nanos::ZERO));
        account.reserve.expect(Nanos(18));
        account.served(1, Nanos(45));
        // 18, of which 15 need not be there yet, and 35 more spent than earned.
        assert_eq!((account.balance, account.lacks(), account.requests_to_go_on()), (-35, Nanos(38), Some(6)));
        assert_eq!(account.may_go_on_at(), Nanos::from_secs(300));
        assert!(account.forbids(Nanos::from_secs(299)) && !account.forbids(Nanos::from_secs(300)));
        account.served(3, Nanos(0));
        assert_eq!((account.lacks(), account.requests_to_go_on()), (Nanos(23), Some(3)));
        account.served(3, Nanos(0));
        assert!(!account.forbids(Nanos::ZERO) && account.lacks() == Nanos::ZERO);
        // Before such a busy period as was there one more would delay seven requests.
        account.idle_began(Nanos(1));
        account.idle_ended(Nanos(20_000), Nanos::ZERO);
        let lacks = account.reserve.cost().0 - 25;
        assert!(lacks > 50);
        assert_eq!((account.lacks(), account.requests_to_go_on()), (Nanos(lacks), Some(lacks.div_ceil(10))));
    }

    #[test]
    fn one_request_in_a_hundred_may_be_slowed_by_more_than_the_99th_percentile() {
        let mut account = Account::new(Nanos(1_000_000), Terms::default()).and_tail(Nanos(50));
        account.reserve.expect(Nanos(60));
        assert!(!account.forbids(Nanos::ZERO));
        account.served(99, Nanos(99 * 50));
        account.served(1, Nanos(51));
        // 100 earned and 100 spent; of the 100 that the next one costs 80 need not be there yet.
        assert_eq!((account.tail.unwrap().balance, account.lacks_requests()), (0, 20));
        assert_eq!((account.lacks(), account.requests_to_go_on()), (Nanos::ZERO, Some(25)));
        assert!(account.forbids(Nanos::from_secs(299)) && !account.forbids(Nanos::from_secs(300)));
        account.served(25, Nanos(0));
        assert!(!account.forbids(Nanos::ZERO));
        let mut short = Account::new(Nanos(1_000_000), Terms::default()).and_tail(Nanos(50));
        short.reserve.expect(Nanos(50));
        short.served(500, Nanos(0));
        assert_eq!(short.lacks_requests(), 0, "no request is slowed by more");
    }

    #[test]
    fn what_was_earned_at_another_mean_is_not_spent() {
        let mut account = Account::new(Nanos(1_000), Terms::default());
        account.served(100, Nanos(40_000));
        let changed = account.with_goal(Nanos(10));
        assert_eq!((account.balance, changed.balance, changed.goal), (60_000, 0, Nanos(10)));
        assert_eq!(account.with_goal(Nanos(1_000)).balance, 60_000);
        account.served(0, Nanos(100_000));
        assert_eq!(account.with_goal(Nanos(10)).balance, -40_000);
    }

    /// Whoever reads just when work is in service makes each of its requests cost more than it earns. That must not end the work.
    #[test]
    fn who_ambushes_each_request_leaves_a_hundredth_of_the_time() {
        const SERVICE: Nanos = Nanos::from_millis(10);
        let mut account = Account::new(Nanos::from_millis(1), terms(0, 0));
        account.reserve.expect(SERVICE);
        let (mut now, mut worked) = (Nanos::from_secs(1), 0);
        let end = Nanos::from_secs(24 * 3_600);
        while now < end {
            account.idle_began(now);
            let wait = account.may_go_on_at();
            account.used(wait);
            worked += 1;
            account.idle_ended(wait, SERVICE);
            account.served(4, Nanos::from_millis(40));
            now = later(now, later(wait, Nanos::from_millis(20)));
        }
        let share = worked as f64 * SERVICE.as_secs_f64() / end.as_secs_f64();
        assert!((0.005..0.0101).contains(&share), "{share}");
        // On a disk that others use for more than a tenth of the time nothing is excepted.
        let mut account = Account::new(Nanos::from_millis(1), terms(0, 0));
        account.served(1, Nanos::from_secs(10_000));
        for second in 1..10_000 {
            account.idle_began(Nanos::from_secs(second));
            assert!(account.forbids(Nanos::from_millis(850)));
            account.idle_ended(Nanos::from_millis(850), Nanos::ZERO);
        }
    }

    #[test]
    fn what_is_owed_halves() {
        let mut account = Account::new(Nanos(10), terms(0, 0)).and_tail(Nanos(1));
        account.idle_began(Nanos(1));
        account.served(100, Nanos(1_000_000 + 1_000));
        let hours = |hours: u64| Nanos(1 + Nanos::from_secs(hours * 3_600).0);
        account.idle_began(hours(6));
        assert_eq!((account.balance, account.tail.map(|tail| tail.balance)), (-500_000, Some(-4_950)));
        account.idle_began(hours(18));
        assert_eq!(account.balance, -125_000);
        account.served(200_000, Nanos(0));
        let held = account.balance;
        account.idle_began(hours(30));
        assert_eq!(account.balance, held, "what is held stays");
    }

    #[test]
    fn a_goal_of_zero_and_endless_delays_are_no_trouble() {
        let mut account = Account::new(Nanos::ZERO, Terms::default());
        account.served(u64::MAX, Nanos(u64::MAX));
        account.served(u64::MAX, Nanos(u64::MAX));
        assert_eq!((account.requests_to_go_on(), account.lacks()), (None, Nanos(u64::MAX)));
    }

    proptest! {
        #[test]
        fn goes_on_after_as_many_requests_as_it_says_and_not_before(
            goal in 1u64..1_000, (over, opening) in (1u64..60).prop_flat_map(|over| (Just(over), 0..=over)),
            served in 0u64..100, delays in 0u64..100_000, expected in 0u64..5_000, p99 in prop::option::of(0u64..100),
        ) {
            let mut account = Account::new(Nanos(goal), terms(opening, over));
            account.reserve.expect(Nanos(expected));
            let mut account = p99.map_or(account, |p99| account.and_tail(Nanos(p99)));
            account.served(served, Nanos(delays));
            let requests = account.requests_to_go_on().unwrap();
            let after = |requests| { let mut later = account; later.served(requests, Nanos(0)); later };
            prop_assert!(!after(requests).forbids(Nanos::ZERO));
            prop_assert!(requests == 0 || after(requests - 1).forbids(Nanos::ZERO));
        }
    }
}
