//! Repair from a mirror that the user states: a device with the same data at the same places.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use rustix::io::Errno;

use super::alike::{Content, alike};
use super::superblock::Noted;
use super::{Fate, Outcome, RepairError, RepairLog, each, note};
use crate::device::{Device, DeviceError, is_of_the_medium};
use crate::memory::Buffer;
use crate::scrub::BadBlocks;

/// No sector of a disk is larger.
const LARGEST_SECTOR: u64 = 4096;

/// Rewrites unreadable blocks of `device` with what `mirror` holds there. Neither may be mounted or otherwise in use. A block
/// that can be read again is left alone. Where the medium takes no block alone, the sector around it is written as a whole, if none of it
/// can be read.
///
/// # Errors
/// [`RepairError`] if a device is in use, they do not match, or the log cannot be written.
pub fn from_mirror(
    device: &Device,
    mirror: &Device,
    bad: &[BadBlocks],
    log: &mut RepairLog,
) -> Result<Vec<Outcome>, RepairError> {
    check_mirror(device, mirror, bad)?;
    let source = open_exclusively(mirror, false)?;
    let target = open_exclusively(device, true)?;
    let (mut held, mut is) = (Buffer::new(device.block as usize), Buffer::new(device.block as usize));
    let (held, is) = (held.bytes(device.block as usize), is.bytes(device.block as usize));
    let mut outcomes = Vec::new();
    // Where a sector was written as a whole.
    let mut written_to = 0;
    for (lba, at) in each(bad, device.block) {
        let read = target.read_exact_at(is, at.0);
        let fate = if read.is_ok() {
            // That it can be read again does not make it right.
            let differs = source.read_exact_at(held, at.0).is_ok() && is != held;
            match differs {
                true => Fate::Undecided,
                false if lba < written_to => Fate::Repaired,
                false => Fate::Readable,
            }
        } else if !read.is_err_and(|error| is_of_the_medium(&error)) {
            Fate::LeftAlone
        } else if source.read_exact_at(held, at.0).is_err() {
            Fate::SourceUnreadable
        } else {
            let by = mirror.path.display().to_string();
            log.say("will-write", lba, 1, &by)?;
            let written = target.write_all_at(held, at.0).is_ok() && target.sync_data().is_ok();
            let is_good = |is: &mut [u8]| target.read_exact_at(is, at.0).is_ok() && is == held;
            let mut good = written && is_good(is);
            log.say(if good { "written" } else { "failed" }, lba, 1, &by)?;
            let dead = |sector: &Range<u64>| sector.clone().all(|lba| is_dead(&target, lba, is.len()));
            if let Some(sector) = sector_of(lba, device, bad).filter(|sector| !good && dead(sector)) {
                log.say("will-write", sector.start, sector.end - sector.start, &by)?;
                let written = write_sector(&sector, device.block, &source, &target).is_ok();
                good = written && is_good(is);
                log.say(if good { "written" } else { "failed" }, sector.start, sector.end - sector.start, &by)?;
                written_to = if written { sector.end } else { written_to };
            }
            if good { Fate::Repaired } else { Fate::StillBad }
        };
        note(&mut outcomes, lba, fate);
    }
    Ok(outcomes)
}

/// The sector of the medium in which a block lies, if it holds several and all of them are bad: to put one into it the drive would have to
/// read the others.
fn sector_of(lba: u64, device: &Device, bad: &[BadBlocks]) -> Option<Range<u64>> {
    let blocks = LARGEST_SECTOR / u64::from(device.block);
    // A partition may begin within one.
    let before = device.start.0 / u64::from(device.block) % blocks.max(1);
    let begin = ((lba + before) / blocks.max(2) * blocks.max(2)).checked_sub(before)?;
    let sector = begin..begin + blocks;
    let is_bad = |lba: &u64| bad.iter().any(|run| (run.lba..run.end()).contains(lba));
    (blocks > 1 && sector.contains(&lba) && sector.clone().all(|lba| is_bad(&lba))).then_some(sector)
}

/// Whether a block cannot be read now. What can be may have been written since it was found.
fn is_dead(target: &File, lba: u64, block: usize) -> bool {
    let mut is = Buffer::new(block);
    target.read_exact_at(is.bytes(block), lba * block as u64).is_err_and(|error| is_of_the_medium(&error))
}

/// Writes a sector as a whole with what the mirror holds there.
fn write_sector(sector: &Range<u64>, block: u32, source: &File, target: &File) -> std::io::Result<()> {
    let (block, length) = (u64::from(block), LARGEST_SECTOR as usize);
    let mut held = Buffer::new(length);
    let held = held.bytes(length);
    source.read_exact_at(held, sector.start * block)?;
    target.write_all_at(held, sector.start * block)?;
    target.sync_data()
}

/// Whether `mirror` can be one: another disk of the same size, and the same data around the unreadable blocks, where these are not
/// such as any disk may hold.
///
/// # Errors
/// [`RepairError::NoMirror`] if not.
pub fn check_mirror(device: &Device, mirror: &Device, bad: &[BadBlocks]) -> Result<(), RepairError> {
    let no_mirror = |why: String| RepairError::NoMirror {
        device: device.path.display().to_string(),
        mirror: mirror.path.display().to_string(),
        why,
    };
    if device.disk_numbers() == mirror.disk_numbers() {
        return Err(no_mirror("they are on the same disk".into()));
    }
    if device.size != mirror.size {
        return Err(no_mirror(format!("one has {}, the other {}", device.size.0, mirror.size.0)));
    }
    if !device.block.is_multiple_of(mirror.block) {
        return Err(no_mirror(format!("its blocks of {} bytes are larger", mirror.block)));
    }
    let noted = |device: &Device| Noted::on(device, &device.file);
    Noted::may_mirror(noted(device), noted(mirror)).map_err(no_mirror)?;
    let block = u64::from(device.block);
    let (mut here, mut there) = (Buffer::new(device.block as usize), Buffer::new(device.block as usize));
    let mut compare = |lba: u64| {
        let (here, there) = (here.bytes(device.block as usize), there.bytes(device.block as usize));
        let read = |file: &File, into: &mut [u8]| file.read_exact_at(into, lba * block).is_ok();
        let both = read(&device.file, here) && read(&mirror.file, there);
        both.then(|| if here == there { Some(Content::of(here)) } else { None })
    };
    for run in bad {
        alike(run, device.size.0 / block, &mut compare).map_err(no_mirror)?;
    }
    Ok(())
}

/// Opens a device once more so that the kernel refuses if it is mounted, part of an array or otherwise claimed, and refuses to let
/// others claim it meanwhile.
pub(super) fn open_exclusively(device: &Device, write: bool) -> Result<File, DeviceError> {
    device.open_exclusively(write).map_err(|error| {
        let path = device.path.display().to_string();
        let problem = match Errno::from_io_error(&error) {
            Some(Errno::BUSY) => {
                "is mounted, part of an array or otherwise in use; repair needs it to be unused".into()
            }
            Some(Errno::ACCESS | Errno::PERM | Errno::ROFS) => "no permission to write to it".into(),
            _ => error.to_string(),
        };
        DeviceError::Io { path, problem }
    })
}
