//! The folder in which messages wait. It belongs to whoever sends them, and nothing in it is reached through a link: what another user has
//! put there, or in its place, is neither sent nor removed.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use idlewise_linux::files::Folder;

use crate::messages::{Message, VERSION};

/// So many wait at most; then the oldest is dropped.
const MOST: usize = 1000;

/// Where it is, beside the checkpoints.
pub fn outbox(states: &Path) -> PathBuf {
    states.join("outbox")
}

/// The folder, opened.
pub struct Outbox(Folder);

impl Outbox {
    /// Opens it; nothing where there is none.
    ///
    /// # Errors
    /// If it cannot be opened, or another user may write to it.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        Ok(Folder::own_if_there(path)?.map(Self))
    }

    /// The same; it is made where there is none.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn make(path: &Path) -> io::Result<Self> {
        Folder::own(path).map(Self)
    }

    /// Has messages wait, all or none.
    ///
    /// # Errors
    /// If one cannot be written.
    pub fn post(&self, messages: &[Message]) -> io::Result<()> {
        let mut waiting = self.waiting()?;
        let before = waiting.len();
        for message in messages {
            let names = (0u32..).map(|number| OsString::from(format!("{:016.3}-{number}.json", message.unix_s)));
            let name = names.into_iter().find(|name| !waiting.contains(name)).expect("there are enough numbers");
            if let Err(error) = self.replace(&name, message) {
                // Else the first would be sent again and again while there is no room for the others.
                waiting[before..].iter().for_each(|name| _ = self.remove(name));
                return Err(error);
            }
            waiting.push(name);
        }
        waiting.sort();
        let too_many = waiting.len().saturating_sub(MOST);
        waiting.iter().take(too_many).try_for_each(|name| self.remove(name))
    }

    /// The messages that wait, the oldest first.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn waiting(&self) -> io::Result<Vec<OsString>> {
        let mut names = self.0.names()?;
        names.retain(|name| Path::new(name).extension().is_some_and(|end| end == "json"));
        names.sort();
        Ok(names)
    }

    /// Since when the oldest waits, in seconds since 1970; nothing where none does.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn oldest(&self) -> io::Result<Option<f64>> {
        let waiting = self.waiting()?;
        let written = |name: &OsString| name.to_str()?.split('-').next()?.parse().ok();
        Ok(waiting.iter().filter_map(written).reduce(f64::min))
    }

    /// Reads one.
    ///
    /// # Errors
    /// If it is none, or another user's.
    pub fn read(&self, name: &OsStr) -> io::Result<Message> {
        let message: Message = serde_json::from_slice(&self.0.read(name)?)?;
        let other = || io::Error::new(io::ErrorKind::InvalidData, "a message of another version");
        if message.version == VERSION { Ok(message) } else { Err(other()) }
    }

    /// Writes one anew, which waits already.
    ///
    /// # Errors
    /// If that is not possible; the old one is there then.
    pub fn replace(&self, name: &OsStr, message: &Message) -> io::Result<()> {
        self.0.replace_own(name, serde_json::to_string_pretty(message)?.as_bytes())
    }

    /// Removes one.
    ///
    /// # Errors
    /// If that is not possible.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        self.0.remove(name)
    }

    /// Puts one into another folder.
    ///
    /// # Errors
    /// If that is not possible.
    pub fn put_aside(&self, name: &OsStr, aside: &Self) -> io::Result<()> {
        self.0.move_to(name, &aside.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_wait_in_order_and_not_too_many() {
        let folder = tempfile::tempdir().unwrap();
        let path = outbox(folder.path());
        assert!(Outbox::open(&path).unwrap().is_none());
        let outbox = Outbox::make(&path).unwrap();
        let message = |at: f64| Message::test(at);
        outbox.post(&[message(2.0), message(1.0), message(2.0)]).unwrap();
        let times = || {
            let names = outbox.waiting().unwrap();
            names.iter().map(|name| outbox.read(name).unwrap().unix_s).collect::<Vec<_>>()
        };
        assert_eq!((times(), outbox.oldest().unwrap()), (vec![1.0, 2.0, 2.0], Some(1.0)));
        let many: Vec<_> = (0..MOST).map(|at| message(10.0 + at as f64)).collect();
        outbox.post(&many).unwrap();
        assert_eq!((times().len(), times()[0]), (MOST, 10.0));
        let first = outbox.waiting().unwrap().remove(0);
        std::fs::write(path.join(&first), "{}").unwrap();
        assert!(outbox.read(&first).is_err());
        // A link is no message, wherever it leads.
        std::fs::remove_file(path.join(&first)).unwrap();
        std::os::unix::fs::symlink(path.join(&outbox.waiting().unwrap()[1]), path.join(&first)).unwrap();
        assert!(outbox.read(&first).is_err());
        let aside = Outbox::make(&path.join("failed")).unwrap();
        let second = outbox.waiting().unwrap().remove(1);
        outbox.put_aside(&second, &aside).unwrap();
        assert_eq!((aside.waiting().unwrap(), outbox.waiting().unwrap().contains(&second)), (vec![second], false));
    }
}
