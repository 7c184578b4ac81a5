//! The account of a slowdown: what the foreground has earned, and what its delays have spent.
//!
//! A 99th percentile has a tail of its own, counted in requests instead of time: each foreground request earns one, and each that is
//! slowed by more than the 99th percentile spends a hundred.

use crate::Nanos;

/// However much is overdrawn beyond the credit, idleness of so many times the patience pays it back.
const LONGEST: i128 = 4;

/// What a patience of idleness pays back.
fn pace(worst: i128, credit: i128) -> i128 {
    credit.max(worst / LONGEST).max(1)
}

/// How the account stands. Every foreground request earns the mean slowdown that is the goal, every delay spends what it cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// The mean slowdown to keep: what a foreground request earns.
    pub goal: Nanos,
    /// Earned less spent, in nanoseconds of delay; overdrawn below zero.
    pub balance: i128,
    /// What may be overdrawn once the device has been idle for `patience`, in nanoseconds of delay.
    pub credit: i128,
    /// What was overdrawn at worst since it last was not, where that was more than the credit: idleness pays it back, in whatever pieces.
    pub worst: i128,
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
    /// What was overdrawn at worst, as of the mean.
    pub worst: i128,
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
        Self { goal, balance: of(requests), credit: of(credit), worst: 0, patience, tail: None }
    }

    /// The same that also keeps a 99th percentile, with the earnings and the credit of as many requests.
    pub fn and_tail(self, goal: Nanos, requests: u64, credit: u64) -> Self {
        Self { tail: Some(Tail { goal, balance: requests.into(), credit: credit.into(), worst: 0 }), ..self }
    }

    /// So many requests were served, delayed by `delays` together: where a 99th percentile is kept, each of them by more
    /// than that, or none.
    pub fn served(&mut self, requests: u64, delays: Nanos) {
        let earned = i128::from(requests) * i128::from(self.goal.0);
        self.balance = (self.balance + earned).saturating_sub(delays.0.into());
        self.tail.iter_mut().for_each(|tail| tail.served(requests, delays));
        self.note();
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

    /// The idle time after which work goes on though it is overdrawn: the patience where no more is overdrawn than the credit; where more
    /// is, as much as pays all of it back. `None` where there is no credit.
    pub fn may_go_on_at(&self) -> Option<Nanos> {
        let patience = i128::from(self.patience.0);
        let wait = |balance: i128, credit: i128, worst: i128| match (-balance).max(0) {
            _ if credit == 0 => (balance >= 0).then_some(0),
            0 => Some(0),
            debt if worst == 0 => (debt <= credit).then_some(patience),
            debt => {
                let paid_back = debt.saturating_mul(patience) / pace(worst, credit) + 1;
                Some(if debt <= credit { paid_back.min(patience) } else { paid_back })
            }
        };
        let tail = self.tail.map_or(Some(0), |tail| wait(tail.balance, tail.credit, tail.worst))?;
        let mean = wait(self.balance, self.credit, self.worst)?;
        Some(Nanos(u64::try_from(mean.max(tail)).unwrap_or(u64::MAX)))
    }

    /// The device was idle for so long. Where more than the credit was overdrawn, that pays back: otherwise one burst of requests that
    /// were delayed together would end all work on a disk that is hardly used.
    pub fn idled(&mut self, idle: Nanos) {
        let patience = i128::from(self.patience.0.max(1));
        let pay_back = |balance: &mut i128, worst: &mut i128, credit: i128| {
            if *worst > 0 {
                let paid = i128::from(idle.0).saturating_mul(pace(*worst, credit)) / patience;
                *balance += paid.min(-*balance).max(0);
                *worst = if *balance >= 0 { 0 } else { *worst };
            }
        };
        pay_back(&mut self.balance, &mut self.worst, self.credit);
        self.tail.iter_mut().for_each(|tail| pay_back(&mut tail.balance, &mut tail.worst, tail.credit));
    }

    /// Notes what was overdrawn at worst, once that is more than the credit, until nothing is.
    fn note(&mut self) {
        let note = |balance: i128, worst: &mut i128, credit: i128| match -balance {
            ..=0 => *worst = 0,
            debt if credit > 0 && (debt > credit || *worst > 0) => *worst = (*worst).max(debt),
            _ => {}
        };
        note(self.balance, &mut self.worst, self.credit);
        self.tail.iter_mut().for_each(|tail| note(tail.balance, &mut tail.worst, tail.credit));
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
        // The credit is 50, and 51 are overdrawn: 300 of idleness would pay 50 back, in whatever pieces.
        assert_eq!((account.may_go_on_at(), account.requests_to_even()), (Some(Nanos(307)), Some(6)));
        assert!(account.forbids(Nanos(306)) && !account.forbids(Nanos(307)));
        account.idled(Nanos(6));
        assert_eq!((account.balance, account.may_go_on_at()), (-50, Some(Nanos(300))));
        (0..49).for_each(|_| account.idled(Nanos(6)));
        assert_eq!((account.balance, account.may_go_on_at()), (-1, Some(Nanos(7))));
        // However much it is, four times the patience are enough.
        account.served(0, Nanos(1_200_000));
        assert_eq!(account.may_go_on_at(), Some(Nanos(1_201)));
        account.idled(Nanos(600));
        assert!((-600_200..=-599_900).contains(&account.balance), "{account:?}");
        account.idled(Nanos(601));
        assert_eq!((account.balance, account.worst), (0, 0));
        // Within the credit nothing is paid back, and work goes on after the patience.
        account.served(0, Nanos(50));
        account.idled(Nanos(10_000));
        assert_eq!((account.balance, account.may_go_on_at()), (-50, Some(Nanos(300))));
        account.served(0, Nanos(1));
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
        assert!(account.forbids(Nanos(300)) && account.may_go_on_at() > Some(Nanos(300)));
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
