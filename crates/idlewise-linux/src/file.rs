//! Files that are whole or not there.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// A file that takes the place of another when it is whole: whoever reads it sees the old or the new, also after a crash.
/// What is no regular file, such as a pipe or `/dev/null`, is written as it is; a block device never is.
pub enum Replacement {
    /// A new file beside the one that it will replace.
    Beside {
        /// The file to replace.
        path: PathBuf,
        /// The new one.
        file: NamedTempFile,
    },
    /// A pipe, a terminal or the like.
    Straight(File),
}

impl Replacement {
    /// Begins a new file beside `path`, which is not touched before [`Self::commit`]. A symbolic link is followed.
    ///
    /// # Errors
    /// What the file system says, or that `path` is a block device.
    pub fn new(path: &Path) -> io::Result<Self> {
        // A link whose target does not exist yet is replaced itself.
        let path = path.canonicalize().unwrap_or(path.into());
        let old = path.metadata().ok();
        match old.as_ref().map(|old| old.file_type()) {
            Some(kind) if kind.is_block_device() => {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "is a block device, which is never written"));
            }
            Some(kind) if !kind.is_file() && !kind.is_dir() => {
                return Ok(Self::Straight(File::options().write(true).open(&path)?));
            }
            _ => {}
        }
        let mode = old.map_or(std::fs::Permissions::from_mode(0o644), |old| old.permissions());
        let create = tempfile::Builder::new().prefix(".idlewise-").permissions(mode).tempfile_in(folder_of(&path));
        // The name of the file beside means nothing to anyone.
        let file = create.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => io::Error::new(io::ErrorKind::NotFound, "there is no such folder"),
            io::ErrorKind::PermissionDenied => {
                io::Error::new(io::ErrorKind::PermissionDenied, "no permission to write there")
            }
            _ => error,
        })?;
        Ok(Self::Beside { path, file })
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// What the file system says; the old file is then untouched.
    pub fn commit(self) -> io::Result<()> {
        let (path, file) = match self {
            Self::Straight(mut file) => return file.flush(),
            Self::Beside { path, file } => (path, file),
        };
        file.as_file().sync_all()?;
        file.persist(&path)?;
        // The rename itself must survive a crash.
        File::open(folder_of(&path))?.sync_all()
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Beside { file, .. } => file.as_file_mut().write(bytes),
            Self::Straight(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Beside { file, .. } => file.as_file_mut().flush(),
            Self::Straight(file) => file.flush(),
        }
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

    #[test]
    fn links_and_modes_stay_and_what_is_no_file_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "old").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace_file(&link, b"new").unwrap();
        assert!(link.is_symlink() && std::fs::read_to_string(&file).unwrap() == "new");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        // The null device swallows it, and stays.
        replace_file(Path::new("/dev/null"), b"x").unwrap();
        assert!(Path::new("/dev/null").metadata().unwrap().file_type().is_char_device());
    }
}
