//! A part of the intervals that behaves much like all of them, for looking at many waits.

use crate::idle::Idleness;

/// Neighbours are kept together, as one collision leads to the next.
const BLOCK: usize = 64;

/// At most `blocks` stretches of 64 intervals, evenly spread over each disk; all of them where there are no more.
pub fn sample(disks: &[Idleness], blocks: usize) -> Vec<Idleness> {
    let part = |disk: &Idleness| {
        let intervals = stretches(&disk.intervals, blocks);
        Idleness {
            requests: intervals.iter().map(|interval| interval.followers).sum(),
            intervals,
            ..Idleness::default()
        }
    };
    disks.iter().map(part).collect()
}

fn stretches<T: Copy>(all: &[T], blocks: usize) -> Vec<T> {
    if all.len() <= BLOCK * blocks {
        return all.to_vec();
    }
    let starts = (0..blocks).map(|block| block * (all.len() - BLOCK) / (blocks - 1));
    starts.flat_map(|start| &all[start..start + BLOCK]).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covers_both_ends_and_takes_all_of_a_few() {
        let all: Vec<usize> = (0..10_000).collect();
        let some = stretches(&all, 16);
        assert_eq!((some.len(), some[0], some[1023]), (1024, 0, 9_999));
        assert_eq!(stretches(&all[..1_000], 16), all[..1_000]);
    }
}
