//! Whatever the text, the files that idlewise writes and users edit are read or refused; what is read is written and read again
//! as the same, and can be used.
#![no_main]

use idlewise::Bytes;
use idlewise::disk::DiskModel;
use idlewise::replay::Run;
use idlewise::trace::Columns;
use idlewise::{sample, tune};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(plan) = sample::Plan::from_toml(text) {
        assert_eq!(sample::Plan::from_toml(&plan.to_toml()).ok().as_ref(), Some(&plan));
        assert!(Run::of_segments(&Columns::default(), &plan.segments(), Bytes(0)).is_ok());
    }
    if let Ok(plan) = tune::PlanFile::from_toml(text) {
        assert!(tune::PlanFile::from_toml(&plan.to_toml()).is_ok());
    }
    if let Ok(model) = DiskModel::from_toml(text) {
        assert!(DiskModel::from_toml(&model.to_toml()).is_ok());
    }
});
