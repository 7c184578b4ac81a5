//! What md has noted on a member of an array that is not running (include/uapi/linux/raid/md_p.h, version 1).

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::device::Device;
use crate::memory::Buffer;

const MAGIC: u32 = 0xa92b_4efc;
/// Where it may lie, from the beginning: versions 1.1 and 1.2. Of version 1.0 it is in the last 8 to 12 KiB.
const BEGINS: [u64; 2] = [0, 4096];
const LENGTH: usize = 4096;

/// Which array a device is a member of, and when it was last written to as such.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    /// The array.
    array: u128,
    /// Where the member's data begin, in sectors.
    begin: u64,
    /// How often the array has changed until then.
    events: u64,
}

impl Noted {
    /// What md has noted on a device; nothing where it is no member.
    pub fn on(device: &Device, file: &File) -> Option<Self> {
        let end = (device.size.0 / 512).checked_sub(16).map(|sector| sector / 8 * 8 * 512);
        BEGINS.into_iter().chain(end).find_map(|at| {
            let mut buffer = Buffer::new(LENGTH);
            let bytes = buffer.bytes(LENGTH);
            file.read_exact_at(bytes, at).ok()?;
            Self::parse(bytes)
        })
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let long = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        if (word(0)?, word(4)?) != (MAGIC, 1) {
            return None;
        }
        let array = u128::from_be_bytes(bytes.get(16..32)?.try_into().ok()?);
        Some(Self { array, begin: long(128)?, events: long(200)? })
    }

    /// Whether two members may hold the same, as far as md knows.
    ///
    /// # Errors
    /// Why they do not.
    pub fn may_mirror(here: Option<Self>, there: Option<Self>) -> Result<(), String> {
        let why = match (here, there) {
            (None, None) => return Ok(()),
            (Some(here), Some(there)) if here.array != there.array => "they are of different md arrays".into(),
            (Some(here), Some(there)) if here.begin != there.begin => "md keeps their data at different places".into(),
            (Some(here), Some(there)) if here.events != there.events => {
                format!("one of them left its md array before the other (event {} and {})", there.events, here.events)
            }
            (Some(_), Some(_)) => return Ok(()),
            _ => "only one of them is a member of an md array".into(),
        };
        Err(format!("{why}; start the array and repair with --md"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(array: u8, begin: u64, events: u64) -> Option<Noted> {
        let mut bytes = vec![0; LENGTH];
        bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[4] = 1;
        bytes[16] = array;
        bytes[128..136].copy_from_slice(&begin.to_le_bytes());
        bytes[200..208].copy_from_slice(&events.to_le_bytes());
        Noted::parse(&bytes)
    }

    #[test]
    fn members_mirror_each_other_only_while_both_are_in_use() {
        let a = noted(1, 2048, 10);
        assert!(a.is_some());
        assert_eq!(Noted::may_mirror(a, noted(1, 2048, 10)), Ok(()));
        assert_eq!(Noted::may_mirror(None, None), Ok(()));
        for (other, why) in [
            (noted(2, 2048, 10), "different md arrays"),
            (noted(1, 4096, 10), "different places"),
            (noted(1, 2048, 5), "event 5 and 10"),
            (None, "only one"),
        ] {
            let said = Noted::may_mirror(a, other).unwrap_err();
            assert!(said.contains(why) && said.contains("--md"), "{said}");
        }
        assert_eq!([Noted::parse(&[]), Noted::parse(&[0; LENGTH])], [None, None]);
    }
}
