//! A mounted btrfs over loop devices, somebody who writes to it, and errors behind its back.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rand::{Rng, RngExt};
use rand_pcg::Pcg64;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use crate::common::bench::{Loop, MIB, PACE, system};
use crate::common::{run, stderr, stdout};

pub const SECTOR: u64 = 4096;
pub const NODE: u64 = 16384;

/// A mounted btrfs over loop devices, each on a file.
pub struct Bench {
    pub folder: tempfile::TempDir,
    pub files: Vec<PathBuf>,
    pub loops: Vec<Loop>,
}

fn is_there(program: &str, version: &str) -> bool {
    Command::new(program).arg(version).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

impl Bench {
    /// `None`, said aloud, where the machine cannot have one.
    pub fn new(devices: usize, options: &[&str]) -> Option<Self> {
        Self::of_size(300 * MIB, devices, options)
    }

    /// With devices of this size.
    pub fn of_size(size: u64, devices: usize, options: &[&str]) -> Option<Self> {
        for program in ["mkfs.btrfs", "btrfs-map-logical", "filefrag"] {
            if !is_there(program, if program == "filefrag" { "-V" } else { "--version" }) {
                eprintln!("SKIPPED: {program} is not installed");
                return None;
            }
        }
        if !std::fs::read_to_string("/proc/filesystems").unwrap().contains("\tbtrfs\n") {
            eprintln!("SKIPPED: the kernel has no btrfs");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let files: Vec<_> = (0..devices).map(|device| folder.path().join(format!("disk{device}"))).collect();
        let loops: Option<Vec<_>> = files.iter().map(|file| Loop::of_size(file, size, &[])).collect();
        let bench = Self { files, loops: loops?, folder };
        let make = [&["-q", "-f"], options, &bench.paths()].concat();
        // It looks at all that is mounted, and fails where a test beside this one has just let go of a loop device.
        let is_made = || Command::new("mkfs.btrfs").args(&make).output().is_ok_and(|made| made.status.success());
        if !(0..4).any(|_| is_made()) {
            system("mkfs.btrfs", &make);
        }
        system("btrfs", &[&["device", "scan"][..], &bench.paths()].concat());
        Some(bench)
    }

    pub fn paths(&self) -> Vec<&str> {
        self.loops.iter().map(Loop::path).collect()
    }

    pub fn mount_point(&self) -> PathBuf {
        self.folder.path().join("mounted")
    }

    /// Where a byte of the file system's own addresses lies: by btrfs-progs, not by the code under test. Device and place.
    pub fn places(&self, logical: u64) -> Vec<(usize, u64)> {
        let mut command = Command::new("btrfs-map-logical");
        let output = command.args(["-l", &logical.to_string(), "-b", "4096", self.loops[0].path()]).output().unwrap();
        let output = stdout(&output) + &stderr(&output);
        let place = |line: &str| {
            let words: Vec<_> = line.split_whitespace().collect();
            let after = |word: &str| words[words.iter().position(|one| *one == word)? + 1..].first().copied();
            let device = self.paths().iter().position(|path| Some(*path) == after("device"))?;
            (after("logical")?.parse() == Ok(logical)).then_some((device, after("physical")?.parse().ok()?))
        };
        let places: Vec<_> = output.lines().filter_map(place).collect();
        assert!(!places.is_empty(), "{logical}: {output}");
        places
    }

    pub fn scrub(&self, device: usize, more: &[&str]) -> Value {
        let state = self.folder.path().join("state");
        let arguments = ["scrub", self.loops[device].path(), "--restart", "--json", "--quiet", "--state-dir"];
        let output = run(&[&arguments[..], &[state.to_str().unwrap()], &PACE, more].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)))
    }
}

/// Files of random bytes, on the disk.
pub fn fill(folder: &Path, files: u64, length: u64, seed: &mut Pcg64) {
    for file in 0..files {
        let mut bytes = vec![0; length as usize];
        seed.fill_bytes(&mut bytes);
        let path = folder.join(format!("file{file}"));
        std::fs::write(&path, bytes).unwrap();
        File::open(&path).unwrap().sync_all().unwrap();
    }
    system("sync", &["-f", folder.to_str().unwrap()]);
}

/// Addresses of the sectors of a file.
pub fn addresses(file: &Path) -> Vec<u64> {
    let output = stdout(&Command::new("filefrag").args(["-v", "-b4096"]).arg(file).output().unwrap());
    let numbers = |line: &str| -> Option<(u64, u64)> {
        let mut fields = line.split(':').skip(2);
        let place = fields.next()?.split("..").next()?.trim().parse().ok()?;
        Some((place, fields.next()?.trim().parse().ok()?))
    };
    output
        .lines()
        .filter_map(numbers)
        .flat_map(|(place, length)| (place..place + length).map(|at| at * SECTOR))
        .collect()
}

/// Addresses of tree blocks that are on the disk.
pub fn tree_blocks(device: &str, tree: &str) -> Vec<u64> {
    let arguments = ["inspect-internal", "dump-tree", "-t", tree, device];
    let output = stdout(&Command::new("btrfs").args(arguments).output().unwrap());
    let address =
        |line: &str| line.strip_prefix("leaf ").or(line.strip_prefix("node "))?.split(' ').next()?.parse().ok();
    output.lines().filter_map(address).collect()
}

/// Writes to a file system all the time, until it is dropped: new files, changed ones, deleted ones.
pub struct Writer(Child);

/// Makes files anew, changes and deletes them.
const REPLACES: &str = "i=0; while :; do i=$((i+1)); head -c $((i % 7 * 90000 + 5000)) /dev/urandom >w$((i % 9)).new; \
    mv w$((i % 9)).new w$((i % 9)); \
    dd if=/dev/urandom of=w$(((i + 3) % 9)) bs=4k seek=$((i % 5)) count=3 conv=notrunc 2>/dev/null; \
    [ $((i % 4)) = 0 ] && rm -f w$(((i + 5) % 9)); [ $((i % 8)) = 0 ] && sync -f .; done";

/// Compiles a program of twenty files, links it and throws it away, over and over.
const COMPILES: &str = "while :; do \
    for file in $(seq 20); do \
        for at in $(seq 40); do echo \"int f${file}_$at(int a) { return a * $at % ($file + a); }\"; done >$file.c; \
        cc -g -O1 -c $file.c -o $file.o & [ $((file % 4)) = 0 ] && wait; \
    done; \
    wait; ar rcs all.a *.o; ld -r --whole-archive all.a -o all; sync -f .; rm -f all *.o *.c all.a; done";

impl Writer {
    pub fn new(folder: &Path) -> Self {
        Self::by(REPLACES, folder)
    }

    /// A compiler is it.
    pub fn compile(folder: &Path) -> Self {
        Self::by(COMPILES, folder)
    }

    fn by(script: &str, folder: &Path) -> Self {
        let mut command = Command::new("sh");
        let command = command.args(["-c", script]).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.process_group(0).spawn().unwrap())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        kill_process_group(Pid::from_child(&self.0), Signal::KILL).unwrap();
        self.0.wait().unwrap();
    }
}

/// What may become of a sector without an error: a bit, all of it, what belongs elsewhere, what was there before, half of what was written.
pub const KINDS: [&str; 5] = ["bit", "sector", "misdirected", "lost", "torn"];

pub fn damage(file: &File, place: u64, kind: &str, other: u64, random: &mut Pcg64) {
    let mut sector = vec![0; SECTOR as usize];
    file.read_exact_at(&mut sector, place).unwrap();
    match kind {
        "bit" => sector[random.random_range(0..SECTOR as usize)] ^= 1 << random.random_range(0..8),
        "sector" => random.fill_bytes(&mut sector),
        "misdirected" => file.read_exact_at(&mut sector, other).unwrap(),
        "lost" => sector.fill(0),
        _ => sector[512 * random.random_range(1..8)..].fill(0),
    }
    file.write_all_at(&sector, place).unwrap();
}

pub fn found(result: &Value, kind: &str) -> BTreeSet<u64> {
    let number = |run: &Value, field: &str| run[field].as_u64().unwrap();
    let runs = result["errors"].as_array().unwrap().iter().filter(|run| run["kind"] == kind);
    runs.flat_map(|run| {
        let begin = number(run, "offset_bytes");
        (begin..begin + number(run, "length_bytes")).step_by(SECTOR as usize)
    })
    .collect()
}
