//! What kind of disk a device is, and what its foreground may be asked to bear where nobody says.

use std::fmt;

use idlewise::Nanos;
use idlewise::tune::Goal;

use super::Device;
use super::sysfs::Place;

/// A kind of disk, by how it serves requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Has heads that move.
    HardDisk,
    /// Flash behind SATA or SAS.
    Ssd,
    /// Flash on the bus of the machine.
    Nvme,
}

impl Device {
    /// The kind of the disk that it lies on. A loop device says nothing of what its file lies on: it counts as the slowest kind.
    pub fn kind(&self) -> Kind {
        Kind::of(&self.place)
    }
}

impl Kind {
    pub(super) fn of(place: &Place) -> Self {
        let flash = place.attribute("queue/rotational").as_deref() == Some("0");
        if place.name().starts_with("nvme") {
            Self::Nvme
        } else if flash && place.attribute("loop/backing_file").is_none() {
            Self::Ssd
        } else {
            Self::HardDisk
        }
    }

    /// The goal where none is given. The mean is about a tenth of a published random read, so that the foreground hardly differs.
    /// The maximum is what a request that scrubs fast takes, with room for the way there and for an unlucky arrival.
    ///
    /// * Hard disk of 7,200 rpm: 8.5 ms of seek and half a rotation of 4.2 ms are 12.7 ms; 4 MiB at 150 MB/s take 28 ms more.
    /// * SATA SSD: 110 us, and 500 MB/s (Intel DC S4500, product specification): 1 MiB takes 2.1 ms.
    /// * NVMe: 85 to 115 us, and 3.2 GB/s (Intel DC P4500, specification): 1 MiB takes 0.33 ms.
    pub fn goal(self) -> Goal {
        let (mean_us, max_ms) = match self {
            Self::HardDisk => (1_000, 50),
            Self::Ssd => (10, 5),
            Self::Nvme => (10, 1),
        };
        Goal::new(Nanos(mean_us * 1_000), Nanos::from_millis(max_ms))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::HardDisk => "a hard disk",
            Self::Ssd => "an SSD",
            Self::Nvme => "an NVMe disk",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::sysfs::tests::fixture;

    #[test]
    fn each_kind_is_known_by_its_name_and_its_heads() {
        let loop_file = ("block/sda/loop/backing_file", "/a.img");
        let cases = [
            ("sda", "1\n", None, Kind::HardDisk),
            ("sda", "0\n", None, Kind::Ssd),
            ("sda", "0\n", Some(loop_file), Kind::HardDisk),
            ("nvme0n1", "0\n", None, Kind::Nvme),
            ("dm-0", "0\n", None, Kind::Ssd),
        ];
        for (name, rotational, more, kind) in cases {
            let path = format!("block/{name}/queue/rotational");
            let sys = fixture(&[&[(&*path, rotational)], more.as_slice()].concat());
            std::os::unix::fs::symlink(format!("../../block/{name}"), sys.path().join("dev/block/8:0")).unwrap();
            let place = Place::find(sys.path(), rustix::fs::makedev(8, 0)).unwrap();
            assert_eq!(Kind::of(&place), kind, "{name} {rotational}");
        }
    }
}
