//! The command knows what was added to its tables.

use std::fmt::Write;
use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_idlewise-night")).args(arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// A request a second, with nothing between one hour and the next, from 21 o'clock on.
fn trace() -> tempfile::NamedTempFile {
    let mut lines = String::new();
    for hour in 0..6 {
        for second in 0..60 {
            writeln!(lines, "{}.25 R {} 4096", 75_600 + hour * 3_600 + second, second * 4_096).unwrap();
        }
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), lines).unwrap();
    file
}

#[test]
fn the_policy_and_its_options_are_there() {
    let help = text(&run(&["simulate", "--help"]));
    assert!(
        help.contains("--night-wait <TIME>") && help.contains("--day-wait <TIME>") && help.contains("night"),
        "{help}"
    );
    let missing = run(&["simulate", "--policy", "night", "--night-wait", "1s", "x"]);
    assert_eq!(missing.status.code(), Some(64), "{missing:?}");
    assert!(String::from_utf8_lossy(&missing.stderr).contains("policy 'night' needs --day-wait"), "{missing:?}");
}

#[test]
fn it_reads_its_format_and_works_at_night_alone() {
    let trace = trace();
    let path = trace.path().to_str().unwrap();
    assert!(text(&run(&["trace", "formats"])).contains("plain"));
    let simulated = |night: &str, day: &str| {
        let waits = ["--night-wait", night, "--day-wait", day, "--request-size", "64KiB"];
        let all = [&["simulate", path, "--policy", "night", "--json"][..], &waits[..]].concat();
        let report: serde_json::Value = serde_json::from_str(&text(&run(&all))).unwrap();
        assert_eq!((report["format"].as_str(), report["policy"].as_str()), (Some("plain"), Some("night")));
        report["scrubbed_bytes"].as_f64().unwrap()
    };
    let (never, at_night, always) = (simulated("10h", "10h"), simulated("2s", "10h"), simulated("2s", "2s"));
    assert!(never == 0.0 && at_night > 0.0 && always > at_night, "{never} {at_night} {always}");
}

#[test]
fn it_is_compared_with_the_others() {
    let trace = trace();
    let compared = run(&["compare", trace.path().to_str().unwrap(), "--policies", "night,waiting", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&text(&compared)).unwrap();
    let points = report["points"].as_array().unwrap();
    let of = |name: &str| points.iter().filter(|point| point["policy"] == name).count();
    assert!(of("night") > 1 && of("waiting") > 1, "{report}");
    assert!(points.iter().any(|point| point["parameters"]["night_wait_s"].is_f64()), "{report}");
}
