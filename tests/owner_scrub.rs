//! btrfs's own scrub, chunk by chunk in the gaps, on a mounted file system of this machine's kernel. That of md is in machine.rs.

#[path = "common/btrfs.rs"]
mod btrfs;
mod common;

use std::fs::File;
use std::process::{Command, Stdio};
use std::time::Duration;

use btrfs::{Bench, Writer, addresses, damage, fill};
use common::bench::{MIB, Mounted, system};
use common::{idlewise, run, stderr};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde_json::Value;

fn scrub(bench: &Bench, device: usize, more: &[&str]) -> (Value, Option<i32>) {
    let state = bench.folder.path().join("state");
    let arguments = ["owner-scrub", bench.loops[device].path(), "--json", "--quiet", "--allow-writes", "--state-dir"];
    let output = run(&[&arguments[..], &[state.to_str().unwrap(), "--mean-slowdown", "1s"], more].concat());
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    (report, output.status.code())
}

/// What btrfs's own scrub of a device counts, by btrfs-progs: errors, and bytes.
fn by_btrfs(bench: &Bench, device: usize) -> u64 {
    let output = Command::new("btrfs").args(["scrub", "start", "-B", "-r", "-R", bench.loops[device].path()]).output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    let count = |name: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(": "));
        line.unwrap_or_else(|| panic!("{name}: {text}")).parse::<u64>().unwrap()
    };
    ["read_errors", "csum_errors", "verify_errors", "super_errors"].map(count).iter().sum()
}

/// It counts what btrfs counts on each device, repairs nothing, and is over when all chunks are; beside a writer too.
#[test]
fn root_chunk_by_chunk_btrfs_finds_what_it_finds_at_once() {
    let Some(bench) = Bench::new(2, &["-d", "raid1", "-m", "raid1"]) else { return };
    let folder = bench.folder.path().join("mounted");
    let _mounted = Mounted::new(&[bench.loops[0].path()], &folder);
    let mut random = Pcg64::seed_from_u64(29);
    fill(&folder, 3, 20 * MIB, &mut random);
    let sectors = addresses(&folder.join("file1"));
    let files: Vec<_> =
        bench.files.iter().map(|path| File::options().read(true).write(true).open(path).unwrap()).collect();
    for at in 0..12 {
        let places = bench.places(sectors[at * 100]);
        let (device, place) = *places.iter().find(|(device, _)| *device == usize::from(at % 3 == 0)).unwrap();
        damage(&files[device], place, "sector", 0, &mut random);
    }
    let state = bench.folder.path().join("state");
    let shown = run(&["owner-scrub", bench.loops[0].path(), "--state-dir", state.to_str().unwrap()]);
    assert!(shown.status.code() == Some(2) && stderr(&shown).contains("--allow-writes"), "{}", stderr(&shown));
    for (device, wrong) in [(0, 8), (1, 4)] {
        let (alone, exit) = scrub(&bench, device, &["--idle-wait", "1ms"]);
        assert_eq!((&alone["state"], &alone["wrong"], exit), (&"complete".into(), &wrong.into(), Some(3)), "{alone}");
        assert_eq!(alone["by"], "btrfs-chunks");
        assert_eq!(alone["disks"][0]["foreground_requests"].as_u64().map(|count| count < 100), Some(true), "{alone}");
        let (again, _) = scrub(&bench, device, &["--idle-wait", "1ms"]);
        assert_eq!((&again["wrong"], by_btrfs(&bench, device)), (&wrong.into(), wrong), "nothing was repaired");
    }
    let writer = Writer::new(&folder);
    // One scrub may be over before the writer has written much.
    let mut seen = 0;
    for _ in 0..50 {
        let (beside, _) = scrub(&bench, 0, &["--idle-wait", "100us", "--restart"]);
        assert_eq!((&beside["state"], &beside["wrong"]), (&"complete".into(), &8.into()), "{beside}");
        seen += beside["disks"][0]["foreground_requests"].as_u64().unwrap();
        if seen > 20 {
            break;
        }
    }
    drop(writer);
    assert!(seen > 20, "{seen}");
}

/// Killed at any moment, it leaves no scrub of btrfs at work, the next start counts what is there, and what moves all chunks goes through.
#[test]
fn root_killed_it_leaves_no_scrub_of_btrfs() {
    let Some(bench) = Bench::new(2, &["-d", "raid1", "-m", "raid1"]) else { return };
    let folder = bench.folder.path().join("mounted");
    let _mounted = Mounted::new(&[bench.loops[0].path()], &folder);
    let mut random = Pcg64::seed_from_u64(37);
    fill(&folder, 3, 40 * MIB, &mut random);
    let sectors = addresses(&folder.join("file1"));
    let file = File::options().read(true).write(true).open(&bench.files[0]).unwrap();
    for at in 0..8 {
        let places = bench.places(sectors[at * 100]);
        let (_, place) = *places.iter().find(|(device, _)| *device == 0).unwrap();
        damage(&file, place, "sector", 0, &mut random);
    }
    let state = bench.folder.path().join("state");
    let mut at_work = 0;
    for _ in 0..100 {
        let arguments = ["owner-scrub", bench.loops[0].path(), "--quiet", "--allow-writes", "--idle-wait", "1ms"];
        let mut killed = idlewise(&arguments);
        killed.args(["--mean-slowdown", "1s", "--state-dir", state.to_str().unwrap()]);
        let mut killed = killed.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(random.random_range(0..400)));
        at_work += usize::from(killed.try_wait().unwrap().is_none());
        killed.kill().unwrap();
        killed.wait().unwrap();
        // It would be refused while another is at work.
        assert_eq!(by_btrfs(&bench, 0), 8);
    }
    assert!(at_work >= 20, "{at_work}");
    let (report, _) = scrub(&bench, 0, &["--idle-wait", "1ms"]);
    assert_eq!((&report["state"], &report["wrong"]), (&"complete".into(), &8.into()), "{report}");
    let moved = Command::new("btrfs").args(["balance", "start", "--full-balance"]).arg(&folder).output().unwrap();
    assert!(moved.status.success(), "{}", stderr(&moved));
    assert_eq!(by_btrfs(&bench, 0), 0);
}

/// Ended before its end, the next run goes on; somebody else's scrub is never ended.
#[test]
fn root_a_scrub_of_btrfs_goes_on_where_it_was() {
    let Some(bench) = Bench::new(1, &["-d", "single", "-m", "single"]) else { return };
    let folder = bench.folder.path().join("mounted");
    let _mounted = Mounted::new(&[bench.loops[0].path()], &folder);
    fill(&folder, 3, 40 * MIB, &mut Pcg64::seed_from_u64(31));
    // It does not begin: nobody waits for so long.
    let (ended, exit) = scrub(&bench, 0, &["--idle-wait", "1h", "--for", "300ms"]);
    assert_eq!((&ended["state"], exit, &ended["opens"]), (&"interrupted".into(), Some(4), &0.into()), "{ended}");
    // What it owes stays owed, also where it begins anew.
    let entries = || std::fs::read_dir(bench.folder.path().join("state")).unwrap().flatten().map(|entry| entry.path());
    let place = entries().find(|path| path.extension().is_some_and(|end| end == "owner-scrub")).unwrap();
    let kept: Value = serde_json::from_slice(&std::fs::read(&place).unwrap()).unwrap();
    let mut owing = kept.clone();
    owing["accounts"][0]["balance_s"] = (-3600.0).into();
    for more in [&[][..], &["--restart"]] {
        std::fs::write(&place, owing.to_string()).unwrap();
        let (held, exit) = scrub(&bench, 0, &[&["--idle-wait", "1ms", "--for", "300ms"], more].concat());
        let balance = held["disks"][0]["account"]["balance_s"].as_f64();
        assert!(balance < Some(-3500.0) && held["opens"] == 0 && exit == Some(4), "{held}");
    }
    std::fs::write(&place, kept.to_string()).unwrap();
    let (whole, _) = scrub(&bench, 0, &["--idle-wait", "1ms"]);
    assert_eq!((&whole["state"], &whole["done_bytes"]), (&"complete".into(), &whole["all_bytes"]), "{whole}");
    let left = std::fs::read_dir(bench.folder.path().join("state")).unwrap().flatten();
    assert_eq!(left.filter(|entry| entry.file_name().to_string_lossy().contains("owner-scrub")).count(), 0);
    for wrong in ["no-such-thing", "md-gate"] {
        let output = run(&["owner-scrub", bench.loops[0].path(), "--by", wrong, "--allow-writes"]);
        assert!([Some(1), Some(64)].contains(&output.status.code()), "{}", stderr(&output));
    }
}

/// btrfs passes over the chunk of a swap file in use, and says nothing of it to who called it: that is not called compared.
#[test]
fn root_what_btrfs_passes_over_is_told() {
    let Some(bench) = Bench::new(1, &["-d", "single", "-m", "dup"]) else { return };
    let folder = bench.folder.path().join("mounted");
    let mounted = Mounted::new(&[bench.loops[0].path()], &folder);
    let mut random = Pcg64::seed_from_u64(31);
    fill(&folder, 4, 6 * MIB, &mut random);
    let swap = folder.join("swap");
    let ran = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).arg(&swap).output();
        output.is_ok_and(|output| output.status.success())
    };
    File::create(&swap).unwrap();
    let is_made = ran("chattr", &["+C"]) && ran("chmod", &["600"]) && ran("fallocate", &["-l", "6M"]);
    if !is_made || !ran("mkswap", &["-q"]) || !ran("swapon", &[]) {
        eprintln!("SKIPPED: a swap file on btrfs cannot be used here");
        return;
    }
    // It has come into a chunk with data.
    let of_swap = addresses(&swap)[0];
    let sectors = (0..4).flat_map(|file| addresses(&folder.join(format!("file{file}"))));
    let nearest = sectors.min_by_key(|sector| sector.abs_diff(of_swap)).unwrap();
    let device = File::options().read(true).write(true).open(&bench.files[0]).unwrap();
    let (_, place) = bench.places(nearest)[0];
    damage(&device, place, "sector", 0, &mut random);
    let while_used = scrub(&bench, 0, &["--idle-wait", "1ms"]);
    assert!(ran("swapoff", &[]));
    let after = scrub(&bench, 0, &["--idle-wait", "1ms"]);
    let (report, exit) = while_used;
    let skipped = report["skipped_bytes"].as_u64().unwrap();
    assert!(skipped > 6 * MIB && skipped < 32 * MIB, "{report}");
    assert_eq!((&report["state"], &report["wrong"], exit), (&"complete".into(), &0.into(), Some(1)), "{report}");
    let (report, exit) = after;
    assert_eq!((&report["skipped_bytes"], &report["wrong"], exit), (&0.into(), &1.into(), Some(3)), "{report}");
    drop(mounted);
}

/// It goes by what was committed: data that have come into a new chunk since then were not passed over.
#[test]
fn root_what_is_not_committed_yet_is_not_passed_over() {
    let Some(bench) = Bench::of_size(600 * MIB, 1, &["-d", "single", "-m", "dup"]) else { return };
    let folder = bench.folder.path().join("mounted");
    let _mounted = Mounted::new(&[bench.loops[0].path()], &folder);
    // None comes in between.
    system("mount", &["-o", "remount,commit=300", folder.to_str().unwrap()]);
    fill(&folder, 1, 4 * MIB, &mut Pcg64::seed_from_u64(37));
    for number in 0..8 {
        let to = format!("of={}", folder.join(format!("new{number}")).display());
        system("dd", &["if=/dev/zero", &to, "bs=1M", "count=16", "oflag=direct", "status=none"]);
    }
    let (report, exit) = scrub(&bench, 0, &["--idle-wait", "1ms"]);
    assert_eq!(
        (&report["skipped_bytes"], &report["state"], exit),
        (&0.into(), &"complete".into(), Some(0)),
        "{report}"
    );
}

/// The kernel would rewrite parity, and count nothing: so it is not asked to.
#[test]
fn root_a_btrfs_with_parity_is_refused() {
    let Some(bench) = Bench::new(3, &["-d", "raid5", "-m", "raid1"]) else { return };
    let folder = bench.folder.path().join("mounted");
    let state = bench.folder.path().join("state");
    let ask = || {
        let output =
            run(&["owner-scrub", bench.loops[0].path(), "--allow-writes", "--state-dir", state.to_str().unwrap()]);
        (output.status.code(), stderr(&output))
    };
    let (exit, why) = ask();
    assert!(exit == Some(1) && why.contains("mounted"), "{why}");
    let _mounted = Mounted::new(&[bench.loops[0].path()], &folder);
    fill(&folder, 1, 4 * MIB, &mut Pcg64::seed_from_u64(37));
    let (exit, why) = ask();
    assert!(exit == Some(1) && why.contains("parity"), "{why}");
}

/// Nobody is told of what could not be kept only at the end of hours: it is said at once, and what was found is printed all the same.
#[test]
fn root_what_was_found_is_told_where_its_place_cannot_be_kept() {
    let Some(bench) = Bench::new(1, &["-d", "single", "-m", "single"]) else { return };
    let folder = bench.folder.path().join("mounted");
    let _mounted = Mounted::new(&[bench.loops[0].path()], &folder);
    fill(&folder, 1, 4 * MIB, &mut Pcg64::seed_from_u64(41));
    let scrub = |more: &[&str]| {
        let always = ["owner-scrub", bench.loops[0].path(), "--json", "--allow-writes", "--state-dir", "/proc/nowhere"];
        let output = run(&[&always[..], more].concat());
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (report["state"].clone(), output.status.code(), stderr(&output))
    };
    let (state, exit, said) = scrub(&["--idle-wait", "1h", "--for", "300ms"]);
    assert_eq!((&state, exit), (&"interrupted".into(), Some(1)), "{said}");
    assert_eq!(said.matches("cannot be kept").count(), 2, "{said}");
    let (state, exit, said) = scrub(&["--idle-wait", "1ms"]);
    assert_eq!((&state, exit), (&"complete".into(), Some(0)), "{said}");
}
