//! Damage to what was well-formed.

use crate::{Result, Unstructured};

/// Changes a few bytes, inserts or cuts, as the fuzzer says: one input in two stays whole.
pub fn patch(bytes: &mut Vec<u8>, from: &mut Unstructured) -> Result<()> {
    for _ in 0..from.int_in_range(0..=7u8)?.saturating_sub(3) {
        if bytes.is_empty() {
            break;
        }
        // Footers are at the end.
        let at = usize::from(from.arbitrary::<u16>()?) % bytes.len();
        let at = if from.arbitrary()? { bytes.len() - 1 - at } else { at };
        match from.int_in_range(0..=9u8)? {
            0..=5 => bytes[at] = from.arbitrary()?,
            6 | 7 => bytes[at] ^= 1 << from.int_in_range(0..=7u8)?,
            8 => bytes.insert(at, from.arbitrary()?),
            _ => bytes.truncate(at),
        }
    }
    Ok(())
}
