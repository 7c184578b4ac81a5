//! The disks on which the loads run.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use idlewise::Bytes;
use idlewise_testbed::Timing;
use idlewise_testbed::lab::device::Device;
use idlewise_testbed::lab::mounted::Mounted;

/// Their size.
pub const SIZE: Bytes = Bytes(8 << 30);
/// Real times are too short for the emulation.
const SLOWER: u64 = 20;
/// Data of a btrfs: more than a scrub reads in a minute.
pub const DATA: Bytes = Bytes(2 << 30);

/// An emulated disk.
#[derive(Clone, Copy)]
pub struct Disk {
    /// What it is.
    pub name: &'static str,
    /// How long it takes.
    pub timing: Timing,
    /// Whether a btrfs is mounted on it, with whose checksums the scrub compares what it reads. Loads only read it.
    pub is_btrfs: bool,
}

/// All of them.
pub const DISKS: [Disk; 4] = [
    Disk { name: "hard disk", timing: HARD_DISK, is_btrfs: false },
    Disk { name: "hard disk, reordering", timing: Timing::HardDisk { queue: 32 }, is_btrfs: false },
    Disk { name: "hard disk with btrfs", timing: HARD_DISK, is_btrfs: true },
    Disk { name: "solid-state drive", timing: Timing::Flash { slower: SLOWER }, is_btrfs: false },
];

const HARD_DISK: Timing = Timing::HardDisk { queue: 1 };

impl Disk {
    /// Whether what it needs is on this machine.
    pub fn is_there(&self) -> bool {
        !self.is_btrfs || Command::new("mkfs.btrfs").arg("--version").stdout(Stdio::null()).status().is_ok()
    }

    /// What is on it.
    pub fn fill(&self, device: &Device, folder: &Path) -> anyhow::Result<Option<Mounted>> {
        if !self.is_btrfs {
            return Ok(None);
        }
        println!("Making a btrfs with {DATA} of data.");
        let mounted = Mounted::new(&["mkfs.btrfs", "-q", "-f"], device, &folder.join("mounted"))?;
        let (path, random) = (mounted.folder().join("data"), PathBuf::from("/dev/urandom"));
        let mut random = File::open(&random).with_context(|| random.display().to_string())?.take(DATA.0);
        std::io::copy(&mut random, &mut File::create(&path)?).with_context(|| path.display().to_string())?;
        mounted.sync()?;
        Ok(Some(mounted))
    }
}
