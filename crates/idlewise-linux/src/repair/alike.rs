//! Whether two devices hold the same data around unreadable blocks. That both hold zeros there says nothing: so it is looked further
//! away until there are blocks that tell one disk from another.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use crate::scrub::BadBlocks;

/// Blocks on either side of unreadable ones that must be the same on both, as far as they can be read; and as many in each place
/// further away.
const NEIGHBOURS: u64 = 64;
/// So many blocks of different contents must be the same.
const ENOUGH: usize = 8;

/// What a block holds on both devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// One byte again and again, as any disk may.
    Blank,
    /// Something, of this hash.
    Data(u64),
}

impl Content {
    pub(super) fn of(block: &[u8]) -> Self {
        if block.iter().all(|byte| *byte == block[0]) {
            return Self::Blank;
        }
        let mut hash = DefaultHasher::new();
        block.hash(&mut hash);
        Self::Data(hash.finish())
    }
}

/// Whether the neighbours of a run are the same on two devices of so many blocks, and are enough to tell. `compare` says what a
/// block holds on both; `None` inside where they differ, outside where one of them cannot be read.
///
/// # Errors
/// Why they cannot be taken for mirrors.
pub(super) fn alike(
    run: &BadBlocks,
    blocks: u64,
    compare: &mut dyn FnMut(u64) -> Option<Option<Content>>,
) -> Result<(), String> {
    let (mut seen, mut compared) = (BTreeSet::new(), 0);
    for place in places(run, blocks) {
        let near = place.end + NEIGHBOURS > run.lba && place.start < run.end().saturating_add(NEIGHBOURS);
        if !near && seen.len() >= ENOUGH {
            break;
        }
        for lba in place {
            match compare(lba) {
                Some(None) => return Err(format!("they differ at block {lba}")),
                Some(Some(content)) => {
                    compared += 1;
                    if let Content::Data(hash) = content {
                        seen.insert(hash);
                    }
                }
                // Each block that cannot be read may take seconds.
                None if near => {}
                None => break,
            }
        }
    }
    match (seen.len(), compared) {
        (ENOUGH.., _) => Ok(()),
        (_, 0) => Err("no block near the unreadable ones could be compared".into()),
        (few, _) => Err(format!(
            "it cannot be told whether they mirror each other: near block {} and further away both are almost empty ({few} blocks could \
             be compared, {ENOUGH} are needed); if they do, copy the block by hand",
            run.lba
        )),
    }
}

/// Where to compare: before and behind the run, then twice as far away each time, then ever nearer to the beginning of the device, where
/// data lie if anywhere. None of these holds a block of the run.
fn places(run: &BadBlocks, blocks: u64) -> Vec<Range<u64>> {
    let (begin, end) = (run.lba.min(blocks), run.end().min(blocks));
    let before = |from: u64| from..(from + NEIGHBOURS).min(begin);
    let behind = |from: u64| from..from.saturating_add(NEIGHBOURS).min(blocks);
    let mut places = vec![before(begin.saturating_sub(NEIGHBOURS)), behind(end)];
    let distances = (0..u64::BITS).map_while(|power| NEIGHBOURS.checked_mul(1u64.checked_shl(power)?));
    for distance in distances.take_while(|distance| *distance < blocks) {
        places.extend(begin.checked_sub(2 * distance).map(before));
        places.extend(end.checked_add(distance).map(behind));
    }
    places.extend((1..u64::BITS).map(|power| begin >> power).take_while(|from| *from > 0).map(before));
    places.push(before(0));
    places.retain(|place| !place.is_empty());
    places
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BLOCKS: u64 = 1 << 24;

    fn run(lba: u64, blocks: u64) -> BadBlocks {
        BadBlocks { lba, blocks, kind: "io".into() }
    }

    /// Devices that hold data in these blocks, each its own, and differ in those.
    fn told(run: &BadBlocks, data: Range<u64>, differ: Range<u64>) -> (Result<(), String>, u64) {
        let mut looks = 0;
        let result = alike(run, BLOCKS, &mut |lba| {
            looks += 1;
            assert!(lba < BLOCKS && !(run.lba..run.end()).contains(&lba), "{lba}");
            Some(
                (!differ.contains(&lba)).then(|| if data.contains(&lba) { Content::Data(lba) } else { Content::Blank }),
            )
        });
        (result, looks)
    }

    #[test]
    fn blank_neighbours_are_no_evidence() {
        let bad = run(9_000_000, 3);
        let (result, looks) = told(&bad, 0..0, 0..0);
        let why = result.unwrap_err();
        assert!(
            why.contains("almost empty (0 blocks could be compared, 8 are needed)") && !why.contains('\n'),
            "{why}"
        );
        assert!(looks < 6_000, "{looks}");
        // Near, further away, or only at the beginning, as of a disk that is nearly empty.
        for data in [8_999_990..9_000_000, 9_000_003..9_000_020, 9_100_000..9_400_000, 1_000..4_000] {
            assert_eq!(told(&bad, data.clone(), 0..0).0, Ok(()), "{data:?}");
        }
        assert!(told(&bad, 9_000_003..9_000_009, 0..0).0.unwrap_err().contains("(6 blocks could be compared, 8"));
        // One pattern all over is no evidence either.
        let pattern = alike(&bad, BLOCKS, &mut |_| Some(Some(Content::Data(7))));
        assert!(pattern.unwrap_err().contains("(1 blocks could be compared, 8"));
        let unread = alike(&bad, BLOCKS, &mut |_| None);
        assert_eq!(unread, Err("no block near the unreadable ones could be compared".into()));
        assert_eq!([Content::of(&[0; 512]), Content::of(&[0xff; 512])], [Content::Blank; 2]);
        assert_ne!(Content::of(b"ab"), Content::of(b"ba"));
    }

    proptest! {
        /// Whatever lies near a run is compared, so that a difference there is always seen; nothing is read of the run itself.
        #[test]
        fn a_neighbour_that_differs_is_seen(lba in 0..BLOCKS, blocks in 1u64..99, at in 1..=NEIGHBOURS, behind in any::<bool>()) {
            let bad = run(lba, blocks.min(BLOCKS - lba));
            let differs = if behind { bad.end() + at - 1 } else { lba.wrapping_sub(at) };
            prop_assume!(differs < BLOCKS);
            let (result, looks) = told(&bad, 0..BLOCKS, differs..differs + 1);
            prop_assert_eq!(result, Err(format!("they differ at block {differs}")));
            prop_assert!(looks <= 2 * NEIGHBOURS);
            prop_assert_eq!(told(&bad, 0..BLOCKS, 0..0).0, Ok(()));
        }
    }
}
