//! The order in which a scrub visits a device.

mod sequential;

pub use sequential::Sequential;

use crate::Bytes;

/// A stretch of a device in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First byte.
    pub offset: Bytes,
    /// Length.
    pub length: Bytes,
}

impl Extent {
    /// The byte behind the last one.
    pub fn end(&self) -> Bytes {
        Bytes(self.offset.0 + self.length.0)
    }
}

/// Visits every byte of a device once. It remembers its place as one number, from which a new one goes on.
pub trait ScanOrder: Send {
    /// Its name, as in `--json`.
    fn name(&self) -> &'static str;
    /// The next piece, of at most `size`; `None` when the pass is over.
    fn next(&mut self, size: Bytes) -> Option<Extent>;
    /// How many bytes have been handed out: the place to resume from.
    fn position(&self) -> Bytes;
}
