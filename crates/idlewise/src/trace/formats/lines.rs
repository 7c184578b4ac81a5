//! What the line-based formats share: lines, fields, numbers, and the place of a mistake.

use super::Parser;
use crate::trace::{Bad, Columns};

/// No line of any trace format is this long; one that is, is no trace.
const LONGEST_LINE: usize = 64 << 10;

/// A mistake in a line: the byte where it begins and what should be there.
pub struct Mistake {
    pub at: usize,
    pub len: usize,
    pub expected: &'static str,
}

/// How one line of a format becomes a request.
pub trait Row {
    /// Reads one line, without its end; it may also be a header or a comment, and add nothing.
    fn row(&mut self, line: &[u8], out: &mut Columns) -> Result<(), Mistake>;
}

/// A parser for a format of lines. Blank lines are passed over.
pub struct Lines<R> {
    row: R,
    line: u64,
}

impl<R: Row> Lines<R> {
    pub fn new(row: R) -> Self {
        Self { row, line: 0 }
    }
}

impl<R: Row> Parser for Lines<R> {
    fn parse(&mut self, input: &[u8], last: bool, out: &mut Columns) -> Result<usize, Bad> {
        let mut used = 0;
        while used < input.len() {
            let rest = &input[used..];
            let (line, next) = match memchr::memchr(b'\n', rest) {
                Some(end) => (&rest[..end], used + end + 1),
                None if last || rest.len() > LONGEST_LINE => (rest, input.len()),
                None => break,
            };
            self.line += 1;
            let line = line.strip_suffix(b"\r").unwrap_or(line);
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
                let place = format!("line {}, column {}", self.line, mistake.at + 1);
                Bad::new(place, mistake.expected, &line[mistake.at..mistake.at + mistake.len], used)
            })?;
        }
        Ok(used)
    }
}

/// The lines at the front of a file, for detection; the last one may be cut.
pub fn head_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    head.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

/// The fields of a line, with their places.
pub struct Fields<'a> {
    line: &'a [u8],
    separator: u8,
    next: usize,
}

/// One field, without the blanks around it.
#[derive(Clone, Copy)]
pub struct Field<'a> {
    pub text: &'a [u8],
    pub at: usize,
}

impl<'a> Fields<'a> {
    pub fn new(line: &'a [u8], separator: u8) -> Self {
        Self { line, separator, next: 0 }
    }

    /// The next field; `expected` says what it should have been where the line ends too early.
    pub fn field(&mut self, expected: &'static str) -> Result<Field<'a>, Mistake> {
        let Some(rest) = self.line.get(self.next..) else {
            return Err(Mistake { at: self.line.len(), len: 0, expected });
        };
        let len = memchr::memchr(self.separator, rest).unwrap_or(rest.len());
        let raw = &rest[..len];
        let text = raw.trim_ascii();
        let at = self.next + (raw.len() - raw.trim_ascii_start().len());
        self.next += len + 1;
        Ok(Field { text, at })
    }
}

impl Field<'_> {
    /// The mistake of this field not being what was expected.
    pub fn mistake(&self, expected: &'static str) -> Mistake {
        Mistake { at: self.at, len: self.text.len(), expected }
    }

    /// A whole number that fits its type.
    pub fn whole<T: TryFrom<u64>>(&self, expected: &'static str) -> Result<T, Mistake> {
        let mut value = 0u64;
        for &byte in self.text {
            let digit = byte.wrapping_sub(b'0');
            let next = value.checked_mul(10).and_then(|v| v.checked_add(u64::from(digit)));
            value = next.filter(|_| digit <= 9).ok_or_else(|| self.mistake(expected))?;
        }
        T::try_from(value).ok().filter(|_| !self.text.is_empty()).ok_or_else(|| self.mistake(expected))
    }

    /// Decimal seconds as whole nanoseconds; digits beyond the ninth are dropped.
    pub fn seconds(&self, expected: &'static str) -> Result<u64, Mistake> {
        let dot = self.text.iter().position(|&byte| byte == b'.').unwrap_or(self.text.len());
        let (whole, fraction) = (&self.text[..dot], self.text.get(dot + 1..).unwrap_or_default());
        let mut nanos = 0u64;
        for place in 0..9 {
            nanos = nanos * 10 + fraction.get(place).map_or(0, |byte| u64::from(byte.wrapping_sub(b'0') % 10));
        }
        let seconds: u64 = Field { text: whole, at: self.at }.whole(expected).map_err(|_| self.mistake(expected))?;
        let total = seconds.checked_mul(1_000_000_000).and_then(|s| s.checked_add(nanos));
        total.filter(|_| fraction.iter().all(u8::is_ascii_digit)).ok_or_else(|| self.mistake(expected))
    }
}
