//! Where a btrfs is mounted, so that it can be asked.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::superblock::{COPIES, LENGTH, Superblock};
use super::{AGAIN, Btrfs, UNMOUNTED, ioctl, unasked};
use crate::apart::Calls;
use crate::content::mounts::{self, Mount};
use crate::content::{Gate, Unasked};

/// A file system that is mounted, and when its trees may be read.
pub struct Mounted {
    pub mount: Arc<Mutex<Mount>>,
    /// Its unique name.
    id: [u8; 16],
    /// No item is longer.
    pub node: u64,
    pub gate: Gate,
    pub calls: Calls,
}

impl Mounted {
    /// A folder of it. It is opened for each question, and not while one waits, so that it can be unmounted.
    pub fn file(&self) -> io::Result<File> {
        let is_silent = Cell::new(false);
        // Whoever has mounted something else over it is not asked.
        let is_this = |file: &File| {
            let id = ioctl::file_system(&self.calls, file);
            is_silent.set(id.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut));
            id.is_ok_and(|id| id == self.id)
        };
        let opened = self.mount.lock().unwrap_or_else(PoisonError::into_inner).open(is_this);
        if is_silent.get() { Err(io::ErrorKind::TimedOut.into()) } else { opened }
    }
}

/// Where the kernel lists mounted file systems.
const FILE_SYSTEMS: &str = "/sys/fs/btrfs";

/// Under which unique name a device is mounted, and where the kernel lists it.
pub fn listed(device: &str) -> Option<([u8; 16], PathBuf)> {
    listed_in(Path::new(FILE_SYSTEMS), device)
}

/// Whether a btrfs is mounted from a device.
pub fn is_mounted(device: &str) -> bool {
    listed(device).is_some()
}

/// The same in this folder. A copy of a file system that is mounted beside it is called something else than its superblock says (since Linux
/// 6.7).
fn listed_in(file_systems: &Path, device: &str) -> Option<([u8; 16], PathBuf)> {
    std::fs::read_dir(file_systems).ok()?.flatten().find_map(|entry| {
        let listed = entry.path().join("devices").join(device);
        let digits: String = entry.file_name().to_str()?.chars().filter(|letter| *letter != '-').collect();
        let id = u128::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 32)?.to_be_bytes();
        listed.exists().then_some((id, listed))
    })
}

impl Btrfs {
    /// Whether it is mounted, or has been since it was found: looks, but not all the time.
    pub(super) fn is_mounted(&mut self) -> bool {
        if self.listed.is_none() && self.looked.elapsed() > AGAIN {
            self.looked = Instant::now();
            let (mut bytes, place) = ([0; LENGTH], COPIES[0]);
            let read = |found: &[u8; LENGTH]| Superblock::parse(found, place).ok().flatten();
            // Somebody may have made another one on it meanwhile.
            if let Some(listed) = listed(&self.name)
                && self.calls.read_exact_at(&self.disk, &mut bytes, self.begin + place).is_ok()
                && let Some(superblock) = read(&bytes)
            {
                (self.superblock, self.listed) = (superblock, Some(listed));
            }
        }
        self.listed.is_some()
    }

    /// The file system, where it was mounted a moment ago. What is asked of it then is asked only where it still is.
    pub(super) fn mounted_lately(&mut self) -> Result<Mounted, Unasked> {
        let reached = self.reached.filter(|reached| reached.elapsed() < AGAIN);
        match (reached, self.mount.clone(), &self.listed) {
            (Some(_), Some(mount), Some((own, _))) => Ok(self.by(mount, *own)),
            _ => {
                let mounted = self.mounted()?;
                self.reached = Some(Instant::now());
                Ok(mounted)
            }
        }
    }

    /// The file system of this unique name, by a mount.
    fn by(&self, mount: Arc<Mutex<Mount>>, id: [u8; 16]) -> Mounted {
        Mounted { mount, id, node: self.superblock.node, gate: self.gate.clone(), calls: self.calls.clone() }
    }

    /// The file system, where it is mounted now.
    pub(super) fn mounted(&mut self) -> Result<Mounted, Unasked> {
        let Some((own, listed)) = self.listed.clone() else { return Err(UNMOUNTED.into()) };
        // It may have been replaced by another device, or a copy of it be mounted instead.
        if !listed.exists() {
            return Err("it is no longer mounted from this device".into());
        }
        let mut is_silent = false;
        let mut open = |mount: Arc<Mutex<Mount>>| {
            let mounted = self.by(mount, own);
            let opened = mounted.file();
            is_silent |= opened.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut);
            opened.is_ok().then_some(mounted)
        };
        let all = || mounts::of(&["btrfs"]).into_iter().map(|mount| Arc::new(Mutex::new(mount)));
        let found = self.mount.clone().and_then(&mut open).or_else(|| all().find_map(open));
        self.mount = found.as_ref().map(|found| found.mount.clone());
        found.ok_or_else(|| {
            let nowhere = "it is not mounted where it can be seen from here";
            if is_silent { unasked(io::ErrorKind::TimedOut.into()) } else { nowhere.into() }
        })
    }
}
