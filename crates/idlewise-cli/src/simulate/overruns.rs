//! How late a command is held: given as times, or as `idlewise run --json` measured it.

use std::path::PathBuf;

use anyhow::Context;
use idlewise::Nanos;
use idlewise::simulate::Command;
use serde::Deserialize;

use crate::exit::UsageError;
use crate::input::text_file;

/// The part of the file that is read.
#[derive(Deserialize)]
struct Run {
    disks: Vec<Disk>,
}

#[derive(Deserialize)]
struct Disk {
    overruns: Overruns,
}

#[derive(Deserialize)]
struct Overruns {
    count: u64,
    uses: u64,
    percentiles_s: Vec<f64>,
}

/// The file, if it is one: what reads as times is times, whatever the folder has.
pub fn file(given: &str) -> Option<PathBuf> {
    Some(PathBuf::from(given)).filter(|path| times(given).is_none() && path.exists())
}

/// The overruns, each as likely as the others.
pub fn read(given: &str) -> anyhow::Result<Vec<Nanos>> {
    let Some(path) = file(given) else {
        let wrong = || UsageError(format!("--run {given}: neither a file nor times such as 8ms or 2ms,5ms,40ms"));
        return Ok(times(given).ok_or_else(wrong)?);
    };
    let run: Run = serde_json::from_str(&text_file(&path)?)
        .map_err(|error| anyhow::anyhow!("{given}: not what `idlewise run --json` writes: {error}"))?;
    // Where it used several disks, the one of which most is known.
    let disk = run.disks.into_iter().map(|disk| disk.overruns).max_by_key(|overruns| overruns.count);
    let overruns = disk.filter(|overruns| overruns.count > 0 && !overruns.percentiles_s.is_empty());
    let none = || {
        format!(
            "{given}: no foreground request came while the command used a disk, so nothing was delayed: measure for longer, or give \
             times"
        )
    };
    let Overruns { count, uses, percentiles_s } = overruns.with_context(none)?;
    Command::measured(uses, count, &percentiles_s).with_context(|| format!("{given}: its overruns are no times"))
}

fn times(given: &str) -> Option<Vec<Nanos>> {
    given.split(',').map(|time| time.trim().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_taken_as_they_are_and_files_by_the_disk_of_which_most_is_known() {
        let read = |given: &str| read(given).map_err(|error| error.to_string());
        assert_eq!(read("8ms"), Ok(vec![Nanos::from_millis(8)]));
        assert_eq!(read("2ms, 5ms"), Ok(vec![Nanos::from_millis(2), Nanos::from_millis(5)]));
        assert!(read("8 parsecs").unwrap_err().starts_with("--run 8 parsecs: neither a file nor times"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.json");
        let disk =
            |count| format!(r#"{{"overruns": {{"count": {count}, "uses": 40, "percentiles_s": [0.001, 0.002]}}}}"#);
        std::fs::write(&path, format!(r#"{{"disks": [{}, {}]}}"#, disk(10), disk(30))).unwrap();
        // Of the disk that has the most.
        let late = super::read(path.to_str().unwrap()).unwrap().iter().filter(|time| **time > Nanos::ZERO).count();
        assert_eq!(late, 7_500);
    }
}
