//! `reliability`: passes and parity updates in the idle times, alone and together.

use idlewise::idle::{Idleness, Keep, Writes};
use idlewise::policy::restrained::Amount;
use idlewise::policy::{Parameters, Policy, REQUEST_SIZE, Setting, build};
use idlewise::reliability::{Activities, Activity, Errors, Gains, Policies};
use idlewise::simulate::{ParityUpdates, Service, WriteVerification};
use idlewise::{Bytes, Nanos};

use super::work::policy;
use crate::load::{file, share};
use crate::models::model;
use crate::reading::Read;
use crate::{Result, Unstructured};

/// A pass goes through the trace as often as it takes.
const MOST_REQUESTS: usize = 16;
const MOST_PASSES: u64 = 1_000;
const SMALLEST: Bytes = Bytes(64 << 10);

pub fn run(mut from: Unstructured) -> Result<()> {
    let (model, (name, parameters)) = (model(&mut from)?, policy(&mut from)?);
    let capacity = Bytes(SMALLEST.0 << from.int_in_range(0..=5u8)?);
    let (shared, passes) = (from.arbitrary()?, from.int_in_range(1..=2)?);
    let writes = if from.arbitrary()? { Writes::Drawn(share(&mut from)?) } else { Writes::Recorded };
    let Some(read) = Read::short(&file(from)?).filter(|read| read.len() <= MOST_REQUESTS) else { return Ok(()) };
    let Some(disks) = read.idleness(&model, Keep { writes, ..Keep::default() }) else { return Ok(()) };
    let parameters = parameters.with(REQUEST_SIZE, SMALLEST);
    // Passes are counted one by one.
    let of_pass = model.verify_time(SMALLEST).0.saturating_mul(capacity.0 / SMALLEST.0);
    if disks.iter().any(|disk| disk.span().0 / of_pass > MOST_PASSES) {
        return Ok(());
    }
    if build(name, &parameters, &Setting::scrub(&Idleness::default(), &model)).is_err() {
        return Ok(());
    }
    let (read, write) = (Nanos::from_millis(10), Nanos::from_millis(5));
    let activities = Activities {
        capacity,
        scrub: Service::OfSize(model.clone()),
        updates: ParityUpdates::new(Service::seeded(read, 2008), Service::seeded(write, 8002), SMALLEST),
        segment: SMALLEST,
    };
    let made = |parameters: &Parameters, setting: &Setting| build(name, parameters, setting).expect("checked before");
    let scrub = |disk: &Idleness, share: f64| -> Box<dyn Policy> {
        made(&parameters.scaled(share), &Setting { past: disk, model: &model, service: None, amount: Amount::Infinite })
    };
    let parity = |disk: &Idleness| {
        let amount = WriteVerification::amount(disk, Nanos(read.0 + write.0), None);
        let service = Some(Nanos((read.0 + write.0) / 2));
        made(&parameters, &Setting { past: disk, model: &model, service, amount })
    };
    let policies = Policies { scrub: &scrub, parity: &parity, shared };
    let study = activities.study(&disks, passes, &policies, &|_, _| ());
    [&study.scrub, &study.parity, &study.both].into_iter().for_each(check);
    if study.scrub.passes.as_ref().is_some_and(|passes| passes.never.is_empty()) {
        let (alone, together) = study.protections();
        let gains = Gains::of(&Errors::default(), 1.0, alone, together);
        assert!(gains.none_s > 0.0 && !gains.scrub_s.is_nan() && !gains.both_s.is_nan(), "{gains:?}");
    }
    Ok(())
}

fn check(activity: &Activity) {
    assert!((0.0..=1.0).contains(&activity.run.utilisation()) && activity.times > 0);
    if let Some(passes) = &activity.passes {
        assert!(passes.mean_s > 0.0, "{passes:?}");
    }
    if let Some(updates) = &activity.updates {
        assert!(updates.writes.completed + updates.writes.lost <= updates.writes.came);
        assert!((0.0..=1.0).contains(&updates.dirty), "{}", updates.dirty);
    }
}
