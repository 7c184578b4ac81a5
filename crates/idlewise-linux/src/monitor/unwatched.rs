//! The monitor that sees nobody: for plain files, whose disk may be anywhere.

use std::time::Duration;

use super::{Event, Monitor, MonitorError, Own};

/// Sees nothing.
pub struct Unwatched;

impl Monitor for Unwatched {
    fn name(&self) -> &'static str {
        "none"
    }

    fn poll(&mut self, wait: Duration, _: &mut Vec<Event>) -> Result<(), MonitorError> {
        std::thread::sleep(wait);
        Ok(())
    }

    fn outstanding(&mut self) -> u64 {
        0
    }

    fn own(&mut self, _: Own) {}

    fn lost(&self) -> u64 {
        0
    }
}
