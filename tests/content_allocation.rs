//! ext4 and XFS tell what is free and what lies where: with `--skip-free` nothing that is used is passed over, and a bad block is told with
//! what it is part of.

mod common;

use std::ops::Range;
use std::process::{Command, Stdio};

use common::bench::{Bench, MIB, Mounted, PACE, system};
use common::{run, stderr, stdout};
use idlewise::Bytes;
use idlewise_testbed::{Options, Timing};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use serde_json::Value;

const SIZE: u64 = 512 * MIB;

/// Where the extents of a file lie on the device, in bytes: by e2fsprogs, not by the code under test.
fn extents(file: &std::path::Path) -> Vec<Range<u64>> {
    let output = stdout(&Command::new("filefrag").args(["-v", "-b512"]).arg(file).output().unwrap());
    let extent = |line: &str| -> Option<Range<u64>> {
        let mut fields = line.split(':').skip(2);
        let begin: u64 = fields.next()?.split("..").next()?.trim().parse().ok()?;
        let length: u64 = fields.next()?.trim().parse().ok()?;
        Some(begin * 512..(begin + length) * 512)
    };
    output.lines().filter_map(extent).collect()
}

fn what_is_used_is_read(make: &[&str]) {
    let kind = make[0].trim_start_matches("mkfs.");
    if Command::new(make[0]).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err()
        || !std::fs::read_to_string("/proc/filesystems")
            .unwrap()
            .lines()
            .any(|line| line.ends_with(&format!("\t{kind}")))
    {
        eprintln!("SKIPPED: there is no {} or no {kind}", make[0]);
        return;
    }
    // Here and there eight sectors that cannot be read.
    let bad: Vec<Range<u64>> = (1..20).map(|at| at * 25 * MIB / 512 + 26_000).map(|first| first..first + 8).collect();
    let options = Options { size: Bytes(SIZE), bad_blocks: bad.clone(), timing: Timing::Instant, ..Options::default() };
    let Some(bench) = Bench::of(&options) else { return };
    system(make[0], &[&make[1..], &[bench.path()]].concat());
    let folder = bench.folder.path().join("mounted");
    let _mounted = Mounted::new(&[bench.path()], &folder);
    let mut random = Pcg64::seed_from_u64(20);
    let mut bytes = vec![0; 2 * MIB as usize];
    for file in 0..100 {
        random.fill_bytes(&mut bytes);
        std::fs::write(folder.join(format!("{file}")), &bytes).unwrap();
    }
    system("sync", &["-f", folder.to_str().unwrap()]);
    // Holes between what is left.
    (0..100)
        .filter(|file| file % 3 == 0)
        .for_each(|file| std::fs::remove_file(folder.join(format!("{file}"))).unwrap());
    system("sync", &["-f", folder.to_str().unwrap()]);
    let files = (0..100).filter(|file| file % 3 != 0).map(|file| folder.join(format!("{file}")));
    let used: Vec<_> = files.flat_map(|file| extents(&file)).collect();
    assert_eq!(used.iter().map(|extent| extent.end - extent.start).sum::<u64>(), 66 * 2 * MIB);
    let in_files = |lba: u64| used.iter().any(|extent| extent.contains(&(lba * 512)));
    let scrub = |state: &str, more: &[&str]| -> Value {
        let state = bench.folder.path().join(state);
        let arguments =
            ["scrub", bench.path(), "--restart", "--json", "--quiet", "--state-dir", state.to_str().unwrap()];
        let output = run(&[&arguments[..], &PACE, more].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)))
    };
    let found = |result: &Value| -> Vec<(u64, Option<bool>)> {
        let runs = result["errors"].as_array().unwrap().iter();
        runs.map(|run| (run["lba"].as_u64().unwrap(), run["holds"].as_array().map(|holds| !holds.is_empty()))).collect()
    };
    // All of it is read: each is found, and told to be of something where a file has it.
    let all = found(&scrub("state", &[]));
    assert_eq!(all.iter().map(|one| one.0).collect::<Vec<_>>(), bad.iter().map(|run| run.start).collect::<Vec<_>>());
    for (lba, holds) in &all {
        assert!(!in_files(*lba) || *holds == Some(true), "{kind}: {lba} holds {holds:?}");
    }
    let free: Vec<u64> = all.iter().filter(|one| one.1 == Some(false)).map(|one| one.0).collect();
    assert!(free.len() >= 5, "{kind}: {all:?}");
    // Of what is free nothing is read, of the rest all.
    let result = scrub("nothing known", &["--skip-free"]);
    let few: Vec<u64> = found(&result).into_iter().map(|one| one.0).collect();
    let expected: Vec<u64> = bad.iter().map(|run| run.start).filter(|lba| !free.contains(lba)).collect();
    assert_eq!(few, expected, "{kind}: {result}");
    assert!(few.iter().any(|lba| in_files(*lba)), "{kind}: no bad block in a file");
    let skipped = result["content"]["skipped_bytes"].as_u64().unwrap();
    assert!(skipped > SIZE - 66 * 2 * MIB - 80 * MIB && skipped < SIZE - 66 * 2 * MIB, "{kind}: {skipped}");
    // Only what was read is verified.
    let verified = result["verified_bytes"].as_u64();
    assert_eq!((&result["state"], verified), (&"complete".into(), Some(SIZE - skipped)), "{result}");
    let state = bench.folder.path().join("nothing known");
    let told = stdout(&run(&["status", "--state-dir", state.to_str().unwrap()]));
    assert!(told.contains("not read, as nothing uses it") && !told.contains("100.0 %"), "{told}");
    // What is known to be bad is read where it is free as well: else nobody would know whether it still is.
    let again = scrub("state", &["--skip-free"]);
    assert_eq!(found(&again), all, "{kind}: {again}");
    assert!(again["content"]["skipped_bytes"].as_u64() > Some(SIZE / 3), "{kind}: {again}");
}

#[test]
fn root_what_ext4_uses_is_read() {
    what_is_used_is_read(&["mkfs.ext4", "-q", "-F"]);
}

#[test]
fn root_what_xfs_uses_is_read() {
    what_is_used_is_read(&["mkfs.xfs", "-q", "-f"]);
}

#[test]
fn root_what_cannot_be_asked_is_not_skipped() {
    let Some(bench) = Bench::new(8 * MIB, &[], false) else { return };
    let output = run(&bench.arguments(&["--skip-free"]));
    assert_eq!(output.status.code(), Some(64));
    assert!(stderr(&output).contains("--skip-free needs a mounted"), "{}", stderr(&output));
}

/// btrfs leaves its first mebibyte to boot loaders: what lies there is not free.
#[test]
fn root_the_boot_area_of_btrfs_is_not_free() {
    if Command::new("mkfs.btrfs").arg("--version").stdout(Stdio::null()).status().is_err()
        || !std::fs::read_to_string("/proc/filesystems").unwrap().contains("\tbtrfs\n")
    {
        eprintln!("SKIPPED: it needs btrfs in the kernel, and mkfs.btrfs");
        return;
    }
    let bad = Range { start: 40, end: 44 };
    let options = Options { size: Bytes(SIZE), bad_blocks: vec![bad], timing: Timing::Instant, ..Options::default() };
    let Some(bench) = Bench::of(&options) else { return };
    // It is made elsewhere: what makes it reads what it is made on.
    let image = bench.folder.path().join("image");
    std::fs::File::create(&image).unwrap().set_len(SIZE).unwrap();
    system("mkfs.btrfs", &["-q", image.to_str().unwrap()]);
    let mut disk = std::fs::File::options().write(true).open(bench.path()).unwrap();
    std::io::copy(&mut std::fs::File::open(&image).unwrap(), &mut disk).unwrap();
    disk.sync_all().unwrap();
    let folder = bench.folder.path().join("mounted");
    let _mounted = Mounted::new(&[bench.path()], &folder);
    let output = run(&[
        "scrub",
        bench.path(),
        "--skip-free",
        "--json",
        "--quiet",
        "--request-size",
        "64KiB",
        "--idle-wait",
        "1ms",
        "--state-dir",
        bench.folder.path().join("states").to_str().unwrap(),
    ]);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let errors = result["errors"].as_array().unwrap();
    assert_eq!((errors.len(), &errors[0]["lba"]), (1, &40.into()), "{result}");
    assert_eq!(errors[0]["holds"], serde_json::json!(["reserved, as for a boot loader"]), "{result}");
    assert!(result["content"]["skipped_bytes"].as_u64() > Some(0), "{result}");
}
