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
    /// What is found in `folder`, where a check of these sectors is to be told.
    ///
    /// # Errors
    /// If one of the files cannot be read.
    pub fn of_check(folder: &Path, begin: u64, limit: &str) -> io::Result<Self> {
        let [action, min, max] = FILES.map(|file| read(folder, file));
        let set = ["check".into(), begin.to_string(), limit.into()];
        Ok(Self { folder: folder.into(), found: [action?, min?, max?], set })
    }

    /// Whether nobody has changed any of them since.
    fn stand(&self) -> bool {
        let is_set = |(file, set): (&&str, &String)| read(&self.folder, file).is_ok_and(|value| value == *set);
        FILES.iter().zip(&self.set).all(is_set)
    }

    /// Ends the check and puts the limits back, as far as possible.
    ///
    /// # Errors
    /// The first that could not be.
    pub fn put_back(&self) -> io::Result<()> {
        let [action, min, max] = &self.found;
        // A limit may be raised only, and the beginning not lie beyond it.
        let writes = [("sync_action", &**action), ("sync_min", "0"), ("sync_max", max), ("sync_min", min)];
        let write = |(file, value): (&str, &str)| {
            let named = |error: io::Error| io::Error::new(error.kind(), format!("md/{file}: {error}"));
            fs::write(self.folder.join(file), value).map_err(named)
        };
        writes.map(write).into_iter().collect()
    }
}

impl Undo for Knobs {
    const END: &'static str = "knobs";

    /// Where the check goes on that a process has begun that is gone: whoever else has changed anything meanwhile knows better.
    fn undo(&self) {
        if self.stand() {
            let _ = self.put_back();
        }
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

    #[test]
    fn what_a_killed_repair_has_set_is_put_back_unless_somebody_else_has_changed_it() {
        let states = tempfile::tempdir().unwrap();
        let (left, taken) = (array(["idle", "0", "max"]), array(["idle", "8", "500"]));
        for array in [&left, &taken] {
            let mut ledger = KnobLedger::within(states.path()).unwrap();
            ledger.add(Knobs::of_check(array.path(), 128, "256").unwrap()).unwrap();
            FILES.iter().zip(["check", "128", "256"]).for_each(|(f, v)| fs::write(array.path().join(f), v).unwrap());
            release_in::<Knobs>(states.path());
            assert_eq!(values(array), ["check", "128", "256"], "its process is there");
            ledger.abandon().unwrap();
            if std::ptr::eq(array, &taken) {
                fs::write(array.path().join("sync_max"), "max").unwrap();
            }
            release_in::<Knobs>(states.path());
        }
        assert_eq!(values(&left), ["idle", "0", "max"]);
        assert_eq!(values(&taken), ["check", "128", "max"]);
        assert!(fs::read_dir(states.path()).unwrap().next().is_none());
    }
}
