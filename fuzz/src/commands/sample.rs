//! `sample`: the intervals chosen stand for all, and the plan is the same after it was written and read.

use idlewise::replay::ReplayRun;
use idlewise::sample::{
    Amount, Extractor, FEATURES, FeatureSet, RULES, SamplingPlan, Settings, TraceInterval, Way, sample,
};
use idlewise::{Bytes, Nanos};

use crate::load::{file, time};
use crate::reading::Read;
use crate::{Result, Unstructured};

/// Intervals are parted into up to fifty clusters.
const MOST_REQUESTS: usize = 10;

pub fn run(mut from: Unstructured) -> Result<()> {
    let (interval, rule, seed) = (time(&mut from)?, *from.choose(&RULES)?, u64::from(from.arbitrary::<u8>()?));
    let mut names = String::new();
    for _ in 0..from.int_in_range(1..=4u8)? {
        names += from.choose(&FEATURES)?.name;
    }
    // One that is named twice is refused.
    let features: FeatureSet = names.parse().unwrap_or_default();
    let way = match from.arbitrary()? {
        None => Way::Clusters { features, rule },
        Some(true) => Way::Drawn(Amount::Intervals(from.int_in_range(1..=12usize)?)),
        Some(false) => Way::Drawn(Amount::Error(f64::from(from.int_in_range(1..=100u8)?) / 100.0)),
    };
    let Some(read) = Read::short(&file(from)?).filter(|read| read.len() <= MOST_REQUESTS) else { return Ok(()) };
    let mut extractor = Extractor::new(interval);
    read.batches.iter().for_each(|batch| extractor.requests(batch));
    let intervals = extractor.finish();
    assert_eq!(intervals.iter().map(|one| one.requests).sum::<u64>(), read.len() as u64);
    intervals.iter().for_each(check);
    let outcome = sample(&intervals, &Settings { interval, way, seed }, &|_| ()).expect("there are requests");
    assert_eq!(outcome.requests, read.len() as u64);
    assert!(outcome.half_width_s.is_none_or(|half| half.is_finite() && half >= 0.0), "{outcome:?}");
    let columns = read.columns();
    let plan = SamplingPlan {
        version: SamplingPlan::VERSION,
        trace: "fuzzed".into(),
        volume: None,
        interval,
        seed,
        requests: outcome.requests,
        span: columns.arrival.last().copied().unwrap_or_default(),
        chosen: outcome.chosen,
    };
    let again = SamplingPlan::from_toml(&plan.to_toml()).expect("what is written can be read");
    assert_eq!(again, plan);
    let segments = plan.segments();
    let before = |time: Nanos| columns.arrival.partition_point(|arrival| *arrival < time) as u64;
    for (segment, one) in segments.iter().zip(plan.parts()) {
        assert!(one.requests > 0 && TraceInterval::find(&intervals, one.index).is_some());
        assert_eq!(before(segment.end) - before(segment.begin), one.requests, "as `replay` checks");
    }
    assert!(ReplayRun::of_segments(&columns, &segments, Bytes(1 << 20)).is_ok());
    Ok(())
}

fn check(interval: &TraceInterval) {
    assert!(interval.requests > 0 && interval.reads <= interval.requests && interval.responses <= interval.requests);
    for feature in &FEATURES {
        assert!((feature.value)(interval).is_finite(), "{} of {interval:?}", feature.name);
    }
}
