//! Sizes and rates.

use std::fmt;
use std::iter::Sum;
use std::ops::Add;
use std::str::FromStr;

use super::{Nanos, UnitError, decimals, exact, parse_with};

/// A size or a place in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// A transfer rate in bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(pub u64);

pub(super) const SIZES: &[(&str, u64)] = &[
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("T", 1 << 40),
    ("G", 1 << 30),
    ("M", 1 << 20),
    ("K", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("KB", 1_000),
    ("B", 1),
    ("", 1),
];

impl Add for Bytes {
    type Output = Self;

    /// The sum, or the largest size.
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self(0), Add::add)
    }
}

impl Bytes {
    /// Whole kibibytes.
    pub const fn from_kib(kib: u64) -> Self {
        Self(kib << 10)
    }

    /// The text that reads back as exactly this size, such as `1280KiB`.
    pub fn exact(self) -> String {
        for (unit, factor) in &SIZES[..4] {
            // Whole numbers of at least 8 in the larger unit read best: 1280KiB rather than 1.25MiB.
            if self.0 != 0 && self.0.is_multiple_of(*factor) && (self.0 / factor >= 8 || *unit == "KiB") {
                return format!("{}{unit}", self.0 / factor);
            }
        }
        format!("{}B", self.0)
    }

    /// As makers state capacities, in decimal units: `10.0 TB`.
    pub fn decimal(self) -> String {
        let (unit, factor) = match self.0 {
            n if n >= 1_000_000_000_000 => ("TB", 1e12),
            n if n >= 1_000_000_000 => ("GB", 1e9),
            _ => ("MB", 1e6),
        };
        format!("{:.1} {unit}", self.0 as f64 / factor)
    }
}

impl fmt::Display for Bytes {
    /// Three significant digits, a space and a binary unit, as `lsblk` counts sizes: `640 KiB`, `1.50 MiB`, `14.6 TiB`. Sizes that
    /// requests have, multiples of 64 KiB under 8 MiB, are exact: `1.125 MiB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((unit, factor)) = SIZES[..4].iter().find(|(_, factor)| self.0 >= *factor) else {
            return f.pad(&format!("{} B", self.0));
        };
        if *unit == "KiB" && self.0.is_multiple_of(*factor) {
            return f.pad(&format!("{} KiB", self.0 / factor));
        }
        let value = self.0 as f64 / *factor as f64;
        let digits = match *unit {
            // Sixteenths have four decimals.
            "MiB" if value < 8.0 && self.0.is_multiple_of(64 << 10) => (2..4).find(|&n| exact(value, n)).unwrap_or(4),
            _ => decimals(value),
        };
        f.pad(&format!("{value:.digits$} {unit}"))
    }
}

impl FromStr for Bytes {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let example = "64KiB, 4MiB, 300GB or 10TB";
        parse_with(text, SIZES).map(Self).ok_or(UnitError { text: text.into(), what: "size", example })
    }
}

impl Rate {
    /// The time that `size` takes at this rate, to the nearest nanosecond; the longest time at a rate of zero.
    pub fn time_for(self, size: Bytes) -> Nanos {
        let rate = u128::from(self.0);
        if rate == 0 {
            return Nanos(u64::MAX);
        }
        Nanos(u64::try_from((u128::from(size.0) * 1_000_000_000 + rate / 2) / rate).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Rate {
    /// In decimal megabytes, as disk rates are quoted: `38.8 MB/s`; what is less than one in kilobytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kilobytes = self.0 as f64 / 1e3;
        match kilobytes {
            0.0 => f.pad("0 MB/s"),
            ..999.5 => f.pad(&format!("{kilobytes:.*} kB/s", decimals(kilobytes))),
            _ => f.pad(&format!("{:.1} MB/s", kilobytes / 1e3)),
        }
    }
}

impl FromStr for Rate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let error = || UnitError { text: text.into(), what: "rate", example: "90MB/s or 1GiB/s" };
        let size = text.trim().strip_suffix("/s").ok_or_else(error)?;
        parse_with(size, SIZES).map(Self).ok_or_else(error)
    }
}
