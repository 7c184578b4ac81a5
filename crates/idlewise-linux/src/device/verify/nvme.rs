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
    blocking("nvme-verify-ioctl", move |extent| send(&file, IO, namespace.verify(extent)?).and_then(fault))
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
    status.map_err(|errno| refused(errno, "NVMe commands need CAP_SYS_ADMIN"))
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

/// What a status means (NVMe base 2.0, section 4.6).
pub fn fault(status: u32) -> Result<(), Fault> {
    let (kind, code) = ((status >> 8) & 7, status & 0xff);
    let said = |what: &str| format!("{what} (status {kind:x}/{code:02x})");
    let passing = |kind| Err(Fault::Passing { kind });
    match (kind, code) {
        // Deallocated blocks have nothing to verify.
        (0, 0) | (2, 0x87) => Ok(()),
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
        assert_eq!([fault(0), fault(0x287)], [Ok(()), Ok(())]);
        // The bits above are "more" and "do not retry".
        assert_eq!(fault(0x4281), Err(Fault::unreadable("medium")));
        assert_eq!(fault(0x4282), Err(Fault::unreadable("protection")));
        assert_eq!(fault(0x0006), Err(Fault::Passing { kind: "hardware" }));
        assert_eq!(fault(0x0371), Err(Fault::Passing { kind: "transport" }));
        assert!(matches!(fault(0x4001), Err(Fault::Refused(_))));
        assert!(matches!(fault(0x4080), Err(Fault::Device(_))));
    }
}
