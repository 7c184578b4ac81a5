//! Repair of unreadable blocks, by rewriting them with what redundancy still holds. The only part, but for replay, that changes
//! data on a device; it does so only when told to, on devices that nobody uses, through md's own machinery, or on members of an array to which writes wait.

mod alike;
mod log;
mod md;
mod mirror;
mod owner;
mod superblock;

pub use log::RepairLog;
pub(crate) use md::Suspension;
pub use md::{Foreseen, check_array, foreseen, through_array, through_members};
pub use mirror::{check_mirror, from_mirror};
pub use owner::by_owner;

use idlewise::Bytes;
use serde::Serialize;

use crate::device::DeviceError;
use crate::scrub::BadBlocks;

/// What became of a run of unreadable blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// First block.
    pub lba: u64,
    /// How many.
    pub blocks: u64,
    /// What was done.
    pub result: Fate,
}

/// What became of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// Rewritten, and it reads as it should now.
    Repaired,
    /// It could be read again, and nothing that is known of it differs; it was left alone.
    Readable,
    /// Something else than the medium was in the way; nothing was written.
    LeftAlone,
    /// The redundancy cannot be read there either; nothing was written.
    SourceUnreadable,
    /// Nobody knows what should be there; nothing was written.
    Undecided,
    /// Only the parities of RAID 6 tell what should be there; nothing was written.
    ByParities,
    /// It was written, and cannot be read all the same, or not as written.
    StillBad,
}

/// A repair cannot be done.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// A device cannot be used.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// It would change more than allowed.
    #[error("{found} blocks would be rewritten, more than the {most} that may be: `--max-blocks {found}` allows it")]
    TooMany {
        /// Blocks that would be rewritten.
        found: u64,
        /// The cap.
        most: u64,
    },
    /// The mirror cannot be one.
    #[error("{mirror} is not taken for a mirror of {device}: {why}")]
    NoMirror {
        /// The device.
        device: String,
        /// The mirror.
        mirror: String,
        /// Why not.
        why: String,
    },
    /// md does not take part.
    #[error("{array}: {problem}")]
    Array {
        /// The array.
        array: String,
        /// What is in the way.
        problem: String,
    },
    /// What is written must be logged.
    #[error("{path}: {error}; without a log nothing is written")]
    Log {
        /// The log.
        path: String,
        /// What the system said.
        error: std::io::Error,
    },
}

/// Refuses to rewrite more than `most` blocks.
///
/// # Errors
/// [`RepairError::TooMany`].
pub fn check_cap(bad: &[BadBlocks], most: u64) -> Result<(), RepairError> {
    let found = bad.iter().map(|run| run.blocks).sum();
    if found > most { Err(RepairError::TooMany { found, most }) } else { Ok(()) }
}

/// What is left of unreadable blocks after a repair.
pub fn left(bad: &[BadBlocks], outcomes: &[Outcome]) -> Vec<BadBlocks> {
    let good = outcomes.iter().filter(|one| matches!(one.result, Fate::Repaired | Fate::Readable));
    let mut good: Vec<_> = good.map(|one| (one.lba, one.lba.saturating_add(one.blocks))).collect();
    good.sort_unstable();
    let mut left: Vec<BadBlocks> = Vec::new();
    let mut keep = |begin: u64, end: u64, kind: &str| match left.last_mut() {
        _ if begin >= end => {}
        Some(last) if last.end() == begin && last.kind == kind => last.blocks += end - begin,
        _ => left.push(BadBlocks { lba: begin, blocks: end - begin, kind: kind.into() }),
    };
    // By stretches: a run may be as long as the device.
    for run in bad {
        let mut from = run.lba;
        for &(begin, end) in good.iter().filter(|(begin, end)| *end > run.lba && *begin < run.end()) {
            keep(from, begin.min(run.end()), &run.kind);
            from = from.max(end);
        }
        keep(from, run.end(), &run.kind);
    }
    left
}

/// Those whose medium was at fault. What was in the way of the others may be gone, and is no reason to write; and of scattered ones it
/// is not known which they are.
pub fn of_the_medium(bad: Vec<BadBlocks>) -> Vec<BadBlocks> {
    const ITS_OWN: [&str; 3] = ["medium", "protection", "io"];
    bad.into_iter().filter(|run| ITS_OWN.contains(&run.kind.as_str())).collect()
}

/// Those that their owner may rewrite: what holds something else than it should, and what the medium has lost.
pub fn of_the_owner(bad: Vec<BadBlocks>) -> Vec<BadBlocks> {
    let (wrong, others): (Vec<_>, Vec<_>) = bad.into_iter().partition(BadBlocks::is_wrong);
    let mut all = [wrong, of_the_medium(others)].concat();
    all.sort_by_key(|run| run.lba);
    all
}

/// The same runs in pieces that fit into memory: one may be as long as the device.
fn in_pieces(bad: &[BadBlocks]) -> impl Iterator<Item = BadBlocks> {
    const PIECE: u64 = 1 << 11;
    bad.iter().flat_map(|run| {
        let piece = |lba| BadBlocks { lba, blocks: PIECE.min(run.end() - lba), kind: run.kind.clone() };
        (run.lba..run.end()).step_by(PIECE as usize).map(piece)
    })
}

/// Puts a block's fate behind those before it, as one run where they agree.
fn note(outcomes: &mut Vec<Outcome>, lba: u64, result: Fate) {
    match outcomes.last_mut() {
        Some(last) if last.lba + last.blocks == lba && last.result == result => last.blocks += 1,
        _ => outcomes.push(Outcome { lba, blocks: 1, result }),
    }
}

/// Each unreadable block and the byte at which it begins.
fn each(bad: &[BadBlocks], block: u32) -> impl Iterator<Item = (u64, Bytes)> {
    let lbas = bad.iter().flat_map(|run| run.lba..run.lba + run.blocks);
    lbas.map(move |lba| (lba, Bytes(lba * u64::from(block))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(lba: u64, blocks: u64) -> BadBlocks {
        BadBlocks { lba, blocks, kind: "medium".into() }
    }

    #[test]
    fn what_was_repaired_is_no_longer_bad() {
        let mut outcomes = Vec::new();
        for (lba, fate) in [(3, Fate::Repaired), (4, Fate::Repaired), (5, Fate::StillBad), (9, Fate::Readable)] {
            note(&mut outcomes, lba, fate);
        }
        assert_eq!(outcomes.len(), 3);
        assert_eq!(left(&[run(3, 4), run(9, 1)], &outcomes), [run(5, 2)]);
        // As long as a device of 8 EiB, which is not gone through block by block.
        let long = 1 << 54;
        let expected = [run(0, 3), run(5, 4), run(10, long - 10)];
        assert_eq!(left(&[run(0, long)], &outcomes), expected);
    }

    #[test]
    fn a_cable_is_no_reason_to_write() {
        let of = |kind: &str| BadBlocks { kind: kind.into(), ..run(7, 1) };
        let others = ["transport", "hardware", BadBlocks::DOUBTFUL, BadBlocks::SCATTERED, "of a later version"].map(of);
        assert_eq!(of_the_medium([vec![run(3, 1)], others.to_vec()].concat()), [run(3, 1)]);
    }

    #[test]
    fn the_cap_counts_blocks() {
        assert!(check_cap(&[run(0, 2), run(9, 2)], 4).is_ok());
        let error = check_cap(&[run(0, 2), run(9, 3)], 4).unwrap_err().to_string();
        assert!(error.starts_with("5 blocks would be rewritten, more than the 4"), "{error}");
    }
}
