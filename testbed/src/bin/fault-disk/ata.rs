//! What a SATA disk adds to a SCSI one: ATA commands wrapped in SCSI ones (SAT-4), and IDENTIFY.

use crate::sense::{self, Code};

pub const READ_VERIFY_EXT: u8 = 0x42;
pub const IDENTIFY: u8 = 0xec;
pub const SMART: u8 = 0xb0;
pub const SMART_READ_DATA: u8 = 0xd0;
pub const CHECK_POWER_MODE: u8 = 0xe5;
pub const STANDBY: u64 = 0x00;
pub const ACTIVE: u64 = 0xff;
pub const SET_FEATURES: u8 = 0xef;
pub const ENABLE_LOOK_AHEAD: u8 = 0xaa;
pub const STATUS_GOOD: u8 = 0x50;
pub const STATUS_ERROR: u8 = 0x51;
pub const ERROR_UNCORRECTABLE: u8 = 0x40;
pub const ERROR_ABORT: u8 = 0x04;

pub const NON_DATA: u8 = 3;
pub const PIO_IN: u8 = 4;

/// The ATA registers inside an ATA PASS-THROUGH(16) command.
#[derive(Clone, Copy)]
pub struct PassThrough {
    pub protocol: u8,
    extended: bool,
    /// The caller wants the registers back even if all went well.
    pub check_condition: bool,
    pub features: u8,
    pub lba: u64,
    pub count: u64,
    device: u8,
    pub command: u8,
}

impl PassThrough {
    pub fn parse(cdb: &[u8; 16]) -> PassThrough {
        let extended = cdb[1] & 1 != 0;
        let low = u64::from_be_bytes([0, 0, 0, 0, 0, cdb[12], cdb[10], cdb[8]]);
        let high = u64::from_be_bytes([0, 0, cdb[11], cdb[9], cdb[7], 0, 0, 0]);
        let count = u64::from(u16::from_be_bytes([if extended { cdb[5] } else { 0 }, cdb[6]]));
        PassThrough {
            protocol: cdb[1] >> 1 & 0xf,
            extended,
            check_condition: cdb[2] & 0x20 != 0,
            features: cdb[4],
            lba: if extended { low | high } else { low },
            // Zero stands for the most that the field could almost hold.
            count: if count > 0 {
                count
            } else if extended {
                65536
            } else {
                256
            },
            device: cdb[13],
            command: cdb[14],
        }
    }

    /// Sense data with the ATA Status Return descriptor.
    pub fn sense(&self, code: Code, status: u8, error: u8, lba: u64) -> Vec<u8> {
        let [_, _, l5, l4, l3, l2, l1, l0] = lba.to_be_bytes();
        let extended = u8::from(self.extended);
        let [c1, c0] = (self.count as u16).to_be_bytes();
        sense::with_descriptors(
            code,
            &[0x09, 0x0c, extended, error, c1, c0, l3, l0, l4, l1, l5, l2, self.device, status],
        )
    }
}

/// The 512 bytes of IDENTIFY DEVICE.
pub fn identify(model: &str, revision: &str, serial: &str, blocks: u64, wwn: u64, look_ahead: bool) -> Vec<u8> {
    let mut words = [0u16; 256];
    text(&mut words[10..20], serial);
    text(&mut words[23..27], revision);
    text(&mut words[27..47], model);
    let short = blocks.min(0x0fff_ffff);
    words[0] = 0x0040;
    words[49] = 0x0300; // LBA and DMA
    words[53] = 0x0006;
    words[60] = short as u16;
    words[61] = (short >> 16) as u16;
    words[76] = 0x0006; // SATA generations 1 and 2
    words[80] = 0x01f0; // ATA8-ACS
    words[82] = 0x0041; // SMART, look-ahead
    words[83] = 0x6400; // 48-bit addresses, flush
    words[84] = 0x4100; // world wide name
    words[85] = if look_ahead { 0x0041 } else { 0x0001 };
    words[86] = 0x2400;
    words[87] = 0x4100;
    for n in 0..4 {
        words[100 + n] = (blocks >> (16 * n)) as u16;
        words[108 + n] = (wwn >> (48 - 16 * n)) as u16;
    }
    words[106] = 0x4000; // 512-byte sectors, physically too
    words[217] = 7200; // rotations per minute
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes[510] = 0xa5;
    bytes[511] = bytes.iter().fold(0u8, |sum, byte| sum.wrapping_sub(*byte));
    bytes
}

/// ATA text: padded with blanks, the bytes of each word swapped.
fn text(words: &mut [u16], text: &str) {
    let padded = format!("{text:width$}", width = words.len() * 2);
    for (word, pair) in words.iter_mut().zip(padded.as_bytes().chunks(2)) {
        *word = u16::from_be_bytes([pair[0], pair[1]]);
    }
}
