//! Files as root writes them on a machine that others use: no link of another user is followed, nothing is seen half-written, and
//! nothing is left behind.

mod folder;
mod hold;
mod path;
mod replacement;

pub use folder::Folder;
pub use hold::Hold;
pub use path::{Spot, is, leads_to, stat_at};
pub(crate) use replacement::append;
pub use replacement::{Destination, Replacement, metadata_at, replace_file};

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use idlewise::Bytes;
use rustix::fs::OFlags;

/// Our own files are smaller: so is a checkpoint with as many bad runs as one may have.
const LARGEST: u64 = 64 << 20;

/// Reads a file like ours, whoever may have put something else there: no link is followed, no pipe waited for.
pub(crate) fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    content_of(File::options().read(true).custom_flags(flags.bits() as i32).open(path)?)
}

/// Reads what the kernel tells in a file of its own as text. Others choose names in it, of any bytes: those that are no text are replaced.
///
/// # Errors
/// If there is no such file.
pub fn told_by_kernel(path: impl AsRef<Path>) -> io::Result<String> {
    std::fs::read(path).map(|told| String::from_utf8_lossy(&told).into_owned())
}

fn content_of(file: File) -> io::Result<Vec<u8>> {
    small_content_of(file, LARGEST)
}

/// The same of a file that has at most so many bytes.
fn small_content_of(file: File, largest: u64) -> io::Result<Vec<u8>> {
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "is no regular file"));
    }
    let mut content = Vec::new();
    file.take(largest + 1).read_to_end(&mut content)?;
    if content.len() as u64 > largest {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("is larger than {}", Bytes(largest))));
    }
    Ok(content)
}
