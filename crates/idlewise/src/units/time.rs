//! Times, and their sums.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul};
use std::str::FromStr;
use std::time::Duration;

use super::{UnitError, decimals, parse_with};

/// A time in nanoseconds, since the start of a trace or of an idle interval, or a duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

/// Times added up, in nanoseconds: exact where [`Nanos`] would come to the end of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TotalTime(pub u128);

pub(super) const TIMES: &[(&str, u64)] = &[
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("ns", 1),
];

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

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(times: I) -> Self {
        times.fold(Self::ZERO, Add::add)
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
            // Not `1000 us`: what is rounded to a whole unit is printed in it.
            n if n >= 999_500_000 => ("s", 1_000_000_000),
            n if n >= 999_500 => ("ms", 1_000_000),
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
