//! Repair through md: a check of the few stripes around each unreadable block. A check reads every member; what one of them
//! cannot read is rewritten from the others (Documentation/admin-guide/md.rst of the kernel). Reading through the array
//! would not do: md answers from the member that it likes best.
//!
//! Of a mirror md rewrites the whole window of 64 KiB in which a member has an unreadable block, with what the first good one holds; with
//! parity, the page of 4 KiB. So the rest of it must be what the other members tell, or nothing is done.

mod held;
mod keeper;
mod members;
mod pages;
mod suspended;

use std::fs;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use idlewise::Bytes;
use idlewise::order::Extent;
use idlewise::report::printable::one_line;

use self::held::{Differs, Held, mirrors, parity};
pub use self::members::{Foreseen, foreseen, through_members};
pub use self::suspended::Suspension;
use super::{Fate, Outcome, RepairError, RepairLog, note};
use crate::device::Device;
use crate::device::verify::Verifier;
use crate::knobs::{KnobLedger, Knobs, NO_LIMIT};
use crate::scrub::BadBlocks;

const SECTOR: u64 = 512;
/// md checks in windows of 64 KiB, in sectors.
const WINDOW: u64 = 128;
/// With parity md rewrites pages, in sectors.
const PAGE: u64 = 8;
const PAGE_BYTES: u64 = PAGE * SECTOR;
/// A check of a few windows takes longer only if something is wrong.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(50);

/// Has md rewrite the unreadable blocks of its member `device`, and verifies them again; those of which md is done when `stop` is set.
///
/// # Errors
/// [`RepairError`] if the device is in no md array with redundancy, the array is busy, or the log cannot be written.
pub fn through_array(
    device: &Device,
    verifier: &mut dyn Verifier,
    bad: &[BadBlocks],
    log: &mut RepairLog,
    stop: &AtomicBool,
) -> Result<Vec<Outcome>, RepairError> {
    let array = Array::of(device)?;
    array.is_redundant()?;
    let mut ledger = KnobLedger::begin().map_err(|error| array.unnoted(&error))?;
    let others = array.others(device)?;
    let is_raid6 = array.read("level")? == "raid6";
    let agrees = |lbas: Range<u64>, (begin, end): (u64, u64)| match is_raid6 {
        true => array.is_safe(begin, end, device.block),
        false => array.agrees(device, &others, lbas),
    };
    let mut outcomes = Vec::new();
    for run in bad {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let (first, last) = (run.lba * u64::from(device.block), (run.lba + run.blocks) * u64::from(device.block));
        let window = array.window(first / SECTOR, last.div_ceil(SECTOR));
        if (run.lba..run.lba + run.blocks).all(|lba| readable(verifier, device, lba)) {
            // That it can be read again does not make it right.
            let differs = window.is_some_and(|window| agrees(run.lba..run.end(), window).is_err());
            let fate = if differs { Fate::Undecided } else { Fate::Readable };
            (run.lba..run.lba + run.blocks).for_each(|lba| note(&mut outcomes, lba, fate));
            continue;
        }
        if let Some((begin, end)) = window {
            let per_block = u64::from(device.block) / SECTOR;
            let lbas = (array.data.0 + begin) / per_block..(array.data.0 + end).div_ceil(per_block);
            // md goes through all of it, and rewrites what any member cannot read there.
            agrees(lbas.clone(), (begin, end))?;
            let count = lbas.end - lbas.start;
            log.say("will-check", lbas.start, count, &array.name)?;
            let checked = array.go_through("check", begin, end, &mut ledger, stop)?;
            log.say(if checked { "checked" } else { "stopped" }, lbas.start, count, &array.name)?;
            if !checked {
                break;
            }
        }
        for lba in run.lba..run.lba + run.blocks {
            let good = readable(verifier, device, lba);
            let fate = match (good, window) {
                (true, Some(_)) => Fate::Repaired,
                (true, None) => Fate::Readable,
                (false, Some(_)) => Fate::StillBad,
                // Outside of what the array keeps on its member.
                (false, None) => Fate::SourceUnreadable,
            };
            note(&mut outcomes, lba, fate);
        }
    }
    Ok(outcomes)
}

/// Whether the device is a member of an array that can rewrite it.
///
/// # Errors
/// [`RepairError::Array`] if not.
pub fn check_array(device: &Device) -> Result<(), RepairError> {
    Array::of(device).map(|_| ())
}

fn readable(verifier: &mut dyn Verifier, device: &Device, lba: u64) -> bool {
    let block = u64::from(device.block);
    let extent = Extent { offset: Bytes(lba * block), length: Bytes(block) };
    let until = Instant::now() + PATIENCE;
    if verifier.start(extent).is_err() {
        return false;
    }
    loop {
        match verifier.wait(LOOK) {
            Some(done) => return done.is_ok(),
            None if Instant::now() > until => return false,
            None => {}
        }
    }
}

/// An md array that a device is a member of.
struct Array {
    name: String,
    folder: PathBuf,
    /// Where its data begin on the member, and how much there are, in sectors.
    data: (u64, u64),
    chunk: u64,
}

impl Array {
    fn of(device: &Device) -> Result<Self, RepairError> {
        let none = |array: String, problem: &str| RepairError::Array { array, problem: problem.into() };
        let path = device.path.display().to_string();
        let name = device.md_array().ok_or_else(|| none(path, "is no member of an md array"))?;
        let mut array = Self::named(name)?;
        array.data.0 = array.number(&format!("dev-{}/offset", device.name()))?;
        Ok(array)
    }

    /// The array of this name, whatever its members.
    fn named(name: String) -> Result<Self, RepairError> {
        let array = Self::of_any_level(name)?;
        let level = array.read("level")?;
        if !["raid1", "raid4", "raid5", "raid6"].contains(&level.as_str()) {
            return Err(array.problem(format!("a check of part of a {level} array cannot be told which part")));
        }
        Ok(array)
    }

    /// The same, if md need not go through a part of it.
    fn of_any_level(name: String) -> Result<Self, RepairError> {
        let folder = PathBuf::from("/sys/block").join(&name).join("md");
        let mut array = Self { name, folder, data: (0, 0), chunk: 0 };
        array.chunk = array.number("chunk_size")? / SECTOR;
        // In KiB.
        array.data.1 = array.number("component_size")? * 2;
        Ok(array)
    }

    /// Whether it can rewrite anything.
    fn is_redundant(&self) -> Result<(), RepairError> {
        let spare = match self.read("level")?.as_str() {
            "raid1" => self.number("raid_disks")?.saturating_sub(1),
            "raid6" => 2,
            _ => 1,
        };
        let missing = self.number("degraded")?;
        if missing < spare {
            return Ok(());
        }
        Err(self.problem(format!("lacks {missing} of its members: nothing is left to rewrite from")))
    }

    /// The other members that are in use, and where its data begin on them, in sectors.
    fn others(&self, device: &Device) -> Result<Vec<(Device, u64)>, RepairError> {
        let mut others = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(|error| self.error("", &error))? {
            let name = entry.map_err(|error| self.error("", &error))?.file_name().to_string_lossy().into_owned();
            let Some(other) = name.strip_prefix("dev-").filter(|other| *other != device.name()) else { continue };
            if self.read(&format!("{name}/state"))?.split(',').any(|state| state == "in_sync") {
                // A slash in a name is an exclamation mark in sysfs.
                let path = Path::new("/dev").join(other.replace('!', "/"));
                others.push((Device::open(&path)?, self.number(&format!("{name}/offset"))?));
            }
        }
        Ok(others)
    }

    /// Whether what the device holds in these blocks is what md would write there, as far as it can be read: what is on the mirrors, or
    /// what the others and their parity give. Not for RAID 6, whose second parity is no sum.
    fn agrees(&self, device: &Device, others: &[(Device, u64)], lbas: Range<u64>) -> Result<(), RepairError> {
        let level = self.read("level")?;
        let per_block = u64::from(device.block) / SECTOR;
        let sectors = (lbas.start * per_block).max(self.data.0)..lbas.end * per_block;
        let read = |of: &Device, sectors: Range<u64>| {
            Held::read(of, &sectors).map_err(|error| {
                self.problem(format!("{} cannot be compared with the others: {error}", of.path.display()))
            })
        };
        let ours = read(device, sectors.clone())?;
        let there = |begin: u64| sectors.start - self.data.0 + begin..sectors.end - self.data.0 + begin;
        let theirs = others.iter().map(|(other, begin)| read(other, there(*begin))).collect::<Result<Vec<_>, _>>()?;
        let differs = if level == "raid1" { mirrors(&ours, &theirs) } else { parity(&ours, &theirs) };
        let lba = |sector: usize| (sectors.start + sector as u64) / per_block;
        let path = device.path.display();
        Err(self.problem(match differs {
            None => return Ok(()),
            Some(Differs::FromOthers(sector)) => format!(
                "holds something else at block {} of {path} than its other members tell: md would overwrite it, though it can be read",
                lba(sector)
            ),
            Some(Differs::Among(sector)) => format!(
                "holds different things at block {} of {path} on its other members: nobody knows which of them is right",
                lba(sector)
            ),
        }))
    }

    /// The sectors of the member's data that a check of these sectors of the member covers; `None` if they are no data.
    fn window(&self, first: u64, last: u64) -> Option<(u64, u64)> {
        let (begin, length) = self.data;
        if first < begin || first >= begin + length {
            return None;
        }
        let unit = WINDOW.max(self.chunk);
        // The last one may be cut off: what is behind the data is none of the array's.
        Some(((first - begin) / unit * unit, (last - begin).next_multiple_of(unit).min(length)))
    }

    /// Has md check the data between two sectors of each member, or make them fit by `repair`, and waits until that is done; whether it was
    /// before `stop` was set.
    fn go_through(
        &self,
        action: &str,
        begin: u64,
        end: u64,
        ledger: &mut KnobLedger,
        stop: &AtomicBool,
    ) -> Result<bool, RepairError> {
        let busy = self.read("sync_action")?;
        if busy != "idle" {
            return Err(self.problem(format!("is busy ({busy})")));
        }
        // The last window may be cut off by the end of the data, where "max" is the only limit that fits.
        let limit = if end >= self.data.1 { NO_LIMIT.into() } else { end.to_string() };
        let knobs = Knobs::of(&self.folder, action, begin).map_err(|error| self.problem(error.to_string()))?;
        ledger.add(knobs.clone()).map_err(|error| self.unnoted(&error))?;
        let reset = Reset { array: self, knobs, ledger };
        reset.knobs.start(&limit).map_err(|error| self.problem(error.to_string()))?;
        let until = Instant::now() + PATIENCE;
        loop {
            sleep(LOOK);
            let completed = self.read("sync_completed")?;
            let at = completed.split_whitespace().next().and_then(|at| at.parse::<u64>().ok());
            // "none" when it has ended by itself.
            if self.read("sync_action")? == "idle" || at.is_some_and(|at| at >= end) {
                return Ok(true);
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            if Instant::now() > until {
                return Err(self.problem(format!("its check did not get past sector {completed}")));
            }
        }
    }

    fn read(&self, file: &str) -> Result<String, RepairError> {
        let text = fs::read_to_string(self.folder.join(file));
        text.map(|text| text.trim().to_string()).map_err(|error| self.error(file, &error))
    }

    fn number(&self, file: &str) -> Result<u64, RepairError> {
        let text = self.read(file)?;
        text.parse().map_err(|_| self.problem(format!("{file} is {text}")))
    }

    fn error(&self, file: &str, error: &std::io::Error) -> RepairError {
        self.problem(format!("md/{file}: {error}"))
    }

    fn unnoted(&self, error: &std::io::Error) -> RepairError {
        self.problem(format!("what its check is told cannot be written down: {error}"))
    }

    fn problem(&self, problem: String) -> RepairError {
        RepairError::Array { array: self.name.clone(), problem }
    }
}

/// Ends a check and puts its limits back, whatever happened.
struct Reset<'a> {
    array: &'a Array,
    knobs: Knobs,
    ledger: &'a mut KnobLedger,
}

impl Drop for Reset<'_> {
    fn drop(&mut self) {
        match self.knobs.put_back() {
            Ok(()) => drop(self.ledger.take_back()),
            // Whoever comes next tries again.
            Err(error) => {
                let problem = self.array.problem(error.to_string()).to_string();
                let _ = writeln!(std::io::stderr(), "idlewise: {}", one_line(&problem));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_covers_whole_windows_of_the_data() {
        let array = Array { name: "md0".into(), folder: PathBuf::new(), data: (2048, 100_000), chunk: 1024 };
        assert_eq!(array.window(2048, 2049), Some((0, 1024)));
        assert_eq!(array.window(2048 + 5000, 2048 + 5002), Some((4096, 5120)));
        assert_eq!(array.window(2048 + 99_999, 2048 + 100_000), Some((99_328, 100_000)));
        assert_eq!([array.window(2047, 2048), array.window(102_048, 102_049)], [None, None]);
    }

    /// Whoever stops a repair leaves no limit behind, at which every later check would end.
    #[test]
    fn a_check_that_is_stopped_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        for (name, value) in [
            ("sync_action", "idle"),
            ("sync_completed", "none"),
            ("sync_min", "0"),
            ("sync_max", "4096"),
            ("sync_speed_min", "1000 (system)"),
            ("sync_speed_max", "200000 (system)"),
        ] {
            fs::write(file(name), value).unwrap();
        }
        let array = Array { name: "md0".into(), folder: folder.path().into(), data: (2048, 100_000), chunk: 1024 };
        let mut ledger = KnobLedger::within(folder.path()).unwrap();
        assert!(!array.go_through("check", 128, 256, &mut ledger, &AtomicBool::new(true)).unwrap());
        let left = ["sync_action", "sync_min", "sync_max"].map(|name| fs::read_to_string(file(name)).unwrap());
        assert_eq!(left, ["idle", "0", "4096"]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 6, "nothing is left written down");
        fs::write(file("sync_action"), "check").unwrap();
        let busy = array.go_through("check", 1024, 2048, &mut ledger, &AtomicBool::new(false)).unwrap_err().to_string();
        assert_eq!(busy, "md0: is busy (check)");
    }
}
