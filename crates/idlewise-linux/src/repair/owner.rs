//! Repair by the owner of the data, who has another copy: it is asked to check the part around each bad block, and what it has rewritten
//! is read and compared again.

use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use idlewise::Bytes;
use idlewise::order::Extent;

use super::{Fate, Outcome, RepairError, RepairLog, in_pieces, note};
use crate::content::{Found, Unasked};
use crate::device::Device;
use crate::memory::Buffer;
use crate::scrub::BadBlocks;

const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

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
    let runs: Vec<_> = in_pieces(bad).collect();
    let before = surely_wrong(device, found, &runs, stop).map_err(problem)?;
    let all = runs.into_iter().zip(before);
    let mut outcomes = Vec::new();
    for (run, before) in all {
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
            if let Err(why) = found.mend(extent) {
                log.say("failed", run.lba, run.blocks, &owners)?;
                return Err(problem(format!("{owners}: {why}")));
            }
            // What is begun is looked at to its end.
            after = surely_wrong(device, found, std::slice::from_ref(&run), &AtomicBool::new(false))
                .map_err(problem)?
                .remove(0);
            let is_good = !after.contains(&true);
            log.say(if is_good { "mended" } else { "failed" }, run.lba, run.blocks, &owners)?;
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

/// The same at two looks, of each of some runs: somebody may write there. It ends early when `stop` is set, with less than all.
fn surely_wrong(
    device: &Device,
    found: &mut Found,
    runs: &[BadBlocks],
    stop: &AtomicBool,
) -> Result<Vec<Vec<bool>>, String> {
    let mut all = Vec::new();
    for run in runs.iter().take_while(|_| !stop.load(Ordering::Relaxed)) {
        all.push(wrong(device, found, run)?);
    }
    sleep(BETWEEN_LOOKS);
    for (run, first) in runs.iter().zip(&mut all).filter(|(_, first)| first.contains(&true)) {
        let second = wrong(device, found, run)?;
        first.iter_mut().zip(second).for_each(|(first, second)| *first &= second);
    }
    Ok(all)
}

/// Which blocks of a run cannot be read, or hold something else than they should. Where a unit of what is judged cannot be read, nobody knows
/// of the rest of it.
fn wrong(device: &Device, found: &mut Found, run: &BadBlocks) -> Result<Vec<bool>, String> {
    let (block, unit) = (u64::from(device.block), found.unit());
    let (begin, end) = (run.lba * block, run.end() * block);
    let mut wrong = vec![false; run.blocks as usize];
    let mut mark = |from: u64, to: u64| {
        let (from, to) = (from.clamp(begin, end) - begin, to.clamp(begin, end) - begin);
        (from / block..to.div_ceil(block)).for_each(|at| wrong[at as usize] = true);
    };
    let mut buffer = Buffer::new(2 * unit as usize);
    // What lies in the run may begin before it: the owner's part begins anywhere. And what begins in a unit may end in the next one.
    let first = (begin / unit * unit).saturating_sub(unit);
    for at in (first..end).step_by(unit as usize) {
        let rest = device.size.0 - at;
        let mut read = |length: u64| {
            let bytes = buffer.bytes(length.min(rest) as usize);
            device.file.read_exact_at(bytes, at).is_ok().then(|| bytes.to_vec())
        };
        let Some(bytes) = read(2 * unit).or_else(|| read(unit)) else {
            mark(at, at + unit);
            continue;
        };
        let extent = Extent { offset: Bytes(at), length: Bytes(unit.min(rest)) };
        let judged = found.judge(extent, &[&bytes]);
        if let Some((_, Unasked { why, .. })) = judged.unasked {
            return Err(why);
        }
        if !judged.unmounted.is_empty() {
            return Err("it is not mounted".into());
        }
        let suspects = judged.suspects.iter().map(|suspect| &suspect.extent);
        suspects.chain(&judged.open).for_each(|extent| mark(extent.offset.0, extent.end().0));
    }
    Ok(wrong)
}
