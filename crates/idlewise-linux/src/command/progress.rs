//! Where a run stands, for whoever watches.

use std::collections::BTreeMap;

use idlewise::drive::{Compared, Measured};
use idlewise::policy::Account;
use idlewise::tune::Goal;
use idlewise::{Bytes, Nanos};

use super::lane::{Lane, Overruns, Why};

/// Where it stands.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Whether the processes run, and why not.
    pub why: Why,
    /// Name of the disk that keeps them from it.
    pub disk: Option<String>,
    /// Time from the start to now, or to the end.
    pub elapsed: Nanos,
    /// For how long they ran.
    pub ran: Nanos,
    /// What the time went on, by the names of [`Why`].
    pub spent: BTreeMap<&'static str, Nanos>,
    /// The disks that they have used, or all that were named.
    pub disks: Vec<DiskSoFar>,
}

/// What they cost the foreground of one disk.
#[derive(Clone, Debug)]
pub struct DiskSoFar {
    /// Its name.
    pub name: String,
    /// What is to be kept.
    pub goal: Goal,
    /// What the foreground suffered, and what the processes moved.
    pub measured: Measured,
    /// How the account stands.
    pub account: Option<Account>,
    /// What comparing used idle intervals with some left alone has found.
    pub compared: Option<Compared>,
    /// How long the foreground waited until the processes were held.
    pub overruns: Overruns,
    /// The idle wait.
    pub idle_wait: Nanos,
    /// Name of the monitor.
    pub monitor: &'static str,
    /// Whether the slowdowns are only what it sees of them: the kernel's counters do not tell how long others wait while the processes run.
    pub is_at_least: bool,
    /// Events that it lost.
    pub lost_events: u64,
}

impl DiskSoFar {
    pub(crate) fn of(lane: &mut Lane) -> Self {
        let driver = &mut lane.watched.driver;
        driver.tell();
        Self {
            name: lane.disk.name(),
            goal: lane.goal,
            measured: *driver.measured(),
            account: driver.account(),
            compared: driver.clock().compared(),
            overruns: lane.overruns.clone(),
            idle_wait: lane.waiting.idle_wait,
            monitor: lane.watched.monitor.name(),
            is_at_least: lane.watched.monitor.is_coarse(),
            lost_events: lane.watched.monitor.lost(),
        }
    }

    /// Bytes that the processes moved.
    pub fn moved(&self) -> Bytes {
        self.measured.worked
    }
}
