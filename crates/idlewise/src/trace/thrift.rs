//! Thrift's compact protocol, as far as Parquet's own numbers must be looked at before anything trusts them.

/// Bytes that are read from front to back.
pub struct Compact<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Types of fields, as far as they matter.
pub const I32: u8 = 5;
pub const LIST: u8 = 9;
pub const STRUCT: u8 = 12;

/// Structures are not nested deeper in any Parquet file.
const DEEPEST: u32 = 32;

impl<'a> Compact<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes read so far.
    pub fn at(&self) -> usize {
        self.at
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// A number with a sign.
    pub fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Number and type of the next field behind the one of number `last`; `Some(None)` at the end of the structure.
    pub fn field(&mut self, last: i64) -> Option<Option<(i64, u8)>> {
        let byte = self.byte()?;
        Some(match (byte & 0xf, i64::from(byte >> 4)) {
            (0, _) => None,
            (kind, 0) => Some((self.signed()?, kind)),
            (kind, step) => Some((last.checked_add(step)?, kind)),
        })
    }

    /// Length and type of a list's elements, which take a byte each at least.
    pub fn list(&mut self) -> Option<(u64, u8)> {
        let byte = self.byte()?;
        let length = if byte >> 4 == 15 { self.number()? } else { u64::from(byte >> 4) };
        Some((length, byte & 0xf))
    }

    /// Steps over a field's value.
    pub fn skip(&mut self, kind: u8) -> Option<()> {
        self.skip_within(kind, DEEPEST)
    }

    fn skip_within(&mut self, kind: u8, depth: u32) -> Option<()> {
        let deeper = depth.checked_sub(1)?;
        match kind {
            // In fields the type says the value.
            1 | 2 => {}
            3 => self.at += 1,
            4..=6 => drop(self.number()?),
            7 => self.at += 8,
            8 => {
                let length = usize::try_from(self.number()?).ok()?;
                self.at = self.at.checked_add(length)?;
            }
            LIST | 10 => {
                let (length, kind) = self.list()?;
                (0..length).try_for_each(|_| self.skip_element(kind, deeper))?;
            }
            11 => {
                let length = self.number()?;
                let kinds = if length == 0 { 0 } else { self.byte()? };
                for _ in 0..length {
                    self.skip_element(kinds >> 4, deeper)?;
                    self.skip_element(kinds & 0xf, deeper)?;
                }
            }
            STRUCT => {
                let mut last = 0;
                while let Some((number, kind)) = self.field(last)? {
                    self.skip_within(kind, deeper)?;
                    last = number;
                }
            }
            _ => return None,
        }
        (self.at <= self.bytes.len()).then_some(())
    }

    /// In lists and maps a truth value has a byte of its own.
    fn skip_element(&mut self, kind: u8, depth: u32) -> Option<()> {
        self.skip_within(if kind == 2 || kind == 1 { 3 } else { kind }, depth)
    }
}
