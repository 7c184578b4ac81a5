//! The account of a slowdown: what the foreground has earned, and what its delays have spent.
//!
//! A 99th percentile has a tail of its own, counted in requests instead of time: each foreground request earns one, and each that is
//! slowed by more than the 99th percentile spends a hundred.

use crate::Nanos;

/// How the account stands. Every foreground request earns the mean slowdown that is the goal, every delay spends what it cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// The mean slowdown to keep: what a foreground request earns.
    pub goal: Nanos,
    /// Earned less spent, in nanoseconds of delay; overdrawn below zero.
    pub balance: i128,
    /// What may be overdrawn once the device has been idle for `patience`, in nanoseconds of delay.
    pub credit: i128,
    /// Idle time from which on that may be.
    pub patience: Nanos,
    /// How the 99th percentile stands, where one is to be kept.
    pub tail: Option<Tail>,
}

/// How the account of a 99th percentile stands, in foreground requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    /// The 99th percentile to keep.
    pub goal: Nanos,
    /// Foreground requests, less a hundred for each that was slowed by more than the goal; overdrawn below zero.
    pub balance: i128,
    /// What may be overdrawn once the device has been idle for long.
    pub credit: i128,
}

impl Tail {
    /// What a request that is slowed by more than the goal spends.
    const PRICE: i128 = 100;

    fn served(&mut self, requests: u64, delays: Nanos) {
        let slowed = u128::from(delays.0) > u128::from(self.goal.0) * u128::from(requests);
        self.balance += i128::from(requests) * if slowed { 1 - Self::PRICE } else { 1 };
    }

    /// By how many foreground requests it is overdrawn.
    pub fn overdrawn(&self) -> u64 {
        u64::try_from(-self.balance.min(0)).unwrap_or(u64::MAX)
    }
}

impl Account {
    /// An account with the earnings of `requests` that were not delayed.
    pub fn opened(goal: Nanos, requests: u64, credit: u64, patience: Nanos) -> Self {
        let of = |requests: u64| i128::from(requests) * i128::from(goal.0);
        Self { goal, balance: of(requests), credit: of(credit), patience, tail: None }
    }

    /// The same that also keeps a 99th percentile, with the earnings and the credit of as many requests.
    pub fn and_tail(self, goal: Nanos, requests: u64, credit: u64) -> Self {
        Self { tail: Some(Tail { goal, balance: requests.into(), credit: credit.into() }), ..self }
    }

    /// So many requests were served, delayed by `delays` together: where a 99th percentile is kept, each of them by more
    /// than that, or none.
    pub fn served(&mut self, requests: u64, delays: Nanos) {
        let earned = i128::from(requests) * i128::from(self.goal.0);
        self.balance = (self.balance + earned).saturating_sub(delays.0.into());
        self.tail.iter_mut().for_each(|tail| tail.served(requests, delays));
    }

    /// Whether no work may begin when the device has been idle for `elapsed`.
    pub fn forbids(&self, elapsed: Nanos) -> bool {
        let overdrawn = self.balance < 0 || self.tail.is_some_and(|tail| tail.balance < 0);
        overdrawn && self.may_go_on_at().is_none_or(|at| elapsed < at)
    }

    /// By how much the mean is overdrawn: a sum of delays.
    pub fn overdrawn(&self) -> Nanos {
        Nanos(u64::try_from(self.balance.saturating_neg().max(0)).unwrap_or(u64::MAX))
    }

    /// The idle time after which work goes on though it is overdrawn; `None` where it is overdrawn by more than that allows.
    pub fn may_go_on_at(&self) -> Option<Nanos> {
        let allows = self.balance >= -self.credit && self.tail.is_none_or(|tail| tail.balance >= -tail.credit);
        allows.then_some(self.patience)
    }

    /// After so many more foreground requests, none of them delayed, it is no longer overdrawn; `None` if they earn nothing.
    pub fn requests_to_even(&self) -> Option<u64> {
        let tail = self.tail.map_or(0, |tail| tail.overdrawn());
        match (self.overdrawn().0, self.goal.0) {
            (0, _) => Some(tail),
            (_, 0) => None,
            (overdrawn, earned) => Some(tail.max(overdrawn.div_ceil(earned))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_by_how_much_and_until_when() {
        let mut account = Account::opened(Nanos(10), 2, 5, Nanos(300));
        assert!(!account.forbids(Nanos::ZERO));
        account.served(1, Nanos(35 + 10));
        assert_eq!((account.balance, account.overdrawn(), account.requests_to_even()), (-15, Nanos(15), Some(2)));
        assert_eq!(account.may_go_on_at(), Some(Nanos(300)));
        assert!(account.forbids(Nanos(299)) && !account.forbids(Nanos(300)));
        account.served(0, Nanos(36));
        assert_eq!((account.may_go_on_at(), account.requests_to_even()), (None, Some(6)));
        assert!(account.forbids(Nanos(u64::MAX)));
        account.served(6, Nanos(0));
        assert!(!account.forbids(Nanos::ZERO) && account.overdrawn() == Nanos::ZERO);
    }

    #[test]
    fn one_request_in_a_hundred_may_be_slowed_by_more_than_the_99th_percentile() {
        let mut account = Account::opened(Nanos(1_000_000), 100, 900, Nanos(300)).and_tail(Nanos(50), 100, 900);
        account.served(99, Nanos(99 * 50));
        account.served(1, Nanos(51));
        assert_eq!((account.tail.unwrap().balance, account.forbids(Nanos::ZERO)), (100, false));
        account.served(2, Nanos(200));
        let tail = account.tail.unwrap();
        assert_eq!((tail.overdrawn(), account.overdrawn(), account.requests_to_even()), (98, Nanos::ZERO, Some(98)));
        assert!(account.forbids(Nanos(299)) && !account.forbids(Nanos(300)));
        account.served(9, Nanos(9 * 51));
        assert!(account.forbids(Nanos(300)) && account.may_go_on_at().is_none());
        account.served(98 + 9 * 99, Nanos(0));
        assert!(!account.forbids(Nanos::ZERO));
    }

    #[test]
    fn a_goal_of_zero_and_endless_delays_are_no_trouble() {
        let mut account = Account::opened(Nanos::ZERO, 100, 900, Nanos(300));
        account.served(u64::MAX, Nanos(u64::MAX));
        account.served(u64::MAX, Nanos(u64::MAX));
        assert_eq!((account.requests_to_even(), account.overdrawn()), (None, Nanos(u64::MAX)));
    }
}
