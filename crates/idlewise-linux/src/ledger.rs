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

    /// Undoes it, where it still is as it was left.
    fn undo(&self);
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

    fn write(&self) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(&self.list).expect("a list has only text and numbers");
        self.folder.replace(&self.file, &text, Mode::from_raw_mode(0o600), false)
    }
}

impl<T> Drop for Ledger<T> {
    /// Whoever drops it has undone all of it.
    fn drop(&mut self) {
        if !self.list.done.is_empty() {
            let _ = self.folder.remove(&self.file);
        }
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
    let Ok(Some(own)) = Folder::own_if_there(folder) else { return };
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if path.extension().and_then(OsStr::to_str) != Some(T::END) {
            continue;
        }
        let list = own.read(&name).ok().and_then(|text| serde_json::from_slice::<List<T>>(&text).ok());
        let left = list.filter(|list| list.version == VERSION && list.process.is_alive() == Some(false));
        if let Some(list) = left {
            list.done.iter().rev().for_each(T::undo);
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
        self.write()?;
        std::mem::forget(self);
        Ok(())
    }
}
