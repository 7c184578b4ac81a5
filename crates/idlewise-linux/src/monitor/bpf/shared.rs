//! What the BPF program and this process share: its variables, and the layouts of what it writes.

use std::io;
use std::ops::{Deref, Range};
use std::os::fd::AsFd;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU32, AtomicU64};

use idlewise::{Bytes, Nanos};
use libbpf_rs::{MapCore, MapHandle};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::device::WholeDisk;
use crate::monitor::{Event, EventKind, EventOp, Origin, Purpose, Untold};

const SECTOR: u64 = 512;
/// Size of the program's `struct event`.
const RECORD: usize = 56;
pub const REQ_OP_READ: u8 = 0;
pub const REQ_OP_WRITE: u8 = 1;
pub const REQ_OP_FLUSH: u8 = 2;
/// The disk's own commands, which no counter of the kernel knows.
pub const REQ_OPS_OF_A_DRIVER: [u8; 2] = [34, 35];
/// Bits of the program's `own_range` for the length.
const LENGTH_BITS: u32 = 20;

/// User space is woken when so many bytes are in the ring.
const WAKE_AT: u32 = super::RING / 4;

/// What the program's `settings` hold.
pub struct Settings {
    /// The numbers of the disk.
    pub disk: (u32, u32),
    /// Completions only are told of, and nobody is woken.
    pub recording: bool,
    /// With so many requests there a place in the queue may be hard to get.
    pub crowd: u32,
    /// In units of how many sectors our own reads are announced, as a power of two.
    pub own_unit: u32,
    /// The control group whose requests are ours; zero for none.
    pub group: u64,
    /// Sectors of which what lies in them whole is not looked at.
    pub except: Range<u64>,
    /// Whether it has no requests, so that bios are watched.
    pub bios: bool,
}

impl Settings {
    /// For a disk.
    pub fn new(disk: &WholeDisk, purpose: Purpose) -> Self {
        let (end, group, except) = match purpose {
            Purpose::Scrub { end } => (end, 0, 0..0),
            Purpose::Recording => (0, 0, 0..0),
            Purpose::Group(group) => (0, group, 0..0),
            Purpose::Beside { begin, end } => (0, 0, begin / SECTOR..end / SECTOR),
        };
        let recording = purpose == Purpose::Recording;
        let bios = !disk.has_requests();
        Self { disk: disk.numbers(), recording, crowd: disk.crowd(), own_unit: own_unit(end), group, except, bios }
    }

    /// As the program has them.
    pub fn bytes(&self) -> Vec<u8> {
        let (major, minor) = self.disk;
        let words = [major, minor, self.recording.into(), WAKE_AT, self.crowd, self.own_unit];
        let long = [self.group, self.except.start, self.except.end];
        [words.map(u32::to_ne_bytes).concat(), long.map(u64::to_ne_bytes).concat()].concat()
    }
}

/// The program's `shared`. Each is one word that is read and written at once, and none says anything about another, so that no
/// order between them is needed.
#[repr(C)]
pub struct Variables {
    pub own_range: AtomicU64,
    pub lost_events: AtomicU64,
    pub own_command: AtomicU32,
    pub own_writes: AtomicU32,
    _own_tgid: AtomicU32,
    /// Whether each foreground request is to be told of.
    pub tell_each: AtomicU32,
    /// Threads that may be waiting for a place in the queue.
    pub waiting: AtomicI64,
    _late_at: AtomicU64,
    /// Whether many places of the queue were taken by others since this was last set to zero.
    pub crowd_seen: AtomicU32,
    /// Whether each read of this process is ours.
    pub own_lookups: AtomicU32,
    /// How many other works of idlewise there are.
    pub works: AtomicU32,
    _pad: AtomicU32,
    pub foreground_open: AtomicI64,
    _untold: AtomicU64,
    /// Until then the file system may still write what a save of ours has left behind.
    pub own_late: AtomicU64,
    /// So many writes at most.
    pub own_late_writes: AtomicI64,
    _synced: [AtomicU64; 2],
    _line: [AtomicU64; 2],
}

/// A request in the program's table: its `struct open_request`.
#[repr(C)]
pub struct Request {
    /// When it arrived; the end of time in a place that is free.
    pub arrival: AtomicU64,
    /// When the driver was given it; zero before that.
    pub issue: AtomicU64,
    _sector: AtomicU64,
    pub bytes: AtomicU32,
    pub op: AtomicU8,
    pub own: AtomicU8,
    _pad: [AtomicU8; 2],
}

/// Places in the program's table: its `struct bucket`.
#[repr(C)]
pub struct Bucket {
    /// Which request is there, by its address in the kernel; zero for none. Whoever replaces it by none has counted it.
    pub address: [AtomicU64; PLACES],
    pub request: [Request; PLACES],
}

impl Bucket {
    /// The places, each with its address.
    pub fn places(&self) -> impl Iterator<Item = (&AtomicU64, &Request)> {
        self.address.iter().zip(&self.request)
    }
}

const PLACES: usize = 8;
/// Buckets in the table.
pub const BUCKETS: usize = 1 << 11;

/// What consists of atomics alone, and may be all zeros.
///
/// # Safety
/// Only for such types.
pub unsafe trait OfAtomics {}

// SAFETY: every field is an atomic integer.
unsafe impl OfAtomics for Variables {}

// SAFETY: an array of what has atomic integers only.
unsafe impl OfAtomics for [Bucket; BUCKETS] {}

/// What a map of the program holds, in memory that it and this process share.
pub struct Mapped<T: OfAtomics>(NonNull<T>);

// SAFETY: the mapping belongs to this value, and it only gives out atomics, which any thread may use.
unsafe impl<T: OfAtomics> Send for Mapped<T> {}

// SAFETY: as above.
unsafe impl<T: OfAtomics> Sync for Mapped<T> {}

impl<T: OfAtomics> Mapped<T> {
    /// Maps what a map of a loaded program holds.
    pub fn of(map: &MapHandle) -> io::Result<Self> {
        // The kernel rounds each value up to words.
        let held = map.value_size().next_multiple_of(8) as usize * map.max_entries() as usize;
        if held != size_of::<T>() {
            return Err(io::Error::other("what the program shares is of another size"));
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses a place where nothing is yet.
        let place = unsafe { mmap(null_mut(), size_of::<T>(), access, MapFlags::SHARED, map.as_fd(), 0) }?;
        NonNull::new(place.cast()).map(Self).ok_or_else(|| io::Error::other("what the program shares is at zero"))
    }
}

impl<T: OfAtomics> Deref for Mapped<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: a page-aligned mapping of this size that is there until `self` is dropped; on this side it is only ever
        // reached through atomics, and the program reads and writes whole words, by atomic operations where both sides change one.
        unsafe { self.0.as_ref() }
    }
}

impl<T: OfAtomics> Drop for Mapped<T> {
    fn drop(&mut self) {
        // SAFETY: mapped with this size in `of`, and whatever borrows it is gone.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), size_of::<T>()) };
    }
}

/// In units of how many sectors, as a power of two, a range is announced that may end there: one, but beyond 8 PiB its beginning would not
/// fit the word.
fn own_unit(end: u64) -> u32 {
    let bits = u64::BITS - (end / SECTOR).leading_zeros();
    bits.saturating_sub(u64::BITS - LENGTH_BITS)
}

/// A range of bytes as the program reads it, in whole units; none where it is longer than the word can hold, 512 MiB or more.
pub fn own_range(begin: u64, end: u64, unit: u32) -> u64 {
    let (begin, end) = ((begin / SECTOR) >> unit, (end / SECTOR).div_ceil(1 << unit));
    let fits = begin < 1 << (u64::BITS - LENGTH_BITS) && end - begin < 1 << LENGTH_BITS;
    if fits { begin << LENGTH_BITS | (end - begin) } else { 0 }
}

/// Reads a `struct event`; `None` for a record of another size.
pub fn decode(record: &[u8]) -> Option<Event> {
    let record: &[u8; RECORD] = record.try_into().ok()?;
    let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|index| record[at + index]));
    let half = |at: usize| u32::from_ne_bytes(std::array::from_fn(|index| record[at + index]));
    let [.., kind, op, own, others, _, _, _, _] = *record;
    Some(Event {
        at: Nanos(word(0)),
        arrival: Nanos(word(8)),
        kind: if kind == 0 { EventKind::Arrival } else { EventKind::Completion },
        issue: Some(Nanos(word(16))).filter(|&issue| issue > Nanos::ZERO),
        offset: Bytes(word(24).saturating_mul(SECTOR)),
        length: half(44),
        op: match op {
            REQ_OP_READ => EventOp::Read,
            REQ_OP_WRITE => EventOp::Write,
            _ => EventOp::Other,
        },
        origin: match own {
            0 => Origin::Foreground,
            1 => Origin::Own,
            _ => Origin::Another,
        },
        untold: Untold { requests: half(40), responses: Nanos(word(32)), others: (others > 0).then_some(others > 1) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_one_word_or_none() {
        assert_eq!(own_range(8 * SECTOR, 24 * SECTOR, 0), 8 << 20 | 16);
        assert_eq!(own_range(0, 0, 0), 0);
        assert_eq!(own_range(0, 512 << 20, 0), 0, "too long");
        let far = (1 << 44) * SECTOR;
        assert_eq!(own_range(far - SECTOR, far, 0), u64::MAX << 20 | 1);
        assert_eq!(own_range(far, far + SECTOR, 0), 0, "too far");
        // Units are whole, and no larger than they have to be.
        assert_eq!([far - SECTOR, far, 2 * far, u64::MAX].map(own_unit), [0, 1, 2, 11]);
        assert_eq!(own_range(far + SECTOR, far + 4 * SECTOR, 1), 1 << 63 | 2);
        let last = u64::MAX / SECTOR * SECTOR;
        assert_eq!(own_range(last - 64 * SECTOR, last, own_unit(last)), u64::MAX << 20 | 1);
    }

    #[test]
    fn decodes_the_programs_record() {
        let mut record = Vec::new();
        for word in [500u64, 400, 450, 8, 9_000] {
            record.extend(word.to_ne_bytes());
        }
        record.extend(70u32.to_ne_bytes());
        record.extend(4096u32.to_ne_bytes());
        record.extend([1, REQ_OP_WRITE, 0, 2, 0, 0, 0, 0]);
        let event = decode(&record).unwrap();
        assert_eq!((event.at, event.arrival, event.offset), (Nanos(500), Nanos(400), Bytes(4096)));
        assert_eq!(event.issue, Some(Nanos(450)));
        assert_eq!((event.length, event.kind, event.op), (4096, EventKind::Completion, EventOp::Write));
        assert_eq!(event.untold, Untold { requests: 70, responses: Nanos(9_000), others: Some(true) });
        for (own, origin) in [(0, Origin::Foreground), (1, Origin::Own), (2, Origin::Another)] {
            record[50] = own;
            assert_eq!(decode(&record).unwrap().origin, origin);
        }
        assert_eq!(decode(&record[1..]), None);
    }
}
