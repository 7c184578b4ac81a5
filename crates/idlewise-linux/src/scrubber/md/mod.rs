//! md's own check of an array (Documentation/admin-guide/md.rst): let go and held by its speed limit, which costs no write, or by a limit that
//! is moved on in steps. Ended by `idle`, it would forget up to a sixteenth of the array; so its place is kept here.

mod again;
mod counted;
mod failed;
mod limits;
mod others;

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use idlewise::Bytes;

use again::Again;
use counted::Counted;
use failed::Failed;
use limits::{How, SECTOR, limit_of, next_limit};
use others::members;

use super::{Place, Scrubber, Standing, Unread, refused};
use crate::device::{Device, WholeDisk};
use crate::files::told_by_kernel;
use crate::knobs::{FREE, HELD, KnobLedger, Knobs, NO_LIMIT, read, write};
use crate::monitor::{self, Monitor};

/// What may be under way at once, in sectors, and of arrays with parity twice their cache of stripes: of what was asked for last, so much may be
/// missing before what has come.
const WINDOW: u64 = (4 << 20) / SECTOR;
/// It is quiet when its members have had nothing to do for so long; while others use them, when nothing of it has come for longer than a request
/// of a hard disk takes.
const IDLE: Duration = Duration::from_millis(2);
const UNCHANGED: Duration = Duration::from_millis(20);
/// It is at rest, so that its count is sure, when its members have had nothing to do for so long.
const AT_REST: Duration = Duration::from_millis(100);
/// How often it is looked whether md wants to work on another array of the same disks.
const OTHERS: Duration = Duration::from_secs(1);

/// A check. Places are in sectors.
struct Check {
    device: (u32, u32),
    name: String,
    folder: PathBuf,
    how: How,
    /// Where it begins, how much there is, and what a limit has to be a multiple of.
    begin: u64,
    all: u64,
    unit: u64,
    /// It goes no further.
    limit: u64,
    /// How much of it was seen to be done, since when, and since when its members have nothing to do.
    done: u64,
    since: Instant,
    idle_since: Instant,
    counted: Counted,
    /// What was counted before it began.
    before: u64,
    open: bool,
    /// md has said how far it is.
    has_begun: bool,
    others: Instant,
    /// Reads of its members that fail; what could not be read before it began; and how much of what has no place here.
    failed: Option<Failed>,
    unread: Vec<Unread>,
    /// md has come to the end: what could not be read is looked at again.
    again: Option<Again>,
    skipped: u64,
    /// What was set, once it has begun.
    set: Option<(Knobs, KnobLedger)>,
}

/// By its speed.
pub fn gate(device: &Device, place: Place) -> io::Result<Box<dyn Scrubber>> {
    Check::of(device, place, How::Gate)
}

/// In steps.
pub fn steps(device: &Device, place: Place) -> io::Result<Box<dyn Scrubber>> {
    Check::of(device, place, How::Steps)
}

/// How it is made, and of what.
pub fn name(device: &Device) -> io::Result<String> {
    let folder = Path::new("/sys/block").join(device.name()).join("md");
    let mut parts = Vec::new();
    for file in ["level", "raid_disks", "layout", "chunk_size", "component_size"] {
        parts.push(read(&folder, file).unwrap_or_default());
    }
    // Newer kernels tell its unique name.
    parts.push(read(&folder, "uuid").unwrap_or_default());
    for place in 0.. {
        let Ok(link) = std::fs::read_link(folder.join(format!("rd{place}"))) else { break };
        let member = link.file_name().and_then(|name| name.to_str()?.strip_prefix("dev-").map(str::to_string));
        let path = Path::new("/dev").join(member.unwrap_or_default().replace('!', "/"));
        parts.push(Device::identity_at(&path).unwrap_or_default());
    }
    Ok(parts.join(" "))
}

impl Check {
    fn of(device: &Device, place: Place, how: How) -> io::Result<Box<dyn Scrubber>> {
        let name = device.name();
        let folder = Path::new("/sys/block").join(&name).join("md");
        let level = read(&folder, "level")
            .map_err(|_| refused("it is no md array; name one such as /dev/md0, or leave out --by"))?;
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
        // An earlier run came to the end, but not with its second look.
        let is_at_end = place.done / SECTOR >= all && !place.unread.is_empty();
        let begin = match begin < all {
            _ if is_at_end => all,
            true => begin,
            false => 0,
        };
        let wrong = if begin > 0 { place.wrong } else { 0 };
        let stripes =
            number("stripe_cache_size").unwrap_or(0).saturating_mul(2 * rustix::param::page_size() as u64 / SECTOR);
        let at = Instant::now();
        let mut check = Self {
            device: device.disk_numbers(),
            name,
            folder,
            how,
            begin,
            all,
            unit,
            limit: begin,
            done: begin,
            since: at,
            idle_since: at,
            counted: Counted::from(begin, wrong, WINDOW.max(stripes)),
            before: wrong,
            open: false,
            has_begun: false,
            others: at,
            failed: None,
            unread: if begin > 0 { place.unread } else { Vec::new() },
            again: None,
            skipped: if begin > 0 { place.skipped } else { 0 },
            set: None,
        };
        check.is_whole()?;
        let action = read(&check.folder, "sync_action")?;
        if action != "idle" {
            return Err(refused(format!("md is at work on it ({action})")));
        }
        check.is_alone()?;
        if is_at_end {
            check.again = Some(failed::again(&check.folder, &check.unread)?);
        }
        Ok(Box::new(check))
    }

    /// md has a rebuild wait for a check of another array on the same disks, however slow that is.
    fn is_alone(&self) -> io::Result<()> {
        match others::at_work(&self.name) {
            None => Ok(()),
            Some(other) => {
                Err(refused(format!("md wants to work on {other}, which is on the same disks and would have to wait")))
            }
        }
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
        let seen = Failed::listen(&self.folder, &self.unread);
        self.failed = Some(seen.map_err(|error| {
            refused(format!("{error}: reads that fail would not be seen, and md counts none of them"))
        })?);
        let knobs = Knobs::of(&self.folder, "check", self.begin)?;
        let mut ledger = KnobLedger::begin()?;
        ledger.add(knobs.clone())?;
        let (knobs, _) = self.set.insert((knobs, ledger));
        knobs.set_speed(FREE)?;
        self.limit = next_limit(self.how, self.begin, self.unit, self.all);
        knobs.start(&limit_of(self.limit, self.all))
    }

    /// How far it is, in sectors; nothing where md does not say at the moment.
    fn checked(&self) -> Option<u64> {
        parse(&told_by_kernel("/proc/mdstat").ok()?, &self.name)
    }

    /// Whether none of its members has anything to do.
    fn members_are_idle(&self) -> bool {
        members(&self.folder).all(|name| {
            let inflight =
                told_by_kernel(Path::new("/sys/class/block").join(name).join("inflight")).unwrap_or_default();
            inflight.split_whitespace().all(|count| count == "0")
        })
    }

    /// It stands at its limit: nothing of it is under way.
    fn is_at_limit(&self) -> bool {
        self.done >= self.limit && self.limit < self.all
    }

    /// Nothing of it seems to be under way.
    fn is_quiet(&self) -> bool {
        let seems = self.since.elapsed() >= UNCHANGED || self.idle_since.elapsed() >= IDLE;
        self.is_at_limit() || self.how == How::Gate && !self.open && seems
    }

    /// Nothing of it has been under way for so long that it is sure.
    fn is_at_rest(&self) -> bool {
        self.how == How::Gate && !self.open && self.idle_since.elapsed() >= AT_REST
    }

    /// How far it is.
    fn standing(&self, wrong: u64) -> Standing {
        let Counted { place, wrong: wrong_in_place, .. } = self.counted;
        let bytes = |sectors: u64| Bytes(sectors * SECTOR);
        let (place, done, all) = (bytes(place), bytes(self.done), bytes(self.all));
        let unread = Unread::bytes(&self.unread()).saturating_add(self.failed.as_ref().map_or(0, Failed::more));
        let skipped = Bytes(self.skipped.saturating_add(unread));
        Standing { place, done, all, wrong, wrong_in_place, skipped, ..Standing::default() }
    }

    /// Takes note of reads of its members that have failed.
    fn look_for_failed(&mut self) -> io::Result<()> {
        self.failed.as_mut().map_or(Ok(()), Failed::look)
    }

    /// It has ended by itself: at its end, or somebody has stopped it. So much was counted.
    fn ended(&mut self, wrong: u64) -> io::Result<()> {
        self.look_for_failed()?;
        // Having come to the end md forgets where it was told to begin, and the limit, which was the last thing to be taken away.
        let forgot = read(&self.folder, "sync_min")? == "0" && read(&self.folder, "sync_max")? == NO_LIMIT;
        if !forgot || self.limit < self.all {
            return Err(match self.failed.as_ref().and_then(Failed::any) {
                Some(place) => refused(format!(
                    "md has ended its check where no member can be read: {place}; `idlewise scrub` goes on behind such places"
                )),
                None => refused("somebody else has ended md's check"),
            });
        }
        self.put_back()?;
        (self.done, self.before) = (self.all, wrong);
        if let Some(failed) = self.failed.take() {
            self.skipped = self.skipped.saturating_add(failed.more());
            self.again = Some(failed.again()?);
        }
        Ok(())
    }

    /// The second look, for which md does nothing.
    fn look_again(&mut self) -> Standing {
        let wrong = self.before;
        let (is_quiet, is_over) = self.again.as_mut().map_or((true, true), |again| {
            again.look(self.open);
            (again.is_quiet(), again.is_over())
        });
        let place = Bytes(self.all * SECTOR);
        Standing { place, wrong_in_place: wrong, is_quiet, is_over, ..self.standing(wrong) }
    }

    /// What was set.
    fn put_back(&mut self) -> io::Result<()> {
        let Some((knobs, mut ledger)) = self.set.take() else { return Ok(()) };
        knobs.put_back()?;
        ledger.take_back()
    }
}

impl Scrubber for Check {
    fn users(&self) -> io::Result<Vec<(WholeDisk, Box<dyn Monitor>)>> {
        let seen = |opened: Result<Box<dyn Monitor>, monitor::MonitorError>| opened.map_err(io::Error::other);
        let array = WholeDisk::with_numbers(self.device)?;
        let mut users = vec![(array.clone(), seen(monitor::of_users(&array))?)];
        let mut known = Vec::new();
        for member in members(&self.folder) {
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
        if self.again.is_some() {
            return Ok(());
        }
        match (&self.set, self.how) {
            (None, _) => self.start(),
            (Some((knobs, _)), How::Gate) => knobs.set_speed(FREE),
            (Some(_), How::Steps) => Ok(()),
        }
    }

    fn close(&mut self) -> io::Result<()> {
        self.open = false;
        (self.since, self.idle_since) = (Instant::now(), Instant::now());
        match (&self.set, self.how) {
            (Some((knobs, _)), How::Gate) => knobs.set_speed(HELD),
            // A limit cannot be taken back.
            _ => Ok(()),
        }
    }

    fn look(&mut self) -> io::Result<Standing> {
        if self.again.is_some() {
            return Ok(self.look_again());
        }
        if self.set.is_none() {
            return Ok(Standing { is_quiet: true, ..self.standing(self.counted.wrong) });
        }
        self.is_whole()?;
        if self.others.elapsed() >= OTHERS {
            self.others = Instant::now();
            self.is_alone()?;
            self.look_for_failed()?;
        }
        let action = read(&self.folder, "sync_action")?;
        let counted = read(&self.folder, "mismatch_cnt")?.parse::<u64>().unwrap_or(0);
        match &*action {
            "idle" => {
                self.ended(self.before.saturating_add(counted))?;
                return Ok(self.look_again());
            }
            "check" => {}
            other => return Err(refused(format!("md does something else now ({other})"))),
        }
        // Until md says how far it is, the count is that of an earlier check.
        let wrong = self.before.saturating_add(if self.has_begun { counted } else { 0 });
        let was_at_limit = self.is_at_limit();
        // One that somebody has ended is said to be all done until md has cleaned up behind it; but none goes beyond its limit.
        let checked = self.checked().filter(|done| *done <= self.limit);
        if let Some(done) = checked.filter(|done| *done > self.done) {
            (self.done, self.since, self.idle_since) = (done, Instant::now(), Instant::now());
        }
        if !self.members_are_idle() {
            self.idle_since = Instant::now();
        }
        if self.has_begun {
            self.counted.look(wrong, self.done, was_at_limit || self.is_at_rest());
        }
        self.has_begun |= checked.is_some();
        if self.open && self.is_at_limit() {
            self.limit = next_limit(self.how, self.limit, self.unit, self.all);
            write(&self.folder, "sync_max", &limit_of(self.limit, self.all))?;
        }
        Ok(Standing { is_quiet: self.is_quiet(), ..self.standing(wrong) })
    }

    fn unread(&self) -> Vec<Unread> {
        match (&self.again, &self.failed) {
            (Some(again), _) => again.places(),
            (None, Some(failed)) => failed.places(),
            (None, None) => self.unread.clone(),
        }
    }

    fn stop(&mut self) -> io::Result<()> {
        // What could not be read is looked at again when the check has come to its end, perhaps by a later run.
        let _ = self.look_for_failed();
        self.put_back()
    }
}

impl Drop for Check {
    fn drop(&mut self) {
        // Whoever comes next tries again.
        let _ = self.stop();
    }
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
    }
}
