//! What btrfs keeps checksums of is compared with them: errors are put behind its back while others write to it, and each must be found
//! at its place, none must be invented, and the kernel's own scrub must count as many.

#[path = "common/btrfs.rs"]
mod btrfs;
mod common;

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use btrfs::{Bench, KINDS, NODE, SECTOR, Writer, addresses, damage, fill, found, tree_blocks};
use common::bench::{Loop, MIB, Mounted, PACE, system};
use common::{idlewise, run, stderr, stdout};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Errors in each layout.
const ERRORS: usize = 100;

/// Puts errors into data of one layout, and looks for them.
fn every_error_is_found(devices: usize, options: &[&str], seed: u64) {
    let Some(bench) = Bench::new(devices, options) else { return };
    println!("{options:?}, seed {seed}");
    let has_parity = ["raid5", "raid6"].contains(&options[1]);
    let mut random = Pcg64::seed_from_u64(seed);
    let folder = bench.mount_point();
    let _mounted = Mounted::new(&[bench.loops[0].path()], &folder);
    fill(&folder, 6, 6 * MIB, &mut random);
    let sectors: Vec<u64> = (0..6).flat_map(|file| addresses(&folder.join(format!("file{file}")))).collect();
    assert_eq!(sectors.len() as u64, 6 * 6 * MIB / SECTOR);
    let files: Vec<_> =
        bench.files.iter().map(|path| File::options().read(true).write(true).open(path).unwrap()).collect();
    let mut injected = vec![BTreeSet::new(); devices];
    let mut count = 0;
    while count < ERRORS {
        let any = |random: &mut Pcg64| sectors[random.random_range(0..sectors.len())];
        let places = bench.places(any(&mut random));
        // With parity, what follows the first is how to compute it.
        let copies = if has_parity { 1 } else { places.len() };
        let (device, place) = places[random.random_range(0..copies)];
        let others = bench.places(any(&mut random));
        let Some((_, other)) = others.into_iter().take(copies).find(|one| one.0 == device && one.1 != place) else {
            continue;
        };
        if injected[device].insert(place) {
            damage(&files[device], place, KINDS[count % KINDS.len()], other, &mut random);
            count += 1;
        }
    }
    let writer = Writer::compile(&folder);
    for (device, injected) in injected.iter().enumerate() {
        let result = bench.scrub(device, &[]);
        assert_eq!(result["state"], "complete", "{result}");
        assert_eq!(found(&result, "checksum"), *injected, "device {device}: {result}");
        let all: u64 = result["errors"].as_array().unwrap().iter().map(|run| run["blocks"].as_u64().unwrap()).sum();
        assert_eq!(all, injected.len() as u64 * SECTOR / 512, "device {device}: {result}");
        for run in result["errors"].as_array().unwrap() {
            let holds = run["holds"][0].as_str().unwrap_or_default();
            assert!(holds.contains("/mounted/file"), "{run} of {result}");
        }
    }
    drop(writer);
    // The owner's own scrub, which repairs nothing here, counts as many.
    let output = Command::new("btrfs").args(["scrub", "start", "-B", "-r", "-R"]).arg(&folder).output().unwrap();
    let text = stdout(&output);
    let count = text.lines().find_map(|line| line.trim().strip_prefix("csum_errors:")?.trim().parse::<usize>().ok());
    assert_eq!(count, Some(ERRORS), "{text}");
    // Of each kind as many, and all were found.
    let of_each = vec![(ERRORS / KINDS.len()).to_string(); KINDS.len()].join(" | ");
    println!("| btrfs {} | {of_each} | 0 |", options[1]);
}

#[test]
fn root_every_error_in_data_of_btrfs_is_found_on_one_copy() {
    every_error_is_found(1, &["-d", "single", "-m", "dup"], 1);
    every_error_is_found(2, &["-d", "raid0", "-m", "raid1", "--csum", "xxhash"], 2);
}

#[test]
fn root_every_error_in_data_of_btrfs_is_found_on_several_copies() {
    every_error_is_found(1, &["-d", "dup", "-m", "dup", "--csum", "sha256"], 3);
    every_error_is_found(2, &["-d", "raid1", "-m", "raid1", "--csum", "blake2"], 4);
    every_error_is_found(3, &["-d", "raid1c3", "-m", "raid1c3"], 5);
    every_error_is_found(4, &["-d", "raid1c4", "-m", "raid1c4"], 6);
    every_error_is_found(4, &["-d", "raid10", "-m", "raid10"], 7);
}

#[test]
fn root_every_error_in_data_of_btrfs_is_found_with_parity() {
    every_error_is_found(3, &["-d", "raid5", "-m", "raid1"], 8);
    every_error_is_found(4, &["-d", "raid6", "-m", "raid1c3"], 9);
}

/// Of an extent of which a file has another part only, the rest is kept as well.
#[test]
fn root_what_no_file_reads_any_more_is_told_by_its_extent() {
    let Some(bench) = Bench::new(1, &["-d", "single", "-m", "dup"]) else { return };
    let mut random = Pcg64::seed_from_u64(21);
    let folder = bench.mount_point();
    let _mounted = Mounted::new(&[bench.loops[0].path()], &folder);
    fill(&folder, 1, MIB, &mut random);
    let path = folder.join("file0");
    let before = addresses(&path);
    let file = File::options().write(true).open(&path).unwrap();
    file.write_all_at(&[1; 64 << 10], MIB / 2).unwrap();
    file.sync_all().unwrap();
    let at = (MIB / 2 / SECTOR) as usize + 3;
    assert_ne!(before[at], addresses(&path)[at], "it was not written elsewhere");
    let (_, place) = bench.places(before[at])[0];
    let disk = File::options().write(true).open(&bench.files[0]).unwrap();
    disk.write_all_at(&[7; 100], place).unwrap();
    let result = bench.scrub(0, &[]);
    assert_eq!(found(&result, "checksum"), [place].into(), "{result}");
    let holds = result["errors"][0]["holds"][0].as_str().unwrap();
    assert!(holds.starts_with("a part of an extent of /") && holds.ends_with("/file0 that no file reads"), "{holds}");
}

/// Whenever it is killed, the pass that goes on finds what is left, and counts each byte once.
#[test]
fn root_no_error_is_lost_when_a_scrub_is_killed() {
    let Some(bench) = Bench::new(1, &["-d", "single", "-m", "dup"]) else { return };
    let mut random = Pcg64::seed_from_u64(14);
    let folder = bench.mount_point();
    let _mounted = Mounted::new(&[bench.loops[0].path()], &folder);
    fill(&folder, 6, 20 * MIB, &mut random);
    let sectors: Vec<u64> = (0..6).flat_map(|file| addresses(&folder.join(format!("file{file}")))).collect();
    let file = File::options().read(true).write(true).open(&bench.files[0]).unwrap();
    let mut injected = BTreeSet::new();
    while injected.len() < ERRORS {
        let (_, place) = bench.places(sectors[random.random_range(0..sectors.len())])[0];
        if injected.insert(place) {
            damage(&file, place, "bit", 0, &mut random);
        }
    }
    let state = bench.folder.path().join("state");
    let arguments = ["scrub", bench.loops[0].path(), "--json", "--quiet", "--max-rate", "60MB/s", "--state-dir"];
    let arguments = [&arguments[..], &[state.to_str().unwrap()], &PACE].concat();
    let (mut kills, mut result) = (0, Value::Null);
    while result["state"] != "complete" {
        let mut scrub = idlewise(&arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let until = Instant::now() + Duration::from_millis(random.random_range(50..1500) + 100 * kills);
        while scrub.try_wait().unwrap().is_none() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        // Interrupted or killed: what the one says at its end the other cannot.
        if scrub.try_wait().unwrap().is_none() {
            kills += 1;
            let signal = if kills % 3 == 0 { Signal::INT } else { Signal::KILL };
            kill_process(Pid::from_child(&scrub), signal).unwrap();
        }
        let output = scrub.wait_with_output().unwrap();
        result = serde_json::from_slice(&output.stdout).unwrap_or_default();
    }
    println!("{kills} times ended before its end");
    assert_eq!(found(&result, "checksum"), injected, "{result}");
    let content = &result["content"];
    let all = ["judged_bytes", "free_bytes", "unjudged_bytes"].map(|part| content[part].as_u64().unwrap());
    assert!(kills >= 3 && all.iter().sum::<u64>() == 300 * MIB && all[2] < MIB, "{kills} {content}");
}

/// A tree block with a changed bit, one that belongs elsewhere, and one that was never written.
#[test]
fn root_tree_blocks_of_btrfs_are_compared_with_what_they_should_be() {
    let Some(bench) = Bench::new(1, &["-d", "single", "-m", "dup"]) else { return };
    let mut random = Pcg64::seed_from_u64(10);
    let folder = bench.mount_point();
    let _mounted = Mounted::new(&[bench.loops[0].path()], &folder);
    // Others write in a tree of its own: what is changed in a tree is written elsewhere, and the old block is free.
    let written = folder.join("written");
    system("btrfs", &["subvolume", "create", written.to_str().unwrap()]);
    // Many small files: their trees have many blocks.
    for file in 0..3_000 {
        std::fs::write(folder.join(format!("{file}")), vec![1; random.random_range(10..6_000)]).unwrap();
    }
    system("sync", &["-f", folder.to_str().unwrap()]);
    let blocks = tree_blocks(bench.loops[0].path(), "fs");
    assert!(blocks.len() > 50, "{}", blocks.len());
    let file = File::options().read(true).write(true).open(&bench.files[0]).unwrap();
    // Asked before: btrfs-progs stumble over what is put there.
    let places: Vec<_> =
        blocks.iter().take(30).enumerate().map(|(at, logical)| bench.places(*logical)[at % 2].1).collect();
    let other = bench.places(blocks[40])[0].1;
    let mut injected = BTreeSet::new();
    for (at, place) in places.into_iter().enumerate() {
        let mut block = vec![0; NODE as usize];
        file.read_exact_at(&mut block, place).unwrap();
        match at % 3 {
            0 => block[random.random_range(0..NODE as usize)] ^= 1,
            1 => file.read_exact_at(&mut block, other).unwrap(),
            _ => block.fill(0),
        }
        file.write_all_at(&block, place).unwrap();
        injected.extend((place..place + NODE).step_by(SECTOR as usize));
    }
    let _writer = Writer::new(&written);
    let result = bench.scrub(0, &[]);
    assert_eq!(found(&result, "tree-block"), injected, "{result}");
    assert_eq!(found(&result, "checksum"), BTreeSet::new());
    assert!(result["errors"].as_array().unwrap().iter().all(|run| run["holds"][0] == "metadata"), "{result}");
}

/// A copy of the superblock is written anew: by a file system that has it in memory.
#[test]
fn root_a_wrong_superblock_is_written_anew() {
    let Some(bench) = Bench::new(1, &["-d", "single", "-m", "dup"]) else { return };
    let folder = bench.mount_point();
    let _mounted = Mounted::new(&[bench.loops[0].path()], &folder);
    fill(&folder, 1, MIB, &mut Pcg64::seed_from_u64(41));
    let disk = File::options().write(true).open(&bench.files[0]).unwrap();
    for place in [64 << 10, 64 * MIB] {
        disk.write_all_at(&[7; 100], place + 300).unwrap();
        let result = bench.scrub(0, &[]);
        assert_eq!(found(&result, "tree-block"), [place].into(), "{result}");
        assert_eq!(result["errors"][0]["holds"], serde_json::json!(["superblock of btrfs"]), "{result}");
        let state = bench.folder.path().join("state");
        let repair = ["repair", bench.loops[0].path(), "--btrfs", "--allow-writes", "--state-dir"];
        let output = run(&[&repair[..], &[state.to_str().unwrap()]].concat());
        assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
        let after = bench.scrub(0, &[]);
        assert_eq!(after["errors"], serde_json::json!([]), "{after}");
    }
}

/// Of a whole disk, the part is judged that btrfs is on; what lies before and behind it is only read.
#[test]
fn root_a_partition_of_a_disk_is_judged() {
    let Some(bench) = Bench::new(1, &["-d", "single", "-m", "dup"]) else { return };
    // The same file system in the middle of a larger disk, whose partition begins at 2 MiB.
    const BEGIN: u64 = 2 * MIB;
    let image = bench.folder.path().join("whole");
    let mut table = vec![0; 512];
    let entry = [
        &[0, 0, 0, 0, 0x83, 0, 0, 0][..],
        &((BEGIN / 512) as u32).to_le_bytes(),
        &((300 * MIB / 512) as u32).to_le_bytes(),
    ];
    table[446..462].copy_from_slice(&entry.concat());
    table[510..].copy_from_slice(&[0x55, 0xaa]);
    let file = File::options().create(true).truncate(true).read(true).write(true).open(&image).unwrap();
    file.set_len(310 * MIB).unwrap();
    file.write_all_at(&table, 0).unwrap();
    let Some(whole) = Loop::new(&image, &["-P"]) else { return };
    let part = format!("{}p1", whole.path());
    if !Path::new(&part).exists() {
        eprintln!("SKIPPED: there is no {part}");
        return;
    }
    system("mkfs.btrfs", &["-q", "-f", "-d", "single", "-m", "dup", &part]);
    let folder = bench.mount_point();
    let _mounted = Mounted::new(&[&part], &folder);
    let mut random = Pcg64::seed_from_u64(15);
    fill(&folder, 1, 40 * MIB, &mut random);
    let wanted = addresses(&folder.join("file0"));
    let arguments = ["-l", &wanted[77].to_string(), "-b", "4096", &part];
    let output = stdout(&Command::new("btrfs-map-logical").args(arguments).output().unwrap());
    let place: u64 = output.split_whitespace().skip_while(|word| *word != "physical").nth(1).unwrap().parse().unwrap();
    damage(&file, BEGIN + place, "bit", 0, &mut random);
    let state = bench.folder.path().join("state");
    let arguments = ["scrub", whole.path(), "--json", "--quiet", "--state-dir", state.to_str().unwrap()];
    let output = run(&[&arguments[..], &PACE].concat());
    let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    assert_eq!(found(&result, "checksum"), BTreeSet::from([BEGIN + place]), "{result}");
    assert!(result["content"]["judged_bytes"].as_u64().unwrap() > 40 * MIB && result["content"]["unasked"].is_null());
}

/// btrfs has another copy of what is wrong on one device, and none of what is wrong on both: that is told, and left.
#[test]
fn root_btrfs_repairs_what_it_has_another_copy_of() {
    let Some(bench) = Bench::new(2, &["-d", "raid1", "-m", "raid1"]) else { return };
    let mut random = Pcg64::seed_from_u64(13);
    let folder = bench.mount_point();
    let _mounted = Mounted::new(&[bench.loops[0].path()], &folder);
    fill(&folder, 2, 4 * MIB, &mut random);
    let whole = std::fs::read(folder.join("file0")).unwrap();
    let sectors = addresses(&folder.join("file0"));
    let lost = addresses(&folder.join("file1"))[100];
    let files: Vec<_> =
        bench.files.iter().map(|path| File::options().read(true).write(true).open(path).unwrap()).collect();
    for at in 0..40 {
        let (device, place) = bench.places(sectors[at * 20])[0];
        damage(&files[device], place, KINDS[at % 5], (place + 64 * SECTOR) % (200 * MIB), &mut random);
    }
    for (device, place) in bench.places(lost) {
        damage(&files[device], place, "bit", 0, &mut random);
    }
    let repair = |device: usize, more: &[&str]| {
        let state = bench.folder.path().join("state");
        let arguments = [
            "repair",
            bench.loops[device].path(),
            "--btrfs",
            "--max-blocks",
            "1000",
            "--state-dir",
            state.to_str().unwrap(),
        ];
        run(&[&arguments[..], more].concat())
    };
    let before = [0, 1].map(|device| found(&bench.scrub(device, &[]), "checksum"));
    assert_eq!(before.iter().map(BTreeSet::len).sum::<usize>(), 42);
    let images = || bench.files.iter().map(|file| std::fs::read(file).unwrap()).collect::<Vec<_>>();
    let untouched = images();
    let only_shown = repair(0, &[]);
    assert!(stderr(&only_shown).contains("--allow-writes does it"), "{}", stderr(&only_shown));
    assert!(images() == untouched, "something was written without --allow-writes");
    for device in [0, 1] {
        let output = repair(device, &["--allow-writes", "--json"]);
        let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        let count = |fate: &str| {
            let runs = result["blocks"].as_array().unwrap().iter().filter(|run| run["result"] == fate);
            runs.map(|run| run["blocks"].as_u64().unwrap() * 512 / SECTOR).sum::<u64>()
        };
        assert_eq!(count("still-bad"), 1, "{result}");
        assert_eq!(count("repaired"), before[device].len() as u64 - 1, "{result}");
        assert_eq!(output.status.code(), Some(3));
        assert_eq!(found(&bench.scrub(device, &[]), "checksum").len(), 1);
    }
    // Byte for byte, on either copy.
    for (at, logical) in sectors.iter().enumerate().step_by(20) {
        for (device, place) in bench.places(*logical) {
            let mut sector = vec![0; SECTOR as usize];
            files[device].read_exact_at(&mut sector, place).unwrap();
            assert!(sector == whole[at * SECTOR as usize..][..SECTOR as usize], "sector {at} on device {device}");
        }
    }
}

/// What is written meanwhile is no error, however long it goes on; and what could be covered was.
#[test]
fn root_beside_writers_there_is_no_false_alarm() {
    let seconds = std::env::var("IDLEWISE_WRITING_SECONDS").map_or(20, |text| text.parse::<u64>().unwrap());
    let Some(bench) = Bench::new(1, &["-d", "single", "-m", "dup"]) else { return };
    let folder = bench.mount_point();
    let _mounted = Mounted::new(&[bench.loops[0].path()], &folder);
    fill(&folder, 4, 20 * MIB, &mut Pcg64::seed_from_u64(11));
    let _writers = [Writer::new(&folder), Writer::compile(&folder)];
    let began = std::time::Instant::now();
    let (mut passes, mut transient) = (0, 0);
    while began.elapsed().as_secs() < seconds || passes < 2 {
        let result = bench.scrub(0, &[]);
        assert_eq!(result["errors"], serde_json::json!([]), "pass {passes}: {result}");
        let content = &result["content"];
        let judged = content["judged_bytes"].as_u64().unwrap();
        assert!(judged > 80 * MIB && content["unasked"].is_null(), "{result}");
        let all = ["judged_bytes", "free_bytes", "unjudged_bytes"].map(|part| content[part].as_u64().unwrap());
        assert_eq!(all.iter().sum::<u64>(), 300 * MIB, "{result}");
        passes += 1;
        transient += content["transient"].as_u64().unwrap();
    }
    println!("{passes} passes in {:?}, {transient} transient differences", began.elapsed());
}

/// A damaged superblock switches nothing off: another copy is used, and the damaged one is told. And what was found to be wrong stays in the
/// list of a pass that could not compare it.
#[test]
fn root_what_is_wrong_stays_so_until_it_is_compared_again() {
    let Some(bench) = Bench::new(1, &["-d", "single", "-m", "dup"]) else { return };
    let folder = bench.mount_point();
    let mounted = Mounted::new(&[bench.loops[0].path()], &folder);
    let mut random = Pcg64::seed_from_u64(17);
    fill(&folder, 1, 20 * MIB, &mut random);
    let (_, place) = bench.places(addresses(&folder.join("file0"))[50])[0];
    let file = File::options().read(true).write(true).open(&bench.files[0]).unwrap();
    damage(&file, place, "sector", 0, &mut random);
    let superblock = 64 << 10;
    let mut whole = vec![0; SECTOR as usize];
    file.read_exact_at(&mut whole, superblock).unwrap();
    damage(&file, superblock, "bit", 0, &mut random);
    let result = bench.scrub(0, &[]);
    assert_eq!(found(&result, "checksum"), BTreeSet::from([place]), "{result}");
    assert_eq!(found(&result, "tree-block"), BTreeSet::from([superblock]), "{result}");
    drop(mounted);
    file.write_all_at(&whole, superblock).unwrap();
    let result = bench.scrub(0, &[]);
    assert_eq!((&result["errors"], &result["errors_before"][1]["kind"]), (&serde_json::json!([]), &"checksum".into()));
    let state = bench.folder.path().join("state");
    let again = ["scrub", bench.loops[0].path(), "--quiet", "--state-dir", state.to_str().unwrap()];
    let output = run(&[&again[..], &PACE].concat());
    assert_eq!(output.status.code(), Some(3), "{}", stdout(&output));
    assert!(stdout(&output).contains("not compared in this pass, so still taken for wrong"), "{}", stdout(&output));
    let status = |code: i32| -> Value {
        let output = run(&["status", bench.loops[0].path(), "--json", "--state-dir", state.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    assert!(found(&status(3)[0], "checksum").contains(&place));
    // The file is gone, and so is what was wrong with it.
    let _mounted = Mounted::new(&[bench.loops[0].path()], &folder);
    std::fs::remove_file(folder.join("file0")).unwrap();
    system("sync", &["-f", folder.to_str().unwrap()]);
    assert_eq!(bench.scrub(0, &[])["errors"], serde_json::json!([]));
    assert_eq!(status(0)[0]["errors"], serde_json::json!([]));
}

/// What is wrong on a file system that is not mounted stays so, though another one on the disk is.
#[test]
fn root_what_is_wrong_is_not_forgotten_for_another_file_system() {
    const PARTS: [(u64, u64); 2] = [(2, 140), (150, 100)];
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("whole");
    let entry = |(begin, length): (u64, u64)| {
        let [begin, length] = [begin, length].map(|mib| ((mib * MIB / 512) as u32).to_le_bytes());
        [&[0, 0, 0, 0, 0x83, 0, 0, 0][..], &begin, &length].concat()
    };
    let mut table = vec![0; 512];
    table[446..478].copy_from_slice(&PARTS.map(entry).concat());
    table[510..].copy_from_slice(&[0x55, 0xaa]);
    let file = File::options().create_new(true).read(true).write(true).open(&image).unwrap();
    file.set_len(260 * MIB).unwrap();
    file.write_all_at(&table, 0).unwrap();
    let Some(whole) = Loop::new(&image, &["-P"]) else { return };
    let [first, second] = [1, 2].map(|part| format!("{}p{part}", whole.path()));
    let has_btrfs = std::fs::read_to_string("/proc/filesystems").unwrap().contains("\tbtrfs");
    if ![&first, &second].iter().all(|part| Path::new(part).exists()) || !has_btrfs {
        eprintln!("SKIPPED: there is no {first}, or no btrfs");
        return;
    }
    system("mkfs.btrfs", &["-q", "-f", "-d", "single", "-m", "dup", &first]);
    system("mkfs.ext4", &["-q", "-F", &second]);
    let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
    let mounted = Mounted::new(&[&first], &one);
    let _other = Mounted::new(&[&second], &other);
    let mut random = Pcg64::seed_from_u64(43);
    fill(&one, 1, 20 * MIB, &mut random);
    let wanted = addresses(&one.join("file0"))[50];
    let arguments = ["-l", &wanted.to_string(), "-b", "4096", &first];
    let output = stdout(&Command::new("btrfs-map-logical").args(arguments).output().unwrap());
    let place: u64 = output.split_whitespace().skip_while(|word| *word != "physical").nth(1).unwrap().parse().unwrap();
    damage(&file, PARTS[0].0 * MIB + place, "sector", 0, &mut random);
    let state = folder.path().join("state");
    let scrub = |more: &[&str]| {
        let arguments = ["scrub", whole.path(), "--quiet", "--state-dir", state.to_str().unwrap()];
        let output = run(&[&arguments[..], &PACE, more].concat());
        assert!([Some(0), Some(3)].contains(&output.status.code()), "{}", stderr(&output));
    };
    let status = || run(&["status", whole.path(), "--state-dir", state.to_str().unwrap()]).status.code();
    scrub(&[]);
    assert_eq!(status(), Some(3));
    scrub(&["--content", "allocation"]);
    assert_eq!(status(), Some(3), "its owner was not asked");
    drop(mounted);
    scrub(&[]);
    assert_eq!(status(), Some(3), "its owner is not mounted");
    let _mounted = Mounted::new(&[&first], &one);
    std::fs::remove_file(one.join("file0")).unwrap();
    system("sync", &["-f", one.to_str().unwrap()]);
    scrub(&[]);
    assert_eq!(status(), Some(0), "it was asked");
}
