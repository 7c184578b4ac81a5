//! NVMe Verify (NVM command set 1.0, section 3.2.5): the command, its status, and sending it by ioctl.

use std::ffi::c_void;
use std::fs::File;

use idlewise::Bytes;
use idlewise::order::Extent;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, opcode};

use super::blocking::blocking;
use super::{Addresses, Fault, Verifier};
use crate::device::Device;
use crate::device::sg::refused;

const VERIFY: u8 = 0x0c;
/// From Linux 6.2 on, Verify of a whole namespace needs no more than reading it.
pub const NVME_PERMISSION: &str = "NVMe commands need CAP_SYS_ADMIN, Verify on Linux before 6.2 only";
/// After as many milliseconds the kernel gives a command up.
const TIMEOUT_MS: u32 = 60_000;

/// The kernel's `struct nvme_uring_cmd`, which is `struct nvme_passthru_cmd64` without the result.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Command {
    opcode: u8,
    flags: u8,
    _reserved: u16,
    namespace: u32,
    words_2_3: [u32; 2],
    metadata: u64,
    address: u64,
    metadata_length: u32,
    data_length: u32,
    words_10_15: [u32; 6],
    timeout_ms: u32,
    _reserved_2: u32,
}

/// Whose blocks are verified.
#[derive(Clone, Copy, Debug)]
pub struct Namespace {
    id: u32,
    addresses: Addresses,
}

impl Namespace {
    /// The namespace that `device` is or lies on.
    pub fn of(device: &Device) -> Result<Self, Fault> {
        let addresses = Addresses::of(device)?;
        let id = device.namespace().ok_or_else(|| Fault::Refused("it is no NVMe disk".into()))?;
        Ok(Self { id, addresses })
    }

    /// What is to be verified of a stretch.
    pub fn parts(&self, extent: Extent) -> Parts {
        Parts::of(extent, self.addresses.block)
    }

    /// The command for a stretch.
    pub fn verify(&self, extent: Extent) -> Result<Command, Fault> {
        let (lba, blocks) = self.addresses.blocks(extent);
        let zero_based = u16::try_from(blocks.saturating_sub(1))
            .map_err(|_| Fault::Refused("more blocks than the command can say".into()))?;
        let words_10_15 = [lba as u32, (lba >> 32) as u32, u32::from(zero_based), 0, 0, 0];
        Ok(Command { opcode: VERIFY, namespace: self.id, words_10_15, timeout_ms: TIMEOUT_MS, ..Command::default() })
    }
}

/// Verify by ioctl on the block device.
pub fn open(device: &Device, _: Bytes) -> Result<Box<dyn Verifier>, Fault> {
    let namespace = Namespace::of(device)?;
    let file = device.open_disk()?;
    blocking("nvme-verify-ioctl", move |extent| {
        let mut parts = namespace.parts(extent);
        while let Some(part) = parts.current() {
            parts.told(send(&file, IO, namespace.verify(part)?)?)?;
        }
        Ok(())
    })
}

/// What is still to be verified of a stretch. Where blocks can be deallocated aloud (NVM command set 1.0, section 3.3.3.2.1: DULBE), one of
/// them ends the command for all, and nothing is known of the others: then it is done in halves.
#[derive(Debug)]
pub struct Parts {
    block: u64,
    /// The next one last.
    left: Vec<Extent>,
}

impl Parts {
    fn of(extent: Extent, block: u64) -> Self {
        Self { block, left: vec![extent] }
    }

    /// What is to be verified next.
    pub fn current(&self) -> Option<Extent> {
        self.left.last().copied()
    }

    /// The status of that.
    ///
    /// # Errors
    /// What it means, where it is no success.
    pub fn told(&mut self, status: u32) -> Result<(), Fault> {
        let Some(part) = self.left.pop() else { return Ok(()) };
        if status & 0x7ff != DEALLOCATED {
            return fault(status);
        }
        let blocks = part.length.0.div_ceil(self.block);
        // A single one has nothing to verify.
        if blocks > 1 {
            let first = Bytes(blocks / 2 * self.block);
            let rest = Extent { offset: part.offset + first, length: Bytes(part.length.0 - first.0) };
            self.left.extend([rest, Extent { length: first, ..part }]);
        }
        Ok(())
    }
}

/// The state of the device's self-test: not zero while one runs (NVMe base 2.0, section 5.16.1.7).
pub fn self_test(device: &Device) -> Result<u8, Fault> {
    const GET_LOG_PAGE: u8 = 0x02;
    const SELF_TEST: u32 = 0x06;
    const CONTROLLER: u32 = u32::MAX;
    let mut log = [0u8; 32];
    let words = log.len() as u32 / 4;
    let command = Command {
        opcode: GET_LOG_PAGE,
        namespace: CONTROLLER,
        address: log.as_mut_ptr() as u64,
        data_length: log.len() as u32,
        words_10_15: [SELF_TEST | (words - 1) << 16, 0, 0, 0, 0, 0],
        timeout_ms: TIMEOUT_MS,
        ..Command::default()
    };
    send(&device.open_disk()?, ADMIN, command).and_then(fault)?;
    Ok(log[0] & 0xf)
}

/// Numbers of the ioctls.
const ADMIN: u8 = 0x47;
const IO: u8 = 0x48;

/// Sends a command that moves no data, or at most as much as the buffer at its address holds; its status.
fn send(file: &File, number: u8, command: Command) -> Result<u32, Fault> {
    let call = Call { passthrough: Passthrough { command, result: 0 }, number };
    // SAFETY: the structure is the kernel's own (static assertions below), and points at nothing but its sender's buffer.
    let status = unsafe { rustix::ioctl::ioctl(file, call) };
    status.map_err(|errno| refused(errno, NVME_PERMISSION))
}

/// The kernel's `struct nvme_passthru_cmd64`.
#[repr(C)]
struct Passthrough {
    command: Command,
    result: u64,
}

struct Call {
    passthrough: Passthrough,
    number: u8,
}

const _: () = assert!(size_of::<Command>() == 72 && size_of::<Passthrough>() == 80);

// SAFETY: both ioctls read and write exactly the structure that is pointed at, and return a status.
unsafe impl Ioctl for Call {
    type Output = u32;
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        opcode::read_write::<Passthrough>(b'N', self.number)
    }

    fn as_ptr(&mut self) -> *mut c_void {
        std::ptr::from_mut(&mut self.passthrough).cast()
    }

    unsafe fn output_from_ptr(status: IoctlOutput, _: *mut c_void) -> rustix::io::Result<u32> {
        Ok(status as u32)
    }
}

/// Number of the io_uring command that carries a [`Command`].
pub fn uring_command() -> u32 {
    opcode::read_write::<Command>(b'N', 0x80)
}

/// "Deallocated or Unwritten Logical Block": of at least one of them; type and code.
const DEALLOCATED: u32 = 0x287;

/// What a status means (NVMe base 2.0, section 4.6).
pub fn fault(status: u32) -> Result<(), Fault> {
    let (kind, code) = ((status >> 8) & 7, status & 0xff);
    let said = |what: &str| format!("{what} (status {kind:x}/{code:02x})");
    let passing = |kind| Err(Fault::Passing { kind });
    match (kind, code) {
        (0, 0) => Ok(()),
        (0, 0x01 | 0x02 | 0x15) | (1, _) => Err(Fault::Refused(said("the device does not take it"))),
        (0, 0x0b) => Err(Fault::Device(said("the namespace is gone"))),
        (0, 0x80 | 0x81) => Err(Fault::Device(said("the block is beyond the end"))),
        (0, 0x82) => passing("not-ready"),
        (0, 0x04) | (3, _) => passing("transport"),
        (0, 0x06) => passing("hardware"),
        (0, _) => passing("aborted"),
        (2, 0x82..=0x84) => Err(Fault::unreadable("protection")),
        (2, 0x86) => Err(Fault::Device(said("access is denied"))),
        (2, _) => Err(Fault::unreadable("medium")),
        _ => Err(Fault::unreadable("io")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_command_as_in_the_standard() {
        let namespace = Namespace { id: 3, addresses: Addresses { start: 0, block: 4096 } };
        let extent = |offset, length| Extent { offset: Bytes(offset), length: Bytes(length) };
        let command = namespace.verify(extent(0x1_0000_0002 * 4096, 8 * 4096)).unwrap();
        assert_eq!((command.opcode, command.namespace), (0x0c, 3));
        assert_eq!(command.words_10_15, [2, 1, 7, 0, 0, 0]);
        assert!(namespace.verify(extent(0, 65_536 * 4096)).is_ok());
        assert!(matches!(namespace.verify(extent(0, 65_537 * 4096)), Err(Fault::Refused(_))));
        let call = Call { passthrough: Passthrough { command, result: 0 }, number: IO };
        assert_eq!((uring_command(), call.opcode()), (0xc048_4e80, 0xc050_4e48));
    }

    #[test]
    fn what_each_status_means() {
        assert_eq!(fault(0), Ok(()));
        // The bits above are "more" and "do not retry".
        assert_eq!(fault(0x4281), Err(Fault::unreadable("medium")));
        assert_eq!(fault(0x4282), Err(Fault::unreadable("protection")));
        assert_eq!(fault(0x0006), Err(Fault::Passing { kind: "hardware" }));
        assert_eq!(fault(0x0371), Err(Fault::Passing { kind: "transport" }));
        assert!(matches!(fault(0x4001), Err(Fault::Refused(_))));
        assert!(matches!(fault(0x4080), Err(Fault::Device(_))));
    }

    proptest! {
        /// A disk of which some blocks are deallocated and some are bad: each other one is verified, or the first bad one is told.
        #[test]
        fn deallocated_blocks_hide_no_others(free in prop::collection::vec(any::<bool>(), 1..200), bad in 0usize..400) {
            let is_bad = |at: usize| at == bad && !free[at];
            let mut parts = Parts::of(Extent { offset: Bytes(512), length: Bytes(free.len() as u64 * 512) }, 512);
            let (mut verified, mut told) = (vec![false; free.len()], Ok(()));
            while let (Some(part), Ok(())) = (parts.current(), &told) {
                let first = (part.offset.0 / 512 - 1) as usize;
                let range = first..first + (part.length.0 / 512) as usize;
                let status = match () {
                    () if range.clone().any(|at| free[at]) => 0x4287,
                    () if range.clone().any(is_bad) => 0x4281,
                    () => 0,
                };
                told = parts.told(status);
                verified[range.clone()].fill(status == 0 || range.len() == 1 && status == 0x4287);
            }
            if (0..free.len()).any(is_bad) {
                prop_assert_eq!(told, Err(Fault::unreadable("medium")));
            } else {
                prop_assert!(told.is_ok() && verified.iter().all(|is| *is));
            }
        }
    }
}
