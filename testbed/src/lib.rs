//! The project's testbed: disks emulated behind a real Linux block device. Not a part of the product.
//!
//! ```text
//! whoever reads /dev/loopN ── loop device, direct I/O ── FUSE file "disk" ── the times of a hard disk or of a solid-state drive
//! ```
//!
//! The kernel's block layer, its tracepoints and its counters see a real disk; only the time that each request takes
//! and the data come from here.

mod disk;
pub mod lab;
mod server;
mod timing;
mod tool;

pub use disk::{EmulatedDisk, Options, missing};
pub use timing::Timing;
pub use tool::{Running, Tool};
