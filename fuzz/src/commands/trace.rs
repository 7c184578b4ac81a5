//! `trace info`, `head`, `convert`, `cut` and `merge`: what is written reads back as the same, whole and in parts.

use idlewise::trace::write::Target;
use idlewise::trace::{Columns, GapFinder, Provenance, ReadOptions, Request, Trace};
use idlewise::{Bytes, Nanos};

use crate::load::{file, time, written};
use crate::reading::{MOST_REQUESTS, Read};
use crate::{Result, Unstructured};

pub fn run(mut from: Unstructured) -> Result<()> {
    let (skip_bad, aligned, by_file): (bool, bool, bool) = from.arbitrary()?;
    let (begin, end) = (time(&mut from)?, time(&mut from)?);
    let targets: Vec<Target> = Target::all().collect();
    let target = *from.choose(&targets)?;
    let file = file(from)?;
    let options = ReadOptions { skip_bad, aligned, by_file, ..ReadOptions::default() };
    let Some(read) = Read::of(&file, &options).filter(|read| read.len() <= MOST_REQUESTS) else { return Ok(()) };
    let columns = read.columns();
    info(&columns);
    convert(&columns, &read.provenance, target);
    cut(columns, begin, end);
    volumes(&file, &read);
    Ok(())
}

/// As `trace info` counts, and finds holes.
fn info(columns: &Columns) {
    let mut gaps = GapFinder::default();
    columns.arrival.iter().for_each(|&arrival| gaps.arrival(arrival));
    let span = columns.arrival.last().copied().unwrap_or_default();
    assert!(gaps.gaps().iter().all(|gap| gap.at.0.checked_add(gap.length.0).is_some_and(|end| end <= span.0)));
}

fn convert(columns: &Columns, provenance: &Provenance, target: Target) {
    let trace = Trace { provenance: provenance.clone(), columns: columns.clone() };
    // Some formats hold one volume, short times or whole sectors only, and say so.
    let Ok(file) = written(&trace, target) else { return };
    let again = Read::of(&file, &ReadOptions::default()).unwrap_or_else(|| panic!("{} cannot be read", target.name()));
    assert_eq!((again.provenance.format, again.len()), (target.name(), columns.len()));
    let name = |columns: &Columns, one: Request| columns.volumes[usize::from(one.volume)].to_string();
    let back = again.columns();
    let parquet = target.name() == "parquet";
    for (before, after) in columns.requests().zip(back.requests()) {
        assert_eq!((before.op, before.offset.0 / 512), (after.op, after.offset.0 / 512), "{}", target.name());
        if parquet {
            // Parquet's times end with the year 2262.
            let ends = before.end().into_iter().map(|end| end.0).chain([before.arrival.0]);
            let exact = ends.max() <= i64::MAX.try_into().ok();
            let plain = |one: Request| Request { volume: 0, queued: one.queued, ..one };
            assert!(!exact || plain(before) == plain(after), "{before:?} {after:?}");
            assert_eq!(name(columns, before), name(&back, after));
        }
    }
}

/// The parts before, between and after two times are all of it.
fn cut(mut columns: Columns, begin: Nanos, end: Nanos) {
    let all = columns.len();
    let bytes = |columns: &Columns| columns.requests().map(|one| u64::from(one.length)).sum::<u64>();
    let moved = bytes(&columns);
    let (begin, end) = (begin.min(end), begin.max(end));
    let first = columns.arrival.partition_point(|arrival| *arrival < begin);
    let mut between = columns.split_off(first);
    let mut kept = between.clone();
    let after = between.split_off(between.arrival.partition_point(|arrival| *arrival < end));
    kept.retain(|one| one.arrival < end);
    assert_eq!(kept.requests().collect::<Vec<_>>(), between.requests().collect::<Vec<_>>());
    assert_eq!(columns.len() + between.len() + after.len(), all);
    assert_eq!(bytes(&columns) + bytes(&between) + bytes(&after), moved);
    assert!(after.requests().all(|one| one.arrival >= end && one.offset <= Bytes(u64::MAX)));
}

/// Read one by one, the volumes are all of the trace.
fn volumes(file: &[u8], read: &Read) {
    let Some(last) = read
        .batches
        .last()
        .filter(|last| last.volumes.len() <= 4 && !last.volumes.iter().any(|name| name.contains(['*', '?'])))
    else {
        return;
    };
    let strict = ReadOptions { skip_bad: true, ..ReadOptions::default() };
    let of =
        |name: &str| Read::of(file, &ReadOptions { volumes: &[name.into()], ..strict }).map_or(0, |read| read.len());
    if let Some(all) = Read::of(file, &strict)
        .filter(|all| all.batches.last().is_some_and(|batch| batch.volumes[..] == last.volumes[..]))
    {
        assert_eq!(last.volumes.iter().map(|name| of(name)).sum::<usize>(), all.len());
    }
}
