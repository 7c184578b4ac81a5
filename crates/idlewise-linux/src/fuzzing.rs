//! What is read from files and disks, for fuzz/ alone.

pub use crate::device::stack::has_no_disk;
pub use crate::device::verify::sense::Sense;
use crate::scrub::Pass;

/// Reads the text of a checkpoint.
///
/// # Errors
/// What is wrong with it.
pub fn pass(text: &[u8]) -> Result<Pass, String> {
    Pass::parse(text)
}
