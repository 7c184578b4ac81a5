//! `replay` without a device: places on it, who waits for whom, and when each request is due.

use idlewise::Nanos;
use idlewise::replay::{Causality, Places, ReplayRun, Schedule, Segment};
use idlewise::trace::Columns;

use crate::load::{file, share, size, time};
use crate::reading::Read;
use crate::{Result, Unstructured};

pub fn run(mut from: Unstructured) -> Result<()> {
    let (device, cache, block) = (size(&mut from)?, size(&mut from)?, 512u32 << from.int_in_range(0..=3u8)?);
    let places = if from.arbitrary()? { Places::Scaled } else { Places::Wrapped };
    let (closed, service): (bool, _) = (from.arbitrary()?, time(&mut from)?.min(Nanos::from_secs(3600)));
    let (mut segments, mut begin) = (Vec::new(), Nanos::ZERO);
    for _ in 0..from.int_in_range(1..=4u8)? {
        let end = Nanos(begin.0 + time(&mut from)?.0);
        segments.push(Segment { begin, end, weight: share(&mut from)? });
        begin = if from.arbitrary()? { Nanos(end.0 + time(&mut from)?.0) } else { end };
    }
    let Some(read) = Read::short(&file(from)?) else { return Ok(()) };
    let mut columns = read.columns();
    // The command refuses a device of no blocks.
    if device.0 < u64::from(block) || places.fit(&mut columns, device, block).is_err() {
        return Ok(());
    }
    for one in columns.requests() {
        let (block, end) = (u64::from(block), one.offset.0 + u64::from(one.length));
        assert!(one.length > 0 && end <= device.0 && one.offset.0.is_multiple_of(block) && end.is_multiple_of(block));
    }
    let causality = Causality::inferred(&columns).ok().filter(|_| closed);
    let causality = causality.unwrap_or_else(|| Causality::open_loop(columns.len()));
    play(&columns, &causality, 0..columns.len(), service);
    let mut last = 0;
    for run in ReplayRun::of_segments(&columns, &segments, cache).expect("segments in order") {
        for part in &run.parts {
            assert!(!part.requests.is_empty() && part.requests.start >= last, "parts that overlap");
            last = part.requests.end;
        }
        for (on_time, stretch) in run.stretches() {
            if on_time {
                play(&columns, &causality, stretch, service);
            }
        }
    }
    assert!(last <= columns.len());
    Ok(())
}

/// A device that takes the same time for each request: all are issued, in order, none before it is due.
fn play(columns: &Columns, causality: &Causality, stretch: std::ops::Range<usize>, service: Nanos) {
    let mut schedule = Schedule::new(columns, causality, stretch.clone());
    let mut running = std::collections::VecDeque::new();
    let (mut clock, mut issued) = (Nanos(1_000), 0);
    schedule.begin(clock);
    while !schedule.is_over() {
        if let Some((index, due)) = schedule.upcoming() {
            assert_eq!(index, stretch.start + issued);
            clock = clock.max(due);
            schedule.issued();
            issued += 1;
            running.push_back((index, Nanos(clock.0 + service.0)));
        } else {
            let (index, end) = running.pop_front().expect("who waits, waits for one that was issued");
            clock = clock.max(end);
            schedule.ended(index, end);
        }
    }
    assert_eq!(issued, stretch.len());
}
