//! The shared memory through which the kernel passes SCSI commands (linux/target_core_user.h).
//!
//! A mailbox, then a ring of command entries, then the data area. The kernel appends entries and
//! moves the mailbox's head; we answer by writing into the entry at the tail and moving the tail.
//! Answers may come in another order than commands: the entry at the tail is then given the id
//! of the command that is answered, whatever command it first held.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{fs, ptr, slice};

use rustix::mm::{MapFlags, ProtFlags, mmap};

// Offsets in the mailbox.
const VERSION: usize = 0;
const RING_OFFSET: usize = 4;
const RING_SIZE: usize = 8;
const HEAD: usize = 12;
const TAIL: usize = 64;

// Offsets in an entry: the header, then the request or (over it) the response.
const LENGTH_AND_OP: usize = 0;
const ID: usize = 4;
const UFLAGS: usize = 7;
const VECTORS: usize = 8;
const CDB_OFFSET: usize = 24;
const VECTOR_LIST: usize = 48;
const STATUS: usize = 8;
const READ_LENGTH: usize = 12;
const SENSE: usize = 16;
const SENSE_SIZE: usize = 96;
const ABORTED_COUNT: usize = 12;
const ABORTED_IDS: usize = 32;

const OP_MASK: u32 = 7;
const OP_COMMAND: u32 = 1;
const OP_ABORT: u32 = 2;
const UFLAG_UNKNOWN_OP: u8 = 1;
const UFLAG_READ_LENGTH: u8 = 2;

pub enum Event {
    Command(Command),
    /// The kernel has aborted the commands with these ids, and waits for their answers.
    Aborted(Vec<u16>),
}

pub struct Command {
    pub id: u16,
    pub cdb: [u8; 16],
    /// Offset and length of each piece of the data buffer.
    pieces: Vec<(usize, usize)>,
}

pub struct Ring {
    uio: File,
    base: *mut u8,
    /// Where the next entry to look at is, from the start of the ring.
    next: u32,
}

impl Ring {
    pub fn open(path: &Path) -> Result<Ring> {
        let uio = OpenOptions::new().read(true).write(true).open(path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let size = fs::read_to_string(format!("/sys/class/uio/{name}/maps/map0/size"))?;
        let size = usize::from_str_radix(size.trim().trim_start_matches("0x"), 16)
            .map_err(|_| Error::new(ErrorKind::InvalidData, "unreadable UIO map size"))?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new shared mapping of a device made to be mapped; it lives as long as we do.
        let base = unsafe { mmap(ptr::null_mut(), size, protection, MapFlags::SHARED, &uio, 0)? };
        let mut ring = Ring { uio, base: base.cast(), next: 0 };
        if ring.load::<u16>(VERSION) != 2 {
            return Err(Error::new(ErrorKind::Unsupported, "not version 2 of the TCMU mailbox"));
        }
        ring.next = ring.word(TAIL).load(Ordering::Acquire);
        Ok(ring)
    }

    /// The next thing that the kernel has to say, if any.
    pub fn next_event(&mut self) -> Option<Event> {
        while self.next != self.word(HEAD).load(Ordering::Acquire) {
            let entry = self.entry(self.next);
            let (op, after) = self.op_and_end(self.next);
            self.next = after;
            match op {
                OP_COMMAND => return Some(Event::Command(self.command(entry))),
                OP_ABORT => {
                    let count = self.load::<u32>(entry + ABORTED_COUNT) as usize;
                    let id = |n| self.load::<u16>(entry + ABORTED_IDS + 2 * n);
                    return Some(Event::Aborted((0..count).map(id).collect()));
                }
                0 => {} // padding up to the ring's end
                _ => self.store(entry + UFLAGS, UFLAG_UNKNOWN_OP),
            }
        }
        None
    }

    /// Answer a command. `length` is how much of the data buffer was filled.
    pub fn complete(&mut self, id: u16, status: u8, sense: &[u8], length: usize) {
        let mut tail = self.word(TAIL).load(Ordering::Relaxed);
        // Entries that are no commands have no answer.
        while self.op_and_end(tail).0 != OP_COMMAND {
            assert_ne!(tail, self.next, "more answers than commands");
            tail = self.op_and_end(tail).1;
        }
        let entry = self.entry(tail);
        let mut padded = [0; SENSE_SIZE];
        padded[..sense.len()].copy_from_slice(sense);
        self.store(entry + ID, id);
        self.store(entry + UFLAGS, if length > 0 { UFLAG_READ_LENGTH } else { 0 });
        self.store(entry + STATUS, status);
        self.store(entry + READ_LENGTH, length as u32);
        self.store(entry + SENSE, padded);
        let after = self.op_and_end(tail).1;
        self.word(TAIL).store(after, Ordering::Release);
    }

    /// Tell the kernel that there are answers.
    pub fn notify(&mut self) -> Result<()> {
        self.uio.write_all(&[0; 4])
    }

    /// Sleep until the kernel has more to say.
    pub fn wait(&mut self) -> Result<()> {
        let mut count = [0; 4];
        self.uio.read_exact(&mut count)
    }

    fn command(&self, entry: usize) -> Command {
        let cdb = self.load::<u64>(entry + CDB_OFFSET) as usize;
        let count = self.load::<u32>(entry + VECTORS) as usize;
        let piece = |n| {
            let vector = entry + VECTOR_LIST + 16 * n;
            (self.load::<u64>(vector) as usize, self.load::<u64>(vector + 8) as usize)
        };
        Command { id: self.load(entry + ID), cdb: self.load(cdb), pieces: (0..count).map(piece).collect() }
    }

    fn entry(&self, at: u32) -> usize {
        self.load::<u32>(RING_OFFSET) as usize + at as usize
    }

    /// What kind of entry there is, and where the one after it is.
    fn op_and_end(&self, at: u32) -> (u32, u32) {
        let header = self.load::<u32>(self.entry(at) + LENGTH_AND_OP);
        (header & OP_MASK, (at + (header & !OP_MASK)) % self.load::<u32>(RING_SIZE))
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: inside the mapping, aligned, and only ever changed atomically.
        unsafe { &*self.base.add(offset).cast() }
    }

    fn load<T: Copy>(&self, offset: usize) -> T {
        // SAFETY: offsets come from the header file or from the kernel, and T is plain numbers.
        unsafe { self.base.add(offset).cast::<T>().read_unaligned() }
    }

    fn store<T: Copy>(&mut self, offset: usize, value: T) {
        // SAFETY: as for load.
        unsafe { self.base.add(offset).cast::<T>().write_unaligned(value) }
    }
}

impl Command {
    /// The command's data buffer.
    pub fn data<'a>(&self, ring: &'a mut Ring) -> Vec<&'a mut [u8]> {
        // SAFETY: the kernel gives each command its own pieces of the data area, disjoint from
        // the mailbox and the ring, and leaves them alone until the answer.
        let piece = |&(at, length)| unsafe { slice::from_raw_parts_mut(ring.base.add(at), length) };
        self.pieces.iter().map(piece).collect()
    }
}
