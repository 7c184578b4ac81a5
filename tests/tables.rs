//! Tables fit a terminal of 80 columns for usual values: what has no room is in `--json` and `--csv`.

mod common;

use std::path::Path;

use common::bench::{Bench, MIB};
use common::{real_trace, run, stderr, stdout};

/// Four days of three volumes: bursts of reads and writes, and idle times from milliseconds to hours.
fn made_up(folder: &Path) -> String {
    let (mut lines, mut seed) = (String::new(), 1u64);
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut now = 128_166_372_003_061_629u64;
    for _ in 0..3_000 {
        // In 100 ns.
        now += [30_000, 2_000_000, 40_000_000, 1_500_000_000, 9_000_000_000][random(5) as usize] * (1 + random(9)) / 5;
        let (volume, op) = (random(3), ["Read", "Write"][random(2) as usize]);
        for request in 0..1 + random(6) {
            let (offset, size) = (random(1 << 24) * 4096, 4096 * (1 + random(16)));
            lines +=
                &format!("{},web,{volume},{op},{offset},{size},{}\n", now + request * 7_000, 20_000 + random(90_000));
        }
    }
    let path = folder.join("web.csv");
    std::fs::write(&path, lines).unwrap();
    path.to_str().unwrap().into()
}

/// Runs a command, and holds the lines whose columns are two spaces apart to 80 columns; how many there were.
#[track_caller]
fn narrow(command: &[&str]) -> usize {
    narrow_with(0, command)
}

/// The same of one that ends with this code.
#[track_caller]
fn narrow_with(code: i32, command: &[&str]) -> usize {
    let output = run(command);
    assert_eq!(output.status.code(), Some(code), "{command:?}: {}", stderr(&output));
    let text = stdout(&output);
    let table: Vec<&str> = text.lines().filter(|line| line.trim_start().contains("  ")).collect();
    for line in &table {
        assert!(line.chars().count() <= 80, "{command:?}: {} columns:\n{line}\nof\n{text}", line.chars().count());
    }
    assert!(table.len() > 1, "{command:?}: no table in\n{text}");
    table.len()
}

#[test]
fn tables_of_a_trace_fit_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let made_up = made_up(folder.path());
    let real = real_trace("msr/wdev_1.csv").map(|path| path.to_str().unwrap().to_string());
    let traces: Vec<String> = real.into_iter().chain([made_up]).collect();
    const GOAL: [&str; 4] = ["--mean-slowdown", "1ms", "--max-slowdown", "50ms"];
    let commands: [&[&str]; 24] = [
        &["idle"],
        &["idle", "--by-volume"],
        &["simulate", "--idle-wait", "100ms", "--request-size", "512KiB"],
        &["simulate", "--idle-wait", "100ms", "--request-size", "512KiB", "--by-volume"],
        &["simulate", "--idle-wait", "100ms", "--request-size", "512KiB", "--parity", "--by-volume"],
        &["simulate", "--grid", "64KiB,512KiB,1216KiB", "1ms..10s"],
        &[&["tune"], &GOAL[..]].concat(),
        &[&["tune", "--any-moment"], &GOAL[..]].concat(),
        &[&["tune", "--p99-slowdown", "10ms"], &GOAL[..]].concat(),
        &[&["tune", "--p99-slowdown", "10ms", "--train", "0.5"], &GOAL[..]].concat(),
        &[&["tune", "--by-volume"], &GOAL[..]].concat(),
        &[&["tune", "--by-volume", "--p99-slowdown", "10ms"], &GOAL[..]].concat(),
        &["tune", "--by-volume", "--finish-within", "60d"],
        &["compare"],
        &["compare", "--train", "0.5"],
        &["compare", "--policies", "waiting,ar,ar-waiting,oracle,lossless-waiting,fixed-delay,cfq-idle,back-to-back"],
        &["explore"],
        &["explore", "--train", "0.5"],
        &["explore", "--verify-writes", "--buffer", "2"],
        &["sample"],
        &["reliability"],
        &["trace", "stats", "--by-volume"],
        &["trace", "info"],
        &["trace", "head"],
    ];
    for trace in &traces {
        for command in commands {
            narrow(&[command, &[trace]].concat());
        }
    }
    let all: Vec<&str> = traces.iter().map(String::as_str).collect();
    // Traces side by side, as many as there are.
    narrow(&[&["idle"][..], &all, &all, &all].concat());
    narrow(&["reliability", "--scan-time", "1d"]);
}

#[test]
fn root_tables_of_a_disk_fit_a_terminal() {
    let Some(bench) = Bench::new(256 * MIB, &[4096..4100, 70_000..70_001], true) else { return };
    let state = bench.folder.path().to_str().unwrap();
    let pace = ["--request-size", "1MiB", "--idle-wait", "1ms"];
    narrow(&["scrub", bench.path(), "--state-dir", state, "--dry-run"]);
    narrow(&["scrub", bench.path(), "--state-dir", state, "--dry-run", "--p99-slowdown", "10ms"]);
    let output = run(&[&["scrub", bench.path(), "--state-dir", state, "--quiet"], &pace[..]].concat());
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(3), "{text}{}", stderr(&output));
    assert!(text.lines().filter(|line| line.contains("   ")).all(|line| line.chars().count() <= 80), "{text}");
    let status = stdout(&run(&["status", "--state-dir", state]));
    assert!(status.starts_with("device") && status.lines().take(2).all(|line| line.chars().count() <= 80), "{status}");
    // It meets blocks that cannot be read.
    narrow_with(3, &["probe", bench.path()]);
}

/// What a disk model cannot keep is refused before the first request, and by a dry run in the same words.
#[test]
fn root_a_dry_run_refuses_what_the_run_would() {
    let Some(bench) = Bench::new(64 * MIB, &[], false) else { return };
    let scrub =
        ["scrub", bench.path(), "--state-dir", bench.folder.path().to_str().unwrap(), "--quiet", "--disk", "15k"];
    let goal = ["--mean-slowdown", "1ms", "--max-slowdown", "2ms"];
    let said = |more: &[&str]| {
        let output = run(&[&scrub[..], &goal, more].concat());
        (output.status.code(), stderr(&output), stdout(&output))
    };
    let dry = said(&["--dry-run"]);
    assert!(dry.1.contains("a maximum slowdown of 2.00 ms is below the 4.80 ms of the smallest request"), "{dry:?}");
    assert_eq!(dry, said(&[]));
}
