//! What sysfs says of a block device. The root is a parameter, so that tests use plain folders.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use idlewise::Bytes;
use rustix::fs::{major, minor};
use rustix::io::Errno;

use super::{loops, node};

/// Sectors in sysfs are of 512 bytes, whatever the disk's blocks are.
const SECTOR: u64 = 512;

/// A device that is made of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// Its name.
    pub name: String,
    /// What md does with it: `idle`, `check`, `resync` and so on.
    pub action: Option<String>,
}

/// Where a block device and its disk are in sysfs.
#[derive(Clone, Debug)]
pub struct Place {
    /// The device's own folder.
    device: PathBuf,
    /// The whole disk's folder: the same, or its parent for a partition.
    pub disk: PathBuf,
    /// Numbers of the device and of the whole disk. They are read once, or there is no place: a wrong one would be of another disk.
    numbers: [(u32, u32); 2],
    /// Where it begins on the whole disk.
    start: Bytes,
}

impl Place {
    /// Finds the device with this number.
    ///
    /// # Errors
    /// What the file system says, or that it tells no numbers.
    pub fn find(sys: &Path, number: u64) -> io::Result<Self> {
        let own = (major(number), minor(number));
        let device = fs::canonicalize(sys.join(format!("dev/block/{}:{}", own.0, own.1)))?;
        if !device.join("partition").try_exists()? {
            return Ok(Self { disk: device.clone(), device, numbers: [own, own], start: Bytes(0) });
        }
        let strange = |file: &str| io::Error::other(format!("{}/{file} is no number", device.display()));
        let disk = device.parent().unwrap_or(&device).to_path_buf();
        let whole = parsed(&fs::read_to_string(disk.join("dev"))?).ok_or_else(|| strange("../dev"))?;
        let start = fs::read_to_string(device.join("start"))?.trim().parse::<u64>().ok();
        let start = start.and_then(|start| start.checked_mul(SECTOR)).ok_or_else(|| strange("start"))?;
        Ok(Self { device, disk, numbers: [own, whole], start: Bytes(start) })
    }

    /// Of what is no device: nothing is found there.
    pub fn nowhere() -> Self {
        let path = PathBuf::from("/sys/nowhere");
        Self { device: path.clone(), disk: path, numbers: [(0, 0); 2], start: Bytes(0) }
    }

    /// That of the whole disk.
    pub fn whole(&self) -> Self {
        let numbers = [self.numbers[1]; 2];
        Self { device: self.disk.clone(), disk: self.disk.clone(), numbers, start: Bytes(0) }
    }

    pub fn is_nowhere(&self) -> bool {
        self.disk.as_path() == Path::new("/sys/nowhere")
    }

    /// Name of the whole disk, as in /dev.
    pub fn name(&self) -> String {
        // A slash in a device's name is an exclamation mark in sysfs.
        self.disk.file_name().unwrap_or_default().to_string_lossy().replace('!', "/")
    }

    /// Name of the device itself, in sysfs.
    pub fn device_name(&self) -> String {
        self.device.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The md array that holds the device itself.
    pub fn md_array(&self) -> Option<String> {
        let name = |holder: PathBuf| Some(holder.file_name()?.to_str()?.to_string());
        entries(&self.device.join("holders")).filter_map(name).find(|name| name.starts_with("md"))
    }

    /// Its number on the disk, if it is a partition.
    pub fn partition(&self) -> Option<u64> {
        number(&self.device.join("partition"))
    }

    /// Whether the disk is behind USB.
    pub fn is_usb(&self) -> bool {
        self.disk.components().any(|part| part.as_os_str().to_string_lossy().starts_with("usb"))
    }

    /// A line that the disk's folder holds.
    pub fn attribute(&self, file: &str) -> Option<String> {
        text(&self.disk.join(file))
    }

    /// A line of a file of the disk, with all its blanks.
    pub fn line(&self, file: &str) -> Option<String> {
        let text = fs::read_to_string(self.disk.join(file)).ok()?;
        Some(text.strip_suffix('\n').unwrap_or(&text).to_string()).filter(|line| !line.is_empty())
    }

    /// The arrays that the disk or a partition of it is part of, at any height, and itself if it is one.
    pub fn arrays(&self) -> Vec<Array> {
        let mut found: Vec<Array> = Vec::new();
        let mut look = vec![self.disk.clone()];
        while let Some(folder) = look.pop() {
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if (folder.join("md").exists() || folder.join("dm").exists())
                && found.iter().all(|known| known.name != name)
            {
                found.push(Array { name, action: action(&folder.join("md")) });
            }
            let partitions = entries(&folder).filter(|entry| entry.join("partition").exists());
            for part in partitions.chain([folder.clone()]) {
                look.extend(entries(&part.join("holders")).filter_map(|holder| fs::canonicalize(holder).ok()));
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found
    }

    /// First byte and end on the disk, of what may belong to a pool: its partitions, or the disk itself where it has none.
    pub fn possible_members(&self) -> Vec<Range<u64>> {
        self.partitions().into_iter().map(|(part, _)| part).collect()
    }

    /// The disk's partitions with their names, or the disk itself where it has none.
    pub fn partitions(&self) -> Vec<(Range<u64>, String)> {
        let bytes = |folder: &Path, file: &str| number(&folder.join(file))?.checked_mul(SECTOR);
        let part = |folder: &Path, begin: u64| {
            let name = folder.file_name()?.to_string_lossy().into_owned();
            Some((begin..begin.checked_add(bytes(folder, "size")?)?, name))
        };
        let partitions = entries(&self.disk).filter(|entry| entry.join("partition").exists());
        let partitions = partitions.filter_map(|entry| part(&entry, bytes(&entry, "start")?));
        let mut members: Vec<_> = partitions.collect();
        if members.is_empty() {
            members.extend(part(&self.disk, 0));
        }
        members.sort_by_key(|(part, _)| (part.start, part.end));
        members
    }

    pub fn start(&self) -> Bytes {
        self.start
    }

    pub fn disk_numbers(&self) -> (u32, u32) {
        self.numbers[1]
    }

    /// Size of the device itself; zero where it has none.
    pub fn size(&self) -> Bytes {
        Bytes(number(&self.device.join("size")).unwrap_or(0).saturating_mul(SECTOR))
    }

    /// Of the disk: the kernel counts them as they come.
    pub fn diskseq(&self) -> Option<u64> {
        number(&self.disk.join("diskseq"))
    }

    /// The partition's unique name in the partition table, where the kernel or udev tells.
    pub fn partition_uuid(&self) -> Option<String> {
        let (major, minor) = self.numbers[0];
        let value = |file: &Path, key: &str| {
            let text = fs::read_to_string(file).ok()?;
            text.lines().find_map(|line| Some(line.strip_prefix(key)?.trim().to_lowercase()))
        };
        self.partition()?;
        let udev = Path::new("/run/udev/data").join(format!("b{major}:{minor}"));
        value(&self.device.join("uevent"), "PARTUUID=").or_else(|| value(&udev, "E:ID_PART_ENTRY_UUID="))
    }

    /// The disks, or arrays, that it is made of; of a loop device, the number of the device that it lies on, or of its file's file system.
    ///
    /// # Errors
    /// If that cannot be told.
    pub fn parts(&self) -> io::Result<Vec<u64>> {
        let number = |part: PathBuf| numbers(&part).ok_or_else(|| io::Error::other("a part without a number"));
        let parts = entries(&self.disk.join("slaves")).map(number);
        let parts = parts.map(|number| number.map(|(major, minor)| rustix::fs::makedev(major, minor)));
        let backing = loops::backing(&self.disk).transpose();
        parts.chain(backing.map(|backing| backing.map(|backing| backing.number))).collect()
    }

    /// Numbers of the disks, partitions or volumes that it is made of.
    pub fn slaves(&self) -> Vec<u64> {
        let parts = entries(&self.disk.join("slaves")).filter_map(|part| numbers(&part));
        parts.map(|(major, minor)| rustix::fs::makedev(major, minor)).collect()
    }

    /// What it lies on as a loop device is let go of by everyone else: nobody has mounted or claimed it, nor what that lies on.
    ///
    /// # Errors
    /// If somebody has, or it cannot be told.
    pub fn is_free_below(&self, sys: &Path) -> io::Result<()> {
        let mut disk = self.disk.clone();
        while let Some(number) = loops::backing(&disk)?.and_then(|backing| backing.device) {
            let below = Self::find(sys, number)?;
            let path = Path::new("/dev").join(below.device_name().replace('!', "/"));
            node::is_free(&path, number).map_err(|error| {
                let why = match Errno::from_io_error(&error) {
                    Some(Errno::BUSY) => "which is mounted or part of something".into(),
                    _ => error.to_string(),
                };
                io::Error::other(format!("it lies on {}, {why}: writes are refused", path.display()))
            })?;
            disk = below.disk;
        }
        Ok(())
    }

    /// A loop device that lies on it, on a part of it or on its whole disk, that has the same file, or of which none of that is certain.
    /// The kernel does not take that for a claim.
    ///
    /// # Errors
    /// If the devices of the machine cannot be looked through.
    pub fn loop_on_it(&self, sys: &Path) -> io::Result<Option<String>> {
        let extent = self.extent()?;
        // Two on one file are one and the same disk.
        let own = loops::backing(&self.disk)?.map(|own| own.file);
        for entry in fs::read_dir(sys.join("block"))? {
            let folder = entry?.path();
            if folder.file_name() == self.disk.file_name() {
                continue;
            }
            let is_on_it = match loops::backing(&folder) {
                Ok(None) => false,
                Ok(Some(other)) if Some(other.file) == own => true,
                Ok(Some(other)) => match Self::find(sys, other.number) {
                    Ok(below) if below.disk_numbers() != self.disk_numbers() => false,
                    Ok(below) => {
                        let other = below.extent()?;
                        other.start < extent.end && extent.start < other.end
                    }
                    // A file system without a disk.
                    Err(error) => error.kind() != io::ErrorKind::NotFound,
                },
                Err(_) => true,
            };
            if is_on_it {
                return Ok(Some(folder.file_name().unwrap_or_default().to_string_lossy().into_owned()));
            }
        }
        Ok(None)
    }

    /// Its bytes on the disk.
    fn extent(&self) -> io::Result<Range<u64>> {
        let sectors = fs::read_to_string(self.device.join("size"))?.trim().parse::<u64>();
        let size = sectors.map_err(io::Error::other)?.saturating_mul(SECTOR);
        Ok(self.start.0..self.start.0.saturating_add(size))
    }

    pub fn largest_request(&self) -> u64 {
        const PAGE: u64 = 4096;
        let sectors = number(&self.disk.join("queue/max_sectors_kb")).unwrap_or(512) * 1024;
        let segments = number(&self.disk.join("queue/max_segments")).unwrap_or(u64::from(u16::MAX)) * PAGE;
        sectors.min(segments)
    }

    /// Of the partition, if it is one.
    pub fn read_only(&self) -> bool {
        number(&self.device.join("ro")) == Some(1)
    }

    /// Requests for which its queue has a place; the largest number where it does not say.
    pub fn queue_places(&self) -> u64 {
        number(&self.disk.join("queue/nr_requests")).unwrap_or(u64::MAX)
    }

    /// With so many requests in its queue, others may have to wait for a place. Some schedulers give no more than a part of the places
    /// to each kind of request.
    #[cfg(any(feature = "bpf", test))]
    pub fn crowd(&self) -> u64 {
        let scheduler = self.attribute("queue/scheduler").unwrap_or_default();
        let gives_all = scheduler.contains("[none]") || scheduler.contains("[mq-deadline]");
        (self.queue_places() / if gives_all { 2 } else { 8 }).max(1)
    }

    /// Of the disk itself where its driver tells, or else of the kernel's queue for it.
    pub fn queue_depth(&self) -> Option<u64> {
        ["device/queue_depth", "queue/nr_requests"].into_iter().find_map(|file| number(&self.disk.join(file)))
    }
}

/// Names of the whole disks with a size and a device behind them, without those whose medium can be taken out.
pub fn disks(sys: &Path) -> Vec<String> {
    let disk = |folder: &PathBuf| {
        folder.join("device").exists()
            && number(&folder.join("removable")) != Some(1)
            // Paths of which the kernel itself takes one (native multipath of NVMe) have no files in /dev.
            && number(&folder.join("hidden")) != Some(1)
            && number(&folder.join("size")).is_some_and(|sectors| sectors > 0)
    };
    let name = |folder: PathBuf| Some(folder.file_name()?.to_str()?.replace('!', "/"));
    let mut names: Vec<String> = entries(&sys.join("block")).filter(disk).filter_map(name).collect();
    names.sort();
    names
}

/// Numbers of all whole disks with a size, made of others or not.
pub fn all(sys: &Path) -> Vec<(u32, u32)> {
    let with_size = |folder: &PathBuf| number(&folder.join("size")).is_some_and(|sectors| sectors > 0);
    entries(&sys.join("block")).filter(with_size).filter_map(|folder| numbers(&folder)).collect()
}

/// Major and minor number of what has a folder in sysfs.
pub fn numbers(folder: &Path) -> Option<(u32, u32)> {
    parsed(&text(&folder.join("dev"))?)
}

fn parsed(dev: &str) -> Option<(u32, u32)> {
    let (major, minor) = dev.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// What md does with an array. A check that stands at its limit does nothing: whoever set that has ended, and it never goes on.
fn action(md: &Path) -> Option<String> {
    let first = |file: &str| text(&md.join(file))?.split_whitespace().next()?.parse::<u64>().ok();
    let stands = first("sync_completed").zip(first("sync_max")).is_some_and(|(at, limit)| at >= limit);
    text(&md.join("sync_action")).map(|action| if action == "check" && stands { "idle".into() } else { action })
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()))
}

fn text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_string()).filter(|text| !text.is_empty())
}

fn number(path: &Path) -> Option<u64> {
    text(path)?.parse().ok()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::device::Named;

    pub fn fixture(files: &[(&str, &str)]) -> tempfile::TempDir {
        let sys = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = sys.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        fs::create_dir_all(sys.path().join("dev/block")).unwrap();
        sys
    }

    #[test]
    fn a_partition_is_a_place_on_its_disk() {
        let sys = fixture(&[
            ("block/sda/dev", "8:0\n"),
            ("block/sda/device/wwid", "naa.5000c500a1b2c3d4\n"),
            ("block/sda/queue/max_sectors_kb", "1280\n"),
            ("block/sda/queue/max_segments", "168\n"),
            ("block/sda/queue/nr_requests", "256\n"),
            ("block/sda/device/queue_depth", "32\n"),
            ("block/sda/sda2/partition", "2\n"),
            ("block/sda/sda2/start", "2048\n"),
            ("block/sda/sda2/size", "100\n"),
            ("block/sda/size", "4096\n"),
        ]);
        std::os::unix::fs::symlink("../../block/sda/sda2", sys.path().join("dev/block/8:2")).unwrap();
        let place = Place::find(sys.path(), rustix::fs::makedev(8, 2)).unwrap();
        assert_eq!(place.start(), Bytes(1_048_576));
        assert_eq!((place.disk_numbers(), place.largest_request()), ((8, 0), 168 * 4096));
        assert_eq!((place.queue_depth(), place.crowd()), (Some(32), 32));
        fs::write(sys.path().join("block/sda/queue/scheduler"), "[none] mq-deadline kyber bfq\n").unwrap();
        assert_eq!(place.crowd(), 128);
        assert_eq!(place.possible_members(), std::slice::from_ref(&(2048 * 512..2148 * 512)));
        fs::remove_file(sys.path().join("block/sda/sda2/partition")).unwrap();
        assert_eq!(place.possible_members(), std::slice::from_ref(&(0..4096 * 512)));
        fs::write(sys.path().join("block/sda/sda2/partition"), "2\n").unwrap();
        assert_eq!(place.identity(), "wwn-naa.5000c500a1b2c3d4-part2");
        assert!(Place::find(sys.path(), rustix::fs::makedev(9, 9)).is_err());
        // What is found stays so; without its numbers nothing is found, rather than another disk or another place.
        for file in ["block/sda/dev", "block/sda/sda2/start"] {
            let (file, away) = (sys.path().join(file), sys.path().join("away"));
            fs::rename(&file, &away).unwrap();
            assert_eq!((place.disk_numbers(), place.start()), ((8, 0), Bytes(1_048_576)));
            assert!(Place::find(sys.path(), rustix::fs::makedev(8, 2)).is_err());
            fs::write(&file, "x:y").unwrap();
            assert!(Place::find(sys.path(), rustix::fs::makedev(8, 2)).is_err());
            fs::rename(&away, &file).unwrap();
        }
    }

    #[test]
    fn arrays_are_found_through_partitions_and_on_each_other() {
        let sys = fixture(&[
            ("block/sda/sda1/partition", "1\n"),
            ("block/sda/sda1/holders/.keep", ""),
            ("block/md0/md/sync_action", "check\n"),
            ("block/md0/holders/.keep", ""),
            ("block/dm-3/dm/name", "data\n"),
        ]);
        let link = |holder: &str, name: &str| {
            std::os::unix::fs::symlink(sys.path().join("block").join(name), sys.path().join(holder).join(name))
                .unwrap();
        };
        link("block/sda/sda1/holders", "md0");
        link("block/md0/holders", "dm-3");
        std::os::unix::fs::symlink("../../block/sda", sys.path().join("dev/block/8:0")).unwrap();
        let arrays = Place::find(sys.path(), rustix::fs::makedev(8, 0)).unwrap().arrays();
        let found: Vec<_> = arrays.iter().map(|array| (&*array.name, array.action.as_deref())).collect();
        assert_eq!(found, [("dm-3", None), ("md0", Some("check"))]);
    }

    #[test]
    fn all_disks_are_those_with_a_device_and_a_medium_that_stays() {
        let mut files = vec![("block/loop0/size", "100")];
        for (name, size, removable) in
            [("sda", "100", "0"), ("sr0", "100", "1"), ("sdb", "0", "0"), ("nvme0n1", "8", "0")]
        {
            for (file, content) in [("size", size), ("removable", removable), ("device/model", "x")] {
                files.push((format!("block/{name}/{file}").leak(), content));
            }
        }
        assert_eq!(disks(fixture(&files).path()), ["nvme0n1", "sda"]);
    }

    #[test]
    fn a_disk_without_identity_is_known_by_its_name() {
        let sys = fixture(&[("block/vdb/dev", "254:16\n"), ("block/vdb/size", "8\n")]);
        std::os::unix::fs::symlink("../../block/vdb", sys.path().join("dev/block/254:16")).unwrap();
        let place = Place::find(sys.path(), rustix::fs::makedev(254, 16)).unwrap();
        assert_eq!((place.identity(), place.named()), ("name-vdb".into(), Named::ForNow));
        assert_eq!(place.start(), Bytes(0));
    }
}
