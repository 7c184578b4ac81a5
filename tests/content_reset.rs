//! What was read and not compared yet, when a disk hangs and the machine is reset; what a disk gives back only at last.

#[path = "common/btrfs.rs"]
mod btrfs;
mod common;

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use btrfs::{Bench, KINDS, addresses, damage, fill, found};
use common::bench::{Emulated, MIB, Mounted, PACE, system};
use common::held::{signal, until};
use common::{idlewise, run};
use rand::SeedableRng;
use rand_pcg::Pcg64;
use rustix::process::Signal;
use serde_json::Value;

/// The disk stands still, and the machine is reset: what was read last and not compared yet is read again by the next run.
#[test]
fn root_no_error_is_lost_when_the_disk_stands_still() {
    const PAGE: usize = 4096;
    let has_btrfs = fs::read_to_string("/proc/filesystems").unwrap().contains("\tbtrfs\n");
    if !has_btrfs || Command::new("mkfs.btrfs").arg("--version").output().is_err() {
        eprintln!("SKIPPED: it needs btrfs in the kernel, and mkfs.btrfs");
        return;
    }
    let Some(disk) = Emulated::new(&["--size", "512MiB"]) else { return };
    let device = disk.path();
    let folder = tempfile::tempdir().unwrap();
    let (mounted, states) = (folder.path().join("mounted"), folder.path().join("states"));
    system("mkfs.btrfs", &["-q", device]);
    let _mounted = Mounted::new(&[device], &mounted);
    let page =
        |number: u64| format!("page {number:010}").into_bytes().into_iter().cycle().take(PAGE).collect::<Vec<u8>>();
    let pages: Vec<u8> = (0..60_000).flat_map(page).collect();
    let file = mounted.join("file");
    fs::write(&file, pages).unwrap();
    File::open(&file).unwrap().sync_all().unwrap();
    // One page of each MiB is wrong.
    let raw = File::options().read(true).write(true).open(device).unwrap();
    let mut wrong = 0u64;
    for mib in 1..511u64 {
        let (mut bytes, place) = (vec![0; PAGE], (mib << 20) + (960 << 10));
        raw.read_exact_at(&mut bytes, place).unwrap();
        if bytes.starts_with(b"page ") {
            raw.write_all_at(b"evil", place + 100).unwrap();
            wrong += 1;
        }
    }
    raw.sync_all().unwrap();
    assert!(wrong > 100, "{wrong}");
    let fixed = [
        "scrub",
        device,
        "--order",
        "sequential",
        "--request-size",
        "1MiB",
        "--idle-wait",
        "1ms",
        "--quiet",
        "--json",
        "--state-dir",
    ];
    let scrub = || idlewise(&[&fixed[..], &[states.to_str().unwrap()]].concat());
    let mut first = scrub().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let status = || -> Value {
        let output = run(&["status", "--json", "--state-dir", states.to_str().unwrap()]);
        serde_json::from_slice::<Value>(&output.stdout).map_or(Value::Null, |all| all[0].clone())
    };
    until("half way", || status()["verified_bytes"].as_u64() > Some(80 << 20));
    signal(&disk.process, Signal::STOP);
    until("seen to hang", || status()["doing"] == "hung");
    std::thread::sleep(Duration::from_millis(500));
    first.kill().unwrap();
    signal(&disk.process, Signal::CONT);
    first.wait().unwrap();
    let output = scrub().output().unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |run: &Value| run["blocks"].as_u64().unwrap();
    let found: u64 = result["errors"].as_array().unwrap().iter().map(of).sum();
    assert!(result["resumed_at_bytes"].as_u64() > Some(0), "{result}");
    assert_eq!((&result["state"], found), (&"complete".into(), wrong * (PAGE as u64 / 512)), "{result}");
}

/// A disk is away for a moment. What of it could not be read is read when all else is done, and is compared then like all else.
#[test]
fn root_what_can_be_read_only_at_last_is_compared_then() {
    const SEED: u64 = 26;
    let Some(bench) = Bench::new(1, &["-d", "single", "-m", "dup"]) else { return };
    println!("seed {SEED}");
    let mut random = Pcg64::seed_from_u64(SEED);
    let folder = bench.mount_point();
    let _mounted = Mounted::new(&[bench.loops[0].path()], &folder);
    fill(&folder, 1, 32 * MIB, &mut random);
    system("mount", &["-o", "remount,ro", folder.to_str().unwrap()]);
    let sectors = addresses(&folder.join("file0"));
    // Three sectors in the middle of it; the disk goes in front of them.
    let [gone, first, second, third] = [4_096, 4_099, 4_103, 4_110].map(|at| bench.places(sectors[at])[0].1);
    let file = File::options().read(true).write(true).open(&bench.files[0]).unwrap();
    let whole = file.metadata().unwrap().len();
    for (at, place) in [first, second, third].into_iter().enumerate() {
        damage(&file, place, KINDS[at], gone, &mut random);
    }
    let mut tail = vec![0; (whole - gone) as usize];
    file.read_exact_at(&mut tail, gone).unwrap();
    let states = bench.folder.path().join("states");
    let arguments = ["scrub", bench.loops[0].path(), "--order", "sequential", "--request-size", "64KiB"];
    let others =
        ["--idle-wait", "1ms", "--max-rate", "50MB/s", "--quiet", "--json", "--state-dir", states.to_str().unwrap()];
    let name = Path::new(bench.loops[0].path()).file_name().unwrap();
    let stat = Path::new("/sys/block").join(name).join("stat");
    let read = || -> u64 {
        let stat = fs::read_to_string(&stat).unwrap();
        stat.split_whitespace().nth(2).unwrap().parse::<u64>().unwrap() * 512
    };
    let before = read();
    let running = idlewise(&[&arguments[..], &others].concat()).stdout(Stdio::piped()).spawn().unwrap();
    file.set_len(gone).unwrap();
    until("where it is gone", || read() - before >= gone);
    std::thread::sleep(Duration::from_millis(300));
    // What is there again is what was there.
    file.write_all_at(&tail, gone).unwrap();
    let output = running.wait_with_output().unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["state"], "complete", "{result}");
    assert_eq!(found(&result, "checksum"), [first, second, third].into(), "{result}");
    let kinds = |kind: &str| result["errors"].as_array().unwrap().iter().any(|run| run["kind"] == kind);
    assert!(kinds("recovered") && !kinds("io"), "{result}");
}

/// What a run read without asking for its checksums was not compared, though the next run asks.
#[test]
fn root_what_was_read_without_its_checksums_is_not_compared() {
    let Some(bench) = Bench::new(1, &["-d", "single", "-m", "dup"]) else { return };
    let folder = bench.mount_point();
    let _mounted = Mounted::new(&[bench.loops[0].path()], &folder);
    let states = bench.folder.path().join("states");
    let scrub = |more: &[&str]| -> (Option<i32>, Value) {
        let arguments = ["scrub", bench.loops[0].path(), "--quiet", "--json", "--state-dir", states.to_str().unwrap()];
        let output = run(&[&arguments[..], &PACE, more].concat());
        (output.status.code(), serde_json::from_slice(&output.stdout).unwrap())
    };
    let (code, first) = scrub(&["--content", "none", "--max-rate", "30MB/s", "--for", "3s"]);
    let read = first["verified_bytes"].as_u64().unwrap();
    assert!(code == Some(4) && read > 0, "{code:?} {first}");
    let (code, second) = scrub(&[]);
    let missed = (&second["content"]["unasked_bytes"], &second["content"]["unasked"]);
    assert_eq!(missed, (&read.into(), &"it was read with --content none".into()), "{second}");
    assert_eq!((code, &second["state"]), (Some(1), &"complete".into()), "{second}");
    let (code, third) = scrub(&["--restart"]);
    assert_eq!((code, &third["content"]["unasked_bytes"]), (Some(0), &0.into()), "{third}");
}
