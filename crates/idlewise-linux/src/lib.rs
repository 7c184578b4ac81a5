//! Real disks for idlewise: devices, the foreground monitor, the live scrubber, capture and replay. Linux only.
//!
//! ```text
//! device ──► monitor ──► scrub ──► probe, repair
//!    └─────► content ──────┘
//!                ├─────► command ──► scrubber
//!                └─────► capture, replay
//! ```

mod apart;
pub mod capture;
pub mod command;
pub mod content;
pub mod device;
pub mod files;
// With the tests as well, so that it is seen to build.
mod free_memory;
#[cfg(any(fuzzing, test))]
pub mod fuzzing;
mod knobs;
mod ledger;
mod memory;
pub mod monitor;
pub mod probe;
pub mod repair;
pub mod replay;
pub mod scrub;
pub mod scrubber;
mod watched;

pub use files::{Destination, Hold, Replacement, metadata_at, replace_file};
pub use free_memory::half_of_free_memory;
pub use ledger::put_back_what_is_left;
