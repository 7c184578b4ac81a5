//! What a device lies on as long as it is open, which may be changed under it: the kernel tells nobody.

use std::collections::BTreeMap;
use std::path::Path;

use super::Device;
use super::loops::{self, Backing};
use super::mapping::{self, Stretch};
use super::sysfs::Place;

/// Where each loop device and each volume that a device is read through lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ground {
    /// Nothing of what is no loop device.
    loops: BTreeMap<(u32, u32), Option<Backing>>,
    mapped: Vec<Stretch>,
}

impl Ground {
    /// Of now; nothing where that cannot be asked, as where no process can be made or the disk stands still.
    pub fn of(device: &Device) -> Option<Self> {
        let find = |number| Place::find(Path::new("/sys"), number).ok();
        let (mut loops, mut places) = (BTreeMap::new(), Vec::new());
        let (major, minor) = device.disk_numbers();
        let mut look = vec![rustix::fs::makedev(major, minor)];
        while let Some(number) = look.pop() {
            let Some(place) = find(number).filter(|place| !loops.contains_key(&place.disk_numbers())) else { continue };
            // One that does not answer is asked once: a scrub waits for it.
            let backing = loops::backing(&place.disk).ok()?;
            look.extend(place.slaves().into_iter().chain(backing.and_then(|backing| backing.device)));
            loops.insert(place.disk_numbers(), backing);
            places.push(place);
        }
        let find = |(major, minor)| find(rustix::fs::makedev(major, minor));
        Some(Self { loops, mapped: mapping::stretches(places.iter(), find, |_| true) })
    }

    /// Why what was read of the device since then may have been read from elsewhere, or from a cache.
    pub fn was_left(&self, device: &Device) -> Option<&'static str> {
        let now = Self::of(device)?;
        // What lies below one that is elsewhere is not looked at any more.
        let is_elsewhere = |(number, before): (&(u32, u32), &Option<Backing>)| {
            before.is_some() && now.loops.get(number).is_some_and(|now| now != before)
        };
        let is_moved = self.loops.iter().any(is_elsewhere)
            || mapping::is_moved(&now.mapped, &self.mapped, true)
            || device.lies_elsewhere();
        if is_moved {
            return Some("the volume was moved meanwhile, and its data lie elsewhere now");
        }
        let is_hidden = device.hidden_by_a_cache().is_some();
        is_hidden.then_some("a cache was put before it meanwhile, so that the disk below may not have been read")
    }
}
