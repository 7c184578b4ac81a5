//! An array as the kernel tells of it, md (Documentation/admin-guide/md.rst) or device-mapper, and whether its members can be compared.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use idlewise::Bytes;

use super::layout::{Layout, Level};
use super::mapped::Mapped;
use crate::device::Device;

const SECTOR: u64 = 512;

/// What decides where data lie, which a reshape changes.
const GEOMETRY: [&str; 5] = ["level", "raid_disks", "layout", "chunk_size", "component_size"];

/// How a device lays out its data on members, in words that are others after a reshape; nothing of what is no array.
pub fn geometry(device: &Device) -> Option<String> {
    let name = device.name();
    let folder = Folder(Path::new("/sys/block").join(&name).join("md"));
    if name.starts_with("dm-") {
        return Some(format!("{:?}", Mapped::of(device.disk_numbers())?.table().ok()?));
    }
    folder.0.exists().then(|| folder.geometry())
}

/// An array whose members hold its data more than once, or with parity.
#[derive(Debug)]
pub struct Array {
    kept_by: KeptBy,
    /// What the kernel calls it.
    name: String,
    /// How it was laid out when it was first looked at.
    geometry: String,
    /// How the data lie on the members.
    pub layout: Layout,
    /// How much of each member it uses.
    pub size: Bytes,
    /// The members, in the order of their places in the array.
    pub members: Vec<Member>,
}

/// A member.
#[derive(Debug)]
pub struct Member {
    /// The device.
    pub device: Device,
    /// Where on it the data begin.
    pub begin: u64,
}

/// Who keeps it.
#[derive(Debug)]
enum KeptBy {
    Md(Folder),
    Mapper(Mapped),
}

impl Array {
    /// The array that a device is; nothing where it is none with redundancy.
    ///
    /// # Errors
    /// Why its members cannot be compared.
    pub fn of(device: &Device) -> Result<Option<Self>, String> {
        let name = device.name();
        let folder = Folder(Path::new("/sys/block").join(&name).join("md"));
        if let Some(level) = folder.read("level").ok().and_then(|level| Level::of(&level)) {
            return Self::of_md(&name, folder, level).map(Some);
        }
        match Mapped::of(device.disk_numbers()).filter(|_| name.starts_with("dm-")) {
            Some(mapped) => Self::of_mapper(&name, mapped).map(Some),
            None => Ok(None),
        }
    }

    fn of_md(name: &str, folder: Folder, level: Level) -> Result<Self, String> {
        folder.is_usual()?;
        let disks = usize::try_from(folder.number("raid_disks")?).unwrap_or(usize::MAX);
        let number = folder.number("layout").unwrap_or(0);
        let chunk = folder.number("chunk_size").unwrap_or(0);
        // In KiB; of RAID 10 it is what is used of each member as well.
        let size = folder.number("component_size")?.checked_mul(1024).ok_or("its size is no number")?;
        let layout = Layout::new(level, number, disks, chunk, size)?;
        let members = (0..disks).map(|place| folder.member(place)).collect::<Result<_, _>>()?;
        let geometry = folder.geometry();
        Ok(Self::new(name, layout, size, members, (KeptBy::Md(folder), geometry)))
    }

    fn of_mapper(name: &str, mapped: Mapped) -> Result<Self, String> {
        mapped.is_usual()?;
        let table = mapped.table()?;
        let layout = Layout::new(table.level, table.layout, table.members.len(), table.chunk, table.size)?;
        let member = |numbers: &(u32, u32)| {
            let device = Device::with_numbers(*numbers).map_err(|error| error.to_string())?;
            Ok(Member { device, begin: 0 })
        };
        let members = table.members.iter().map(member).collect::<Result<_, String>>()?;
        let geometry = format!("{table:?}");
        Ok(Self::new(name, layout, table.size, members, (KeptBy::Mapper(mapped), geometry)))
    }

    /// Of whole blocks: what is left behind the last one cannot be read directly.
    fn new(name: &str, layout: Layout, size: u64, members: Vec<Member>, (kept_by, geometry): (KeptBy, String)) -> Self {
        let block = members.iter().map(|member| u64::from(member.device.block)).max().unwrap_or(SECTOR);
        Self {
            layout,
            size: Bytes(layout.surface(size) / block * block),
            members,
            kept_by,
            name: name.into(),
            geometry,
        }
    }

    /// What the kernel calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits until no write to it is under way, which may have reached some members only; but not for ever, where there always is one.
    pub fn wait_for_writes(&self) {
        const MOST: Duration = Duration::from_secs(2);
        const LOOK: Duration = Duration::from_micros(200);
        let began = Instant::now();
        let file = Path::new("/sys/block").join(&self.name).join("inflight");
        let writes = || fs::read_to_string(&file).ok()?.split_whitespace().nth(1)?.parse::<u64>().ok();
        while writes().is_some_and(|count| count > 0) && began.elapsed() < MOST {
            thread::sleep(LOOK);
        }
    }

    /// Where a member is known not to be readable, so that who keeps the array reads another there; as far as that is told. Members by their
    /// numbers, and places of their data.
    ///
    /// # Errors
    /// If it cannot be asked, or there are more than it tells.
    pub fn passed_over(&self) -> Result<Vec<(u64, Range<u64>)>, String> {
        let KeptBy::Md(folder) = &self.kept_by else { return Ok(Vec::new()) };
        let of = |place: usize| {
            let parts = folder.bad_blocks(place, self.members[place].begin)?;
            Ok(parts.into_iter().map(move |part| (place as u64, part)))
        };
        let all = (0..self.members.len()).map(of).collect::<Result<Vec<_>, String>>()?;
        Ok(all.into_iter().flatten().collect())
    }

    /// Whether md keeps it, and not device-mapper.
    pub fn is_of_md(&self) -> bool {
        matches!(self.kept_by, KeptBy::Md(_))
    }

    /// Whether its members are those that they were, all there, and its data lie on them as they did.
    ///
    /// # Errors
    /// What has changed.
    pub fn is_the_same(&self) -> Result<(), String> {
        let same = match &self.kept_by {
            KeptBy::Md(folder) => {
                folder.is_usual()?;
                let same = |(place, member): (usize, &Member)| {
                    let begin = folder.number(&format!("rd{place}/offset")).ok().and_then(|at| at.checked_mul(SECTOR));
                    begin == Some(member.begin) && folder.name_of(place).is_ok_and(|name| name == member.device.name())
                };
                folder.geometry() == self.geometry && self.members.iter().enumerate().all(same)
            }
            KeptBy::Mapper(mapped) => {
                mapped.is_usual()?;
                let (table, numbers) = (mapped.table()?, self.members.iter().map(|member| member.device.numbers()));
                format!("{table:?}") == self.geometry && Some(table.members) == numbers.collect()
            }
        };
        if same { Ok(()) } else { Err("its members have changed".into()) }
    }
}

/// `md` of an array in sysfs.
#[derive(Debug)]
struct Folder(PathBuf);

impl Folder {
    /// Nothing is missing, moved, or written to one member later than to the others.
    fn is_usual(&self) -> Result<(), String> {
        if self.number("degraded")? > 0 {
            return Err("it lacks members, so that there is nothing to compare".into());
        }
        if self.read("resync_start").is_ok_and(|start| start != "none") {
            return Err("its members have not been made the same yet (a resync is due or under way)".into());
        }
        if self.read("bitmap_type").is_ok_and(|kind| kind.contains("[llbitmap]")) {
            return Err("of its kind of bitmap, what was never written need not fit".into());
        }
        if self.read("reshape_position").is_ok_and(|position| position != "none") {
            return Err("it is being reshaped".into());
        }
        if self.read("consistency_policy").is_ok_and(|policy| policy == "journal") {
            return Err("it has a journal, so that its members may lag behind".into());
        }
        if self.read("bitmap/backlog").is_ok_and(|backlog| backlog != "0") {
            return Err("it has a member that is written behind the others".into());
        }
        Ok(())
    }

    fn geometry(&self) -> String {
        GEOMETRY.map(|file| self.read(file).unwrap_or_default()).join(" ")
    }

    fn name_of(&self, place: usize) -> Result<String, String> {
        let link = fs::read_link(self.0.join(format!("rd{place}"))).map_err(|_| format!("it has no member {place}"))?;
        let name = link.file_name().and_then(|name| name.to_str()?.strip_prefix("dev-").map(String::from));
        name.ok_or_else(|| format!("its member {place} has no name"))
    }

    fn member(&self, place: usize) -> Result<Member, String> {
        let name = self.name_of(place)?;
        let state = self.read(&format!("rd{place}/state"))?;
        if !state.split(',').any(|word| word == "in_sync") {
            return Err(format!("its member {name} is not in use ({state})"));
        }
        let begin = self.number(&format!("rd{place}/offset"))? * SECTOR;
        // A slash in a name is an exclamation mark in sysfs.
        let device =
            Device::open(&Path::new("/dev").join(name.replace('!', "/"))).map_err(|error| error.to_string())?;
        if device.name() != name {
            return Err(format!("{} is not its member {name}", device.path.display()));
        }
        Ok(Member { device, begin })
    }

    /// What md will not read of a member whose data begin there.
    fn bad_blocks(&self, place: usize, begin: u64) -> Result<Vec<Range<u64>>, String> {
        let mut all = Vec::new();
        for name in ["bad_blocks", "unacknowledged_bad_blocks"] {
            let name = format!("rd{place}/{name}");
            // Kernels and kinds of metadata without them have no such file.
            let text = self.read(&name).unwrap_or_default();
            all.extend(ranges(&text, begin).ok_or_else(|| format!("md/{name} tells of too many"))?);
        }
        Ok(all)
    }

    fn read(&self, file: &str) -> Result<String, String> {
        let text = fs::read_to_string(self.0.join(file)).map_err(|error| format!("md/{file}: {error}"))?;
        Ok(text.trim().to_string())
    }

    fn number(&self, file: &str) -> Result<u64, String> {
        let text = self.read(file)?;
        // A reshape that is under way shows the number before in brackets.
        let first = text.split_whitespace().next().unwrap_or_default();
        first.parse().map_err(|_| format!("md/{file} is '{text}'"))
    }
}

/// Lines of a first sector and how many, on a member whose data begin there. `None` of a list that the kernel may have cut.
fn ranges(text: &str, begin: u64) -> Option<Vec<Range<u64>>> {
    /// It tells at most a page of memory of them, whole lines.
    const CUT: usize = 4096 - 64;
    let range = |line: &str| {
        let (first, count) = line.trim().split_once(' ')?;
        let first = first.parse::<u64>().ok()?.checked_mul(SECTOR)?;
        let end = first.checked_add(count.parse::<u64>().ok()?.checked_mul(SECTOR)?)?;
        Some(first.saturating_sub(begin)..end.saturating_sub(begin))
    };
    if text.len() > CUT { None } else { text.lines().map(range).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_blocks_are_places_of_the_data() {
        assert_eq!(ranges("", 0), Some(vec![]));
        assert_eq!(ranges("2050 3\n2000 8\n", 2048 * 512), Some(vec![1024..2560, 0..0]));
        assert_eq!([ranges("x", 0), ranges("1", 0), ranges(&"1 1\n".repeat(2000), 0)], [None, None, None]);
    }
}
