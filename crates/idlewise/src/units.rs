//! Times, sizes and rates, with their units in the type; read and printed the way people write them.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A time in nanoseconds, since the start of a trace or of an idle interval, or a duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

/// Times added up, in nanoseconds: exact where [`Nanos`] would come to the end of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TotalTime(pub u128);

/// A size or a place in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// A transfer rate in bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(pub u64);

/// What was wrong with a time, size or rate, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a {what}: write for example {example}")]
pub struct UnitError {
    text: String,
    what: &'static str,
    example: &'static str,
}

const SIZES: &[(&str, u64)] = &[
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

const TIMES: &[(&str, u64)] = &[
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("ns", 1),
];

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

impl Nanos {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// Whole microseconds.
    pub const fn from_micros(us: u64) -> Self {
        Self(us * 1_000)
    }

    /// Whole milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// Whole seconds.
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }

    /// Seconds as a number, as in `--json`.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The difference, or zero where `earlier` is the later one.
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    /// The text that reads back as exactly this time, such as `88.1ms`.
    pub fn exact(self) -> String {
        let (unit, factor): (_, u64) = match self.0 {
            0 => return "0s".into(),
            n if n >= 1_000_000_000 => ("s", 1_000_000_000),
            n if n >= 1_000_000 => ("ms", 1_000_000),
            n if n >= 1_000 => ("us", 1_000),
            _ => ("ns", 1),
        };
        let digits = (factor as f64).log10() as usize;
        let fraction = format!("{:0digits$}", self.0 % factor);
        let fraction = fraction.trim_end_matches('0');
        let dot = if fraction.is_empty() || factor == 1 { "" } else { "." };
        format!("{}{dot}{}{unit}", self.0 / factor, if factor == 1 { "" } else { fraction })
    }
}

impl TotalTime {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// Seconds as a number, as in `--json`.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The mean of so many times, cut to whole nanoseconds; zero of none.
    pub fn mean(self, count: u64) -> Nanos {
        Self(self.0.checked_div(count.into()).unwrap_or(0)).into()
    }

    /// The difference, or zero where `other` is more.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
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

impl From<Duration> for Nanos {
    /// Durations of more than 584 years are cut short.
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(time: Nanos) -> Self {
        Self::from_nanos(time.0)
    }
}

impl Add for Nanos {
    type Output = Self;

    /// The sum, or the end of time.
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Mul<u64> for Nanos {
    type Output = TotalTime;

    /// So many times as long, exactly.
    fn mul(self, times: u64) -> TotalTime {
        TotalTime(u128::from(self.0) * u128::from(times))
    }
}

impl From<Nanos> for TotalTime {
    fn from(time: Nanos) -> Self {
        Self(time.0.into())
    }
}

impl From<TotalTime> for Nanos {
    /// Totals of more than 584 years are cut short.
    fn from(total: TotalTime) -> Self {
        Self(u64::try_from(total.0).unwrap_or(u64::MAX))
    }
}

impl Add for TotalTime {
    type Output = Self;

    /// The sum, or the largest there is.
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for TotalTime {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl AddAssign<Nanos> for TotalTime {
    fn add_assign(&mut self, time: Nanos) {
        *self += Self::from(time);
    }
}

impl Mul<u64> for TotalTime {
    type Output = Self;

    /// So many times as long, or the largest there is.
    fn mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times.into()))
    }
}

impl Sum for TotalTime {
    fn sum<I: Iterator<Item = Self>>(times: I) -> Self {
        times.fold(Self::ZERO, Add::add)
    }
}

impl Sum<Nanos> for TotalTime {
    fn sum<I: Iterator<Item = Nanos>>(times: I) -> Self {
        times.map(Self::from).sum()
    }
}

impl Add for Bytes {
    type Output = Self;

    /// The sum, or the largest size.
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(times: I) -> Self {
        times.fold(Self::ZERO, Add::add)
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self(0), Add::add)
    }
}

impl fmt::Display for Nanos {
    /// Three significant digits and a unit: `4.80 ms`, `88.1 ms`, `1.20 h`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        TotalTime::from(*self).fmt(f)
    }
}

impl fmt::Display for TotalTime {
    /// As a single time is printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, factor): (_, u64) = match self.0 {
            0 => return f.pad("0 s"),
            n if n >= 2 * 86_400_000_000_000 => ("d", 86_400_000_000_000),
            n if n >= 2 * 3_600_000_000_000 => ("h", 3_600_000_000_000),
            n if n >= 2 * 60_000_000_000 => ("min", 60_000_000_000),
            n if n >= 1_000_000_000 => ("s", 1_000_000_000),
            n if n >= 1_000_000 => ("ms", 1_000_000),
            n if n >= 1_000 => ("us", 1_000),
            _ => ("ns", 1),
        };
        let value = self.0 as f64 / factor as f64;
        let decimals = if factor == 1 { 0 } else { decimals(value) };
        f.pad(&format!("{value:.decimals$} {unit}"))
    }
}

impl FromStr for Nanos {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let example = "500us, 1ms, 2s, 10min, 3h or 14d";
        let zero = text.trim() == "0";
        let parsed = if zero { Some(0) } else { parse_with(text, TIMES) };
        parsed.map(Self).ok_or(UnitError { text: text.into(), what: "time", example })
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_people_write() {
        assert_eq!("4.8ms".parse(), Ok(Nanos(4_800_000)));
        assert_eq!("14 d".parse(), Ok(Nanos(14 * 86_400_000_000_000)));
        assert_eq!("0".parse(), Ok(Nanos::ZERO));
        assert_eq!("64KiB".parse(), Ok(Bytes(65_536)));
        assert_eq!("10TB".parse(), Ok(Bytes(10_000_000_000_000)));
        assert_eq!("1.5M".parse(), Ok(Bytes(3 << 19)));
        assert_eq!("90MB/s".parse(), Ok(Rate(90_000_000)));
    }

    #[test]
    fn refuses_what_is_ambiguous() {
        for text in ["", "5", "ms", "1.2.3ms", "-1ms", "1e3s", "99999999999d", "1 fortnight"] {
            let error = text.parse::<Nanos>().expect_err(text);
            assert!(error.to_string().contains("1ms"), "{error}");
        }
        assert!("12 parsecs".parse::<Bytes>().is_err());
        assert!("90MB".parse::<Rate>().is_err());
        assert!("34028236692093846346337460743176821145.5B".parse::<Bytes>().is_err());
    }

    #[test]
    fn prints_for_people() {
        assert_eq!(Nanos(4_800_000).to_string(), "4.80 ms");
        assert_eq!(Nanos(88_123_456).to_string(), "88.1 ms");
        assert_eq!(Nanos::from_secs(7_200).to_string(), "2.00 h");
        let printed = |sizes: &[u64]| sizes.iter().map(|&size| Bytes(size).to_string()).collect::<Vec<_>>().join(", ");
        let sizes = [0, 512, 2_500, 640 << 10, 1_001 << 20, 1 << 30, 300_000_000_000];
        assert_eq!(printed(&sizes), "0 B, 512 B, 2.44 KiB, 640 KiB, 1001 MiB, 1.00 GiB, 279 GiB");
        let requests = [1_024, 1_280, 1_152, 1_088, 4_096, 4_097, 8_128, 12_800].map(|kib| kib << 10);
        let expected = "1.00 MiB, 1.25 MiB, 1.125 MiB, 1.0625 MiB, 4.00 MiB, 4.00 MiB, 7.9375 MiB, 12.5 MiB";
        assert_eq!(printed(&requests), expected);
        assert_eq!(Rate(38_750_000).to_string(), "38.8 MB/s");
    }

    #[test]
    fn a_total_outlasts_the_end_of_time() {
        let longest = Nanos(u64::MAX);
        let mut total: TotalTime = [longest, longest].into_iter().sum();
        assert_eq!((total, total.mean(2), total.mean(1), total.mean(0)), (longest * 2, longest, longest, Nanos::ZERO));
        total += Nanos(1);
        total += TotalTime(2);
        assert_eq!(total.saturating_sub(longest * 2), TotalTime(3));
        assert_eq!((longest * 1).saturating_sub(total), TotalTime::ZERO);
        assert_eq!(
            (TotalTime(u128::MAX) + TotalTime(1), TotalTime(u128::MAX) * 2),
            (TotalTime(u128::MAX), TotalTime(u128::MAX))
        );
        assert_eq!([TotalTime(4_800_000), longest * 2].map(|total| total.to_string()), ["4.80 ms", "427008 d"]);
        assert_eq!((Nanos::from_millis(250) * 3 + TotalTime(0)).as_secs_f64(), 0.75);
    }

    /// The same digit by digit, as on paper: numbers of any length.
    fn on_paper(number: &str, factor: u64) -> Option<u64> {
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        // The last digit first.
        let mut digits: Vec<u128> =
            [whole, fraction].concat().bytes().rev().map(|digit| u128::from(digit - b'0')).collect();
        digits.resize(digits.len() + 20, 0);
        let mut carry = 0;
        for digit in &mut digits {
            let sum = *digit * u128::from(factor) + carry;
            (*digit, carry) = (sum % 10, sum / 10);
        }
        let cut = fraction.len();
        let up = cut > 0 && digits[cut - 1] >= 5;
        let value =
            digits[cut..].iter().rev().try_fold(0u128, |value, digit| value.checked_mul(10)?.checked_add(*digit));
        u64::try_from(value?.checked_add(u128::from(up))?).ok()
    }

    /// Numbers of any length, those around 2^64 and 2^128 in some unit, and how they are rounded.
    fn numbers() -> impl Strategy<Value = String> {
        let edges = prop::sample::select(vec![u128::from(u64::MAX), u128::MAX, u128::MAX / 10, u128::MAX >> 40]);
        let edge = (edges, 0u128..3, 0usize..19).prop_map(|(edge, above, places)| {
            let digits = edge.saturating_sub(1).saturating_add(above).to_string();
            let (whole, fraction) = digits.split_at(digits.len() - places);
            if places == 0 { whole.into() } else { format!("{whole}.{fraction}") }
        });
        prop_oneof!["[0-9]{1,45}", "[0-9]{0,40}\\.[0-9]{1,18}", "[0-9]{1,12}\\.[0459]{1,18}", edge]
    }

    proptest! {
        #[test]
        fn numbers_are_read_as_on_paper(number in numbers(), unit in any::<prop::sample::Index>(), space in " {0,2}") {
            let (name, factor) = SIZES[unit.index(SIZES.len())];
            let size = on_paper(&number, factor);
            prop_assert_eq!(format!("{number}{space}{name}").parse().ok(), size.map(Bytes));
            prop_assert_eq!(format!("{number}{space}{name}/s").parse().ok(), size.map(Rate));
            let (name, factor) = TIMES[unit.index(TIMES.len())];
            prop_assert_eq!(format!("{number}{space}{name}").parse().ok(), on_paper(&number, factor).map(Nanos));
        }

        #[test]
        fn exact_text_reads_back(n in any::<u64>(), shift in 0u32..64) {
            let n = n >> shift;
            prop_assert_eq!(Nanos(n).exact().parse(), Ok(Nanos(n)));
            prop_assert_eq!(Bytes(n).exact().parse(), Ok(Bytes(n)));
        }
    }
}
