//! What the programs tell, on the disks of this machine.

use std::os::fd::AsRawFd;

use libbpf_rs::MapFlags;

use super::shared::{REQ_OP_READ, REQ_OP_WRITE};
use super::*;
use crate::device::Device;
use crate::monitor::EventKind;

#[test]
fn another_clock_is_told() {
    assert!(!shifted("monotonic           0         0\nboottime            7         0\n") && !shifted(""));
    assert!(shifted("monotonic      100000         0\n") && shifted("monotonic  -1 5\n"));
}

/// A loop device on a small file, until it is dropped.
pub struct Loop(pub PathBuf, #[expect(dead_code, reason = "held, never used")] tempfile::NamedTempFile);

impl Loop {
    pub fn new() -> Option<Self> {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        let output = std::process::Command::new("losetup").args(["--find", "--show"]).arg(file.path()).output();
        let Some(output) = output.ok().filter(|output| output.status.success()) else {
            eprintln!("SKIPPED: a loop device needs root and losetup");
            return None;
        };
        Some(Self(PathBuf::from(String::from_utf8(output.stdout).unwrap().trim()), file))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        std::process::Command::new("losetup").arg("-d").arg(&self.0).status().unwrap();
    }
}

/// Where not each request is wanted, no more is told than the first and the last of many, and none is lost: eight readers, and each of their
/// reads is counted once with its time.
#[test]
fn root_what_is_told_together_is_all_that_there_was() {
    const READERS: u64 = 8;
    const READS: u64 = 500;
    let Some(disk) = Loop::new() else { return };
    let device = Device::open(&disk.0).unwrap();
    let mut monitor = Bpf::open(&device.whole(), Purpose::Scrub { end: device.size.0 }).unwrap();
    let play = |monitor: &mut Bpf| {
        let mut events = Vec::new();
        let done = std::sync::atomic::AtomicU64::new(0);
        std::thread::scope(|threads| {
            for _ in 0..READERS {
                threads.spawn(|| {
                    let mut buffer = crate::memory::Buffer::new(4096);
                    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECT;
                    let file = rustix::fs::open(&disk.0, flags, rustix::fs::Mode::empty()).unwrap();
                    for read in 0..READS {
                        rustix::io::pread(&file, buffer.bytes(4096), read % 256 * 4096).unwrap();
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                });
            }
            while done.load(Ordering::Relaxed) < READERS {
                monitor.poll(Duration::from_millis(1), &mut events).unwrap();
            }
        });
        monitor.poll(Duration::ZERO, &mut events).unwrap();
        events
    };
    let sums = |events: &[Event]| {
        let completions = || events.iter().filter(|event| event.kind == EventKind::Completion);
        let untold: u64 = completions().map(|event| u64::from(event.untold.requests)).sum();
        let untold_ns: u64 = completions().map(|event| event.untold.responses.0).sum();
        (completions().count() as u64, untold, untold_ns)
    };
    // A program that is interrupted by a request on the same processor does not run for that, which the kernel counts. What the program
    // itself cannot keep it counts.
    let passed_over = |monitor: &Bpf| {
        let of = |program: libbpf_rs::Program<'_>| {
            let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", program.as_fd().as_raw_fd())).unwrap();
            let missed = info.lines().find_map(|line| line.strip_prefix("recursion_misses:"));
            missed.unwrap().trim().parse::<u64>().unwrap()
        };
        let loaded = monitor.object.progs().filter(|program| attached::is_needed(program.name(), false));
        monitor.lost() + loaded.map(of).sum::<u64>()
    };
    let (told, untold, untold_ns) = sums(&play(&mut monitor));
    let seen = told + untold;
    assert!(seen <= READERS * READS && seen + passed_over(&monitor) >= READERS * READS, "{seen}");
    assert!(untold > 0 && untold_ns / untold > 1_000 && untold_ns / untold < 1_000_000_000, "{untold} {untold_ns}");
    monitor.tell_each(true);
    let before = passed_over(&monitor);
    let (told, untold, _) = sums(&play(&mut monitor));
    assert!(untold == 0 && told + passed_over(&monitor) - before >= READERS * READS, "{told} {untold}");
}

/// A request whose completion was never seen is forgotten when the kernel counts none, and only then a young one is.
#[test]
fn root_a_missed_completion_is_healed() {
    let Some(disk) = Loop::new() else { return };
    let device = Device::open(&disk.0).unwrap();
    let mut monitor = Bpf::open(&device.whole(), Purpose::Scrub { end: device.size.0 }).unwrap();
    let open = |address: u64, arrival: Nanos, op: u8| {
        let (place, request) = monitor.requests[address as usize].places().next().unwrap();
        request.arrival.store(arrival.0, Ordering::Relaxed);
        request.op.store(op, Ordering::Relaxed);
        request.issue.store(arrival.0, Ordering::Relaxed);
        place.store(address, Ordering::Relaxed);
        monitor.shared.foreground_open.fetch_add(1, Ordering::Relaxed);
    };
    // Missed, young at the first look, and a command of a driver, which the kernel does not count.
    open(1, Nanos(now().0 - 5_000_000_000), REQ_OP_READ);
    open(2, now(), REQ_OP_WRITE);
    open(3, Nanos(now().0 - 5_000_000_000), REQ_OPS_OF_A_DRIVER[0]);
    // The kernel does not count a flush, nor what a scheduler still holds.
    open(4, Nanos(now().0 - 5_000_000_000), REQ_OP_FLUSH);
    open(5, Nanos(now().0 - 5_000_000_000), REQ_OP_READ);
    monitor.requests[5].request[0].issue.store(0, Ordering::Relaxed);
    let mut events = Vec::new();
    let mut outstanding = |monitor: &mut Bpf| {
        monitor.poll(Duration::from_millis(50), &mut events).unwrap();
        monitor.outstanding()
    };
    let began = now();
    while now().since(began) < Nanos::from_millis(900) {
        assert_eq!(outstanding(&mut monitor), 5);
    }
    while now().since(began) < Nanos::from_millis(2_500) {
        outstanding(&mut monitor);
    }
    assert_eq!((outstanding(&mut monitor), monitor.lost()), (3, 2));
}

/// A thread that waits for something else than a place, as nothing is in the queue, does not keep the disk busy; one that waits while
/// we have a place does.
#[test]
fn root_who_waits_for_something_else_is_forgotten() {
    let Some(disk) = Loop::new() else { return };
    let device = Device::open(&disk.0).unwrap();
    let mut monitor = Bpf::open(&device.whole(), Purpose::Scrub { end: device.size.0 }).unwrap();
    monitor.waiters.update(&1u32.to_ne_bytes(), &[0; 24], MapFlags::ANY).unwrap();
    monitor.shared.waiting.fetch_add(1, Ordering::Relaxed);
    monitor.own(Own::Read(0..4096));
    let mut events = Vec::new();
    let mut look = |monitor: &mut Bpf| {
        std::thread::sleep(Duration::from_millis(30));
        monitor.poll(Duration::ZERO, &mut events).unwrap();
        monitor.outstanding()
    };
    assert_eq!((look(&mut monitor), look(&mut monitor)), (1, 1));
    monitor.own(Own::Nothing);
    assert_eq!((look(&mut monitor), look(&mut monitor)), (1, 0));
    assert_eq!((monitor.waiters.keys().count(), monitor.lost()), (0, 0));
}

/// What a monitor holds in the kernel: a machine may have dozens of disks.
#[test]
fn root_a_monitor_holds_little_memory() {
    let Some(disk) = Loop::new() else { return };
    let device = Device::open(&disk.0).unwrap();
    let monitor = Bpf::open(&device.whole(), Purpose::Scrub { end: device.size.0 }).unwrap();
    let events = map_of(&monitor.object, "events").unwrap();
    let requests = map_of(&monitor.object, "requests").unwrap();
    let held = [requests.as_fd(), events.as_fd()].map(|map| {
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", map.as_raw_fd())).unwrap();
        let held = info.lines().find_map(|line| line.strip_prefix("memlock:")).unwrap();
        held.trim().parse::<u64>().unwrap()
    });
    assert!(held.iter().sum::<u64>() < 3 << 20, "{held:?} bytes");
}
