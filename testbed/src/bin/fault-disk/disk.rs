//! The disk: what it answers to each command.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::{Result, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::ata::{self, PassThrough};
use crate::options::Options;
use crate::sense::{self, Code};

pub const BLOCK: u64 = 512;
pub const GOOD: u8 = 0x00;
pub const CHECK_CONDITION: u8 = 0x02;
pub const TASK_ABORTED: u8 = 0x40;

const MODEL: &str = "FAULTDISK";
/// Stretches that the cache holds.
const CACHED: usize = 4;
const READ_CACHE_DISABLED: u8 = 0x01;
const REVISION: &str = "1.0";

pub enum Answer {
    Done { status: u8, sense: Vec<u8>, length: usize },
    Never,
}

/// Why a command has no good answer.
enum Fault {
    Sense(Code, Option<u64>),
    /// Sense data already complete.
    Raw(Vec<u8>),
    Hang,
}

/// The data to give back, or the fault.
type Outcome = std::result::Result<Vec<u8>, Fault>;

pub struct Disk {
    options: Options,
    file: File,
    blocks: u64,
    /// First and last of the unreadable ranges.
    bad: Vec<(u64, u64)>,
    log: Option<File>,
    /// Commands since it was `armed`.
    commands: u64,
    armed: Arc<AtomicBool>,
    /// What was read last, and whether reads use it.
    cached: VecDeque<Range<u64>>,
    caching: bool,
}

/// A world wide name made from the disk's name.
pub fn wwn(name: &str) -> u64 {
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(name);
    0x5001_4050_0000_0000 | hash & 0xffff_fff0
}

/// The blocks that a command reads or verifies.
fn about(cdb: &[u8; 16]) -> Option<Range<u64>> {
    let (first, count) = match cdb[0] {
        0x28 | 0x88 | 0x2f | 0x8f => extent(cdb),
        0x85 => {
            let ata = PassThrough::parse(cdb);
            (ata.command == ata::READ_VERIFY_EXT).then_some((ata.lba, ata.count))?
        }
        _ => return None,
    };
    Some(first..first.saturating_add(count))
}

impl Disk {
    pub fn open(options: &Options, armed: Arc<AtomicBool>) -> Result<Disk> {
        let mut how = OpenOptions::new();
        let file = how.read(true).write(true).create(true).truncate(false).open(&options.file)?;
        if file.metadata()?.len() == 0 {
            file.set_len(options.size << 20)?;
        }
        let log = options.log.as_ref().map(|path| OpenOptions::new().append(true).create(true).open(path));
        let blocks = file.metadata()?.len() / BLOCK;
        Ok(Disk {
            options: options.clone(),
            blocks,
            file,
            bad: options.bad.iter().map(|range| (*range.start(), *range.end())).collect(),
            log: log.transpose()?,
            commands: 0,
            armed,
            cached: VecDeque::new(),
            caching: options.cache.is_some(),
        })
    }

    pub fn bytes(&self) -> u64 {
        self.blocks * BLOCK
    }

    pub fn serve(&mut self, cdb: &[u8; 16], data: &mut [&mut [u8]]) -> Answer {
        self.note(cdb);
        match self.outcome(cdb, data) {
            Ok(bytes) => {
                let length = scatter(&bytes, data);
                Answer::Done { status: GOOD, sense: Vec::new(), length }
            }
            Err(Fault::Hang) => Answer::Never,
            Err(Fault::Raw(sense)) => Answer::Done { status: CHECK_CONDITION, sense, length: 0 },
            Err(Fault::Sense(code, block)) => {
                let format = if self.options.descriptor_sense { sense::descriptor } else { sense::fixed };
                Answer::Done { status: CHECK_CONDITION, sense: format(code, block), length: 0 }
            }
        }
    }

    fn outcome(&mut self, cdb: &[u8; 16], data: &mut [&mut [u8]]) -> Outcome {
        if self.armed.load(Ordering::Acquire) {
            self.commands += 1;
        }
        if self.options.fail_all_after.is_some_and(|limit| self.commands > limit) {
            return Err(Fault::Sense(sense::NOT_READY, None));
        }
        if self.options.abort_every.is_some_and(|every| self.commands % every == every - 1) {
            return Err(Fault::Sense(sense::ABORTED, None));
        }
        if about(cdb).is_some() && self.is_asleep() {
            let file = self.options.asleep.as_ref().expect("it sleeps by this file");
            // Another command may have done so.
            let _ = std::fs::remove_file(file);
        }
        if let Some((block, bytes)) = &self.options.sense
            && self.armed.load(Ordering::Acquire)
            && about(cdb).is_some_and(|blocks| blocks.contains(block))
        {
            return Err(Fault::Raw(bytes.clone()));
        }
        match cdb[0] {
            0x00 | 0x1b | 0x35 | 0x91 => Ok(Vec::new()), // ready, start/stop, caches
            0x03 => Ok(sense::fixed(if self.is_asleep() { sense::LOW_POWER } else { Code(0, 0, 0) }, None)),
            0x12 => self.inquiry(cdb),
            0x15 => self.mode_select(data, 4),
            0x55 => self.mode_select(data, 8),
            0x1a => Ok(self.mode_pages(cdb[2], 4)),
            0x5a => Ok(self.mode_pages(cdb[2], 8)),
            0x25 => Ok(self.capacity(false)),
            0x9e if cdb[1] & 0x1f == 0x10 => Ok(self.capacity(true)),
            0x28 | 0x88 => self.read(cdb),
            0x2a | 0x8a => self.write(cdb, data),
            0x8f if self.options.no_verify < 1 => self.verify(cdb),
            0x2f if self.options.no_verify < 2 => self.verify(cdb),
            0x4d if cdb[2] & 0x3f == 0x10 => Ok(self.self_test_results()),
            0x85 if self.options.ata => self.pass_through(cdb),
            _ => Err(Fault::Sense(sense::UNKNOWN_COMMAND, None)),
        }
    }

    /// Which blocks the command is about.
    fn note(&mut self, cdb: &[u8; 16]) {
        let Some(log) = &mut self.log else { return };
        let line = match cdb[0] {
            0x85 => {
                let ata = PassThrough::parse(cdb);
                format!("85/{:02x} {} {}\n", ata.command, ata.lba, ata.count)
            }
            op if matches!(op & 0x1f, 0x08 | 0x0a | 0x0f) => {
                let (first, count) = extent(cdb);
                format!("{op:02x} {first} {count}\n")
            }
            op => format!("{op:02x} - -\n"),
        };
        // A test that cannot log must not pass by accident.
        log.write_all(line.as_bytes()).expect("the log file can be written");
    }

    fn read(&mut self, cdb: &[u8; 16]) -> Outcome {
        let (first, count) = extent(cdb);
        self.touch(first, count).map_err(|fault| fault.into_fault(sense::READ_ERROR))?;
        let mut bytes = vec![0; (count * BLOCK) as usize];
        self.file.read_exact_at(&mut bytes, first * BLOCK).expect("the backing file can be read");
        Ok(bytes)
    }

    fn verify(&mut self, cdb: &[u8; 16]) -> Outcome {
        let (first, count) = extent(cdb);
        if cdb[1] & 0x06 != 0 || self.options.longest.is_some_and(|longest| count > longest) {
            return Err(Fault::Sense(sense::INVALID_FIELD, None)); // no comparing with sent data
        }
        self.touch(first, count).map_err(|fault| fault.into_fault(sense::READ_ERROR))?;
        Ok(Vec::new())
    }

    fn write(&mut self, cdb: &[u8; 16], data: &[&mut [u8]]) -> Outcome {
        let (first, count) = extent(cdb);
        if first.saturating_add(count) > self.blocks {
            return Err(Fault::Sense(sense::LBA_OUT_OF_RANGE, None));
        }
        self.file.write_all_at(&data.concat(), first * BLOCK).expect("the backing file can be written");
        self.heal(first, first + count);
        Ok(Vec::new())
    }

    /// Take the blocks from `first` up to, not including, `end` out of the bad ranges.
    fn heal(&mut self, first: u64, end: u64) {
        let cut = |&(from, to): &(u64, u64)| {
            let before = (from, to.min(first.wrapping_sub(1)));
            let after = (from.max(end), to);
            let before = (first > from).then_some(before);
            [before, (after.0 <= after.1).then_some(after)].into_iter().flatten()
        };
        self.bad = self.bad.iter().flat_map(cut).collect();
    }

    /// Try to read blocks from the medium.
    fn touch(&mut self, first: u64, count: u64) -> std::result::Result<(), Touch> {
        let Some(end) = first.checked_add(count).filter(|end| *end <= self.blocks) else {
            return Err(Touch::Outside);
        };
        if self.options.hang.is_some_and(|block| first <= block && block < end) {
            return Err(Touch::Hang);
        }
        if let Some(time) = self.options.cache {
            if !self.caching || !self.cached.iter().any(|held| held.start <= first && end <= held.end) {
                std::thread::sleep(time);
            }
            self.cached.push_front(first..end);
            self.cached.truncate(CACHED);
        }
        let hit = |&(from, to): &(u64, u64)| (from < end && to >= first && count > 0).then_some(from.max(first));
        match self.bad.iter().filter_map(hit).min() {
            Some(block) => Err(Touch::Bad(block)),
            None => Ok(()),
        }
    }

    fn pass_through(&mut self, cdb: &[u8; 16]) -> Outcome {
        let ata = PassThrough::parse(cdb);
        match (ata.command, ata.protocol) {
            (ata::IDENTIFY, ata::PIO_IN) => Ok(self.identify()),
            (ata::SMART, ata::PIO_IN) if ata.features == ata::SMART_READ_DATA => {
                let mut data = vec![0; 512];
                data[363] = if self.testing() { 0xf9 } else { 0 };
                Ok(data)
            }
            (ata::SET_FEATURES, ata::NON_DATA) => {
                self.set_caching(ata.features == ata::ENABLE_LOOK_AHEAD);
                Ok(Vec::new())
            }
            (ata::CHECK_POWER_MODE, ata::NON_DATA) if ata.check_condition => {
                let mut ata = ata;
                ata.count = if self.is_asleep() { ata::STANDBY } else { ata::ACTIVE };
                Err(Fault::Raw(ata.sense(sense::RECOVERED_ATA_INFORMATION, ata::STATUS_GOOD, 0, 0)))
            }
            (ata::READ_VERIFY_EXT, ata::NON_DATA) => match self.touch(ata.lba, ata.count) {
                Ok(()) if ata.check_condition => {
                    let code = sense::RECOVERED_ATA_INFORMATION;
                    Err(Fault::Raw(ata.sense(code, ata::STATUS_GOOD, 0, ata.lba)))
                }
                Ok(()) => Ok(Vec::new()),
                Err(Touch::Hang) => Err(Fault::Hang),
                Err(Touch::Bad(block)) => {
                    let code = sense::READ_ERROR_ATA;
                    Err(Fault::Raw(ata.sense(code, ata::STATUS_ERROR, ata::ERROR_UNCORRECTABLE, block)))
                }
                Err(Touch::Outside) => {
                    let code = sense::LBA_OUT_OF_RANGE;
                    Err(Fault::Raw(ata.sense(code, ata::STATUS_ERROR, 0x10, ata.lba)))
                }
            },
            _ => {
                let code = Code(0xb, 0x00, 0x00); // ABORTED COMMAND, as libata says it
                Err(Fault::Raw(ata.sense(code, ata::STATUS_ERROR, ata::ERROR_ABORT, ata.lba)))
            }
        }
    }

    fn identify(&self) -> Vec<u8> {
        let name = &self.options.name;
        ata::identify(MODEL, REVISION, name, self.blocks, wwn(name), self.caching)
    }

    fn is_asleep(&self) -> bool {
        self.options.asleep.as_ref().is_some_and(|file| file.exists())
    }

    fn testing(&self) -> bool {
        self.options.self_test.as_ref().is_some_and(|file| file.exists())
    }

    /// LOG SENSE's page of self-test results, with the newest only.
    fn self_test_results(&self) -> Vec<u8> {
        let mut page = vec![0x10, 0, 0, 20, 0, 1, 3, 16];
        page.push(if self.testing() { 0x2f } else { 0x20 });
        page.resize(24, 0);
        page
    }

    fn set_caching(&mut self, on: bool) {
        self.caching = on;
        self.cached.clear();
    }

    /// MODE SENSE: a header and the caching page, or the header alone.
    fn mode_pages(&self, page: u8, header: usize) -> Vec<u8> {
        let mut body = Vec::new();
        if matches!(page & 0x3f, 0x08 | 0x3f) {
            body.extend_from_slice(&[0x08, 0x12, if self.caching { 0 } else { READ_CACHE_DISABLED }]);
            body.resize(20, 0);
        }
        let mut bytes = vec![0; header];
        let length = header + body.len();
        match header {
            8 => bytes[0..2].copy_from_slice(&(length as u16 - 2).to_be_bytes()),
            _ => bytes[0] = length as u8 - 1,
        }
        bytes.extend_from_slice(&body);
        bytes
    }

    /// MODE SELECT of the caching page.
    fn mode_select(&mut self, data: &[&mut [u8]], header: usize) -> Outcome {
        let data = data.concat();
        match data.get(header..) {
            Some([0x08, 0x12, flags, ..]) => {
                self.set_caching(flags & READ_CACHE_DISABLED == 0);
                Ok(Vec::new())
            }
            _ => Err(Fault::Sense(sense::INVALID_FIELD, None)),
        }
    }

    fn inquiry(&self, cdb: &[u8; 16]) -> Outcome {
        let mut bytes = if cdb[1] & 1 == 0 {
            let vendor = if self.options.ata { "ATA" } else { "FAULTY" };
            // A disk, SPC-4, 31 more bytes, command queueing.
            let mut bytes = vec![0x00, 0x00, 0x06, 0x02, 31, 0, 0, 0x02];
            bytes.extend_from_slice(format!("{vendor:8}{MODEL:16}{REVISION:4}").as_bytes());
            bytes
        } else {
            self.vital_page(cdb[2]).ok_or(Fault::Sense(sense::INVALID_FIELD, None))?
        };
        bytes.truncate(usize::from(u16::from_be_bytes([cdb[3], cdb[4]])));
        Ok(bytes)
    }

    fn vital_page(&self, page: u8) -> Option<Vec<u8>> {
        let body = match page {
            0x00 if self.options.ata => vec![0x00, 0x80, 0x83, 0x89, 0xb0, 0xb1],
            0x00 => vec![0x00, 0x80, 0x83, 0xb0, 0xb1],
            0x80 => self.options.name.clone().into_bytes(),
            0x83 => {
                // One designator: binary, of the logical unit, NAA, 8 bytes.
                let mut body = vec![0x01, 0x03, 0x00, 0x08];
                body.extend_from_slice(&wwn(&self.options.name).to_be_bytes());
                body
            }
            0x89 if self.options.ata => {
                let mut body = vec![0; 4];
                body.extend_from_slice(format!("{:8}{:16}{:4}", "FAULTY", "SAT", REVISION).as_bytes());
                // The disk's first signature, then the command that asks for its identity.
                body.extend_from_slice(&[0x34, 0, 0x50, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
                body.extend_from_slice(&[ata::IDENTIFY, 0, 0, 0]);
                body.extend_from_slice(&self.identify());
                body
            }
            0xb0 => {
                let mut body = vec![0; 60];
                body[4..8].copy_from_slice(&2048u32.to_be_bytes()); // most blocks in one transfer
                body
            }
            0xb1 => {
                let mut body = vec![0; 60];
                body[0..2].copy_from_slice(&7200u16.to_be_bytes()); // rotations per minute
                body
            }
            _ => return None,
        };
        let mut bytes = vec![0x00, page];
        bytes.extend_from_slice(&(body.len() as u16).to_be_bytes());
        bytes.extend_from_slice(&body);
        Some(bytes)
    }

    fn capacity(&self, long: bool) -> Vec<u8> {
        let last = self.blocks - 1;
        let mut bytes = if long {
            last.to_be_bytes().to_vec()
        } else {
            u32::try_from(last).unwrap_or(u32::MAX).to_be_bytes().to_vec()
        };
        bytes.extend_from_slice(&(BLOCK as u32).to_be_bytes());
        if long {
            bytes.resize(32, 0);
        }
        bytes
    }
}

/// Why blocks cannot be read.
enum Touch {
    Outside,
    Hang,
    Bad(u64),
}

impl Touch {
    fn into_fault(self, read_error: Code) -> Fault {
        match self {
            Touch::Outside => Fault::Sense(sense::LBA_OUT_OF_RANGE, None),
            Touch::Hang => Fault::Hang,
            Touch::Bad(block) => Fault::Sense(read_error, Some(block)),
        }
    }
}

/// First block and number of blocks of a 10- or 16-byte READ, WRITE or VERIFY.
fn extent(cdb: &[u8; 16]) -> (u64, u64) {
    let word = |at: usize| u64::from(u32::from_be_bytes([cdb[at], cdb[at + 1], cdb[at + 2], cdb[at + 3]]));
    match cdb[0] >> 5 {
        1 => (word(2), u64::from(u16::from_be_bytes([cdb[7], cdb[8]]))),
        4 => (word(2) << 32 | word(6), word(10)),
        _ => (0, 0),
    }
}

/// Copy into the pieces of the data buffer; returns how much fitted.
fn scatter(mut bytes: &[u8], data: &mut [&mut [u8]]) -> usize {
    let before = bytes.len();
    for piece in data {
        let (now, later) = bytes.split_at(bytes.len().min(piece.len()));
        piece[..now.len()].copy_from_slice(now);
        piece[now.len()..].fill(0);
        bytes = later;
    }
    before - bytes.len()
}
