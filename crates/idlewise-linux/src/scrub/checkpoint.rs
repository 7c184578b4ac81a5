//! The checkpoint of a scrub: one small file, replaced atomically, locked while a scrub runs.

use std::io;
use std::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

use idlewise::order::{Extent, Place};
use idlewise::policy::Account;
use idlewise::{Bytes, Nanos};

use super::claim::others_scrub_below;
use super::faults::without;
use super::home::Home;
use super::process::Process;
use super::so_far::{AccountSoFar, ContentSoFar, Learnt};
use super::{BadBlocks, Doing, Left, Pass, Progress, RunSoFar, State};
use crate::device::Device;
use crate::monitor::Announcement;

/// Time between two checkpoints; where each disturbs a disk that is scrubbed, longer.
const PAUSE: Nanos = Nanos::from_secs(5);
const PAUSE_ON_THE_DISK: Nanos = Nanos::from_secs(60);

/// A checkpoint in its locked file.
#[derive(Debug)]
pub struct Checkpoint {
    pub(super) home: Home,
    pub(super) pass: Pass,
    pub(super) begun: Begun,
    /// How long to wait before the next save.
    pub(super) pause: Nanos,
    /// Whether the run before failed.
    pub(super) failed_before: bool,
}

/// How a run of a scrub begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// A new pass, as there is none to go on with.
    Anew,
    /// A new pass, though there is an unfinished one: why that cannot be gone on with.
    AnewBecause(String),
    /// Where an unfinished pass was.
    Resumed,
}

/// A checkpoint cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// Another scrub holds it.
    #[error("{device}: another idlewise is scrubbing it (holds {lock})")]
    Busy {
        /// The device.
        device: String,
        /// The lock file.
        lock: String,
    },
    /// The file is no checkpoint.
    #[error("{path}: damaged checkpoint ({problem}); scrub --restart begins a new pass, status --forget removes it")]
    Damaged {
        /// The file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The pass in it goes another way.
    #[error("{path}: the pass in it is in {was} order; --restart begins a new pass")]
    Order {
        /// The file.
        path: String,
        /// Its order.
        was: String,
    },
    /// The device is not what it was.
    #[error("{path}: the device had {was} then and has {is} now; --restart begins a new pass")]
    Changed {
        /// The file.
        path: String,
        /// Its size in the checkpoint, or that of its blocks.
        was: String,
        /// The same of the device.
        is: String,
    },
    /// The disk cannot be claimed.
    #[error("{path}: {error}; this folder shows who scrubs which disk")]
    Claim {
        /// The folder.
        path: String,
        /// What the system said.
        error: io::Error,
    },
    /// What it says is of another disk of that name.
    #[error("{path}: {why}; scrub it again first")]
    OtherDisk {
        /// The file.
        path: String,
        /// How that is known.
        why: String,
    },
    /// The file cannot be read or written.
    #[error("{path}: {error}; --state-dir chooses another folder")]
    Io {
        /// The file or folder.
        path: String,
        /// What the system said.
        error: io::Error,
    },
}

impl Checkpoint {
    /// Where the order stands.
    pub fn place(&self) -> &Place {
        &self.pass.place
    }

    /// What the order has handed out up to there and is not settled yet.
    pub fn left(&self) -> &Left {
        &self.pass.left
    }

    /// Bytes that are settled.
    pub fn verified(&self) -> Bytes {
        self.pass.verified()
    }

    /// How this run begins.
    pub fn begun(&self) -> &Begun {
        &self.begun
    }

    /// When the pass began, in seconds since 1970.
    pub fn started_unix_s(&self) -> u64 {
        self.pass.started_unix_s
    }

    /// Whether it may lie on the disk of this device.
    pub fn is_on_the_disk_of(&self, device: &Device) -> bool {
        self.home.file_system().is_some_and(|file_system| device.may_hold(file_system))
    }

    /// How long to wait before the next save.
    pub fn pause(&self) -> Nanos {
        self.pause
    }

    /// Whether the pass is said to be running.
    pub fn is_running(&self) -> bool {
        self.pass.state == State::Running
    }

    /// How the account of the mean slowdown stood at the end of the run before.
    pub(super) fn account(&self) -> Option<&AccountSoFar> {
        self.pass.run.as_ref()?.account.as_ref()
    }

    /// What earlier runs have learnt of what one costs.
    pub(super) fn learnt(&self) -> Option<&Learnt> {
        self.pass.learnt.as_ref()
    }

    /// Keeps that, from the next save on.
    pub(super) fn keep_learnt(&mut self, learnt: Learnt) {
        self.pass.learnt = Some(learnt);
    }

    /// What the owners of the data have said in this pass.
    pub(super) fn content(&self) -> Option<&ContentSoFar> {
        self.pass.content.as_ref()
    }

    /// The same for a run that asks them. What runs before it read without asking was not compared.
    pub(super) fn compared_so_far(&self) -> Option<ContentSoFar> {
        let read = self.verified().0;
        let unasked = || ContentSoFar {
            unasked_bytes: read,
            unasked: Some("it was read with --content none".into()),
            ..ContentSoFar::default()
        };
        self.content().cloned().or_else(|| (read > 0).then(unasked))
    }

    /// Keeps that, from the next save on.
    pub(super) fn keep_content(&mut self, content: &ContentSoFar) {
        self.pass.content = Some(content.clone());
    }

    /// Nobody keeps checksums of what is on the device now: nothing of it is missed.
    pub fn nobody_compares(&mut self) {
        self.pass.not_compared_before = None;
        self.pass.content = None;
    }

    /// The owners have judged what lies there in this pass: what was wrong before is so no more, or was found anew.
    pub(super) fn compared(&mut self, extent: Extent) {
        let block = u64::from(self.pass.block_bytes);
        // Blocks that lie there as a whole.
        let stretch = extent.offset.0.div_ceil(block)..extent.end().0 / block;
        let left = |run: &BadBlocks| {
            let (lba, end) = (run.lba, run.end());
            if !run.is_wrong() || end <= stretch.start || lba >= stretch.end {
                return vec![run.clone()];
            }
            let sides = [lba..stretch.start.min(end), stretch.end.max(lba)..end];
            let run = |side: Range<u64>| BadBlocks { lba: side.start, blocks: side.end - side.start, ..run.clone() };
            sides.into_iter().filter(|side| side.start < side.end).map(run).collect()
        };
        if !self.pass.errors_before.is_empty() {
            self.pass.errors_before = self.pass.errors_before.iter().flat_map(left).collect();
        }
    }

    /// What of a stretch was neither unreadable nor wrong before.
    pub(super) fn without_known(&self, extent: Extent) -> Vec<Extent> {
        let block = u64::from(self.pass.block_bytes);
        let bytes = |run: &BadBlocks| (run.lba * block, run.end() * block);
        let known: Vec<_> = self.pass.errors_before.iter().map(bytes).collect();
        without(extent, &known)
    }

    /// What was wrong before this pass, and has not been compared in it.
    pub fn still_wrong(&self) -> Vec<BadBlocks> {
        self.pass.errors_before.iter().filter(|run| run.is_wrong()).cloned().collect()
    }

    /// Unreadable blocks of this pass.
    pub fn errors(&self) -> &[BadBlocks] {
        &self.pass.errors
    }

    /// Saves that a run is at the pass, or was and did not get as far as its first request, why if it failed, and how its account stands.
    ///
    /// # Errors
    /// What the file system says.
    pub fn mark(
        &mut self,
        state: State,
        failure: Option<String>,
        account: Option<&Account>,
    ) -> Result<(), CheckpointError> {
        let Pass { place, left, errors, .. } = self.pass.clone();
        let progress = Progress { doing: Doing::Calibrating, failure, ..Progress::default() };
        let account = account.map(AccountSoFar::from).or(self.account().copied());
        self.set(&place, &left, &errors, state, RunSoFar { account, ..RunSoFar::from(&progress) });
        self.write()
    }

    /// Saves a pass that was there before, some of whose unreadable blocks have been repaired.
    ///
    /// # Errors
    /// What the file system says; the checkpoint before is then still there.
    pub fn replace(&mut self, pass: Pass) -> Result<(), CheckpointError> {
        self.pass = pass;
        self.write()
    }

    /// Saves where the pass stands, on the disk when it returns.
    ///
    /// # Errors
    /// What the file system says; the checkpoint before is then still there.
    pub fn save(
        &mut self,
        place: &Place,
        left: &Left,
        errors: &[BadBlocks],
        state: State,
        progress: &Progress,
    ) -> Result<(), CheckpointError> {
        let run = RunSoFar::from(progress);
        // A run without a goal pays nothing back.
        let account = run.account.or(self.account().copied());
        self.set(place, left, errors, state, RunSoFar { account, ..run });
        self.write()
    }

    fn set(&mut self, place: &Place, left: &Left, errors: &[BadBlocks], state: State, run: RunSoFar) {
        self.pass.place = place.clone();
        self.pass.left = left.clone();
        self.pass.errors = errors.to_vec();
        self.pass.state = state;
        self.pass.run = Some(run);
        self.pass.process = Some(Process::this());
        self.pass.saved_unix_s = unix_now();
        if state == State::Complete {
            // What nobody has compared again may still be wrong.
            self.pass.errors_before.retain(BadBlocks::is_wrong);
            // Only who was asked says that it is otherwise now.
            if self.pass.content.as_ref().is_some_and(|content| content.judged_bytes > 0) {
                self.pass.not_compared_before = None;
            }
            self.pass.completed_unix_s = Some(self.pass.saved_unix_s);
        }
    }

    fn write(&mut self) -> Result<(), CheckpointError> {
        let text = serde_json::to_vec_pretty(&self.pass).expect("a checkpoint has only text and numbers");
        self.pause = PAUSE;
        let mut announced = None;
        self.home.replace(&text, |file_system| {
            let announcement = announced.insert(Announcement::of(file_system));
            let reaches_none = announcement.reaches_none() && !others_scrub_below(file_system);
            self.pause = if reaches_none { PAUSE } else { PAUSE_ON_THE_DISK };
        })
    }
}

pub fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
