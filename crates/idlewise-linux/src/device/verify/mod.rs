//! Verifiers: how a stretch of a device is checked. One file each.

mod read;

pub use read::DirectRead;

use std::time::Duration;

use idlewise::order::Extent;

/// Checks one stretch of a device at a time.
pub trait Verifier {
    /// Its name, as in `--json`.
    fn name(&self) -> &'static str;
    /// Starts checking a stretch, whole blocks of at most the size that the verifier was made for.
    ///
    /// # Errors
    /// A fault if it cannot even be started.
    fn start(&mut self, extent: Extent) -> Result<(), Fault>;
    /// Waits for it, at most `timeout`; `None` while it is still in service.
    fn wait(&mut self, timeout: Duration) -> Option<Result<(), Fault>>;
}

/// Why a stretch could not be checked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Some block of it cannot be read; `kind` is what the kernel says of it.
    #[error("unreadable ({kind})")]
    Unreadable {
        /// `medium`, `protection`, `timeout` or `io`.
        kind: &'static str,
    },
    /// The device is gone or the request itself is wrong: going on makes no sense.
    #[error("{0}")]
    Device(String),
}
