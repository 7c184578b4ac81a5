//! The eBPF monitor: every request of a disk on the block tracepoints, or every bio of a volume without
//! requests, its own excluded.

mod attached;
pub mod failures;
mod shared;

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use idlewise::Nanos;
use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject, RingBuffer, RingBufferBuilder};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;

use super::works::Works;
use super::writes::Registration;
use super::{Event, Monitor, MonitorError, Own, Purpose, now};
use crate::device::WholeDisk;

use attached::Attached;
use shared::{BUCKETS, Bucket, Mapped, REQ_OP_FLUSH, REQ_OPS_OF_A_DRIVER, Settings, Variables, decode, own_range};

/// The program, compiled from `src/bpf/monitor.bpf.c`.
const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/monitor.bpf.o"));
/// Memory for events: what arrives while nobody looks. A recorder looks seldom.
const RING: u32 = 1 << 20;
const RING_OF_A_RECORDER: u32 = 4 << 20;
/// So long without an idle moment, and the kernel is asked whether it counts as many.
const SUSPICIOUS: Nanos = Nanos::from_secs(1);
/// What the kernel does not count, flushes and what a scheduler holds, may take as long as this.
const UNCOUNTED: Nanos = Nanos::from_secs(120);
/// Who waits for so long while nothing is in the queue does not wait for a place in it.
const ALONE: Nanos = Nanos::from_millis(20);

/// The monitor with its loaded program.
pub struct Bpf {
    // Dropped before what it refers to.
    _registration: Registration,
    // Nothing is attached any more once these are dropped.
    attached: Attached,
    ring: RingBuffer<'static>,
    events: Told<Event>,
    shared: Arc<Mapped<Variables>>,
    /// The requests that are there.
    requests: Mapped<[Bucket; BUCKETS]>,
    /// The threads that may be waiting for a place in the queue.
    waiters: MapHandle,
    /// Other works of idlewise, and the program's table of them; none where all requests are recorded.
    works: Option<(Works, MapHandle)>,
    /// Since when somebody has been waiting while nothing was in the queue.
    waiting_alone: Option<Nanos>,
    /// Readable when the ring has begun to fill since it was last asked.
    woken: OwnedFd,
    object: Object,
    /// Folder of the disk in sysfs.
    disk: PathBuf,
    /// Since when the foreground has been outstanding, or was last looked after.
    busy_since: Option<Nanos>,
    /// Requests whose completion was missed.
    healed: u64,
    /// In units of how many sectors our own reads are announced, as a power of two.
    own_unit: u32,
    /// Whether bios are watched, as there are no requests.
    bios: bool,
}

// SAFETY: the raw pointers inside are to memory that libbpf allocated and that no thread but the owner of this value
// touches; nothing in libbpf is bound to the thread that opened it.
unsafe impl Send for Bpf {}

impl Bpf {
    /// Loads and attaches the program for a disk.
    pub fn open(disk: &WholeDisk, purpose: Purpose) -> Result<Self, MonitorError> {
        // The kernel's times are those of its own clock.
        if shifted(&std::fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default()) {
            let problem = "the clock of this time namespace is not the kernel's".into();
            return Err(MonitorError { monitor: "bpf", problem });
        }
        silence_libbpf();
        Self::load(disk, purpose).map_err(|error| MonitorError { monitor: "bpf", problem: explain(&error) })
    }

    fn load(disk: &WholeDisk, purpose: Purpose) -> Result<Self, libbpf_rs::Error> {
        let mut open = ObjectBuilder::default().name("monitor")?.open_memory(PROGRAM)?;
        let settings = Settings::new(disk, purpose);
        prepare(&mut open, &settings)?;
        let object = open.load()?;
        let shared = Arc::new(Mapped::<Variables>::of(&map_of(&object, ".bss")?)?);
        let attached = Attached::new(&object, &settings)?;
        let of_events = map_of(&object, "events")?;
        let (ring, events) = ring_of(&of_events, decode)?;
        let told = shared.clone();
        let tell = move |begins: bool| {
            match begins {
                true => told.own_writes.fetch_add(1, Ordering::Relaxed),
                false => {
                    told.own_late_writes.store(LATE_WRITES, Ordering::Relaxed);
                    told.own_late.store(now().0.saturating_add(lateness().0), Ordering::Relaxed);
                    told.own_writes.fetch_sub(1, Ordering::Relaxed)
                }
            };
        };
        let _registration = Registration::new(disk.numbers(), Box::new(tell));
        let requests = Mapped::of(&map_of(&object, "requests")?)?;
        let waiters = map_of(&object, "waiters")?;
        let works = (!settings.recording).then(|| map_of(&object, "works")).transpose()?;
        let works = works.map(|map| (Works::at(disk.numbers()), map));
        // Told once of each time that the program wakes us, not for as long as there is something in the ring.
        let woken = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(io::Error::from)?;
        let edges = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&woken, of_events.as_fd(), epoll::EventData::new_u64(0), edges).map_err(io::Error::from)?;
        Ok(Self {
            _registration,
            attached,
            ring,
            events,
            shared,
            requests,
            waiters,
            works,
            waiting_alone: None,
            woken,
            object,
            disk: disk.folder().to_path_buf(),
            busy_since: None,
            healed: 0,
            own_unit: settings.own_unit,
            bios: settings.bios,
        })
    }

    /// Forgets requests whose completion was not seen, as the kernel has none outstanding: else the disk would be busy for ever.
    fn heal(&mut self) {
        let now = now();
        if self.shared.foreground_open.load(Ordering::Relaxed) <= 0 {
            self.busy_since = None;
            return;
        }
        let since = *self.busy_since.get_or_insert(now);
        if now.since(since) < SUSPICIOUS {
            return;
        }
        self.busy_since = Some(now);
        // Requests that come meanwhile are younger.
        if !self.kernel_counts_none() {
            return;
        }
        for (place, request) in self.requests.iter().flat_map(Bucket::places) {
            let (address, arrival) = (place.load(Ordering::Relaxed), Nanos(request.arrival.load(Ordering::Relaxed)));
            // A place that was taken a moment ago may still have the time of the request before: one that is forgotten for that is
            // counted as lost like any other.
            if address == 0 || now.since(arrival) < SUSPICIOUS {
                continue;
            }
            let op = request.op.load(Ordering::Relaxed);
            let in_driver = match self.bios {
                // A flush of a volume carries no data.
                true => request.bytes.load(Ordering::Relaxed) > 0,
                false => request.issue.load(Ordering::Relaxed) > 0,
            };
            let counted = op != REQ_OP_FLUSH && in_driver;
            if !counted && now.since(arrival) < UNCOUNTED {
                continue;
            }
            let own = request.own.load(Ordering::Relaxed) != 0;
            if REQ_OPS_OF_A_DRIVER.contains(&op)
                || place.compare_exchange(address, 0, Ordering::Relaxed, Ordering::Relaxed).is_err()
            {
                continue;
            }
            if !own {
                self.shared.foreground_open.fetch_sub(1, Ordering::Relaxed);
            }
            self.healed += 1;
        }
    }

    /// Tells the program of other works that have come or gone.
    fn tell_of_works(&mut self) -> Result<(), libbpf_rs::Error> {
        let Some((works, map)) = &mut self.works else { return Ok(()) };
        let Some((gone, come)) = works.changes() else { return Ok(()) };
        gone.iter().for_each(|number| _ = map.delete(&number.to_ne_bytes()));
        come.iter().for_each(|number| _ = map.update(&number.to_ne_bytes(), &[1], MapFlags::ANY));
        self.shared.works.store(works.count(), Ordering::Relaxed);
        if works.count() > 0 && !self.bios { self.attached.see_syncs(&self.object) } else { Ok(()) }
    }

    /// Forgets who waits for something else than a place in the queue, as there is nothing in it, of ours neither: a limit that was set for a
    /// group of processes.
    fn forget_waiters(&mut self) {
        let shared = &self.shared;
        let alone = shared.waiting.load(Ordering::Relaxed) > 0
            && shared.foreground_open.load(Ordering::Relaxed) <= 0
            && shared.own_range.load(Ordering::Relaxed) == 0
            && shared.own_command.load(Ordering::Relaxed) == 0;
        if !alone {
            self.waiting_alone = None;
            return;
        }
        let now = now();
        if now.since(*self.waiting_alone.get_or_insert(now)) < ALONE {
            return;
        }
        self.forget_all_waiters();
    }

    fn forget_all_waiters(&self) {
        for thread in self.waiters.keys() {
            // Whoever deletes one counts it.
            if self.waiters.delete(&thread).is_ok() {
                self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Whether the kernel's own count of requests in flight is zero; where it counts none at all, it says nothing.
    fn kernel_counts_none(&self) -> bool {
        let read = |file: &str| std::fs::read_to_string(self.disk.join(file)).unwrap_or_default();
        let inflight = read("inflight");
        let mut counts = inflight.split_whitespace().map(str::parse::<u64>).peekable();
        read("queue/iostats").trim() == "1" && counts.peek().is_some() && counts.all(|count| count == Ok(0))
    }

    /// Takes in what the program has told.
    fn consume(&mut self, events: &mut Vec<Event>) -> Result<(), MonitorError> {
        self.ring.consume().map_err(|error| failed(&error.to_string()))?;
        events.append(&mut lock(&self.events));
        Ok(())
    }

    /// Waits for so long, or until the ring fills.
    fn sleep(&self, time: Duration) -> Result<(), MonitorError> {
        let timeout = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        match poll(&mut [PollFd::new(&self.woken, PollFlags::IN)], Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => return Ok(()),
            Ok(_) => {}
            Err(errno) => return Err(failed(&errno.to_string())),
        }
        // Asked only so that the next time is told.
        let mut once = [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }];
        let asked = epoll::wait(&self.woken, &mut once[..], Some(&Timespec::default()));
        asked.map(drop).or_else(|errno| if errno == Errno::INTR { Ok(()) } else { Err(failed(&errno.to_string())) })
    }
}

fn failed(problem: &str) -> MonitorError {
    MonitorError { monitor: "bpf", problem: problem.into() }
}

impl Monitor for Bpf {
    fn name(&self) -> &'static str {
        "bpf"
    }

    fn poll(&mut self, wait: Duration, events: &mut Vec<Event>) -> Result<(), MonitorError> {
        self.consume(events)?;
        if !wait.is_zero() {
            self.sleep(wait)?;
            self.consume(events)?;
        }
        if self.attached.turn(&self.object, &self.shared).map_err(|error| failed(&explain(&error)))? {
            self.forget_all_waiters();
        }
        self.forget_waiters();
        self.tell_of_works().map_err(|error| failed(&explain(&error)))?;
        self.heal();
        Ok(())
    }

    fn outstanding(&mut self) -> u64 {
        let count = |of: &AtomicI64| u64::try_from(of.load(Ordering::Relaxed)).unwrap_or(0);
        count(&self.shared.foreground_open) + count(&self.shared.waiting)
    }

    fn own(&mut self, own: Own) {
        let (range, command) = match &own {
            Own::Nothing => (0, false),
            Own::Read(range) => (own_range(range.start, range.end, self.own_unit), false),
            Own::Command | Own::Processes => (0, true),
        };
        if own != Own::Nothing {
            // What is behind our request is to be told of one by one.
            self.shared.tell_each.store(1, Ordering::Relaxed);
        }
        self.shared.own_range.store(range, Ordering::Release);
        self.shared.own_command.store(command.into(), Ordering::Release);
    }

    fn own_lookups(&mut self) {
        self.shared.own_lookups.store(1, Ordering::Relaxed);
    }

    fn tell_each(&mut self, each: bool) {
        self.shared.tell_each.store(each.into(), Ordering::Relaxed);
    }

    fn lost(&self) -> u64 {
        self.shared.lost_events.load(Ordering::Relaxed) + self.healed
    }
}

/// A save leaves no more blocks of metadata behind: those of the inode, its folder, the maps of what is free, and the superblock.
const LATE_WRITES: i64 = 16;

/// So long after a save its file system may write what it has changed of its own for it, as Linux lets dirty pages become old.
fn lateness() -> Nanos {
    let of = |name: &str, usual: u64| {
        let text = fs::read_to_string(format!("/proc/sys/vm/{name}_centisecs"));
        text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(usual)
    };
    // It looks for old ones every now and then, and what is old then may have to wait for the next look.
    let centiseconds = of("dirty_expire", 3_000).saturating_add(2 * of("dirty_writeback", 500).min(6_000));
    Nanos::from_millis(centiseconds.min(60_000).saturating_mul(10))
}

/// Sets what the program reads and how much it keeps.
fn prepare(open: &mut OpenObject, settings: &Settings) -> Result<(), libbpf_rs::Error> {
    for mut program in open.progs_mut() {
        let is_needed = attached::is_needed(program.name(), settings.bios);
        program.set_autoload(is_needed);
    }
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if name.ends_with(".rodata") {
            map.set_initial_value(&settings.bytes())?;
        } else if name == "events" {
            map.set_max_entries(if settings.recording { RING_OF_A_RECORDER } else { RING })?;
        }
    }
    Ok(())
}

/// The map of a loaded program whose name ends so: those of variables begin with the program's.
fn map_of(object: &Object, end: &str) -> Result<MapHandle, libbpf_rs::Error> {
    let map = object.maps().find(|map| map.name().to_string_lossy().ends_with(end));
    let map = map.ok_or_else(|| std::io::Error::other(format!("the program has no map {end}")))?;
    MapHandle::try_from(&map)
}

/// What a program has told, until it is taken.
type Told<T> = Arc<Mutex<Vec<T>>>;

/// What a ring of a program tells, and where that is put when it is consumed.
fn ring_of<T: Send + 'static>(
    map: &MapHandle,
    decode: fn(&[u8]) -> Option<T>,
) -> Result<(RingBuffer<'static>, Told<T>), libbpf_rs::Error> {
    let told = Arc::new(Mutex::new(Vec::new()));
    let seen = told.clone();
    let mut builder = RingBufferBuilder::new();
    builder.add(map, move |record| {
        lock(&seen).extend(decode(record));
        0
    })?;
    Ok((builder.build()?, told))
}

/// Whether a time namespace has another monotonic clock than the kernel, by its offsets in seconds and nanoseconds.
fn shifted(offsets: &str) -> bool {
    let monotonic = offsets.lines().filter_map(|line| line.strip_prefix("monotonic"));
    monotonic.flat_map(str::split_whitespace).any(|offset| offset != "0")
}

/// Only this thread ever locks it; the ring's callback could just not be `Send` without.
fn lock<T>(seen: &Mutex<Vec<T>>) -> MutexGuard<'_, Vec<T>> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

fn explain(error: &libbpf_rs::Error) -> String {
    // The verifier of a kernel refuses a program with EACCES, which is another error of the same kind.
    let lacks = std::io::Error::from_raw_os_error(libc::EPERM).to_string();
    match error.kind() {
        libbpf_rs::ErrorKind::PermissionDenied if format!("{error:#}").contains(&lacks) => {
            "loading BPF needs CAP_BPF and CAP_PERFMON (or root)".into()
        }
        _ => format!("BPF does not load on Linux {} (5.15 is needed): {error:#}", kernel()),
    }
}

fn kernel() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// libbpf would print a page about each failure; the error says what matters.
fn silence_libbpf() {
    libbpf_rs::set_print(None);
}

#[cfg(test)]
pub(crate) mod tests;
