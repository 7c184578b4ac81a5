//! Files that are whole or not there.

use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// A file that takes the place of another when it is whole: whoever reads it sees the old or the new, also after a crash.
pub struct Replacement {
    path: PathBuf,
    file: NamedTempFile,
}

impl Replacement {
    /// Begins a new file beside `path`, which is not touched before [`Self::commit`].
    ///
    /// # Errors
    /// What the file system says.
    pub fn new(path: &Path) -> io::Result<Self> {
        let readable = std::fs::Permissions::from_mode(0o644);
        let create = tempfile::Builder::new().prefix(".idlewise-").permissions(readable).tempfile_in(folder_of(path));
        // The name of the file beside means nothing to anyone.
        let file = create.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => io::Error::new(io::ErrorKind::NotFound, "there is no such folder"),
            io::ErrorKind::PermissionDenied => {
                io::Error::new(io::ErrorKind::PermissionDenied, "no permission to write there")
            }
            _ => error,
        })?;
        Ok(Self { path: path.into(), file })
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// What the file system says; the old file is then untouched.
    pub fn commit(self) -> io::Result<()> {
        self.file.as_file().sync_all()?;
        self.file.persist(&self.path)?;
        // The rename itself must survive a crash.
        std::fs::File::open(folder_of(&self.path))?.sync_all()
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Replaces the file at `path` by `content`, whole or not at all.
///
/// # Errors
/// What the file system says; the old file is then untouched.
pub fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = Replacement::new(path)?;
    file.write_all(content)?;
    file.commit()
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_and_leaves_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        for content in ["one", "two"] {
            replace_file(&path, content.as_bytes()).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(replace_file(&folder.path().join("no/such/folder"), b"x").is_err());
    }
}
