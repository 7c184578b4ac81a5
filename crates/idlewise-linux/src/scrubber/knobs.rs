//! What md is told for a check in the gaps, and how it was before: put back in the end, by this process or by whoever comes after it. A limit
//! that is left behind would hold up a rebuild for good, and so would a speed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::ledger::{Ledger, Undo};

/// KiB a second of each member: as good as none, and as fast as it can.
pub const HELD: &str = "1";
pub const FREE: &str = "100000000";

/// An array's own settings, as they were found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Knobs {
    /// `md` of the array in /sys.
    folder: PathBuf,
    /// In sectors, where the check begins.
    begin: u64,
    speed_min: String,
    speed_max: String,
    min: String,
    max: String,
}

impl Knobs {
    /// As they are found, for a check from this sector on.
    ///
    /// # Errors
    /// If one of them cannot be read.
    pub fn of(folder: &Path, begin: u64) -> io::Result<Self> {
        let speed = |file: &str| {
            // What the whole system has is written as a word.
            let found = read(folder, file)?;
            let word = if found.contains("system") { "system" } else { found.split(' ').next().unwrap_or("system") };
            Ok::<_, io::Error>(word.to_string())
        };
        Ok(Self {
            folder: folder.into(),
            begin,
            speed_min: speed("sync_speed_min")?,
            speed_max: speed("sync_speed_max")?,
            min: read(folder, "sync_min")?,
            max: read(folder, "sync_max")?,
        })
    }

    /// Both limits of the speed.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn set_speed(&self, speed: &str) -> io::Result<()> {
        write(&self.folder, "sync_speed_max", speed)?;
        write(&self.folder, "sync_speed_min", speed)
    }

    /// Puts back what is still as it was left: a check that is at work is ended if it is this one, and nobody else's settings are changed.
    ///
    /// # Errors
    /// The first that could not be put back.
    pub fn put_back(&self) -> io::Result<()> {
        let of = |file: &str| read(&self.folder, file).unwrap_or_default();
        let ours = |speed: &String| {
            ["(local)", ""].iter().any(|end| [HELD, FREE].map(|one| format!("{one} {end}")).contains(speed))
        };
        let (speeds, action, min, max) =
            (["sync_speed_min", "sync_speed_max"].map(&of), of("sync_action"), of("sync_min"), of("sync_max"));
        let is_limited = max != "max" || speeds.iter().any(ours);
        let is_this = action == "check" && min == self.begin.to_string() && is_limited;
        let mut writes: Vec<(&str, &str)> = Vec::new();
        if is_this {
            writes.push(("sync_action", "idle"));
        }
        for (file, (now, found)) in
            ["sync_speed_min", "sync_speed_max"].into_iter().zip(speeds.iter().zip([&self.speed_min, &self.speed_max]))
        {
            if ours(now) {
                writes.push((file, found));
            }
        }
        // A rebuild that has begun meanwhile would stop at the limit of the check.
        if max != self.max && max != "max" && action != "check" || is_this {
            writes.extend([("sync_min", "0"), ("sync_max", &*self.max)]);
            if self.min != "0" {
                writes.push(("sync_min", &self.min));
            }
        }
        // Each, whatever becomes of the others.
        let done: Vec<_> = writes.into_iter().map(|(file, value)| write(&self.folder, file, value)).collect();
        done.into_iter().collect()
    }
}

impl Undo for Knobs {
    const END: &'static str = "checks";

    fn undo(&self) -> bool {
        // An array that is gone has nothing to put back.
        !self.folder.exists() || self.put_back().is_ok()
    }
}

/// Where they are written down.
pub type KnobLedger = Ledger<Knobs>;

/// Puts back what checks have left whose process was killed.
pub fn put_back_checks() {
    crate::ledger::release::<Knobs>();
}

/// A setting of an array.
///
/// # Errors
/// If it cannot be read.
pub fn read(folder: &Path, file: &str) -> io::Result<String> {
    let text = fs::read_to_string(folder.join(file));
    text.map(|text| text.trim().into()).map_err(|error| named(file, &error))
}

/// Sets it.
///
/// # Errors
/// If it cannot be written.
pub fn write(folder: &Path, file: &str, value: &str) -> io::Result<()> {
    fs::write(folder.join(file), value).map_err(|error| named(file, &error))
}

fn named(file: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("md/{file}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [&str; 5] = ["sync_action", "sync_speed_min", "sync_speed_max", "sync_min", "sync_max"];

    fn array(values: [&str; 5]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        FILES.iter().zip(values).for_each(|(file, value)| fs::write(folder.path().join(file), value).unwrap());
        folder
    }

    fn values(folder: &Path) -> [String; 5] {
        FILES.map(|file| read(folder, file).unwrap())
    }

    #[test]
    fn what_was_left_is_put_back_and_nothing_else() {
        let system = ["idle", "1000 (system)", "200000 (system)", "0", "max"];
        let back = ["idle", "system", "system", "0", "max"];
        for (left, expected) in [
            // Killed while the gate is closed, while it is open, at a step's limit, and before it began.
            (["check", "1 (local)", "1 (local)", "128", "max"], back),
            (["check", "100000000 (local)", "100000000 (local)", "128", "max"], back),
            (
                ["check", "1000 (system)", "200000 (system)", "128", "4096"],
                ["idle", "1000 (system)", "200000 (system)", "0", "max"],
            ),
            (["idle", "1000 (system)", "1 (local)", "0", "max"], ["idle", "1000 (system)", "system", "0", "max"]),
            // A rebuild that stands at the limit.
            (["recover", "1 (local)", "1 (local)", "128", "4096"], ["recover", "system", "system", "0", "max"]),
            // Somebody else's check.
            (
                ["check", "1000 (system)", "200000 (system)", "128", "max"],
                ["check", "1000 (system)", "200000 (system)", "128", "max"],
            ),
            (
                ["check", "1000 (system)", "200000 (system)", "0", "512"],
                ["check", "1000 (system)", "200000 (system)", "0", "512"],
            ),
        ] {
            let folder = array(system);
            let knobs = Knobs::of(folder.path(), 128).unwrap();
            FILES.iter().zip(left).for_each(|(file, value)| fs::write(folder.path().join(file), value).unwrap());
            assert!(knobs.undo());
            assert_eq!(values(folder.path()), expected, "{left:?}");
        }
        assert!(Knobs::of(Path::new("/nowhere"), 0).is_err());
    }
}
