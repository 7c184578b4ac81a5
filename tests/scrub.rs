//! `scrub` and its companions on a real block device: a loop device over the emulated disk.

mod common;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use common::bench::{Bench, MIB, PACE, bad_block};
use common::{run, stderr, stdout};
use idlewise::Bytes;
use idlewise_testbed::Options;
use rustix::process::Signal;
use serde_json::Value;

#[test]
fn root_scrub_finds_exactly_the_bad_blocks() {
    let bad = [100..103, 33_000..33_001, 131_000..131_072];
    let Some(bench) = Bench::new(64 * MIB, &bad, false) else { return };
    for monitor in ["bpf", "diskstats"] {
        let pace = ["--request-size", "1MiB", "--idle-wait", "1ms", "--restart", "--monitor", monitor];
        let (code, result) = bench.scrub(&pace);
        // Nobody else uses the device: what the monitor may see are our own requests.
        assert_eq!(result["measured"]["foreground_requests"], 0, "{monitor}");
        assert_eq!(code, 3, "{result}");
        assert_eq!((&result["state"], &result["monitor"]), (&"complete".into(), &monitor.into()));
        assert_eq!(result["verified_bytes"], 64 * MIB);
        let errors = result["errors"].as_array().unwrap();
        let found = errors.iter().map(|error| {
            assert_eq!(error["kind"], "io");
            let (lba, blocks) = (error["lba"].as_u64().unwrap(), error["blocks"].as_u64().unwrap());
            lba..lba + blocks
        });
        assert_eq!(found.collect::<Vec<_>>(), bad);
    }
}

#[test]
fn root_clean_device_is_clean_and_a_second_pass_begins_anew() {
    // Sizes that no request size divides.
    let Some(bench) = Bench::new(5 * MIB + 512 * 7, &[], false) else { return };
    for _ in 0..2 {
        let (code, result) = bench.scrub(&PACE);
        assert_eq!((code, &result["resumed_at_bytes"]), (0, &0.into()), "{result}");
        assert_eq!(result["verified_bytes"], 5 * MIB + 512 * 7);
        assert_eq!(bench.checkpoint().unwrap()["state"], "complete");
    }
}

/// Killed 200 times at random moments, the scrub goes on at or before the place that it had reached, has lost what five
/// seconds bring at most, has read every byte in the end, and has found every bad block once.
#[test]
fn root_200_times_kill_9_skip_no_byte() {
    const DISKS: u64 = 4;
    const KILLS: u64 = 200 / DISKS;
    let seed = u64::from(std::process::id());
    eprintln!("seed {seed}");
    std::thread::scope(|scope| {
        (0..DISKS).for_each(|disk| drop(scope.spawn(move || kill_9(seed * DISKS + disk, KILLS))));
    });
}

fn unix_s() -> u64 {
    std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs()
}

fn kill_9(seed: u64, kills: u64) {
    let bad = [4_000..4_003, 50_000..50_017, 2_900_000..2_900_001];
    let Some(bench) = Bench::new(1536 * MIB, &bad, true) else { return };
    let visited = || bench.checkpoint().map_or(0, |checkpoint| checkpoint["place"]["visited_bytes"].as_u64().unwrap());
    let read = || bench.disk.read_up_to();
    let mut random = seed;
    let mut reached = 0;
    for kill in 0..kills {
        let (scrub, began) = (bench.start(&PACE), unix_s());
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Most are killed before their second checkpoint, some after it.
        let time = if kill % 25 == 24 { 5_200 + (random >> 33) % 2_000 } else { 20 + (random >> 33) % 250 };
        std::thread::sleep(Duration::from_millis(time));
        let before = visited();
        scrub.kill();
        let (position, killed) = (visited(), unix_s());
        assert!(position >= reached.max(before) && position <= read(), "{position} after {reached}, read {}", read());
        // Nothing older than five seconds is lost, and a little for a request and the whole seconds.
        let saved = bench.checkpoint().map_or(0, |checkpoint| checkpoint["saved_unix_s"].as_u64().unwrap());
        assert!(saved < began || killed - saved <= 7, "saved {} s before it was killed", killed - saved);
        reached = position;
    }
    // Interrupted by request: what was done until then is kept.
    let scrub = bench.start(&PACE);
    // It has come further than those that were killed: until then it may not listen yet.
    bench.until_verified(reached + 8 * MIB);
    let asked = Instant::now();
    scrub.signal(Signal::TERM);
    // Of the unreadable blocks it has found some.
    assert_eq!(scrub.end().status.code(), Some(3));
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    let checkpoint = bench.checkpoint().unwrap();
    assert_eq!(checkpoint["state"], "interrupted");
    let (code, result) = bench.scrub(&["--request-size", "4MiB", "--idle-wait", "1ms"]);
    assert_eq!((code, &result["resumed_at_bytes"]), (3, &checkpoint["place"]["visited_bytes"]));
    assert_eq!(result["verified_bytes"], 1536 * MIB);
    assert_eq!(read(), 1536 * MIB);
    let found: Vec<_> = result["errors"].as_array().unwrap().iter().map(|e| e["lba"].as_u64().unwrap()).collect();
    assert_eq!(found, [4_000, 50_000, 2_900_000]);
}

/// A request that is never answered is told of, and does not keep the scrub from ending when it is asked to.
#[test]
fn root_a_hung_request_does_not_hang_the_scrub() {
    let options = Options { size: Bytes(64 * MIB), hang: Some(20_000), ..Options::default() };
    let Some(bench) = Bench::of(&options) else { return };
    let scrub = bench.start(&PACE);
    let state = bench.folder.path().to_str().unwrap();
    let until = Instant::now() + Duration::from_secs(40);
    let status = loop {
        let output = run(&["status", "--state-dir", state, "--json"]);
        let status = serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default();
        if status[0]["doing"] == "hung" {
            assert_eq!((output.status.code(), &status[0]["left_s"]), (Some(1), &Value::Null), "{status}");
            break status;
        }
        assert!(Instant::now() < until, "{status}");
        std::thread::sleep(Duration::from_millis(200));
    };
    assert_eq!((&status[0]["state"], &status[0]["verified_bytes"]), (&"running".into(), &(19 * 512 * 1024).into()));
    let asked = Instant::now();
    scrub.signal(Signal::TERM);
    let output = scrub.end();
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(result["failure"].as_str().unwrap().contains("has been in service"), "{result}");
    assert_eq!((&result["verified_bytes"], &result["errors"]), (&(19 * 512 * 1024).into(), &serde_json::json!([])));
    let said = stdout(&run(&["status", "--state-dir", state]));
    assert!(said.contains("has been in service"), "{said}");
}

/// Nor does one where other programs would have left a label, which is looked for first.
#[test]
fn root_a_hang_at_the_beginning_does_not_hang_the_scrub() {
    let options = Options { size: Bytes(64 * MIB), hang: Some(40), ..Options::default() };
    let Some(bench) = Bench::of(&options) else { return };
    let scrub = bench.start(&PACE);
    let state = bench.folder.path().to_str().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let output = run(&["status", "--state-dir", state, "--json"]);
        let status = serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default();
        if status[0]["doing"] == "hung" {
            break;
        }
        assert!(Instant::now() < until, "{status}");
        std::thread::sleep(Duration::from_millis(200));
    }
    scrub.signal(Signal::TERM);
    let asked = Instant::now();
    let output = scrub.end();
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
}

/// The staggered order finds the same blocks, and goes on where it was with its regions as they were.
#[test]
fn root_staggered_finds_the_same_and_resumes() {
    let bad = [10_000..10_004, 90_000..90_001];
    let Some(bench) = Bench::new(64 * MIB, &bad, true) else { return };
    let order = ["--order", "staggered", "--regions", "7", "--visit", "192KiB"];
    let pace = [&PACE[..], &order[..]].concat();
    let scrub = bench.start(&pace);
    bench.until_verified(MIB);
    scrub.signal(Signal::INT);
    scrub.end();
    let interrupted = bench.checkpoint().unwrap()["state"] == "interrupted";
    let (code, result) = bench.scrub(&pace);
    assert_eq!(code, 3, "{result}");
    assert_eq!((&result["order"], &result["verified_bytes"]), (&"staggered".into(), &(64 * MIB).into()));
    if interrupted {
        assert!(result["resumed_at_bytes"].as_u64().unwrap() > 0, "{result}");
    }
    let found: Vec<_> = result["errors"].as_array().unwrap().iter().map(|run| run["lba"].as_u64().unwrap()).collect();
    assert_eq!(found, [10_000, 90_000]);
    // An unfinished pass in one order is not finished in another by mistake.
    let scrub = bench.start(&pace);
    std::thread::sleep(Duration::from_millis(500));
    scrub.signal(Signal::INT);
    scrub.end();
    if bench.checkpoint().unwrap()["state"] == "interrupted" {
        let output = run(&bench.arguments(&PACE));
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("is in staggered"), "{}", stderr(&output));
    }
}

#[test]
fn root_two_scrubs_of_one_device_do_not_run_together() {
    let Some(bench) = Bench::new(256 * MIB, &[], true) else { return };
    let first = bench.start_and_watch(&PACE);
    let output = run(&bench.arguments(&PACE));
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("another idlewise is scrubbing it"), "{}", stderr(&output));
    // Nor with another folder of checkpoints.
    let elsewhere = tempfile::tempdir().unwrap();
    let state = elsewhere.path().to_str().unwrap();
    let output = run(&[&["scrub", bench.path(), "--state-dir", state], &PACE[..]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("another idlewise is scrubbing it"), "{}", stderr(&output));
    // Nor of what lies on it: each would take the other for the foreground.
    let on_it = Command::new("losetup").args(["--find", "--show", "--read-only", bench.path()]).output().unwrap();
    let on_it = String::from_utf8(on_it.stdout).unwrap();
    // What the page cache has is not read below.
    let cached = run(&[&["scrub", on_it.trim(), "--state-dir", state], &PACE[..]].concat());
    assert!(Command::new("losetup").args(["--direct-io=on", on_it.trim()]).status().unwrap().success());
    let output = run(&[&["scrub", on_it.trim(), "--state-dir", state], &PACE[..]].concat());
    first.signal(Signal::INT);
    assert_eq!(first.end().status.code(), Some(4));
    let after = run(&[&["scrub", on_it.trim(), "--state-dir", state], &PACE[..]].concat());
    assert!(Command::new("losetup").args(["--detach", on_it.trim()]).status().unwrap().success());
    assert_eq!((cached.status.code(), output.status.code()), (Some(64), Some(1)));
    assert!(stderr(&cached).contains("losetup --direct-io=on"), "{}", stderr(&cached));
    let said = stderr(&output);
    assert!(said.contains(&format!("a disk below {}: another idlewise is scrubbing it", on_it.trim())), "{said}");
    assert_eq!(after.status.code(), Some(0), "{}", stderr(&after));
}

/// A new pass does not forget what the last one found before it has been there itself.
#[test]
fn root_bad_blocks_stay_known_in_the_next_pass() {
    let bad = [50..51, 120_000..120_004];
    let Some(bench) = Bench::new(64 * MIB, &bad, true) else { return };
    assert_eq!(bench.scrub(&PACE).0, 3);
    let scrub = bench.start_and_watch(&PACE);
    scrub.signal(Signal::INT);
    assert_eq!(scrub.end().status.code(), Some(4));
    let status = ["status", "--state-dir", bench.folder.path().to_str().unwrap()];
    let known = run(&[&status[..], &["--json"]].concat());
    assert_eq!(known.status.code(), Some(3), "{}", stderr(&known));
    let known: Value = serde_json::from_slice(&known.stdout).unwrap();
    // For people, the blocks are listed for the devices that they ask for.
    let listed = stdout(&run(&[&status[..], &[bench.path()]].concat()));
    let line =
        "unreadable (io): blocks 120000 to 120003 (4 of 512 bytes), byte 61440000 of the device, LBA 120000 to 120003";
    assert!(
        listed.contains(line)
            && listed.contains("next: find out which files hold them")
            && listed.contains("`smartctl -x"),
        "{listed}"
    );
    assert!(!stdout(&run(&status)).contains("unreadable"));
    let both = serde_json::json!([bad_block(50, 1), bad_block(120_000, 4)]);
    assert_eq!(known[0]["errors"], both, "{known}");
    let (code, result) = bench.scrub(&PACE);
    assert_eq!((code, &result["errors"]), (3, &known[0]["errors"]));
    assert!(bench.checkpoint().unwrap()["errors_before"].is_null());
    // Until the disk is forgotten, by its path or its identity; with a wrong name beside it nothing is.
    let wrong = run(&[&status[..], &["--forget", bench.path(), "/dev/nothing"]].concat());
    assert_eq!(wrong.status.code(), Some(1), "{}", stderr(&wrong));
    let identity = known[0]["identity"].as_str().unwrap();
    let forgot = run(&[&status[..], &["--forget", identity]].concat());
    assert!(stdout(&forgot).ends_with("unreadable blocks that were known: 5\n"), "{}", stderr(&forgot));
    assert!(bench.checkpoint().is_none() && run(&status).status.code() == Some(2));
}

/// Reads of others are foreground: seen, waited for, and delayed by no more than one request. So they are where only counters are looked at,
/// although the disk serves them behind ours.
#[test]
fn root_foreground_is_seen_and_waited_for() {
    for monitor in ["bpf", "diskstats"] {
        let Some(bench) = Bench::new(512 * MIB, &[], true) else { return };
        let trace = bench.folder.path().join("foreground.csv");
        let lines = (0..60u64).map(|k| format!("{},f,0,Read,{},8192,0\n", k * 500_000, k * 7_340_032));
        std::fs::write(&trace, lines.collect::<String>()).unwrap();
        let pace = ["--request-size", "256KiB", "--idle-wait", "20ms", "--monitor", monitor];
        let scrub = bench.start_and_watch(&pace);
        let output = run(&["replay", trace.to_str().unwrap(), bench.path(), "--json"]);
        assert!(output.status.success(), "{}", stderr(&output));
        let replayed: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&replayed["requests"], &replayed["failed"]), (&60.into(), &0.into()));
        // The last one as well is known to be lost after a second or two.
        std::thread::sleep(Duration::from_millis(2_500));
        scrub.signal(Signal::INT);
        let result = scrub.end();
        assert_eq!(result.status.code(), Some(4), "{}", stderr(&result));
        let result: Value = serde_json::from_slice(&result.stdout).unwrap();
        let measured = &result["measured"];
        // A kernel may run no BPF program while it interrupts certain processes. What completes just then is missed, and told as lost.
        let [seen, lost] =
            [&measured["foreground_requests"], &result["lost_events"]].map(|count| count.as_u64().unwrap());
        assert!(seen <= 60 && seen + lost >= 60 && lost <= 2, "{result}");
        let collisions = measured["collisions"].as_u64().unwrap();
        let [mean, max] = ["mean_slowdown_s", "max_slowdown_s"].map(|field| measured[field].as_f64().unwrap());
        // Requests of 6.6 ms follow one another for 30 ms of every 50: most arrivals collide. How long each waits is the
        // machine's affair as well, which others use.
        assert!((20..=60).contains(&collisions), "{monitor}: {collisions}");
        assert!(mean > 0.0 && mean <= max, "{monitor}: {mean} {max}");
    }
}

/// A pace that would delay nearly every request is held within the mean slowdown asked for, but for one collision; and so is the
/// policy that tunes itself.
#[test]
fn root_the_budget_holds_whatever_the_pace() {
    let pace = ["--request-size", "256KiB", "--idle-wait", "1ms"];
    for (pace, watched) in [(&pace[..], 300), (&["--policy", "adaptive", "--observe", "1s"], 9_000)] {
        let Some(bench) = Bench::new(512 * MIB, &[], true) else { return };
        let trace = bench.folder.path().join("foreground.csv");
        let lines = (0..300u64).map(|k| format!("{},f,0,Read,{},8192,0\n", k * 200_000, k * 1_638_400));
        std::fs::write(&trace, lines.collect::<String>()).unwrap();
        let goal = ["--mean-slowdown", "300us", "--max-slowdown", "100ms"];
        // Where the machine stood still for a while, many requests came at once, and one collision delayed all of them.
        let mut plays = std::iter::repeat_with(|| {
            let scrub = bench.start_and_watch(&[pace, &goal[..], &["--restart"]].concat());
            std::thread::sleep(Duration::from_millis(watched));
            let output = run(&["replay", trace.to_str().unwrap(), bench.path(), "--json"]);
            assert!(output.status.success(), "{}", stderr(&output));
            scrub.signal(Signal::INT);
            let played: Value = serde_json::from_slice(&output.stdout).unwrap();
            let result: Value = serde_json::from_slice(&scrub.end().stdout).unwrap();
            (played["response_max_s"].as_f64().unwrap(), played["drift_max_s"].as_f64().unwrap(), result)
        });
        let even = plays.by_ref().take(5).find(|(longest, late, _)| *longest < 0.15 && *late < 0.04);
        let Some((_, _, result)) = even else { panic!("the machine stood still in each of five plays") };
        let measured = &result["measured"];
        let [mean, max] = ["mean_slowdown_s", "max_slowdown_s"].map(|field| measured[field].as_f64().unwrap());
        let requests = measured["foreground_requests"].as_f64().unwrap();
        assert!(requests >= 290.0 && result["verified_bytes"].as_u64().unwrap() > 0, "{result}");
        // One collision delays the request that it met and, where they queue up, a few behind it.
        assert!(mean * requests <= 0.0003 * requests + 4.0 * max, "{pace:?}: {measured}");
        assert!(max <= 0.1, "{pace:?}: {measured}");
    }
}

/// What comparing intervals finds is what the same requests show without a scrub and beside it.
#[test]
fn root_the_experiment_agrees_with_the_same_requests_alone() {
    let Some(bench) = Bench::new(512 * MIB, &[], true) else { return };
    let trace = bench.folder.path().join("foreground.csv");
    // Read at random: 7,919 and 1,024 have no common factor.
    let lines = (0..240u64).map(|k| format!("{},f,0,Read,{},8192,0\n", k * 500_000, k * 7_919 % 1_024 * 524_288));
    std::fs::write(&trace, lines.collect::<String>()).unwrap();
    let replay = || {
        let output = run(&["replay", trace.to_str().unwrap(), bench.path(), "--json"]);
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["mean_response_s"].as_f64().unwrap()
    };
    let alone = replay();
    // So wide a goal that the account never ends a turn.
    let goal = ["--mean-slowdown", "10ms", "--max-slowdown", "100ms"];
    let scrub = bench.start_and_watch(&[&["--request-size", "256KiB", "--idle-wait", "1ms"], &goal[..]].concat());
    let beside = replay();
    scrub.signal(Signal::INT);
    let result: Value = serde_json::from_slice(&scrub.end().stdout).unwrap();
    // Before and after, as the machine has other work at times.
    let independent = beside - (alone + replay()) / 2.0;
    let compared = &result["compared"];
    let [mean, low, high] = ["mean_slowdown_s", "low_s", "high_s"].map(|field| compared[field].as_f64().unwrap());
    assert!(low < mean && mean < high, "{compared}");
    assert!(compared["used"].as_u64() >= Some(100) && compared["left_alone"].as_u64() >= Some(8), "{compared}");
    println!("{independent} s with and without, {compared}");
    // Three times the interval: the same requests differ from time to time as well.
    assert!((independent - mean).abs() < 1.5 * (high - low), "{independent} s with and without, {compared}");
}

/// A device of which nothing can be read any more ends its scrub, and its silence is not taken for bad blocks.
#[test]
fn root_a_device_that_is_gone_is_no_bad_medium() {
    let Some(bench) = Bench::new(64 * MIB, &[0..100_000, 100_000..131_072], false) else { return };
    let output = run(&bench.arguments(&PACE));
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("nothing on it can be read any more"), "{}", stderr(&output));
    let checkpoint = bench.checkpoint().unwrap();
    assert_eq!((&checkpoint["state"], &checkpoint["place"]["visited_bytes"]), (&"failed".into(), &0.into()));
    assert_eq!(checkpoint["errors"], serde_json::json!([]));
    // The same blocks with a readable end are bad, all of them.
    let Some(bench) = Bench::new(2 * MIB, &[0..1_000, 1_000..4_000], false) else { return };
    let (code, result) = bench.scrub(&PACE);
    assert_eq!(code, 3);
    assert_eq!(result["errors"], serde_json::json!([bad_block(0, 4_000)]));
}

#[test]
fn root_nothing_is_written() {
    let Some(bench) = Bench::new(16 * MIB, &[500..501, 900..902], false) else { return };
    let name = Path::new(bench.path()).file_name().unwrap().to_str().unwrap().to_string();
    // Sectors read, writes and sectors written, since the loop device was first used by anyone.
    let counters = || {
        let stat = std::fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
        let fields: Vec<u64> = stat.split_whitespace().map(|word| word.parse().unwrap()).collect();
        (fields[2], fields[4], fields[6])
    };
    let before = counters();
    let (code, _) = bench.scrub(&PACE);
    assert_eq!(code, 3);
    let after = counters();
    assert_eq!((before.1, before.2), (after.1, after.2), "writes and sectors written");
    assert!((after.0 - before.0) * 512 >= 16 * MIB, "sectors read");
}

#[test]
fn what_cannot_be_scrubbed_is_said() {
    let cases: &[(&[&str], i32, &str)] = &[
        (&["scrub", "/dev/no-such-disk", "--request-size", "64KiB", "--idle-wait", "1ms"], 1, "no such device"),
        (&["scrub", "/dev/null", "--request-size", "64KiB", "--idle-wait", "1ms"], 1, "not a block device"),
        (&["scrub", "/dev/null"], 1, "not a block device"),
        (&["scrub", "/dev/null", "--mean-slowdown", "1ms"], 1, "not a block device"),
        (&["scrub", "/dev/null", "--mean-slowdown", "1ms", "--finish-within", "14d"], 64, "cannot be used with"),
        (&["scrub", "/dev/null", "--finish-within", "0"], 64, "--finish-within must be above zero"),
        (&["scrub", "/dev/null", "--for", "0"], 64, "--for must be above zero"),
        (&["scrub", "/dev/null", "--max-rate", "0MB/s"], 64, "--max-rate must be above zero"),
        (&["scrub", "/dev/null", "--jobs", "0"], 64, "--jobs"),
        (&["scrub", "/dev/null", "--request-size", "1GiB", "--idle-wait", "1ms"], 64, "at most 64 MiB"),
        (&["scrub", "/dev/null", "--plan", "/no/plan"], 1, "/no/plan: No such file"),
        (&["scrub", "/dev/null", "--plan", "p", "--mean-slowdown", "1ms"], 64, "cannot be used with"),
        (&["capture", "/dev/null", "--for", "1h", "--out", "/no/such/x.csv"], 1, "there is no folder /no/such"),
        (&["probe", "/no/disk"], 1, "no such device"),
    ];
    for (arguments, code, text) in cases {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(*code), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(text), "{arguments:?}: {}", stderr(&output));
        let lines = stderr(&output).lines().filter(|line| !line.is_empty()).count();
        assert!(*code == 64 || lines == 1, "{}", stderr(&output));
    }
}

#[test]
fn root_a_damaged_checkpoint_is_refused_and_restart_helps() {
    let Some(bench) = Bench::new(MIB, &[], false) else { return };
    assert_eq!(bench.scrub(&PACE).0, 0);
    let mut files = std::fs::read_dir(bench.folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let file = files.find(|path| path.extension().is_some_and(|e| e == "json")).unwrap();
    std::fs::write(&file, "{\"version\":1").unwrap();
    let output = run(&bench.arguments(&PACE));
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("damaged checkpoint"), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\"version\":1", "nothing is lost");
    assert_eq!(bench.scrub(&[&PACE[..], &["--restart"]].concat()).0, 0);
    std::fs::write(&file, "{\"version\":1").unwrap();
    let forgot = run(&["status", "--state-dir", bench.folder.path().to_str().unwrap(), bench.path(), "--forget"]);
    assert!(stdout(&forgot).ends_with("; its checkpoint was damaged\n") && !file.exists(), "{}", stderr(&forgot));
    let odd = run(&bench.arguments(&["--request-size", "1000B", "--idle-wait", "1ms"]));
    assert_eq!(odd.status.code(), Some(64));
    assert!(stderr(&odd).contains("no multiple of its 512 byte blocks"), "{}", stderr(&odd));
}
