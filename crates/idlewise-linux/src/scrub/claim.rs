//! One idlewise at a disk: whoever keeps its checkpoints elsewhere, or scrubs another part of the disk, is seen as well.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use rustix::net::sockopt::socket_peercred;
use rustix::process::{Uid, geteuid};

use super::CheckpointError;
use crate::device::Device;

/// The claim to a disk, until it is dropped or the process ends: an abstract socket, which no file outlives. Processes in
/// another network name space have their own.
#[derive(Debug)]
pub struct Claim(#[expect(dead_code, reason = "held, never used")] Option<UnixListener>);

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
        let busy = || CheckpointError::Busy { device: device.into(), lock: format!("the socket @{name}") };
        let address = SocketAddr::from_abstract_name(name).map_err(|_| busy())?;
        match UnixListener::bind_addr(&address) {
            Ok(listener) => Ok(Self(Some(listener))),
            // A name is anyone's to take: only root's claim, or one of the same user, counts.
            Err(_) if holder(&address).is_some_and(|uid| uid != Uid::ROOT && uid != geteuid()) => Ok(Self(None)),
            Err(_) => Err(busy()),
        }
    }
}

/// Who holds a claim, if that can be told.
fn holder(address: &SocketAddr) -> Option<Uid> {
    let socket = UnixStream::connect_addr(address).ok()?;
    Some(socket_peercred(&socket).ok()?.uid)
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
