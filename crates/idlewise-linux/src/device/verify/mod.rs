//! Verifiers: how a stretch of a device is checked. One file a command set, one line each in [`VERIFIERS`].

mod ata;
mod blocking;
mod members;
pub(super) mod nvme;
mod nvme_ring;
mod proof;
mod read;
mod scsi;
pub(crate) mod sense;

pub use members::{MemberPlace, Members};
pub use read::DirectRead;

use std::time::{Duration, Instant};

use idlewise::Bytes;
use idlewise::order::Extent;
use idlewise::registry::{Named, Registry};
use io_uring::Submitter;
use io_uring::types::{SubmitArgs, Timespec};
use rustix::io::Errno;

use super::Device;
use super::sg::Sg;
use crate::memory::Buffer;
use sense::Sense;

/// Checks one stretch of a device at a time.
pub trait Verifier: Send {
    /// Its name, as in `--json`.
    fn name(&self) -> &'static str;
    /// Whether it reads, so that its requests lie where the stretch does and show in the kernel's counters; commands of the
    /// disk's own do not.
    fn reads(&self) -> bool {
        false
    }
    /// Hands out the memory that holds what the last request read, from its first byte on, of each member where there are several, and takes
    /// `spare` for the next one; none where it reads nothing. Between two requests only.
    fn take_read(&mut self, _spare: Vec<Buffer>) -> Vec<Buffer> {
        Vec::new()
    }
    /// Starts checking a stretch of whole blocks.
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
    /// Some block of it cannot be read.
    #[error("unreadable ({kind})")]
    Unreadable {
        /// `medium`, `protection` or `io`.
        kind: &'static str,
        /// The first byte that cannot be read, where the device says so.
        at: Option<Bytes>,
    },
    /// Something else than the medium was in the way, and may be gone at the next attempt.
    #[error("{kind}")]
    Passing {
        /// `timeout`, `transport`, `aborted`, `hardware` or `not-ready`.
        kind: &'static str,
    },
    /// The device does not take this command, or not at this length.
    #[error("{0}")]
    Refused(String),
    /// The device is gone or the request itself is wrong: going on makes no sense.
    #[error("{0}")]
    Device(String),
}

const GONE: &str = "the device is gone";

impl Fault {
    /// Nothing is there any more.
    pub(super) fn gone() -> Self {
        Self::Device(GONE.into())
    }

    /// Whether it says that nothing is there any more.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Device(problem) if problem == GONE)
    }

    fn unreadable(kind: &'static str) -> Self {
        Self::Unreadable { kind, at: None }
    }
}

/// One way to verify.
pub struct Method {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// Opens one on a device, for stretches of at most a length.
    pub open: Open,
}

impl Named for Method {
    fn name(&self) -> &'static str {
        self.name
    }
}

/// Makes a verifier of a device, for stretches of at most a length.
pub type Open = fn(&Device, Bytes) -> Result<Box<dyn Verifier>, Fault>;

/// What there is, the best first: [`choose`] takes the first that works.
pub static VERIFIERS: Registry<Method> = Registry::new(&[
    Method { name: "nvme", about: "NVMe Verify through io_uring", open: nvme_ring::open },
    Method { name: "nvme-ioctl", about: "NVMe Verify through ioctl, for kernels before 5.19", open: nvme::open },
    Method { name: "ata", about: "ATA READ VERIFY SECTOR(S) EXT through ATA PASS-THROUGH(16)", open: ata::open },
    Method { name: "scsi", about: "SCSI VERIFY(16), or VERIFY(10) where there is no other", open: scsi::open },
    Method { name: "read", about: "reads past the page cache, on any block device", open: read::open },
]);

/// A verifier that works on a device, and why those before it in the table do not.
pub struct Chosen {
    /// The verifier.
    pub verifier: Box<dyn Verifier>,
    /// Name of each method tried before, and what was in its way.
    pub passed: Vec<(&'static str, Fault)>,
}

/// Tries the methods in turn, or only the one of this name, for stretches of at most `largest`: on the first block of the device,
/// and where that takes too long, as a dead block may, on one in the middle and on the last.
///
/// # Errors
/// Names and faults of all that were tried, if none works.
pub fn choose(device: &Device, largest: Bytes, name: Option<&str>) -> Result<Chosen, Vec<(&'static str, Fault)>> {
    let mut passed = Vec::new();
    for method in VERIFIERS.iter().filter(|method| name.is_none_or(|name| name == method.name)) {
        // What did not answer may still do so: each place has a verifier of its own.
        let tried = |block: u64| {
            let mut verifier = (method.open)(device, largest)?;
            attempt(&mut *verifier, device, block)?;
            Ok(verifier)
        };
        let blocks = device.size.0 / u64::from(device.block);
        let mut answer = tried(0);
        for block in [blocks / 2, blocks.saturating_sub(1)] {
            if matches!(answer, Err(Fault::Passing { .. })) {
                answer = tried(block);
            }
        }
        match answer {
            Ok(verifier) => return Ok(Chosen { verifier, passed }),
            Err(fault) => passed.push((method.name, fault)),
        }
    }
    Err(passed)
}

/// Verifies a block: unreadable, it is verified all the same.
fn attempt(verifier: &mut dyn Verifier, device: &Device, block: u64) -> Result<(), Fault> {
    const ATTEMPTS: usize = 4;
    const PATIENCE: Duration = Duration::from_secs(30);
    let mut last = Fault::Passing { kind: "timeout" };
    for _ in 0..ATTEMPTS {
        let until = Instant::now() + PATIENCE;
        let size = u64::from(device.block);
        verifier.start(Extent { offset: Bytes(block * size), length: Bytes(size) })?;
        let done = loop {
            match verifier.wait(until.saturating_duration_since(Instant::now())) {
                None if Instant::now() >= until => return Err(last),
                None => {}
                Some(done) => break done,
            }
        };
        match done {
            Ok(()) | Err(Fault::Unreadable { .. }) => return Ok(()),
            // The first command after a reset is answered with the news of it.
            Err(passing @ Fault::Passing { .. }) => last = passing,
            Err(other) => return Err(other),
        }
    }
    Err(last)
}

/// Waits for a completion on a ring, at most `timeout`.
fn wait_on_ring(submitter: &Submitter, timeout: Duration) -> Result<(), Fault> {
    let timeout = Timespec::from(timeout);
    match submitter.submit_with_args(1, &SubmitArgs::new().timespec(&timeout)) {
        Ok(_) => Ok(()),
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::TIME | Errno::INTR) => Ok(()),
            _ => Err(Fault::Device(format!("io_uring: {error}"))),
        },
    }
}

/// How a command that addresses the whole disk names a stretch of a device on it.
#[derive(Clone, Copy, Debug)]
struct Addresses {
    start: u64,
    block: u64,
}

impl Addresses {
    /// Of a device that lies in one piece on its disk.
    fn of(device: &Device) -> Result<Self, Fault> {
        if let Some(reason) = device.stacked() {
            return Err(Fault::Refused(format!("{reason}; its commands would address other blocks")));
        }
        let addresses = Self { start: device.start.0, block: u64::from(device.block) };
        if !addresses.start.is_multiple_of(addresses.block) {
            return Err(Fault::Refused("the partition begins within a block of the disk".into()));
        }
        Ok(addresses)
    }

    /// The same, as if the device were all of its disk.
    fn of_the_disk(self) -> Self {
        Self { start: 0, ..self }
    }

    /// First block on the disk and number of blocks.
    fn blocks(&self, extent: Extent) -> (u64, u64) {
        ((self.start + extent.offset.0) / self.block, extent.length.0.div_ceil(self.block))
    }

    /// A disk that says of a block that it is beyond its end has shrunk, or cannot find it.
    fn or_beyond_the_end(&self, disk: &Sg, said: Option<&Sense>, extent: Extent, fault: Fault) -> Fault {
        let end = self.start.saturating_add(extent.end().0);
        let is_beyond = said.is_some_and(Sense::is_beyond_the_end) && disk.size().is_some_and(|size| size.0 < end);
        if is_beyond { Fault::Device("the block is beyond the end: the disk has shrunk".into()) } else { fault }
    }

    /// The byte of the device at a block of the disk, if it lies within the stretch.
    fn within(&self, extent: Extent, lba: u64) -> Option<Bytes> {
        let at = Bytes(lba.checked_mul(self.block)?.checked_sub(self.start)?);
        (at >= extent.offset && at < extent.end()).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partitions_blocks_are_the_disks() {
        let addresses = Addresses { start: 1 << 20, block: 512 };
        let extent = Extent { offset: Bytes(4096), length: Bytes(1024) };
        assert_eq!(addresses.blocks(extent), (2048 + 8, 2));
        assert_eq!(addresses.within(extent, 2057), Some(Bytes(4608)));
        assert_eq!([2055, 2058, 0, u64::MAX].map(|lba| addresses.within(extent, lba)), [None; 4]);
    }
}
