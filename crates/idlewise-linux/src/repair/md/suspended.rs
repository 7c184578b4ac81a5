//! Writes to a part of an array wait while what its members hold there is looked at and put right (`suspend_lo` and `suspend_hi`,
//! Documentation/admin-guide/md.rst of the kernel).

use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use idlewise::report::printable::one_line;
use serde::{Deserialize, Serialize};

use super::SECTOR;
use crate::knobs::{read, write};
use crate::ledger::{Ledger, Undo};

const FILES: [&str; 2] = ["suspend_lo", "suspend_hi"];

/// A part of an array to which writes wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspension {
    /// `md` of the array in /sys.
    folder: PathBuf,
    /// In sectors of the array.
    begin: u64,
    end: u64,
}

impl Suspension {
    /// In this order nothing waits before both are known.
    fn start(&self) -> io::Result<()> {
        let [from, to] = FILES;
        write(&self.folder, from, &self.begin.to_string())?;
        write(&self.folder, to, &self.end.to_string())
    }

    /// Lets writes go on, where it is this that holds them.
    fn put_back(&self) -> io::Result<()> {
        let [from, to] = FILES;
        let is = [read(&self.folder, from)?, read(&self.folder, to)?];
        if is[0] != self.begin.to_string() || is[1] != self.end.to_string() && is[1] != "0" {
            return Ok(());
        }
        write(&self.folder, to, "0")?;
        write(&self.folder, from, "0")
    }
}

impl Undo for Suspension {
    const END: &'static str = "suspended";

    fn undo(&self) -> bool {
        !self.folder.exists() || self.put_back().is_ok()
    }
}

/// Until it is dropped, writes wait. Nothing may be written to a file meanwhile: it may lie on the array.
pub struct Suspended<'a> {
    is: Suspension,
    ledger: &'a mut Ledger<Suspension>,
}

impl<'a> Suspended<'a> {
    /// Has writes to some bytes of an array wait, and waits for those that are under way.
    ///
    /// # Errors
    /// If it cannot be written down or done, or somebody else has writes wait.
    pub fn begin(folder: &Path, bytes: &Range<u64>, ledger: &'a mut Ledger<Suspension>) -> io::Result<Self> {
        if FILES.iter().any(|file| read(folder, file).is_ok_and(|found| found != "0")) {
            return Err(io::Error::other("writes to a part of it wait already, for somebody else"));
        }
        let (begin, end) = (bytes.start / SECTOR, bytes.end.div_ceil(SECTOR));
        let is = Suspension { folder: folder.into(), begin, end };
        ledger.add(is.clone())?;
        let suspended = Self { is, ledger };
        suspended.is.start()?;
        Ok(suspended)
    }
}

impl Drop for Suspended<'_> {
    fn drop(&mut self) {
        match self.is.put_back() {
            Ok(()) => drop(self.ledger.take_back()),
            // Whoever comes next tries again.
            Err(error) => {
                let problem =
                    format!("{}: writes to a part of the array wait still: {error}", self.is.folder.display());
                let _ = writeln!(io::stderr(), "idlewise: {}", one_line(&problem));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::ledger::release_in;

    fn array() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        FILES.iter().for_each(|file| fs::write(folder.path().join(file), "0\n").unwrap());
        folder
    }

    fn values(folder: &Path) -> [String; 2] {
        FILES.map(|file| read(folder, file).unwrap())
    }

    #[test]
    fn writes_wait_only_while_it_is_held() {
        let (array, own) = (array(), tempfile::tempdir().unwrap());
        let mut ledger = Ledger::within(own.path()).unwrap();
        let held = Suspended::begin(array.path(), &(4096..8192), &mut ledger).unwrap();
        assert_eq!(values(array.path()), ["8", "16"]);
        drop(held);
        assert_eq!(values(array.path()), ["0", "0"]);
        assert_eq!(fs::read_dir(own.path()).unwrap().count(), 0);
        fs::write(array.path().join("suspend_hi"), "99").unwrap();
        assert!(Suspended::begin(array.path(), &(4096..8192), &mut ledger).is_err(), "it is another's");
        assert_eq!(values(array.path()), ["0", "99"]);
    }

    /// Killed at any moment, it leaves nothing that waits once the next process has begun; what is another's stays.
    #[test]
    fn what_a_killed_process_left_waiting_goes_on() {
        for [from, to] in [["0", "0"], ["8", "0"], ["8", "16"]] {
            let (array, own) = (array(), tempfile::tempdir().unwrap());
            let mut ledger = Ledger::within(own.path()).unwrap();
            ledger.add(Suspension { folder: array.path().into(), begin: 8, end: 16 }).unwrap();
            ledger.abandon().unwrap();
            FILES.iter().zip([from, to]).for_each(|(file, value)| fs::write(array.path().join(file), value).unwrap());
            release_in::<Suspension>(own.path());
            assert_eq!(values(array.path()), ["0", "0"], "{from} {to}");
        }
        let array = array();
        fs::write(array.path().join("suspend_hi"), "99").unwrap();
        assert!(Suspension { folder: array.path().into(), begin: 8, end: 16 }.undo());
        assert_eq!(values(array.path()), ["0", "99"]);
    }
}
