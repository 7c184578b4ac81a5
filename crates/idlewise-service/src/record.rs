//! What the service remembers of each disk, in `schedule.state` of the state folder (docs/formats.md): since when it is known, and what the
//! hours of its week have given.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use idlewise::schedule::Week;
use idlewise_linux::replace_file;
use serde::{Deserialize, Serialize};

const VERSION: u32 = 1;

/// What is remembered of a disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// Since when, in seconds since 1970.
    pub since_unix_s: f64,
    /// When it was last there.
    pub seen_unix_s: f64,
    /// Its hours.
    pub week: Week,
}

/// The file.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    /// By identity.
    pub disks: BTreeMap<String, Known>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    disks: BTreeMap<String, Known>,
}

impl Record {
    /// Reads that of a folder; and what was wrong with it, where nothing is remembered for that.
    pub fn read(folder: &Path) -> (Self, Option<String>) {
        let path = folder.join("schedule.state");
        let read = match std::fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(error.to_string()),
            Ok(text) => match serde_json::from_slice::<File>(&text) {
                Ok(File { version: VERSION, disks }) => Ok(disks),
                Ok(File { version, .. }) => Err(format!("version {version}, newer than {VERSION}")),
                Err(error) => Err(error.to_string()),
            },
        };
        let wrong = read.as_ref().err().map(|problem| format!("{}: {problem}", path.display()));
        (Self { path, disks: read.unwrap_or_default() }, wrong)
    }

    /// Replaces the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self) -> io::Result<()> {
        let file = File { version: VERSION, disks: self.disks.clone() };
        replace_file(&self.path, serde_json::to_string(&file)?.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let (mut record, wrong) = Record::read(folder.path());
        assert!(record.disks.is_empty() && wrong.is_none());
        let mut week = Week::default();
        week.add(100, 3600.0, 1 << 30);
        record.disks.insert("a".into(), Known { since_unix_s: 1.5, seen_unix_s: 2.0, week });
        record.save().unwrap();
        assert_eq!(Record::read(folder.path()).0.disks, record.disks);
        for text in ["", "{}", r#"{"version":2,"disks":{}}"#, r#"{"version":1,"disks":{"a":{}}}"#] {
            std::fs::write(folder.path().join("schedule.state"), text).unwrap();
            let (record, wrong) = Record::read(folder.path());
            assert!(record.disks.is_empty() && wrong.is_some_and(|wrong| wrong.contains("schedule.state")), "{text}");
        }
    }
}
