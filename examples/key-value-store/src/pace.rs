//! Where the store's compaction asks: between two entries of a merge.
//!
//! The store calls a compaction filter for every entry, to drop those that are out of date. This one keeps all of them, but it
//! may take its time: it returns when the step that the driver allows has room for the entry.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use idlewise::drive::{Measured, Worker};
use idlewise::policy::Policy;
use lsm_tree::compaction::filter::{CompactionFilter, Context, Factory, ItemAccessor, Verdict};

/// The pace of one tree's compaction.
#[derive(Clone)]
pub struct Pace(Arc<Mutex<Steps>>);

struct Steps {
    worker: Worker<Box<dyn Policy>>,
    /// Where the store writes its tables.
    tables: PathBuf,
    /// What the present step may still merge; what it merged too much is taken from the next.
    left: i64,
}

impl Pace {
    /// The pace that `worker` sets for the tree in `folder`.
    pub fn new(worker: Worker<Box<dyn Policy>>, folder: &Path) -> Self {
        Self(Arc::new(Mutex::new(Steps { worker, tables: folder.join("tables"), left: 0 })))
    }

    /// Runs a compaction step by step. What it does before its first entry is a step's, and what behind its last.
    pub fn run<T>(&self, compaction: impl FnOnce() -> lsm_tree::Result<T>) -> lsm_tree::Result<T> {
        self.steps().begin();
        let done = compaction();
        self.steps().end()?;
        done
    }

    /// What the reads suffered, and what was merged, as the driver saw it.
    pub fn measured(&self) -> Measured {
        self.steps().worker.measured()
    }

    fn steps(&self) -> std::sync::MutexGuard<'_, Steps> {
        self.0.lock().expect("a merge that panics ends the program")
    }
}

impl Steps {
    fn begin(&mut self) {
        self.left = self.left.min(0) + self.worker.ready().leave_open().0 as i64;
    }

    /// What a step wrote is written to the disk as long as it lasts: else the kernel would do so whenever it likes.
    fn end(&mut self) -> io::Result<()> {
        let written = newest(&self.tables).and_then(|table| table.map_or(Ok(()), |table| write_out(&table)));
        self.worker.step_ended();
        written
    }

    /// Waits until so much more may be merged.
    fn merge(&mut self, bytes: usize) -> io::Result<()> {
        if self.left <= 0 {
            self.end()?;
            self.begin();
        } else if self.worker.is_awaited() {
            // What it wrote is written out with the next step: a read is waiting.
            self.worker.step_ended();
            self.begin();
        }
        self.left -= bytes as i64;
        Ok(())
    }
}

/// The table that is being written: tables are numbered.
fn newest(tables: &Path) -> io::Result<Option<File>> {
    let names = tables.read_dir()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok()?.parse::<u64>().ok());
    names.max().map(|name| File::open(tables.join(name.to_string()))).transpose()
}

/// Returns when what was written to the file so far is on the disk. Its metadata are not: they cost more than the data.
fn write_out(file: &File) -> io::Result<()> {
    let all = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: the descriptor is open as long as the file is, and no memory is handed over.
    match unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, all) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Factory for Pace {
    fn name(&self) -> &str {
        "pace"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        Box::new(self.clone())
    }
}

impl CompactionFilter for Pace {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> lsm_tree::Result<Verdict> {
        let bytes = item.key().len() + item.value()?.len();
        self.steps().merge(bytes)?;
        Ok(Verdict::Keep)
    }
}
