//! Files and answers that idlewise keeps or is given besides traces: read or refused, and what is read is written and read again
//! as the same, and can be used.
#![no_main]

use std::str::FromStr;

use idlewise::disk::DiskModel;
use idlewise::replay::ReplayRun;
use idlewise::sample::FeatureSet;
use idlewise::trace::{Columns, CsvLayout};
use idlewise::{Bytes, Nanos, Rate, sample, tune};
use idlewise_fuzz::targets::{self, Run};
use idlewise_linux::fuzzing::{Sense, has_no_disk, pass};
use idlewise_linux::scrub::{Note, Pass};
use idlewise_service::fuzzing as service;
use libfuzzer_sys::fuzz_target;

type Read = fn(&[u8]);

const TARGETS: [(&str, Read); 12] = [
    ("model", |bytes| text(bytes, model)),
    ("plan", |bytes| text(bytes, plan)),
    ("sampling-plan", |bytes| text(bytes, sampling_plan)),
    ("arguments", |bytes| text(bytes, arguments)),
    ("checkpoint", checkpoint),
    ("note", note),
    ("sense", sense),
    ("mounts", |bytes| text(bytes, mounts)),
    ("request", service::request),
    ("config", |bytes| text(bytes, service::config)),
    ("schedule", service::record),
    ("message", service::message),
];

fuzz_target!(init: targets::begin(all()), |bytes: &[u8]| targets::run(bytes));

fn all() -> Vec<(&'static str, Run)> {
    TARGETS.into_iter().map(|(name, run)| (name, Box::new(run) as Run)).collect()
}

fn text(bytes: &[u8], read: fn(&str)) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        read(text);
    }
}

fn model(text: &str) {
    let Ok(model) = DiskModel::from_toml(text) else { return };
    assert_eq!(DiskModel::from_toml(&model.to_toml()).expect("written").verify, model.verify);
    let times: Vec<Nanos> = (0..64).map(|exponent| model.verify_time(Bytes(1 << exponent))).collect();
    assert!(times.is_sorted() && times[0] > Nanos::ZERO, "{times:?}");
    assert!(model.sizes(Nanos::from_secs(1)).iter().all(|(size, timing)| model.verify_time(*size) == timing.time));
    for access in [model.read, model.write].into_iter().flatten() {
        assert!(access.time(Bytes(0)) <= access.time(Bytes(u64::MAX)));
    }
}

fn plan(text: &str) {
    let Ok(plan) = tune::PlanFile::from_toml(text) else { return };
    let again = tune::PlanFile::from_toml(&plan.to_toml()).expect("written");
    assert_eq!(again.schedule(), plan.schedule());
    let mut policy = plan.schedule().policy();
    for exponent in 0..64 {
        policy.decide(Nanos(1 << exponent));
    }
    assert!(plan.schedule().sizes().iter().all(|size| *size > Bytes(0)));
}

fn sampling_plan(text: &str) {
    let Ok(plan) = sample::SamplingPlan::from_toml(text) else { return };
    assert_eq!(sample::SamplingPlan::from_toml(&plan.to_toml()).ok().as_ref(), Some(&plan));
    assert!(ReplayRun::of_segments(&Columns::default(), &plan.segments(), Bytes(0)).is_ok());
}

/// What options are read from, as users write it.
fn arguments(text: &str) {
    fn exact<T: FromStr + PartialEq + std::fmt::Debug>(text: &str, written: impl Fn(&T) -> String) {
        if let Ok(value) = text.parse::<T>() {
            assert_eq!(written(&value).parse().ok(), Some(value));
        }
    }
    exact::<Nanos>(text, |time| time.exact());
    exact::<Bytes>(text, |size| size.exact());
    exact::<FeatureSet>(text, FeatureSet::to_string);
    if let Ok(rate) = text.parse::<Rate>() {
        assert!(rate.to_string().parse::<Rate>().is_ok());
    }
    if let Ok(layout) = text.parse::<CsvLayout>() {
        drop(layout.parser());
    }
}

/// As `status` and the next scrub read it.
fn checkpoint(bytes: &[u8]) {
    let Ok(read) = pass(bytes) else { return };
    let written = serde_json::to_vec(&read).expect("text and numbers");
    let again: Pass = pass(&written).expect("written");
    assert_eq!((again.place.clone(), again.left.clone()), (read.place.clone(), read.left.clone()));
    assert!(read.verified().0 <= read.place.visited);
    let blocks = read.device_bytes / u64::from(read.block_bytes);
    let known = read.known_errors();
    assert!(known.iter().all(|run| run.blocks > 0 && run.lba + run.blocks <= blocks));
    assert!(known.windows(2).all(|pair| pair[0].lba + pair[0].blocks <= pair[1].lba), "{known:?}");
    assert!(read.errors.iter().all(|run| known.contains(run)));
}

fn note(bytes: &[u8]) {
    let Ok(note) = serde_json::from_slice::<Note>(bytes) else { return };
    let written = serde_json::to_vec(&note).expect("text and numbers");
    assert!(serde_json::from_slice::<Note>(&written).is_ok());
    note.process.is_alive();
}

/// What a disk answers to a command.
fn sense(bytes: &[u8]) {
    for ata in [false, true] {
        if let Some(sense) = Sense::decode(bytes, ata) {
            let _ = sense.fault();
            assert!(sense.ata.is_none_or(|registers| registers.lba < 1 << 48));
        }
    }
}

fn mounts(text: &str) {
    assert_eq!(has_no_disk(text, 41), has_no_disk(&format!("{text}\n"), 41));
}
