//! The log of a repair: a line before each write and one after it, on the disk before anything else happens.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::RepairError;

/// A file to which lines of JSON are added.
#[derive(Debug)]
pub struct RepairLog {
    path: PathBuf,
    file: File,
    device: String,
}

impl RepairLog {
    /// Opens the log, a regular file, which grows and is never cut.
    ///
    /// # Errors
    /// [`RepairError::Log`] if it cannot be written.
    pub fn open(path: &Path, device: &str) -> Result<Self, RepairError> {
        let file =
            crate::files::append(path).map_err(|error| RepairError::Log { path: path.display().to_string(), error })?;
        Ok(Self { path: path.to_path_buf(), file, device: device.into() })
    }

    /// Says what is about to happen or has happened to blocks, and waits until that is on the disk.
    pub(super) fn say(&mut self, event: &str, lba: u64, blocks: u64, by: &str) -> Result<(), RepairError> {
        self.add(json!({ "event": event, "lba": lba, "blocks": blocks, "by": by }))
    }

    /// The same with what the blocks held, so that it can be put back; nothing where they cannot be read.
    pub(super) fn say_what_was(
        &mut self,
        event: &str,
        lba: u64,
        blocks: u64,
        member: &str,
        was: Option<&[u8]>,
    ) -> Result<(), RepairError> {
        let was: Option<String> = was.map(|was| was.iter().map(|byte| format!("{byte:02x}")).collect());
        self.add(json!({ "event": event, "lba": lba, "blocks": blocks, "by": member, "was": was }))
    }

    fn add(&mut self, mut line: Value) -> Result<(), RepairError> {
        line["unix_s"] = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()).into();
        line["device"] = self.device.clone().into();
        let written = writeln!(self.file, "{line}").and_then(|()| self.file.sync_data());
        written.map_err(|error| RepairError::Log { path: self.path.display().to_string(), error })
    }
}
