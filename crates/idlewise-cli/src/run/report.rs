//! What `idlewise run --json` writes.

use std::collections::BTreeMap;

use idlewise_linux::command::{DiskSoFar, Progress};
use idlewise_linux::scrub::{AccountSoFar, ComparedSoFar};
use serde::Serialize;

use super::{Arguments, share_run};

/// The fields of `run --json`.
#[derive(Serialize)]
pub struct Report {
    /// What was run: the command, `process PID` or the unit.
    name: String,
    /// The exit code of idlewise.
    exit_code: u8,
    /// Time from the start to the end.
    elapsed_s: f64,
    /// For how long it ran.
    ran_s: f64,
    /// The share of the time that it ran.
    ran_share: f64,
    /// What the time went on: `runs`, `foreground-active`, `idle-wait`, `overdrawn`, `control`, `finishing`, `policy-stopped`,
    /// `paused`.
    spent_s: BTreeMap<&'static str, f64>,
    /// `group` or `signals`.
    held_by: &'static str,
    /// Whether what the kernel writes later for the command is known to be its own.
    writes_later_known: bool,
    /// What was said that puts these numbers in doubt, such as that a process was not held.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// The disks that it used.
    disks: Vec<Disk>,
}

/// What was run cost others on a disk.
#[derive(Serialize)]
pub struct Disk {
    /// Its name in /dev.
    pub name: String,
    /// `bpf` or `shares`.
    pub monitor: &'static str,
    /// Bytes that the command moved.
    moved_bytes: u64,
    /// Foreground requests seen.
    foreground_requests: u64,
    /// Whether the slowdowns are only the part that the monitor sees.
    slowdown_is_at_least: bool,
    /// Their mean slowdown.
    mean_slowdown_s: f64,
    /// Their longest slowdown.
    max_slowdown_s: f64,
    /// The mean slowdown to keep.
    goal_mean_slowdown_s: f64,
    /// The longest slowdown that is not to be passed.
    goal_max_slowdown_s: f64,
    /// The idle wait at the end.
    idle_wait_s: f64,
    /// Foreground requests that came while requests of the command were in service.
    overruns: Overruns,
    /// How the account of the mean slowdown stands.
    account: Option<AccountSoFar>,
    /// The mean slowdown by experiment, once enough idle intervals were left alone to compare with.
    compared: Option<ComparedSoFar>,
    /// Events that the monitor lost.
    lost_events: u64,
}

/// How long the foreground waited until those requests were over.
#[derive(Serialize)]
struct Overruns {
    /// How often.
    count: u64,
    /// Idle intervals in which the command ran until a foreground request came, with requests of its own in service then or without.
    uses: u64,
    /// Half of the times are at most this.
    p50_s: f64,
    /// 99 % of the times are at most this.
    p99_s: f64,
    /// The longest time.
    max_s: f64,
    /// The shortest time, and those that 1 %, 2 % and so on of the times are at most: what `simulate --run` takes.
    percentiles_s: Vec<f64>,
}

impl Report {
    /// Of a run that is over; how it was held, and whether later writes are known.
    pub fn new(
        arguments: &Arguments,
        progress: &Progress,
        (by_group, has_writes): (bool, bool),
        warnings: Vec<String>,
        exit_code: u8,
    ) -> Self {
        let seconds = |(name, time): (&&'static str, &idlewise::Nanos)| (*name, time.as_secs_f64());
        Self {
            name: arguments.name(),
            exit_code,
            elapsed_s: progress.elapsed.as_secs_f64(),
            ran_s: progress.ran.as_secs_f64(),
            ran_share: share_run(progress),
            spent_s: progress.spent.iter().map(seconds).collect(),
            held_by: if by_group { "group" } else { "signals" },
            writes_later_known: has_writes,
            warnings,
            disks: progress.disks.iter().map(Disk::from).collect(),
        }
    }
}

impl Disk {
    /// In a line: the mean, its goal, the longest, and of how many requests.
    pub fn slowdown(&self) -> String {
        let time = |seconds: f64| idlewise::Nanos((seconds * 1e9).round() as u64);
        let (mean, goal) = (time(self.mean_slowdown_s), time(self.goal_mean_slowdown_s));
        let (max, requests) = (time(self.max_slowdown_s), self.foreground_requests);
        format!("{mean} (goal {goal}), max {max}, {requests} requests")
    }
}

impl From<&DiskSoFar> for Disk {
    fn from(disk: &DiskSoFar) -> Self {
        let overruns = &disk.overruns;
        let quantile = |share| if overruns.count() > 0 { overruns.quantile(share).as_secs_f64() } else { 0.0 };
        Self {
            name: disk.name.clone(),
            monitor: disk.monitor,
            moved_bytes: disk.moved().0,
            foreground_requests: disk.measured.foreground_requests,
            slowdown_is_at_least: disk.is_at_least,
            mean_slowdown_s: disk.measured.mean_slowdown().as_secs_f64(),
            max_slowdown_s: disk.measured.max_slowdown.as_secs_f64(),
            goal_mean_slowdown_s: disk.goal.mean_slowdown.as_secs_f64(),
            goal_max_slowdown_s: disk.goal.max_slowdown.as_secs_f64(),
            idle_wait_s: disk.idle_wait.as_secs_f64(),
            overruns: Overruns {
                count: overruns.count(),
                uses: overruns.uses(),
                p50_s: quantile(0.5),
                p99_s: quantile(0.99),
                max_s: overruns.longest().as_secs_f64(),
                percentiles_s: (0..=100)
                    .filter(|_| overruns.count() > 0)
                    .map(|hundredths| quantile(f64::from(hundredths) / 100.0))
                    .collect(),
            },
            account: disk.account.as_ref().map(AccountSoFar::from),
            compared: disk.compared.map(ComparedSoFar::from),
            lost_events: disk.lost_events,
        }
    }
}
