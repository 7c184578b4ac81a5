//! What the devices that are there say they are. None is opened: `status` asks without any privilege.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use idlewise::Bytes;

use super::sysfs::{Place, numbers};
use super::{Marks, Named, Which};

/// The block devices of this machine, by their identities. Paths to one disk share one.
#[derive(Debug)]
pub struct Devices(BTreeMap<String, Vec<Place>>);

/// A device that is there.
#[derive(Clone, Debug)]
pub struct Glance {
    /// What tells it from another of its identity.
    pub marks: Marks,
    /// Whether another disk may get its identity.
    pub named: Named,
    /// Its size.
    pub size: Bytes,
    /// What it is made of, if it is an array or a volume.
    pub parts: Vec<Which>,
}

impl Devices {
    /// Those that are there now.
    pub fn present() -> Self {
        let sys = Path::new("/sys");
        let mut found = BTreeMap::<_, Vec<_>>::new();
        for entry in fs::read_dir(sys.join("dev/block")).into_iter().flatten().flatten() {
            let number = numbers(&entry.path()).map(|(major, minor)| rustix::fs::makedev(major, minor));
            let place = number.and_then(|number| Place::find(sys, number).ok());
            // A loop device without a file and a reader without a card are none.
            if let Some(place) = place.filter(|place| place.size() > Bytes(0)) {
                found.entry(place.identity()).or_default().push(place);
            }
        }
        Self(found)
    }

    /// Those of an identity.
    pub fn called(&self, identity: &str) -> Vec<Glance> {
        self.0.get(identity).into_iter().flatten().map(Glance::of).collect()
    }
}

impl Glance {
    fn of(place: &Place) -> Self {
        let part = |number| Place::find(Path::new("/sys"), number).ok().map(|place| place.which(place.diskseq()));
        Self {
            marks: Marks::of(place, place.diskseq()),
            named: place.named(),
            size: place.size(),
            parts: place.slaves().into_iter().filter_map(part).collect(),
        }
    }
}
