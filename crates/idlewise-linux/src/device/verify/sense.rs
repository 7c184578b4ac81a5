//! What a SCSI or ATA disk says of a command that failed: sense data (SPC-4, section 4.5; SAT-3, section 12.2).

use super::Fault;

/// Sense data, decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sense {
    /// Sense key.
    pub key: u8,
    /// Additional sense code and its qualifier.
    pub code: (u8, u8),
    /// The block that it is about.
    pub block: Option<u64>,
    /// The ATA registers, where an ATA command was passed through.
    pub ata: Option<Registers>,
    /// It is about an earlier command; the one that it answers was not carried out.
    pub is_deferred: bool,
}

/// ATA output registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// Status.
    pub status: u8,
    /// Error.
    pub error: u8,
    /// Count, low byte.
    pub count: u8,
    /// LBA, 48 bits; the low 24 only where the data has no room for more.
    pub lba: u64,
    /// Whether that is all of it.
    pub whole_lba: bool,
}

const INFORMATION: u8 = 0x00;
const ATA_STATUS_RETURN: u8 = 0x09;
/// "ATA pass-through information available": the fixed format's fields hold registers then.
const ATA_INFORMATION: (u8, u8) = (0x00, 0x1d);

/// "Logical block address out of range".
const BEYOND_THE_END: (u8, u8) = (0x21, 0x00);

impl Sense {
    /// Whether it says that a block lies beyond the end of the disk.
    pub fn is_beyond_the_end(&self) -> bool {
        !self.is_deferred && self.key == 0x5 && self.code == BEYOND_THE_END
    }

    /// Decodes fixed and descriptor format; `None` for anything else, also where the key is cut off. `ata` says whether an ATA command was passed through.
    pub fn decode(data: &[u8], ata: bool) -> Option<Self> {
        let byte = |at: usize| data.get(at).copied().unwrap_or(0);
        let format = data.first()? & 0x7f;
        let is_deferred = format & 1 != 0;
        match format {
            0x70 | 0x71 => {
                let (key, code) = (data.get(2)? & 0xf, (byte(12), byte(13)));
                let mut sense = Self { key, code, is_deferred, ..Self::default() };
                if ata && sense.code == ATA_INFORMATION {
                    let lba = u64::from_le_bytes([byte(9), byte(10), byte(11), 0, 0, 0, 0, 0]);
                    // Bits 5 and 6 of byte 8: the upper bytes of count and LBA are not zero.
                    let whole_lba = byte(8) & 0x20 == 0;
                    sense.ata = Some(Registers { error: byte(3), status: byte(4), count: byte(6), lba, whole_lba });
                } else if byte(0) & 0x80 != 0 {
                    sense.block = Some(u64::from(u32::from_be_bytes([byte(3), byte(4), byte(5), byte(6)])));
                }
                Some(sense)
            }
            0x72 | 0x73 => {
                let (key, code) = (data.get(1)? & 0xf, (byte(2), byte(3)));
                let mut sense = Self { key, code, is_deferred, ..Self::default() };
                let end = (8 + usize::from(byte(7))).min(data.len());
                let mut rest = data.get(8..end).unwrap_or_default();
                while let [kind, length, ..] = *rest {
                    let descriptor = rest.get(..2 + usize::from(length)).unwrap_or(rest);
                    sense.descriptor(kind, descriptor);
                    rest = &rest[descriptor.len()..];
                }
                Some(sense)
            }
            _ => None,
        }
    }

    fn descriptor(&mut self, kind: u8, data: &[u8]) {
        match (kind, data) {
            (INFORMATION, &[_, _, valid, _, a, b, c, d, e, f, g, h, ..]) if valid & 0x80 != 0 => {
                self.block = Some(u64::from_be_bytes([a, b, c, d, e, f, g, h]));
            }
            (ATA_STATUS_RETURN, &[_, _, _, error, _, count, l3, l0, l4, l1, l5, l2, _, status, ..]) => {
                let lba = u64::from_le_bytes([l0, l1, l2, l3, l4, l5, 0, 0]);
                self.ata = Some(Registers { status, error, count, lba, whole_lba: true });
            }
            _ => {}
        }
    }

    /// Whether the key says that the command was carried out: no sense, recovered error, completed.
    pub fn is_done(&self) -> bool {
        !self.is_deferred && matches!(self.key, 0x0 | 0x1 | 0xf)
    }

    /// What it means for a verify of blocks that the disk has (SPC-4, tables 48 and 49).
    pub fn fault(&self) -> Result<(), Fault> {
        let (asc, ascq) = self.code;
        let said = || format!("sense {:x}/{asc:02x}/{ascq:02x}", self.key);
        let passing = |kind| Err(Fault::Passing { kind });
        if self.is_deferred {
            return passing("aborted");
        }
        match self.key {
            _ if self.is_done() => Ok(()),
            0x2 if asc == 0x3a => Err(Fault::Device(format!("there is no medium ({})", said()))),
            0x2 => passing("not-ready"),
            0x3 => Err(Fault::unreadable("medium")),
            0x4 => passing("hardware"),
            // Behind a translation from ATA, a sector whose header cannot be found.
            0x5 if self.code == BEYOND_THE_END => Err(Fault::unreadable("medium")),
            // What older kernels say of an ATA command that timed out.
            0x5 if self.code == (0x21, 0x04) => passing("timeout"),
            0x5 => Err(Fault::Refused(format!("the device does not take it ({})", said()))),
            0x6 if self.code == (0x2a, 0x09) => Err(Fault::Device(format!("its capacity has changed ({})", said()))),
            0x6 => passing("aborted"),
            0x7 => Err(Fault::Device(format!("the device is locked ({})", said()))),
            // Protection information does not fit the data.
            0xb if asc == 0x10 => Err(Fault::unreadable("protection")),
            0xb => passing("aborted"),
            _ => Err(Fault::unreadable("io")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_formats_name_the_block() {
        let mut fixed = [0; 18];
        (fixed[0], fixed[2], fixed[7], fixed[12], fixed[13]) = (0xf0, 3, 10, 0x11, 0x04);
        fixed[3..7].copy_from_slice(&0x1234_5678u32.to_be_bytes());
        let sense = Sense::decode(&fixed, false).unwrap();
        assert_eq!((sense.key, sense.code, sense.block), (3, (0x11, 4), Some(0x1234_5678)));
        fixed[0] = 0x70;
        assert_eq!(Sense::decode(&fixed, false).unwrap().block, None, "not valid");
        let mut descriptor = vec![0x72, 3, 0x11, 0, 0, 0, 0, 12, 0, 10, 0x80, 0];
        descriptor.extend(0x0123_4567_89ab_u64.to_be_bytes());
        assert_eq!(Sense::decode(&descriptor, false).unwrap().block, Some(0x0123_4567_89ab));
    }

    #[test]
    fn ata_registers_are_read_from_both_formats() {
        let descriptor =
            [0x72, 3, 0x11, 4, 0, 0, 0, 14, 9, 12, 1, 0x40, 0, 8, 0x44, 0x11, 0x55, 0x22, 0x66, 0x33, 0xe0, 0x51];
        let registers = Sense::decode(&descriptor, true).unwrap().ata.unwrap();
        let all = Registers { status: 0x51, error: 0x40, count: 8, lba: 0x6655_4433_2211, whole_lba: true };
        assert_eq!(registers, all);
        let fixed = [0x70, 0, 1, 0x40, 0x51, 0xe0, 8, 10, 0, 0x11, 0x22, 0x33, 0, 0x1d, 0, 0, 0, 0];
        let registers = Sense::decode(&fixed, true).unwrap().ata.unwrap();
        assert_eq!((registers.error, registers.status, registers.lba), (0x40, 0x51, 0x33_2211));
    }

    #[test]
    fn what_each_key_means() {
        let fault = |key, asc, ascq| Sense { key, code: (asc, ascq), ..Sense::default() }.fault();
        assert_eq!([fault(0, 0, 0), fault(1, 0x17, 1)], [Ok(()), Ok(())]);
        assert_eq!(fault(3, 0x11, 0), Err(Fault::unreadable("medium")));
        assert_eq!(fault(0xb, 0x10, 1), Err(Fault::unreadable("protection")));
        assert_eq!(fault(6, 0x29, 0), Err(Fault::Passing { kind: "aborted" }));
        assert_eq!(fault(2, 4, 1), Err(Fault::Passing { kind: "not-ready" }));
        assert!(matches!(fault(5, 0x20, 0), Err(Fault::Refused(_))));
        assert_eq!(fault(5, 0x21, 0), Err(Fault::unreadable("medium")));
        assert_eq!(fault(5, 0x21, 4), Err(Fault::Passing { kind: "timeout" }));
        assert!(matches!(fault(2, 0x3a, 0), Err(Fault::Device(_))));
    }

    /// The command that is answered with the error of an earlier one was not carried out, and what is cut off tells nothing.
    #[test]
    fn what_is_of_another_command_or_cut_off_is_no_success() {
        for data in [&[0x71, 0, 0, 0, 0, 0, 0, 10][..], &[0x71, 0, 1, 0, 0, 0, 0, 10], &[0x73, 1, 0x17, 1]] {
            let sense = Sense::decode(data, false).unwrap();
            assert_eq!((sense.is_done(), sense.fault()), (false, Err(Fault::Passing { kind: "aborted" })), "{data:x?}");
        }
        assert_eq!([&[0x72][..], &[0x70, 0], &[]].map(|data| Sense::decode(data, true)), [None; 3]);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_stumble(data in prop::collection::vec(any::<u8>(), 0..64), ata: bool) {
            if let Some(sense) = Sense::decode(&data, ata) {
                let _ = sense.fault();
            }
        }
    }
}
