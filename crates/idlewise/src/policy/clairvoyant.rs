//! What no policy can do, to measure policies by: the Oracle and Lossless Waiting (DSN 2012, section V-B, figure 14).

use super::{Decision, Policy};
use crate::{Bytes, Nanos};

/// Uses each interval longer than `longer_than` from its beginning: with the length of the shortest of the x % longest
/// intervals that is the Oracle, with the threshold of Waiting it is Lossless Waiting. Only a simulator can tell it how long
/// an interval will be; on a real device it does nothing.
#[derive(Clone, Copy, Debug)]
pub struct Clairvoyant {
    /// Length that an interval must exceed.
    pub longer_than: Nanos,
    /// Size of every request.
    pub request_size: Bytes,
    /// Length of the present interval.
    foreseen: Nanos,
}

impl Clairvoyant {
    /// A policy that uses intervals longer than `longer_than`.
    pub fn new(longer_than: Nanos, request_size: Bytes) -> Self {
        Self { longer_than, request_size, foreseen: Nanos::ZERO }
    }
}

impl Policy for Clairvoyant {
    fn interval_foreseen(&mut self, length: Nanos) {
        self.foreseen = length;
    }

    fn decide(&mut self, _elapsed: Nanos) -> Decision {
        if self.foreseen <= self.longer_than {
            return Decision::Stop;
        }
        Decision::Issue { size: self.request_size, count: u64::MAX }
    }

    fn foreground_arrived(&mut self, _idle: Nanos, _collision: Nanos) {
        self.foreseen = Nanos::ZERO;
    }
}
