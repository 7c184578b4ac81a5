//! What a scrub is held to, and how it says where it stands: goals, time, rate, turns, and the exit code of `status`.

mod common;

use std::process::Stdio;
use std::time::{Duration, Instant};

use common::bench::{Bench, Loop, MIB, PACE, Running};
use common::{idlewise, run, stderr, stdout};
use rustix::process::Signal;
use serde_json::Value;

fn unix_s() -> u64 {
    std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs()
}

/// The exit code of `status` is for monitoring: it says the worst of all devices that are shown.
#[test]
fn status_says_the_worst_by_its_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, state: &str, errors: &str, completed: Option<u64>| {
        let completed = completed.map_or("null".into(), |at| at.to_string());
        let text = format!(
            r#"{{"version":3,"identity":"wwn-{name}","device":"/dev/{name}","device_bytes":1048576,"block_bytes":512,
            "marks":{{"start_bytes":1048576,"partition_uuid":null,"boot_id":"b","diskseq":7}},"order":{{"name":"sequential"}},
            "place":{{"visited_bytes":524288,"course_bytes":524288}},"state":"{state}","errors":[{errors}],
            "started_unix_s":1,"saved_unix_s":2,"completed_unix_s":{completed}}}"#
        );
        std::fs::write(folder.path().join(format!("{name}.json")), text).unwrap();
    };
    let bad = r#"{"lba":100,"blocks":3,"kind":"medium"}"#;
    write("clean", "complete", "", Some(unix_s() - 86_400));
    write("bad1", "complete", bad, Some(unix_s() - 60));
    write("failed", "failed", "", Some(unix_s() - 60));
    write("old", "interrupted", "", Some(unix_s() - 40 * 86_400));
    write("never", "interrupted", "", None);
    let folder = folder.path().to_str().unwrap();
    let status = |more: &[&str]| run(&[&["status", "--state-dir", folder], more].concat());
    let month = ["--older-than", "35d"];
    for (devices, code, with_limit) in [
        (&["/dev/clean"][..], 0, 0),
        (&["/dev/old"], 0, 5),
        (&["/dev/never"], 0, 5),
        (&["/dev/old", "/dev/bad1"], 3, 3),
        (&[], 1, 1),
    ] {
        assert_eq!(status(devices).status.code(), Some(code), "{devices:?}");
        assert_eq!(status(&[devices, &month[..]].concat()).status.code(), Some(with_limit), "{devices:?}");
    }
    let shown = stdout(&status(&["/dev/bad1", "/dev/old", "/dev/never", "--older-than", "35d"]));
    let block = "/dev/bad1: unreadable (medium): blocks 100 to 102 (3 of 512 bytes), byte 51200 of the device, LBA 2148 to 2150 of \
                 the whole disk\n/dev/bad1: next: ";
    assert!(shown.contains(block) && shown.contains("50.0 %"), "{shown}");
    assert!(shown.contains("never, overdue\n") && shown.matches(", overdue").count() == 2, "{shown}");
    assert!(!stdout(&status(&[])).contains("blocks 100"));
}

/// A terminal that goes ends a scrub as an interrupt does, but not under nohup.
#[test]
fn root_a_hangup_ends_a_scrub_in_good_order() {
    let Some(bench) = Bench::new(512 * MIB, &[], true) else { return };
    let state = || bench.checkpoint().map(|checkpoint| checkpoint["state"].clone());
    let wait_until_running = || {
        let until = Instant::now() + Duration::from_secs(10);
        while state() != Some("running".into()) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(300));
    };
    // However late this test is, it is not over by then.
    let pace = [&PACE[..], &["--max-rate", "32MB/s"]].concat();
    let scrub = bench.start(&pace);
    wait_until_running();
    scrub.signal(Signal::HUP);
    assert_eq!((scrub.end().status.code(), state()), (Some(4), Some("interrupted".into())));
    let mut nohup = std::process::Command::new("nohup");
    nohup.arg(env!("CARGO_BIN_EXE_idlewise")).args(bench.arguments(&pace));
    let mut scrub = Running::new(nohup);
    wait_until_running();
    scrub.signal(Signal::HUP);
    std::thread::sleep(Duration::from_millis(500));
    assert!(!scrub.is_over(), "ended by a hangup that is ignored");
    scrub.signal(Signal::INT);
    assert_eq!(scrub.end().status.code(), Some(4));
}

/// A size that was asked for is cut to what the maximum slowdown allows on this disk; where it allows none, that is said.
#[test]
fn root_no_request_takes_longer_than_the_maximum_slowdown() {
    let Some(bench) = Bench::new(512 * MIB, &[], true) else { return };
    let goal =
        |max| ["--request-size", "4MiB", "--idle-wait", "1ms", "--mean-slowdown", "500ms", "--max-slowdown", max];
    let output = run(&bench.arguments(&[&goal("15ms")[..], &["--for", "4s"]].concat()));
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(stderr(&output).contains("larger ones take longer than the 15.0 ms"), "{}", stderr(&output));
    // Of 4 MiB each took 50 ms.
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let (verified, elapsed) = (result["verified_bytes"].as_f64().unwrap(), result["elapsed_s"].as_f64().unwrap());
    assert!(verified > 10e6 * elapsed, "{result}");
    // No disk can do that.
    let output = run(&bench.arguments(&goal("1us")));
    assert_eq!(output.status.code(), Some(64), "{}", stderr(&output));
    // Where even the smallest take too long, it waits, and tries one now and then.
    let Some(bench) = Bench::new(512 * MIB, &[], true) else { return };
    let output = run(&bench.arguments(&[&goal("50us")[..], &["--for", "8s"]].concat()));
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(stderr(&output).contains("even its smallest requests take longer than the 50.0 us"), "{}", stderr(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!((3..=8).contains(&(result["verified_bytes"].as_u64().unwrap() >> 16)), "{result}");
    assert!(result["time_s"]["too-slow"].as_f64().unwrap() > 6.0, "{result}");
}

/// An account that holds too little is the reason that is shown, with its balance, in status and in the result.
#[test]
fn root_a_pause_for_the_goal_is_said() {
    // Where the one collision comes just before the end of a request it costs next to nothing: then it is tried once more.
    let tried = (0..4).any(|_| a_pause_for_the_goal().unwrap_or(true));
    assert!(tried, "each of four collisions cost less than a millisecond");
}

/// Whether the account lacked enough to say so; nothing where there is no disk.
fn a_pause_for_the_goal() -> Option<bool> {
    let bench = Bench::new(512 * MIB, &[], true)?;
    let trace = bench.folder.path().join("foreground.csv");
    let lines = (0..100u64).map(|k| format!("{},f,0,Read,{},8192,0\n", k * 200_000, k * 1_638_400));
    std::fs::write(&trace, lines.collect::<String>()).unwrap();
    // One collision costs what thousands of requests earn.
    let goal = ["--mean-slowdown", "1us", "--max-slowdown", "1s"];
    let scrub = bench.start_and_watch(&[&["--request-size", "8MiB", "--idle-wait", "1ms"], &goal[..]].concat());
    let output = run(&["replay", trace.to_str().unwrap(), bench.path(), "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let state = bench.folder.path().to_str().unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    let status = loop {
        let status = common::json(&["status", "--state-dir", state, "--json"]);
        if status[0]["doing"] == "overdrawn" || Instant::now() > until {
            break status;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    let account = &status[0]["run"]["account"];
    assert_eq!(status[0]["doing"], "overdrawn", "{status}");
    // Each request earns 1 us, and those that are left of the first 500 take back 80 to 100 us.
    let lacks = account["lacks_s"].as_f64().unwrap() * 1e6;
    let requests = account["requests_to_go_on"].as_f64().unwrap();
    if lacks <= 1_000.0 {
        scrub.signal(Signal::INT);
        scrub.end();
        return Some(false);
    }
    assert!((79.0..101.0).contains(&(requests - lacks)), "{status}");
    let shown = stdout(&run(&["status", "--state-dir", state]));
    assert!(shown.contains("paused for the goal: mean slowdown ") && shown.contains("goal 1.00 us"), "{shown}");
    scrub.signal(Signal::INT);
    let result: Value = serde_json::from_slice(&scrub.end().stdout).unwrap();
    assert_eq!(
        (&result["mean_slowdown_kept"], &result["max_slowdown_kept"]),
        (&false.into(), &true.into()),
        "{result}"
    );
    assert!(result["account"]["balance_s"].as_f64().unwrap() < 0.0, "{result}");
    // All of the time is accounted for, and the pause is not taken for something else.
    let time = |doing: &str| result["time_s"][doing].as_f64().unwrap_or(0.0);
    let all: f64 = result["time_s"].as_object().unwrap().values().map(|time| time.as_f64().unwrap()).sum();
    assert!((all - result["elapsed_s"].as_f64().unwrap()).abs() < 0.5, "{result}");
    assert!(time("overdrawn") > 1.0 && time("idle-wait") < 1.0, "{result}");
    assert_eq!(bench.checkpoint().unwrap()["run"]["account"], result["account"]);
    Some(true)
}

/// A pace that would slow half of the requests is held to one in a hundred, but for one collision.
#[test]
fn root_a_99th_percentile_is_held_by_its_account() {
    let Some(bench) = Bench::new(512 * MIB, &[], true) else { return };
    let trace = bench.folder.path().join("foreground.csv");
    let lines = (0..300u64).map(|k| format!("{},f,0,Read,{},8192,0\n", k * 200_000, k * 1_638_400));
    std::fs::write(&trace, lines.collect::<String>()).unwrap();
    let goal = ["--mean-slowdown", "100ms", "--p99-slowdown", "500us", "--max-slowdown", "1s"];
    let scrub = bench.start_and_watch(&[&["--request-size", "256KiB", "--idle-wait", "1ms"], &goal[..]].concat());
    let output = run(&["replay", trace.to_str().unwrap(), bench.path(), "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    scrub.signal(Signal::INT);
    let result: Value = serde_json::from_slice(&scrub.end().stdout).unwrap();
    let requests = result["measured"]["foreground_requests"].as_f64().unwrap();
    let slowed = result["measured"]["slowed_share"].as_f64().unwrap() * requests;
    assert!(requests >= 290.0 && result["time_s"]["overdrawn"].as_f64().unwrap() > 1.0, "{result}");
    // One collision slows the request that it met and, where they queue up, a few behind it.
    assert!(slowed >= 2.0 && 100.0 * slowed <= requests + 100.0 * 4.0, "{slowed}: {result}");
    let balance = requests - 100.0 * slowed;
    assert_eq!(result["account"]["balance_requests"].as_f64().unwrap(), balance.round(), "{result}");
    assert_eq!(result["p99_slowdown_kept"], 100.0 * slowed <= requests, "{result}");
    assert_eq!((&result["target"]["p99_slowdown_s"], &result["mean_slowdown_kept"]), (&0.0005.into(), &true.into()));
}

/// A scrub stops when its time is over, keeps below a rate, and goes on with the pass at the next run.
#[test]
fn root_a_run_is_limited_in_time_and_in_rate() {
    let Some(bench) = Bench::new(64 * MIB, &[], false) else { return };
    let state = bench.folder.path().to_str().unwrap();
    let limits = ["--for", "2s", "--max-rate", "4MB/s", "--json"];
    let output = run(&[&["scrub", bench.path(), "--state-dir", state], &PACE[..], &limits].concat());
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    let line = "the time of --for is over; the next run goes on with the pass";
    assert!(stderr(&output).contains(line) && !stderr(&output).contains("goal:"), "{}", stderr(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let (bytes, elapsed) = (result["verified_bytes"].as_u64().unwrap(), result["elapsed_s"].as_f64().unwrap());
    // The first request of 512 KiB is not waited for.
    assert!(bytes > 0 && bytes as f64 <= 4e6 * elapsed + 524_288.0, "{result}");
    assert!(elapsed < 20.0 && result["time_s"]["rate-limit"].as_f64().unwrap() > elapsed / 2.0, "{result}");
    let (code, result) = bench.scrub(&PACE);
    assert_eq!((code, result["resumed_at_bytes"].as_u64().unwrap()), (0, bytes), "{result}");
}

/// Two disks take turns where one may be scrubbed at a time.
#[test]
fn root_no_more_disks_than_jobs_at_once() {
    let (Some(one), Some(two)) = (Bench::new(32 * MIB, &[], true), Bench::new(32 * MIB, &[], true)) else { return };
    let state = one.folder.path().to_str().unwrap();
    let began = Instant::now();
    let both = ["scrub", one.path(), two.path(), "--state-dir", state, "--json", "--quiet", "--jobs", "1"];
    let results = common::json(&[&both[..], &PACE].concat());
    let elapsed: f64 = (0..2).map(|disk| results[disk]["elapsed_s"].as_f64().unwrap()).sum();
    assert!(elapsed > 0.3 && began.elapsed().as_secs_f64() >= elapsed, "{:?}: {results}", began.elapsed());
}

/// Without a goal there is one by the kind of disk, which is said; with a time to finish, it is chosen for that.
#[test]
fn root_a_goal_is_found_where_none_is_given() {
    let Some(bench) = Bench::new(512 * MIB, &[], true) else { return };
    let dry = common::json(&["scrub", bench.path(), "--dry-run", "--json"]);
    assert_eq!((&dry[0]["mean_slowdown_s"], &dry[0]["max_slowdown_s"]), (&0.001.into(), &0.05.into()), "{dry}");
    let trace = bench.folder.path().join("foreground.csv");
    let lines = (0..900u64).map(|k| format!("{},f,0,Read,{},8192,0\n", k * 1_000_000, k * 409_600));
    std::fs::write(&trace, lines.collect::<String>()).unwrap();
    let state = bench.folder.path().to_str().unwrap();
    let said = bench.folder.path().join("said");
    let until_it_says = |more: &[&str], text: &str| {
        let mut command = idlewise(&[&["scrub", bench.path(), "--state-dir", state, "--restart"], more].concat());
        command.stdout(Stdio::null()).stderr(std::fs::File::create(&said).unwrap());
        let mut scrub = command.spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        let read = || std::fs::read_to_string(&said).unwrap();
        while !read().contains(text) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(50));
        }
        rustix::process::kill_process(rustix::process::Pid::from_child(&scrub), Signal::INT).unwrap();
        let code = scrub.wait().unwrap().code();
        assert!(read().contains(text), "{}", read());
        assert!(matches!(code, Some(0 | 4)), "{code:?}");
    };
    until_it_says(&[], "goal: mean slowdown 1.00 ms, max 50.0 ms (the default for a hard disk)\n");
    until_it_says(
        &["--mean-slowdown", "2ms", "--observe", "0s"],
        "goal: mean slowdown 2.00 ms, max 50.0 ms (the default max",
    );
    until_it_says(
        &["--finish-within", "1h", "--observe", "0s"],
        "too little foreground was seen to choose a mean slowdown",
    );
    let replay = Running::new(idlewise(&["replay", trace.to_str().unwrap(), bench.path(), "--json"]));
    until_it_says(&["--finish-within", "1h", "--observe", "4s"], ": the smallest mean with which the pass ends by 2");
    until_it_says(&["--finish-within", "1s", "--observe", "4s"], "the pass cannot end by ");
    replay.kill();
}

/// Disks whose labels name one ZFS pool are scrubbed one after the other, and what is bad on one is ZFS's to repair. The labels are
/// made by hand: there is no ZFS here.
#[test]
fn root_members_of_a_pool_take_turns() {
    use std::os::unix::fs::FileExt;
    let folder = tempfile::tempdir().unwrap();
    let size = 32 * MIB;
    let member = |name: &str, pool: &str| {
        let path = folder.path().join(name);
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(size).unwrap();
        let label = common::zfs_label::label(pool, 7);
        [0, size - (256 << 10)].into_iter().for_each(|at| file.write_all_at(&label, at).unwrap());
        Loop::new(&path, &[])
    };
    let (Some(one), Some(two), Some(other)) = (member("one", "tank"), member("two", "tank"), member("other", "x"))
    else {
        return;
    };
    let state = folder.path().join("state").display().to_string();
    let all = ["scrub", one.path(), two.path(), other.path(), "--state-dir", &state, "--json", "--quiet"];
    let dry = common::json(&[&all[..], &["--dry-run"]].concat());
    let arrays = [0, 1, 2].map(|disk| dry[disk]["arrays"].clone());
    assert_eq!(arrays, [["zpool tank"], ["zpool tank"], ["zpool x"]].map(|array| serde_json::json!(array)), "{dry}");
    // 2 s for each: two for the pool, beside which the third goes on.
    let began = Instant::now();
    let results = common::json(
        &[&all[..], &["--request-size", "512KiB", "--idle-wait", "30ms", "--max-rate", "16MB/s"]].concat(),
    );
    let elapsed = [0, 1].map(|disk| results[disk]["elapsed_s"].as_f64().unwrap()).iter().sum::<f64>();
    assert!(elapsed > 2.0 && began.elapsed().as_secs_f64() >= elapsed, "{:?}: {results}", began.elapsed());
    let checkpoints = std::fs::read_dir(&state).unwrap().map(|entry| entry.unwrap().path());
    let texts = checkpoints.filter(|path| path.extension().is_some_and(|end| end == "json"));
    let members = texts.filter(|path| {
        let pass: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        pass["member_of"] == serde_json::json!({"zfs": "tank"})
    });
    assert_eq!(members.count(), 2);
}
