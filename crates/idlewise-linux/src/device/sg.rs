//! SCSI commands to a disk through SG_IO, and ATA commands inside them.

use std::ffi::c_void;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{fstat, major, minor};
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl};

use idlewise::Bytes;

use super::Device;
use super::node::size;
use super::verify::Fault;

const SG_IO: Opcode = 0x2285;
const NO_DATA: i32 = -1;
const FROM_DEVICE: i32 = -3;
const TO_DEVICE: i32 = -2;
/// After as many milliseconds the kernel aborts a command.
const TIMEOUT_MS: u32 = 60_000;
const CHECK_CONDITION: u8 = 0x02;
/// A disk that is taken away answers no command from then on, and is not there any more so much later at most.
const GOES: Duration = Duration::from_secs(1);

/// A disk that takes SCSI commands.
#[derive(Debug)]
pub struct Sg(File);

/// What a disk says to a command that reached it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Done.
    Good,
    /// Sense data.
    Sense(Vec<u8>),
}

/// The kernel's `struct sg_io_hdr`.
#[repr(C)]
struct Header {
    interface: i32,
    direction: i32,
    command_length: u8,
    sense_size: u8,
    pieces: u16,
    data_length: u32,
    data: *mut c_void,
    command: *const u8,
    sense: *mut u8,
    timeout_ms: u32,
    flags: u32,
    pack_id: i32,
    user: *mut c_void,
    status: u8,
    masked_status: u8,
    message_status: u8,
    sense_length: u8,
    host_status: u16,
    driver_status: u16,
    residue: i32,
    duration_ms: u32,
    info: u32,
}

const _: () = assert!(size_of::<Header>() == 88 || size_of::<usize>() != 8);

impl Sg {
    /// The disk that `device` lies on.
    pub fn open(device: &Device) -> Result<Self, Fault> {
        Ok(Self(device.open_disk()?))
    }

    /// Its size as the kernel has it now.
    pub fn size(&self) -> Option<Bytes> {
        size(&self.0).ok().map(Bytes)
    }

    /// Sends a command that fetches as many bytes as `data` has, or none.
    ///
    /// # Errors
    /// A fault if it was not answered by the disk itself.
    pub fn command(&self, command: &[u8], data: &mut [u8]) -> Result<Answer, Fault> {
        let direction = if data.is_empty() { NO_DATA } else { FROM_DEVICE };
        self.transfer(command, data, direction)
    }

    /// Sends a command with data for the disk: its settings, never its blocks.
    ///
    /// # Errors
    /// A fault if it was not answered by the disk itself.
    pub fn send(&self, command: &[u8], data: &mut [u8]) -> Result<Answer, Fault> {
        self.transfer(command, data, TO_DEVICE)
    }

    fn transfer(&self, command: &[u8], data: &mut [u8], direction: i32) -> Result<Answer, Fault> {
        let mut sense = [0u8; 64];
        let mut header = Header {
            interface: i32::from(b'S'),
            direction,
            command_length: command.len() as u8,
            sense_size: sense.len() as u8,
            pieces: 0,
            data_length: data.len() as u32,
            data: data.as_mut_ptr().cast(),
            command: command.as_ptr(),
            sense: sense.as_mut_ptr(),
            timeout_ms: TIMEOUT_MS,
            flags: 0,
            pack_id: 0,
            user: std::ptr::null_mut(),
            status: 0,
            masked_status: 0,
            message_status: 0,
            sense_length: 0,
            host_status: 0,
            driver_status: 0,
            residue: 0,
            duration_ms: 0,
            info: 0,
        };
        // SAFETY: the header is the kernel's structure, and the lengths in it are those of the buffers that it points at.
        let done = unsafe { ioctl(&self.0, Updater::<SG_IO, Header>::new(&mut header)) };
        done.map_err(|errno| refused(errno, "this SCSI command needs CAP_SYS_RAWIO"))?;
        if let Err(fault) = host_fault(header.host_status) {
            let is_gone = matches!(fault, Fault::Device(_)) && self.goes_away();
            return Err(if is_gone { Fault::gone() } else { fault });
        }
        match header.status & 0x3e {
            0 => Ok(Answer::Good),
            CHECK_CONDITION => Ok(Answer::Sense(sense[..usize::from(header.sense_length).min(sense.len())].to_vec())),
            0x18 => Err(Fault::Device("the disk is reserved by another host".into())),
            // Busy, queue full, aborted.
            _ => Err(Fault::Passing { kind: "not-ready" }),
        }
    }

    /// Whether the kernel knows it no longer, now or soon.
    fn goes_away(&self) -> bool {
        let Ok(node) = fstat(&self.0).map(|stat| stat.st_rdev) else { return false };
        let folder = Path::new("/sys/dev/block").join(format!("{}:{}", major(node), minor(node)));
        let asked = Instant::now();
        while folder.exists() {
            if asked.elapsed() > GOES {
                return false;
            }
            std::thread::sleep(GOES / 20);
        }
        true
    }
}

/// What the host adapter says of a command (the kernel's include/scsi/scsi_status.h).
fn host_fault(status: u16) -> Result<(), Fault> {
    match status {
        0 => Ok(()),
        0x01 | 0x04 | 0x0f => Err(Fault::Device(format!("the disk does not answer (host status {status:#x})"))),
        0x03 => Err(Fault::Passing { kind: "timeout" }),
        0x05 | 0x08 => Err(Fault::Passing { kind: "aborted" }),
        _ => Err(Fault::Passing { kind: "transport" }),
    }
}

/// What the kernel says before a command gets to the disk.
pub fn refused(errno: Errno, permission: &str) -> Fault {
    match errno {
        Errno::PERM | Errno::ACCESS => Fault::Refused(format!("no permission: {permission}")),
        Errno::NODEV | Errno::NXIO | Errno::NOENT => Fault::gone(),
        Errno::NOTTY | Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS => {
            Fault::Refused(format!("the kernel does not pass it on ({errno})"))
        }
        Errno::TIMEDOUT => Fault::Passing { kind: "timeout" },
        Errno::IO | Errno::REMOTEIO => Fault::Passing { kind: "transport" },
        Errno::AGAIN | Errno::BUSY | Errno::INTR | Errno::NOMEM => Fault::Passing { kind: "not-ready" },
        other => Fault::Device(other.to_string()),
    }
}

/// An ATA command in ATA PASS-THROUGH(16), with 48-bit addresses; it fetches one block of data or none (SAT-3, table 165).
pub fn ata_command(command: u8, features: u16, count: u16, lba: u64, fetch: bool) -> [u8; 16] {
    const PASS_THROUGH_16: u8 = 0x85;
    const NON_DATA: u8 = 3 << 1;
    const PIO_IN: u8 = 4 << 1;
    const EXTENDED: u8 = 1;
    /// From the device, in blocks, as many as the count says.
    const FETCH: u8 = 0b1110;
    const LBA_MODE: u8 = 0x40;
    let [_, _, l5, l4, l3, l2, l1, l0] = lba.to_be_bytes();
    let ([f1, f0], [c1, c0]) = (features.to_be_bytes(), count.to_be_bytes());
    let (protocol, transfer) = if fetch { (PIO_IN, FETCH) } else { (NON_DATA, 0) };
    [PASS_THROUGH_16, protocol | EXTENDED, transfer, f1, f0, c1, c0, l3, l0, l4, l1, l5, l2, LBA_MODE, command, 0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ata_commands_as_in_the_standard() {
        let cdb = ata_command(0x42, 0, 0x0800, 0x0605_0403_0201, false);
        assert_eq!(cdb, [0x85, 7, 0, 0, 0, 8, 0, 4, 1, 5, 2, 6, 3, 0x40, 0x42, 0]);
    }

    #[test]
    fn what_never_reached_the_disk_is_not_the_mediums_fault() {
        assert_eq!(host_fault(3), Err(Fault::Passing { kind: "timeout" }));
        assert_eq!(host_fault(0x0e), Err(Fault::Passing { kind: "transport" }));
        assert!(matches!(host_fault(1), Err(Fault::Device(_))));
        assert!(matches!(refused(Errno::PERM, "x"), Fault::Refused(why) if why == "no permission: x"));
    }
}
