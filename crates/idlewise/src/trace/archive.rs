//! The members of a tar archive, of which only those are unpacked that may be traces.

use std::cell::Cell;
use std::io::{self, Cursor, Read};
use std::rc::Rc;
use std::sync::Arc;

use super::compression::decompressed;
use super::inputs::HEAD;
use crate::Bytes;

/// Where a tar archive says that it is one.
const MAGIC: (usize, &[u8]) = (257, b"ustar");
/// Bytes between two members: headers and long names, which are read as a whole.
const BETWEEN: u64 = 1 << 20;
/// Characters that a member's name is told with.
const LONGEST_NAME: usize = 255;
/// So much of a compressed member is sure to give its first bytes: a block of bzip2 is shorter.
const BLOCK: u64 = 1 << 20;
/// Bytes that a trace may have and the archive has not: a hole costs nothing there and as much as any content here.
const HOLES: u64 = 1 << 20;

/// Whether the first bytes are of an archive.
pub fn claims(head: &[u8]) -> bool {
    head.get(MAGIC.0..).is_some_and(|at| at.starts_with(MAGIC.1))
}

/// Calls `member` with name, first bytes and content of every file in the archive. The first bytes are decompressed, in no more
/// than `memory` bytes.
pub fn each_member(
    archive: impl Read,
    memory: u64,
    mut member: impl FnMut(&str, &[u8], &mut dyn Read) -> io::Result<()>,
) -> io::Result<()> {
    let left = Rc::new(Cell::new(BETWEEN));
    let mut archive = tar::Archive::new(Metered { read: archive, left: left.clone() });
    for entry in archive.entries()? {
        let mut entry = entry?;
        let kind = entry.header().entry_type();
        let stored = stored(&mut entry)?;
        let holes = entry.size().saturating_sub(stored);
        // What follows is passed on in pieces, or over.
        left.set(u64::MAX);
        let name = shortened(&entry.path()?.display().to_string());
        if kind.is_file() || kind.is_contiguous() || kind.is_gnu_sparse() {
            let mut first = Vec::new();
            entry.by_ref().take(BLOCK).read_to_end(&mut first)?;
            let head =
                head(&first, memory).map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
            if holes > HOLES {
                member(&name, &head, &mut Sparse { name: &name, holes: Bytes(holes) })?;
            } else {
                member(&name, &head, &mut Cursor::new(&first).chain(&mut entry))?;
            }
        } else if !kind.is_dir() && !kind.is_pax_global_extensions() {
            member(&name, &[], &mut io::empty())?;
        }
        let read = u64::MAX - left.get();
        left.set(BETWEEN.saturating_add(stored.saturating_sub(read)));
    }
    Ok(())
}

/// Bytes of a member that are in the archive: of a file with holes fewer than it has.
fn stored<R: Read>(entry: &mut tar::Entry<R>) -> io::Result<u64> {
    if !entry.header().entry_type().is_gnu_sparse() {
        return Ok(entry.size());
    }
    // An extended header may state another size than the one in front of the holes, which then says nothing.
    let extended = entry.pax_extensions()?.into_iter().flatten().flatten().any(|field| field.key_bytes() == b"size");
    if extended { Ok(0) } else { entry.header().entry_size() }
}

/// Stands for the content of a file with holes, which are not read.
struct Sparse<'a> {
    name: &'a str,
    holes: Bytes,
}

impl Read for Sparse<'_> {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        let Self { name, holes } = self;
        Err(io::Error::other(format!("{name}: a sparse file with holes of {holes}: unpack it first")))
    }
}

/// The first bytes of a member, decompressed.
fn head(first: &[u8], memory: u64) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let read = decompressed(first, memory, &Arc::default())
        .and_then(|(read, _)| read.take(HEAD as u64).read_to_end(&mut head));
    match read {
        // A piece of a compressed file ends early, which is no error yet.
        Err(error) if first.len() as u64 == BLOCK && error.kind() == io::ErrorKind::UnexpectedEof => Ok(head),
        read => read.map(|_| head),
    }
}

/// A name whose end is told where it is long: there the file is named.
fn shortened(name: &str) -> String {
    match name.char_indices().rev().nth(LONGEST_NAME - 1) {
        Some((begin, _)) if begin > 0 => format!("...{}", &name[begin..]),
        _ => name.into(),
    }
}

/// Gives no more than so many bytes.
struct Metered<R> {
    read: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = buffer.len().min(usize::try_from(self.left.get()).unwrap_or(usize::MAX));
        if room == 0 && !buffer.is_empty() {
            return Err(io::Error::other("a damaged archive: a header of more than 1 MiB"));
        }
        let count = self.read.read(&mut buffer[..room])?;
        self.left.set(self.left.get() - count as u64);
        Ok(count)
    }
}
