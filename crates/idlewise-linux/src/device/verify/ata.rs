//! ATA READ VERIFY SECTOR(S) EXT through ATA PASS-THROUGH(16) (ACS-3, section 7.27; SAT-3, section 12.2.2).

use idlewise::Bytes;
use idlewise::order::Extent;

use super::blocking::blocking;
use super::proof::prove;
use super::sense::{Registers, Sense};
use super::{Addresses, Fault, Verifier};
use crate::device::Device;
use crate::device::sg::{Answer, Sg, ata_command};

const READ_VERIFY_EXT: u8 = 0x42;
/// Bits of the status register.
const DEVICE_FAULT: u8 = 0x20;
/// Bits of the error register.
const INTERFACE_CRC: u8 = 0x80;
const UNCORRECTABLE: u8 = 0x40;
const ID_NOT_FOUND: u8 = 0x10;
const ABORTED: u8 = 0x04;
const NAME: &str = "ata-read-verify-ext";
const ABORTED_COMMAND: &str = "the disk aborted the command";

/// READ VERIFY EXT, where the kernel says that the disk is an ATA one.
pub fn open(device: &Device, _: Bytes) -> Result<Box<dyn Verifier>, Fault> {
    let addresses = Addresses::of(device)?;
    if device.vendor().as_deref() != Some("ATA") {
        return Err(Fault::Refused("it is no ATA disk".into()));
    }
    let (disk, whole) = (Sg::open(device)?, Sg::open(device)?);
    prove(device, blocking(NAME, move |extent| verify(&whole, addresses.of_the_disk(), extent))?)?;
    // What it has done once it knows, and aborts for another reason.
    let mut known = false;
    blocking(NAME, move |extent| match verify(&disk, addresses, extent) {
        Err(Fault::Refused(why)) if known && why == ABORTED_COMMAND => Err(Fault::Passing { kind: "aborted" }),
        done => {
            known |= done.is_ok();
            done
        }
    })
}

fn verify(disk: &Sg, addresses: Addresses, extent: Extent) -> Result<(), Fault> {
    let (lba, blocks) = addresses.blocks(extent);
    if blocks > u64::from(u16::MAX) || lba >= 1 << 48 {
        return Err(Fault::Refused("more blocks than the command can say".into()));
    }
    let said = match disk.command(&ata_command(READ_VERIFY_EXT, 0, blocks as u16, lba, false), &mut [])? {
        Answer::Good => return Ok(()),
        Answer::Sense(data) => Sense::decode(&data, true),
    };
    match said {
        None => Err(Fault::unreadable("io")),
        Some(sense) => sense_fault(&sense, |lba| addresses.within(extent, lba)),
    }
    .map_err(|fault| addresses.or_beyond_the_end(disk, said.as_ref(), extent, fault))
}

/// What sense data mean, by the registers where they have some.
fn sense_fault(sense: &Sense, within: impl Fn(u64) -> Option<Bytes>) -> Result<(), Fault> {
    match sense.ata {
        // Those of a command that timed out show no error.
        Some(registers) if sense.is_done() || registers.status & (DEVICE_FAULT | 1) != 0 => fault(registers, within),
        // The command did not get as far as the disk, or did not come back.
        _ => sense.fault(),
    }
}

/// What the registers mean (ACS-3, section 6.3).
fn fault(registers: Registers, within: impl Fn(u64) -> Option<Bytes>) -> Result<(), Fault> {
    let Registers { status, error, lba, whole_lba, .. } = registers;
    let at = || within(lba).filter(|_| whole_lba);
    match () {
        () if status & (DEVICE_FAULT | 1) == 0 => Ok(()),
        () if error & (UNCORRECTABLE | ID_NOT_FOUND) != 0 => Err(Fault::Unreadable { kind: "medium", at: at() }),
        () if error & INTERFACE_CRC != 0 => Err(Fault::Passing { kind: "transport" }),
        () if status & DEVICE_FAULT != 0 => Err(Fault::Passing { kind: "hardware" }),
        () if error & ABORTED != 0 => Err(Fault::Refused(ABORTED_COMMAND.into())),
        () => Err(Fault::unreadable("io")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_tell_the_medium_from_the_rest() {
        let registers = |status, error| Registers { status, error, count: 0, lba: 9, whole_lba: true };
        let told = |status, error| fault(registers(status, error), |lba| Some(Bytes(lba)));
        assert_eq!(told(0x50, 0), Ok(()));
        assert_eq!(told(0x51, 0x40), Err(Fault::Unreadable { kind: "medium", at: Some(Bytes(9)) }));
        assert_eq!(told(0x51, 0x84), Err(Fault::Passing { kind: "transport" }));
        assert_eq!(told(0x71, 0), Err(Fault::Passing { kind: "hardware" }));
        assert!(matches!(told(0x51, 0x04), Err(Fault::Refused(_))));
        // Where a command timed out, they are as of before it.
        let of = |key| Sense { key, ata: Some(registers(0x40, 0)), ..Sense::default() };
        let told = |key| sense_fault(&of(key), |lba| Some(Bytes(lba)));
        assert_eq!([told(0), told(1), told(0xb)], [Ok(()), Ok(()), Err(Fault::Passing { kind: "aborted" })]);
        let cut = fault(Registers { whole_lba: false, ..registers(0x51, 0x40) }, |lba| Some(Bytes(lba)));
        assert_eq!(cut, Err(Fault::unreadable("medium")));
    }
}
