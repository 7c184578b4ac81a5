//! What the service remembers of each disk, in `schedule.state` of the state folder (docs/formats.md): since when it is known, and what the
//! hours of its week have given.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use idlewise::Nanos;
use idlewise::schedule::Week;
use idlewise_linux::device::Marks;
use idlewise_linux::replace_file;
use idlewise_linux::scrub::BadBlocks;
use serde::{Deserialize, Serialize};

use crate::machine::Present;
use crate::messages::Kind;
use crate::recent::Recent;

/// Version 1 knew of no pauses and kept no passes, version 2 did not know what the hours of the last week had cost, and where a
/// disk was, version 3 which blocks are bad and acknowledged, version 4 which disk of its name it was.
const VERSION: u32 = 5;
/// So many passes of a disk are remembered.
const PASSES: usize = 100;

/// No clock that is right says less: 2020, in seconds since 1970.
const NOT_SET: f64 = 1_577_836_800.0;
const SETTLED: Nanos = Nanos::from_secs(86_400);

/// What is remembered of a disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// Since when, in seconds since 1970.
    pub since_unix_s: f64,
    /// When it was last there.
    pub seen_unix_s: f64,
    /// Where it was then.
    #[serde(default)]
    pub device: String,
    /// Which one of those that are called so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marks: Option<Marks>,
    /// Its hours.
    pub week: Week,
    /// Nothing of it is verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Paused>,
    /// When somebody wanted a pass to begin, in seconds since 1970, if none has ended since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted_unix_s: Option<f64>,
    /// As many bad blocks were known to somebody, in a record that did not say which.
    #[serde(default, skip_serializing_if = "is_none")]
    pub acknowledged_blocks: u64,
    /// Its bad blocks, as of when its checkpoint was last seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bad: Vec<BadBlocks>,
    /// Bad blocks that are known to somebody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acknowledged: Vec<BadBlocks>,
    /// What the pass that is not over has cost so far.
    #[serde(default)]
    pub cost: Cost,
    /// What scrubs have cost in the hours of the last week.
    #[serde(default, skip_serializing_if = "Recent::is_empty")]
    pub recent: Recent,
    /// The passes that are over, the latest last.
    #[serde(default)]
    pub passes: Vec<Done>,
    /// What was told of it and is not over.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub told: BTreeMap<Kind, Told>,
}

/// That something was told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Told {
    /// When for the first time, in seconds since 1970.
    pub first_unix_s: f64,
    /// How often.
    pub count: u32,
    /// When it is told again.
    pub next_unix_s: f64,
    /// How bad it was, such as the number of bad blocks.
    pub worth: u64,
}

/// That nothing is verified.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paused {
    /// Since when, in seconds since 1970.
    pub since_unix_s: f64,
    /// Until when; else until somebody resumes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_unix_s: Option<f64>,
    /// Why.
    pub why: String,
}

/// What scrubs cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Foreground requests that were seen.
    pub requests: u64,
    /// How long they had to wait for the scrub, all together, in seconds; below zero where scrubs of a pass were not seen to begin.
    pub slowdown_s: f64,
}

/// A pass that is over.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Done {
    /// When it began, in seconds since 1970.
    pub started_unix_s: u64,
    /// When it ended.
    pub completed_unix_s: u64,
    /// When it was due.
    pub due_unix_s: f64,
    /// The size of the disk.
    pub device_bytes: u64,
    /// Blocks that could not be read, or were wrong.
    pub bad_blocks: u64,
    /// What it cost, as far as the service has seen it.
    pub cost: Cost,
}

impl Known {
    /// Whether it surely is of another disk than the one that is called so now.
    pub fn is_of_another(&self, present: &Present) -> bool {
        self.marks.as_ref().is_some_and(|before| present.marks.is_surely_other_than(before, present.named))
    }

    /// Corrects since when it is known, where a clock said so that was not set yet, or was ahead. The clock of a machine that has been up for
    /// long is taken for right.
    pub fn correct_since(&mut self, now: f64, up: Nanos) {
        let was_unset = self.since_unix_s < NOT_SET && now >= NOT_SET;
        if was_unset || self.since_unix_s > now && up >= SETTLED {
            self.since_unix_s = now;
        }
    }
}

impl Paused {
    /// Whether that is over.
    pub fn is_over(&self, now: f64) -> bool {
        self.until_unix_s.is_some_and(|until| until <= now)
    }

    /// Until when; never, where nobody has said so.
    pub fn until(&self) -> f64 {
        self.until_unix_s.unwrap_or(f64::INFINITY)
    }
}

impl Cost {
    /// Adds another.
    pub fn add(&mut self, other: Self) {
        self.requests = self.requests.saturating_add(other.requests);
        self.slowdown_s += other.slowdown_s;
    }

    /// The mean slowdown of a request, in seconds.
    pub fn mean_s(&self) -> f64 {
        if self.requests == 0 { 0.0 } else { self.slowdown_s / self.requests as f64 }
    }
}

/// What two lists of runs have in common, both in order: a run of each, and the blocks.
fn common<'a>(
    known: &'a [BadBlocks],
    bad: &'a [BadBlocks],
) -> impl Iterator<Item = (&'a BadBlocks, &'a BadBlocks, Range<u64>)> {
    let mut first = 0;
    bad.iter().flat_map(move |run| {
        first += known[first..].partition_point(|known| known.end() <= run.lba);
        let within = known[first..].iter().take_while(|known| known.lba < run.end());
        within.map(move |known| (known, run, known.lba.max(run.lba)..known.end().min(run.end())))
    })
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

impl Known {
    /// Takes in which blocks are bad now. One that is no longer bad is acknowledged no more: if it is again, that is news.
    pub fn look_at(&mut self, bad: &[BadBlocks]) {
        // How many it was before tells of none that has come since.
        if std::mem::take(&mut self.acknowledged_blocks) >= bad.iter().map(|run| run.blocks).sum() {
            self.acknowledged = bad.to_vec();
        }
        self.bad = bad.to_vec();
        // Only what is bad still; both are in order.
        let common = common(&self.acknowledged, bad).map(|(known, run, part)| {
            // What was found to be readable after all stays acknowledged as that.
            let recovered = known.kind == BadBlocks::RECOVERED || run.kind == BadBlocks::RECOVERED;
            let kind = if recovered { BadBlocks::RECOVERED } else { &run.kind };
            BadBlocks { lba: part.start, blocks: part.end - part.start, kind: kind.into() }
        });
        self.acknowledged = common.collect();
    }

    /// How many of these bad blocks, in order, are known to somebody. Of those that could be read after all it is news if they cannot.
    pub fn acknowledged_of(&self, bad: &[BadBlocks]) -> u64 {
        let recovered = |run: &BadBlocks| run.kind == BadBlocks::RECOVERED;
        let same = common(&self.acknowledged, bad).filter(|(known, run, _)| !recovered(known) || recovered(run));
        same.map(|(.., part)| part.end - part.start).sum()
    }

    /// Keeps a pass that is over, if it is a new one; whether it is.
    pub fn keep(&mut self, done: Done) -> bool {
        // One that seems to be older was seen with another clock.
        let is_new = self.passes.last().is_none_or(|last| last.completed_unix_s != done.completed_unix_s);
        if is_new {
            self.passes.push(Done { cost: std::mem::take(&mut self.cost), ..done });
            let old = self.passes.len().saturating_sub(PASSES);
            self.passes.drain(..old);
        }
        is_new
    }
}

/// The file.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    /// By identity.
    pub disks: BTreeMap<String, Known>,
    /// That nothing is verified at all.
    pub paused: Option<Paused>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    disks: BTreeMap<String, Known>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    paused: Option<Paused>,
}

impl Record {
    /// Reads that of a folder; and what was wrong with it, where nothing is remembered for that.
    pub fn read(folder: &Path) -> (Self, Option<String>) {
        let path = folder.join("schedule.state");
        let read = match std::fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((BTreeMap::new(), None)),
            Err(error) => Err(error.to_string()),
            Ok(text) => match serde_json::from_slice::<File>(&text) {
                Ok(File { version: 1..=VERSION, disks, paused }) => Ok((disks, paused)),
                Ok(File { version, .. }) => Err(format!("version {version}, newer than {VERSION}")),
                Err(error) => Err(error.to_string()),
            },
        };
        let wrong = read.as_ref().err().map(|problem| format!("{}: {problem}", path.display()));
        let (disks, paused) = read.unwrap_or_default();
        (Self { path, disks, paused }, wrong)
    }

    /// Replaces the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self) -> io::Result<()> {
        let file = File { version: VERSION, disks: self.disks.clone(), paused: self.paused.clone() };
        replace_file(&self.path, serde_json::to_string(&file)?.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_blocks_are_acknowledged_is_remembered_and_not_how_many() {
        let run = |lba, blocks, kind: &str| BadBlocks { lba, blocks, kind: kind.into() };
        let before = [run(10, 8, BadBlocks::RECOVERED), run(50, 2, "medium")];
        // As of a record that knew only how many.
        let mut known = Known { acknowledged_blocks: 10, ..Known::default() };
        known.look_at(&before);
        assert_eq!((known.acknowledged_of(&before), known.acknowledged_blocks), (10, 0));
        // Dead for good, and others.
        assert_eq!(known.acknowledged_of(&[run(10, 8, "medium"), run(51, 4, "medium"), run(90, 3, "medium")]), 1);
        // What is readable again and fails later is news, also of a part of a run.
        known.look_at(&[run(50, 1, "medium")]);
        assert_eq!(known.acknowledged_of(&before), 1);
        // Of so many more it is not known which they were.
        let mut fewer = Known { acknowledged_blocks: 9, ..Known::default() };
        fewer.look_at(&before);
        assert_eq!(fewer.acknowledged_of(&before), 0);
    }

    #[test]
    fn a_pass_is_kept_once_with_what_it_cost() {
        let mut known = Known { cost: Cost { requests: 4, slowdown_s: 0.002 }, ..Known::default() };
        let done = |completed_unix_s| Done {
            started_unix_s: 1,
            completed_unix_s,
            due_unix_s: 9.0,
            device_bytes: 5,
            bad_blocks: 0,
            cost: Cost::default(),
        };
        assert!(known.keep(done(10)) && !known.keep(done(10)));
        assert_eq!((known.passes[0].cost.mean_s(), known.cost), (0.0005, Cost::default()));
        (11..300).for_each(|at| assert!(known.keep(done(at))));
        assert_eq!((known.passes.len(), known.passes[0].completed_unix_s), (PASSES, 200));
    }

    #[test]
    fn what_is_remembered_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let (mut record, wrong) = Record::read(folder.path());
        assert!(record.disks.is_empty() && wrong.is_none());
        let mut week = Week::default();
        week.add(100, 3600.0, 1 << 30);
        record.disks.insert("a".into(), Known { since_unix_s: 1.5, seen_unix_s: 2.0, week, ..Known::default() });
        record.paused = Some(Paused { since_unix_s: 3.0, until_unix_s: Some(4.0), why: "moving".into() });
        record.save().unwrap();
        let read = Record::read(folder.path()).0;
        assert_eq!((&read.disks, &read.paused), (&record.disks, &record.paused));
        // What version 1 has kept.
        let old = r#"{"version":1,"disks":{"a":{"since_unix_s":1.5,"seen_unix_s":2.0,"week":[]}}}"#;
        std::fs::write(folder.path().join("schedule.state"), old).unwrap();
        assert_eq!(Record::read(folder.path()).0.disks["a"].since_unix_s, 1.5);
        for text in ["", "{}", r#"{"version":6,"disks":{}}"#, r#"{"version":1,"disks":{"a":{}}}"#] {
            std::fs::write(folder.path().join("schedule.state"), text).unwrap();
            let (record, wrong) = Record::read(folder.path());
            assert!(record.disks.is_empty() && wrong.is_some_and(|wrong| wrong.contains("schedule.state")), "{text}");
        }
    }
}
