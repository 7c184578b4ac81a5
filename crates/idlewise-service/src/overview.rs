//! How everything stands, for those who ask: programs, Prometheus, a browser.

use std::collections::BTreeMap;

use idlewise::schedule::Standing;
use idlewise_linux::scrub::{BadBlocks, RunSoFar};
use serde::Serialize;

use crate::record::{Cost, Done, Paused};

/// The service, and each of its disks.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Overview {
    /// The version of idlewise.
    pub version: &'static str,
    /// When this was seen, in seconds since 1970.
    pub unix_s: f64,
    /// That all disks are paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<Paused>,
    /// Its configuration.
    pub config: Loaded,
    /// Its disks, by path.
    pub disks: Vec<Seen>,
    /// Devices that cannot be looked after, and why.
    pub refused: Vec<String>,
    /// Why messages reach nobody; absent where nothing is known to be in their way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untold: Option<String>,
}

/// How the configuration was read.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Loaded {
    /// The file.
    pub path: String,
    /// When the one that counts was read, in seconds since 1970.
    pub read_unix_s: f64,
    /// What is wrong with the file as it is now; absent where nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A disk.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Seen {
    /// Where it is.
    pub device: String,
    /// Which one it is.
    pub identity: String,
    /// Its size.
    pub device_bytes: u64,
    /// One of [`STATES`].
    pub state: &'static str,
    /// What it waits for or does, in words.
    pub why: String,
    /// Of this pass.
    pub verified_bytes: u64,
    /// When this pass began, in seconds since 1970; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_unix_s: Option<u64>,
    /// When the last whole pass ended; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_unix_s: Option<u64>,
    /// When the next pass has to be over.
    pub due_unix_s: f64,
    /// When it begins at the latest.
    pub begins_unix_s: f64,
    /// When this pass is expected to end, and the sooner and later end in one case of twenty each; absent where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_end_unix_s: Option<[f64; 3]>,
    /// `unknown`, `in-time`, `behind` or `overdue`.
    pub standing: &'static str,
    /// The mean slowdown that others may suffer now, in seconds.
    pub goal_mean_slowdown_s: f64,
    /// The most that they may suffer where its pass is late, in seconds; zero where nothing more is spent then.
    #[serde(skip)]
    pub most_mean_slowdown_s: f64,
    /// The largest.
    pub goal_max_slowdown_s: f64,
    /// How its scrub goes, or how the last one went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunSoFar>,
    /// Since the service was started: foreground requests that were seen, how long scrubs made them wait in all, and bytes verified.
    pub foreground_requests: u64,
    /// See `foreground_requests`.
    pub foreground_slowdown_s: f64,
    /// These requests by how much they were slowed: at most 100 us, 200 us, 500 us, and so on to 1 s, and more.
    pub slowdowns: Vec<u64>,
    /// What scrubs cost in the last 24 hours, and in the last 168.
    pub last_day: Cost,
    /// See `last_day`.
    pub last_week: Cost,
    /// See `foreground_requests`.
    pub verified_since_start_bytes: u64,
    /// Which share of each of so many equal parts is verified in this pass; for the page.
    #[serde(skip)]
    pub shares: Vec<f64>,
    /// Blocks that cannot be read, or are wrong, by kind.
    pub bad_blocks: BTreeMap<String, u64>,
    /// As many of these somebody has acknowledged.
    pub acknowledged_blocks: u64,
    /// Whether there is a checkpoint that is surely of this disk: else nothing is known of its blocks.
    #[serde(skip)]
    pub is_known: bool,
    /// Whether its scrub is at work and has verified something.
    #[serde(skip)]
    pub scrubs: bool,
    /// How long these requests may have had to wait in all, by the goals in force.
    #[serde(skip)]
    pub foreground_allowed_s: f64,
    /// Where they are.
    pub errors: Vec<BadBlocks>,
    /// How much of the last whole pass was not compared with what the owners of the data keep of it, in bytes, as these could not be
    /// asked, and why; absent where all was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_compared: Option<(u64, String)>,
    /// Logical block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_bytes: Option<u32>,
    /// That it is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<Paused>,
    /// What the 168 hours of a week gave, from Monday 00:00 on, in bytes a second; null where nothing is known.
    pub hours_bytes_per_s: Vec<Option<f64>>,
    /// The passes that are over, the latest last.
    pub passes: Vec<Done>,
}

/// What a disk may be doing.
pub const STATES: [&str; 6] = ["running", "waiting", "paused", "complete", "failed", MISSING];
/// That of one that was there.
pub const MISSING: &str = "missing";

impl Seen {
    /// All of its bad blocks.
    pub fn bad(&self) -> u64 {
        self.bad_blocks.values().sum()
    }

    /// Whether this name means it: its path, what the kernel calls it, or its identity.
    pub fn is_called(&self, name: &str) -> bool {
        [&self.device, &self.identity].contains(&&name.to_string()) || self.name() == name
    }

    /// What the kernel calls it, such as `sda`.
    pub fn name(&self) -> &str {
        self.device.strip_prefix("/dev/").unwrap_or(&self.device)
    }
}

/// A standing in a word.
pub fn word(standing: Standing) -> &'static str {
    match standing {
        Standing::Unknown => "unknown",
        Standing::InTime => "in-time",
        Standing::Behind => "behind",
        Standing::Overdue => "overdue",
    }
}
