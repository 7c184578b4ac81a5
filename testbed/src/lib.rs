//! The project's testbed: a hard disk emulated behind a real Linux block device. Not a part of the product.
//!
//! ```text
//! whoever reads /dev/loopN ── loop device, direct I/O ── FUSE file "disk" ── the mechanics of a hard disk
//! ```
//!
//! The kernel's block layer, its tracepoints and its counters see a real disk; only the time that each request takes
//! and the data come from here.

mod disk;
pub mod lab;
mod server;
mod tool;

pub use disk::{EmulatedDisk, Options, missing};
pub use tool::{Running, Tool};
