//! The worst that disks and file systems do to a scrub or a repair. On real block devices.

mod common;

use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::bench::{Bench, Loop, MIB, Mounted, PACE};
use common::held::until;
use common::{idlewise, run, stderr};
use idlewise::Bytes;
use idlewise_testbed::{Options, Timing};
use rustix::process::Signal;
use serde_json::Value;

/// Without a free inode for its folder, its lock or its checkpoint, a first scrub says so in a line, goes on, and saves its end when
/// there is one.
#[test]
fn root_no_inode_for_a_checkpoint_ends_no_scrub() {
    let Some(bench) = Bench::new(128 * MIB, &[], true) else { return };
    let mount = bench.folder.path().join("small");
    let _mounted = Mounted::new(&["-t", "tmpfs", "-o", "nr_inodes=8,mode=755", "none"], &mount);
    for folder in ["", "no/such/yet"] {
        let state = mount.join(folder);
        let fill = || {
            (0..9)
                .map(|at| mount.join(format!("full{at}")))
                .filter(|path| File::create(path).is_ok())
                .collect::<Vec<_>>()
        };
        let full = fill();
        assert!(full.len() < 8);
        let scrub = ["scrub", bench.path(), "--state-dir", state.to_str().unwrap(), "--json", "--restart"];
        let pace = ["--request-size", "64KiB", "--idle-wait", "1ms"];
        let expected = "its checkpoint cannot be saved, going on and trying again: ";
        let told = bench.folder.path().join("told");
        let said = || fs::read_to_string(&told).unwrap();
        let mut command = idlewise(&[&scrub[..], &pace].concat());
        let running = command.stdout(Stdio::piped()).stderr(File::create(&told).unwrap()).spawn().unwrap();
        until("told", || said().contains(expected));
        full.iter().for_each(|path| fs::remove_file(path).unwrap());
        let output = running.wait_with_output().unwrap();
        let said = said();
        assert_eq!(output.status.code(), Some(0), "{said}");
        let lines: Vec<_> = said.lines().filter(|line| line.contains(expected)).collect();
        assert!(lines.len() == 1 && lines[0].contains("no inode is free on its file system"), "{said}");
        assert!(said.contains("its checkpoint is saved again"), "{said}");
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(result["verified_bytes"], 128 * MIB);
        let status: Value =
            serde_json::from_slice(&run(&["status", "--state-dir", state.to_str().unwrap(), "--json"]).stdout).unwrap();
        assert_eq!(status[0]["state"], "complete", "{status}");
        // None of what this one left keeps the next from being the first.
        fs::read_dir(&mount).unwrap().for_each(|entry| {
            let path = entry.unwrap().path();
            fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path)).unwrap();
        });
    }
}

/// Where a request is never answered, the next run looks at all else first, and then there once more; also when the run that hung was
/// killed, as by a reset of the machine.
#[test]
fn root_a_stretch_that_hangs_is_met_last() {
    const STRETCH: u64 = 512 << 10;
    let options = Options { size: Bytes(64 * MIB), hang: Some(20_000), ..Options::default() };
    let Some(bench) = Bench::of(&options) else { return };
    let at = 20_000 * 512 / STRETCH * STRETCH;
    for (signal, verified) in
        [(Signal::KILL, at), (Signal::TERM, 64 * MIB - STRETCH), (Signal::TERM, 64 * MIB - STRETCH)]
    {
        let scrub = bench.start(&PACE);
        let until = Instant::now() + Duration::from_secs(60);
        let hangs = || bench.checkpoint().is_some_and(|saved| saved["run"]["doing"] == "hung");
        // The note of a run that hangs is told at once, the checkpoint when there is anything new.
        let state = bench.folder.path().to_str().unwrap();
        let told = || {
            serde_json::from_slice::<Value>(&run(&["status", "--state-dir", state, "--json"]).stdout)
                .unwrap_or_default()
        };
        while if signal == Signal::KILL { !hangs() } else { told()[0]["doing"] != "hung" } {
            assert!(Instant::now() < until, "{}", told());
            std::thread::sleep(Duration::from_millis(200));
        }
        scrub.signal(signal);
        let output = scrub.end();
        let left = serde_json::json!([[at, at + STRETCH]]);
        assert_eq!(bench.checkpoint().unwrap()["left"]["skipped"], left);
        if signal == Signal::KILL {
            assert_eq!(bench.checkpoint().unwrap()["place"]["visited_bytes"], verified + STRETCH);
            continue;
        }
        let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        assert_eq!(
            (&result["verified_bytes"], &result["errors"]),
            (&verified.into(), &serde_json::json!([])),
            "{result}"
        );
    }
}

/// Zeros around unreadable blocks tell no mirror; data further away do, or tell that it is none.
#[test]
fn root_blank_neighbours_are_no_mirror() {
    const SIZE: u64 = 64 * MIB;
    let Some(bench) = Bench::new(SIZE, std::slice::from_ref(&(100_000..100_002)), false) else { return };
    assert_eq!(bench.scrub(&PACE).0, 3);
    let mirror = Loop::of_size(&bench.folder.path().join("mirror"), SIZE, &[]).unwrap();
    let state = bench.folder.path().to_str().unwrap();
    let repair = ["repair", bench.path(), "--mirror", mirror.path(), "--state-dir", state];
    let refused = |why: &str| {
        let output = run(&[&repair[..], &["--allow-writes"]].concat());
        let said = stderr(&output);
        assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
        assert!(said.contains("is not taken for a mirror of") && said.contains(why), "{said}");
    };
    refused("it cannot be told whether they mirror each other");
    let data: Vec<u8> = (0..MIB).map(|at| (at * at / 512 % 251) as u8).collect();
    let write = |path: &str, data: &[u8]| {
        let file = File::options().write(true).open(path).unwrap();
        file.write_all_at(data, 0).unwrap();
        file.sync_all().unwrap();
    };
    write(bench.path(), &data);
    refused("they differ at block");
    write(mirror.path(), &data);
    let output = run(&repair);
    assert!(stderr(&output).contains("2 blocks would be rewritten"), "{}", stderr(&output));
}

/// Such a disk of 16 MiB, and its mirror, with data but for the sectors in these blocks.
fn with_sectors(bad: &Range<u64>) -> Option<(Bench, Loop, Vec<u8>)> {
    const SIZE: u64 = 16 * MIB;
    let options = Options {
        size: Bytes(SIZE),
        bad_blocks: vec![bad.clone()],
        sector: Some(Bytes(4096)),
        timing: Timing::Instant,
        ..Options::default()
    };
    let bench = Bench::of(&options)?;
    let mirror = Loop::of_size(&bench.folder.path().join("mirror"), SIZE, &[])?;
    let data: Vec<u8> = (0..SIZE).map(|at| (at * at / 512 % 251) as u8).collect();
    let write = |device: &str, blocks: Range<u64>| {
        let file = File::options().write(true).open(device).unwrap();
        let (begin, end) = (blocks.start * 512, blocks.end * 512);
        file.write_all_at(&data[begin as usize..end as usize], begin).unwrap();
        file.sync_all().unwrap();
    };
    write(mirror.path(), 0..SIZE / 512);
    write(bench.path(), 0..bad.start / 8 * 8);
    write(bench.path(), bad.end.next_multiple_of(8)..SIZE / 512);
    assert_eq!(bench.scrub(&PACE).0, 3);
    Some((bench, mirror, data))
}

fn repaired(bench: &Bench, mirror: &Loop) -> (Option<i32>, Value) {
    let state = bench.folder.path().to_str().unwrap();
    let output =
        run(&["repair", bench.path(), "--mirror", mirror.path(), "--allow-writes", "--json", "--state-dir", state]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    (output.status.code(), report["blocks"].clone())
}

/// Most disks read a sector of 4 KiB before they put a block of 512 bytes into it: one that is bad takes nothing less than all of it.
#[test]
fn root_sectors_of_the_medium_are_repaired_as_a_whole() {
    let Some((bench, mirror, data)) = with_sectors(&(8000..8016)) else { return };
    let all = serde_json::json!([{ "lba": 8000, "blocks": 16, "result": "repaired" }]);
    assert_eq!(repaired(&bench, &mirror), (Some(0), all));
    let mut now = vec![0; 16 * 512];
    File::open(bench.path()).unwrap().read_exact_at(&mut now, 8000 * 512).unwrap();
    assert_eq!(now, data[8000 * 512..8016 * 512]);
}

/// What can be read again of a bad sector may have been written since: it is not overwritten with the rest.
#[test]
fn root_blocks_that_can_be_read_again_are_not_overwritten() {
    let Some((bench, mirror, _)) = with_sectors(&(8003..8016)) else { return };
    let mut files = fs::read_dir(bench.folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let file = files.find(|path| path.extension().is_some_and(|end| end == "json")).unwrap();
    let mut pass: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    pass["errors"] = serde_json::json!([{ "lba": 8000, "blocks": 16, "kind": "io" }]);
    fs::write(&file, pass.to_string()).unwrap();
    let run =
        |lba: u64, blocks: u64, result: &str| serde_json::json!({ "lba": lba, "blocks": blocks, "result": result });
    let fates = [run(8000, 3, "undecided"), run(8003, 5, "still-bad"), run(8008, 8, "repaired")];
    assert_eq!(repaired(&bench, &mirror), (Some(3), fates.to_vec().into()));
    // Past the page cache, which would read what is bad as well.
    let mut read = Command::new("dd");
    read.args([&format!("if={}", bench.path()), "iflag=direct", "bs=512", "skip=8000", "count=3"]);
    let now = read.output().unwrap().stdout;
    assert_eq!(now, [0; 3 * 512], "it was overwritten");
}
