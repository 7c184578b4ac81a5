//! A trace played back on a real device, each request on time.
//!
//! ```text
//! Trace ─► places, runs, causality (idlewise::replay) ─► Player, on a thread of its own ─► Played ─► Summary
//! ```
//!
//! What the player needs is there before it begins, and what it finds stays in memory until it is done.

mod play;
mod player;
mod summary;
mod thread;

pub use play::{DEVICE_CACHE, Loop, Options, Played, ReplayError, Sample, Writes, replay};
pub use player::PATIENCE;
pub use summary::{SegmentSummary, Summary};
