//! What was measured so far, in a file: a run that was interrupted goes on with it.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, ensure};

use crate::judged::Judged;

/// Rows, and the file that has them: a line says how they were measured, and then comes a line for each.
pub struct Found {
    pub rows: Vec<Judged>,
    file: File,
}

impl Found {
    /// Begins anew.
    pub fn begin(path: &Path, setting: &str) -> anyhow::Result<Self> {
        let mut file = File::create(path)?;
        writeln!(file, "{setting}")?;
        Ok(Self { rows: Vec::new(), file })
    }

    /// Goes on with what is there.
    pub fn resume(path: &Path, setting: &str) -> anyhow::Result<Self> {
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

    pub fn has(&self, disk: &str, load: &str, goal: f64) -> bool {
        self.rows.iter().any(|row| row.disk == disk && row.load == load && (row.goal - goal).abs() < 1e-9)
    }

    pub fn add(&mut self, row: Judged) -> anyhow::Result<()> {
        writeln!(self.file, "{}", serde_json::to_string(&row)?)?;
        self.rows.push(row);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use idlewise::Nanos;
    use idlewise_testbed::lab::foreground::Played;

    use super::*;

    #[test]
    fn an_interrupted_run_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("found");
        let played = Played { responses: (0..100).map(f64::from).collect(), elapsed: 1.0, bytes: 0, read: 0 };
        let row = |load: &str| Judged::new("d", load, Nanos(500_000), [&played; 2], &played, &serde_json::json!({}));
        let mut found = Found::begin(&path, "60 s").unwrap();
        found.add(row("a")).unwrap();
        found.add(row("b")).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 10]).unwrap();
        let mut found = Found::resume(&path, "60 s").unwrap();
        assert_eq!(["a", "b"].map(|load| found.has("d", load, 0.0005)), [true, false]);
        assert!(!found.has("d", "a", 0.001) && !found.has("e", "a", 0.0005));
        found.add(row("c")).unwrap();
        let loads: Vec<_> = Found::resume(&path, "60 s").unwrap().rows.into_iter().map(|row| row.load).collect();
        assert_eq!(loads, ["a", "c"]);
        assert!(Found::resume(&path, "20 s").is_err());
    }
}
