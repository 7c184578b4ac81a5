//! While a writer is held by `idlewise run`, whoever calls fsync on the same file system waits for no longer than beside one that is not
//! held: a process that is held in the kernel first leaves it, with all that it has locked there.

mod common;

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::bench::{Bench, MIB, Mounted, system};
use common::{idlewise, stderr};
use serde_json::Value;

/// Longer than a writer may hold up anybody, and far shorter than it is held.
const LONGEST: Duration = Duration::from_secs(3);
const CALLS: u32 = 40;

/// The longest of some calls of fsync, each behind a small write.
fn longest_fsync(folder: &Path) -> Duration {
    let mut longest = Duration::ZERO;
    for call in 0..CALLS {
        let mut file = File::options().create(true).append(true).open(folder.join("log")).unwrap();
        file.write_all(&[u8::try_from(call).unwrap(); 4096]).unwrap();
        let began = Instant::now();
        file.sync_all().unwrap();
        longest = longest.max(began.elapsed());
        std::thread::sleep(Duration::from_millis(20));
    }
    longest
}

fn beside_a_held_writer(make: &[&str]) {
    if Command::new(make[0]).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        eprintln!("SKIPPED: {} is not installed", make[0]);
        return;
    }
    let Some(bench) = Bench::new(1024 * MIB, &[], true) else { return };
    let kind = make[0].trim_start_matches("mkfs.");
    if !std::fs::read_to_string("/proc/filesystems").unwrap().lines().any(|line| line.ends_with(&format!("\t{kind}"))) {
        eprintln!("SKIPPED: the kernel has no {kind}");
        return;
    }
    system(make[0], &[&make[1..], &[bench.path()]].concat());
    let folder = bench.folder.path().join("mounted");
    let _mounted = Mounted::new(&[bench.path()], &folder);
    let alone = longest_fsync(&folder);
    let json = bench.folder.path().join("run.json");
    let held = folder.join("held");
    std::fs::create_dir(&held).unwrap();
    // It makes files, fills pages, renames and calls fsync itself: whatever takes locks and begins transactions.
    let script = format!(
        "cd {} && i=0; while [ $i -lt 12 ]; do i=$((i+1)); dd if=/dev/zero of=$i.new bs=64k count=16 2>/dev/null; mv $i.new $((i%8)); \
         dd if=/dev/zero of=$((i%8)) bs=4k count=4 conv=fsync,notrunc 2>/dev/null; done",
        held.display()
    );
    // No account pauses it: it is to be held and let go all the time.
    let arguments = ["run", "--mean-slowdown", "1s", "--idle-wait", "100ms", "--device", bench.path(), "--json"];
    let mut command = idlewise(&[&arguments[..], &[json.to_str().unwrap(), "--", "sh", "-c", &script]].concat());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while !held.join("1").exists() && child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_secs(60), "it does not begin");
        std::thread::sleep(Duration::from_millis(2));
    }
    let beside = longest_fsync(&folder);
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_secs(100), "it does not end");
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    eprintln!("{kind}: longest fsync {alone:?} alone, {beside:?} beside; {}", report["spent_s"]);
    assert!(beside < LONGEST, "{beside:?} beside a writer that is held, {alone:?} alone");
    let ran = report["ran_share"].as_f64().unwrap();
    assert!(ran < 0.9, "it was held: {report}");
}

#[test]
fn root_fsync_on_ext4_waits_for_no_held_writer() {
    beside_a_held_writer(&["mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0"]);
}

#[test]
fn root_fsync_on_xfs_waits_for_no_held_writer() {
    beside_a_held_writer(&["mkfs.xfs", "-q"]);
}

#[test]
fn root_fsync_on_btrfs_waits_for_no_held_writer() {
    beside_a_held_writer(&["mkfs.btrfs", "-q"]);
}
