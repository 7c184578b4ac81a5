//! The superblock of a btrfs: whose device it is, and how its checksums are made.

use super::algorithm::Algorithm;

/// Its length.
pub const LENGTH: usize = 4096;
/// Where on a device its copies lie.
pub const COPIES: [u64; 3] = [64 << 10, 64 << 20, 256 << 30];

/// Features that change nothing of what is looked for here: those up to RAID 1c3 and 1c4, and simple quotas. With zones the superblocks lie
/// elsewhere, and what is newer may keep places or checksums in another way.
const KNOWN_FEATURES: u64 = 0xfff | 1 << 16;

/// What is needed of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Unique name of the file system.
    pub id: [u8; 16],
    /// The same as its tree blocks say it.
    pub metadata_id: [u8; 16],
    /// Number of the device in it.
    pub device: u64,
    /// The unique name of the device.
    pub device_id: [u8; 16],
    /// How much of the device it uses, so far as this copy knows: copies lie within that.
    pub length: u64,
    /// Of the last transaction that is on the disk as a whole.
    pub generation: u64,
    /// Length of what a checksum of data is of.
    pub sector: u64,
    /// Length of a tree block.
    pub node: u64,
    pub algorithm: Algorithm,
}

/// A little-endian number of eight bytes.
pub fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
}

fn half(bytes: &[u8], at: usize) -> u64 {
    word(bytes, at) & 0xffff_ffff
}

fn id(bytes: &[u8], at: usize) -> [u8; 16] {
    bytes[at..at + 16].try_into().expect("sixteen bytes")
}

impl Superblock {
    /// That at this place of a device; `Ok(None)` where there is none.
    ///
    /// # Errors
    /// Why it is none that is known here, or damaged.
    pub fn parse(bytes: &[u8], place: u64) -> Result<Option<Self>, String> {
        const MAGIC: &[u8] = b"_BHRfS_M";
        /// Tree blocks name the file system by another name.
        const METADATA_ID: u64 = 1 << 10;
        if bytes.len() != LENGTH || &bytes[64..72] != MAGIC {
            return Ok(None);
        }
        let number = (word(bytes, 196) & 0xffff) as u16;
        let algorithm =
            Algorithm::of(number).ok_or_else(|| format!("checksums of kind {number} are not known here"))?;
        if !algorithm.fits(&bytes[32..], bytes) || word(bytes, 48) != place {
            return Err("its superblock is damaged".into());
        }
        let features = word(bytes, 188);
        if features & !KNOWN_FEATURES != 0 {
            return Err(format!("it has features that are not known here ({features:#x})"));
        }
        let (sector, node) = (half(bytes, 144), half(bytes, 148));
        let possible = |length: u64| length.is_power_of_two() && (512..=1 << 16).contains(&length);
        if !possible(sector) || !possible(node) {
            return Err(format!("sectors of {sector} and tree blocks of {node} bytes are not possible"));
        }
        let own = id(bytes, 32);
        let metadata_id = if features & METADATA_ID == 0 { own } else { id(bytes, 571) };
        Ok(Some(Self {
            id: own,
            metadata_id,
            device: word(bytes, 201),
            device_id: id(bytes, 267),
            length: word(bytes, 209),
            generation: word(bytes, 72),
            sector,
            node,
            algorithm,
        }))
    }

    /// Whether `btrfs replace` is still copying to the device: no chunk is said to lie on it until that is over.
    pub fn replaces(&self) -> bool {
        self.device == 0
    }

    /// The same with the number of the device in it.
    pub fn name_of_device(&self) -> String {
        format!("{} {}", self.name(), self.device)
    }

    /// The file system's unique name as text.
    pub fn name(&self) -> String {
        let hex: String = self.id.iter().map(|byte| format!("{byte:02x}")).collect();
        [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &hex[part]).join("-")
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// One that is well-formed.
    pub fn valid(place: u64) -> Vec<u8> {
        let mut bytes = vec![0; LENGTH];
        bytes[32..48].copy_from_slice(&[7; 16]);
        bytes[48..56].copy_from_slice(&place.to_le_bytes());
        bytes[64..72].copy_from_slice(b"_BHRfS_M");
        bytes[72..80].copy_from_slice(&99u64.to_le_bytes());
        bytes[144..148].copy_from_slice(&4096u32.to_le_bytes());
        bytes[148..152].copy_from_slice(&16384u32.to_le_bytes());
        bytes[201..209].copy_from_slice(&2u64.to_le_bytes());
        bytes[209..217].copy_from_slice(&(1u64 << 30).to_le_bytes());
        sign(&mut bytes);
        bytes
    }

    fn sign(bytes: &mut [u8]) {
        let sum = Algorithm::Crc32c.sum(&bytes[32..]);
        bytes[..32].copy_from_slice(&sum);
    }

    #[test]
    fn it_says_whose_device_it_is() {
        let found = Superblock::parse(&valid(COPIES[0]), COPIES[0]).unwrap().unwrap();
        assert_eq!((found.device, found.generation, found.sector, found.node), (2, 99, 4096, 16384));
        assert_eq!(found.name(), "07070707-0707-0707-0707-070707070707");
        assert_eq!(Superblock::parse(&[0; LENGTH], COPIES[0]), Ok(None));
        assert_eq!(Superblock::parse(&[], COPIES[0]), Ok(None));
    }

    #[test]
    fn what_is_damaged_or_unknown_is_refused() {
        let error = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = valid(COPIES[0]);
            change(&mut bytes);
            Superblock::parse(&bytes, COPIES[0]).unwrap_err()
        };
        assert!(error(&|bytes| bytes[300] ^= 1).contains("damaged"));
        assert!(error(&|bytes| bytes[196] = 9).contains("kind 9"));
        let signed = |change: &'static dyn Fn(&mut Vec<u8>)| {
            error(&move |bytes: &mut Vec<u8>| {
                change(bytes);
                sign(bytes);
            })
        };
        assert!(signed(&|bytes| bytes[48] = 1).contains("damaged"));
        assert!(signed(&|bytes| bytes[189] = 1 << 5).contains("features"));
        assert!(signed(&|bytes| bytes[144] = 3).contains("not possible"));
    }
}
