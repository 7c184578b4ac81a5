//! What was measured so far, in a file: a run that was interrupted goes on with it.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, ensure};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Rows, and the file that has them: a line says how they were measured, and then comes a line for each.
pub struct Found<T> {
    /// What was measured.
    pub rows: Vec<T>,
    file: File,
}

impl<T: Serialize + DeserializeOwned> Found<T> {
    /// Begins anew, or goes on with what is there.
    ///
    /// # Errors
    /// If the file cannot be used, or what is there was measured otherwise.
    pub fn open(path: &Path, setting: &str, resume: bool) -> anyhow::Result<Self> {
        if resume { Self::resume(path, setting) } else { Self::begin(path, setting) }
    }

    fn begin(path: &Path, setting: &str) -> anyhow::Result<Self> {
        let mut file = File::create(path)?;
        writeln!(file, "{setting}")?;
        Ok(Self { rows: Vec::new(), file })
    }

    fn resume(path: &Path, setting: &str) -> anyhow::Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("nothing to go on with: {}", path.display()))?;
        let mut lines = text.lines();
        let was = lines.next().unwrap_or_default();
        ensure!(was == setting, "what is there was measured otherwise ({was}; now {setting}): begin without --resume");
        // Half a line, of a run that was killed, is measured again.
        let rows = lines.filter_map(|line| serde_json::from_str(line).ok()).collect();
        let mut file = OpenOptions::new().append(true).open(path)?;
        if !text.ends_with('\n') {
            writeln!(file)?;
        }
        Ok(Self { rows, file })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add(&mut self, row: T) -> anyhow::Result<()> {
        writeln!(self.file, "{}", serde_json::to_string(&row)?)?;
        self.rows.push(row);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_run_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("found");
        let mut found = Found::open(&path, "60 s", false).unwrap();
        found.add("the first".to_string()).unwrap();
        found.add("the second".to_string()).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 10]).unwrap();
        let mut found = Found::open(&path, "60 s", true).unwrap();
        assert_eq!(found.rows, ["the first"], "half a row is none");
        found.add("the third".to_string()).unwrap();
        assert_eq!(Found::<String>::open(&path, "60 s", true).unwrap().rows, ["the first", "the third"]);
        assert!(Found::<String>::open(&path, "20 s", true).is_err());
        assert!(Found::<String>::open(&path, "20 s", false).unwrap().rows.is_empty());
    }
}
