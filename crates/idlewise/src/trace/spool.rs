//! Temporary files for what cannot be read in the order in which it comes, and a limit on what they take.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Seek};

use crate::Bytes;

/// The room for temporary files.
pub struct Spool {
    limit: Bytes,
    left: Cell<u64>,
}

impl Spool {
    pub fn new(limit: Bytes) -> Self {
        Self { limit, left: Cell::new(limit.0) }
    }

    /// Everything that `read` gives in an unnamed temporary file, at its beginning.
    pub fn file(&self, read: &mut dyn Read) -> io::Result<File> {
        let folder = std::env::temp_dir();
        let mut file = tempfile::tempfile().map_err(with_folder)?;
        let written = io::copy(&mut read.take(self.left.get().saturating_add(1)), &mut file).map_err(with_folder)?;
        let Some(left) = self.left.get().checked_sub(written) else {
            let (limit, folder) = (self.limit, folder.display());
            let problem =
                format!("more than {limit} of temporary files in {folder}: unpack it first, or raise --spool-limit");
            return Err(io::Error::other(problem));
        };
        self.left.set(left);
        file.rewind()?;
        Ok(file)
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
        assert!(spool.file(&mut &b"7890"[..]).is_ok());
        let error = spool.file(&mut io::repeat(0)).unwrap_err().to_string();
        assert!(error.starts_with("more than 10B of temporary files in /"), "{error}");
    }
}
