//! How a disk is recognised again, and how it is not taken for another.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::mapping::{self, Stretch};
use super::sysfs::Place;
use crate::scrub::boot_id;

/// Which disk a member of an array is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Which {
    /// What it says it is.
    pub identity: String,
    /// Of those that the kernel had seen since the machine was started.
    pub diskseq: Option<u64>,
    /// Whether another one may be called so when the machine is started again.
    pub for_now: bool,
}

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
    /// The same of the members of an array that is scrubbed by them, with their identities; version 8 did not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Which>,
    /// The same of the disks and partitions that a volume lies on; version 8 did not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<Which>,
    /// Where on which device each part of a volume lies; version 9 did not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mapped: Vec<Stretch>,
}

/// How certain it is that no other disk has the same identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// The manufacturer, or the kernel, gave it to this one alone.
    Alone,
    /// Somebody chose it, and may choose it for another one: as long as the machine runs, it is known which disk it was.
    ByChoice,
    /// Another one may get it at any time.
    ForNow,
    /// What it is called so may be changed for something else at any time, and the kernel does not tell.
    Never,
}

impl Marks {
    pub(super) fn of(place: &Place, diskseq: Option<u64>) -> Self {
        let partition_uuid = place.partition_uuid();
        let (sys, start_bytes) = (Path::new("/sys"), place.start().0);
        let (below, volumes) = place.below(sys);
        let find = |(major, minor)| Place::find(sys, rustix::fs::makedev(major, minor)).ok();
        let mapped = mapping::stretches(volumes.iter(), find, |place| place.named() == Named::Alone);
        Self { start_bytes, partition_uuid, boot_id: boot_id(), diskseq, members: Vec::new(), below, mapped }
    }

    /// Whether the volume, or a part of it, lay elsewhere `before`: what was read there says nothing of where its data are now. What has
    /// been added since then holds nothing that was there, or a copy that is being made.
    pub fn lies_elsewhere_than(&self, before: &Self) -> bool {
        let since_then = self.boot_id == before.boot_id;
        let is_still_there = |then: &Which| match then.for_now {
            // The volume's own name says enough where its disks have none that lasts.
            true if !since_then => true,
            true => self.below.contains(then),
            // It may have several paths, some of which have gone.
            false => self.below.iter().any(|now| now.identity == then.identity),
        };
        !before.below.iter().all(is_still_there) || mapping::is_moved(&self.mapped, &before.mapped, since_then)
    }

    /// Whether a member of the array was another disk `before`: what was read of that says nothing of this one.
    pub fn has_other_members_than(&self, before: &Self) -> bool {
        let since_then = self.boot_id == before.boot_id;
        let is_other = |(now, then): (&Which, &Which)| {
            now.identity != then.identity || if since_then { now.diskseq != then.diskseq } else { now.for_now }
        };
        self.members.len() != before.members.len() || self.members.iter().zip(&before.members).any(is_other)
    }

    /// Whether a device with these marks surely is another one than the one with those `before`, and not only may be.
    pub fn is_surely_other_than(&self, before: &Self, named: Named) -> bool {
        let named = if named == Named::Alone { named } else { Named::ByChoice };
        self.other_than(before, named).is_some()
    }

    /// Why a device with these marks is not the one with those `before`, or may not be, as it is named so.
    pub fn other_than(&self, before: &Self, named: Named) -> Option<String> {
        let uuids = self.partition_uuid.as_ref().zip(before.partition_uuid.as_ref());
        if self.start_bytes != before.start_bytes {
            return Some("the partition of this number began elsewhere on the disk then".into());
        }
        if uuids.is_some_and(|(now, then)| now != then) {
            return Some("the partition of this number was another one then".into());
        }
        if named == Named::Never {
            return Some("the kernel does not tell whether something else has been put behind it since".into());
        }
        if named == Named::ForNow && self.boot_id.is_empty() {
            return Some("without /proc nobody knows whether the machine has been restarted since".into());
        }
        let since_then = self.boot_id == before.boot_id;
        if named == Named::ForNow && !since_then {
            return Some("the machine has been restarted since, and another disk may be called so now".into());
        }
        let another = named != Named::Alone && since_then && self.diskseq != before.diskseq;
        another.then(|| "another disk was called so then".into())
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

/// UUIDs of device mappings that are made to be unique, by their beginning; others are made of the name that somebody gave.
const UNIQUE_MAPPINGS: [&str; 4] = ["LVM-", "CRYPT-LUKS", "CRYPT-BITLK-", "mpath-"];
/// What QEMU calls a disk without a serial number: this and its slot.
const QEMUS_SLOT: &str = "drive-";
/// NVMe disks, by the vendor's number, of which each has the vendor's same serial number: those of Google's and Microsoft's clouds.
const NVME_ALL_ALIKE: [&str; 2] = ["nvme.1ae0-", "nvme.1414-"];

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

    /// Whether another disk may get this identity. A name or a file may be used again, and bridges to USB call all their disks by
    /// one serial number; QEMU names disks without one by their slot. Serial numbers of virtual disks are typed by somebody, and cut.
    pub fn named(&self) -> Named {
        let Some((kind, value)) = self.says() else {
            // They keep their numbers when another server, or other memory, comes behind them.
            let is_reused = ["nbd", "zram"].iter().any(|driver| self.name().starts_with(driver));
            return if is_reused { Named::Never } else { Named::ForNow };
        };
        let is_any = |begins: &[&str]| begins.iter().any(|begin| value.starts_with(begin));
        if kind == "dm" {
            let mapping =
                value.strip_prefix("part").map_or(&*value, |rest| rest.split_once('-').map_or("", |(_, of)| of));
            let unique = UNIQUE_MAPPINGS.iter().any(|begin| mapping.starts_with(begin));
            return if unique { Named::Alone } else { Named::ForNow };
        }
        // Whoever starts a virtual machine may type any name, also one that looks like a manufacturer's.
        let typed = ["device/vendor", "device/model"].iter().any(|file| self.attribute(file).is_some_and(by_qemu));
        // Given out by IEEE, or made to be unique.
        if by_ieee(&value) || is_any(&["eui.", "uuid."]) || kind == "md" {
            return if typed { Named::ByChoice } else { Named::Alone };
        }
        if kind == "loop" {
            // Nor does it know when something else has come behind what it lies on.
            return if is_any(&["/dev/nbd", "/dev/zram"]) { Named::Never } else { Named::ForNow };
        }
        if self.is_usb() || value.contains(QEMUS_SLOT) || is_any(&NVME_ALL_ALIKE) {
            return Named::ForNow;
        }
        // A manufacturer's model and serial number.
        let by_maker = is_any(&["t10.ATA ", "nvme."]) && !typed && !value.contains("QEMU");
        if by_maker { Named::Alone } else { Named::ByChoice }
    }

    /// What a volume or a loop device lies on at last, in order, and those that do, itself the first; nothing of what is a disk.
    fn below(&self, sys: &Path) -> (Vec<Which>, Vec<Self>) {
        let (mut below, mut look) = (Vec::new(), self.devices_below());
        let mut volumes: Vec<_> = Some(self.clone()).filter(|_| !look.is_empty()).into_iter().collect();
        // None is looked at twice, however they lie on each other.
        let mut seen = BTreeSet::new();
        while let Some(number) = look.pop() {
            let Some(place) =
                Some(number).filter(|&number| seen.insert(number)).and_then(|number| Self::find(sys, number).ok())
            else {
                continue;
            };
            match place.devices_below() {
                parts if parts.is_empty() => below.push(place.which(place.diskseq())),
                parts => {
                    look.extend(parts);
                    volumes.push(place);
                }
            }
        }
        below.sort_by(|a, b| (&a.identity, a.diskseq).cmp(&(&b.identity, b.diskseq)));
        (below, volumes)
    }

    /// Which disk it is, as one of those that something is made of.
    pub fn which(&self, diskseq: Option<u64>) -> Which {
        let for_now = matches!(self.named(), Named::ForNow | Named::Never);
        Which { identity: self.identity(), diskseq, for_now }
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

    pub(super) fn says(&self) -> Option<(&'static str, String)> {
        NAMES.iter().find_map(|(kind, file)| match *kind {
            "loop" => Some((*kind, self.backing_file()?)),
            // The kernel knows none of arrays whose metadata it does not keep itself, as those of a BIOS.
            "md" => Some((*kind, self.attribute(file).filter(|uuid| uuid.contains(|c| c != '0' && c != '-'))?)),
            _ => Some((*kind, self.attribute(file)?)),
        })
    }
}

/// Whether a name is one of those that manufacturers give, with the number that IEEE has given them (SCSI's NAA formats 2, 5 and 6); of the others
/// some are the same on each machine.
fn by_ieee(name: &str) -> bool {
    let company = match name.strip_prefix("naa.").and_then(|digits| digits.split_at_checked(1)) {
        Some(("2", digits)) => digits.get(3..9),
        Some(("5" | "6", digits)) => digits.get(..6),
        _ => None,
    };
    company.is_some_and(|digits| digits.contains(|digit| digit != '0'))
}

fn by_qemu(name: String) -> bool {
    name.contains("QEMU")
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

    /// A volume on a volume on a partition and a disk, both of which it has twice.
    #[test]
    fn a_volume_knows_what_it_lies_on_at_last() {
        let sys = fixture(&[
            ("block/sda/dev", "8:0"),
            ("block/sda/wwid", "naa.5000c5001"),
            ("block/sda/diskseq", "3"),
            ("block/sda/sda2/dev", "8:2"),
            ("block/sda/sda2/start", "2048"),
            ("block/sda/sda2/partition", "2"),
            ("block/vdb/dev", "254:16"),
            ("block/dm-0/dev", "253:0"),
            ("block/dm-1/dev", "253:1"),
        ]);
        let link = |to: &str, from: &str| {
            std::fs::create_dir_all(sys.path().join(from).parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(sys.path().join(to), sys.path().join(from)).unwrap();
        };
        let devices = [("sda", "8:0"), ("sda/sda2", "8:2"), ("vdb", "254:16"), ("dm-0", "253:0"), ("dm-1", "253:1")];
        devices.iter().for_each(|(name, number)| link(&format!("block/{name}"), &format!("dev/block/{number}")));
        for (over, below) in
            [("dm-0", "dm-1"), ("dm-0", "vdb"), ("dm-1", "sda/sda2"), ("dm-1", "vdb"), ("dm-1", "dm-0")]
        {
            let name = below.rsplit('/').next().unwrap();
            link(&format!("block/{below}"), &format!("block/{over}/slaves/{name}"));
        }
        let below = |major, minor| {
            let place = Place::find(sys.path(), rustix::fs::makedev(major, minor)).unwrap();
            place
                .below(sys.path())
                .0
                .into_iter()
                .map(|which| (which.identity, which.diskseq, which.for_now))
                .collect::<Vec<_>>()
        };
        let part = ("wwn-naa.5000c5001-part2".to_string(), Some(3), false);
        assert_eq!(below(253, 0), [("name-vdb".into(), None, true), part]);
        assert_eq!((below(8, 2), below(254, 16)), (vec![], vec![]));
    }

    /// Where there is no /proc, nobody knows whether the machine has been restarted.
    #[test]
    fn without_a_boot_id_an_ambiguous_disk_may_be_another() {
        let here = Marks { boot_id: "b".into(), diskseq: Some(3), ..Marks::default() };
        assert_eq!(here.other_than(&here, Named::ForNow), None);
        let nowhere = Marks { boot_id: String::new(), ..here };
        let other =
            [Named::ForNow, Named::ByChoice, Named::Alone].map(|named| nowhere.other_than(&nowhere, named).is_some());
        assert_eq!(other, [true, false, false]);
    }

    #[test]
    fn that_it_may_be_another_is_not_that_it_is() {
        let before = Marks { boot_id: "b".into(), diskseq: Some(3), ..Marks::default() };
        let swapped = Marks { diskseq: Some(4), ..before.clone() };
        let restarted = Marks { boot_id: "c".into(), ..swapped.clone() };
        let elsewhere = Marks { start_bytes: 512, ..restarted.clone() };
        // Of what may be changed at any time nothing of before is known, and nothing is sure.
        assert!(before.other_than(&before, Named::Never).is_some());
        assert!(!before.is_surely_other_than(&before, Named::Never));
        let surely = |now: &Marks| {
            [Named::ForNow, Named::ByChoice, Named::Alone].map(|named| now.is_surely_other_than(&before, named))
        };
        assert_eq!(surely(&before), [false; 3]);
        assert_eq!(surely(&swapped), [true, true, false]);
        assert_eq!(surely(&restarted), [false; 3]);
        assert_eq!(surely(&elsewhere), [true; 3]);
    }

    #[test]
    fn some_serial_numbers_are_no_disks_own() {
        use Named::{Alone, ByChoice, ForNow, Never};
        let qemu = "t10.QEMU    QEMU HARDDISK   ";
        let (slot, typed) = (format!("{qemu}drive-scsi1"), format!("{qemu}backup"));
        let cases = [
            ("devices/pci0/ata1/block/sda", "wwid", "t10.ATA     WDC WD40  S1", "wwn-t10.ATA     WDC WD40  S1", Alone),
            (
                "devices/pci0/ata1/block/sda",
                "wwid",
                "t10.ATA     QEMU HARDDISK  QM1",
                "wwn-t10.ATA     QEMU HARDDISK  QM1",
                ByChoice,
            ),
            ("devices/pci0/usb2/2-1/block/sda", "serial", "S1", "serial-S1", ForNow),
            ("devices/pci0/usb2/2-1/block/sda", "wwid", "t10.ASMT", "wwn-t10.ASMT", ForNow),
            ("devices/pci0/usb2/2-1/block/sda", "wwid", "naa.33333330000007d0", "wwn-naa.33333330000007d0", ForNow),
            ("devices/pci0/block/sda", "wwid", "naa.33333330000007d0", "wwn-naa.33333330000007d0", ByChoice),
            ("devices/pci0/block/sda", "wwid", "naa.60000000000000000e01", "wwn-naa.60000000000000000e01", ByChoice),
            ("devices/pci0/block/sda", "wwid", "naa.20010000c9000000", "wwn-naa.20010000c9000000", Alone),
            ("devices/pci0/usb2/2-1/block/sda", "wwid", "naa.5000c5001", "wwn-naa.5000c5001", Alone),
            ("devices/virtual/block/loop0", "loop/backing_file", "/a.img", "loop-/a.img", ForNow),
            ("devices/virtual/block/loop0", "loop/backing_file", "/dev/nbd3", "loop-/dev/nbd3", Never),
            ("devices/virtual/block/md0", "md/uuid", "1e-0", "md-1e-0", Alone),
            ("devices/virtual/block/md0", "md/uuid", "00000000-0000-0000-0000-000000000000", "name-md0", ForNow),
            ("devices/virtual/block/dm-0", "dm/uuid", "LVM-x", "dm-LVM-x", Alone),
            ("devices/virtual/block/dm-0", "dm/uuid", "part2-mpath-36", "dm-part2-mpath-36", Alone),
            ("devices/virtual/block/dm-0", "dm/uuid", "CRYPT-LUKS2-5-x", "dm-CRYPT-LUKS2-5-x", Alone),
            ("devices/virtual/block/dm-0", "dm/uuid", "CRYPT-PLAIN-data", "dm-CRYPT-PLAIN-data", ForNow),
            ("devices/virtual/block/dm-0", "dm/uuid", "part1-CRYPT-TEMP-x", "dm-part1-CRYPT-TEMP-x", ForNow),
            ("devices/pci0/virtio1/block/vda", "size", "8", "name-vda", ForNow),
            ("devices/virtual/block/nbd0", "size", "8", "name-nbd0", Never),
            ("devices/virtual/block/zram1", "size", "8", "name-zram1", Never),
            ("devices/pci0/virtio1/block/vda", "serial", "backup", "serial-backup", ByChoice),
            ("devices/pci0/virtio2/block/sda", "wwid", &slot, &format!("wwn-{slot}"), ForNow),
            ("devices/pci0/virtio2/block/sda", "wwid", &typed, &format!("wwn-{typed}"), ByChoice),
            ("devices/pci0/nvme/block/nvme0n1", "wwid", "nvme.144d-53", "wwn-nvme.144d-53", Alone),
            ("devices/pci0/nvme/block/nvme0n1", "wwid", "nvme.1ae0-6e", "wwn-nvme.1ae0-6e", ForNow),
            ("devices/qemu/nvme/block/nvme0n1", "wwid", "nvme.1b36-53", "wwn-nvme.1b36-53", ByChoice),
            ("devices/qemu/nvme/block/nvme0n1", "wwid", "eui.5254", "wwn-eui.5254", ByChoice),
            ("devices/qemu/virtio2/block/sda", "wwid", "naa.5000c5001", "wwn-naa.5000c5001", ByChoice),
            ("devices/pci0/nvme/block/nvme0n1", "wwid", "uuid.12-34", "wwn-uuid.12-34", Alone),
        ];
        for (folder, file, value, identity, named) in cases {
            let model = if folder.contains("qemu") { "QEMU NVMe Ctrl" } else { "WDC WD40" };
            let (value_of, model_of) = (format!("{folder}/{file}"), format!("{folder}/device/model"));
            let sys = fixture(&[(&value_of, value), (&model_of, model), (&format!("{folder}/dev"), "8:0")]);
            std::os::unix::fs::symlink(sys.path().join(folder), sys.path().join("dev/block/8:0")).unwrap();
            let place = Place::find(sys.path(), rustix::fs::makedev(8, 0)).unwrap();
            assert_eq!((place.identity(), place.named()), (identity.into(), named), "{folder} {file}");
        }
    }
}
