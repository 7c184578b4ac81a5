//! `idle`: the profile of all disks and of each, and the page.

use idlewise::idle::{Idleness, Keep, Profile};
use idlewise::report::idle_page;

use crate::load::file;
use crate::models::model;
use crate::reading::Read;
use crate::{Result, Unstructured};

pub fn run(mut from: Unstructured) -> Result<()> {
    let (model, with_page) = (model(&mut from)?, from.ratio(1u8, 64u8)?);
    let Some(read) = Read::short(&file(from)?) else { return Ok(()) };
    let Some(disks) = read.idleness(&model, Keep::default()) else { return Ok(()) };
    for disk in &disks {
        profile(std::slice::from_ref(disk));
        let (first, rest) = disk.split(0.5);
        assert_eq!(first.requests + rest.requests, disk.requests);
    }
    let all = profile(&disks);
    if with_page {
        assert!(idle_page(&[("fuzzed".into(), all)], vec![]).html().trim_end().ends_with("</html>"));
    }
    Ok(())
}

fn profile(disks: &[Idleness]) -> Profile {
    let profile = Profile::of(disks);
    let statistics = &profile.statistics;
    assert_eq!(statistics.requests, disks.iter().map(|disk| disk.requests).sum::<u64>());
    assert!(statistics.utilisation.is_none_or(|share| (0.0..=1.0).contains(&share)), "{statistics:?}");
    assert!(statistics.idle_mean_s.is_none_or(|mean| mean >= 0.0));
    assert!(profile.cdh.iter().all(|&(time, share)| time >= 0.0 && (0.0..=1.0 + 1e-9).contains(&share)));
    assert!(profile.cdh.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1));
    let longest = profile.lengths.longest();
    assert!(disks.iter().flat_map(|disk| &disk.intervals).all(|interval| interval.length <= longest));
    serde_json::to_string(&profile).expect("a profile is numbers and text");
    profile
}
