//! How a device is read, judged and watched: as one disk, or by the members of the array that it is.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use idlewise_linux::content::{Array, Found, Md};
use idlewise_linux::device::Device;
use idlewise_linux::device::verify::{Members, Verifier};
use idlewise_linux::monitor::{Joined, Monitor};
use idlewise_linux::scrub::{Claim, StateFolder};

use super::content;
use super::job::Job;
use crate::exit::UsageError;
use crate::live::{MonitorName, choose_verifier, open_monitor};

/// How a device is read.
pub struct Way {
    pub verifier: Box<dyn Verifier>,
    pub found: Found,
    /// Open for as long as the verifier reads its members.
    pub array: Option<Arc<Array>>,
}

impl Way {
    /// Watches all disks that are read.
    pub fn monitor(&self, device: &Device, name: MonitorName) -> anyhow::Result<Box<dyn Monitor>> {
        let Some(array) = &self.array else { return open_monitor(device, name) };
        let mut disks = BTreeMap::<_, (Box<dyn Monitor>, Vec<u64>)>::new();
        for place in array.places() {
            let begin = place.device.start.0 + place.begin;
            match disks.entry(place.device.disk_numbers()) {
                Entry::Occupied(mut known) => known.get_mut().1.push(begin),
                Entry::Vacant(new) => drop(new.insert((open_monitor(place.device, name)?, vec![begin]))),
            }
        }
        Ok(Box::new(Joined::new(disks.into_values().collect())))
    }

    /// Claims to the members' disks, to the other paths to a disk where it is sure that they lead there, and to what lies below.
    pub fn claims(&self, device: &Device, states: &StateFolder) -> anyhow::Result<Vec<Claim>> {
        let members = self.array.iter().flat_map(|array| &array.members).map(|member| &member.device);
        let paths =
            if Device::name_of_all_paths(&device.path).is_some() { device.other_paths().open()? } else { Vec::new() };
        let all = [device].into_iter().chain(members).chain(&paths);
        Ok(Claim::around(all, &[device.disk_numbers()], states)?)
    }
}

impl Job {
    /// How a device would be read: with which verifier, which owners judge what was read, and the array that it is.
    pub fn way(&self, device: &Device) -> anyhow::Result<Way> {
        let verifier = self.verifier.as_deref();
        if device.is_by_members() && self.skip_free {
            let name = device.path.display();
            return Err(UsageError(format!(
                "{name}: --skip-free is not for the members of an array; --content none reads the array itself"
            ))
            .into());
        }
        if device.is_by_members() {
            let failed = |why: &str| anyhow::anyhow!("{}: {why}", device.path.display());
            let array = Array::of(device).map_err(|why| failed(&why))?.filter(|array| array.size == device.size);
            let array = Arc::new(array.ok_or_else(|| failed("the array has changed"))?);
            let verifier = Members::new(&array.places(), self.largest()).map_err(|fault| failed(&fault.to_string()))?;
            let found = Found::of_array(array.clone(), device.block);
            return Ok(Way { verifier: Box::new(verifier), found, array: Some(array) });
        }
        let mut found = content::find(device, &self.content, verifier)?;
        if let Err(why) = content::array(device, &self.content, verifier)? {
            // Whoever has compared them before misses it.
            let is_missed = self.states.pass_by_members(device).is_some();
            found = found.and_not_asked(device, Md::NAME, why, is_missed);
        }
        if self.skip_free && !found.can_be_asked() {
            let name = device.path.display();
            return Err(UsageError(format!(
                "{name}: --skip-free needs a mounted btrfs, ext4 or XFS on it, to tell what is free"
            ))
            .into());
        }
        let chosen = choose_verifier(device, self.largest(), content::verifier(&found, verifier))?;
        Ok(Way { verifier: chosen.verifier, found, array: None })
    }
}
