//! The checksums of btrfs (its on-disk format, `btrfs_super_block`, `csum_type`).

/// How checksums are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    Crc32c,
    Xxhash64,
    Sha256,
    Blake2b,
}

/// Room for any of them.
pub const LONGEST: usize = 32;

impl Algorithm {
    /// By its number in the superblock.
    pub fn of(number: u16) -> Option<Self> {
        [Self::Crc32c, Self::Xxhash64, Self::Sha256, Self::Blake2b].get(usize::from(number)).copied()
    }

    /// Length of one, in bytes.
    pub fn length(self) -> usize {
        match self {
            Self::Crc32c => 4,
            Self::Xxhash64 => 8,
            Self::Sha256 | Self::Blake2b => 32,
        }
    }

    /// Whether it takes the processor a small part of the time that it takes to read the data.
    pub fn is_quick(self) -> bool {
        matches!(self, Self::Crc32c | Self::Xxhash64)
    }

    /// That of some bytes, as it is stored, with zeros behind.
    pub fn sum(self, data: &[u8]) -> [u8; LONGEST] {
        let mut sum = [0; LONGEST];
        match self {
            Self::Crc32c => sum[..4].copy_from_slice(&crc32c::crc32c(data).to_le_bytes()),
            Self::Xxhash64 => sum[..8].copy_from_slice(&xxhash_rust::xxh64::xxh64(data, 0).to_le_bytes()),
            Self::Sha256 => sum.copy_from_slice(&<sha2::Sha256 as sha2::Digest>::digest(data)),
            Self::Blake2b => {
                let hash = blake2b_simd::Params::new().hash_length(LONGEST).hash(data);
                sum.copy_from_slice(hash.as_bytes());
            }
        }
        sum
    }

    /// Whether some bytes have this checksum.
    pub fn fits(self, data: &[u8], sum: &[u8]) -> bool {
        sum.get(..self.length()) == Some(&self.sum(data)[..self.length()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published values: RFC 3720 (B.4), xxHash's own for "abc", FIPS 180-2 (B.1), and b2sum -l 256 of "abc".
    #[test]
    fn sums_are_those_of_their_definitions() {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let sum = |algorithm: Algorithm, data: &[u8]| hex(&algorithm.sum(data)[..algorithm.length()]);
        assert_eq!(sum(Algorithm::Crc32c, &[0; 32]), "aa36918a");
        assert_eq!(sum(Algorithm::Crc32c, &[0xff; 32]), "43aba862");
        assert_eq!(sum(Algorithm::Xxhash64, b"abc"), hex(&0x44bc_2cf5_ad77_0999_u64.to_le_bytes()));
        assert_eq!(sum(Algorithm::Sha256, b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(sum(Algorithm::Blake2b, b"abc"), "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
        assert!(Algorithm::Crc32c.fits(&[0; 32], &[0xaa, 0x36, 0x91, 0x8a]) && !Algorithm::Crc32c.fits(&[0; 32], &[]));
        assert_eq!([Algorithm::of(3), Algorithm::of(4)], [Some(Algorithm::Blake2b), None]);
    }
}
