//! A part of the intervals that behaves much like all of them, for looking at many waits.

use std::iter;
use std::ops::Range;

use crate::idle::{Idleness, Interval};

/// Neighbours are kept together, as one collision leads to the next.
const BLOCK: usize = 64;

/// At most `blocks` stretches of 64 intervals, evenly spread over each disk; all of them where there are no more. If that is more
/// than `most` intervals together, as of many disks, stretches that are evenly spread over all the disks, one behind the other.
pub fn sample(disks: &[Idleness], blocks: usize, most: usize) -> Vec<Idleness> {
    let of_each = |disk: &Idleness| disk.intervals.len().min(BLOCK * blocks);
    if disks.iter().map(of_each).sum::<usize>() > most {
        return over_all(disks, (most / BLOCK).max(2));
    }
    let of_one = |disk: &Idleness| {
        let stretches = stretches(disk.intervals.len(), blocks);
        part(stretches.into_iter().map(|stretch| &disk.intervals[stretch]))
    };
    disks.iter().map(of_one).collect()
}

/// Stretches are cut where a disk ends; disks without any are left out.
fn over_all(disks: &[Idleness], blocks: usize) -> Vec<Idleness> {
    let stretches = stretches(disks.iter().map(|disk| disk.intervals.len()).sum(), blocks);
    let (mut begin, mut first, mut parts) = (0, 0, Vec::new());
    for disk in disks {
        let end = begin + disk.intervals.len();
        first += stretches[first..].iter().take_while(|stretch| stretch.end <= begin).count();
        let own = stretches[first..].iter().take_while(|stretch| stretch.start < end);
        let own = own.map(|stretch| stretch.start.max(begin) - begin..stretch.end.min(end) - begin);
        let part = part(own.map(|stretch| &disk.intervals[stretch]));
        parts.extend(Some(part).filter(|part| !part.intervals.is_empty()));
        begin = end;
    }
    parts
}

fn part<'a>(stretches: impl Iterator<Item = &'a [Interval]>) -> Idleness {
    let intervals = stretches.collect::<Vec<_>>().concat();
    Idleness { requests: intervals.iter().map(|interval| interval.followers).sum(), intervals, ..Idleness::default() }
}

/// At most so many stretches, evenly spread over `all`, the first at its beginning and the last at its end.
fn stretches(all: usize, blocks: usize) -> Vec<Range<usize>> {
    if all <= BLOCK * blocks {
        return iter::once(0..all).collect();
    }
    let starts = (0..blocks).map(|block| block * (all - BLOCK) / (blocks - 1));
    starts.map(|start| start..start + BLOCK).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Nanos;

    /// A disk whose intervals are numbered.
    fn disk(numbers: Range<u64>) -> Idleness {
        let interval = |number| Interval { length: Nanos(number + 1), followers: 1, busy_before: Nanos(1) };
        Idleness { intervals: numbers.map(interval).collect(), ..Idleness::default() }
    }

    fn numbers(disks: &[Idleness]) -> Vec<u64> {
        disks.iter().flat_map(|disk| &disk.intervals).map(|interval| interval.length.0 - 1).collect()
    }

    #[test]
    fn covers_both_ends_and_takes_all_of_a_few() {
        let some = numbers(&sample(&[disk(0..10_000)], 16, 4096));
        assert_eq!((some.len(), some[0], some[1023]), (1024, 0, 9_999));
        let few = sample(&[disk(0..1_000)], 16, 4096);
        assert_eq!((numbers(&few).len(), few[0].requests), (1_000, 1_000));
    }

    /// However many disks there are, and of whatever lengths, the sample is small, and each part of it is of one disk.
    #[test]
    fn of_many_disks_no_more_is_taken() {
        for lengths in [vec![250; 400], (0..2_000).map(|disk| disk % 90).collect(), vec![3, 100_000, 0, 1, 50_000]] {
            let mut end = 0;
            let disks: Vec<_> = lengths
                .iter()
                .map(|length| {
                    end += length;
                    disk(end - length..end)
                })
                .collect();
            let some = sample(&disks, 512, 4096);
            let taken = numbers(&some);
            assert!(taken.is_sorted() && taken.len() == 4096, "{}", taken.len());
            assert_eq!((taken[0], taken[4095]), (0, end - 1));
            for part in &some {
                let of = |number: u64| {
                    disks.iter().position(|disk| disk.intervals.last().is_some_and(|last| last.length.0 > number))
                };
                let part = numbers(std::slice::from_ref(part));
                assert_eq!(of(part[0]), of(part[part.len() - 1]));
            }
        }
    }
}
