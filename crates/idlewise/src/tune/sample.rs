//! A part of the intervals that behaves much like all of them, for looking at many waits.

use crate::idle::Idleness;

/// Neighbours are kept together, as one collision leads to the next.
const BLOCK: usize = 64;
const BLOCKS: usize = 16;

/// At most 16 stretches of 64 intervals, evenly spread over each disk; all of them where there are no more.
pub fn sample(disks: &[Idleness]) -> Vec<Idleness> {
    let part = |disk: &Idleness| Idleness { intervals: stretches(&disk.intervals), ..Idleness::default() };
    disks.iter().map(part).collect()
}

fn stretches<T: Copy>(all: &[T]) -> Vec<T> {
    if all.len() <= BLOCK * BLOCKS {
        return all.to_vec();
    }
    let starts = (0..BLOCKS).map(|block| block * (all.len() - BLOCK) / (BLOCKS - 1));
    starts.flat_map(|start| &all[start..start + BLOCK]).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covers_both_ends_and_takes_all_of_a_few() {
        let all: Vec<usize> = (0..10_000).collect();
        let some = stretches(&all);
        assert_eq!((some.len(), some[0], some[1023]), (1024, 0, 9_999));
        assert_eq!(stretches(&all[..1_000]), all[..1_000]);
    }
}
