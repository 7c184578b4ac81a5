//! Whether btrfs can be asked at all: what is mounted over it, copies beside it, and devices of it that do not answer.

#[path = "common/btrfs.rs"]
mod btrfs;
mod common;

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use btrfs::{Bench, addresses, damage, fill, found};
use common::bench::{Emulated, Loop, MIB, Mounted, PACE, Running, system};
use common::held::signal;
use common::{idlewise, json, run, stderr};
use rand::SeedableRng;
use rand_pcg::Pcg64;
use rustix::process::Signal;
use serde_json::Value;

/// How a scrub ends: its exit code and its result.
fn told(scrub: Running) -> (Option<i32>, Value) {
    let output = scrub.end();
    let result = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    (output.status.code(), result)
}

/// A scrub that has read some MiB of its device, which nobody else reads.
fn begun(device: &str, scrub: impl FnOnce() -> Running) -> Running {
    let sectors_read = || {
        let stat = Path::new("/sys/block").join(Path::new(device).file_name().unwrap()).join("stat");
        std::fs::read_to_string(stat).unwrap().split_whitespace().nth(2).unwrap().parse::<u64>().unwrap()
    };
    let before = sectors_read();
    let scrub = scrub();
    let began = Instant::now();
    while sectors_read() - before < (4 * MIB) / 512 {
        assert!(began.elapsed() < Duration::from_secs(60), "it reads nothing");
        std::thread::sleep(Duration::from_millis(20));
    }
    scrub
}

/// Whoever may mount something over the folder that btrfs is mounted on neither speaks for it nor keeps a scrub waiting.
#[test]
fn root_what_is_mounted_over_it_is_not_asked() {
    let Some(bench) = Bench::new(1, &["-d", "single", "-m", "dup"]) else { return };
    let Ok(fuse) = File::options().read(true).write(true).open("/dev/fuse") else {
        eprintln!("SKIPPED: the kernel has no FUSE");
        return;
    };
    let folder = bench.mount_point();
    let mounted = Mounted::new(&[bench.loops[0].path()], &folder);
    // A FUSE that answers nothing, not even that it is there.
    rustix::io::fcntl_setfd(&fuse, rustix::io::FdFlags::empty()).unwrap();
    let options = format!("fd={},rootmode=40000,user_id=0,group_id=0,allow_other", fuse.as_raw_fd());
    let cover = Mounted::new(&["-i", "-t", "fuse", "-o", &options, "none"], &folder);
    let scrub = || {
        let state = bench.folder.path().join("state");
        let arguments = ["scrub", bench.loops[0].path(), "--restart", "--json", "--quiet", "--state-dir"];
        let mut scrub = Running::new(idlewise(&[&arguments[..], &[state.to_str().unwrap()], &PACE].concat()));
        let began = Instant::now();
        while !scrub.is_over() {
            assert!(began.elapsed() < Duration::from_secs(60), "it waits for what is mounted over the file system");
            std::thread::sleep(Duration::from_millis(50));
        }
        told(scrub)
    };
    let status = || {
        let state = bench.folder.path().join("state");
        run(&["status", bench.loops[0].path(), "--state-dir", state.to_str().unwrap()]).status.code()
    };
    // That is not as if nobody had checksums of it.
    let (code, covered) = scrub();
    assert_eq!((&covered["state"], code, status()), (&"complete".into(), Some(1), Some(1)), "{covered}");
    assert_eq!(covered["content"]["unasked_bytes"], covered["verified_bytes"], "{covered}");
    // Where it can be seen elsewhere, it is asked there.
    let elsewhere = bench.folder.path().join("elsewhere");
    let other = Mounted::new(&[bench.loops[0].path()], &elsewhere);
    let (code, seen) = scrub();
    assert!(seen["content"]["judged_bytes"].as_u64() > Some(0) && seen["not_asked"].is_null(), "{seen}");
    assert_eq!((&seen["content"]["unasked_bytes"], code, status()), (&0.into(), Some(0), Some(0)), "{seen}");
    drop((other, fuse, cover, mounted));
}

/// A copy of a file system that is mounted beside it is another one: the kernel calls it something else than its superblock says.
#[test]
fn root_a_copy_that_is_mounted_beside_its_original_is_asked() {
    let Some(bench) = Bench::new(1, &["-d", "single", "-m", "dup"]) else { return };
    let folder = bench.mount_point();
    let mut random = Pcg64::seed_from_u64(31);
    let place = {
        let _mounted = Mounted::new(&[bench.loops[0].path()], &folder);
        fill(&folder, 1, 6 * MIB, &mut random);
        bench.places(addresses(&folder.join("file0"))[9])[0].1
    };
    let copy = bench.folder.path().join("copy");
    std::fs::copy(&bench.files[0], &copy).unwrap();
    damage(&File::options().read(true).write(true).open(&copy).unwrap(), place, "bit", 0, &mut random);
    let Some(second) = Loop::new(&copy, &[]) else { return };
    let elsewhere = bench.folder.path().join("elsewhere");
    let _mounted = Mounted::new(&[bench.loops[0].path()], &folder);
    std::fs::create_dir(&elsewhere).unwrap();
    let beside = Command::new("mount").arg(second.path()).arg(&elsewhere).output().unwrap();
    if !beside.status.success() {
        eprintln!("SKIPPED: the kernel mounts no copy beside its original: {}", stderr(&beside));
        return;
    }
    let state = bench.folder.path().join("state of the copy");
    let arguments = ["scrub", second.path(), "--json", "--quiet", "--state-dir", state.to_str().unwrap()];
    let output = run(&[&arguments[..], &PACE].concat());
    system("umount", &[elsewhere.to_str().unwrap()]);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found(&result, "checksum"), BTreeSet::from([place]), "{result}");
}

/// A file without checksums is said to be one, and nothing is said of a file system that is not mounted.
#[test]
fn root_what_is_not_covered_is_said() {
    let Some(bench) = Bench::new(1, &["-d", "single", "-m", "dup"]) else { return };
    let folder = bench.mount_point();
    {
        let _mounted = Mounted::new(&["-o", "nodatasum", bench.loops[0].path()], &folder);
        fill(&folder, 1, 40 * MIB, &mut Pcg64::seed_from_u64(12));
        let content = bench.scrub(0, &[])["content"].clone();
        let unjudged = content["unjudged_bytes"].as_u64().unwrap();
        assert!((40 * MIB..42 * MIB).contains(&unjudged), "{content}");
        assert!(bench.scrub(0, &["--content", "none"])["content"].is_null());
    }
    let refused = |more: &[&str]| {
        let output = run(&[&["scrub", bench.loops[0].path(), "--dry-run"], more].concat());
        (output.status.code(), stderr(&output))
    };
    let (code, error) = refused(&["--content", "btrfs"]);
    assert!(code == Some(64) && error.contains("it is not mounted"), "{error}");
    let (code, error) = refused(&["--content", "btrfs", "--verifier", "scsi"]);
    assert!(code == Some(64) && error.contains("--verifier read"), "{error}");
    // In the pass before it was mounted, and is missed.
    let result = bench.scrub(0, &[]);
    assert_eq!(result["not_asked"][0]["why"], "it is not mounted", "{result}");
    assert_eq!(result["content"]["unmounted_bytes"], result["verified_bytes"], "{result}");
    assert_eq!(json(&["scrub", bench.loops[0].path(), "--dry-run", "--json"])[0]["content"], serde_json::json!([]));
}

/// While others mount and unmount elsewhere, a file system is still found where it is mounted.
#[test]
fn root_mounts_elsewhere_change_nothing() {
    let Some(bench) = Bench::new(1, &["-d", "single", "-m", "dup"]) else { return };
    let (folder, other) = (bench.mount_point(), bench.folder.path().join("other"));
    let _mounted = Mounted::new(&[bench.loops[0].path()], &folder);
    fill(&folder, 1, 40 * MIB, &mut Pcg64::seed_from_u64(18));
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mounts = || {
            let (mut count, began) = (0, Instant::now());
            while !over.load(std::sync::atomic::Ordering::Relaxed) && began.elapsed() < Duration::from_secs(60) {
                drop(Mounted::new(&["-t", "tmpfs", "none"], &other));
                count += 1;
            }
            count
        };
        let mounts = scope.spawn(mounts);
        for _ in 0..5 {
            let result = bench.scrub(0, &[]);
            assert!(result["content"]["unasked"].is_null() && result["not_asked"].is_null(), "{result}");
        }
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(mounts.join().unwrap() > 10);
    });
}

/// Where another device of the file system does not answer, neither does btrfs: that keeps no scrub waiting, nor its process.
#[test]
fn root_another_device_that_does_not_answer_keeps_nobody_waiting() {
    let Some(bench) = Bench::new(1, &["-d", "single", "-m", "dup"]) else { return };
    let Some(silent) = Emulated::new(&["--size", "1GiB"]) else { return };
    let own = bench.loops[0].path();
    // Trees lie on the first one.
    system("mkfs.btrfs", &["-q", "-f", "-d", "raid0", "-m", "single", silent.path(), own]);
    let folder = bench.mount_point();
    {
        let _mounted = Mounted::new(&[own], &folder);
        fill(&folder, 1, 60 * MIB, &mut Pcg64::seed_from_u64(19));
    }
    // Now nothing is in memory but what it takes to mount it.
    let _mounted = Mounted::new(&[own], &folder);
    std::fs::write("/proc/sys/vm/drop_caches", "3").unwrap();
    signal(&silent.process, Signal::STOP);
    let state = bench.folder.path().join("state");
    let arguments = ["scrub", own, "--restart", "--json", "--quiet", "--state-dir", state.to_str().unwrap()];
    let mut scrub = Running::new(idlewise(&[&arguments[..], &PACE].concat()));
    let began = Instant::now();
    while !scrub.is_over() && began.elapsed() < Duration::from_secs(90) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let is_over = scrub.is_over();
    signal(&silent.process, Signal::CONT);
    assert!(is_over, "it waits for the other device");
    let output = scrub.end();
    let result = serde_json::from_slice::<Value>(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    assert_eq!((&result["state"], output.status.code()), (&"complete".into(), Some(1)), "{result}");
    assert_eq!(
        (&result["errors"], result["content"]["unasked_bytes"].as_u64() > Some(0)),
        (&serde_json::json!([]), true),
        "{result}"
    );
    let after = bench.scrub(0, &[]);
    assert!(after["content"]["judged_bytes"].as_u64() > Some(20 * MIB), "{after}");
    assert_eq!(after["content"]["unasked_bytes"], 0, "{after}");
}

/// A file system that is mounted while its device is scrubbed is asked from then on, and what was read before counts as not compared.
#[test]
fn root_what_is_mounted_later_is_asked_from_then_on() {
    let Some(bench) = Bench::new(1, &["-d", "single", "-m", "dup"]) else { return };
    let folder = bench.mount_point();
    let mut random = Pcg64::seed_from_u64(32);
    let place = {
        let _mounted = Mounted::new(&[bench.loops[0].path()], &folder);
        fill(&folder, 1, 40 * MIB, &mut random);
        bench.places(*addresses(&folder.join("file0")).last().unwrap())[0].1
    };
    damage(&File::options().read(true).write(true).open(&bench.files[0]).unwrap(), place, "bit", 0, &mut random);
    let state = bench.folder.path().join("state");
    let device = bench.loops[0].path();
    let scrub = |more: &[&str]| {
        let arguments = ["scrub", device, "--json", "--quiet", "--state-dir", state.to_str().unwrap()];
        Running::new(idlewise(&[&arguments[..], &PACE, more].concat()))
    };
    let status = || run(&["status", device, "--state-dir", state.to_str().unwrap()]).status.code();
    // Nothing is missed where it never was mounted: it may be what is left of an old one.
    let (code, unmounted) = told(scrub(&[]));
    assert_eq!((code, status()), (Some(0), Some(0)), "{unmounted}");
    assert_eq!(unmounted["content"]["unmounted_bytes"], unmounted["verified_bytes"], "{unmounted}");
    let late = begun(device, || scrub(&["--max-rate", "20MB/s"]));
    let mounted = Mounted::new(&[device], &folder);
    let (code, seen) = told(late);
    assert_eq!((found(&seen, "checksum"), code), (BTreeSet::from([place]), Some(3)), "{seen}");
    let [judged, before] = ["judged_bytes", "unmounted_bytes"].map(|name| seen["content"][name].as_u64().unwrap());
    assert!(judged > 0 && before > 0 && before < seen["verified_bytes"].as_u64().unwrap(), "{seen}");
    drop(mounted);
    // Now it is missed.
    let (code, without) = told(scrub(&[]));
    assert_eq!((code, status()), (Some(3), Some(3)), "{without}");
    assert_eq!(without["content"]["unmounted_bytes"], without["verified_bytes"], "{without}");
}

/// A mounted file system whose first superblock is gone is asked nevertheless, and that is told.
#[test]
fn root_a_superblock_that_is_gone_hides_no_file_system() {
    let Some(bench) = Bench::new(1, &["-d", "single", "-m", "dup"]) else { return };
    let folder = bench.mount_point();
    let mut random = Pcg64::seed_from_u64(33);
    let place = {
        let _mounted = Mounted::new(&[bench.loops[0].path()], &folder);
        fill(&folder, 1, 6 * MIB, &mut random);
        bench.places(addresses(&folder.join("file0"))[9])[0].1
    };
    let _mounted = Mounted::new(&["-o", "ro", bench.loops[0].path()], &folder);
    let file = File::options().read(true).write(true).open(&bench.files[0]).unwrap();
    damage(&file, place, "bit", 0, &mut random);
    const FIRST: u64 = 64 << 10;
    std::os::unix::fs::FileExt::write_all_at(&file, &[0; 4096], FIRST).unwrap();
    let result = bench.scrub(0, &[]);
    assert_eq!(found(&result, "checksum"), BTreeSet::from([place]), "{result}");
    assert_eq!(found(&result, "tree-block"), BTreeSet::from([FIRST]), "{result}");
}

/// No chunk is said to lie on a device that `btrfs replace` copies to until that is done. None of it is free before, nor compared; what is read
/// later is.
#[test]
fn root_a_device_that_replaces_another_is_compared_when_that_is_done() {
    let Some(bench) = Bench::new(2, &["-d", "raid1", "-m", "raid1"]) else { return };
    let file = bench.folder.path().join("new");
    let Some(new) = Loop::of_size(&file, 300 * MIB, &[]) else { return };
    let folder = bench.mount_point();
    let _mounted = Mounted::new(&[bench.loops[0].path()], &folder);
    let mut random = Pcg64::seed_from_u64(34);
    fill(&folder, 4, 20 * MIB, &mut random);
    // It takes the place of the first one, so that the same lies at the same places.
    let all = (0..4).filter_map(|number| addresses(&folder.join(format!("file{number}"))).last().copied());
    let place =
        all.flat_map(|address| bench.places(address)).filter(|(device, _)| *device == 0).map(|(_, at)| at).max();
    let place = place.unwrap();
    let name = |path: &str| Path::new(path).file_name().unwrap().to_str().unwrap().to_string();
    let lists = |folder: &Path, path: &str| folder.join("devices").join(name(path)).exists();
    let known = std::fs::read_dir("/sys/fs/btrfs").unwrap().map(|entry| entry.unwrap().path());
    let known = { known }.find(|folder| lists(folder, bench.loops[0].path())).unwrap();
    let limit = |speed: &str| {
        let file = |device: &str| known.join("devinfo").join(device).join("scrub_speed_max");
        ["1", "2"].iter().all(|device| std::fs::write(file(device), speed).is_ok())
    };
    if !limit("2M") {
        eprintln!("SKIPPED: the kernel cannot slow btrfs down");
        return;
    }
    let mut replace = Command::new("btrfs");
    replace.args(["replace", "start", "-B", "-f", bench.loops[0].path(), new.path()]).arg(&folder);
    let mut replace = replace.spawn().unwrap();
    let began = Instant::now();
    while !lists(&known, new.path()) {
        assert!(began.elapsed() < Duration::from_secs(60), "nothing is replaced");
        std::thread::sleep(Duration::from_millis(20));
    }
    let state = bench.folder.path().join("state");
    let scrub = |more: &[&str]| {
        let arguments = ["scrub", new.path(), "--restart", "--json", "--quiet", "--state-dir", state.to_str().unwrap()];
        Running::new(idlewise(&[&arguments[..], &PACE, more].concat()))
    };
    let (code, early) = told(scrub(&[]));
    assert!(replace.try_wait().unwrap().is_none(), "it was replaced too soon for this test");
    let content = |of: &Value, name: &str| of["content"][name].as_u64().unwrap();
    assert_eq!(
        (content(&early, "unasked_bytes"), code),
        (early["verified_bytes"].as_u64().unwrap(), Some(1)),
        "{early}"
    );
    assert_eq!((content(&early, "judged_bytes"), content(&early, "free_bytes")), (0, 0), "{early}");
    // Nor is any of it passed over.
    let (_, passed_over) = told(scrub(&["--skip-free"]));
    assert_eq!(passed_over["verified_bytes"], early["verified_bytes"], "{passed_over}");
    assert!(replace.try_wait().unwrap().is_none(), "it was replaced too soon for this test");

    // Nobody else reads what is written to.
    let late = begun(new.path(), || scrub(&["--max-rate", "5MB/s"]));
    assert!(replace.try_wait().unwrap().is_none() && limit("1G"), "it was replaced too soon for this test");
    assert!(replace.wait().unwrap().success());
    system("sync", &["-f", folder.to_str().unwrap()]);
    damage(&File::options().read(true).write(true).open(&file).unwrap(), place, "bit", 0, &mut random);
    let (code, late) = told(late);
    assert_eq!((found(&late, "checksum"), code), (BTreeSet::from([place]), Some(3)), "{late}");
    assert!(content(&late, "unasked_bytes") > 0 && content(&late, "judged_bytes") > 0, "{late}");
}

/// What is looked up in the trees is the scrub's own, whichever process asks for it: nobody else uses the disk.
#[test]
fn root_what_is_looked_up_is_no_foreground() {
    let Some(bench) = Bench::new(1, &["-d", "single", "-m", "single"]) else { return };
    let folder = bench.mount_point();
    {
        let _mounted = Mounted::new(&[bench.loops[0].path()], &folder);
        for number in 0..60 {
            let within = folder.join(number.to_string());
            std::fs::create_dir(&within).unwrap();
            (0..250).for_each(|file| std::fs::write(within.join(file.to_string()), [7; 4096]).unwrap());
        }
    }
    // Its trees are in no memory.
    system("blockdev", &["--flushbufs", bench.loops[0].path()]);
    let _mounted = Mounted::new(&[bench.loops[0].path()], &folder);
    std::thread::sleep(Duration::from_secs(1));
    let result = bench.scrub(0, &[]);
    if result["monitor"] != "bpf" {
        eprintln!("SKIPPED: it needs BPF");
        return;
    }
    assert!(result["content"]["judged_bytes"].as_u64() > Some(50 * MIB), "{result}");
    // The file system may write something of its own.
    assert!(result["measured"]["foreground_requests"].as_u64() <= Some(10), "{result}");
}
