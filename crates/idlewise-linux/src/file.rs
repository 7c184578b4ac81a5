//! Files that are whole or not there.

use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Replaces the file at `path` by `content`: whoever reads it sees the old or the new, also after a crash.
///
/// # Errors
/// What the file system says; the old file is then untouched.
pub fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let readable = std::fs::Permissions::from_mode(0o644);
    let create = tempfile::Builder::new().prefix(".idlewise-").permissions(readable).tempfile_in(folder);
    // The name of the file beside means nothing to anyone.
    let mut file = create.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::new(io::ErrorKind::NotFound, "there is no such folder"),
        io::ErrorKind::PermissionDenied => {
            io::Error::new(io::ErrorKind::PermissionDenied, "no permission to write there")
        }
        _ => error,
    })?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    // The rename itself must survive a crash.
    std::fs::File::open(folder)?.sync_all()
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
