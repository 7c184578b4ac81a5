//! Waiting(t) with a fixed request size: DSN 2012, sections V-B and V-C.

use super::{Decision, Policy};
use crate::{Bytes, Nanos};

/// Waits until the device has been idle for `idle_wait`, then issues requests back to back until foreground work
/// arrives. Decreasing hazard rates make that the best time to stop (DSN 2012, section V-A).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The threshold t.
    pub idle_wait: Nanos,
    /// Size of every request.
    pub request_size: Bytes,
}

impl Policy for Waiting {
    fn decide(&mut self, elapsed: Nanos) -> Decision {
        if elapsed < self.idle_wait {
            return Decision::Wait { until: self.idle_wait };
        }
        Decision::Issue { size: self.request_size, count: u64::MAX }
    }
}
