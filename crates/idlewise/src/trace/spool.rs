//! Temporary files for what cannot be read in the order in which it comes, and a limit on what they take.

use std::cell::{Cell, OnceCell};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, PoisonError};

use crate::Bytes;

/// The room for temporary files.
pub struct Spool {
    limit: Bytes,
    left: Cell<u64>,
    /// The file that parts are in, if there are any, and where the last one ends.
    shared: OnceCell<Arc<Mutex<File>>>,
    end: Cell<u64>,
}

impl Spool {
    pub fn new(limit: Bytes) -> Self {
        Self { limit, left: Cell::new(limit.0), shared: OnceCell::new(), end: Cell::new(0) }
    }

    /// Everything that `read` gives in an unnamed temporary file, at its beginning.
    pub fn file(&self, read: &mut dyn Read) -> io::Result<File> {
        let mut file = tempfile::tempfile().map_err(with_folder)?;
        self.copy(read, &mut file)?;
        file.rewind()?;
        Ok(file)
    }

    /// The same in a part of a file that many share: a file of its own takes a descriptor each.
    pub fn part(&self, read: &mut dyn Read) -> io::Result<Part> {
        let shared = match self.shared.get() {
            Some(shared) => shared.clone(),
            None => {
                let new = Arc::new(Mutex::new(tempfile::tempfile().map_err(with_folder)?));
                self.shared.get_or_init(|| new).clone()
            }
        };
        let begin = self.end.get();
        let mut part = Part { file: shared, at: begin, end: u64::MAX };
        self.copy(read, &mut part)?;
        self.end.set(part.at);
        Ok(Part { at: begin, end: part.at, ..part })
    }

    fn copy(&self, read: &mut dyn Read, file: &mut impl Write) -> io::Result<()> {
        let folder = std::env::temp_dir();
        let written = io::copy(&mut read.take(self.left.get().saturating_add(1)), file).map_err(with_folder)?;
        let Some(left) = self.left.get().checked_sub(written) else {
            let (limit, folder) = (self.limit, folder.display());
            let problem =
                format!("more than {limit} of temporary files in {folder}: unpack it first, or raise --spool-limit");
            return Err(io::Error::other(problem));
        };
        self.left.set(left);
        Ok(())
    }
}

/// A part of a temporary file.
pub struct Part {
    file: Arc<Mutex<File>>,
    at: u64,
    end: u64,
}

impl Part {
    fn with_file(&mut self, room: usize, act: impl FnOnce(&mut File, usize) -> io::Result<usize>) -> io::Result<usize> {
        let room = room.min(usize::try_from(self.end - self.at).unwrap_or(usize::MAX));
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(self.at))?;
        let count = act(&mut file, room)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Read for Part {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.with_file(buffer.len(), |file, room| file.read(&mut buffer[..room]))
    }
}

impl Write for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.with_file(bytes.len(), |file, room| file.write(&bytes[..room]))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Where the room was that is full.
fn with_folder(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            let folder = std::env::temp_dir();
            io::Error::new(
                error.kind(),
                format!("{error}: {} holds temporary files; TMPDIR names another", folder.display()),
            )
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_together_keep_the_limit() {
        let spool = Spool::new(Bytes(10));
        let mut text = String::new();
        spool.file(&mut &b"123456"[..]).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "123456");
        let mut parts = ["78", "90"].map(|text| spool.part(&mut text.as_bytes()).unwrap());
        parts.iter_mut().rev().for_each(|part| assert_eq!(part.read_to_string(&mut text).unwrap(), 2));
        assert_eq!(text, "1234569078");
        let error = spool.file(&mut io::repeat(0)).unwrap_err().to_string();
        assert!(error.starts_with("more than 10B of temporary files in /"), "{error}");
    }
}
