//! What of an array nothing needs, by what lies on it. There the copies of a mirror may differ without harm: nobody has written there since it
//! was made, or told its disks to forget it; and of swap space the kernel may change a page while it is being written (the kernel's
//! Documentation/admin-guide/md.rst). With parity it is not harmless: md goes on from a parity that does not fit when it is written next.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use idlewise::Bytes;
use idlewise::order::Extent;

use crate::content::{Content, Gate, Part, allocation, btrfs, mounts};
use crate::device::{Device, mapper, numbers};
use crate::files;

const SECTOR: u64 = 512;
/// What is mounted, and which volumes there are, is looked up again after this time.
const AGAIN: Duration = Duration::from_secs(5);
/// Where the kernel lists swap space (proc_swaps(5)).
const SWAPS: &str = "/proc/swaps";

/// The users of an array.
pub struct Users {
    /// What the kernel calls the array.
    name: String,
    /// When what they have to look up may be read.
    gate: Gate,
    found: Vec<User>,
    looked: Option<Instant>,
}

/// A user of a part of an array.
struct User {
    pieces: Vec<Piece>,
    kind: Kind,
}

enum Kind {
    FileSystem(Box<dyn Content>),
    Swap,
}

/// Where a range of an array lies on a device that its users use.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    of_array: Range<u64>,
    at: u64,
}

impl Piece {
    /// The part of it that lies in a range of the device.
    fn within(&self, range: &Range<u64>) -> Option<Self> {
        let begin = self.at.max(range.start);
        let end = (self.at + (self.of_array.end - self.of_array.start)).min(range.end);
        let of_array = |at: u64| self.of_array.start + (at - self.at);
        (begin < end).then(|| Self { of_array: of_array(begin)..of_array(end), at: begin })
    }
}

impl Users {
    /// Of the array with this name. Nothing is asked yet.
    pub fn of(name: &str, gate: Gate) -> Self {
        Self { name: name.into(), gate, found: Vec::new(), looked: None }
    }

    /// What of a range of the array nothing needs. Of what cannot be asked all may be needed.
    pub fn unused(&mut self, range: &Range<u64>) -> Vec<Range<u64>> {
        let mut unused = Vec::new();
        self.each(range, |kind, part, extent| match kind {
            Kind::Swap => unused.push(part),
            Kind::FileSystem(content) => {
                let of_array = |at: Bytes| part.start + (at.0 - extent.offset.0);
                let free = content.free(extent).unwrap_or_default();
                unused.extend(free.into_iter().map(|one| of_array(one.offset)..of_array(one.end())));
            }
        });
        unused
    }

    /// What lies in a range of the array, as far as it is told.
    pub fn names(&mut self, range: &Range<u64>) -> Vec<String> {
        let mut names = Vec::new();
        self.each(range, |kind, _, extent| match kind {
            Kind::Swap => names.push("swap space".into()),
            Kind::FileSystem(content) => names.extend(content.owners(extent).unwrap_or_default()),
        });
        names
    }

    /// Asks each user of a part of a range: with that part, and where it lies for that user.
    fn each(&mut self, range: &Range<u64>, mut ask: impl FnMut(&mut Kind, Range<u64>, Extent)) {
        if self.looked.is_none_or(|looked| looked.elapsed() > AGAIN) {
            self.found = self.look();
            self.looked = Some(Instant::now());
        }
        for User { pieces, kind } in &mut self.found {
            for piece in pieces {
                let (begin, end) = (piece.of_array.start.max(range.start), piece.of_array.end.min(range.end));
                if begin < end {
                    let at = piece.at + (begin - piece.of_array.start);
                    ask(kind, begin..end, Extent { offset: Bytes(at), length: Bytes(end - begin) });
                }
            }
        }
    }

    fn look(&self) -> Vec<User> {
        let mut all = Vec::new();
        let Some(array) = device(&self.name) else { return all };
        let swaps = swaps();
        self.add(&mut all, &array, &[Piece { of_array: 0..array.size.0, at: 0 }], &swaps);
        for (range, name) in array.parts() {
            for volume in volumes(&name) {
                let Some((volume, targets)) = device(&volume).zip(targets(&volume)) else { continue };
                let Some(below) = numbers(&class(&name)) else { continue };
                let pieces = targets.iter().filter_map(|target| linear(target, below));
                let pieces = pieces.map(|piece| {
                    let of_array = piece.of_array;
                    Piece { of_array: range.start + of_array.start..range.start + of_array.end, at: piece.at }
                });
                self.add(&mut all, &volume, &pieces.collect::<Vec<_>>(), &swaps);
            }
        }
        all
    }

    /// Who uses a device or its partitions. The array is read only where a btrfs is mounted: as it is read, md rewrites what a member cannot read.
    fn add(&self, all: &mut Vec<User>, device: &Device, pieces: &[Piece], swaps: &BTreeSet<(u32, u32)>) {
        for (range, name) in device.parts() {
            let pieces = pieces.iter().filter_map(|piece| piece.within(&range)).collect();
            let Ok(part) = Part::of(device, range, name, &self.gate) else { continue };
            if part.number.is_some_and(|number| swaps.contains(&number)) {
                all.push(User { pieces, kind: Kind::Swap });
            } else {
                let found = if btrfs::is_mounted(&part.name) { btrfs::open(&part) } else { allocation::open(&part) };
                all.extend(found.ok().flatten().map(|content| User { pieces, kind: Kind::FileSystem(content) }));
            }
        }
    }
}

fn class(name: &str) -> PathBuf {
    Path::new("/sys/class/block").join(name)
}

/// The device that the kernel calls so.
fn device(name: &str) -> Option<Device> {
    Device::with_numbers(numbers(&class(name))?).ok()
}

/// The names of device-mapper's devices that lie on a device.
fn volumes(name: &str) -> Vec<String> {
    let holders = fs::read_dir(class(name).join("holders")).into_iter().flatten().flatten();
    holders.filter_map(|holder| holder.file_name().into_string().ok()).filter(|name| name.starts_with("dm-")).collect()
}

/// What a volume is made of. Of an encrypted one it would be told with its key, and is not asked for.
fn targets(volume: &str) -> Option<Vec<mapper::Target>> {
    let is_encrypted = fs::read_to_string(class(volume).join("dm/uuid")).ok()?.starts_with("CRYPT-");
    if is_encrypted { None } else { mapper::table(numbers(&class(volume))?).ok() }
}

/// Where a target lies on the device with these numbers; nothing of one that lies elsewhere, or not in one piece (the kernel's
/// Documentation/admin-guide/device-mapper/linear.rst).
fn linear(target: &mapper::Target, below: (u32, u32)) -> Option<Piece> {
    let (device, first) = target.words.split_once(' ').filter(|_| target.kind == "linear")?;
    let (major, minor) = device.split_once(':')?;
    let is_below = (major.parse().ok()?, minor.parse().ok()?) == below;
    let bytes = |sectors: u64| sectors.checked_mul(SECTOR);
    let (begin, at) = (bytes(first.trim().parse().ok()?)?, bytes(target.sectors.0)?);
    let end = begin.checked_add(bytes(target.sectors.1)?)?;
    is_below.then_some(Piece { of_array: begin..end, at })
}

/// The numbers of the devices that are swap space.
fn swaps() -> BTreeSet<(u32, u32)> {
    let table = files::told_by_kernel(SWAPS).unwrap_or_default();
    let number = |path: PathBuf| {
        let number = files::stat_at(&path).ok()?.st_rdev;
        Some((rustix::fs::major(number), rustix::fs::minor(number)))
    };
    table.lines().filter_map(swap_on).filter_map(number).collect()
}

/// The device of a line of the table; nothing of a file.
fn swap_on(line: &str) -> Option<PathBuf> {
    let (path, rest) = line.split_once([' ', '\t'])?;
    rest.trim_start().starts_with("partition").then(|| mounts::path(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_lies_where_its_table_says() {
        let target =
            |kind: &str, words: &str| mapper::Target { sectors: (8, 16), kind: kind.into(), words: words.into() };
        let at = linear(&target("linear", "9:127 2048"), (9, 127)).unwrap();
        assert_eq!(at, Piece { of_array: 2048 * 512..2064 * 512, at: 8 * 512 });
        for (kind, words) in
            [("linear", "9:1 2048"), ("striped", "9:127 2048"), ("linear", "9:127"), ("linear", "9:127 x")]
        {
            assert_eq!(linear(&target(kind, words), (9, 127)), None, "{kind} {words}");
        }
        assert_eq!(linear(&target("linear", &format!("9:127 {}", u64::MAX)), (9, 127)), None);
        assert_eq!(at.within(&(0..5000)), Some(Piece { of_array: 2048 * 512..2048 * 512 + 904, at: 4096 }));
        assert_eq!(at.within(&(5000..6000)), Some(Piece { of_array: 2048 * 512 + 904..2048 * 512 + 1904, at: 5000 }));
        assert_eq!([at.within(&(0..4096)), at.within(&(12_288..20_000))], [None, None]);
    }

    #[test]
    fn swap_space_is_what_the_kernel_lists_as_a_device() {
        let line = "/dev/md1                                partition\t976\t\t0\t\t-2";
        assert_eq!(swap_on(line), Some("/dev/md1".into()));
        assert_eq!(swap_on(r"/dev/mapper/a\040b partition	976	0	-2"), Some("/dev/mapper/a b".into()));
        for line in ["Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority", "/swap file 976 0 -2", ""] {
            assert_eq!(swap_on(line), None, "{line}");
        }
    }
}
