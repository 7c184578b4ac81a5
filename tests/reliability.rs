//! `reliability` through the command.

mod common;

use common::{close, json, run, stderr};

#[test]
fn the_papers_scan_times_give_its_gains() {
    // Table 4's scan times and table 5's gains.
    for (scan, gain) in [("3617.8s", 4.147e4), ("726.4s", 4.815e4)] {
        let found = json(&["reliability", "--scan-time", scan, "--json"]);
        let ratio = found["gain_scrub"].as_f64().unwrap() / gain;
        assert!((ratio - 1.0).abs() < 1e-3, "{scan}: {}", found["gain_scrub"]);
        let [none, scrub] = ["mttdl_none_s", "mttdl_scrub_s"].map(|field| found[field].as_f64().unwrap());
        close(&found["gain_scrub"], scrub / none);
        // More than the product of both gains would be without it: each makes the other worth more.
        let [parity, both] = ["gain_parity", "gain_both"].map(|field| found[field].as_f64().unwrap());
        assert!((parity - 47.98).abs() < 0.01 && both > gain * parity, "{found}");
        // But not where parity leaves visible errors as frequent as they are, as it does.
        assert!(found["gain_both_visible_kept"].as_f64().unwrap() < gain * parity, "{found}");
    }
}

#[test]
fn the_model_played_out_is_near_its_closed_form() {
    let often = ["--visible", "1200h", "--latent", "850h", "--monte-carlo", "2000000", "--json"];
    let found = json(&[&["reliability", "--scan-time", "1h"], &often[..]].concat());
    let played = &found["played_out"];
    let [mean, margin] = ["mttdl_scrub_s", "margin_s"].map(|field| played[field].as_f64().unwrap());
    assert!((mean - found["mttdl_scrub_s"].as_f64().unwrap()).abs() < margin, "{found}");
}

#[test]
fn staggered_scans_find_bursts_sooner() {
    let found =
        json(&["reliability", "--scan-time", "10h", "--burst-errors", "8", "--burst-distance", "20MiB", "--json"]);
    close(&found["mlet_s"], 18_000.0);
    let regions = found["mlet_staggered"].as_array().unwrap();
    let at = |wanted: u64| regions.iter().find(|one| one["regions"] == wanted).unwrap()["mlet_s"].as_f64().unwrap();
    assert!(at(1) > 0.9 * 18_000.0 && at(256) < 0.6 * 18_000.0, "{found}");
    // A single error knows no region.
    let alone = json(&["reliability", "--scan-time", "10h", "--burst-errors", "1", "--json"]);
    for one in alone["mlet_staggered"].as_array().unwrap() {
        close(&one["mlet_s"], 18_000.0);
    }
}

#[test]
fn what_means_nothing_is_said() {
    let cases: &[(&[&str], &str)] = &[
        (&["--scan-time", "0s"], "--scan-time, --visible, --latent and --recovery must be above zero"),
        (&["--scan-time", "1h", "--dirty", "2"], "--dirty must be from 0 to 1"),
        (&["--scan-time", "1h", "--spatial", "1,1,2,0"], "each of --spatial from 0 to 1"),
        (&["--scan-time", "1h", "--visit", "1TiB"], "--visit must be at least 512B and at most --capacity"),
    ];
    for (arguments, expected) in cases {
        let output = run(&[&["reliability"], *arguments].concat());
        assert_eq!(output.status.code(), Some(64), "{arguments:?}");
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
}
