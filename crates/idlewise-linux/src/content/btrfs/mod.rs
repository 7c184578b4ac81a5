//! btrfs: a checksum of each sector of data, kept in a tree, and tree blocks that hold their own.
//!
//! ```text
//! place on the device ─ chunks ─► address ─ checksum tree ─► what each sector should be
//!                                        └─ extent tree ──► tree blocks, and what is free
//! ```
//!
//! The trees are asked while it is mounted, and say what is true at that moment. A sector is never written in place, and what is free
//! is not written before what freed it is on the disk: so what differs twice from the same checksum is wrong.

mod algorithm;
mod chunks;
mod ioctl;
mod judge;
mod map;
mod mounted;
mod names;
pub mod orders;
mod own_device;
mod superblock;
mod trees;
mod window;

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use idlewise::Bytes;
use idlewise::order::Extent;

use super::mounts::Mount;
use super::{Content, Gate, Judged, Part, Unasked};
use crate::apart::Calls;
use chunks::{Piece, Stretch};
pub(super) use mounted::is_mounted;
use mounted::{Mounted, listed};
use superblock::{COPIES, LENGTH, Superblock};
use trees::{Allocated, Sum};
use window::Window;

pub use own_device::OwnDevice;

const UNMOUNTED: &str = "it is not mounted";
/// No chunk lies there: boot loaders put themselves before the first superblock.
const RESERVED: Range<u64> = 0..1 << 20;
/// After so long the superblock is read again.
const FRESH: Duration = Duration::from_secs(30);
/// The same of the map of chunks and of what they hold: where a chunk was that is gone, another one may be by now.
const AGAIN: Duration = Duration::from_secs(1);
/// To compare so many bytes takes less time than to wake another thread that does.
const QUICK: usize = 128 << 10;
/// Of so many sectors of a run the files are asked for.
const NAMED: u64 = 16;
/// Where none is told, it is asked once more so much later.
const LATER: Duration = Duration::from_millis(50);

/// A device of a mounted btrfs.
struct Btrfs {
    /// The device, and where on it the file system's part begins.
    disk: File,
    begin: u64,
    length: u64,
    superblock: Superblock,
    /// How the kernel calls the device.
    name: String,
    /// Under which unique name it is mounted, and where the kernel lists the device as one of the file system's; nothing while it is not
    /// mounted, and when that was last seen.
    listed: Option<([u8; 16], PathBuf)>,
    looked: Instant,
    mount: Option<Arc<Mutex<Mount>>>,
    gate: Gate,
    calls: Calls,
    /// When its superblock was last read, and its map of chunks asked for.
    read: Option<Instant>,
    chunks: Vec<Stretch>,
    asked: Option<Instant>,
    /// What is allocated, what the sectors should be, and where tree blocks are, ahead of what is judged.
    allocated: Window<Range<u64>>,
    sums: Window<Sum>,
    blocks: Window<(u64, u64)>,
    /// When it was last made sure of that the mount leads to it.
    reached: Option<Instant>,
    /// Chunks that it was asked to mend.
    mended: BTreeSet<u64>,
}

/// Opens the content of a part of a device; nothing where no btrfs is on it.
///
/// # Errors
/// Why its checksums cannot be used.
pub fn open(part: &Part) -> Result<Option<Box<dyn Content>>, String> {
    Ok(Btrfs::of(part)?.map(|found| Box::new(found) as Box<dyn Content>))
}

impl Btrfs {
    fn of(part: &Part) -> Result<Option<Self>, String> {
        let listed = listed(&part.name);
        let Some(superblock) = superblock_of(part, listed.is_some())? else { return Ok(None) };
        let disk = part.disk.try_clone().map_err(|error| error.to_string())?;
        let mut found = Btrfs {
            disk,
            begin: part.range.start,
            length: part.range.end - part.range.start,
            superblock,
            name: part.name.clone(),
            listed,
            looked: Instant::now(),
            mount: None,
            gate: part.gate.clone(),
            calls: part.calls.clone(),
            read: None,
            chunks: Vec::new(),
            asked: None,
            allocated: Window::default(),
            sums: Window::default(),
            blocks: Window::default(),
            reached: None,
            mended: BTreeSet::new(),
        };
        // What is mounted and cannot be reached may be by who has mounted something else over it: that is not as if nobody had checksums.
        match found.mounted().map(|mounted| found.ask(&mounted)) {
            Ok(Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => Err(why(&error)),
            _ => Ok(Some(found)),
        }
    }
}

/// The first copy that is whole: a damaged one is told when it is read. Where there is no first one, the others are of the past, unless it is
/// mounted; where it cannot be read, one of them may say that there is a file system.
fn superblock_of(part: &Part, is_mounted: bool) -> Result<Option<Superblock>, String> {
    let copy = |place: u64| part.read(place, LENGTH).map(|bytes| Superblock::parse(&bytes, place));
    let other = || COPIES[1..].iter().find_map(|place| copy(*place).ok()?.ok().flatten());
    match copy(COPIES[0]) {
        Ok(Ok(None)) if is_mounted => other().map(Some).ok_or("its superblock is gone".into()),
        Ok(first) => first.or_else(|damaged| other().map(Some).ok_or(damaged)),
        Err(_) => Ok(other()),
    }
}

/// Whether any of a range of the part lies in a copy of the superblock.
fn holds_superblock(range: &Range<u64>) -> bool {
    COPIES.iter().any(|place| *place < range.end && range.start < place + LENGTH as u64)
}

fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "to ask it takes root, or CAP_SYS_ADMIN".into(),
        io::ErrorKind::TimedOut => "it does not answer: a device of it may hang".into(),
        _ => error.to_string(),
    }
}

fn unasked(error: io::Error) -> Unasked {
    Unasked { why: why(&error), is_silent: error.kind() == io::ErrorKind::TimedOut }
}

impl Btrfs {
    /// What lies in a range of the part, as far as it is said now.
    fn names(&self, mounted: &Mounted, range: &Range<u64>) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        if holds_superblock(range) {
            names.insert("superblock of btrfs".into());
            // A chunk may lie around it, and leaves it out.
            if range.end - range.start <= LENGTH as u64 {
                return names;
            }
        } else if range.start < RESERVED.end {
            names.insert("reserved, as for a boot loader".into());
        }
        for piece in self.pieces(range) {
            let Some(logical) = piece.logical else {
                names.insert("parity".into());
                continue;
            };
            if !piece.data {
                names.insert("metadata".into());
                continue;
            }
            let sector = self.superblock.sector;
            let end = logical + (piece.place.end - piece.place.start);
            for address in (logical / sector * sector..end).step_by(sector as usize).take(NAMED as usize) {
                // Nobody's, or a tree block's.
                names.extend(names::of(mounted, address).unwrap_or_default());
            }
        }
        names
    }

    /// The pieces of a range of the part.
    fn pieces(&self, range: &Range<u64>) -> Vec<Piece> {
        let first = self.chunks.partition_point(|stretch| stretch.place.end <= range.start);
        let within = self.chunks[first..].iter().take_while(|stretch| stretch.place.start < range.end);
        within.flat_map(|stretch| stretch.pieces(range)).collect()
    }
}

impl Content for Btrfs {
    fn judge(&mut self, extent: Extent, read: &[&[u8]]) -> Result<Judged, Unasked> {
        if !self.is_mounted() {
            let name = self.superblock.name_of_device();
            return Ok(Judged { unmounted: vec![(name, extent.length.0)], open: vec![extent], ..Judged::default() });
        }
        let (judged, is_mapped) = self.judge_lately(extent, read)?;
        // Addresses are given again to other chunks: who seems to be wrong, or to lie nowhere, is judged by the map of this moment.
        let lately = self.asked.is_some_and(|asked| asked.elapsed() < AGAIN);
        if judged.suspects.is_empty() && (is_mapped || lately) {
            return Ok(judged);
        }
        (self.read, self.asked, self.reached) = (None, None, None);
        self.forget_windows();
        self.judge_lately(extent, read).map(|(judged, _)| judged)
    }

    fn judge_at_once(&mut self, extent: Extent, read: &[&[u8]]) -> Option<Judged> {
        let is_quick = self.superblock.algorithm.is_quick() && read.first()?.len() <= QUICK;
        let is_known = self.listed.is_some() && !self.superblock.replaces();
        let lately = |since: Option<Instant>| since.is_some_and(|since| since.elapsed() < AGAIN);
        if !is_quick || !is_known || !lately(self.reached) || !lately(self.asked) {
            return None;
        }
        let (judged, _) = self.judge_by_map(None, extent, read).ok()?;
        judged.suspects.is_empty().then_some(judged)
    }

    fn absent(&self) -> Option<&'static str> {
        self.listed.is_none().then_some(UNMOUNTED)
    }

    fn name(&self) -> Option<String> {
        Some(self.superblock.name_of_device())
    }

    fn free(&mut self, extent: Extent) -> Result<Vec<Extent>, Unasked> {
        let mounted = self.mounted()?;
        self.asked = None;
        self.ask(&mounted).map_err(unasked)?;
        let begin = extent.offset.0 - self.begin;
        let range = begin..(begin + extent.length.0).min(self.length);
        let mut used: Vec<Range<u64>> = COPIES.iter().map(|place| *place..*place + LENGTH as u64).collect();
        used.push(RESERVED);
        for piece in self.pieces(&range) {
            let Some(logical) = piece.logical else {
                used.push(piece.place);
                continue;
            };
            let addresses = logical..logical + (piece.place.end - piece.place.start);
            let allocated = trees::allocated(&mounted, &self.superblock, &addresses).map_err(unasked)?;
            used.extend(allocated.into_iter().map(|Allocated { range, .. }| {
                let place =
                    |address: u64| piece.place.start + (address.clamp(addresses.start, addresses.end) - logical);
                place(range.start)..place(range.end)
            }));
        }
        used.sort_by_key(|part| part.start);
        let (mut free, mut from) = (Vec::new(), range.start);
        for part in used.into_iter().filter(|part| part.start < range.end).chain(std::iter::once(range.end..range.end))
        {
            if from < part.start {
                free.push(Extent { offset: Bytes(self.begin + from), length: Bytes(part.start - from) });
            }
            from = from.max(part.end);
        }
        Ok(free)
    }

    fn mend(&mut self, extent: Extent) -> Result<(), Unasked> {
        let mounted = self.mounted()?;
        self.asked = None;
        self.ask(&mounted).map_err(unasked)?;
        let range = extent.offset.0.saturating_sub(self.begin)..extent.end().0.saturating_sub(self.begin);
        let refused = |error: io::Error| match error.raw_os_error() {
            Some(libc::EINPROGRESS) => "a scrub of its own is running on this device".into(),
            Some(libc::EROFS) => "it is mounted read-only".into(),
            _ => unasked(error),
        };
        if holds_superblock(&range) {
            let file = mounted.file().map_err(unasked)?;
            orders::rewrite_superblocks(&file).map_err(refused)?;
        }
        let stretches = self.chunks.iter().filter(|one| one.place.start < range.end && one.place.end > range.start);
        for begin in stretches.map(|stretch| stretch.place.start) {
            // All of a chunk is checked at once.
            if !self.mended.insert(begin) {
                continue;
            }
            let file = mounted.file().map_err(unasked)?;
            let (done, _) = orders::scrub_chunk(&file, self.superblock.device, begin, false);
            done.map_err(refused)?;
        }
        Ok(())
    }

    fn unit(&self) -> u64 {
        self.superblock.node.max(self.superblock.sector)
    }

    fn owners(&mut self, extent: Extent) -> Result<Vec<String>, Unasked> {
        let mounted = self.mounted()?;
        self.ask(&mounted).map_err(unasked)?;
        let range = extent.offset.0.saturating_sub(self.begin)..extent.end().0.saturating_sub(self.begin);
        let mut names = self.names(&mounted, &range);
        if names.is_empty() {
            // Nobody's; or its trees were just being changed.
            std::thread::sleep(LATER);
            names = self.names(&mounted, &range);
        }
        Ok(names.into_iter().collect())
    }
}
