//! md's own check of an array (Documentation/admin-guide/md.rst): let go and held by its speed limit, which costs no write, or by a limit that
//! is moved on in steps. Ended by `idle`, it would forget up to a sixteenth of the array; so its place is kept here.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use idlewise::Bytes;

use super::{Place, Scrubber, Standing, refused};
use crate::device::{Device, WholeDisk};
use crate::files::told_by_kernel;
use crate::knobs::{FREE, HELD, KnobLedger, Knobs, NO_LIMIT, read, write};
use crate::monitor::{self, Monitor};

const SECTOR: u64 = 512;
/// A step of each member, in sectors: a smaller one costs as many writes of superblocks.
const STEP: u64 = (16 << 20) / SECTOR;
/// What may be under way at once, in sectors: of what was asked for last, so much may be missing before what has come.
const WINDOW: u64 = (4 << 20) / SECTOR;
/// So many looks without a change, and nothing is under way: while others use the members, their counters do not tell.
const UNCHANGED: u32 = 5;

/// How it is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Gate,
    /// By a limit, in sectors.
    Steps(u64),
}

/// A check.
struct Check {
    device: (u32, u32),
    name: String,
    folder: PathBuf,
    how: How,
    /// Where it begins, and how much there is, in sectors.
    begin: u64,
    all: u64,
    /// How much of it was seen to be done, and for how many looks that has not changed.
    done: u64,
    unchanged: u32,
    /// What was counted before it began.
    wrong: u64,
    /// How much was counted when it was so far, for what is not settled yet.
    counts: VecDeque<(u64, u64)>,
    open: bool,
    /// What was set, once it has begun.
    set: Option<(Knobs, KnobLedger)>,
}

/// By its speed.
pub fn gate(device: &Device, place: Place) -> io::Result<Box<dyn Scrubber>> {
    Check::of(device, place, How::Gate)
}

/// In steps.
pub fn steps(device: &Device, place: Place) -> io::Result<Box<dyn Scrubber>> {
    Check::of(device, place, How::Steps(0))
}

impl Check {
    fn of(device: &Device, place: Place, how: How) -> io::Result<Box<dyn Scrubber>> {
        let name = device.name();
        let folder = Path::new("/sys/block").join(&name).join("md");
        let level = read(&folder, "level").map_err(|_| refused("it is no md array; name one such as /dev/md0"))?;
        if !["raid1", "raid4", "raid5", "raid6", "raid10"].contains(&&*level) {
            return Err(refused(format!("a {level} array has nothing to check against")));
        }
        let number = |file: &str| -> io::Result<u64> {
            let text = read(&folder, file)?;
            text.parse().map_err(|_| refused(format!("md/{file} is '{text}'")))
        };
        // Of RAID 10 it is counted on the array, in sectors; else on a member, in KiB.
        let all = match &*level {
            "raid10" => told_by_kernel(Path::new("/sys/block").join(&name).join("size"))?.trim().parse().unwrap_or(0),
            _ => 2 * number("component_size")?,
        };
        let unit = (number("chunk_size").unwrap_or(0) / SECTOR).max(8);
        let begin = place.done / SECTOR / unit * unit;
        let begin = if begin < all { begin } else { 0 };
        let check = Self {
            device: device.disk_numbers(),
            name,
            folder,
            how,
            begin,
            all,
            done: begin,
            unchanged: 0,
            wrong: if begin > 0 { place.wrong } else { 0 },
            counts: VecDeque::new(),
            open: false,
            set: None,
        };
        check.is_whole()?;
        let action = read(&check.folder, "sync_action")?;
        if action != "idle" {
            return Err(refused(format!("md is at work on it ({action})")));
        }
        Ok(Box::new(check))
    }

    fn is_whole(&self) -> io::Result<()> {
        match &*read(&self.folder, "degraded")? {
            "0" => Ok(()),
            _ => Err(refused("it lacks members: a check would be in the way of the rebuild")),
        }
    }

    /// Tells md where to begin, and starts it.
    fn start(&mut self) -> io::Result<()> {
        self.is_whole()?;
        let knobs = Knobs::of(&self.folder, "check", self.begin)?;
        let mut ledger = KnobLedger::begin()?;
        ledger.add(knobs.clone())?;
        let (knobs, _) = self.set.insert((knobs, ledger));
        let limit = match &mut self.how {
            // The whole system's limits would hold it in the middle of a step.
            How::Gate => NO_LIMIT.into(),
            How::Steps(limit) => {
                *limit = (self.begin + STEP).min(self.all);
                limit_of(*limit, self.all)
            }
        };
        knobs.set_speed(FREE)?;
        knobs.start(&limit)
    }

    /// How far it is, in sectors; nothing where md does not say at the moment.
    fn checked(&self) -> Option<u64> {
        parse(&told_by_kernel("/proc/mdstat").ok()?, &self.name)
    }

    /// Whether none of its members has anything to do.
    fn members_are_idle(&self) -> bool {
        let members = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = members.filter_map(|entry| Some(entry.file_name().to_str()?.strip_prefix("dev-")?.to_string()));
        names.into_iter().all(|name| {
            let inflight =
                told_by_kernel(Path::new("/sys/class/block").join(name).join("inflight")).unwrap_or_default();
            inflight.split_whitespace().all(|count| count == "0")
        })
    }

    /// What is done for good: what was asked for last may be under way.
    fn settled(&self) -> u64 {
        match self.how {
            How::Steps(limit) if self.done >= limit => self.done,
            _ => self.done.saturating_sub(WINDOW).max(self.begin),
        }
    }

    /// How much was counted before a place, where so much is counted now.
    fn counted_until(&mut self, settled: u64, wrong: u64) -> u64 {
        if self.counts.back() != Some(&(self.done, wrong)) {
            self.counts.push_back((self.done, wrong));
        }
        while self.counts.get(1).is_some_and(|(done, _)| *done <= settled) {
            self.counts.pop_front();
        }
        self.counts.front().filter(|(done, _)| *done <= settled).map_or(self.wrong, |(_, wrong)| *wrong)
    }

    /// It has ended by itself: at its end, or somebody has stopped it.
    fn ended(&mut self) -> io::Result<()> {
        // Having come to the end md forgets where it was told to begin, and the limit.
        let forgot = read(&self.folder, "sync_min")? == "0" && read(&self.folder, "sync_max")? == NO_LIMIT;
        let near = self.all - self.done.min(self.all) <= (self.all / 8).max(2 * STEP);
        if !forgot || !near {
            return Err(refused("somebody else has ended md's check"));
        }
        self.done = self.all;
        Ok(())
    }
}

impl Scrubber for Check {
    fn users(&self) -> io::Result<Vec<(WholeDisk, Box<dyn Monitor>)>> {
        let seen = |opened: Result<Box<dyn Monitor>, monitor::MonitorError>| opened.map_err(io::Error::other);
        let array = WholeDisk::with_numbers(self.device)?;
        let mut users = vec![(array.clone(), seen(monitor::of_users(&array))?)];
        let mut known = Vec::new();
        for entry in fs::read_dir(&self.folder)?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(member) = name.strip_prefix("dev-") else { continue };
            let device = Device::open(&Path::new("/dev").join(member.replace('!', "/"))).map_err(io::Error::other)?;
            // Of a whole disk there is no rest that others could use; nor is it known what lies beside a volume on other disks.
            if device.start == Bytes(0) || known.contains(&device.disk_numbers()) || !device.whole().has_requests() {
                continue;
            }
            known.push(device.disk_numbers());
            let within = device.start.0..device.start.0 + device.size.0;
            users.push((device.whole(), seen(monitor::of_users_beside(&device.whole(), within))?));
        }
        Ok(users)
    }

    fn open(&mut self) -> io::Result<()> {
        self.open = true;
        self.unchanged = 0;
        match (&self.set, self.how) {
            (None, _) => self.start(),
            (Some((knobs, _)), How::Gate) => knobs.set_speed(FREE),
            (Some(_), How::Steps(_)) => Ok(()),
        }
    }

    fn close(&mut self) -> io::Result<()> {
        self.open = false;
        self.unchanged = 0;
        match (&self.set, self.how) {
            (Some((knobs, _)), How::Gate) => knobs.set_speed(HELD),
            // A limit cannot be taken back.
            _ => Ok(()),
        }
    }

    fn look(&mut self) -> io::Result<Standing> {
        let mut standing = Standing { all: Bytes(self.all * SECTOR), wrong: self.wrong, ..Standing::default() };
        if self.set.is_none() {
            let wrong_in_done = self.wrong;
            return Ok(Standing { done: Bytes(self.begin * SECTOR), is_quiet: true, wrong_in_done, ..standing });
        }
        self.is_whole()?;
        let action = read(&self.folder, "sync_action")?;
        let counted = read(&self.folder, "mismatch_cnt")?.parse::<u64>().unwrap_or(0);
        standing.wrong = self.wrong.saturating_add(counted);
        match &*action {
            "idle" => {
                self.ended()?;
                return Ok(Standing { done: standing.all, is_quiet: true, is_over: true, ..standing });
            }
            "check" => {}
            other => return Err(refused(format!("md does something else now ({other})"))),
        }
        let checked = self.checked();
        self.unchanged = if checked.is_none_or(|checked| checked == self.done) { self.unchanged + 1 } else { 0 };
        self.done = checked.unwrap_or(self.done).max(self.done);
        if let How::Steps(limit) = &mut self.how
            && self.open
            && self.done >= *limit
            && *limit < self.all
        {
            *limit = (*limit + STEP).min(self.all);
            write(&self.folder, "sync_max", &limit_of(*limit, self.all))?;
        }
        let settled = self.settled();
        standing.done = Bytes(settled * SECTOR);
        standing.wrong_in_done = self.counted_until(settled, standing.wrong);
        standing.is_quiet = match self.how {
            How::Gate => self.unchanged >= UNCHANGED || self.members_are_idle(),
            How::Steps(limit) => self.done >= limit && limit < self.all,
        };
        Ok(standing)
    }

    fn stop(&mut self) -> io::Result<()> {
        let Some((knobs, mut ledger)) = self.set.take() else { return Ok(()) };
        knobs.put_back()?;
        ledger.take_back()
    }
}

impl Drop for Check {
    fn drop(&mut self) {
        // Whoever comes next tries again.
        let _ = self.stop();
    }
}

/// As md takes a limit: the last one need not be a multiple of the chunk.
fn limit_of(limit: u64, all: u64) -> String {
    if limit >= all { NO_LIMIT.into() } else { limit.to_string() }
}

/// How far the check of an array is, in sectors, by /proc/mdstat, which has it in KiB.
fn parse(mdstat: &str, name: &str) -> Option<u64> {
    let mut lines = mdstat.lines().skip_while(|line| line.split(' ').next() != Some(name)).skip(1);
    let line = lines.by_ref().take_while(|line| line.starts_with(' ')).find(|line| line.contains("check ="))?;
    let (_, behind) = line.split_once('(')?;
    behind.split('/').next()?.parse::<u64>().ok()?.checked_mul(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_a_check_is_stands_in_mdstat() {
        let mdstat = "Personalities : [raid1] [raid6]\n\
            md1 : active raid1 sdb2[1] sda2[0]\n      292945152 blocks super 1.2 [2/2] [UU]\n      \
            [==>..................]  check = 12.6% (37597184/292945152) finish=17.1min speed=244872K/sec\n      \
            bitmap: 0/3 pages [0KB], 65536KB chunk\n\n\
            md10 : active raid5 sdc[0] sdd[1]\n      100 blocks level 5\n      \tresync=DELAYED\n      check =  5.0% (5/100) x\n\nunused devices: <none>\n";
        assert_eq!(parse(mdstat, "md1"), Some(2 * 37_597_184));
        assert_eq!(parse(mdstat, "md10"), Some(10));
        assert_eq!([parse(mdstat, "md"), parse(mdstat, "md2"), parse("", "md1")], [None; 3]);
        assert_eq!([limit_of(8, 16), limit_of(16, 16)], ["8", "max"]);
    }
}
