//! How a disk is recognised again, and how it is not taken for another.

use serde::{Deserialize, Serialize};

use super::sysfs::Place;
use crate::scrub::boot_id;

/// What tells a device from another of the same identity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Marks {
    /// First byte on the whole disk.
    pub start_bytes: u64,
    /// Unique name of the partition, if it is one and has one.
    pub partition_uuid: Option<String>,
    /// Since when the machine ran.
    pub boot_id: String,
    /// Which disk it was, of those that have been there since then.
    pub diskseq: Option<u64>,
}

impl Marks {
    pub(super) fn of(place: &Place, diskseq: Option<u64>) -> Self {
        let partition_uuid = place.partition_uuid();
        Self { start_bytes: place.start().0, partition_uuid, boot_id: boot_id(), diskseq }
    }

    /// Why a device with these marks is not the one with those `before`. Of an identity that others may get, that it is the same
    /// is only certain while the machine runs, as far as it says since when, and the disk stays.
    pub fn other_than(&self, before: &Self, ambiguous: bool) -> Option<String> {
        let uuids = self.partition_uuid.as_ref().zip(before.partition_uuid.as_ref());
        if self.start_bytes != before.start_bytes {
            return Some("the partition of this number began elsewhere on the disk then".into());
        }
        if uuids.is_some_and(|(now, then)| now != then) {
            return Some("the partition of this number was another one then".into());
        }
        if ambiguous && self.boot_id.is_empty() {
            return Some("without /proc nobody knows whether the machine has been restarted since".into());
        }
        if ambiguous && self.boot_id != before.boot_id {
            return Some("the machine has been restarted since, and another disk may be called so now".into());
        }
        (ambiguous && self.diskseq != before.diskseq).then(|| "another disk was called so then".into())
    }
}

/// Where a disk says which one it is, the most certain first.
const NAMES: [(&str, &str); 7] = [
    ("wwn", "wwid"),
    ("wwn", "device/wwid"),
    ("serial", "serial"),
    ("serial", "device/serial"),
    ("dm", "dm/uuid"),
    ("md", "md/uuid"),
    ("loop", "loop/backing_file"),
];

impl Place {
    /// The disk's world-wide name, serial number, UUID or backing file and the part of that, with the number of the partition; where it has
    /// none of them, its name.
    pub fn identity(&self) -> String {
        let disk = match self.says() {
            Some((kind, value)) => format!("{kind}-{value}"),
            None => format!("name-{}", self.name()),
        };
        match self.partition() {
            Some(partition) => format!("{disk}-part{partition}"),
            None => disk,
        }
    }

    /// Whether another disk may get this identity: a name or a file may be used again, and bridges to USB call all their disks by
    /// one serial number. Numbers that IEEE gives out (naa, eui) are the disk's own there as well.
    pub fn is_ambiguous(&self) -> bool {
        match self.says() {
            None | Some(("loop", _)) => true,
            Some((_, value)) => self.is_usb() && !value.starts_with("naa.") && !value.starts_with("eui."),
        }
    }

    /// The file of a loop device, with where it begins there and how long it is if that is not all.
    fn backing_file(&self) -> Option<String> {
        let file = self.line("loop/backing_file")?;
        let part = |file| self.attribute(file).filter(|bytes| bytes != "0");
        Some(match (part("loop/offset"), part("loop/sizelimit")) {
            (None, None) => file,
            (from, length) => format!("{file}@{}+{}", from.unwrap_or("0".into()), length.unwrap_or("all".into())),
        })
    }

    fn says(&self) -> Option<(&'static str, String)> {
        NAMES.iter().find_map(|(kind, file)| match *kind {
            "loop" => Some((*kind, self.backing_file()?)),
            _ => Some((*kind, self.attribute(file)?)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::sysfs::tests::fixture;

    #[test]
    fn parts_of_a_file_and_files_whose_names_end_alike_are_not_the_same() {
        let identity = |file: &str, offset: &str, limit: &str| {
            let files = [("backing_file", file), ("offset", offset), ("sizelimit", limit)];
            let files = files.map(|(name, content)| (format!("block/loop0/loop/{name}"), format!("{content}\n")));
            let files: Vec<_> = files.iter().map(|(path, content)| (&**path, &**content)).collect();
            let sys = fixture(&[&files[..], &[("block/loop0/dev", "7:0")]].concat());
            std::os::unix::fs::symlink(sys.path().join("block/loop0"), sys.path().join("dev/block/7:0")).unwrap();
            Place::find(sys.path(), rustix::fs::makedev(7, 0)).unwrap().identity()
        };
        assert_eq!(identity("/a", "0", "0"), "loop-/a");
        assert_eq!(identity("/a", "512", "0"), "loop-/a@512+all");
        assert_eq!(identity("/a", "0", "4096"), "loop-/a@0+4096");
        assert_eq!([identity("/a ", "0", "0"), identity("/a\n", "0", "0")], ["loop-/a ", "loop-/a\n"]);
    }

    /// Where there is no /proc, nobody knows whether the machine has been restarted.
    #[test]
    fn without_a_boot_id_an_ambiguous_disk_may_be_another() {
        let here = Marks { boot_id: "b".into(), diskseq: Some(3), ..Marks::default() };
        assert_eq!(here.other_than(&here, true), None);
        let nowhere = Marks { boot_id: String::new(), ..here };
        assert!(nowhere.other_than(&nowhere, true).is_some() && nowhere.other_than(&nowhere, false).is_none());
    }

    #[test]
    fn a_bridges_serial_is_no_disks_own() {
        let cases = [
            ("devices/pci0/ata1/block/sda", "serial", "S1", "serial-S1", false),
            ("devices/pci0/usb2/2-1/block/sda", "serial", "S1", "serial-S1", true),
            ("devices/pci0/usb2/2-1/block/sda", "wwid", "t10.ASMT", "wwn-t10.ASMT", true),
            ("devices/pci0/usb2/2-1/block/sda", "wwid", "naa.5000c5", "wwn-naa.5000c5", false),
            ("devices/virtual/block/loop0", "loop/backing_file", "/a.img", "loop-/a.img", true),
            ("devices/pci0/virtio1/block/vda", "size", "8", "name-vda", true),
        ];
        for (folder, file, value, identity, ambiguous) in cases {
            let sys = fixture(&[(&format!("{folder}/{file}"), value), (&format!("{folder}/dev"), "8:0")]);
            std::os::unix::fs::symlink(sys.path().join(folder), sys.path().join("dev/block/8:0")).unwrap();
            let place = Place::find(sys.path(), rustix::fs::makedev(8, 0)).unwrap();
            assert_eq!((place.identity(), place.is_ambiguous()), (identity.into(), ambiguous), "{folder} {file}");
        }
    }
}
