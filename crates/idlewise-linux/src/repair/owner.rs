//! Repair by the owner of the data, who has another copy: it is asked to check the part around each bad block, and what it has rewritten
//! is read and compared again.

use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use idlewise::Bytes;
use idlewise::order::Extent;

use super::{Fate, Outcome, RepairError, RepairLog, note};
use crate::content::Found;
use crate::device::Device;
use crate::memory::Buffer;
use crate::scrub::BadBlocks;

const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
/// What is read of a run at once.
const PIECE: u64 = 1 << 20;

/// Has the owners rewrite bad blocks, and reads and compares them again; those that are done when `stop` is set.
///
/// # Errors
/// [`RepairError`] if an owner does not, or the log cannot be written.
pub fn by_owner(
    device: &Device,
    found: &mut Found,
    bad: &[BadBlocks],
    log: &mut RepairLog,
    stop: &AtomicBool,
) -> Result<Vec<Outcome>, RepairError> {
    let owners = found.names().join(", ");
    let problem = |why: String| RepairError::Array { array: device.path.display().to_string(), problem: why };
    // All are looked at before the first is mended: what an owner checks at once has several of them in it.
    let mut before = Vec::new();
    for run in bad {
        before.push(surely_wrong(device, found, run).map_err(problem)?);
    }
    let mut outcomes = Vec::new();
    for (run, before) in bad.iter().zip(before) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let mut after = before.clone();
        if before.contains(&true) {
            let block = u64::from(device.block);
            let extent = Extent { offset: Bytes(run.lba * block), length: Bytes(run.blocks * block) };
            if !found.is_owned(extent) {
                (run.lba..run.end()).for_each(|lba| note(&mut outcomes, lba, Fate::LeftAlone));
                continue;
            }
            log.say("will-mend", run.lba, run.blocks, &owners)?;
            found.mend(extent).map_err(|why| problem(format!("{owners}: {why}")))?;
            after = surely_wrong(device, found, run).map_err(problem)?;
            log.say("mended", run.lba, run.blocks, &owners)?;
        }
        for (lba, (before, after)) in (run.lba..).zip(before.into_iter().zip(after)) {
            let fate = match (before, after) {
                (false, false) => Fate::Readable,
                (true, false) => Fate::Repaired,
                // It has no good copy, or the medium takes none.
                (_, true) => Fate::StillBad,
            };
            note(&mut outcomes, lba, fate);
        }
    }
    Ok(outcomes)
}

/// The same at two looks: somebody may write there.
fn surely_wrong(device: &Device, found: &mut Found, run: &BadBlocks) -> Result<Vec<bool>, String> {
    let first = wrong(device, found, run)?;
    if !first.contains(&true) {
        return Ok(first);
    }
    sleep(BETWEEN_LOOKS);
    let second = wrong(device, found, run)?;
    Ok(first.into_iter().zip(second).map(|(first, second)| first && second).collect())
}

/// Which blocks of a run cannot be read, or hold something else than they should.
fn wrong(device: &Device, found: &mut Found, run: &BadBlocks) -> Result<Vec<bool>, String> {
    let (block, unit) = (u64::from(device.block), found.unit());
    let (begin, end) = (run.lba * block, run.end() * block);
    let mut wrong = vec![false; run.blocks as usize];
    let mut mark = |from: u64, to: u64| {
        let (from, to) = (from.max(begin) - begin, to.min(end).saturating_sub(begin));
        (from / block..to.div_ceil(block)).for_each(|at| wrong[at as usize] = true);
    };
    // Whole units, so that all that lies in the run is judged.
    let mut at = begin / unit * unit;
    let last = end.next_multiple_of(unit).min(device.size.0);
    let mut buffer = Buffer::new(PIECE as usize);
    while at < last {
        let length = (last - at).min(PIECE / unit.min(PIECE) * unit.min(PIECE));
        let bytes = buffer.bytes(length as usize);
        if device.file.read_exact_at(bytes, at).is_err() {
            // Which of them: one by one.
            for one in (at..at + length).step_by(block as usize).filter(|one| (begin..end).contains(one)) {
                if device.file.read_exact_at(&mut bytes[..block as usize], one).is_err() {
                    mark(one, one + block);
                }
            }
        } else {
            let extent = Extent { offset: Bytes(at), length: Bytes(length) };
            let judged = found.judge(extent, &[bytes]).map_err(|why| why.to_string())?;
            let within = judged
                .suspects
                .iter()
                .filter(|suspect| suspect.extent.offset.0 < end && suspect.extent.end().0 > begin);
            within.for_each(|suspect| mark(suspect.extent.offset.0, suspect.extent.end().0));
        }
        at += length;
    }
    Ok(wrong)
}
