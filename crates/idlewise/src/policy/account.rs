//! The account of a slowdown: what the foreground has earned, and what its delays have spent.

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
}

impl Account {
    /// An account with the earnings of `requests` that were not delayed.
    pub fn opened(goal: Nanos, requests: u64, credit: u64, patience: Nanos) -> Self {
        let of = |requests: u64| i128::from(requests) * i128::from(goal.0);
        Self { goal, balance: of(requests), credit: of(credit), patience }
    }

    /// So many requests were served, delayed by `delays` nanoseconds together.
    pub fn served(&mut self, requests: u64, delays: u128) {
        let earned = i128::from(requests) * i128::from(self.goal.0);
        // Delays of 10^22 years are cut short.
        self.balance = (self.balance + earned).saturating_sub(i128::try_from(delays).unwrap_or(i128::MAX));
    }

    /// Whether no work may begin when the device has been idle for `elapsed`.
    pub fn forbids(&self, elapsed: Nanos) -> bool {
        self.balance < 0 && self.may_go_on_at().is_none_or(|at| elapsed < at)
    }

    /// By how much it is overdrawn: a sum of delays.
    pub fn overdrawn(&self) -> Nanos {
        Nanos(u64::try_from(self.balance.saturating_neg().max(0)).unwrap_or(u64::MAX))
    }

    /// The idle time after which work goes on though it is overdrawn; `None` where it is overdrawn by more than that allows.
    pub fn may_go_on_at(&self) -> Option<Nanos> {
        (self.balance >= -self.credit).then_some(self.patience)
    }

    /// After so many more foreground requests, none of them delayed, it is no longer overdrawn; `None` if they earn nothing.
    pub fn requests_to_even(&self) -> Option<u64> {
        (self.goal > Nanos::ZERO).then(|| self.overdrawn().0.div_ceil(self.goal.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_by_how_much_and_until_when() {
        let mut account = Account::opened(Nanos(10), 2, 5, Nanos(300));
        assert!(!account.forbids(Nanos::ZERO));
        account.served(1, 35 + 10);
        assert_eq!((account.balance, account.overdrawn(), account.requests_to_even()), (-15, Nanos(15), Some(2)));
        assert_eq!(account.may_go_on_at(), Some(Nanos(300)));
        assert!(account.forbids(Nanos(299)) && !account.forbids(Nanos(300)));
        account.served(0, 36);
        assert_eq!((account.may_go_on_at(), account.requests_to_even()), (None, Some(6)));
        assert!(account.forbids(Nanos(u64::MAX)));
        account.served(6, 0);
        assert!(!account.forbids(Nanos::ZERO) && account.overdrawn() == Nanos::ZERO);
    }

    #[test]
    fn a_goal_of_zero_and_endless_delays_are_no_trouble() {
        let mut account = Account::opened(Nanos::ZERO, 100, 900, Nanos(300));
        account.served(u64::MAX, u128::MAX);
        account.served(u64::MAX, u128::MAX);
        assert_eq!((account.requests_to_even(), account.overdrawn()), (None, Nanos(u64::MAX)));
    }
}
