//! Where on which device each part of a volume lies: what was read of it says nothing of another place that it was moved to.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::mapper::{self, Target};
use super::sysfs::Place;
use super::{Device, loops};

/// Kinds of targets whose data lie where the table says.
const KINDS: [&str; 3] = ["linear", "striped", "crypt"];
/// A volume of more stretches is known only by the disks below it.
const MOST: usize = 4096;

/// A stretch of a volume, or of one below it, that lies on one device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stretch {
    /// The volume's identity.
    pub volume: String,
    /// Which one of those over which it is striped.
    pub leg: u32,
    /// First sector of 512 bytes on the volume, and how many.
    pub sectors: (u64, u64),
    /// Identity of the device that it lies on, and whether another one may be called so when the machine is started again.
    pub on: (String, bool),
    /// Its first sector there.
    pub from: u64,
}

/// The stretches of those volumes that are wanted, in order; none where this process may not ask.
pub fn stretches<'a>(
    volumes: impl Iterator<Item = &'a Place>,
    find: impl Fn((u32, u32)) -> Option<Place>,
    wanted: impl Fn(&Place) -> bool,
) -> Vec<Stretch> {
    let mut all = Vec::new();
    let tables = volumes.map(|place| (place, mapper::table(place.disk_numbers()).unwrap_or_default()));
    let tables: Vec<_> = tables.collect();
    // While a volume has snapshots, its data lie on another volume, which is there only for that time.
    let origins: BTreeSet<_> = tables.iter().flat_map(|(_, table)| table.iter().filter_map(origin)).collect();
    let tables = tables.into_iter().filter(|(place, _)| !origins.contains(&place.disk_numbers()));
    for (place, table) in tables.filter(|(place, _)| wanted(place)) {
        for target in without_origin(table, |number| mapper::table(number).ok()) {
            all.extend(of_target(&place.identity(), &target, |number| {
                let below = find(number)?.which(None);
                Some((below.identity, below.for_now))
            }));
        }
    }
    all.sort();
    if all.len() > MOST { Vec::new() } else { all }
}

/// Kinds of targets that answer from a faster device what that has.
const CACHES: [&str; 2] = ["cache", "writecache"];

impl Device {
    /// Why it is not scrubbed, where it or what it lies on answers from a cache (dm-cache, dm-writecache, bcache, a loop device on another device
    /// that reads through the page cache): the disks below may not be read. Nothing is known where this process may not ask device-mapper.
    pub fn hidden_by_a_cache(&self) -> Option<String> {
        let find = |(major, minor)| Place::find(Path::new("/sys"), rustix::fs::makedev(major, minor)).ok();
        self.disks().into_iter().filter_map(find).find_map(|place| {
            let name = place.name();
            let hidden = format!(
                "{}: {name} answers from a cache what that has, so that what lies below is not read there",
                self.path.display()
            );
            let table = || mapper::table(place.disk_numbers()).unwrap_or_default();
            if name.starts_with("bcache") || table().iter().any(|target| CACHES.contains(&&*target.kind)) {
                return Some(format!("{hidden}: scrub those disks"));
            }
            let is_cached = loops::is_cached(&place.disk);
            is_cached.then(|| format!("{hidden}: scrub that, or `losetup --direct-io=on /dev/{name}`"))
        })
    }
}

/// Of the origin of snapshots, also while one is merged into it: the volume that has its data, each at the same place.
fn origin(target: &Target) -> Option<(u32, u32)> {
    let is_one = ["snapshot-origin", "snapshot-merge"].contains(&&*target.kind);
    target.words.split(' ').next().filter(|_| is_one).and_then(number)
}

/// The table of the volume that has the data of one with snapshots, or else its own.
fn without_origin(table: Vec<Target>, of: impl Fn((u32, u32)) -> Option<Vec<Target>>) -> Vec<Target> {
    table.first().and_then(origin).and_then(of).unwrap_or(table)
}

fn number(word: &str) -> Option<(u32, u32)> {
    let (major, minor) = word.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Each device with a place on it, in the words that a target was made with. Keys are among them, and are not kept.
fn of_target(volume: &str, target: &Target, on: impl Fn((u32, u32)) -> Option<(String, bool)>) -> Vec<Stretch> {
    if !KINDS.contains(&&*target.kind) {
        return Vec::new();
    }
    let words: Vec<_> = target.words.split(' ').collect();
    let legs = words.windows(2).filter_map(|pair| Some((on(number(pair[0])?)?, pair[1].parse().ok()?)));
    let stretch =
        |(leg, (on, from))| Stretch { volume: volume.into(), leg: leg as u32, sectors: target.sectors, on, from };
    legs.enumerate().map(stretch).collect()
}

/// Whether anything of a volume that lay somewhere `before` lies elsewhere `now`. What it has grown by was nowhere before.
pub fn is_moved(now: &[Stretch], before: &[Stretch], since_then: bool) -> bool {
    // Who asks now may not be allowed to.
    !now.is_empty() && before.iter().any(|then| !then.is_there(now, since_then))
}

impl Stretch {
    fn end(&self) -> u64 {
        self.sectors.0.saturating_add(self.sectors.1)
    }

    /// Whether all of it that the volume still has lies where it lay.
    fn is_there(&self, now: &[Self], since_then: bool) -> bool {
        let of_it = now.iter().filter(|one| (&one.volume, one.leg) == (&self.volume, self.leg));
        let mut parts = of_it.filter(|one| one.sectors.0 < self.end() && self.sectors.0 < one.end()).peekable();
        let is_same = |one: &Self| {
            let is_for_now = self.on.1 && !since_then;
            let place = |one: &Self| one.from.wrapping_sub(one.sectors.0);
            (is_for_now || one.on == self.on) && place(one) == place(self)
        };
        parts.peek().is_some() && parts.all(is_same)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(sectors: (u64, u64), kind: &str, words: &str) -> Target {
        Target { sectors, kind: kind.into(), words: words.into() }
    }

    fn on((major, minor): (u32, u32)) -> Option<(String, bool)> {
        (major == 8).then(|| (format!("wwn-{minor}"), minor > 9))
    }

    fn of(targets: &[Target]) -> Vec<Stretch> {
        targets.iter().flat_map(|target| of_target("LVM-a", target, on)).collect()
    }

    #[test]
    fn only_devices_and_places_are_kept() {
        let crypt = "aes-xts-plain64 0123abcd 0 8:3 32768 1 allow_discards";
        let found = of(&[target((0, 100), "crypt", crypt), target((100, 8), "striped", "2 128 8:1 16 8:2 32")]);
        let places: Vec<_> = found.iter().map(|one| (one.leg, one.sectors, &*one.on.0, one.from)).collect();
        assert_eq!(places, [(0, (0, 100), "wwn-3", 32768), (0, (100, 8), "wwn-1", 16), (1, (100, 8), "wwn-2", 32)]);
        assert!(!serde_json::to_string(&found).unwrap().contains("0123abcd"));
        assert_eq!(of(&[target((0, 100), "multipath", "0 0 1 1 service-time 0 1 2 8:1 1")]), []);
    }

    #[test]
    fn a_volume_with_snapshots_lies_where_it_lay() {
        let below = || vec![target((0, 100), "linear", "8:1 2048"), target((100, 50), "linear", "8:1 9000")];
        let with = vec![target((0, 150), "snapshot-origin", "253:7")];
        assert_eq!(origin(&with[0]), Some((253, 7)));
        assert_eq!(origin(&below()[0]), None);
        let seen = without_origin(with.clone(), |number| (number == (253, 7)).then(below));
        assert!(!is_moved(&of(&seen), &of(&below()), true) && !is_moved(&of(&below()), &of(&seen), true));
        assert_eq!(without_origin(below(), |_| unreachable!()), below());
        // Where it cannot be asked, nothing is told of it.
        assert_eq!(of(&without_origin(with, |_| None)), []);
    }

    #[test]
    fn what_lies_elsewhere_was_moved() {
        let before = of(&[target((0, 100), "linear", "8:1 2048"), target((100, 50), "linear", "8:1 9000")]);
        let moved = |targets: &[Target]| is_moved(&of(targets), &before, true);
        assert!(!is_moved(&before, &before, true) && !is_moved(&[], &before, true) && !is_moved(&before, &[], true));
        // On the same disk, to another disk, of which only a part, and what is not there any more.
        let second = || target((100, 50), "linear", "8:1 9000");
        assert!(moved(&[target((0, 100), "linear", "8:1 4096"), second()]));
        assert!(moved(&[target((0, 100), "linear", "8:2 2048"), second()]));
        assert!(moved(&[target((0, 60), "linear", "8:1 2048"), target((60, 40), "linear", "8:1 7000"), second()]));
        assert!(moved(&[target((0, 100), "linear", "8:1 2048")]));
        // It grew, or is told in other pieces.
        let rest = || target((60, 40), "linear", "8:1 2108");
        assert!(!moved(&[target((0, 60), "linear", "8:1 2048"), rest(), target((100, 90), "linear", "8:1 9000")]));
        // Striped over others, and on a disk whose name says nothing after a restart.
        let striped = |words: &str| of(&[target((0, 100), "striped", words)]);
        assert!(is_moved(&striped("2 128 8:1 16 8:2 48"), &striped("2 128 8:1 16 8:2 32"), true));
        let named = |words: &str| of(&[target((0, 100), "linear", words)]);
        let moved = |since_then| is_moved(&named("8:11 0"), &named("8:10 0"), since_then);
        assert_eq!([moved(true), moved(false)], [true, false]);
        assert!(is_moved(&named("8:11 8"), &named("8:10 0"), false));
    }
}
