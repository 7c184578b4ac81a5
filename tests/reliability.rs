//! `reliability` through the command.

mod common;

use common::{close, json, real_trace, run, stderr};
use serde_json::Value;

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

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The paper's work on a stand-in: 100,000 requests of 6 ms a pass.
fn study(path: &str, policies: &[&str]) -> Value {
    let work = ["reliability", path, "--service-time", "6ms", "--request-size", "400kB", "--json", "--policy"];
    json(&[&work[..], policies].concat())
}

fn stand_in(folder: &tempfile::TempDir, name: &str) -> String {
    let path = folder.path().join(name).to_str().unwrap().to_string();
    let made = run(&["trace", "synth", "--like", name, "-o", &path, "--format", "parquet"]);
    assert!(made.status.success(), "{}", stderr(&made));
    path
}

/// Tables 4, 6, 9 and 10 of T1: the scrub is faster by the body, updates by the tail, both with one each.
#[test]
fn on_t1_the_scrub_takes_the_body_and_parity_the_tail() {
    let folder = tempfile::tempdir().unwrap();
    let path = stand_in(&folder, "dsn2008-t1");
    let [body, tail, each] =
        [&["body"][..], &["tail"], &["body", "--parity-policy", "tail"]].map(|policies| study(&path, policies));
    let get = |found: &Value, field: &str| number(&found[field]);
    assert!(get(&body, "scan_s") < get(&tail, "scan_s"), "{body} {tail}");
    assert!(get(&body, "parity_update_s") > 3.0 * get(&tail, "parity_update_s"), "{body} {tail}");
    assert!(
        get(&body, "gain_scrub") > get(&tail, "gain_scrub") && get(&body, "gain_parity") < get(&tail, "gain_parity")
    );
    assert!(get(&body, "gain_both") < get(&tail, "gain_both") && get(&tail, "gain_both") < get(&each, "gain_both"));
    for found in [&body, &tail, &each] {
        assert!(get(found, "gain_both") > 10.0 * get(found, "gain_scrub") * get(found, "gain_parity"), "{found}");
        for activity in ["scrub", "parity", "both"] {
            assert!(number(&found[activity]["relative_delay"]) < 0.075, "{activity}: {found}");
        }
        close(&found["mlet_s"], get(found, "scan_s") / 2.0);
    }
    // An update that a policy cannot cut in two wastes no READ.
    let whole = study(&path, &["body", "--whole-updates"]);
    assert!(get(&whole, "parity_update_s") < 0.5 * get(&body, "parity_update_s"), "{whole}");
}

/// Tables 4, 8, 9 and 10 of T2, and table 4 of T3.
#[test]
fn long_tails_take_the_tail_and_bursts_a_shorter_wait_after_a_long_interval() {
    let folder = tempfile::tempdir().unwrap();
    let path = stand_in(&folder, "dsn2008-t2");
    let mut last = f64::INFINITY;
    for share in ["0.01", "0.1", "0.5", "0.9"] {
        let [body, tail] = ["body", "tail"].map(|policy| study(&path, &[policy, "--write-share", share]));
        let get = |found: &Value, field: &str| number(&found[field]);
        assert!(get(&tail, "scan_s") < get(&body, "scan_s") / 10.0, "{share}");
        // With so few WRITEs the body has time enough for all of them.
        if share != "0.01" {
            assert!(get(&tail, "parity_update_s") < get(&body, "parity_update_s") / 2.0, "{share}");
            assert!(get(&tail, "gain_parity") > get(&body, "gain_parity"), "{share}");
            let once = |found: &Value| number(&found["parity"]["update"]["writes_before_update"][0]);
            assert!(once(&tail) > once(&body), "{share}");
        }
        // The more there is to update, the less is left for the scrub.
        let both = get(&tail, "gain_both");
        assert!(both < last && both > 10.0 * get(&tail, "gain_scrub") * get(&tail, "gain_parity"), "{share}: {both}");
        last = both;
    }
    let path = stand_in(&folder, "dsn2008-t3");
    let [tail, bursty] = ["tail", "tail-bursty"].map(|policy| number(&study(&path, &[policy])["scan_s"]));
    assert!(bursty < tail, "{bursty} {tail}");
}

#[test]
fn real_traces_tell_what_scrubs_and_parity_buy() {
    for file in ["blkreplay_linux-mysql.load.gz", "hplajw.1week.srt", "nexus5/log186_twitter.txt.xz"] {
        let Some(path) = real_trace(file) else { return };
        let path = path.to_str().unwrap();
        let page = tempfile::NamedTempFile::new().unwrap();
        let report = page.path().to_str().unwrap();
        let found =
            json(&["reliability", path, "--capacity", "40GB", "--policy", "tail", "--report", report, "--json"]);
        for field in ["gain_scrub", "gain_parity", "gain_both", "scan_s", "parity_update_s", "mlet_s", "mttdl_none_s"] {
            let value = number(&found[field]);
            assert!(value.is_finite() && value > 0.0, "{file}: {field} {value}");
        }
        assert!(number(&found["gain_both"]) > number(&found["gain_scrub"]) * number(&found["gain_parity"]), "{file}");
        let html = std::fs::read_to_string(report).unwrap();
        assert!(html.contains("<svg") && html.contains("length of a pass") && !html.contains("NaN"), "{file}");
    }
}

/// The gentlest schedule that is fast enough.
#[test]
fn tunes_for_a_date_or_a_lifetime() {
    let folder = tempfile::tempdir().unwrap();
    let path = stand_in(&folder, "sigmetrics2009-t1");
    let tuned = |aim: &[&str]| json(&[&["tune", &path, "--capacity", "1TB", "--json"], aim].concat());
    let get = |found: &Value, field: &str| number(&found[field]);
    let loose = tuned(&["--finish-within", "4d"]);
    let tight = tuned(&["--finish-within", "2d"]);
    for (found, days) in [(&loose, 4.0), (&tight, 2.0)] {
        let pass = get(found, "full_pass_s") / 86_400.0;
        assert!(pass <= days && pass > 0.9 * days, "{found}");
    }
    assert!(number(&loose["goal"]["mean_slowdown_s"]) < number(&tight["goal"]["mean_slowdown_s"]));
    // The same pass, asked for by what it buys.
    let years = json(&["reliability", "--scan-time", "4d", "--json"])["mttdl_scrub_s"].as_f64().unwrap() / 31_557_600.0;
    let lifetime = tuned(&["--goal", &format!("mttdl={years}")]);
    assert_eq!(lifetime["request_size_bytes"], loose["request_size_bytes"]);
    assert!(get(&lifetime, "mttdl_s") >= years * 31_557_600.0, "{lifetime}");
    let longest = tuned(&["--goal", "mttdl", "--mean-slowdown", "1ms", "--max-slowdown", "50ms"]);
    let plain = tuned(&["--mean-slowdown", "1ms", "--max-slowdown", "50ms"]);
    assert_eq!((&longest["full_pass_s"], plain.get("mttdl_s")), (&plain["full_pass_s"], None));
    for (aim, code, text) in [
        (&["--finish-within", "1min"][..], 1, "the fastest schedule takes"),
        (&["--goal", "mttdl=1e9"], 1, "no scrub is fast enough; the limit is"),
        (&["--goal", "mttdl"], 64, "mttdl=YEARS"),
        (&["--goal", "speed"], 64, "expected mttdl, or mttdl=YEARS"),
        (&["--mean-slowdown", "1ms"], 64, "--max-slowdown"),
        (&[], 64, "--mean-slowdown"),
    ] {
        let output = run(&[&["tune", &path], aim].concat());
        assert_eq!(output.status.code(), Some(code), "{aim:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(text), "{aim:?}: {}", stderr(&output));
    }
}

#[test]
fn what_means_nothing_is_said() {
    let cases: &[(&[&str], &str)] = &[
        (&["--scan-time", "0s"], "--scan-time must be above zero"),
        (&["--scan-time", "1h", "--latent", "0s"], "--visible, --latent and --recovery must be above zero"),
        (&["--scan-time", "1h", "--dirty", "2"], "--dirty from 0 to 1"),
        (&["--scan-time", "1h", "--policy", "tail"], "need a TRACE, not --scan-time"),
        (&["t.csv", "--scan-time", "1h"], "cannot be used with"),
        (&["t.csv", "--policy", "tail", "--idle-wait", "1s"], "tail takes no --idle-wait"),
        (&[], "--scan-time"),
        (&["--scan-time", "1h", "--spatial", "1,1,2,0"], "each of --spatial from 0 to 1"),
        (&["--scan-time", "1h", "--visit", "1TiB"], "--visit must be at least 512B and at most --capacity"),
    ];
    for (arguments, expected) in cases {
        let output = run(&[&["reliability"], *arguments].concat());
        assert_eq!(output.status.code(), Some(64), "{arguments:?}");
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
}

#[test]
fn an_array_that_is_scrubbed_more_often_keeps_its_data_longer() {
    let found = json(&["array", "raid6:10", "--pass", "14d,60d", "--rebuild", "2d", "--json"]);
    let rows = found["rows"].as_array().unwrap();
    let [never, often, seldom] = [0, 1, 2].map(|row: usize| rows[row]["mttdl_s"].as_f64().unwrap());
    assert!(never < seldom && seldom < often, "{found}");
    // By hand, of rare failures: a second one within a rebuild, and then a stretch of eight disks that cannot be read.
    let [failure, latent] = ["failure_s", "latent_s"].map(|name| found[name].as_f64().unwrap());
    let day = 86_400.0;
    let (second, third) = (9.0 * 2.0 * day / failure, 8.0 * day / failure);
    let unread = 8.0 * (3.5 * day + 2.0 * day / 6.0) / latent;
    let expected = failure / 10.0 / (second * (unread + third));
    assert!((often / expected - 1.0).abs() < 0.01, "{often} {expected}");
    close(&rows[1]["loss_within"], 1.0 - (-found["within_s"].as_f64().unwrap() / often).exp());
    assert!((rows[1]["of_everything"].as_f64().unwrap() - third / (third + unread)).abs() < 0.01, "{found}");
    // Two years of it without a rebuild that is much shorter, played out.
    let often = ["--failures", "60%", "--latent", "90%", "--rebuild", "4d", "--play", "300000", "--json"];
    let found = json(&[&["array", "raid5:6", "--pass", "14d"], &often[..]].concat());
    let (row, played) = (&found["rows"][1], &found["rows"][1]["played_out"]);
    let [mean, margin] = ["mttdl_s", "margin_s"].map(|name| played[name].as_f64().unwrap());
    let closed = row["mttdl_s"].as_f64().unwrap();
    assert!((mean - closed).abs() < margin + 0.1 * closed, "{found}");
}

#[test]
fn an_array_is_scrubbed_as_tune_says() {
    let Some(trace) = real_trace("blkreplay_linux-mysql.load.gz") else { return };
    let trace = trace.to_str().unwrap();
    let found =
        json(&["array", "mirror:3", trace, "--goals", "1ms", "--capacity", "10TB", "--rebuild-in-gaps", "--json"]);
    let tuned =
        json(&["tune", trace, "--mean-slowdown", "1ms", "--max-slowdown", "50ms", "--capacity", "10TB", "--json"]);
    let row = &found["rows"][1];
    assert_eq!(row["goal_mean_slowdown_s"], 0.001);
    assert!(
        (row["pass_s"].as_f64().unwrap() / tuned["full_pass_s"].as_f64().unwrap() - 1.0).abs() < 1e-3,
        "{row} {tuned}"
    );
    assert_eq!(row["rebuild_s"], row["pass_s"]);
}

/// The slow disks decide how long a pass takes: one plan for all would be that of the quick ones.
#[test]
fn each_disk_of_an_array_has_a_pass_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let made = |name: &str, arguments: &[&str]| {
        let path = folder.path().join(name).display().to_string();
        let output = run(&[&["trace", "synth", "--format", "msr", "--out", &path], arguments].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        path
    };
    let busy = made("busy.csv", &["--idle-mean", "3ms", "--requests", "20000"]);
    let calm = made("calm.csv", &["--idle-mean", "2s", "--requests", "30"]);
    let text = std::fs::read_to_string(&calm).unwrap().replace(",synthetic,", ",calm,");
    std::fs::write(&calm, text).unwrap();
    let pass = |traces: &[&str]| {
        let options = ["--disk", "nearline", "--goals", "1ms", "--json"];
        number(&json(&[&["array", "raid6:10"], traces, &options[..]].concat())["rows"][1]["pass_s"])
    };
    let (alone, other, both) = (pass(&[&busy]), pass(&[&calm]), pass(&[&busy, &calm]));
    assert!((both / ((alone + other) / 2.0) - 1.0).abs() < 1e-9, "{alone} {other} {both}");
}

#[test]
fn what_is_no_array_is_said() {
    for (arguments, said) in [
        (&["raid6:2", "--pass", "1d"][..], "write raid5:N"),
        (&["raid6:8"], "--pass"),
        (&["raid6:8", "--pass", "1d", "--failures", "100%"], "above 0 and below 100 %"),
        (&["raid6:8", "--pass", "1d", "--read-errors", "10"], "read-errors"),
        (&["raid6:8", "--pass", "0s"], "must be above zero"),
    ] {
        let output = run(&[&["array"], arguments].concat());
        assert!(
            output.status.code() == Some(64) && stderr(&output).contains(said),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
}
