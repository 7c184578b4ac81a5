//! What `idlewise owner-scrub` prints in the end.

use std::collections::BTreeMap;

use idlewise::report::{Table, percent};
use idlewise::{Bytes, Nanos};
use idlewise_linux::scrubber::{Kind, SoFar};
use serde::Serialize;

use crate::run::Disk;

/// The fields of `owner-scrub --json`.
#[derive(Serialize)]
pub struct Report {
    /// The device.
    device: String,
    /// Whose scrub: `md-gate`, `md-steps`, `btrfs-chunks` or `zfs-gate`.
    by: &'static str,
    /// `complete`; `interrupted`, or `failed`: the next run goes on.
    state: &'static str,
    /// How much of it is done, by the owner's own measure: of each member, of RAID 10 of the array, of btrfs of its chunks on the device, and of ZFS of the
    /// pool, rounded to three digits.
    done_bytes: u64,
    /// Of how much.
    all_bytes: u64,
    /// What it has counted.
    wrong: u64,
    /// Of what is done, bytes that the owner has passed over, as btrfs does with the chunk of a swap file in use, and md with what it
    /// cannot read and has no redundancy for.
    skipped_bytes: u64,
    /// What is counted: `sectors that do not match`, `errors`, or `reads that failed and checksums that do not match`.
    counts: &'static str,
    /// Time from the start to the end.
    elapsed_s: f64,
    /// For how long the scrub was at work, until it was quiet each time.
    worked_s: f64,
    /// How often it was let go.
    opens: u64,
    /// How long it took until it was quiet when it was held, on average.
    closing_mean_s: f64,
    /// The same at most.
    closing_max_s: f64,
    /// What the time went on: `runs`, `foreground-active`, `idle-wait`, `overdrawn`, `control`, `finishing`, `policy-stopped`.
    spent_s: BTreeMap<&'static str, f64>,
    /// What it cost others: the array or disk, and disks with other partitions.
    disks: Vec<Disk>,
}

impl Report {
    /// Of one that has ended.
    pub fn new(device: &str, kind: &Kind, so_far: &SoFar, state: &'static str) -> Self {
        Self {
            device: device.into(),
            by: kind.name,
            state,
            done_bytes: so_far.standing.done.0,
            all_bytes: so_far.standing.all.0,
            wrong: so_far.standing.wrong,
            skipped_bytes: so_far.standing.skipped.0,
            counts: kind.counts,
            elapsed_s: so_far.elapsed.as_secs_f64(),
            worked_s: so_far.worked.as_secs_f64(),
            opens: so_far.opens,
            closing_mean_s: so_far.closing.0.as_secs_f64(),
            closing_max_s: so_far.closing.1.as_secs_f64(),
            spent_s: so_far.spent.iter().map(|(name, time)| (*name, time.as_secs_f64())).collect(),
            disks: so_far.disks.iter().map(Disk::from).collect(),
        }
    }

    fn why_not(&self) -> &'static str {
        match (self.by, self.state) {
            ("btrfs-chunks", _) => "btrfs passed over them; the kernel's log says why",
            (_, "interrupted" | "failed") => "they could not be read so far; at its end the check reads them again",
            _ => "they cannot be read, and md has nothing to rewrite them from; `idlewise scrub` names them",
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        let seconds = |time: f64| Nanos((time * 1e9) as u64).to_string();
        let share = self.done_bytes as f64 / self.all_bytes.max(1) as f64;
        let mut table = Table::new(["", ""]);
        let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
        row("state", self.state.into());
        row("done", format!("{} of {} ({})", Bytes(self.done_bytes), Bytes(self.all_bytes), percent(share)));
        row("found", format!("{} {}", self.wrong, self.counts));
        if self.skipped_bytes > 0 {
            row("not compared", format!("{}: {}", Bytes(self.skipped_bytes), self.why_not()));
        }
        let times = if self.opens == 1 { "once".into() } else { format!("{} times", self.opens) };
        row("at work", format!("{} of {}, {times}", seconds(self.worked_s), seconds(self.elapsed_s)));
        row(
            "until quiet",
            format!("{} on average, {} at most", seconds(self.closing_mean_s), seconds(self.closing_max_s)),
        );
        for disk in &self.disks {
            // A pool of ZFS is watched by the name of one of its disks, and what others do beside it on that disk.
            let is_twice = self.disks.iter().filter(|other| other.name == disk.name).count() > 1;
            let by = if is_twice { format!(" ({})", disk.monitor) } else { String::new() };
            row(&format!("{}{by}: mean slowdown", disk.name), disk.slowdown());
        }
        format!("{} by {}\n{table}", self.device, self.by)
    }
}
