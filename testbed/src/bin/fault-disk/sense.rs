//! Sense data: why a command failed, in the two formats that SCSI knows (SPC-4, 4.5).

/// Sense key, additional sense code and its qualifier.
#[derive(Clone, Copy)]
pub struct Code(pub u8, pub u8, pub u8);

pub const RECOVERED_ATA_INFORMATION: Code = Code(0x1, 0x00, 0x1d);
pub const LOW_POWER: Code = Code(0x0, 0x5e, 0x00);
pub const NOT_READY: Code = Code(0x2, 0x04, 0x03);
pub const READ_ERROR: Code = Code(0x3, 0x11, 0x00);
/// What libata makes of an uncorrectable error.
pub const READ_ERROR_ATA: Code = Code(0x3, 0x11, 0x04);
pub const UNKNOWN_COMMAND: Code = Code(0x5, 0x20, 0x00);
pub const LBA_OUT_OF_RANGE: Code = Code(0x5, 0x21, 0x00);
pub const ABORTED: Code = Code(0xb, 0x44, 0x00);
pub const INVALID_FIELD: Code = Code(0x5, 0x24, 0x00);

/// Fixed format; `information` is the failing block.
pub fn fixed(code: Code, information: Option<u64>) -> Vec<u8> {
    let mut sense = vec![0; 18];
    sense[0] = 0x70;
    // The field has 32 bits; it is not valid for a block beyond.
    if let Some(block) = information.and_then(|block| u32::try_from(block).ok()) {
        sense[0] |= 0x80;
        sense[3..7].copy_from_slice(&block.to_be_bytes());
    }
    sense[2] = code.0;
    sense[7] = 10;
    sense[12] = code.1;
    sense[13] = code.2;
    sense
}

/// Descriptor format, with whatever descriptors.
pub fn with_descriptors(code: Code, descriptors: &[u8]) -> Vec<u8> {
    let mut sense = vec![0x72, code.0, code.1, code.2, 0, 0, 0, descriptors.len() as u8];
    sense.extend_from_slice(descriptors);
    sense
}

/// Descriptor format, with an Information descriptor for the failing block.
pub fn descriptor(code: Code, information: Option<u64>) -> Vec<u8> {
    let mut list = Vec::new();
    if let Some(block) = information {
        list.extend_from_slice(&[0x00, 0x0a, 0x80, 0x00]);
        list.extend_from_slice(&block.to_be_bytes());
    }
    with_descriptors(code, &list)
}
