//! What the line-based formats share: lines, fields, numbers, and the place of a mistake.

use super::Parser;
use crate::Nanos;
use crate::trace::volumes::LONGEST_NAME;
use crate::trace::{Bad, Columns, Op, Place};

/// No line of any trace format is this long; one that is, is no trace.
const LONGEST_LINE: usize = 64 << 10;

/// What is wrong with a name that is too long.
const SHORT_NAME: &str = "a name of at most 255 bytes";

/// So many digits always fit 64 bits.
const MOST_DIGITS: usize = 19;

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

/// How one line of a format becomes a request.
pub trait Row {
    /// Reads one line, without its end; it may also be a header or a comment, and add nothing.
    ///
    /// # Errors
    /// The first mistake in it.
    fn row(&mut self, line: &[u8], out: &mut Columns) -> Result<(), Mistake>;
}

/// Whether a line near the front of a file is one of this format.
pub fn claims(head: &[u8], mut row: impl Row) -> bool {
    head_lines(head).take(100).any(|line| {
        let mut columns = Columns::default();
        match row.row(line, &mut columns) {
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
}

impl<R: Row> Lines<R> {
    /// A parser of lines that this reads.
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
                let place = Place::Line { line: self.line, column: mistake.at + 1 };
                Bad::new(place, mistake.expected, &line[mistake.at..mistake.at + mistake.len], used)
            })?;
        }
        Ok(used)
    }

    fn lines(&self) -> u64 {
        self.line
    }
}

/// The lines at the front of a file, for detection; the last one may be cut.
pub fn head_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    head.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

/// The fields of a line, with their places.
pub struct Fields<'a> {
    line: &'a [u8],
    /// The byte between fields, or none where runs of blanks are.
    separator: Option<u8>,
    next: usize,
}

/// One field, without the blanks around it.
#[derive(Clone, Copy)]
pub struct Field<'a> {
    /// What it holds.
    pub text: &'a [u8],
    /// Where it begins in the line, from zero.
    pub at: usize,
}

impl<'a> Fields<'a> {
    /// Fields between such bytes.
    pub fn new(line: &'a [u8], separator: u8) -> Self {
        Self { line, separator: Some(separator), next: 0 }
    }

    /// Fields between runs of blanks.
    pub fn words(line: &'a [u8]) -> Self {
        Self { line, separator: None, next: 0 }
    }

    /// The last `count` fields of a line, for formats whose first field may hold anything.
    pub fn last(line: &'a [u8], separator: u8, count: usize) -> Self {
        let start = memchr::memrchr_iter(separator, line).nth(count - 1).map_or(0, |at| at + 1);
        Self { line, separator: Some(separator), next: start }
    }

    /// Steps over `text`, fields with the separator behind them, if it comes next.
    #[inline]
    pub fn skip(&mut self, text: &[u8]) -> bool {
        let next = self.line.get(self.next..).is_some_and(|rest| rest.starts_with(text));
        self.next += if next { text.len() } else { 0 };
        next
    }

    /// The next field as a whole number that fits its type.
    ///
    /// # Errors
    /// The mistake that the field is.
    #[inline]
    pub fn whole<T: TryFrom<u64>>(&mut self, expected: &'static str) -> Result<T, Mistake> {
        match self.digits().and_then(|(value, next)| Some((T::try_from(value).ok()?, next))) {
            Some((value, next)) => {
                self.next = next;
                Ok(value)
            }
            None => self.field(expected)?.whole(expected),
        }
    }

    /// The next field as a time in some unit of nanoseconds.
    ///
    /// # Errors
    /// The mistake that the field is.
    #[inline]
    pub fn time(&mut self, unit: u64, expected: &'static str) -> Result<Nanos, Mistake> {
        match self.digits().and_then(|(value, next)| Some((value.checked_mul(unit)?, next))) {
            Some((time, next)) => {
                self.next = next;
                Ok(Nanos(time))
            }
            None => self.field(expected)?.time(unit, expected),
        }
    }

    /// The next field, if it is but 1 to 19 digits up to the separator, with the place of the field behind it. This finds the
    /// end of the field and its value in one go.
    #[inline]
    fn digits(&self) -> Option<(u64, usize)> {
        let (separator, rest) = (self.separator?, self.line.get(self.next..)?);
        let (mut value, mut at) = (0u64, 0);
        // 16 digits and 3 fit; so does whatever stops before.
        while at < 16
            && let Some(bytes) = rest.get(at..).and_then(|rest| rest.first_chunk::<8>())
        {
            let (part, count) = leading_digits(*bytes);
            value = value * TENS[count] + part;
            at += count;
            if count < 8 {
                let ends = rest[at] == separator;
                return (ends && at > 0 && at <= MOST_DIGITS).then_some((value, self.next + at + 1));
            }
        }
        while at < MOST_DIGITS
            && let Some(digit) = rest.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|&digit| digit <= 9)
        {
            value = value * 10 + u64::from(digit);
            at += 1;
        }
        let ends = rest.get(at).is_none_or(|&byte| byte == separator);
        (ends && at > 0).then_some((value, self.next + at + 1))
    }

    /// The next field; `expected` says what it should have been where the line ends too early.
    ///
    /// # Errors
    /// The mistake that the field is.
    #[inline]
    pub fn field(&mut self, expected: &'static str) -> Result<Field<'a>, Mistake> {
        if self.separator.is_none() {
            self.next += self.line.iter().skip(self.next).take_while(|byte| byte.is_ascii_whitespace()).count();
        }
        let ended = self.separator.is_none() && self.next == self.line.len();
        let Some(rest) = self.line.get(self.next..).filter(|_| !ended) else {
            return Err(Mistake { at: self.line.len(), len: 0, expected });
        };
        let end = match self.separator {
            // Fields are so short that a search by vectors would cost more.
            Some(separator) => rest.iter().position(|&byte| byte == separator),
            None => rest.iter().position(u8::is_ascii_whitespace),
        };
        let len = end.unwrap_or(rest.len());
        let raw = &rest[..len];
        let text = raw.trim_ascii();
        let at = self.next + (raw.len() - raw.trim_ascii_start().len());
        self.next += len + 1;
        Ok(Field { text, at })
    }
}

/// A whole number in decimal digits, eight at a time.
#[inline]
fn number(text: &[u8]) -> Option<u64> {
    let digits = match text.len() {
        0 => return None,
        len if len > MOST_DIGITS => {
            let (zeros, rest) = text.split_at(len - MOST_DIGITS);
            // 20 digits may just fit.
            let above = zeros.iter().try_fold(0u64, |value, digit| digit_after(value, *digit))?;
            return above.checked_mul(10u64.pow(MOST_DIGITS as u32))?.checked_add(number(rest)?);
        }
        _ => text,
    };
    let (eights, rest) = digits.as_chunks::<8>();
    let value = eights.iter().try_fold(0u64, |value, digits| match leading_digits(*digits) {
        (part, 8) => Some(value * TENS[8] + part),
        _ => None,
    })?;
    rest.iter().try_fold(value, |value, digit| {
        let digit = digit.wrapping_sub(b'0');
        (digit <= 9).then(|| value * 10 + u64::from(digit))
    })
}

fn digit_after(value: u64, digit: u8) -> Option<u64> {
    let digit = digit.wrapping_sub(b'0');
    value.checked_mul(10)?.checked_add(u64::from(digit)).filter(|_| digit <= 9)
}

/// Powers of ten.
const TENS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// The digits at the front of eight bytes as a number, and how many they are. No loop, no branch: the digits are moved to the
/// end, which puts zeros in front, and three multiplications make pairs, fours, and all of them.
#[inline]
fn leading_digits(bytes: [u8; 8]) -> (u64, usize) {
    const ZEROS: u64 = u64::from_ne_bytes([b'0'; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    let values = u64::from_le_bytes(bytes) ^ ZEROS;
    // From 10 on, adding 0x76 reaches the high bit; what it carries goes behind the first byte that is no digit.
    let others = (values.wrapping_add(u64::from_ne_bytes([0x76; 8])) | values) & HIGH;
    let count = (others.trailing_zeros() / 8) as usize;
    let word = values.checked_shl(64 - 8 * count as u32).unwrap_or(0);
    let word = word.wrapping_mul(10).wrapping_add(word >> 8);
    let fours = (word & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let ones = ((word >> 16) & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    (fours.wrapping_add(ones) >> 32, count)
}

impl Field<'_> {
    /// The mistake of this field not being what was expected.
    pub fn mistake(&self, expected: &'static str) -> Mistake {
        Mistake { at: self.at, len: self.text.len(), expected }
    }

    /// The index of the volume of this name, which the field tells.
    ///
    /// # Errors
    /// The mistake that the field is.
    pub fn volume(&self, name: &str, out: &mut Columns) -> Result<u16, Mistake> {
        let expected = if name.len() > LONGEST_NAME { SHORT_NAME } else { "one of at most 65,536 volumes" };
        out.volume_id(name).ok_or_else(|| self.mistake(expected))
    }

    /// A whole number that fits its type.
    ///
    /// # Errors
    /// The mistake that the field is.
    pub fn whole<T: TryFrom<u64>>(&self, expected: &'static str) -> Result<T, Mistake> {
        number(self.text).and_then(|value| T::try_from(value).ok()).ok_or_else(|| self.mistake(expected))
    }

    /// A count of 512-byte sectors as bytes, in a type that it fits.
    ///
    /// # Errors
    /// The mistake that the field is.
    pub fn sectors<T: TryFrom<u64>>(&self, expected: &'static str) -> Result<T, Mistake> {
        const SECTOR: u64 = 512;
        let bytes = self.whole::<u64>(expected)?.checked_mul(SECTOR);
        bytes.and_then(|bytes| T::try_from(bytes).ok()).ok_or_else(|| self.mistake(expected))
    }

    /// A time in some unit of nanoseconds.
    ///
    /// # Errors
    /// The mistake that the field is.
    pub fn time(&self, unit: u64, expected: &'static str) -> Result<Nanos, Mistake> {
        let time = self.whole::<u64>(expected)?.checked_mul(unit);
        time.map(Nanos).ok_or_else(|| self.mistake(expected))
    }

    /// A read or a write by its first letter; the kernel's flags may follow, as in `WS` or `RA`.
    ///
    /// # Errors
    /// The mistake that the field is.
    pub fn op(&self) -> Result<Op, Mistake> {
        let (letter, flags) = self.text.split_first().ok_or_else(|| self.mistake("R or W"))?;
        match letter {
            b'R' | b'r' if flags.iter().all(u8::is_ascii_uppercase) => Ok(Op::Read),
            b'W' | b'w' if flags.iter().all(u8::is_ascii_uppercase) => Ok(Op::Write),
            _ => Err(self.mistake("R or W")),
        }
    }

    /// Decimal seconds as whole nanoseconds; digits beyond the ninth are dropped.
    ///
    /// # Errors
    /// The mistake that the field is.
    pub fn seconds(&self, expected: &'static str) -> Result<Nanos, Mistake> {
        let dot = self.text.iter().position(|&byte| byte == b'.').unwrap_or(self.text.len());
        let (whole, fraction) = (&self.text[..dot], self.text.get(dot + 1..).unwrap_or_default());
        let mut nanos = 0u64;
        for place in 0..9 {
            nanos = nanos * 10 + fraction.get(place).map_or(0, |byte| u64::from(byte.wrapping_sub(b'0') % 10));
        }
        let seconds: u64 = Field { text: whole, at: self.at }.whole(expected).map_err(|_| self.mistake(expected))?;
        let total = seconds.checked_mul(1_000_000_000).and_then(|s| s.checked_add(nanos));
        total.filter(|_| fraction.iter().all(u8::is_ascii_digit)).map(Nanos).ok_or_else(|| self.mistake(expected))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn digits_by_eights_are_digits_one_by_one(text in "[0-9]{0,24}", at in 0usize..24, byte in any::<u8>(), hit in any::<bool>()) {
            let mut bytes = text.into_bytes();
            if hit && !bytes.is_empty() {
                let len = bytes.len();
                bytes[at % len] = byte;
            }
            let plain = std::str::from_utf8(&bytes).ok().filter(|text| !text.starts_with('+'));
            let expected = plain.and_then(|text| text.parse::<u64>().ok());
            prop_assert_eq!(number(&bytes), expected);
            // The same as a field of a line, where a separator or blanks may have hit it.
            let line = [&bytes[..], b",77,123456789"].concat();
            let mut fields = Fields::new(&line, b',');
            if !bytes.iter().any(|byte| *byte == b',' || byte.is_ascii_whitespace()) {
                prop_assert_eq!(fields.whole::<u64>("").ok(), expected);
                prop_assert_eq!(fields.whole::<u64>("").ok(), Some(77));
                prop_assert_eq!(fields.whole::<u64>("").ok(), Some(123_456_789));
            }
        }
    }
}
