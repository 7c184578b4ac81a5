//! `sample`: the intervals chosen stand for all, and the plan is the same after it was written and read.

use idlewise::replay::ReplayRun;
use idlewise::sample::{Extractor, FEATURES, FeatureSet, RULES, SamplingPlan, Settings, TraceInterval, sample};
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
    let Some(read) = Read::short(&file(from)?).filter(|read| read.len() <= MOST_REQUESTS) else { return Ok(()) };
    let mut extractor = Extractor::new(interval);
    read.batches.iter().for_each(|batch| extractor.requests(batch));
    let intervals = extractor.finish();
    assert_eq!(intervals.iter().map(|one| one.requests).sum::<u64>(), read.len() as u64);
    intervals.iter().for_each(check);
    let settings = Settings { interval, features: features.clone(), rule, seed };
    let outcome = sample(&intervals, &settings, &|_| ()).expect("there are requests");
    assert_eq!(outcome.requests, read.len() as u64);
    assert!(!outcome.representatives.is_empty());
    assert!(outcome.representatives.iter().all(|one| one.requests > 0 && one.interval(&intervals).is_some()));
    let columns = read.columns();
    let plan = SamplingPlan {
        version: SamplingPlan::VERSION,
        trace: "fuzzed".into(),
        volume: None,
        interval,
        features,
        rule,
        seed,
        requests: outcome.requests,
        span: columns.arrival.last().copied().unwrap_or_default(),
        representatives: outcome.representatives,
    };
    let again = SamplingPlan::from_toml(&plan.to_toml()).expect("what is written can be read");
    assert_eq!(again, plan);
    let segments = plan.segments();
    let before = |time: Nanos| columns.arrival.partition_point(|arrival| *arrival < time) as u64;
    for (segment, one) in segments.iter().zip(&plan.representatives) {
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
