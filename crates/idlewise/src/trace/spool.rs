//! Temporary files for what cannot be read in the order in which it comes, and a limit on what they take.

use std::cell::{Cell, OnceCell};
use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

use super::formats::lines::LONGEST_LINE;
use crate::Bytes;

/// The room for temporary files.
pub struct Spool {
    limit: Bytes,
    left: Cell<u64>,
    /// The file that parts are in, if there are any, and where the last one ends.
    shared: OnceCell<Arc<File>>,
    end: Cell<u64>,
}

impl Spool {
    pub fn new(limit: Bytes) -> Self {
        Self { limit, left: Cell::new(limit.0), shared: OnceCell::new(), end: Cell::new(0) }
    }

    /// Everything that `read` gives, in a part of an unnamed temporary file that all share: a file of its own takes a descriptor each.
    pub fn part(&self, read: &mut dyn Read) -> io::Result<Part> {
        let shared = match self.shared.get() {
            Some(shared) => shared.clone(),
            None => {
                let new = Arc::new(tempfile::tempfile().map_err(with_folder)?);
                self.shared.get_or_init(|| new).clone()
            }
        };
        let begin = self.end.get();
        let mut part = Part { file: shared, at: begin, end: u64::MAX, content: Content::default() };
        self.copy(read, &mut part)?;
        self.end.set(part.at);
        Ok(Part { at: begin, end: part.at, content: Content::default(), ..part })
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

/// A part of a file, or all of it, that is read from its beginning on or at any place.
#[derive(Clone)]
pub struct Part {
    file: Arc<File>,
    at: u64,
    end: u64,
    content: Content,
}

/// What was read so far. A file may be as long as somebody says: what was never written to it takes no space, and reads as zeros.
#[derive(Clone, Copy, Default)]
struct Content {
    /// Bytes of pages that are all zeros.
    zeros: u64,
    /// All others.
    others: u64,
}

impl Content {
    /// No trace has so many zeros, ...
    const MOST_ZEROS: u64 = 32 << 20;
    /// ... and so many times as many as there are others.
    const MOST_TIMES: u64 = 16;

    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        let others = written(bytes);
        self.others += others;
        self.zeros += bytes.len() as u64 - others;
        let Self { zeros, others } = *self;
        if zeros > Self::MOST_ZEROS && zeros / Self::MOST_TIMES > others {
            let why = format!("{} and more of it are nothing but zeros: no trace is so", Bytes(Self::MOST_ZEROS));
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Ok(())
    }
}

/// How many of these bytes are in pages that are not all zeros: in a hole of a file there are none.
pub fn written(bytes: &[u8]) -> u64 {
    const PAGE: usize = 4096;
    let is_empty = |page: &[u8]| page[0] == 0 && page.iter().all(|&byte| byte == 0);
    bytes.chunks(PAGE).filter(|page| !is_empty(page)).map(|page| page.len() as u64).sum()
}

impl Part {
    /// All of a file; none where it is a pipe or the like.
    pub fn of_file(file: &File) -> io::Result<Option<Self>> {
        let found = file.metadata()?;
        let part =
            || Ok(Self { file: Arc::new(file.try_clone()?), at: 0, end: found.len(), content: Content::default() });
        found.is_file().then(part).transpose()
    }

    /// Bytes that are left.
    pub fn left(&self) -> u64 {
        self.end - self.at
    }

    /// Bytes that are left and take space, as far as the file system tells.
    pub fn written(&self) -> u64 {
        const BLOCK: u64 = 512;
        let blocks = self.file.metadata().map_or(0, |found| found.blocks());
        if blocks == 0 { self.left() } else { self.left().min(blocks * BLOCK) }
    }

    /// The lines that begin in these bytes. The end of one is looked for as far as a line may be long.
    pub fn lines(&self, bytes: &Range<u64>) -> io::Result<Self> {
        let line = |byte: u64| {
            let Some(before) = byte.checked_sub(1) else { return Ok(self.at) };
            let mut rest = io::BufReader::new(self.from(before).take(LONGEST_LINE as u64));
            let skipped = rest.skip_until(b'\n')?;
            Ok::<_, io::Error>(self.from(before).at + skipped as u64)
        };
        let (at, end) = (line(bytes.start)?, line(bytes.end)?);
        Ok(Self { at, end: end.max(at), ..self.clone() })
    }

    /// Up to so many bytes.
    pub fn take_all(self, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.take(most).read_to_end(&mut bytes).map(|_| bytes)
    }

    /// The same from so many bytes further on, as far as there is more.
    pub fn from(&self, bytes: u64) -> Self {
        Self { at: self.at.saturating_add(bytes).min(self.end), ..self.clone() }
    }
}

impl Read for Part {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = buffer.len().min(usize::try_from(self.left()).unwrap_or(usize::MAX));
        let count = self.file.read_at(&mut buffer[..room], self.at)?;
        self.at += count as u64;
        self.content.add(&buffer[..count])?;
        Ok(count)
    }
}

impl Write for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write_at(bytes, self.at)?;
        self.at += count as u64;
        Ok(count)
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

    /// Reads the whole of a file that has these bytes at these places, and is so long.
    fn read_sparse(written: &[(u64, &[u8])], length: u64) -> io::Result<u64> {
        let file = tempfile::tempfile().unwrap();
        written.iter().for_each(|(at, bytes)| file.write_all_at(bytes, *at).unwrap());
        file.set_len(length).unwrap();
        io::copy(&mut Part::of_file(&file).unwrap().unwrap(), &mut io::sink())
    }

    #[test]
    fn a_hole_of_any_length_has_an_end() {
        let ends = |read: io::Result<u64>| read.unwrap_err().to_string();
        assert!(ends(read_sparse(&[(0, b"text")], 1 << 42)).starts_with("32.0 MiB and more"));
        // Neither do a few bytes here and there make it a trace.
        let here_and_there: Vec<(u64, &[u8])> = (0..1024).map(|at| (at << 27, &b"text"[..])).collect();
        assert!(ends(read_sparse(&here_and_there, 1 << 42)).starts_with("32.0 MiB and more"));
        assert_eq!(read_sparse(&[(0, b"text"), (20 << 20, b"more")], 24 << 20).unwrap(), 24 << 20);
    }

    #[test]
    fn the_end_of_a_line_is_not_looked_for_in_a_hole() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(b"a line\nanother", 0).unwrap();
        file.set_len(1 << 42).unwrap();
        let part = Part::of_file(&file).unwrap().unwrap();
        assert_eq!(part.lines(&(0..10)).unwrap().left(), 9 + LONGEST_LINE as u64);
        assert_eq!(part.lines(&(0..3)).unwrap().left(), 7);
        assert!(part.written() <= 4096 && part.from(5).written() > 0, "{}", part.written());
    }

    #[test]
    fn all_files_together_keep_the_limit() {
        let spool = Spool::new(Bytes(10));
        let mut text = String::new();
        spool.part(&mut &b"123456"[..]).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "123456");
        let mut parts = ["78", "90"].map(|text| spool.part(&mut text.as_bytes()).unwrap());
        parts.iter_mut().rev().for_each(|part| assert_eq!(part.read_to_string(&mut text).unwrap(), 2));
        assert_eq!(text, "1234569078");
        let error = spool.part(&mut io::repeat(0)).err().unwrap().to_string();
        assert!(error.starts_with("more than 10 B of temporary files in /"), "{error}");
    }
}
