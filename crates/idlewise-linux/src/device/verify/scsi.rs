//! SCSI VERIFY through SG_IO: the disk reads the medium and sends nothing (SBC-3, sections 5.32 and 5.34).

use idlewise::Bytes;
use idlewise::order::Extent;

use super::blocking::blocking;
use super::proof::prove;
use super::sense::Sense;
use super::{Addresses, Fault, Verifier};
use crate::device::Device;
use crate::device::sg::{Answer, Sg};

const VERIFY_10: u8 = 0x2f;
const VERIFY_16: u8 = 0x8f;

/// VERIFY(16); VERIFY(10) on disks that know no other.
pub fn open(device: &Device, _: Bytes) -> Result<Box<dyn Verifier>, Fault> {
    let addresses = Addresses::of(device)?;
    let disk = Sg::open(device)?;
    let first = Extent { offset: Bytes(0), length: Bytes(addresses.block) };
    let short = matches!(verify(&disk, addresses, first, cdb_16), Err(Fault::Refused(_)));
    let (name, cdb) = if short { ("scsi-verify-10", cdb_10 as Cdb) } else { ("scsi-verify-16", cdb_16 as Cdb) };
    let whole = Sg::open(device)?;
    prove(device, blocking(name, move |extent| verify(&whole, addresses.of_the_disk(), extent, cdb))?)?;
    blocking(name, move |extent| verify(&disk, addresses, extent, cdb))
}

/// Makes the command for a first block and a number of blocks; `None` if it has no room for them.
type Cdb = fn(u64, u64) -> Option<Vec<u8>>;

fn cdb_16(lba: u64, blocks: u64) -> Option<Vec<u8>> {
    let mut cdb = vec![VERIFY_16, 0];
    cdb.extend(lba.to_be_bytes());
    cdb.extend(u32::try_from(blocks).ok()?.to_be_bytes());
    cdb.extend([0, 0]);
    Some(cdb)
}

fn cdb_10(lba: u64, blocks: u64) -> Option<Vec<u8>> {
    let mut cdb = vec![VERIFY_10, 0];
    cdb.extend(u32::try_from(lba).ok()?.to_be_bytes());
    cdb.push(0);
    cdb.extend(u16::try_from(blocks).ok()?.to_be_bytes());
    cdb.push(0);
    Some(cdb)
}

fn verify(disk: &Sg, addresses: Addresses, extent: Extent, cdb: Cdb) -> Result<(), Fault> {
    let (lba, blocks) = addresses.blocks(extent);
    let cdb = cdb(lba, blocks).ok_or_else(|| Fault::Refused("more blocks than the command can say".into()))?;
    let said = match disk.command(&cdb, &mut [])? {
        Answer::Good => return Ok(()),
        Answer::Sense(data) => Sense::decode(&data, false),
    };
    let Some(sense) = said else { return Err(Fault::unreadable("io")) };
    let placed = |fault| match fault {
        Fault::Unreadable { kind, .. } => {
            Fault::Unreadable { kind, at: sense.block.and_then(|lba| addresses.within(extent, lba)) }
        }
        other => other,
    };
    sense.fault().map_err(placed).map_err(|fault| addresses.or_beyond_the_end(disk, Some(&sense), extent, fault))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_as_in_the_standard() {
        assert_eq!(cdb_16(0x01_0203_0405, 0x800).unwrap(), [0x8f, 0, 0, 0, 0, 1, 2, 3, 4, 5, 0, 0, 8, 0, 0, 0]);
        assert_eq!(cdb_10(0x0102_0304, 0x800).unwrap(), [0x2f, 0, 1, 2, 3, 4, 0, 8, 0, 0]);
        assert_eq!((cdb_10(1 << 32, 1), cdb_10(0, 1 << 16), cdb_16(0, 1 << 32)), (None, None, None));
    }
}
