//! What a request waits for a place in the disk's queue is a part of its response, and the slowdown of whoever waits is seen. On real
//! block devices.

mod common;

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::bench::{Bench, MIB};
use idlewise_linux::device::Device;

const READERS: u64 = 12;

/// Lets a disk's queue have so few places, as that of a cheap USB bridge has, for as long as this lives: a loop device that is used
/// again would keep them.
struct Places(PathBuf, String);

impl Places {
    fn of(disk: &Path, places: &str) -> Self {
        let file = Path::new("/sys/block").join(disk.file_name().unwrap()).join("queue/nr_requests");
        let before = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, places).unwrap();
        Self(file, before)
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        std::fs::write(&self.0, self.1.trim()).unwrap();
    }
}

/// Twelve threads read at once again and again where the queue has four places: most of their responses is the wait for one.
#[test]
fn root_who_waits_for_a_place_is_seen() {
    let Some(bench) = Bench::new(256 * MIB, &[], true) else { return };
    let _few = Places::of(bench.disk.path(), "4");
    let disk = Device::open(bench.disk.path()).unwrap();
    let (over, stop, begin) = (AtomicBool::new(false), AtomicBool::new(false), Barrier::new(READERS as usize));
    let (requests, responses) = (AtomicU64::new(0), AtomicU64::new(0));
    let reader = |reader: u64| {
        let mut buffer = vec![0; 8_192];
        let aligned = buffer.as_ptr().align_offset(4_096);
        for turn in 0.. {
            if begin.wait().is_leader() {
                std::thread::sleep(Duration::from_millis(150));
                stop.store(over.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            begin.wait();
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let began = Instant::now();
            let place = (turn * READERS + reader) * 7_919 % (256 * MIB / 4_096) * 4_096;
            disk.file.read_exact_at(&mut buffer[aligned..aligned + 4_096], place).unwrap();
            responses.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
            requests.fetch_add(1, Ordering::Relaxed);
        }
    };
    let result = std::thread::scope(|scope| {
        let reader = &reader;
        (0..READERS).for_each(|index| drop(scope.spawn(move || reader(index))));
        let (_, result) = bench.scrub(&["--observe", "2s", "--mean-slowdown", "5ms", "--for", "12s"]);
        over.store(true, Ordering::Relaxed);
        result
    });
    let mean = responses.into_inner() as f64 / requests.into_inner() as f64 / 1e9;
    let seen = result["measured"]["mean_response_s"].as_f64().unwrap();
    assert!((seen / mean - 1.0).abs() < 0.1, "{seen} s seen of {mean} s: {result}");
    assert_eq!(result["monitor"], "bpf", "{result}");
}
