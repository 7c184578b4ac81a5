//! Waiting with request sizes that grow inside an interval (DSN 2012, section V-C): the longer the device has been idle, the
//! longer it will stay so, and the larger a request may be.

use super::{Decision, Entry, Given, IDLE_WAIT, Kind, Parameter, ParameterError, Policy, Tried, Value};
use crate::disk::LARGEST_REQUEST;
use crate::{Bytes, Nanos};

/// How the size grows from one request to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Growth {
    /// Times `factor`, plus `increment`: exponential without an increment, the paper's linear with one.
    Each {
        /// The paper's a, at least 1.
        factor: f64,
        /// The paper's b.
        increment: Bytes,
    },
    /// From the first to the largest size once the device has been idle for so long: swapping, with the paper's t'.
    Once {
        /// Elapsed idle time.
        at: Nanos,
    },
}

/// Waits, then issues requests of growing size back to back.
#[derive(Clone, Copy, Debug)]
pub struct Growing {
    /// The threshold t.
    pub idle_wait: Nanos,
    /// Size of the first request.
    pub first: Bytes,
    /// Size that no request exceeds.
    pub largest: Bytes,
    /// How it grows.
    pub growth: Growth,
    /// Size of the last request in bytes, not rounded; none before the first.
    last: Option<f64>,
}

/// Sizes are whole blocks of the largest kind in use.
const BLOCK: u64 = 4096;

impl Growing {
    /// A policy whose requests grow from `first` to `largest`.
    pub fn new(idle_wait: Nanos, first: Bytes, largest: Bytes, growth: Growth) -> Self {
        Self { idle_wait, first, largest, growth, last: None }
    }

    /// What follows a request of so many bytes, not rounded: a size that grows by less than a block a time would else never grow.
    fn grown(&self, size: f64, elapsed: Nanos) -> f64 {
        let grown = match self.growth {
            Growth::Each { factor, increment } => size * factor + increment.0 as f64,
            Growth::Once { at } if elapsed >= at => self.largest.0 as f64,
            Growth::Once { .. } => size,
        };
        grown.min(self.largest.0 as f64)
    }

    /// Rounded to whole blocks, but for the first and the largest size.
    fn rounded(&self, size: f64) -> Bytes {
        if size >= self.largest.0 as f64 {
            return self.largest;
        }
        let blocks = (size / BLOCK as f64).round() * BLOCK as f64;
        Bytes(blocks as u64).max(self.first).min(self.largest)
    }
}

impl Policy for Growing {
    fn idle_began(&mut self, _busy: Nanos, _at: Nanos) {
        self.last = None;
    }

    fn decide(&mut self, elapsed: Nanos) -> Decision {
        if elapsed < self.idle_wait {
            return Decision::Wait { until: self.idle_wait };
        }
        let exact = self.last.map_or(self.first.min(self.largest).0 as f64, |last| self.grown(last, elapsed));
        let stays = self.last.replace(exact) == Some(exact);
        let size = self.rounded(exact);
        match self.growth {
            // A size that stays is issued for as long as the device is idle.
            _ if size == self.largest => Decision::Issue { size, count: u64::MAX },
            Growth::Each { .. } if stays => Decision::Issue { size, count: u64::MAX },
            Growth::Each { .. } => Decision::Issue { size, count: 1 },
            // The first request is never a large one, so its growth may be due already.
            Growth::Once { at } => Decision::IssueUntil { size, until: at.max(Nanos(elapsed.0.saturating_add(1))) },
        }
    }
}

/// Factor a by which sizes grow.
pub const GROWTH: Parameter = Parameter {
    name: "growth",
    about: "Factor from one request size to the next",
    kind: Kind::Number { unit: "FACTOR", least: 1.0, most: 1e3, expected: "a factor from 1 to 1000" },
    tried: Tried::One(Value::Number(1.5)),
};

/// Constant b by which they grow besides.
pub const INCREMENT: Parameter = Parameter {
    name: "increment",
    about: "What is added to that for each request",
    kind: Kind::Size { least: Bytes(0) },
    tried: Tried::One(Value::Size(Bytes::from_kib(64))),
};

/// Elapsed idle time t' at which the size becomes the largest.
pub const SWAP_AT: Parameter = Parameter {
    name: "swap-at",
    about: "Idle time after which requests have the largest size",
    kind: Kind::Time,
    tried: Tried::IdleWaits(&[2, 8, 32]),
};

/// Size that no request exceeds.
pub const LARGEST_SIZE: Parameter = Parameter {
    name: "largest-size",
    about: "Largest size that growing requests reach [default: 4MiB]",
    kind: Kind::Size { least: Bytes(512) },
    tried: Tried::AtLeastFirst(LARGEST_REQUEST),
};

pub(super) const EXPONENTIAL: Entry = Entry {
    name: "exponential",
    about: "waiting, with sizes from --request-size to --largest-size, each --growth times the last",
    parameters: &[IDLE_WAIT, GROWTH, LARGEST_SIZE],
    build: |given| built(given, Growth::Each { factor: given.number(GROWTH)?, increment: Bytes(0) }),
};

pub(super) const LINEAR: Entry = Entry {
    name: "linear",
    about: "the same, each --increment more than --growth times the last",
    parameters: &[IDLE_WAIT, GROWTH, INCREMENT, LARGEST_SIZE],
    build: |given| {
        let factor = given.parameters.number(GROWTH).unwrap_or(1.0);
        built(given, Growth::Each { factor, increment: given.size(INCREMENT)? })
    },
};

pub(super) const SWAPPING: Entry = Entry {
    name: "swapping",
    about: "waiting, with --largest-size once idle for --swap-at",
    parameters: &[IDLE_WAIT, SWAP_AT, LARGEST_SIZE],
    build: |given| built(given, Growth::Once { at: given.time(SWAP_AT)? }),
};

fn built(given: &Given, growth: Growth) -> Result<Box<dyn Policy>, ParameterError> {
    let largest = given.parameters.size(LARGEST_SIZE).unwrap_or(LARGEST_REQUEST);
    Ok(Box::new(Growing::new(given.time(IDLE_WAIT)?, given.size_or_smallest(), largest, growth)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn sizes(growth: Growth) -> Vec<(u64, u64)> {
        let (first, largest) = (Bytes::from_kib(64), Bytes::from_kib(512));
        let mut policy = Growing::new(Nanos(10 * MS), first, largest, growth);
        policy.idle_began(Nanos(1), Nanos::ZERO);
        assert_eq!(policy.decide(Nanos::ZERO), Decision::Wait { until: Nanos(10 * MS) });
        let mut issued = Vec::new();
        for step in 0.. {
            let (size, count) = match policy.decide(Nanos((10 + 5 * step) * MS)) {
                Decision::Issue { size, count } => (size, count),
                Decision::IssueUntil { size, until } => (size, until.0.div_ceil(5 * MS) - 2 - step),
                other => panic!("{other:?}"),
            };
            issued.push((size.0 >> 10, count));
            if count == u64::MAX {
                break;
            }
        }
        issued
    }

    #[test]
    fn grows_as_the_paper_says() {
        let last = u64::MAX;
        let exponential = Growth::Each { factor: 2.0, increment: Bytes(0) };
        assert_eq!(sizes(exponential), [(64, 1), (128, 1), (256, 1), (512, last)]);
        let linear = Growth::Each { factor: 1.0, increment: Bytes::from_kib(200) };
        assert_eq!(sizes(linear), [(64, 1), (264, 1), (464, 1), (512, last)]);
        // Asked again behind each, as it is live: two are left, then one.
        assert_eq!(sizes(Growth::Once { at: Nanos(18 * MS) }), [(64, 2), (64, 1), (512, last)]);
        let mut odd = Growing::new(Nanos(0), Bytes(10), Bytes(5_000), Growth::Once { at: Nanos(1) });
        odd.decide(Nanos(0));
        assert_eq!(odd.decide(Nanos(1)), Decision::Issue { size: Bytes(5_000), count: last });
        let slowly: Vec<_> = sizes(Growth::Each { factor: 1.03, increment: Bytes(0) });
        assert_eq!((slowly[1], slowly[2], slowly.last()), ((64, 1), (68, 1), Some(&(512, last))));
        let never = Growth::Each { factor: 1.0, increment: Bytes(0) };
        assert_eq!(sizes(never), [(64, 1), (64, last)]);
    }
}
