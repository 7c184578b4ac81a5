//! Archives: members of every kind, whose headers carry right checksums.

use idlewise::trace::formats::FORMATS;
use tar::{Builder, EntryType, Header};

use crate::compressed::wrapped;
use crate::patch::patch;
use crate::{Result, Unstructured};

const KINDS: [EntryType; 8] = [
    EntryType::Regular,
    EntryType::Directory,
    EntryType::Symlink,
    EntryType::GNULongName,
    EntryType::XHeader,
    EntryType::XGlobalHeader,
    EntryType::GNUSparse,
    EntryType::Char,
];

/// An archive, of archives too while there is a level left.
pub fn archive(from: &mut Unstructured, levels: u8) -> Result<Vec<u8>> {
    let mut archive = Builder::new(Vec::new());
    for _ in 0..from.int_in_range(0..=4u8)? {
        let content = match from.int_in_range(0..=3u8)? {
            0 if levels > 0 => self::archive(from, levels - 1)?,
            1 => {
                let length = from.int_in_range(0..=300)?;
                from.bytes(usize::min(length, from.len()))?.to_vec()
            }
            _ => (from.choose(&FORMATS.iter().collect::<Vec<_>>())?.sample)(),
        };
        let content = if from.ratio(1u8, 8u8)? { wrapped(&content, from)? } else { content };
        let mut header = if from.arbitrary()? { Header::new_gnu() } else { Header::new_ustar() };
        let kind = KINDS[usize::from(from.int_in_range(0..=15u8)?) % KINDS.len()];
        // More often than not a file.
        header.set_entry_type(if from.arbitrary()? { kind } else { EntryType::Regular });
        // A member may say another size than it has.
        let more = if from.ratio(1u8, 16u8)? { from.arbitrary::<u32>()?.into() } else { 0u64 };
        header.set_size(content.len() as u64 + more);
        let length = from.int_in_range(0..=110)?;
        let name = from.bytes(usize::min(length, from.len()))?;
        header.as_old_mut().name.iter_mut().zip(name).for_each(|(to, from)| *to = *from);
        header.set_cksum();
        archive.append(&header, &content[..]).expect("memory takes it");
    }
    let mut archive = archive.into_inner().expect("memory takes it");
    patch(&mut archive, from)?;
    Ok(archive)
}
