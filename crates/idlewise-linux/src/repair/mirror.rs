//! Repair from a mirror that the user states: a device with the same data at the same places.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::io::Errno;

use super::alike::{Content, alike};
use super::superblock::Noted;
use super::{Fate, Outcome, RepairError, RepairLog, each, note};
use crate::device::{Device, DeviceError};
use crate::memory::Buffer;
use crate::scrub::BadBlocks;

/// Rewrites unreadable blocks of `device` with what `mirror` holds there. Neither may be mounted or otherwise in use. A block
/// that can be read again is left alone.
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
    for (lba, at) in each(bad, device.block) {
        let read = target.read_exact_at(is, at.0);
        let fate = if read.is_ok() {
            // That it can be read again does not make it right.
            let differs = source.read_exact_at(held, at.0).is_ok() && is != held;
            if differs { Fate::Undecided } else { Fate::Readable }
        } else if !read.is_err_and(|error| is_unreadable(&error)) {
            Fate::LeftAlone
        } else if source.read_exact_at(held, at.0).is_err() {
            Fate::SourceUnreadable
        } else {
            let by = mirror.path.display().to_string();
            log.say("will-write", lba, 1, &by)?;
            let written = target.write_all_at(held, at.0).is_ok() && target.sync_data().is_ok();
            let good = written && target.read_exact_at(is, at.0).is_ok() && is == held;
            log.say(if good { "written" } else { "failed" }, lba, 1, &by)?;
            if good { Fate::Repaired } else { Fate::StillBad }
        };
        note(&mut outcomes, lba, fate);
    }
    Ok(outcomes)
}

/// Whether the medium is what fails: nothing is written because a cable does.
fn is_unreadable(error: &std::io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::IO | Errno::NODATA | Errno::ILSEQ))
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
fn open_exclusively(device: &Device, write: bool) -> Result<File, DeviceError> {
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
