//! What a policy can be told: each parameter has its name, kind and description in one place, beside the policy that it belongs to.

use std::fmt;

use crate::{Bytes, Nanos};

/// One thing that a policy can be told. On the command line it is an option, `--` and its name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Its name in lower case with dashes, such as `idle-wait`.
    pub name: &'static str,
    /// What it is, for `--help`.
    pub about: &'static str,
    /// What its values are.
    pub kind: Kind,
    /// With which values [`crate::tune::Comparison`] runs a policy.
    pub tried: Tried,
}

/// What the values of a parameter are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A time, such as `100ms`.
    Time,
    /// A size of at least so many bytes, such as `512KiB`.
    Size {
        /// The smallest.
        least: Bytes,
    },
    /// A number in a range.
    Number {
        /// What it is called in `--help`, such as `SHARE`.
        unit: &'static str,
        /// The smallest.
        least: f64,
        /// The largest.
        most: f64,
        /// What it is, for an error: `a share from 0 to 1`.
        expected: &'static str,
    },
}

/// With which values a comparison runs a policy that takes a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tried {
    /// With this one.
    One(Value),
    /// With the size of the first request, or this one where that is larger.
    AtLeastFirst(Bytes),
    /// With lengths that shares of the idle intervals exceed.
    IdleLengths,
    /// With lengths that autoregression predicts for the idle intervals, and with zero.
    Predictions,
    /// With multiples of the idle wait, which comes before it in the list of the policy's parameters.
    IdleWaits(&'static [u64]),
    /// With values in equal ratios; times in seconds.
    Ratios {
        /// The first.
        from: f64,
        /// The last.
        to: f64,
        /// How many follow the first.
        steps: usize,
    },
}

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A time.
    Time(Nanos),
    /// A size.
    Size(Bytes),
    /// A number.
    Number(f64),
}

impl Parameter {
    /// Its name as a member of an object in JSON, such as `idle_wait_s`: times are in seconds, sizes in bytes.
    pub fn field(&self) -> String {
        let unit = match self.kind {
            Kind::Time => "_s",
            Kind::Size { .. } => "_bytes",
            Kind::Number { .. } => "",
        };
        self.name.replace('-', "_") + unit
    }

    /// A value that a policy works with: one of those that are tried.
    pub fn usual(&self) -> Value {
        match (self.tried, self.kind) {
            (Tried::One(value), _) => value,
            (Tried::AtLeastFirst(size), _) => size.max(Bytes::from_kib(256)).into(),
            (Tried::Ratios { from, to, .. }, Kind::Time) => Nanos(((from * to).sqrt() * 1e9) as u64).into(),
            (Tried::Ratios { from, to, .. }, _) => (from * to).sqrt().into(),
            (Tried::IdleWaits(_), _) => Nanos::from_millis(700).into(),
            (Tried::IdleLengths | Tried::Predictions, _) => Nanos::from_millis(20).into(),
        }
    }
}

impl Kind {
    /// What stands for a value in `--help`.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Time => "TIME",
            Self::Size { .. } => "SIZE",
            Self::Number { unit, .. } => unit,
        }
    }

    /// Reads a value of this kind, in its range or not.
    ///
    /// # Errors
    /// Says what would be right.
    pub fn parse(self, text: &str) -> Result<Value, String> {
        match self {
            Self::Time => text.parse().map(Value::Time).map_err(|error: crate::UnitError| error.to_string()),
            Self::Size { .. } => text.parse().map(Value::Size).map_err(|error: crate::UnitError| error.to_string()),
            Self::Number { expected, .. } => {
                text.parse().map(Value::Number).map_err(|_| format!("'{text}' is not {expected}"))
            }
        }
    }

    /// Whether a value is of this kind.
    pub fn is_of(self, value: Value) -> bool {
        matches!(
            (self, value),
            (Self::Time, Value::Time(_))
                | (Self::Size { .. }, Value::Size(_))
                | (Self::Number { .. }, Value::Number(_))
        )
    }

    /// What a value of this kind would have to be, where it is out of its range.
    pub fn out_of_range(self, value: Value) -> Option<String> {
        match (self, value) {
            (Self::Size { least }, Value::Size(size)) if size < least => {
                Some(format!("at least {least}, a block of a disk"))
            }
            (Self::Number { least, most, expected, .. }, Value::Number(number)) => {
                (!(least..=most).contains(&number)).then(|| expected.into())
            }
            _ => None,
        }
    }
}

impl Value {
    /// As a plain number: times in seconds, sizes in bytes.
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Time(time) => time.as_secs_f64(),
            Self::Size(size) => size.0 as f64,
            Self::Number(number) => number,
        }
    }
}

impl fmt::Display for Value {
    /// Text that reads back as exactly this value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) => f.write_str(&time.exact()),
            Self::Size(size) => size.fmt(f),
            Self::Number(number) => number.fmt(f),
        }
    }
}

impl From<Nanos> for Value {
    fn from(time: Nanos) -> Self {
        Self::Time(time)
    }
}

impl From<Bytes> for Value {
    fn from(size: Bytes) -> Self {
        Self::Size(size)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}
