//! Narrowing down on a device whose unreadable blocks are known.

use std::collections::BTreeSet;

use super::*;
use proptest::prelude::*;

#[test]
fn what_can_be_read_after_all_is_told_apart() {
    let run = |lba, blocks| BadBlocks { lba, blocks, kind: "io".into() };
    let well = |lba, blocks| BadBlocks { lba, blocks, kind: BadBlocks::RECOVERED.into() };
    let mut narrowing = Narrowing::new(512, Bytes(1 << 30), &[run(4, 6), run(20, 1)], &Left::default());
    let mut recovered = |lba: u64, blocks: u64| {
        narrowing.recovered(Extent { offset: Bytes(512 * lba), length: Bytes(512 * blocks) });
        narrowing.bad()
    };
    assert_eq!(recovered(6, 2), [run(4, 2), well(6, 2), run(8, 2), run(20, 1)]);
    assert_eq!(recovered(4, 2), [well(4, 4), run(8, 2), run(20, 1)]);
    assert_eq!(recovered(20, 1), [well(4, 4), run(8, 2), well(20, 1)]);
    // Not known.
    assert_eq!(recovered(30, 1), [well(4, 4), run(8, 2), well(20, 1)]);
}

#[test]
fn what_can_be_read_after_all_is_judged_at_last() {
    let blocks = |lba: u64, blocks: u64| Extent { offset: Bytes(512 * lba), length: Bytes(512 * blocks) };
    let bad = [BadBlocks { lba: 4, blocks: 20, kind: "io".into() }];
    let mut narrowing = Narrowing::new(512, Bytes(1 << 30), &bad, &Left::default());
    narrowing.recovered(blocks(4, 20));
    // From its end to its beginning, in stretches that overlap; and one apart.
    for extent in [blocks(16, 8), blocks(8, 8), blocks(0, 12), blocks(40, 8)] {
        narrowing.judge_at_last(extent);
    }
    let mut order = Vec::new();
    while let Some(extent) = narrowing.next(Bytes(1 << 20)) {
        order.push(extent);
    }
    order.sort_by_key(|extent| extent.offset);
    assert_eq!(order, [blocks(0, 24), blocks(40, 8)]);
    // That a block is wrong says more than that it was hard to read.
    narrowing.wrong(blocks(8, 8), "checksum");
    let run = |lba, blocks, kind: &str| BadBlocks { lba, blocks, kind: kind.into() };
    assert_eq!(narrowing.bad(), [run(4, 4, "recovered"), run(8, 8, "checksum"), run(16, 8, "recovered")]);
    // What cannot be read stays so.
    let mut narrowing = Narrowing::new(512, Bytes(1 << 30), &bad, &Left::default());
    narrowing.wrong(blocks(0, 8), "checksum");
    assert_eq!(narrowing.bad(), [run(0, 4, "checksum"), run(4, 20, "io")]);
}

const MIB: u64 = 1 << 20;

/// A device of which some blocks cannot be read, as a verifier sees it.
struct Disk {
    block: u64,
    blocks: u64,
    bad: BTreeSet<u64>,
    /// Which block it names: none, the first bad one, or a wrong one.
    names: u64,
    longest: u64,
}

impl Disk {
    /// Scans from `place` until the end or for so many requests; the place, and what was read of each block.
    fn scan(&self, narrowing: &mut Narrowing, mut place: u64, size: u64, requests: usize) -> (u64, Vec<u64>) {
        let mut read = Vec::new();
        for _ in 0..requests {
            let wanted = Bytes(size * self.block).min(narrowing.longest());
            let extent = loop {
                if let Some(extent) = narrowing.next(wanted) {
                    break extent;
                }
                let length = wanted.0.min(self.blocks * self.block - place);
                if length > 0 {
                    narrowing.begin(Extent { offset: Bytes(place), length: Bytes(length) });
                    place += length;
                } else if !narrowing.come_back() {
                    return (place, read);
                }
            };
            let range = extent.offset.0 / self.block..extent.end().0 / self.block;
            let named = match self.names {
                0 => None,
                1 => self.bad.range(range.clone()).next().copied(),
                _ => Some(range.end - 1),
            };
            if range.end - range.start > self.longest {
                assert!(narrowing.refused(extent) && narrowing.longest() < extent.length);
            } else if self.bad.range(range.clone()).next().is_some() {
                read.extend(Some(range.start).filter(|_| range.end - range.start == 1));
                let _ = narrowing.failed(extent, "io", named.map(|lba| Bytes(lba * self.block)));
            } else {
                read.extend(range);
                narrowing.verified();
            }
        }
        (place, read)
    }
}

proptest! {
    /// Whether the device names the first bad block, names a wrong one, or none, whatever length it takes at most, and however
    /// often the scan is interrupted and goes on from what was saved: every block is settled, once.
    #[test]
    fn finds_exactly_the_bad_blocks(
        blocks in 1u64..9_000, scattered in prop::collection::btree_set(0u64..9_000, 0..40),
        dead in prop::collection::vec((0u64..9_000, 0u64..3_000), 0..3), block in prop_oneof![Just(512u32), Just(4096)],
        names in 0u64..3, longest in 1u64..700, size in 1u64..4_000, runs in prop::collection::vec(1usize..60, 0..6),
    ) {
        let dead = dead.iter().flat_map(|&(begin, length)| begin..begin + length);
        let bad: BTreeSet<u64> = scattered.into_iter().chain(dead).filter(|&lba| lba < blocks).collect();
        let disk = Disk { block: u64::from(block), blocks, bad: bad.clone(), names, longest };
        let bytes = Bytes(blocks * u64::from(block));
        let mut narrowing = Narrowing::new(block, bytes, &[], &Left::default());
        let (mut place, mut settled) = (0, Vec::new());
        for requests in runs.into_iter().chain([usize::MAX]) {
            let (stopped, read) = disk.scan(&mut narrowing, place, size, requests);
            (place, settled) = (stopped, [settled, read].concat());
            narrowing = Narrowing::new(block, bytes, &narrowing.bad(), &narrowing.left());
        }
        prop_assert!(narrowing.left().is_empty());
        settled.sort_unstable();
        prop_assert_eq!(settled, (0..blocks).collect::<Vec<_>>());
        let found: Vec<u64> = narrowing.bad().iter().flat_map(|bad| bad.lba..bad.lba + bad.blocks).collect();
        prop_assert_eq!(found, bad.into_iter().collect::<Vec<_>>());
    }
}

/// Behind a dead stretch of a quarter of the device, all is read before more than a few dozen blocks of it are.
#[test]
fn what_is_behind_a_dead_stretch_comes_first() {
    let blocks = 256 * MIB / 512;
    let bad: BTreeSet<u64> = (blocks / 4..blocks / 2).collect();
    let disk = Disk { block: 512, blocks, bad, names: 0, longest: u64::MAX };
    let mut narrowing = Narrowing::new(512, Bytes(256 * MIB), &[], &Left::default());
    let mut place = 0;
    while place < 256 * MIB {
        place = disk.scan(&mut narrowing, place, 2048, 1).0;
    }
    assert!((DEAD..2 * DEAD).contains(&narrowing.bad_blocks()), "{}", narrowing.bad_blocks());
    // Of what can be read, no more than the last and longest skip is put off.
    let left = narrowing.left().bytes();
    assert!(left <= 64 * MIB + 2 * 4 * MIB, "{left}");
    let (_, read) = disk.scan(&mut narrowing, place, 2048, usize::MAX);
    assert!(narrowing.left().is_empty() && read.len() as u64 >= blocks / 4);
    assert_eq!(narrowing.bad_blocks(), blocks / 4);
}

proptest! {
    /// What hung, wherever it lies of what the order has handed out and will, comes last, and is looked at once; so in the
    /// next run.
    #[test]
    fn what_hung_comes_last(
        blocks in 100u64..3_000, bad in prop::collection::btree_set(0u64..3_000, 0..20), before in 0usize..60,
        hung in (0u64..2_900, 1u64..100), size in 1u64..300, again in any::<bool>(),
    ) {
        let bad: BTreeSet<u64> = bad.into_iter().filter(|&lba| lba < blocks).collect();
        let disk = Disk { block: 512, blocks, bad, names: 0, longest: u64::MAX };
        let mut narrowing = Narrowing::new(512, Bytes(blocks * 512), &[], &Left::default());
        let (place, mut read) = disk.scan(&mut narrowing, 0, size, before);
        let hung = (hung.0 % blocks)..(hung.0 % blocks + hung.1).min(blocks);
        let late: Vec<u64> = hung.clone().filter(|lba| !read.contains(lba) && !disk.bad.contains(lba)).collect();
        narrowing.hung(super::read(&(hung.start * 512, hung.end * 512)));
        if again {
            narrowing = Narrowing::new(512, Bytes(blocks * 512), &narrowing.bad(), &narrowing.left());
        }
        let (_, rest) = disk.scan(&mut narrowing, place, size, usize::MAX);
        let first = rest.iter().position(|lba| hung.contains(lba));
        prop_assert!(rest[..first.unwrap_or(rest.len())].len() + (hung.end - hung.start) as usize >= rest.len());
        prop_assert!(late.iter().all(|lba| rest.iter().filter(|read| *read == lba).count() == 1), "{late:?}");
        read.extend(rest);
        read.sort_unstable();
        read.dedup();
        prop_assert_eq!(read, (0..blocks).collect::<Vec<_>>());
    }
}

/// What is not known to be the medium's is forgotten, and nothing else is.
#[test]
fn what_is_the_devices_is_forgotten() {
    let mut narrowing = Narrowing::new(512, Bytes(MIB), &[], &Left::default());
    let fails = |narrowing: &mut Narrowing, lba: u64| {
        narrowing.begin(read(&(lba * 512, lba * 512 + 512)));
        let extent = narrowing.next(Bytes(512)).unwrap();
        assert_eq!(narrowing.failed(extent, "io", None), Some(extent.offset));
    };
    fails(&mut narrowing, 5);
    narrowing.verified();
    let left = narrowing.left();
    fails(&mut narrowing, 6);
    assert_eq!((narrowing.bad_blocks(), narrowing.bad()[0].blocks, narrowing.certain()[0].blocks), (2, 2, 1));
    narrowing.begin(read(&(4096, 8192)));
    narrowing.forget(&left);
    assert!(narrowing.settled() && narrowing.bad() == narrowing.certain());
    assert_eq!(narrowing.bad_blocks(), 1);
}

/// Each request of a pass takes the same time, however many runs of bad blocks are known.
#[test]
fn scattered_bad_blocks_are_found_in_time() {
    let blocks = 46_000 * 5;
    let disk = Disk { block: 512, blocks, bad: (0..46_000).map(|at| at * 5).collect(), names: 0, longest: u64::MAX };
    let mut narrowing = Narrowing::new(512, Bytes(blocks * 512), &[], &Left::default());
    let began = std::time::Instant::now();
    let mut place = 0;
    let mut known = 0;
    while place < blocks * 512 || !narrowing.settled() {
        place = disk.scan(&mut narrowing, place, 2048, 1).0;
        assert!(narrowing.bad_blocks() >= known);
        known = narrowing.bad_blocks();
    }
    assert_eq!((known, narrowing.bad().len()), (46_000, 46_000));
    assert!(began.elapsed() < std::time::Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn what_passes_is_tried_again_but_not_for_ever() {
    let mut narrowing = Narrowing::new(512, Bytes(MIB), &[], &Left::default());
    let extent = Extent { offset: Bytes(0), length: Bytes(1024) };
    let all = Bytes(MIB);
    let waits: Vec<_> =
        (0..4).map(|_| narrowing.again(extent).inspect(|_| assert_eq!(narrowing.next(all), Some(extent)))).collect();
    assert_eq!(
        waits,
        [Some(Nanos::from_millis(200)), Some(Nanos::from_millis(400)), Some(Nanos::from_millis(800)), None]
    );
    assert_eq!(narrowing.failed(extent, "timeout", None), None);
    let first = narrowing.next(all).unwrap();
    assert_eq!(first.length, Bytes(512));
    assert!(narrowing.again(first).is_some());
}
