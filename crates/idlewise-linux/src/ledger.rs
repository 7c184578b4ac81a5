//! What is to be undone if this process is killed: it is written down before it is done, and whoever comes next undoes it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use rustix::fs::Mode;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::files::Folder;
use crate::scrub::Process;
use crate::scrub::claim::own_folder;

const VERSION: u32 = 2;

/// What was done to others.
pub trait Undo: Serialize + DeserializeOwned {
    /// What names of files with such end in.
    const END: &'static str;

    /// Undoes it, where it still is as it was left; whether nothing is left to undo.
    fn undo(&self) -> bool;
}

/// What this process has done, in a file.
#[derive(Debug)]
pub struct Ledger<T> {
    folder: Folder,
    file: OsString,
    list: List<T>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct List<T> {
    /// Version of the format.
    version: u32,
    /// The process of idlewise.
    process: Process,
    /// In the order in which it was done.
    done: Vec<T>,
}

impl<T: Undo> Ledger<T> {
    /// Of this process.
    ///
    /// # Errors
    /// If there is no folder for it, or it cannot be used.
    pub fn begin() -> io::Result<Self> {
        let none = || io::Error::new(io::ErrorKind::NotFound, "XDG_RUNTIME_DIR is not set");
        Self::within(&own_folder().ok_or_else(none)?)
    }

    /// The same in a folder.
    ///
    /// # Errors
    /// If it cannot be used.
    pub fn within(folder: &Path) -> io::Result<Self> {
        let folder = Folder::own(folder)?;
        let process = Process::this();
        let file = format!("{}-{}.{}", process.pid, process.start_ticks, T::END).into();
        Ok(Self { folder, file, list: List { version: VERSION, process, done: Vec::new() } })
    }

    /// This is about to be done.
    ///
    /// # Errors
    /// If it cannot be written down.
    pub fn add(&mut self, one: T) -> io::Result<()> {
        self.list.done.push(one);
        self.write()
    }

    /// The last of it has been undone.
    ///
    /// # Errors
    /// If the file cannot be removed or written.
    pub fn take_back(&mut self) -> io::Result<()> {
        self.list.done.pop();
        if self.list.done.is_empty() { self.folder.remove(&self.file) } else { self.write() }
    }

    /// All of it has been undone.
    ///
    /// # Errors
    /// If the file cannot be removed.
    pub fn clear(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.list.done).is_empty() { Ok(()) } else { self.folder.remove(&self.file) }
    }

    fn write(&self) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(&self.list).expect("a list has only text and numbers");
        self.folder.replace(&self.file, &text, Mode::from_raw_mode(0o600), false)
    }
}

/// Undoes what processes of this user have left that are gone.
pub fn release<T: Undo>() {
    if let Some(folder) = own_folder() {
        release_in::<T>(&folder);
    }
}

/// The same in a folder.
pub fn release_in<T: Undo>(folder: &Path) {
    sweep(folder, T::END, |text| {
        let list = serde_json::from_slice::<List<T>>(text).ok();
        let left = list.filter(|list| list.version == VERSION && list.process.is_alive() == Some(false));
        // All of it, whatever becomes of one.
        left.is_some_and(|list| list.done.iter().rev().map(T::undo).fold(true, |all, done| all & done))
    });
}

/// Removes the files of a folder of this user's whose names end so and of which nothing is needed any more.
pub fn sweep(folder: &Path, end: &str, is_over: impl Fn(&[u8]) -> bool) {
    let Ok(Some(own)) = Folder::own_if_there(folder) else { return };
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let of_it = path.extension().and_then(OsStr::to_str) == Some(end);
        if of_it && own.read(&name).is_ok_and(|text| is_over(&text)) {
            let _ = own.remove(&name);
        }
    }
}

#[cfg(test)]
impl<T> Ledger<T> {
    /// Leaves it as a process does that is killed.
    pub fn abandon(mut self) -> io::Result<()>
    where
        T: Undo,
    {
        self.list.process.start_ticks += 9;
        self.write()
    }
}
