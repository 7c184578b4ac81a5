//! `probe` on real block devices: loop devices over the emulated disk, and files.

mod common;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::bench::{Bench, Emulated, MIB};
use common::{idlewise, run, stderr, stdout};
use idlewise::Bytes;
use idlewise::disk::{DiskModel, Geometry, Interference};
use idlewise_testbed::{Options, Timing};
use rustix::process::Signal;
use serde_json::Value;

#[test]
fn root_probe_capture_and_learning_work_together() {
    let Some(bench) = Bench::new(512 * MIB, &[], true) else { return };
    let path = |name: &str| bench.folder.path().join(name).display().to_string();
    let model = path("disk.toml");
    let probe = || -> Value {
        let output = run(&["probe", bench.path(), "--out", &model, "--report", &path("probe.html"), "--json"]);
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    // A read waits for all that is left of a verify, here and on average.
    let waits_for_all = |found: &Value| {
        let part = found["interference"].as_array().unwrap().last().unwrap()["part"].as_f64().unwrap();
        (0.6..1.5).contains(&part)
    };
    let mut found = probe();
    // Where the machine stood still while reads were timed alone, they seem to wait for less: measured again.
    for _ in 0..2 {
        if !waits_for_all(&found) {
            found = probe();
        }
    }
    assert!(waits_for_all(&found), "{found}");
    assert_eq!((&found["verifier"], &found["answered_from_cache"]), (&"read".into(), &false.into()));
    let rate = |regions: u64| {
        let scans = found["scans_by_regions"].as_array().unwrap();
        scans.iter().find(|scan| scan["regions"] == regions).unwrap()["rate_bytes_per_s"].as_f64().unwrap()
    };
    // Figure 5: few regions cost seeks, many cost less than the rotation that a sequential scan misses.
    assert!(rate(4) < rate(1) && rate(512) > rate(4), "{found}");
    assert!(std::fs::read_to_string(path("probe.html")).unwrap().contains("Whether a verify reads the medium"));
    let text = std::fs::read_to_string(&model).unwrap();
    let model = DiskModel::from_toml(&text).unwrap();
    let milliseconds = |kib| model.verify_time(Bytes::from_kib(kib)).as_secs_f64() * 1e3;
    // A rotation of 4 ms and 64 KiB or 4 MiB at about 100 MB/s; a loaded machine adds to that.
    assert!((4.0..20.0).contains(&milliseconds(64)), "{text}");
    assert!((40.0..150.0).contains(&milliseconds(4096)), "{text}");

    let trace = path("foreground.csv");
    let lines = (0..80u64).map(|k| format!("{},f,0,Write,{},8192,0\n", k * 300_000, k * 4_341_760));
    std::fs::write(&trace, lines.collect::<String>()).unwrap();
    let mut capture = idlewise(&["capture", bench.path(), "--for", "3s", "--out", &path("captured.csv.gz")]);
    let capture = capture.stdout(Stdio::piped()).spawn().unwrap();
    let goal = ["--mean-slowdown", "2ms", "--max-slowdown", "30ms", "--observe", "2s"];
    let scrub = bench.start(&goal);
    std::thread::sleep(Duration::from_millis(300));
    let output = run(&["replay", &trace, bench.path(), "--allow-writes"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let captured = stdout(&capture.wait_with_output().unwrap());
    let words: Vec<&str> = captured.split_whitespace().collect();
    let count = words.iter().position(|word| *word == "requests;").map(|at| words[at - 1].parse::<u64>().unwrap());
    // The scrub's first requests may be among them: to another process they are foreground.
    assert!(count.is_some_and(|count| count >= 80), "{captured}");
    // An interval that is left alone to compare with is so for up to 10 s. What was too much on a slow machine, more requests
    // have to make up for.
    let nothing_yet = || bench.checkpoint().is_none_or(|saved| saved["place"]["visited_bytes"] == 0);
    let until = Instant::now() + Duration::from_secs(100);
    while nothing_yet() && Instant::now() < until {
        let again = Instant::now() + Duration::from_secs(12);
        while nothing_yet() && Instant::now() < again {
            std::thread::sleep(Duration::from_millis(200));
        }
        if nothing_yet() {
            run(&["replay", &trace, bench.path()]);
        }
    }
    scrub.signal(Signal::INT);
    let output = scrub.end();
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(result["verified_bytes"].as_u64().unwrap() > 0, "{result}");
    // More cannot be read within the maximum, even where a late machine finds the right sector under the head.
    let most = Geometry::fifteen_k(Bytes(512 * MIB)).outer_rate.0 * 30 / 1000;
    assert!(result["request_size_bytes"].as_u64().unwrap() <= most, "{result}");
    assert_eq!(result["target"]["max_slowdown_s"], 0.03);
}

/// A drive of many dies serves a read beside a verify that occupies some of them; a plan for it counts with that.
#[test]
fn root_reads_pass_the_verifies_of_a_solid_state_drive() {
    let timing = Timing::Flash { slower: 20 };
    let Some(bench) = Bench::of(&Options { size: Bytes(512 * MIB), timing, ..Options::default() }) else { return };
    let path = |name: &str| bench.folder.path().join(name).display().to_string();
    let model = path("disk.toml");
    let probe = || -> Value {
        let output = run(&["probe", bench.path(), "--out", &model, "--json"]);
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let pass = |found: &Value| {
        let parts = found["interference"].as_array().unwrap().iter().map(|one| one["part"].as_f64().unwrap());
        let parts: Vec<f64> = parts.collect();
        // The larger ones occupy all dies.
        parts.len() == 7 && parts[0] < 0.45 && parts.iter().sum::<f64>() / 7.0 < 0.75
    };
    let mut found = probe();
    // As above, it is measured again where the machine stood still.
    for _ in 0..2 {
        if !pass(&found) {
            found = probe();
        }
    }
    assert!(pass(&found), "{found}");

    // A quarter and all of it for every size, so that the rest does not depend on what was measured here.
    let text = std::fs::read_to_string(&model).unwrap();
    let measured = DiskModel::from_toml(&text).unwrap();
    let interfering = |part: f64| {
        let mut disk = measured.clone();
        disk.verify.iter_mut().for_each(|point| point.interference = Interference::new(part));
        let file = path(&format!("{part}.toml"));
        std::fs::write(&file, disk.to_toml()).unwrap();
        file
    };
    let trace = path("trace.csv");
    let lines =
        (0..2_000u64).map(|k| format!("{},f,0,Read,{},8192,20000\n", k * 100_000 + k * k % 77 * 900, k * 8_192));
    std::fs::write(&trace, lines.collect::<String>()).unwrap();
    let mean = |model: &str| {
        let output = run(&["simulate", &trace, "--policy", "back-to-back", "--disk", model, "--json"]);
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["mean_slowdown_s"].as_f64().unwrap()
    };
    let (quarter, all) = (mean(&interfering(0.25)), mean(&interfering(1.0)));
    // Not in proportion: what a smaller delay leaves of the next interval is used as well.
    assert!(0.0 < quarter && quarter < all, "{quarter} {all}");
}

/// Whoever may read a file may probe it.
#[test]
fn a_file_is_probed_without_privilege() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, vec![1; 32 << 20]).unwrap();
    let output = run(&["probe", file.to_str().unwrap(), "--json"]);
    if stderr(&output).contains("has no direct I/O") {
        eprintln!("SKIPPED: the file system has no direct I/O");
        return;
    }
    assert!(output.status.success(), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["verifier"], "read");
    assert!(found["read"]["rate"].is_string() && found["service"].as_array().unwrap().len() >= 8, "{found}");
    std::fs::write(&file, "short").unwrap();
    let output = run(&["probe", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("too little to measure"), "{}", stderr(&output));
}

/// Blocks that cannot be read are said, and leave the rest measured.
#[test]
fn root_blocks_that_cannot_be_read_are_said() {
    let Some(disk) = Emulated::new(&["--size", "64MiB", "--instant", "--bad", "14336:8"]) else { return };
    let output = run(&["probe", disk.path(), "--json"]);
    let (said, found) = (stderr(&output), serde_json::from_slice::<Value>(&output.stdout).unwrap());
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("met blocks that cannot be read") && said.contains("idlewise scrub /dev/loop"), "{said}");
    assert!(found["unreadable_requests"].as_u64() > Some(0), "{found}");
    assert!(found["service"].as_array().unwrap().len() >= 8, "{found}");
}

/// What the disk has not answered when a recording ends cannot be in its trace, and is said.
#[test]
fn root_what_is_not_answered_when_a_recording_ends_is_said() {
    let Some(disk) = Emulated::new(&["--size", "64MiB", "--instant", "--hang", "80"]) else { return };
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let trace = folder.path().join("trace.csv").display().to_string();
    let device = format!("if={}", disk.path());
    let reads = |options: &[&str]| {
        let mut command = Command::new("dd");
        command.args([&device, "of=/dev/null", "iflag=direct", "bs=4096", "status=none"]).args(options);
        command.spawn().unwrap()
    };
    let capture = idlewise(&["capture", disk.path(), "--for", "5s", "--json", "--out", &trace]);
    let capture = { capture }.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(2));
    assert!(reads(&["count=4"]).wait().unwrap().success());
    let mut hangs = reads(&["count=1", "skip=10"]);
    let output = capture.wait_with_output().unwrap();
    drop(disk);
    hangs.wait().unwrap();
    let said = stderr(&output);
    if said.contains("bpf") {
        eprintln!("SKIPPED: {said}");
        return;
    }
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!([&found["requests"], &found["outstanding"]], [4, 1].map(Value::from).each_ref(), "{found} {said}");
}
