//! Chunks and devices of a btrfs come and go in the middle of a pass: what lies where another one was is compared by its own checksums, and
//! nothing that was moved is an error.

#[path = "common/btrfs.rs"]
mod btrfs;
mod common;

use std::collections::BTreeSet;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use btrfs::{Bench, addresses, fill, found};
use common::bench::{MIB, Mounted, PACE, system};
use common::{idlewise, stderr};
use rand::SeedableRng;
use rand_pcg::Pcg64;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A scrub that takes its time.
struct Slow(Child);

impl Slow {
    /// Bytes per second.
    const RATE: u64 = 10_000_000;

    fn of(bench: &Bench, device: usize) -> Self {
        let state = bench.folder.path().join("slow");
        let rate = format!("{}B/s", Self::RATE);
        let arguments = ["scrub", bench.loops[device].path(), "--json", "--quiet", "--max-rate", &rate];
        let arguments = [&arguments[..], &["--state-dir", state.to_str().unwrap()], &PACE].concat();
        let slow = Self(idlewise(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        slow.wait_for(1);
        slow
    }

    /// A place that it has not come to: it also reads trees.
    fn read(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/io", self.0.id())).unwrap();
        text.lines().find_map(|line| line.strip_prefix("read_bytes: ")?.parse().ok()).unwrap()
    }

    fn wait_for(&self, place: u64) {
        while self.read() < place {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Puts something else at those of some places that are ahead of it and before `end`, and ends it behind them: what it says, and which they
    /// are.
    fn damaged(self, disk: &Path, places: Vec<u64>, end: u64) -> (Value, BTreeSet<u64>) {
        let ahead = self.read() + 2 * Self::RATE..end;
        let injected: BTreeSet<u64> = places.into_iter().filter(|place| ahead.contains(place)).collect();
        assert!(!injected.is_empty(), "no data came ahead of it at {ahead:?}");
        let disk = File::options().write(true).open(disk).unwrap();
        injected.iter().for_each(|place| disk.write_all_at(&[7; 100], *place).unwrap());
        // What differs is looked at twice.
        self.wait_for(end + 10 * Self::RATE);
        kill_process(Pid::from_child(&self.0), Signal::INT).unwrap();
        let output = self.0.wait_with_output().unwrap();
        let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        assert!(result["verified_bytes"].as_u64().unwrap() > end, "{result}");
        (result, injected)
    }
}

/// A chunk may take the place of another one in the middle of a pass, under another address: what is wrong in it is found.
#[test]
fn root_what_takes_the_place_of_a_chunk_is_compared() {
    // Where the first chunk of data is, and lies once more when it has been moved twice.
    const FIRST: Range<u64> = 100 * MIB..300 * MIB;
    let Some(bench) = Bench::of_size(2048 * MIB, 1, &["-d", "single", "-m", "single"]) else { return };
    let folder = bench.mount_point();
    let _mounted = Mounted::new(&[bench.loops[0].path()], &folder);
    fill(&folder, 2, 100 * MIB, &mut Pcg64::seed_from_u64(23));
    let scrub = Slow::of(&bench, 0);
    let mut places = Vec::new();
    while !places.iter().any(|place| FIRST.contains(place)) && scrub.read() + 5 * Slow::RATE < FIRST.end {
        system("btrfs", &["balance", "start", "-d", folder.to_str().unwrap()]);
        system("sync", &["-f", folder.to_str().unwrap()]);
        let sectors = (0..2).flat_map(|file| addresses(&folder.join(format!("file{file}"))).into_iter().step_by(1_000));
        places = sectors.flat_map(|address| bench.places(address)).map(|(_, place)| place).collect();
    }
    let (result, injected) = scrub.damaged(&bench.files[0], places, FIRST.end);
    assert_eq!(found(&result, "checksum"), injected, "{result}");
}

/// A device that is taken out of its file system and put in again has another number there: what is written to it then is compared.
#[test]
fn root_what_is_written_to_a_device_that_is_added_again_is_compared() {
    let Some(bench) = Bench::of_size(1024 * MIB, 3, &["-d", "single", "-m", "single"]) else { return };
    let folder = bench.mount_point();
    let _mounted = Mounted::new(&[bench.loops[0].path()], &folder);
    let scrub = Slow::of(&bench, 1);
    let (device, mounted) = (bench.loops[1].path(), folder.to_str().unwrap());
    system("btrfs", &["device", "remove", device, mounted]);
    system("btrfs", &["device", "add", "-f", "-K", device, mounted]);
    // Until some of it comes on that device.
    let (mut random, mut places) = (Pcg64::seed_from_u64(29), Vec::new());
    for number in 0..15 {
        let below = folder.join(number.to_string());
        std::fs::create_dir(&below).unwrap();
        fill(&below, 1, 60 * MIB, &mut random);
        system("sync", &["-f", mounted]);
        let sectors = addresses(&below.join("file0")).into_iter().step_by(500);
        places.extend(sectors.flat_map(|address| bench.places(address)).filter(|(on, _)| *on == 1));
        if places.len() > 60 {
            break;
        }
    }
    let places: Vec<_> = places.into_iter().map(|(_, place)| place).collect();
    let (result, injected) = scrub.damaged(&bench.files[1], places, 300 * MIB);
    assert_eq!(found(&result, "checksum"), injected, "{result}");
}

/// The map of chunks changes while a scrub is at it: chunks are emptied, and their addresses given to new ones elsewhere.
#[test]
fn root_chunks_that_move_are_no_errors() {
    let Some(bench) = Bench::new(1, &["-d", "single", "-m", "single"]) else { return };
    let folder = bench.mount_point();
    let _mounted = Mounted::new(&[bench.loops[0].path()], &folder);
    let mut random = Pcg64::seed_from_u64(16);
    let state = bench.folder.path().join("state");
    for turn in 0..4 {
        fill(&folder, 4, 25 * MIB, &mut random);
        let arguments =
            ["scrub", bench.loops[0].path(), "--restart", "--json", "--quiet", "--max-rate", "90MB/s", "--state-dir"];
        let arguments = [&arguments[..], &[state.to_str().unwrap()], &PACE].concat();
        let scrub = idlewise(&arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(700));
        (0..4).for_each(|file| std::fs::remove_file(folder.join(format!("file{file}"))).unwrap());
        system("sync", &["-f", folder.to_str().unwrap()]);
        // It may lack room: then the kernel removes what is empty by itself.
        let _ = Command::new("btrfs").args(["balance", "start", "-dusage=0"]).arg(&folder).output();
        fill(&folder, 4, 20 * MIB, &mut random);
        let output = scrub.wait_with_output().unwrap();
        let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        assert_eq!(
            (&result["errors"], output.status.code()),
            (&serde_json::json!([]), Some(0)),
            "turn {turn}: {result}"
        );
    }
}
