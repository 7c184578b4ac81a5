//! Real disks for idlewise: devices, the foreground monitor, the live scrubber, capture and replay. Linux only.

mod file;

pub use file::replace_file;
