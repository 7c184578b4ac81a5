//! The eBPF monitor: every request of a disk on the block tracepoints, its own excluded.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use idlewise::{Bytes, Nanos};
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{OpenObject, ProgramInput, RingBuffer, RingBufferBuilder};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Event, EventKind, EventOp, Monitor, MonitorError, Own};
use crate::device::Device;

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/monitor.skel.rs"));
}
use skeleton::{MonitorSkel, MonitorSkelBuilder};

const SECTOR: u64 = 512;
/// Size of the program's `struct event`.
const RECORD: usize = 40;
const REQ_OP_READ: u8 = 0;
const REQ_OP_WRITE: u8 = 1;

/// The monitor with its loaded program.
pub struct Bpf {
    // Dropped before the skeleton whose map it reads.
    ring: RingBuffer<'static>,
    events: Arc<Mutex<Vec<Event>>>,
    skeleton: MonitorSkel<'static>,
}

// SAFETY: the raw pointers inside are to memory that libbpf allocated and that no thread but the owner of this value
// touches; nothing in libbpf is bound to the thread that opened it.
unsafe impl Send for Bpf {}

impl Bpf {
    /// Loads and attaches the program for the disk that `device` is on.
    /// A `recording` one tells of completions only, and is cheaper.
    pub fn open(device: &Device, recording: bool) -> Result<Self, MonitorError> {
        if let Some(reason) = device.without_requests() {
            return Err(MonitorError { monitor: "bpf", problem: reason });
        }
        silence_libbpf();
        Self::load(device, recording).map_err(|error| MonitorError { monitor: "bpf", problem: explain(&error) })
    }

    fn load(device: &Device, recording: bool) -> Result<Self, libbpf_rs::Error> {
        // The object lives as long as the program runs: one small allocation a monitor.
        let object: &'static mut MaybeUninit<OpenObject> = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = MonitorSkelBuilder::default().open(object)?;
        let (major, minor) = device.disk_numbers();
        if let Some(data) = &mut open.maps.rodata_data {
            (data.disk_major, data.disk_minor) = (major as i32, minor as i32);
            data.recording = recording;
        }
        let mut skeleton = open.load()?;
        skeleton.progs.introduce.test_run(ProgramInput::default())?;
        skeleton.attach()?;
        let events = Arc::new(Mutex::new(Vec::new()));
        let seen = events.clone();
        let mut builder = RingBufferBuilder::new();
        builder.add(&skeleton.maps.events, move |record| {
            lock(&seen).extend(decode(record));
            0
        })?;
        let ring = builder.build()?;
        Ok(Self { ring, events, skeleton })
    }

    fn ring_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: libbpf's epoll descriptor stays open as long as the ring, which the result borrows.
        unsafe { BorrowedFd::borrow_raw(self.ring.epoll_fd()) }
    }
}

impl Monitor for Bpf {
    fn name(&self) -> &'static str {
        "bpf"
    }

    fn poll(&mut self, wait: Duration, events: &mut Vec<Event>) -> Result<(), MonitorError> {
        let error = |problem: String| MonitorError { monitor: "bpf", problem };
        if !wait.is_zero() {
            let timeout = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
            let fd = self.ring_fd();
            match poll(&mut [PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)], Some(&timeout)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(error(errno.to_string())),
            }
        }
        self.ring.consume().map_err(|e| error(e.to_string()))?;
        events.append(&mut lock(&self.events));
        Ok(())
    }

    fn outstanding(&mut self) -> u64 {
        let Some(data) = &self.skeleton.maps.bss_data else { return 0 };
        // SAFETY: a valid, aligned field of the program's memory, which the kernel writes concurrently.
        let open = unsafe { std::ptr::read_volatile(&raw const data.foreground_open) };
        u64::try_from(open).unwrap_or(0)
    }

    fn own(&mut self, own: Own) {
        let Some(data) = &mut self.skeleton.maps.bss_data else { return };
        let (range, command) = match own {
            Own::Nothing => (0..0, false),
            Own::Read(range) => (range, false),
            Own::Command => (0..0, true),
        };
        // Emptied first and closed last, so that the program never sees a range that is too wide.
        // SAFETY: valid, aligned fields of the program's memory, which it only reads.
        unsafe {
            std::ptr::write_volatile(&raw mut data.own_end, 0);
            std::ptr::write_volatile(&raw mut data.own_begin, range.start / SECTOR);
            std::ptr::write_volatile(&raw mut data.own_end, range.end / SECTOR);
            std::ptr::write_volatile(&raw mut data.own_command, u32::from(command));
        }
    }

    fn lost(&self) -> u64 {
        let Some(data) = &self.skeleton.maps.bss_data else { return 0 };
        // SAFETY: a valid, aligned field of the program's memory, which the kernel writes concurrently.
        unsafe { std::ptr::read_volatile(&raw const data.lost_events) }
    }
}

/// Only this thread ever locks it; the ring's callback could just not be `Send` without.
fn lock(events: &Mutex<Vec<Event>>) -> MutexGuard<'_, Vec<Event>> {
    events.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads a `struct event`; `None` for a record of another size.
fn decode(record: &[u8]) -> Option<Event> {
    let record: &[u8; RECORD] = record.try_into().ok()?;
    let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|index| record[at + index]));
    let [.., kind, op, own, _] = *record;
    Some(Event {
        at: Nanos(word(0)),
        arrival: Nanos(word(8)),
        kind: if kind == 0 { EventKind::Arrival } else { EventKind::Completion },
        issue: Some(Nanos(word(16))).filter(|&issue| issue > Nanos::ZERO),
        offset: Bytes(word(24).saturating_mul(SECTOR)),
        length: u32::from_ne_bytes(std::array::from_fn(|index| record[32 + index])),
        op: match op {
            REQ_OP_READ => EventOp::Read,
            REQ_OP_WRITE => EventOp::Write,
            _ => EventOp::Other,
        },
        own: own != 0,
    })
}

fn explain(error: &libbpf_rs::Error) -> String {
    match error.kind() {
        libbpf_rs::ErrorKind::PermissionDenied => "loading BPF needs CAP_BPF and CAP_PERFMON (or root)".into(),
        _ => format!("BPF does not load: {error:#}"),
    }
}

/// libbpf would print a page about each failure; the error says what matters.
fn silence_libbpf() {
    libbpf_rs::set_print(None);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_the_programs_record() {
        let mut record = Vec::new();
        for word in [500u64, 400, 450, 8] {
            record.extend(word.to_ne_bytes());
        }
        record.extend(4096u32.to_ne_bytes());
        record.extend([1, REQ_OP_WRITE, 0, 0]);
        let event = decode(&record).unwrap();
        assert_eq!((event.at, event.arrival, event.offset), (Nanos(500), Nanos(400), Bytes(4096)));
        assert_eq!(event.issue, Some(Nanos(450)));
        assert_eq!((event.length, event.kind, event.op), (4096, EventKind::Completion, EventOp::Write));
        record[38] = 1;
        assert!(decode(&record).unwrap().own);
        assert_eq!(decode(&record[1..]), None);
    }
}
