//! The checkpoint of a scrub: one small file, replaced atomically, locked while a scrub runs.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use idlewise::Bytes;
use idlewise::order::Place;

use super::{BadBlocks, Doing, Pass, Progress, RunSoFar, State};
use crate::replace_file;

/// A checkpoint in its locked file.
#[derive(Debug)]
pub struct Checkpoint {
    pub(super) path: PathBuf,
    pub(super) pass: Pass,
    pub(super) _lock: File,
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
    #[error("{path}: damaged checkpoint ({problem}); --restart begins a new pass")]
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
        /// Size in the checkpoint.
        was: Bytes,
        /// Size of the device.
        is: Bytes,
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

    /// Bytes that the order has handed out up to there.
    pub fn visited(&self) -> Bytes {
        Bytes(self.pass.place.visited)
    }

    /// Unreadable blocks of this pass.
    pub fn errors(&self) -> &[BadBlocks] {
        &self.pass.errors
    }

    /// Saves that a run is at the pass, or was and did not get as far as its first request.
    ///
    /// # Errors
    /// What the file system says.
    pub fn mark(&mut self, state: State, doing: Doing) -> Result<(), CheckpointError> {
        let (place, errors) = (self.pass.place.clone(), self.pass.errors.clone());
        self.save(&place, &errors, state, &Progress { doing, ..Progress::default() })
    }

    /// Saves a pass that was there before, with other unreadable blocks.
    ///
    /// # Errors
    /// What the file system says; the checkpoint before is then still there.
    pub fn replace(&mut self, pass: Pass, errors: Vec<BadBlocks>) -> Result<(), CheckpointError> {
        self.pass = Pass { errors, errors_before: Vec::new(), ..pass };
        self.write()
    }

    /// Saves where the pass stands, on the disk when it returns.
    ///
    /// # Errors
    /// What the file system says; the checkpoint before is then still there.
    pub fn save(
        &mut self,
        place: &Place,
        errors: &[BadBlocks],
        state: State,
        progress: &Progress,
    ) -> Result<(), CheckpointError> {
        self.pass.place = place.clone();
        self.pass.errors = errors.to_vec();
        self.pass.state = state;
        self.pass.run = Some(RunSoFar::from(progress));
        self.pass.saved_unix_s = unix_now();
        if state == State::Complete {
            self.pass.errors_before.clear();
            self.pass.completed_unix_s = Some(self.pass.saved_unix_s);
        }
        self.write()
    }

    fn write(&self) -> Result<(), CheckpointError> {
        let text = serde_json::to_vec_pretty(&self.pass).expect("a checkpoint has only text and numbers");
        replace_file(&self.path, &text)
            .map_err(|error| CheckpointError::Io { path: self.path.display().to_string(), error })
    }
}

pub fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
