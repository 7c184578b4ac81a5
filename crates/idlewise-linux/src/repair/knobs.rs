//! What md is told for the check of a part, and how it was before: put back in the end, by this process or by whoever comes after it.
//! A limit that is left behind would hold up a rebuild for good.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::ledger::{Ledger, Undo};

/// The files of an array that limit and start a check, in the order in which they are put back.
const FILES: [&str; 3] = ["sync_action", "sync_min", "sync_max"];

/// What was written to an array's files, and what they held before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Knobs {
    /// `md` of the array in /sys.
    folder: PathBuf,
    /// Of each of the files.
    found: [String; 3],
    set: [String; 3],
}

impl Knobs {
    /// What is found in `folder`, where an action on these sectors is to be told: `check`, or `repair`.
    ///
    /// # Errors
    /// If one of the files cannot be read.
    pub fn of(action: &str, folder: &Path, begin: u64, limit: &str) -> io::Result<Self> {
        let [found, min, max] = FILES.map(|file| read(folder, file));
        let set = [action.into(), begin.to_string(), limit.into()];
        Ok(Self { folder: folder.into(), found: [found?, min?, max?], set })
    }

    /// Whether they are as this check left them, at whatever moment it was ended: nobody has changed any of them since. A check without a
    /// limit may be anybody's, and ends by itself.
    fn are_ours(&self) -> bool {
        let [Ok(action), Ok(min), Ok(max)] = FILES.map(|file| read(&self.folder, file)) else { return false };
        let [[_, _, found_max], [set_action, set_min, set_max]] = [&self.found, &self.set];
        match &*action {
            ours if ours == set_action => min == *set_min && max == *set_max && max != "max",
            // On the way to it, or back from it.
            "idle" => (min == *set_min || min == "0") && (max == *set_max || max == *found_max),
            _ => false,
        }
    }

    /// Has md check from the one limit to the other.
    ///
    /// # Errors
    /// The first that cannot be written.
    pub fn set(&self) -> io::Result<()> {
        self.set_writes().into_iter().try_for_each(|(file, value)| self.write(file, value))
    }

    /// In this order: the beginning must not lie beyond the limit.
    fn set_writes(&self) -> [(&'static str, &str); 4] {
        let [action, min, max] = &self.set;
        [("sync_min", "0"), ("sync_max", max), ("sync_min", min), ("sync_action", action)]
    }

    fn write(&self, file: &str, value: &str) -> io::Result<()> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("md/{file}: {error}"));
        fs::write(self.folder.join(file), value).map_err(named)
    }

    /// Ends the check and puts the limits back, as far as possible.
    ///
    /// # Errors
    /// The first that could not be.
    pub fn put_back(&self) -> io::Result<()> {
        let [action, min, max] = &self.found;
        // A limit may be raised only, and the beginning not lie beyond it.
        let writes = [("sync_action", &**action), ("sync_min", "0"), ("sync_max", max), ("sync_min", min)];
        writes.map(|(file, value)| self.write(file, value)).into_iter().collect()
    }
}

impl Undo for Knobs {
    const END: &'static str = "knobs";

    /// Whoever else has changed anything meanwhile knows better.
    fn undo(&self) -> bool {
        !self.are_ours() || self.put_back().is_ok()
    }
}

/// Puts back what earlier repairs have left that were killed.
pub fn put_back_what_is_left() {
    crate::ledger::release::<Knobs>();
}

/// Where they are written down.
pub type KnobLedger = Ledger<Knobs>;

fn read(folder: &Path, file: &str) -> io::Result<String> {
    let text = fs::read_to_string(folder.join(file));
    text.map(|text| text.trim().into()).map_err(|error| io::Error::new(error.kind(), format!("md/{file}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::release_in;

    fn array(values: [&str; 3]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        FILES.iter().zip(values).for_each(|(file, value)| fs::write(folder.path().join(file), value).unwrap());
        folder
    }

    fn values(array: &tempfile::TempDir) -> [String; 3] {
        FILES.map(|file| read(array.path(), file).unwrap())
    }

    /// A note of a check of these sectors, by a process that was killed behind so many of its writes.
    fn killed_after(writes: usize, array: &tempfile::TempDir, states: &Path) {
        let mut ledger = KnobLedger::within(states).unwrap();
        let knobs = Knobs::of("check", array.path(), 128, "256").unwrap();
        ledger.add(knobs.clone()).unwrap();
        let all = knobs.set_writes().into_iter().take(writes);
        all.for_each(|(file, value)| fs::write(array.path().join(file), value).unwrap());
        let before = values(array);
        release_in::<Knobs>(states);
        assert_eq!(values(array), before, "its process is there");
        ledger.abandon().unwrap();
    }

    #[test]
    fn what_a_repair_has_set_is_put_back_at_whatever_write_it_was_killed() {
        for found in [["idle", "0", "max"], ["idle", "8", "512"]] {
            for writes in 0..=4 {
                let (states, array) = (tempfile::tempdir().unwrap(), array(found));
                killed_after(writes, &array, states.path());
                release_in::<Knobs>(states.path());
                assert_eq!(values(&array), found, "after {writes} writes");
                assert!(fs::read_dir(states.path()).unwrap().next().is_none());
            }
        }
    }

    #[test]
    fn what_somebody_else_has_changed_since_is_left_alone() {
        for now in [["check", "128", "max"], ["check", "0", "max"], ["resync", "128", "256"], ["idle", "64", "256"]] {
            let (states, array) = (tempfile::tempdir().unwrap(), array(["idle", "0", "max"]));
            killed_after(4, &array, states.path());
            FILES.iter().zip(now).for_each(|(file, value)| fs::write(array.path().join(file), value).unwrap());
            release_in::<Knobs>(states.path());
            assert_eq!(values(&array), now);
        }
    }

    /// Whoever cannot put it back leaves the note to the next.
    #[test]
    fn what_cannot_be_put_back_stays_written_down() {
        let (states, array) = (tempfile::tempdir().unwrap(), array(["check", "128", "max"]));
        let limit = array.path().join("sync_max");
        // It is read, and not even root may write it.
        fs::remove_file(&limit).unwrap();
        std::os::unix::fs::symlink("/proc/sys/kernel/ostype", &limit).unwrap();
        let [found, set] = [["idle", "0", "max"], ["check", "128", "Linux"]].map(|all| all.map(String::from));
        let mut ledger = KnobLedger::within(states.path()).unwrap();
        ledger.add(Knobs { folder: array.path().into(), found, set }).unwrap();
        ledger.abandon().unwrap();
        release_in::<Knobs>(states.path());
        assert_eq!(fs::read_dir(states.path()).unwrap().count(), 1);
        fs::remove_file(&limit).unwrap();
        fs::write(&limit, "Linux").unwrap();
        release_in::<Knobs>(states.path());
        assert_eq!(values(&array), ["idle", "0", "max"]);
        assert_eq!(fs::read_dir(states.path()).unwrap().count(), 0);
    }
}
