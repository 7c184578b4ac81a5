//! What must not keep a scrub from its first request, nor pass for the device that it began with. On real block devices.

mod common;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::bench::{Bench, Loop, MIB, Mounted, PACE, Running};
use common::{idlewise, stderr, stdout};
use idlewise::{Bytes, Nanos};
use idlewise_linux::device::Device;
use idlewise_testbed::{Options, Timing};
use rustix::process::Signal;
use serde_json::Value;

/// Reads that fail slowly say nothing of the time that others take: a dead stretch where the disk is measured is scrubbed past.
#[test]
fn root_a_dead_stretch_where_the_disk_is_measured_is_scrubbed_past() {
    const SIZE: u64 = 256 * MIB;
    let first = SIZE / 10 / MIB * MIB / 512;
    let options = Options {
        size: Bytes(SIZE),
        bad_blocks: std::iter::once(first..first + 4_096).collect(),
        recovery: Nanos::from_millis(100),
        timing: Timing::HardDisk { queue: 1 },
        ..Options::default()
    };
    let Some(bench) = Bench::of(&options) else { return };
    let (code, result) = bench.scrub(&["--observe", "1s", "--for", "8s"]);
    assert!([3, 4].contains(&code) && result["verified_bytes"].as_u64() > Some(0), "{result}");
    // What keeps a run from its first request is seen later.
    let short = ["--disk", "15k", "--max-slowdown", "1ms", "--mean-slowdown", "1us", "--restart"];
    let output = common::run(&bench.arguments(&short));
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let checkpoint = bench.checkpoint().unwrap();
    assert_eq!(checkpoint["state"], "failed");
    assert!(
        checkpoint["run"]["failure"].as_str().unwrap().contains("a maximum slowdown of 1.00 ms is below"),
        "{checkpoint}"
    );
}

/// A disk that is too slow for the goal may be so for a moment only, however slow: it is measured again.
#[test]
fn root_a_disk_that_is_slow_at_the_moment_is_measured_again() {
    let Some(bench) = Bench::new(256 * MIB, &[], true) else { return };
    for max in ["800us", "5us"] {
        let running = bench.start(&["--mean-slowdown", "5us", "--max-slowdown", max, "--observe", "1s", "--restart"]);
        std::thread::sleep(Duration::from_secs(5));
        running.signal(Signal::INT);
        let output = running.end();
        assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
        assert!(stderr(&output).contains("measures the disk again every minute"), "{}", stderr(&output));
    }
}

/// A load that leaves no gap of the length that measuring would like is scrubbed beside all the same.
#[test]
fn root_a_steady_load_does_not_keep_a_scrub_measuring() {
    let Some(bench) = Bench::new(256 * MIB, &[], true) else { return };
    let (stop, disk) = (AtomicBool::new(false), Device::open(bench.disk.path()).unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut buffer = vec![0; 8_192];
            let aligned = buffer.as_ptr().align_offset(4_096);
            while !stop.load(Ordering::Relaxed) {
                disk.file.read_at(&mut buffer[aligned..aligned + 4_096], 0).unwrap();
                std::thread::sleep(Duration::from_millis(12));
            }
        });
        let (code, result) = bench.scrub(&["--observe", "1s", "--mean-slowdown", "5ms", "--for", "40s"]);
        stop.store(true, Ordering::Relaxed);
        assert!([0, 4].contains(&code) && result["verified_bytes"].as_u64() > Some(0), "{result}");
        // The next run goes on with what this one has learnt.
        let learnt = &bench.checkpoint().unwrap()["learnt"];
        assert!(learnt["delays"]["service_ns"].as_u64() > Some(0), "{learnt}");
        assert!(learnt["comparing"]["arms"]["used"]["turns"].as_u64() > Some(0), "{learnt}");
    });
}

/// Another file behind a loop device is another card in a reader: what is read of it is not counted as read of the first.
#[test]
fn root_another_medium_in_the_same_device_ends_the_pass() {
    const SIZE: u64 = 64 * MIB;
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other");
    File::create(&other).unwrap().set_len(SIZE).unwrap();
    let Some(disk) = Loop::of_size(&folder.path().join("disk"), SIZE, &["--read-only"]) else { return };
    let arguments = ["scrub", disk.path(), "--state-dir", folder.path().to_str().unwrap(), "--json", "--quiet"];
    let slow = ["--request-size", "64KiB", "--idle-wait", "1ms", "--max-rate", "8MB/s"];
    let running = Running::new(idlewise(&[&arguments[..], &slow].concat()));
    std::thread::sleep(Duration::from_millis(2_500));
    change_file(disk.path(), &File::open(&other).unwrap());
    let output = running.end();
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(result["failure"].as_str().unwrap().contains("medium was exchanged"), "{result}");
    assert_eq!(result["state"], "failed");
    assert!((1..SIZE / 2).contains(&result["verified_bytes"].as_u64().unwrap()), "{result}");
    // The next run is of the other one, from its beginning.
    let result = common::json(&[&arguments[..], &PACE].concat());
    assert_eq!((&result["resumed_at_bytes"], &result["verified_bytes"]), (&0.into(), &SIZE.into()), "{result}");
}

/// Nor where it is below the device: between two runs, and while one is at it.
#[test]
fn root_another_medium_below_the_device_begins_the_pass_anew() {
    const SIZE: u64 = 64 * MIB;
    let folder = tempfile::tempdir().unwrap();
    let [first, other] = ["first", "other"].map(|name| {
        File::create(folder.path().join(name)).unwrap().set_len(SIZE).unwrap();
        File::open(folder.path().join(name)).unwrap()
    });
    let Some(below) = Loop::new(&folder.path().join("first"), &["--read-only"]) else { return };
    let disk = Loop::new(Path::new(below.path()), &["--read-only", "--direct-io=on"]).unwrap();
    let arguments = ["scrub", disk.path(), "--state-dir", folder.path().to_str().unwrap(), "--json", "--quiet"];
    let slow = [&arguments[..], &["--request-size", "64KiB", "--idle-wait", "1ms", "--max-rate", "8MB/s"]].concat();
    let begun = common::run(&[&slow[..], &["--for", "2s"]].concat());
    assert_eq!(begun.status.code(), Some(4), "{}", stderr(&begun));
    change_file(below.path(), &other);
    let running = Running::new(idlewise(&slow));
    std::thread::sleep(Duration::from_millis(2_500));
    change_file(below.path(), &first);
    let output = running.end();
    assert!(stderr(&output).contains("lies elsewhere than when it began"), "{}", stderr(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&result["state"], &result["resumed_at_bytes"]), (&"interrupted".into(), &0.into()), "{result}");
    let result = common::json(&[&arguments[..], &PACE].concat());
    assert_eq!((&result["resumed_at_bytes"], &result["verified_bytes"]), (&0.into(), &SIZE.into()), "{result}");
}

/// Nor where the device is another part of its file meanwhile, or is read through the page cache: the kernel tells nobody of either.
#[test]
fn root_what_a_loop_device_is_made_meanwhile_is_not_taken_for_what_it_was() {
    const SIZE: u64 = 64 * MIB;
    let folder = tempfile::tempdir().unwrap();
    let Some(below) = Loop::of_size(&folder.path().join("disk"), 2 * SIZE, &["--read-only"]) else { return };
    let limit = SIZE.to_string();
    let options = ["--read-only", "--direct-io=on", "--sizelimit", &limit];
    let disk = Loop::new(Path::new(below.path()), &options).unwrap();
    let arguments = ["scrub", disk.path(), "--state-dir", folder.path().to_str().unwrap(), "--json", "--quiet"];
    let slow = [&arguments[..], &["--request-size", "64KiB", "--idle-wait", "1ms", "--max-rate", "8MB/s"]].concat();
    let losetup = |option: &str| {
        assert!(Command::new("losetup").args([option, disk.path()]).status().unwrap().success());
    };
    let changed = |change: &dyn Fn(), undo: &dyn Fn(), why: &str| {
        let running = Running::new(idlewise(&slow));
        std::thread::sleep(Duration::from_millis(2_500));
        change();
        let output = running.end();
        undo();
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((output.status.code(), &result["state"]), (Some(4), &"interrupted".into()), "{result}");
        assert!(result["failure"].as_str().unwrap().contains(why), "{result}");
        let begun = common::run(&[&slow[..], &["--for", "1s"]].concat());
        let result: Value = serde_json::from_slice(&begun.stdout).unwrap();
        assert_eq!(result["resumed_at_bytes"], 0, "{result}");
    };
    changed(&|| begin_at(disk.path(), SIZE), &|| begin_at(disk.path(), 0), "lie elsewhere now");
    changed(&|| losetup("--direct-io=off"), &|| losetup("--direct-io=on"), "a cache");
}

/// Has a loop device begin elsewhere in its file: LOOP_GET_STATUS64 and LOOP_SET_STATUS64.
fn begin_at(device: &str, offset: u64) {
    const GET: rustix::ioctl::Opcode = 0x4c05;
    const SET: rustix::ioctl::Opcode = 0x4c04;
    let device = File::open(device).unwrap();
    // SAFETY: the command writes one `struct loop_info64`, which has so many bytes.
    let mut info = unsafe { rustix::ioctl::ioctl(&device, rustix::ioctl::Getter::<GET, [u64; 29]>::new()).unwrap() };
    info[3] = offset;
    // SAFETY: the command reads one such structure.
    unsafe { rustix::ioctl::ioctl(&device, rustix::ioctl::Setter::<SET, _>::new(info)).unwrap() };
}

/// LOOP_CHANGE_FD.
fn change_file(device: &str, file: &File) {
    const CHANGE: rustix::ioctl::Opcode = 0x4c06;
    let device = File::open(device).unwrap();
    let fd = std::os::fd::AsRawFd::as_raw_fd(file) as usize;
    // SAFETY: the command takes the number of a descriptor and writes to no memory of this process.
    unsafe { rustix::ioctl::ioctl(&device, rustix::ioctl::IntegerSetter::<CHANGE>::new_usize(fd)).unwrap() };
}

/// A request that is never answered where the disk is measured is told of, and ends the run when it is asked to; the next run measures
/// elsewhere.
#[test]
fn root_a_hang_where_the_disk_is_measured_is_told() {
    // A tenth into the device, in whole mebibytes.
    let options = Options { size: Bytes(1_024 * MIB), hang: Some(102 * 2_048 + 1), ..Options::default() };
    let Some(bench) = Bench::of(&options) else { return };
    let goal = ["--mean-slowdown", "1ms", "--max-slowdown", "100ms", "--observe", "1s"];
    let scrub = bench.start(&goal);
    let state = bench.folder.path().to_str().unwrap();
    let until = Instant::now() + Duration::from_secs(40);
    loop {
        let output = common::run(&["status", "--state-dir", state, "--json"]);
        let status = serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default();
        if status[0]["doing"] == "hung" {
            assert_eq!(output.status.code(), Some(1), "{status}");
            break;
        }
        assert!(Instant::now() < until, "{status}");
        std::thread::sleep(Duration::from_millis(200));
    }
    scrub.signal(Signal::TERM);
    let output = scrub.end();
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&result["state"], &result["verified_bytes"]), (&"interrupted".into(), &0.into()));
    let again = bench.start(&goal);
    let until = Instant::now() + Duration::from_secs(40);
    while bench.checkpoint().is_none_or(|saved| saved["place"]["visited_bytes"] == 0) {
        assert!(Instant::now() < until, "{:?}", bench.checkpoint());
        std::thread::sleep(Duration::from_millis(200));
    }
    again.signal(Signal::TERM);
    assert_eq!(again.end().status.code(), Some(4));
}

/// Whoever looks for a file system reads in other places as well, where the disk may hang: the scrub can be ended all the same.
#[test]
fn root_a_hang_where_a_file_system_would_be_keeps_nobody_waiting() {
    let options = Options { size: Bytes(64 * MIB), hang: Some(128), timing: Timing::Instant, ..Options::default() };
    let Some(bench) = Bench::of(&options) else { return };
    let scrub = bench.start(&["--request-size", "64KiB", "--idle-wait", "1ms"]);
    let state = bench.folder.path().to_str().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    let doing = || {
        let output = common::run(&["status", "--state-dir", state, "--json"]);
        serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default()[0]["doing"].clone()
    };
    while doing() != "hung" {
        assert!(Instant::now() < until, "{}", doing());
        std::thread::sleep(Duration::from_millis(200));
    }
    scrub.signal(Signal::TERM);
    assert_eq!(scrub.end().status.code(), Some(4));
}

/// The requests that measure the disk before a scrub are within its goal as well, but for one collision.
#[test]
fn root_measuring_the_disk_keeps_the_goal() {
    let Some(bench) = Bench::new(512 * MIB, &[], true) else { return };
    let trace = bench.folder.path().join("foreground.csv");
    // One in 20 ms, for 8 s.
    let lines = (0..400u64).map(|k| format!("{},f,0,Read,{},8192,0\n", k * 200_000, k * 1_228_800));
    std::fs::write(&trace, lines.collect::<String>()).unwrap();
    let scrub = bench.start(&["--mean-slowdown", "200us", "--max-slowdown", "100ms", "--observe", "1s"]);
    let output = common::run(&["replay", trace.to_str().unwrap(), bench.path(), "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    scrub.signal(Signal::INT);
    let result: Value = serde_json::from_slice(&scrub.end().stdout).unwrap();
    let measured = &result["measured"];
    let [mean, max] = ["mean_slowdown_s", "max_slowdown_s"].map(|field| measured[field].as_f64().unwrap());
    let requests = measured["foreground_requests"].as_f64().unwrap();
    // Of the earnings of 100 requests that the account begins with those of 40 are left after 300; one collision delays the request
    // that it met and, where they queue up, a few behind it.
    assert!(requests > 300.0 && mean * requests <= 0.0002 * (requests + 40.0) + 4.0 * max, "{result}");
    assert!(result["account"]["requests"].as_f64() >= Some(requests), "{result}");
}

/// Beyond 8 PiB the scrub's own reads are told from those of others as anywhere else.
#[test]
fn root_own_reads_are_known_on_the_largest_devices() {
    let Some(bench) = Bench::new(MIB, &[], true) else { return };
    let folder = bench.folder.path().join("large");
    let _mounted = Mounted::new(&["-t", "tmpfs", "none"], &folder);
    let disk = Loop::of_size(&folder.join("disk"), 1 << 62, &[]).unwrap();
    let state = bench.folder.path().to_str().unwrap();
    let scrub = ["scrub", disk.path(), "--json", "--state-dir", state, "--request-size", "1MiB", "--idle-wait", "1ms"];
    let output = common::run(&[&scrub[..], &["--order", "staggered", "--for", "3s"]].concat());
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&result["monitor"], &result["measured"]["foreground_requests"]),
        (&"bpf".into(), &0.into()),
        "{result}"
    );
    // The second region begins beyond 8 PiB.
    assert!(result["verified_bytes"].as_u64() > Some(16 * MIB), "{result}");
    // In another order it cannot go on, which is said beforehand as well.
    let refused = [&scrub[..], &[&scrub[..], &["--dry-run"]].concat()].map(|scrub| {
        let output = common::run(scrub);
        (output.status.code(), stderr(&output))
    });
    assert!(refused[0].1.contains("staggered") && refused[0].0 == Some(1), "{refused:?}");
    assert_eq!(refused[0], refused[1]);
}
