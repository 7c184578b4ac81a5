//! The fields of a line: where they end, and what they say.

use super::digits::{MOST_DIGITS, digits_one_by_one, number, up_to_24_digits};
use super::known::Known;
use super::lines::{Line, Mistake, SHORT_NAME};
use crate::Nanos;
use crate::trace::volumes::LONGEST_NAME;
use crate::trace::{Columns, Op};

/// The fields of a line, with their places.
pub struct Fields<'a> {
    line: Line<'a>,
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
    pub fn new(line: impl Into<Line<'a>>, separator: u8) -> Self {
        Self { line: line.into(), separator: Some(separator), next: 0 }
    }

    /// Fields between runs of blanks.
    pub fn words(line: impl Into<Line<'a>>) -> Self {
        Self { line: line.into(), separator: None, next: 0 }
    }

    /// The last `count` fields of a line, for formats whose first field may hold anything.
    pub fn last(line: impl Into<Line<'a>>, separator: u8, count: usize) -> Self {
        let line = line.into();
        let start = memchr::memrchr_iter(separator, line.text).nth(count - 1).map_or(0, |at| at + 1);
        Self { line, separator: Some(separator), next: start }
    }

    /// Steps over `text`, fields with the separator behind them, if it comes next.
    #[inline]
    pub fn skip<const LENGTH: usize>(&mut self, text: &[u8; LENGTH]) -> bool {
        let next = self.rest().first_chunk::<LENGTH>() == Some(text);
        self.next += if next { LENGTH } else { 0 };
        next
    }

    /// What is left of the line.
    #[inline]
    fn rest(&self) -> &'a [u8] {
        self.line.text.get(self.next..).unwrap_or_default()
    }

    /// The next `count` fields as they stand, with what is between them; all that is left where there are fewer.
    #[inline]
    pub fn raw(&self, count: usize) -> &'a [u8] {
        let rest = self.rest();
        &rest[..self.ends(count).unwrap_or(rest.len()).min(rest.len())]
    }

    /// Steps over what [`Self::raw`] gave.
    #[inline]
    pub fn step_over(&mut self, raw: &[u8]) {
        self.next += raw.len() + 1;
    }

    /// The next field, which names a volume; and that volume, where it is known by this text.
    ///
    /// # Errors
    /// As [`Self::field`].
    #[inline]
    pub fn naming(&mut self, known: &Known, expected: &'static str) -> Result<(Field<'a>, Option<u16>), Mistake> {
        let (text, at) = (self.raw(1), self.next);
        let Some(volume) = known.get(text) else { return Ok((self.field(expected)?, None)) };
        self.step_over(text);
        Ok((Field { text, at }, Some(volume)))
    }

    /// Where the separator behind the next `count` fields is.
    #[inline]
    fn ends(&self, count: usize) -> Option<usize> {
        let separator = self.separator?;
        if let Some(bytes) = self.line.ahead.get(self.next..).and_then(|ahead| ahead.first_chunk::<16>()) {
            let mut found = equal(*bytes, separator);
            (1..count).for_each(|_| found &= found.wrapping_sub(1));
            if found != 0 {
                return Some(found.trailing_zeros() as usize / 8);
            }
        }
        let mut separators = self.rest().iter().enumerate().filter(|&(_, &byte)| byte == separator);
        separators.nth(count - 1).map(|(at, _)| at)
    }

    /// The next field as a whole number that fits its type.
    ///
    /// # Errors
    /// The mistake that the field is.
    #[inline(always)]
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
    #[inline(always)]
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
    #[inline(always)]
    fn digits(&self) -> Option<(u64, usize)> {
        let (separator, ahead) = (self.separator?, self.line.ahead.get(self.next..)?);
        let left = self.line.text.len().checked_sub(self.next)?;
        let (value, count) = match ahead.first_chunk::<24>() {
            Some(bytes) => up_to_24_digits(bytes),
            None => digits_one_by_one(ahead),
        };
        let ends = count == left || ahead.get(count) == Some(&separator);
        (ends && (1..=MOST_DIGITS.min(left)).contains(&count)).then_some((value, self.next + count + 1))
    }

    /// The next field; `expected` says what it should have been where the line ends too early.
    ///
    /// # Errors
    /// The mistake that the field is.
    #[inline]
    pub fn field(&mut self, expected: &'static str) -> Result<Field<'a>, Mistake> {
        if self.separator.is_none() {
            self.next += self.rest().iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        }
        let ended = self.separator.is_none() && self.next == self.line.len();
        let Some(rest) = self.line.text.get(self.next..).filter(|_| !ended) else {
            return Err(Mistake { at: self.line.len(), len: 0, expected });
        };
        let len = match self.separator {
            Some(_) => self.raw(1).len(),
            None => rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len()),
        };
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

    /// The index of the volume of this name, which the field tells.
    ///
    /// # Errors
    /// The mistake that the field is.
    pub fn volume(&self, name: &str, out: &mut Columns) -> Result<u16, Mistake> {
        let expected = if name.len() > LONGEST_NAME { SHORT_NAME } else { "one of at most 65,536 volumes" };
        out.volume_id(name).ok_or_else(|| self.mistake(expected))
    }

    /// The volume that [`Fields::naming`] has found, or else the one of this name, by whose text it is known from now on.
    ///
    /// # Errors
    /// As [`Self::volume`].
    #[inline]
    pub fn known_volume(
        &self,
        found: Option<u16>,
        known: &mut Known,
        name: impl FnOnce() -> String,
        out: &mut Columns,
    ) -> Result<u16, Mistake> {
        if let Some(volume) = found {
            return Ok(volume);
        }
        let volume = self.volume(&name(), out)?;
        known.learn(self.text, volume);
        Ok(volume)
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

/// The high bit of each byte that is this one; none of another.
#[inline]
fn equal(bytes: [u8; 16], byte: u8) -> u128 {
    const LOW: u128 = u128::from_ne_bytes([0x7f; 16]);
    let others = u128::from_le_bytes(bytes) ^ u128::from_ne_bytes([byte; 16]);
    // Adding sets the high bit of each byte that is not zero, and carries nothing into the next one.
    !(((others & LOW) + LOW) | others) & !LOW
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
            let mut fields = Fields::new(&line[..], b',');
            if !bytes.iter().any(|byte| *byte == b',' || byte.is_ascii_whitespace()) {
                prop_assert_eq!(fields.whole::<u64>("").ok(), expected);
                prop_assert_eq!(fields.whole::<u64>("").ok(), Some(77));
                prop_assert_eq!(fields.whole::<u64>("").ok(), Some(123_456_789));
            }
        }

        #[test]
        fn what_is_behind_a_line_is_none_of_it(
            texts in prop::collection::vec("(|[0-9]{1,21}|[ab ]{1,18}|R|Write)", 1..6), behind in "(\r?\n[0-9a,]{0,40})?", known in any::<bool>()
        ) {
            let line = texts.join(",");
            let whole = format!("{line}{behind}");
            let alone = Line::from(line.as_bytes());
            let within = Line { text: line.as_bytes(), ahead: whole.as_bytes() };
            let mut volumes = Known::default();
            if known {
                texts.iter().zip(0..).for_each(|(text, volume)| volumes.learn(text.as_bytes(), volume));
            }
            for count in 1..4 {
                let expected = texts.iter().take(count).map(String::as_str).collect::<Vec<_>>().join(",");
                prop_assert_eq!(Fields::new(within, b',').raw(count), expected.as_bytes());
            }
            let [mut one, mut other] = [alone, within].map(|line| Fields::new(line, b','));
            for text in texts.iter().chain([&String::new()]) {
                match text.len() % 5 {
                    0 => prop_assert_eq!(one.whole::<u64>("whole"), other.whole::<u64>("whole")),
                    1 => prop_assert_eq!(one.time(100, "time"), other.time(100, "time")),
                    2 => prop_assert_eq!(one.skip(b"R,"), other.skip(b"R,")),
                    _ => {
                        let [one, other] = [&mut one, &mut other].map(|fields| fields.naming(&volumes, "name"));
                        let one = one.map(|(field, volume)| (field.text, field.at, volume));
                        prop_assert_eq!(one, other.map(|(field, volume)| (field.text, field.at, volume)));
                    }
                }
                prop_assert_eq!(one.next, other.next);
            }
        }
    }
}
