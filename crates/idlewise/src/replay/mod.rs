//! What a replay issues, when and where, without a clock and without a device.
//!
//! ```text
//! Columns ─► places (on a smaller device) ─► runs (warm-up, measured, cool-down) ─► Schedule ─► due times
//!                                            Causality (who waits for whom) ────────┘
//! ```
//!
//! "SIGMETRICS 2015" stands for Tarihi, Asadi, Sarbazi-Azad, *DiskAccel: Accelerating Disk-Based Experiments by
//! Representative Sampling*.

mod causality;
mod footprint;
mod places;
mod runs;
mod schedule;
mod segment;

pub use causality::{Causality, NoResponseTimes};
pub use footprint::Footprint;
pub use places::{Places, TooLong};
pub use runs::{Part, Phase, ReplayRun};
pub use schedule::Schedule;
pub use segment::{Segment, SegmentError, weighted_response};
