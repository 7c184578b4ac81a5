//! One idlewise at a disk: whoever keeps its checkpoints elsewhere, or scrubs another part of the disk, is seen as well.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use super::CheckpointError;
use crate::device::Device;

/// The claim to a disk, until it is dropped or the process ends: an abstract socket, which no file outlives. Processes in
/// another network name space have their own.
#[derive(Debug)]
pub struct Claim(#[expect(dead_code, reason = "held, never used")] UnixListener);

impl Claim {
    /// Claims the disk that `device` lies on.
    ///
    /// # Errors
    /// [`CheckpointError::Busy`] if another scrub has.
    pub fn of(device: &Device) -> Result<Self, CheckpointError> {
        let (major, minor) = device.disk_numbers();
        Self::named(&format!("idlewise/{major}:{minor}"), &device.path.display().to_string())
    }

    fn named(name: &str, device: &str) -> Result<Self, CheckpointError> {
        let bound = SocketAddr::from_abstract_name(name).and_then(|address| UnixListener::bind_addr(&address));
        let busy = |_| CheckpointError::Busy { device: device.into(), lock: format!("the socket @{name}") };
        bound.map(Self).map_err(busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_claimed_once() {
        let name = format!("idlewise/test/{}", std::process::id());
        let first = Claim::named(&name, "/dev/x").unwrap();
        let error = Claim::named(&name, "/dev/x").unwrap_err().to_string();
        assert!(error.starts_with("/dev/x: another idlewise is scrubbing it (holds the socket"), "{error}");
        drop(first);
        assert!(Claim::named(&name, "/dev/x").is_ok());
    }
}
