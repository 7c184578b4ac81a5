//! How a run stands, as a checkpoint, a note and `--json` say it.

use std::collections::{BTreeMap, BTreeSet};

use idlewise::drive::{self, Compared};
use idlewise::policy::{Account, Delays, Terms};
use idlewise::tune::Goal;
use idlewise::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use super::Progress;
use crate::content::ALLOCATION;

/// The run that saved a checkpoint, as far as it had got.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSoFar {
    /// What it did, and why it waited: the name of a [`Doing`](super::Doing).
    pub doing: String,
    /// Its duration, without what it learned first.
    pub elapsed_s: f64,
    /// Bytes that it verified.
    pub verified_bytes: u64,
    /// Requests that it repeated.
    pub retries: u64,
    /// Foreground requests that it saw.
    pub foreground_requests: u64,
    /// Their mean slowdown.
    pub mean_slowdown_s: f64,
    /// Their longest slowdown.
    pub max_slowdown_s: f64,
    /// Of them, those slowed by more than the 99th percentile to keep, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowed_requests: Option<u64>,
    /// They, by their slowdown: how many were slowed by at most each of [`Slowdowns::LIMITS`](drive::Slowdowns::LIMITS) and more than the one
    /// before, then how many by more than all of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slowdowns: Vec<u64>,
    /// Request size in use.
    pub request_size_bytes: u64,
    /// Idle wait in use.
    pub idle_wait_s: f64,
    /// How the account of the mean slowdown stands, if one is to be kept; version 3 had none.
    #[serde(default)]
    pub account: Option<AccountSoFar>,
    /// The mean slowdown by experiment, once enough idle intervals were left alone to compare with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<ComparedSoFar>,
    /// How long the run has been paused because that held too little.
    #[serde(default)]
    pub overdrawn_s: f64,
    /// Why it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// What the owners of the data have said of them in a pass (`content`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContentSoFar {
    /// Who was asked, such as `btrfs`.
    pub owners: Vec<String>,
    /// Bytes that were compared with a checksum.
    pub judged_bytes: u64,
    /// Bytes that nothing uses.
    pub free_bytes: u64,
    /// Bytes that were not read, as nothing uses them.
    #[serde(default)]
    pub skipped_bytes: u64,
    /// Places that differed at a first look and not at a later one, or that were written all the time.
    pub transient: u64,
    /// Bytes that were read while an owner could not be asked.
    #[serde(default)]
    pub unasked_bytes: u64,
    /// Why not, the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unasked: Option<String>,
    /// File systems that were mounted in this pass or one before, and so could be asked, by their names; version 8 did not say.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub mounted: BTreeSet<String>,
    /// Bytes that were read while the file system of this name was not.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unmounted: BTreeMap<String, u64>,
    /// What lies in bad blocks: told in the end, and in no file, as anyone may read those and paths are not for everyone.
    #[serde(skip)]
    pub owned: Vec<Owned>,
}

impl ContentSoFar {
    /// How much was not compared as who could tell was silent, if any, and why. A file system that is never mounted is not missed: it may be
    /// what is left of an old one.
    pub fn silent(&self) -> Option<(Bytes, &str)> {
        let judges = self.owners.iter().any(|owner| owner != ALLOCATION);
        let missed = self.unmounted.iter().filter(|(name, _)| self.mounted.contains(*name));
        let bytes = missed.fold(self.unasked_bytes, |sum, (_, bytes)| sum.saturating_add(*bytes));
        let why = self.unasked.as_deref().unwrap_or("it was not mounted");
        (judges && bytes > 0).then_some((Bytes(bytes), why))
    }

    /// Bytes that were read while their file system was not mounted.
    pub fn unmounted_bytes(&self) -> u64 {
        self.unmounted.values().fold(0, |sum, bytes| sum.saturating_add(*bytes))
    }

    /// Whether anything was asked, or should have been.
    pub fn is_told(&self) -> bool {
        self.judged_bytes > 0 || self.unasked_bytes > 0 || !self.unmounted.is_empty()
    }

    /// What the next pass is to know: which file systems are missed if they are not mounted.
    pub(super) fn for_the_next(&self) -> Option<Self> {
        (!self.mounted.is_empty()).then(|| Self { mounted: self.mounted.clone(), ..Self::default() })
    }
}

/// What lies in a run of bad blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owned {
    /// First block of the run.
    pub lba: u64,
    /// Its length in blocks.
    pub blocks: u64,
    /// Paths of files from the top of their file system on, or a word such as `metadata`; empty where nothing is.
    pub names: Vec<String>,
}

/// What a run has learnt of what it costs, with which the next one goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Learnt {
    /// By comparing idle intervals that were used with some left alone.
    pub comparing: drive::Learnt,
    /// How long the delays of late were.
    pub delays: Delays,
}

/// The slowdown by experiment: foreground requests behind idle intervals that were used, compared with those behind intervals that
/// were left alone by lot. It takes the device for nothing in particular.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComparedSoFar {
    /// Mean slowdown of a foreground request, which may come out below zero.
    pub mean_slowdown_s: f64,
    /// The 95 % interval around it.
    pub low_s: f64,
    /// Its other end.
    pub high_s: f64,
    /// Idle intervals that were used.
    pub used: u64,
    /// Idle intervals that were left alone.
    pub left_alone: u64,
}

impl From<Compared> for ComparedSoFar {
    fn from(compared: Compared) -> Self {
        let Compared { mean_slowdown_ns, low_ns, high_ns, used, left } = compared;
        let [mean_slowdown_s, low_s, high_s] = [mean_slowdown_ns, low_ns, high_ns].map(|ns| ns as f64 / 1e9);
        Self { mean_slowdown_s, low_s, high_s, used, left_alone: left }
    }
}

/// The account of the slowdown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountSoFar {
    /// The mean slowdown to keep.
    pub goal_mean_slowdown_s: f64,
    /// Foreground requests that it is of.
    #[serde(default)]
    pub requests: u64,
    /// What they have earned less what they were delayed; below zero it is overdrawn.
    pub balance_s: f64,
    /// What one more collision may cost: work goes on while the account holds as much.
    #[serde(default)]
    pub reserve_s: f64,
    /// How much less it holds.
    #[serde(default)]
    pub lacks_s: f64,
    /// When the scrub may next go on though it holds too little, in seconds since 1970, if the disk stays idle; 0 if that is not known.
    #[serde(default)]
    pub no_exception_before_unix_s: f64,
    /// The 99th percentile to keep, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal_p99_slowdown_s: Option<f64>,
    /// Foreground requests less a hundred for each that was slowed by more than that; below zero it is overdrawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balance_requests: Option<i64>,
    /// How many fewer these are than what one more collision may cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacks_requests: Option<u64>,
    /// Foreground requests without delay after which it holds enough; absent where they earn nothing.
    #[serde(default, alias = "requests_to_even", skip_serializing_if = "Option::is_none")]
    pub requests_to_go_on: Option<u64>,
    /// Idle time after which the scrub goes on though it holds too little.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goes_on_after_idle_s: Option<f64>,
}

impl AccountSoFar {
    /// Whether it holds less than one more collision may cost.
    pub fn lacks(&self) -> bool {
        self.lacks_s > 0.0 || self.lacks_requests.is_some_and(|requests| requests > 0)
    }

    /// An account with these goals that goes on where this one stood: what it owes stays owed, and what it opened with is not given
    /// twice. What it holds is not taken along, as each run is to keep its goal by itself. `now` is in nanoseconds since 1970.
    pub fn resumed(&self, goal: &Goal, now: Nanos) -> Account {
        /// More than that is damage.
        const MOST_OWED_S: f64 = 1e9;
        let account = Account::new(goal.mean_slowdown, Terms::default());
        let mut account = goal.p99_slowdown.map_or(account, |p99| account.and_tail(p99));
        account.requests = self.requests;
        account.balance = (self.balance_s.clamp(-MOST_OWED_S, 0.0) * 1e9) as i128;
        let owed = self.balance_requests.unwrap_or_default().min(0);
        account.tail.iter_mut().for_each(|tail| tail.balance = owed.into());
        let latest = Nanos(now.0.saturating_add(account.terms.once_in.0));
        account.exception_from = Nanos((self.no_exception_before_unix_s.max(0.0) * 1e9) as u64).min(latest);
        account
    }
}

impl From<&Account> for AccountSoFar {
    fn from(account: &Account) -> Self {
        Self {
            goal_mean_slowdown_s: account.goal.as_secs_f64(),
            requests: account.requests,
            balance_s: account.balance as f64 / 1e9,
            reserve_s: account.reserve.cost().as_secs_f64(),
            lacks_s: account.lacks().as_secs_f64(),
            no_exception_before_unix_s: account.exception_from.as_secs_f64(),
            goal_p99_slowdown_s: account.tail.map(|tail| tail.goal.as_secs_f64()),
            balance_requests: account.tail.map(|tail| i64::try_from(tail.balance).unwrap_or(i64::MIN)),
            lacks_requests: account.tail.map(|_| account.lacks_requests()),
            requests_to_go_on: account.requests_to_go_on(),
            goes_on_after_idle_s: Some(account.may_go_on_at().as_secs_f64()),
        }
    }
}

impl From<&Progress> for RunSoFar {
    fn from(progress: &Progress) -> Self {
        let measured = &progress.measured;
        let (size, wait) = progress.plan.unwrap_or_default();
        Self {
            doing: progress.doing.name().into(),
            elapsed_s: progress.elapsed.as_secs_f64(),
            verified_bytes: progress.verified_now.0,
            retries: progress.retries,
            foreground_requests: measured.foreground_requests,
            mean_slowdown_s: measured.mean_slowdown().as_secs_f64(),
            max_slowdown_s: measured.max_slowdown.as_secs_f64(),
            slowed_requests: progress.account.and_then(|account| account.tail).map(|_| measured.slowed.0),
            slowdowns: measured.slowdowns.counts().to_vec(),
            request_size_bytes: size.0,
            idle_wait_s: wait.as_secs_f64(),
            account: progress.account.as_ref().map(AccountSoFar::from),
            compared: progress.compared.map(ComparedSoFar::from),
            overdrawn_s: progress.paused.as_secs_f64(),
            failure: progress.failure.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_goes_on_with_what_the_one_before_owed() {
        let goal = Goal::new(Nanos::from_millis(1), Nanos::from_millis(50));
        let account = |delays| {
            let mut account = Account::new(goal.mean_slowdown, Terms::default());
            account.served(600, Nanos::from_millis(delays));
            AccountSoFar::from(&account).resumed(&goal, Nanos::from_secs(1))
        };
        let owing = account(700);
        assert_eq!((owing.balance, owing.requests, owing.lacks()), (-100_000_000, 600, Nanos::from_millis(100)));
        // The opening is spent, and what was held is not taken along.
        let holding = account(100);
        assert_eq!((holding.balance, holding.requests_to_go_on()), (0, Some(0)));
        // Another goal pays it back at another pace.
        let other = Goal::new(Nanos::from_millis(2), Nanos::from_millis(50));
        let slower = AccountSoFar::from(&owing).resumed(&other, Nanos::from_secs(1));
        assert_eq!((slower.balance, slower.requests_to_go_on()), (-100_000_000, Some(50)));
    }

    #[test]
    fn damage_is_no_debt_for_ever_nor_an_end_of_the_program() {
        let goal = Goal {
            p99_slowdown: Some(Nanos::from_millis(5)),
            ..Goal::new(Nanos::from_millis(1), Nanos::from_millis(50))
        };
        let day = Nanos::from_secs(24 * 3_600);
        for balance_s in [-1e300, f64::MIN, f64::NAN, f64::INFINITY, -1e29] {
            let (no_exception_before_unix_s, requests) = (-balance_s, u64::MAX);
            let damaged = AccountSoFar { balance_s, no_exception_before_unix_s, requests, ..AccountSoFar::default() };
            let mut account = AccountSoFar { balance_requests: Some(i64::MIN), ..damaged }.resumed(&goal, day);
            account.idle_began(day);
            account.served(u64::MAX, Nanos(u64::MAX));
            assert!(account.may_go_on_at() <= day, "{account:?}");
            assert!(
                account.requests_to_go_on().is_some()
                    && account.balance >= -1_000_000_000_000_000_000 - i128::from(u64::MAX)
            );
        }
    }
}
