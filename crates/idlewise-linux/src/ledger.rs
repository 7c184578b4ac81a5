//! What is to be undone if this process is killed: it is written down before it is done, and whoever comes next undoes it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use rustix::fs::{Mode, OFlags, openat};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::device::read_cache::Before;
use crate::files::Folder;
use crate::knobs::Knobs;
use crate::repair::Suspension;
use crate::scrub::Process;
use crate::scrub::claim::own_folder;
use crate::scrubber::LetGo;

const VERSION: u32 = 3;

/// What was done to others.
pub trait Undo: Serialize + DeserializeOwned {
    /// What names of files with such end in.
    const END: &'static str;

    /// Undoes it, where it still is as it was left; whether nothing is left to undo.
    fn undo(&self) -> bool;
}

/// What this process has done, in a file: a line that says whose it is, and one for each thing, in the order in which it was done.
#[derive(Debug)]
pub struct Ledger<T> {
    folder: Folder,
    name: OsString,
    /// Open to add lines; none before the first.
    file: Option<File>,
    head: Head,
    done: Vec<T>,
}

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    /// Version of the format.
    version: u32,
    /// The process of idlewise.
    process: Process,
}

fn line(of: &impl Serialize) -> String {
    serde_json::to_string(of).expect("it has only text and numbers") + "\n"
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
        let name = format!("{}-{}.{}", process.pid, process.start_ticks, T::END).into();
        Ok(Self { folder, name, file: None, head: Head { version: VERSION, process }, done: Vec::new() })
    }

    /// This is about to be done.
    ///
    /// # Errors
    /// If it cannot be written down.
    pub fn add(&mut self, one: T) -> io::Result<()> {
        let line = line(&one);
        self.done.push(one);
        match &mut self.file {
            // A part of the line may have been written: the next one would be lost with it.
            Some(file) => file.write_all(line.as_bytes()).or_else(|_| self.write()),
            None => self.write(),
        }
    }

    /// Of what is not kept nothing is left to undo.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn retain(&mut self, keep: impl FnMut(&T) -> bool) -> io::Result<()> {
        self.done.retain(keep);
        self.write()
    }

    /// The last of it has been undone.
    ///
    /// # Errors
    /// If the file cannot be removed or written.
    pub fn take_back(&mut self) -> io::Result<()> {
        self.done.pop();
        if self.done.is_empty() { self.remove() } else { self.write() }
    }

    /// All of it has been undone.
    ///
    /// # Errors
    /// If the file cannot be removed.
    pub fn clear(&mut self) -> io::Result<()> {
        self.done.clear();
        if self.file.is_some() { self.remove() } else { Ok(()) }
    }

    fn remove(&mut self) -> io::Result<()> {
        self.file = None;
        self.folder.remove(&self.name)
    }

    /// Writes all of it anew.
    fn write(&mut self) -> io::Result<()> {
        self.file = None;
        let lines = self.done.iter().map(line);
        let text: String = [line(&self.head)].into_iter().chain(lines).collect();
        self.folder.replace(&self.name, text.as_bytes(), Mode::from_raw_mode(0o600), false)?;
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.file = Some(openat(&self.folder, &self.name, flags, Mode::empty())?.into());
        Ok(())
    }
}

/// Puts back what md, drives and ZFS were told by processes that were killed.
pub fn put_back_what_is_left() {
    release::<Knobs>();
    release::<Before>();
    release::<LetGo>();
    release::<Suspension>();
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
        let mut lines = text.split(|byte| *byte == b'\n');
        let head = lines.next().and_then(|line| serde_json::from_slice::<Head>(line).ok());
        let is_left = |head: &Head| head.version == VERSION && head.process.is_alive() == Some(false);
        if !head.is_some_and(|head| is_left(&head)) {
            return false;
        }
        // The last line may be cut: it was being written, and nothing was done yet.
        let done: Vec<T> = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
        // All of it, whatever becomes of one.
        done.iter().rev().map(T::undo).fold(true, |all, done| all & done)
    });
}

/// Removes the files of a folder of this user's whose names end so and of which nothing is needed any more.
pub fn sweep(folder: &Path, end: &str, is_over: impl Fn(&[u8]) -> bool) {
    let Ok(Some(own)) = Folder::own_if_there(folder) else { return };
    for name in own.names().unwrap_or_default() {
        let of_it = Path::new(&name).extension().and_then(OsStr::to_str) == Some(end);
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
        self.head.process.start_ticks += 9;
        self.write()
    }
}
