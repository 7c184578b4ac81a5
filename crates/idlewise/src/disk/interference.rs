//! How much of a request in service a foreground request waits for.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Nanos;

/// The whole, in the parts that are counted.
const WHOLE: u32 = 1_000;

/// The part of what is left of a background request that a foreground request waits for, on average, if it arrives in the middle: 1 on a
/// disk that serves one request at a time, little on an SSD, which serves many. In thousandths; a number from 0 to 1 in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interference(u32);

impl Interference {
    /// One request at a time: a foreground request waits for all of it.
    pub const FULL: Self = Self(WHOLE);

    /// This part; what is not between 0 and 1 is the nearest of them, and no number is 1.
    ///
    /// It is at most 1, as a longer seek afterwards is counted apart (`drive::displacement`).
    pub fn new(part: f64) -> Self {
        if part.is_nan() { Self::FULL } else { Self((part.clamp(0.0, 1.0) * f64::from(WHOLE)).round() as u32) }
    }

    /// As a number from 0 to 1.
    pub fn part(self) -> f64 {
        f64::from(self.0) / f64::from(WHOLE)
    }

    /// The delay by a request of which so much is left, rounded up.
    pub fn of(self, left: Nanos) -> Nanos {
        match self {
            Self::FULL => left,
            // No more than what is left.
            Self(parts) => Nanos((u128::from(left.0) * u128::from(parts)).div_ceil(u128::from(WHOLE)) as u64),
        }
    }

    /// Between this one and another, `run` of `whole` of the way.
    pub(super) fn towards(self, other: Self, run: u64, whole: u64) -> Self {
        let (from, to) = (f64::from(self.0), f64::from(other.0));
        Self((from + (to - from) * run as f64 / whole as f64).round() as u32)
    }
}

impl Default for Interference {
    fn default() -> Self {
        Self::FULL
    }
}

impl Serialize for Interference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.part())
    }
}

impl<'de> Deserialize<'de> for Interference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let part = f64::deserialize(deserializer)?;
        if (0.0..=1.0).contains(&part) {
            Ok(Self::new(part))
        } else {
            Err(serde::de::Error::custom(format!("interference of {part}: write a number from 0 to 1")))
        }
    }
}

/// What a background request of some size costs: how long it takes, and how much of it a foreground request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Service time.
    pub time: Nanos,
    /// See there.
    pub interference: Interference,
}

impl From<Nanos> for Timing {
    /// On a disk that serves one request at a time.
    fn from(time: Nanos) -> Self {
        Self { time, interference: Interference::FULL }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_what_is_left_rounded_up() {
        let quarter = Interference::new(0.25);
        assert_eq!([0, 1, 4, 5, u64::MAX].map(|left| quarter.of(Nanos(left)).0), [0, 1, 1, 2, u64::MAX / 4 + 1]);
        assert_eq!(Interference::FULL.of(Nanos(u64::MAX)), Nanos(u64::MAX));
        assert_eq!(Interference::new(0.0).of(Nanos(7)), Nanos::ZERO);
        assert_eq!([-1.0, 0.4, 7.0, f64::NAN].map(|part| Interference::new(part).part()), [0.0, 0.4, 1.0, 1.0]);
        assert_eq!(Interference::new(0.2).towards(Interference::new(0.6), 1, 4).part(), 0.3);
    }
}
