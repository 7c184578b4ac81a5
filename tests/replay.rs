//! `replay` on a real block device: a loop device on a plain file.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use common::bench::Emulated;
use common::{idlewise, json, run, stderr};
use idlewise::replay::Segment;
use idlewise::trace::{Op, ReadOptions, Request, open};
use idlewise::{Bytes, Nanos};
use idlewise_linux::device::Device;
use idlewise_linux::replay::{Options as How, Sample, Summary, replay};
use idlewise_testbed::{EmulatedDisk, Options, Timing, missing};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const SIZE: u64 = 8 << 20;
const BLOCK: u64 = 4096;

/// A loop device over a file of ones in a folder of its own; `None`, said aloud, where the machine cannot have one.
struct Bench {
    folder: tempfile::TempDir,
    device: String,
}

impl Bench {
    fn new() -> Option<Self> {
        if let Some(missing) = missing() {
            eprintln!("SKIPPED: a loop device needs {missing}");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("disk"), vec![1; SIZE as usize]).unwrap();
        let mut bench = Self { folder, device: String::new() };
        bench.attach();
        Some(bench)
    }

    fn attach(&mut self) {
        let output = Command::new("losetup").args(["--find", "--show"]).arg(self.disk()).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        self.device = String::from_utf8(output.stdout).unwrap().trim().into();
    }

    fn disk(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    /// A trace in the format of MSR Cambridge: microseconds, operation, place, length, response in microseconds.
    fn trace(&self, rows: impl Iterator<Item = (u64, Op, u64, u64, u64)>) -> String {
        let path = self.folder.path().join("trace.csv");
        let line = |(at, op, offset, length, response)| {
            let op = if op == Op::Read { "Read" } else { "Write" };
            format!("{},host,0,{op},{offset},{length},{}\n", at * 10, response * 10)
        };
        fs::write(&path, rows.map(line).collect::<String>()).unwrap();
        path.display().to_string()
    }

    fn out(&self) -> String {
        self.folder.path().join("out.parquet").display().to_string()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.device).status();
    }
}

fn requests(path: &str) -> Vec<Request> {
    open(&[Path::new(path).to_path_buf()], &ReadOptions::default()).unwrap().requests().collect()
}

/// The kernel writes back what the device was given.
fn content(bench: &Bench) -> Vec<u8> {
    assert!(Command::new("blockdev").args(["--flushbufs", &bench.device]).status().unwrap().success());
    fs::read(bench.disk()).unwrap()
}

#[test]
fn root_every_request_is_played_and_writes_only_when_asked_for() {
    let Some(bench) = Bench::new() else { return };
    // Every third request writes a block of its own; the last ones lie beyond the end of the device.
    let place = |k: u64| k * 7 * BLOCK;
    let op = |k: u64| if k % 3 == 2 { Op::Write } else { Op::Read };
    let trace = bench.trace((0..300).map(|k| (k * 1_000, op(k), place(k), BLOCK, 500)));
    let arguments = ["replay", &trace, &bench.device, "--out", &bench.out(), "--json"];
    let before = content(&bench);
    let result = json(&arguments);
    assert_eq!(content(&bench), before);
    assert_eq!(result["writes"], "played as reads");
    for (name, value) in [("requests", 300), ("failed", 0), ("unanswered", 0)] {
        assert_eq!(result[name], value, "{name}");
    }
    for name in ["drift_p50_s", "drift_p99_s", "drift_max_s", "span_error", "mean_response_s", "weighted_response_s"] {
        assert!(result[name].is_f64(), "{name}: {result}");
    }
    let mean = result["mean_response_s"].as_f64().unwrap();
    assert!((result["weighted_response_s"].as_f64().unwrap() - mean).abs() < 1e-9 && mean > 0.0, "{result}");
    let (played, recorded) = (requests(&bench.out()), requests(&trace));
    assert_eq!(played.len(), 300);
    let wrapped = |place: u64| place % SIZE;
    for (played, recorded) in played.iter().zip(&recorded) {
        assert_eq!((played.op, played.length), (recorded.op, recorded.length));
        assert_eq!(played.offset.0, wrapped(recorded.offset.0));
        assert_eq!(played.arrival, recorded.arrival);
        assert!(played.queued.is_some() && played.service().is_some_and(|time| time > Nanos::ZERO));
    }

    let result = json(&[&arguments[..], &["--allow-writes"]].concat());
    assert_eq!((&result["writes"], &result["failed"]), (&"written".into(), &0.into()));
    let after = content(&bench);
    for block in 0..SIZE / BLOCK {
        let written = (0..300).any(|k| op(k) == Op::Write && wrapped(place(k)) == block * BLOCK);
        let found = &after[(block * BLOCK) as usize..((block + 1) * BLOCK) as usize];
        assert!(found.iter().all(|byte| *byte == u8::from(!written)), "block {block}");
    }
    let scaled = json(&[&arguments[..], &["--scale"]].concat());
    assert_eq!(scaled["requests"], 300);
    // The last request ends where the device ends.
    let last = requests(&bench.out()).last().copied().unwrap();
    assert_eq!(last.offset.0, 299 * 7 * SIZE / (299 * 7 + 1) / 512 * 512);
}

#[test]
fn root_a_mounted_device_is_never_written_to() {
    let Some(mut bench) = Bench::new() else { return };
    let _ = Command::new("losetup").arg("-d").arg(&bench.device).status();
    let made = Command::new("mkfs.ext4").args(["-q", "-F"]).arg(bench.disk()).output();
    if !made.is_ok_and(|made| made.status.success()) {
        eprintln!("SKIPPED: mkfs.ext4 is not there");
        return;
    }
    bench.attach();
    let place = bench.folder.path().join("mounted");
    fs::create_dir(&place).unwrap();
    let mounted = Command::new("mount").args(["-o", "ro"]).arg(&bench.device).arg(&place).status().unwrap();
    assert!(mounted.success());
    let trace = bench.trace([(0, Op::Write, 0, SIZE / 2, 1)].into_iter());
    let before = content(&bench);
    let output = run(&["replay", &trace, &bench.device, "--allow-writes"]);
    let after = content(&bench);
    // Nor through a loop device that lies on it.
    let upper = Command::new("losetup").args(["--find", "--show", &bench.device]).output().unwrap();
    let upper = String::from_utf8(upper.stdout).unwrap().trim().to_string();
    let through = run(&["replay", &trace, &upper, "--allow-writes"]);
    assert!(Command::new("losetup").args(["-d", &upper]).status().unwrap().success());
    let after_that = content(&bench);
    assert!(Command::new("umount").arg(&place).status().unwrap().success());
    assert_eq!(through.status.code(), Some(1), "{}", stderr(&through));
    assert!(stderr(&through).contains(&format!("lies on {}", bench.device)), "{}", stderr(&through));
    assert!(after_that == before);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("in use (mounted, or part of something): writes are refused"),
        "{}",
        stderr(&output)
    );
    assert!(after == before);
}

#[test]
fn root_what_cannot_be_played_is_said_in_a_line() {
    let Some(bench) = Bench::new() else { return };
    let error = |trace: &str, more: &[&str]| {
        let output = run(&[&["replay", trace, &bench.device], more].concat());
        assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
        (output.status.code(), stderr(&output))
    };
    let iolog = bench.folder.path().join("trace.iolog").display().to_string();
    fs::write(&iolog, "fio version 3 iolog\n0 f add\n0 f open\n0 f read 0 4096\n5 f read 8192 4096\n").unwrap();
    let (code, line) = error(&iolog, &["--closed"]);
    assert!(code == Some(1) && line.contains("no response times"), "{line}");
    let two = bench.folder.path().join("two.csv").display().to_string();
    fs::write(&two, "0,a,0,Read,0,4096,5\n10,b,1,Read,0,4096,5\n").unwrap();
    let (code, line) = error(&two, &[]);
    assert!(code == Some(64) && line.contains("2 volumes (a_0, b_1)") && line.contains("--volume"), "{line}");
    assert_eq!(json(&["replay", &two, &bench.device, "--volume", "b_1", "--json"])["requests"], 1);
    let long = bench.trace([(0, Op::Read, 0, SIZE + 1, 1)].into_iter());
    let (code, line) = error(&long, &[]);
    assert!(code == Some(1) && line.contains("does not fit on a device of"), "{line}");
    let fits = bench.trace([(0, Op::Read, 0, BLOCK, 1)].into_iter());
    let (code, line) = error(&fits, &["--out", "played.unknown"]);
    assert!(code == Some(64) && line.contains(".parquet or .csv"), "{line}");
    let (code, line) = error(&fits, &["--out", "/nowhere/played.parquet"]);
    assert!(code == Some(1) && line.contains("/nowhere/played.parquet"), "{line}");
    let read_only = |how: &str| Command::new("blockdev").args([how, &bench.device]).status().unwrap();
    read_only("--setro");
    let (code, line) = error(&fits, &["--allow-writes"]);
    read_only("--setrw");
    assert!(code == Some(1) && line.contains(&bench.device), "{line}");
}

/// The kernel stops a thread before all others that never sleeps, and with it whoever serves the device.
#[test]
fn root_real_time_priority_is_given_up_where_there_is_no_time_to_sleep() {
    let Some(bench) = Bench::new() else { return };
    let denied = |gap_us: u64| {
        let trace = bench.trace((0..1_000_000 / gap_us).map(|k| (k * gap_us, Op::Read, k % 64 * BLOCK, BLOCK, 10)));
        let denied = json(&["replay", &trace, &bench.device, "--json"])["denied"].to_string();
        ["CAP_SYS_NICE", "too closely"].map(|why| denied.contains(why))
    };
    let [refused, given_up] = denied(20_000);
    assert!(!given_up);
    // Where others keep this machine busy it may sleep all the same, until requests are answered.
    let answers: Vec<_> = (0..3).map(|_| denied(20)).collect();
    assert!(answers.contains(&[refused, !refused]), "{answers:?}");
}

#[test]
fn root_sigint_ends_it_with_what_was_played() {
    let Some(bench) = Bench::new() else { return };
    // A request every 10 ms for ten minutes: not interrupted, the test would take that long.
    let trace = bench.trace((0..60_000).map(|k| (k * 10_000, Op::Read, 0, BLOCK, 500)));
    let mut command = idlewise(&["replay", &trace, &bench.device, "--json", "--out", &bench.out()]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(1));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let played = result["requests"].as_u64().unwrap();
    assert!(played < 60_000, "{result}");
    assert_eq!(played as usize, if played > 0 { requests(&bench.out()).len() } else { 0 });
}

/// On a disk slower than that of the trace, what followed a read follows its end in a closed loop, and does not wait in an open one.
#[test]
fn root_a_closed_loop_waits_for_reads() {
    let Some(bench) = Bench::new() else { return };
    let disk = EmulatedDisk::new(&Options {
        size: Bytes(64 << 20),
        timing: Timing::HardDisk { queue: 1 },
        ..Options::default()
    });
    let disk = disk.unwrap();
    // Each read took 100 us, and the next came 200 us after its end; on this disk a read takes milliseconds.
    let gap = Nanos(200_000);
    let trace = bench.trace((0..40).map(|k| (k * 300, Op::Read, k * 1_327_104 % (60 << 20), BLOCK, 100)));
    let arguments = ["replay", &trace, disk.path().to_str().unwrap(), "--out", &bench.out(), "--json"];
    let waited = || {
        let played = requests(&bench.out());
        let after = |pair: &[Request]| pair[1].arrival.0 >= pair[0].end().unwrap().0 + gap.0;
        played.windows(2).filter(|pair| after(pair)).count()
    };
    assert_eq!(json(&[&arguments[..], &["--closed"]].concat())["loop"], "closed");
    assert_eq!(waited(), 39);
    assert_eq!(json(&arguments)["loop"], "open");
    assert!(waited() < 39);
}

/// A request a millisecond, each on a block of its own and ended 2.5 ms later; two segments of 50 ms.
#[test]
fn root_segments_are_played_with_warm_up_and_cool_down() {
    let Some(bench) = Bench::new() else { return };
    let trace = bench.trace((0..1_000).map(|k| (k * 1_000, Op::Read, k * BLOCK, BLOCK, 2_500)));
    let trace = open(&[PathBuf::from(trace)], &ReadOptions::default()).unwrap();
    let segment =
        |begin, weight| Segment { begin: Nanos::from_millis(begin), end: Nanos::from_millis(begin + 50), weight };
    let segments = [segment(300, 900.0), segment(600, 100.0)];
    let device = Device::open(Path::new(&bench.device)).unwrap();
    let stop = AtomicBool::new(false);
    let mut last = 0.0;
    let mut watch = |share: f64| {
        assert!((last..=1.0).contains(&share), "{share} after {last}");
        last = share;
    };
    let how = How { sample: Some(Sample { segments: &segments, device_cache: Bytes(20 * BLOCK) }), ..How::default() };
    let played = replay(trace, &device, &how, &stop, &mut watch).unwrap();
    assert_eq!((played.warm_up, played.cool_down, played.failed, played.unanswered), (40, 4, 0, 0));
    assert_eq!(played.segments, [(900.0, 50), (100.0, 50)]);
    let offsets: Vec<u64> = played.trace.requests().map(|request| request.offset.0 / BLOCK).collect();
    assert_eq!(offsets, (300..350).chain(600..650).collect::<Vec<_>>());
    let due = &played.trace.columns.arrival;
    let millisecond =
        |from: usize| due[from..from + 50].windows(2).all(|pair| pair[1].since(pair[0]) == Nanos::from_millis(1));
    assert!(millisecond(0) && millisecond(50));
    let summary = Summary::of(&played);
    let mean = |number: usize| summary.segments[number].mean_response.unwrap();
    assert!((summary.weighted_response.unwrap() - (0.9 * mean(0) + 0.1 * mean(1))).abs() < 1e-12, "{summary:?}");
}

/// A device that never answers one of the requests: what was measured is told and written, in either loop.
#[test]
fn root_a_device_that_hangs_ends_it_with_what_was_measured() {
    let Some(disk) = Emulated::new(&["--size", "64MiB", "--instant", "--hang", "80"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    // The sixth is never answered; in a closed loop the others would wait for it.
    let rows = (0..100u64)
        .map(|k| format!("{},host,0,Read,{},4096,1000\n", k * 100_000, if k == 5 { 40_960 } else { k * 65_536 }));
    fs::write(at("trace.csv"), rows.collect::<String>()).unwrap();
    let play = |options: &[&str], out: &str| {
        let mut arguments =
            vec!["replay".into(), at("trace.csv"), disk.path().into(), "--json".into(), "--out".into(), at(out)];
        arguments.extend(options.iter().map(ToString::to_string));
        let arguments: Vec<&str> = arguments.iter().map(|one| &**one).collect();
        let said = fs::File::create(at(&format!("{out}.json"))).unwrap();
        idlewise(&arguments).stdout(said).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children = [play(&[], "open.parquet"), play(&["--closed"], "closed.parquet")];
    let began = Instant::now();
    for out in ["open.parquet", "closed.parquet"] {
        let report = loop {
            assert!(began.elapsed() < Duration::from_secs(120), "{out}");
            std::thread::sleep(Duration::from_millis(100));
            let text = fs::read_to_string(at(&format!("{out}.json"))).unwrap();
            if let Ok(report) = serde_json::from_str::<Value>(&text)
                && fs::exists(at(out)).unwrap()
            {
                break report;
            }
        };
        let count = if out == "open.parquet" { 100 } else { 6 };
        let told = ["state", "unanswered", "requests"].map(|name| &report[name]);
        assert_eq!(told, [&Value::from("hangs"), &1.into(), &count.into()], "{report}");
        let all = requests(&at(out));
        assert_eq!((all.len(), all[5].response), (count, None));
    }
    // They are over as soon as the kernel lets them.
    drop(disk);
    for child in children {
        let output = child.wait_with_output().unwrap();
        let said = stderr(&output);
        assert!(output.status.code() == Some(3) && said.contains("nothing was answered for 60"), "{said}");
    }
}

/// Three kinds of half seconds, twelve of each in turn: a plan of three is played in a fraction of the time, and weighs them right.
#[test]
fn root_a_plan_is_played_in_a_fraction_of_the_time() {
    let Some(bench) = Bench::new() else { return };
    let rows = (0..36u64).flat_map(|interval| {
        let (count, length) = [(4, 4096), (16, 8192), (40, 65_536)][interval as usize % 3];
        (0..count)
            .map(move |k| (interval * 500_000 + k * 500_000 / count, Op::Read, (k * 7 % 64) * 65_536, length, 100))
    });
    let trace = bench.trace(rows);
    let plan = bench.folder.path().join("t.plan").display().to_string();
    let sampled = run(&["sample", &trace, "--interval", "500ms", "--features", "CntArqMss", "-o", &plan]);
    assert!(sampled.status.success(), "{}", stderr(&sampled));
    let played = json(&["replay", &plan, &bench.device, "--device-cache", "128KiB", "--json"]);
    let segments = played["plan"]["segments"].as_array().unwrap();
    let requests: Vec<u64> = segments.iter().map(|segment| segment["requests"].as_u64().unwrap()).collect();
    assert_eq!(requests.iter().sum::<u64>(), 4 + 16 + 40, "{played}");
    assert_eq!((&played["requests"], &played["failed"]), (&60.into(), &0.into()));
    let (mut sum, mut weights) = (0.0, 0.0);
    for segment in segments {
        let weight = segment["weight"].as_f64().unwrap();
        assert_eq!(weight, 12.0 * segment["requests"].as_f64().unwrap());
        sum += weight * segment["mean_response_s"].as_f64().unwrap();
        weights += weight;
    }
    assert!((played["weighted_response_s"].as_f64().unwrap() / (sum / weights) - 1.0).abs() < 1e-6, "{played}");
    assert!(played["plan"]["speed_up"].as_f64().unwrap() > 2.0, "{played}");
    // Drawn by lot: each stands for the requests that it would be drawn for, and it is said how far off that may be.
    let drawn = bench.folder.path().join("drawn.plan").display().to_string();
    let sampled = run(&["sample", &trace, "--interval", "500ms", "--intervals", "6", "-o", &drawn]);
    assert!(sampled.status.success(), "{}", stderr(&sampled));
    let played = json(&["replay", &drawn, &bench.device, "--device-cache", "128KiB", "--json"]);
    let segments = played["plan"]["segments"].as_array().unwrap();
    let of = |segment: &Value| segment["weight"].as_f64().unwrap() * segment["mean_response_s"].as_f64().unwrap();
    let estimate = played["weighted_response_s"].as_f64().unwrap();
    assert_eq!(segments.len(), 6, "{played}");
    assert!((estimate / (segments.iter().map(of).sum::<f64>() / 720.0) - 1.0).abs() < 1e-6, "{played}");
    // How wide it is depends on what else the machine does.
    assert!(played["half_width_s"].as_f64().unwrap() > 0.0, "{played}");
    // A plan names what its maker wants.
    let [pipe, piped] = ["pipe", "piped.plan"].map(|name| bench.folder.path().join(name).display().to_string());
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
    let text = std::fs::read_to_string(&plan).unwrap();
    assert!(text.contains(&trace), "{text}");
    std::fs::write(&piped, text.replace(&trace, &pipe)).unwrap();
    let other = bench.trace([(0, Op::Read, 0, 4096, 100)].into_iter());
    for (arguments, code, why) in [
        (vec!["replay", &plan, &bench.device], 1, "it is of a trace with 720 requests"),
        (vec!["replay", &plan, &bench.device, "--for", "1s"], 64, "a plan says itself what is played"),
        (vec!["replay", &other, &bench.device, "--trace", &other], 64, "--trace and --device-cache need a plan"),
        (vec!["replay", &plan, &bench.device, "--trace", "/no/trace"], 1, "/no/trace: No such file"),
        (vec!["replay", &piped, &bench.device], 1, "no regular file or behind another user's link: --trace names it"),
    ] {
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        assert!(stderr(&output).contains(why), "{arguments:?}: {}", stderr(&output));
    }
}
