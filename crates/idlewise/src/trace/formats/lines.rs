//! What the line-based formats share: lines, and the place of a mistake.

use std::ops::Deref;

use super::Parser;
pub use super::fields::{Field, Fields};
use crate::trace::{Bad, Columns, Place};

/// No line of any trace format is this long; one that is, is no trace.
pub(crate) const LONGEST_LINE: usize = 64 << 10;

/// What is wrong with a name that is too long.
pub const SHORT_NAME: &str = "a name of at most 255 bytes";

/// A mistake in a line: the byte where it begins and what should be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Where it begins in the line, from zero.
    pub at: usize,
    /// How many bytes of the line it is.
    pub len: usize,
    /// What should be there.
    pub expected: &'static str,
}

/// A line, without its end.
#[derive(Clone, Copy)]
pub struct Line<'a> {
    /// What it holds.
    pub text: &'a [u8],
    /// The line and what is behind it, so that its end can be read by whole words too.
    pub ahead: &'a [u8],
}

impl Deref for Line<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.text
    }
}

impl<'a> From<&'a [u8]> for Line<'a> {
    fn from(text: &'a [u8]) -> Self {
        Self { text, ahead: text }
    }
}

/// How one line of a format becomes a request.
pub trait Row: Send {
    /// Reads one line; it may also be a header or a comment, and add nothing.
    ///
    /// # Errors
    /// The first mistake in it.
    fn row(&mut self, line: Line, out: &mut Columns) -> Result<(), Mistake>;
}

/// Whether a line near the front of a file is one of this format.
pub fn claims(head: &[u8], mut row: impl Row) -> bool {
    head_lines(head).take(100).any(|line| {
        let mut columns = Columns::default();
        match row.row(line.into(), &mut columns) {
            Ok(()) => !columns.is_empty(),
            // Better an error that says so than an unknown format.
            Err(mistake) => mistake.expected == SHORT_NAME,
        }
    })
}

/// A parser for a format of lines. Blank lines are passed over.
pub struct Lines<R> {
    row: R,
    line: u64,
    /// What comes next is the rest of a line that was too long.
    cut: bool,
}

impl<R: Row> Lines<R> {
    /// A parser of lines that this reads.
    pub fn new(row: R) -> Self {
        Self { row, line: 0, cut: false }
    }
}

impl<R: Row> Parser for Lines<R> {
    fn parse(&mut self, input: &[u8], last: bool, out: &mut Columns) -> Result<usize, Bad> {
        let mut used = 0;
        while used < input.len() {
            let rest = &input[used..];
            if self.cut {
                let end = memchr::memchr(b'\n', rest);
                self.cut = end.is_none();
                used += end.map_or(rest.len(), |end| end + 1);
                continue;
            }
            let (text, next) = match memchr::memchr(b'\n', rest) {
                Some(end) => (&rest[..end], used + end + 1),
                None if last || rest.len() > LONGEST_LINE => (rest, input.len()),
                None => break,
            };
            self.line += 1;
            self.cut = !last && next == input.len() && !rest.ends_with(b"\n");
            let line = Line { text: text.strip_suffix(b"\r").unwrap_or(text), ahead: rest };
            used = next;
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let checked = if line.len() > LONGEST_LINE {
                Err(Mistake { at: 0, len: line.len(), expected: "a line of less than 64 KiB" })
            } else {
                self.row.row(line, out)
            };
            checked.map_err(|mistake| {
                let place = Place::Line { line: self.line, column: mistake.at + 1 };
                Bad::new(place, mistake.expected, &line[mistake.at..mistake.at + mistake.len], used)
            })?;
        }
        Ok(used)
    }

    fn take_lines(&mut self) -> u64 {
        std::mem::take(&mut self.line)
    }
}

/// The lines at the front of a file, for detection; the last one may be cut.
pub fn head_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    head.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}
