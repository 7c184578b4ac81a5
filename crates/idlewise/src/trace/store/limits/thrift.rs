//! Thrift's compact protocol, walked strictly: every field that Parquet knows is of its type, there once, and there if it must be.

/// The type of a field's value.
pub enum Kind {
    Bool,
    I8,
    I16,
    I32,
    I64,
    Double,
    Binary,
    List(&'static Kind),
    Struct(&'static Structure),
}

/// A field of a structure.
pub struct Field {
    pub number: i16,
    pub name: &'static str,
    pub kind: Kind,
    pub required: bool,
}

/// A structure: at most 32 fields.
pub struct Structure {
    pub name: &'static str,
    pub fields: &'static [Field],
}

/// What a walk comes by.
pub enum Seen {
    /// A structure of this name.
    Begin(&'static str),
    /// A whole number in the field of this name.
    Number(&'static str, i64),
}

/// Types as they are written; other numbers stand for none.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const SET: u8 = 10;
const MAP: u8 = 11;
/// Structures that nobody knows are not nested deeper.
const DEEPEST: u32 = 32;

impl Kind {
    fn code(&self) -> u8 {
        match self {
            Self::Bool => TRUE,
            Self::I8 => 3,
            Self::I16 => 4,
            Self::I32 => 5,
            Self::I64 => 6,
            Self::Double => 7,
            Self::Binary => 8,
            Self::List(_) => 9,
            Self::Struct(_) => 12,
        }
    }

    /// What else is read like this type; none for lists and structures.
    fn plain(code: u8) -> Option<Self> {
        let plain = [Self::Bool, Self::I8, Self::I16, Self::I32, Self::I64, Self::Double, Self::Binary];
        plain.into_iter().find(|kind| kind.code() == code)
    }
}

/// Bytes that are read from front to back.
pub struct Compact<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Where the bytes end too early.
const SHORT: &str = "a field that is cut off";

type Walked<T = ()> = Result<T, String>;

impl<'a> Compact<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes read so far.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Goes over a structure, and tells what it comes by; an error says what is wrong.
    pub fn walk(&mut self, structure: &'static Structure, see: &mut dyn FnMut(Seen)) -> Walked {
        see(Seen::Begin(structure.name));
        let (mut last, mut met) = (0, 0u32);
        while let Some((number, code)) = self.field(last)? {
            last = number;
            let Some(index) = structure.fields.iter().position(|field| field.number == number) else {
                self.skip(code, DEEPEST)?;
                continue;
            };
            let field = &structure.fields[index];
            if met & 1 << index != 0 {
                return Err(format!("{}.{} twice", structure.name, field.name));
            }
            met |= 1 << index;
            let truth = matches!(field.kind, Kind::Bool) && code == FALSE;
            if code != field.kind.code() && !truth {
                return Err(format!("{}.{} of another type", structure.name, field.name));
            }
            // In fields the type says the value.
            if !matches!(field.kind, Kind::Bool) {
                self.value(&field.kind, field.name, see)?;
            }
        }
        match structure.fields.iter().enumerate().find(|(index, field)| field.required && met & 1 << index == 0) {
            Some((_, missing)) => Err(format!("no {}.{}", structure.name, missing.name)),
            None => Ok(()),
        }
    }

    fn value(&mut self, kind: &'static Kind, name: &'static str, see: &mut dyn FnMut(Seen)) -> Walked {
        match kind {
            Kind::Struct(structure) => self.walk(structure, see),
            Kind::List(element) => {
                let (length, code) = self.list()?;
                if length > 0 && code != element.code() {
                    return Err(format!("{name} of another type"));
                }
                (0..length).try_for_each(|_| self.value(element, name, see))
            }
            plain => {
                let number = self.plain(plain)?;
                see(Seen::Number(name, number));
                Ok(())
            }
        }
    }

    /// A value that holds no other; the number, where it is one.
    fn plain(&mut self, kind: &Kind) -> Walked<i64> {
        let (least, most) = match kind {
            Kind::I16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
            Kind::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
            Kind::I64 => (i64::MIN, i64::MAX),
            Kind::Double => return self.step(8).map(|()| 0),
            Kind::Binary => {
                let length = self.number()?;
                return self.step(usize::try_from(length).map_err(|_| SHORT)?).map(|()| 0);
            }
            _ => return self.step(1).map(|()| 0),
        };
        let number = self.signed()?;
        if number < least || number > most { Err(format!("{number} where {most} is the most")) } else { Ok(number) }
    }

    fn step(&mut self, length: usize) -> Walked {
        self.at = self.at.checked_add(length).filter(|&at| at <= self.bytes.len()).ok_or(SHORT)?;
        Ok(())
    }

    fn byte(&mut self) -> Walked<u8> {
        let byte = *self.bytes.get(self.at).ok_or(SHORT)?;
        self.at += 1;
        Ok(byte)
    }

    fn number(&mut self) -> Walked<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err("a number of more than 64 bits".into())
    }

    fn signed(&mut self) -> Walked<i64> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Number and type of the next field behind the one of number `last`; none at the end of the structure.
    fn field(&mut self, last: i16) -> Walked<Option<(i16, u8)>> {
        let byte = self.byte()?;
        let number = match (byte & 0xf, byte >> 4) {
            (0, _) => return Ok(None),
            (_, 0) => i16::try_from(self.signed()?).ok(),
            (_, step) => last.checked_add(i16::from(step)),
        };
        Ok(Some((number.ok_or("a field's number of more than 16 bits")?, byte & 0xf)))
    }

    /// Length and type of a list's elements.
    fn list(&mut self) -> Walked<(usize, u8)> {
        let byte = self.byte()?;
        let length = if byte >> 4 == 15 { self.number()? } else { u64::from(byte >> 4) };
        Ok((self.fitting(length)?, byte & 0xf))
    }

    /// A number of elements, which take a byte each at least.
    fn fitting(&self, length: u64) -> Walked<usize> {
        let fits = usize::try_from(length).ok().filter(|&length| length <= self.bytes.len() - self.at);
        fits.ok_or_else(|| format!("a list of {length} where {} bytes are left", self.bytes.len() - self.at))
    }

    /// Steps over the value of a field that is not known.
    fn skip(&mut self, code: u8, depth: u32) -> Walked {
        let deeper = depth.checked_sub(1).ok_or("structures nested too deep")?;
        match code {
            TRUE | FALSE => Ok(()),
            9 | SET => {
                let (length, code) = self.list()?;
                (0..length).try_for_each(|_| self.skip_element(code, deeper))
            }
            MAP => {
                let length = self.number()?;
                let codes = if length == 0 { 0 } else { self.byte()? };
                (0..self.fitting(length)?).try_for_each(|_| {
                    self.skip_element(codes >> 4, deeper)?;
                    self.skip_element(codes & 0xf, deeper)
                })
            }
            12 => {
                while let Some((_, code)) = self.field(0)? {
                    self.skip(code, deeper)?;
                }
                Ok(())
            }
            code => {
                let kind = Kind::plain(code).ok_or_else(|| format!("a field of the unknown type {code}"))?;
                self.plain(&kind).map(drop)
            }
        }
    }

    /// Readers do not agree on how a truth value in a list is stepped over, and Parquet has none.
    fn skip_element(&mut self, code: u8, depth: u32) -> Walked {
        if code == TRUE || code == FALSE { Err("a list of truth values".into()) } else { self.skip(code, depth) }
    }
}
