//! HP SRT: a header with disks, and records whose sizes are right.

use crate::patch::patch;
use crate::{Result, Unstructured};

/// A trace, damaged if the fuzzer says so.
pub fn trace(from: &mut Unstructured) -> Result<Vec<u8>> {
    let mut file = b"$$TR_IOREC\ntracedate = \"1992\"\ndisks = {\n".to_vec();
    for _ in 0..from.int_in_range(0..=3u8)? {
        let (disk, sector): (u8, u32) = (from.arbitrary()?, from.int_in_range(0..=1 << 21)?);
        file.extend(format!("{disk} -> {{\n sectorsize = {sector}\n}}\n").into_bytes());
    }
    file.extend(b"}\n\x0c");
    while from.len() >= 20 && file.len() < 4096 {
        let words = if from.ratio(7u8, 8u8)? { 12 } else { from.int_in_range(0..=40u32)? };
        let kind = if from.ratio(7u8, 8u8)? { 1 } else { from.int_in_range(0..=8u32)? };
        let micros = from.int_in_range(0..=1_000_010u32)?;
        let record = [
            words * 4,
            from.int_in_range(0..=5u32)? << 16 | kind,
            from.arbitrary()?,
            micros,
            from.arbitrary()?,
            from.arbitrary()?,
            from.arbitrary()?,
            from.arbitrary()?,
            u32::from(from.arbitrary::<u8>()?) << 8,
            0,
            0,
            from.int_in_range(0..=1)?,
        ];
        let padded = record.into_iter().chain(std::iter::repeat(0)).take(words as usize);
        file.extend(padded.flat_map(u32::to_be_bytes));
    }
    patch(&mut file, from)?;
    Ok(file)
}
