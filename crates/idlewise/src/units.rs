//! Times, sizes and rates, with their units in the type; read and printed the way people write them.

mod size;
#[cfg(test)]
mod tests;
mod time;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use size::{Bytes, Rate};
pub use time::{Nanos, TotalTime};

/// What was wrong with a time, size or rate, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a {what}: write for example {example}")]
pub struct UnitError {
    text: String,
    what: &'static str,
    example: &'static str,
}

/// `digits[.digits] [space] unit`, times the unit's factor, rounded to the nearest whole; `None` if it is not that.
fn parse_with(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = (&text[..split], text[split..].trim_start());
    let factor = units.iter().find(|(name, _)| *name == unit)?.1;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') || fraction.len() > 18 {
        return None;
    }
    let integer = if whole.is_empty() { 0 } else { whole.parse::<u128>().ok()? };
    let scale = 10u128.pow(fraction.len() as u32);
    let part = if fraction.is_empty() { 0 } else { fraction.parse::<u128>().ok()? };
    let scaled = integer.checked_mul(scale)?.checked_add(part)?.checked_mul(u128::from(factor))?;
    u64::try_from(scaled.checked_add(scale / 2)? / scale).ok()
}

/// Whether so many decimals are all.
fn exact(value: f64, decimals: usize) -> bool {
    (value * 10f64.powi(decimals as i32)).fract() == 0.0
}

/// Decimals of a number that is printed with three significant digits.
fn decimals(value: f64) -> usize {
    match value {
        99.95.. => 0,
        9.995.. => 1,
        _ => 2,
    }
}

macro_rules! as_text {
    ($type:ident, $write:expr) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let write: fn(&$type) -> String = $write;
                serializer.serialize_str(&write(self))
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

as_text!(Nanos, |t| t.exact());
as_text!(Bytes, |b| b.exact());
as_text!(Rate, |r| format!("{}B/s", r.0));
