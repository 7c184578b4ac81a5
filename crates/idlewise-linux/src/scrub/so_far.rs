//! How a run stands, as a checkpoint, a note and `--json` say it.

use idlewise::Nanos;
use idlewise::policy::Account;
use serde::{Deserialize, Serialize};

use super::Progress;

/// The run that saved a checkpoint, as far as it had got.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSoFar {
    /// What it did, and why it waited: the name of a [`Doing`](super::Doing).
    pub doing: String,
    /// Its duration.
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
    /// Request size in use.
    pub request_size_bytes: u64,
    /// Idle wait in use.
    pub idle_wait_s: f64,
    /// How the account of the mean slowdown stands, if one is to be kept; version 3 had none.
    #[serde(default)]
    pub account: Option<AccountSoFar>,
    /// How long the run has been paused because that was overdrawn.
    #[serde(default)]
    pub overdrawn_s: f64,
    /// Why it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// The account of the slowdown.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountSoFar {
    /// The mean slowdown to keep.
    pub goal_mean_slowdown_s: f64,
    /// What foreground requests have earned less what they were delayed; below zero it is overdrawn.
    pub balance_s: f64,
    /// The 99th percentile to keep, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal_p99_slowdown_s: Option<f64>,
    /// Foreground requests less a hundred for each that was slowed by more than that; below zero it is overdrawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balance_requests: Option<i64>,
    /// Foreground requests without delay after which it is not overdrawn; absent where they earn nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_to_even: Option<u64>,
    /// Idle time after which the scrub goes on though it is overdrawn; absent where it is overdrawn by too much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goes_on_after_idle_s: Option<f64>,
}

impl From<&Account> for AccountSoFar {
    fn from(account: &Account) -> Self {
        Self {
            goal_mean_slowdown_s: account.goal.as_secs_f64(),
            balance_s: account.balance as f64 / 1e9,
            goal_p99_slowdown_s: account.tail.map(|tail| tail.goal.as_secs_f64()),
            balance_requests: account.tail.map(|tail| i64::try_from(tail.balance).unwrap_or(i64::MIN)),
            requests_to_even: account.requests_to_even(),
            goes_on_after_idle_s: account.may_go_on_at().map(Nanos::as_secs_f64),
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
            request_size_bytes: size.0,
            idle_wait_s: wait.as_secs_f64(),
            account: progress.account.as_ref().map(AccountSoFar::from),
            overdrawn_s: progress.paused.as_secs_f64(),
            failure: progress.failure.clone(),
        }
    }
}
