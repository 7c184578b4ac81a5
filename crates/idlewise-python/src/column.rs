//! A column of a table that others made, as numbers or text. What cannot be read for what it is, is refused.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal128Type, DecimalType, DurationNanosecondType, Float64Type, Int64Type, Time64NanosecondType,
    TimestampNanosecondType, UInt64Type,
};
use arrow_array::{Array, ArrayRef, Int64Array, UInt64Array, new_empty_array};
use arrow_cast::cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, TimeUnit};

use crate::error::Error;

const NEGATIVE: &str = "no number from 0 on";

/// A column that is looked for.
pub struct Column<'a> {
    pub array: &'a ArrayRef,
    /// What it is called in the table.
    pub name: &'a str,
    /// So many rows of the table come before its first.
    pub before: usize,
}

impl Column<'_> {
    /// Times in nanoseconds. Plain numbers are in the unit that has 10 to the power of `digits` of them.
    pub fn times(&self, digits: u32) -> Result<UInt64Array, Error> {
        const NANOS: TimeUnit = TimeUnit::Nanosecond;
        let values = self.values()?;
        match values.data_type() {
            DataType::Timestamp(_, zone) => {
                let times = self.cast(&values, &DataType::Timestamp(NANOS, zone.clone()))?;
                self.unsigned(&times.as_primitive::<TimestampNanosecondType>().reinterpret_cast::<Int64Type>())
            }
            // DuckDB has intervals where others have durations.
            DataType::Duration(_) | DataType::Interval(_) => {
                let times = self.cast(&values, &DataType::Duration(NANOS))?;
                self.unsigned(&times.as_primitive::<DurationNanosecondType>().reinterpret_cast::<Int64Type>())
            }
            DataType::Time32(_) | DataType::Time64(_) => {
                let times = self.cast(&values, &DataType::Time64(NANOS))?;
                self.unsigned(&times.as_primitive::<Time64NanosecondType>().reinterpret_cast::<Int64Type>())
            }
            _ => self.numbers(&values, digits, false),
        }
    }

    /// Whole numbers.
    pub fn whole(&self) -> Result<UInt64Array, Error> {
        self.numbers(&self.values()?, 0, true)
    }

    /// Any kind of text, numbers too, without nulls.
    pub fn text(&self) -> Result<ArrayRef, Error> {
        use DataType::{Binary, BinaryView, LargeBinary, LargeUtf8, Null, Utf8, Utf8View};
        let values = self.values()?;
        match values.data_type() {
            Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView | Null => {}
            kind if kind.is_numeric() => {}
            _ => return Err(self.refused("text")),
        }
        let text = self.cast(&values, &Utf8)?;
        if text.null_count() > 0 { Err(Error::Value(format!("column '{}' has nulls", self.name))) } else { Ok(text) }
    }

    /// The values, of which all are known to lie where they should: they may come from a file that someone else made, and reading
    /// them checks nothing.
    fn values(&self) -> Result<ArrayRef, Error> {
        // One without rows may begin anywhere.
        if self.array.is_empty() {
            return Ok(new_empty_array(match self.array.data_type() {
                DataType::Dictionary(_, of) => of,
                kind => kind,
            }));
        }
        let checked = self.array.to_data().validate_full();
        checked.map_err(|error| Error::Value(format!("column '{}' is damaged: {error}", self.name)))?;
        match self.array.data_type() {
            DataType::Dictionary(_, of) => self.cast(self.array, of),
            _ => Ok(self.array.clone()),
        }
    }

    /// The same numbers, if none is negative.
    fn unsigned(&self, numbers: &Int64Array) -> Result<UInt64Array, Error> {
        if numbers.iter().flatten().all(|number| number >= 0) {
            return Ok(UInt64Array::new(numbers.values().inner().clone().into(), numbers.nulls().cloned()));
        }
        self.each(
            numbers.iter(),
            |number| number.to_string(),
            |number| number.try_into().map(Some).map_err(|_| NEGATIVE),
        )
    }

    /// Numbers times 10 to the power of `digits`, as whole ones: `exact` are those that are whole already. What is no number is null.
    fn numbers(&self, values: &ArrayRef, digits: u32, exact: bool) -> Result<UInt64Array, Error> {
        const BEYOND: &str = "more than 64 bits hold";
        let factor = 10_u64.pow(digits);
        match values.data_type() {
            kind if kind.is_integer() || kind.is_null() => {
                let numbers = match kind {
                    DataType::UInt64 => values.as_primitive::<UInt64Type>().clone(),
                    _ => self.unsigned(self.cast(values, &DataType::Int64)?.as_primitive::<Int64Type>())?,
                };
                if digits == 0 {
                    return Ok(numbers);
                }
                self.each(
                    numbers.iter(),
                    |number| number.to_string(),
                    |number| number.checked_mul(factor).map(Some).ok_or(BEYOND),
                )
            }
            kind if kind.is_floating() => {
                let numbers = self.cast(values, &DataType::Float64)?;
                self.each(
                    numbers.as_primitive::<Float64Type>().iter(),
                    |number| number.to_string(),
                    |number| {
                        let scaled = number * factor as f64;
                        let rounded = scaled.round();
                        match rounded {
                            _ if rounded.is_nan() => Ok(None),
                            _ if exact && rounded != scaled => Err("no whole number"),
                            _ if rounded < 0.0 => Err(NEGATIVE),
                            // The end of the range is no float; what is next to it below is.
                            _ if rounded < u64::MAX as f64 => Ok(Some(rounded as u64)),
                            _ => Err(BEYOND),
                        }
                    },
                )
            }
            kind if kind.is_decimal() => {
                let scale = scale(kind);
                let numbers = self.cast(values, &DataType::Decimal128(38, scale))?;
                let by = digits as i32 - i32::from(scale);
                let power = 10_i128.checked_pow(by.unsigned_abs());
                let shown = |number| Decimal128Type::format_decimal(number, 38, scale);
                self.each(numbers.as_primitive::<Decimal128Type>().iter(), shown, |number| {
                    let power = power.ok_or(BEYOND)?;
                    let scaled = match by {
                        0.. => number.checked_mul(power).ok_or(BEYOND)?,
                        _ if exact && number % power != 0 => return Err("no whole number"),
                        // Half and more goes away from zero, as with floats.
                        _ => number / power + number % power / (power / 2),
                    };
                    u64::try_from(scaled).map(Some).map_err(|_| if scaled < 0 { NEGATIVE } else { BEYOND })
                })
            }
            _ => Err(self.refused("numbers")),
        }
    }

    /// Each value by itself, or the row of the first that is none, with what `shown` makes of it.
    fn each<T: Copy>(
        &self,
        values: impl Iterator<Item = Option<T>>,
        shown: impl Fn(T) -> String,
        of: impl Fn(T) -> Result<Option<u64>, &'static str>,
    ) -> Result<UInt64Array, Error> {
        let one = |(row, value): (usize, Option<T>)| {
            let Some(value) = value else { return Ok(None) };
            of(value).map_err(|why| {
                let (row, name, value) = (self.before + row, self.name, shown(value));
                Error::Value(format!("row {row}: column '{name}' is {value}, which is {why}"))
            })
        };
        values.enumerate().map(one).collect()
    }

    /// What cannot be cast is an error, and no null.
    fn cast(&self, values: &ArrayRef, kind: &DataType) -> Result<ArrayRef, Error> {
        let options = CastOptions { safe: false, ..CastOptions::default() };
        cast_with_options(values, kind, &options)
            .map_err(|error| Error::Value(format!("column '{}': {error}", self.name)))
    }

    fn refused(&self, wanted: &str) -> Error {
        Error::Type(format!("column '{}' is of type {}, and not {wanted}", self.name, self.array.data_type()))
    }
}

/// Digits behind the point.
pub fn scale(decimal: &DataType) -> i8 {
    match decimal {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => *scale,
        _ => 0,
    }
}
