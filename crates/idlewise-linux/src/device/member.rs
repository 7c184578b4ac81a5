//! What a device is part of that can repair it.

use std::io;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::{Device, zfs};
use crate::apart;

/// What can rewrite a device's unreadable blocks from redundant data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Member {
    /// An md array of this name.
    Md(String),
    /// A ZFS pool of this name.
    Zfs(String),
}

impl Device {
    /// The array that this very device, and not another part of its disk, is a member of.
    pub fn member(&self) -> Option<Member> {
        let own = self.start.0..self.start.0.saturating_add(self.size.0);
        let pool = || self.pools().iter().find(|(begin, _)| own.contains(begin));
        self.md_array().map(Member::Md).or_else(|| pool().map(|(_, pool)| Member::Zfs(pool.name.clone())))
    }

    /// The ZFS pools that the disk or partitions of it are members of, and where each of those begins on the disk.
    pub(crate) fn pools(&self) -> &[(u64, zfs::Pool)] {
        self.pools.get_or_init(|| {
            // A disk that cannot be read here says nothing; whoever scrubs it will say why.
            let Some(disk) = self.open_disk().ok().filter(|_| !self.is_file()) else { return Vec::new() };
            // Nothing is read ahead, which the monitor would take for the foreground's; and past the cache, whose page would stay locked while
            // the disk hangs, and with it whoever opens the disk.
            let flags = rustix::fs::fcntl_getfl(&disk).unwrap_or(OFlags::empty());
            let _ = rustix::fs::fcntl_setfl(&disk, flags | OFlags::DIRECT);
            // Nor does one that hangs: the scrub is to begin all the same, and to say where.
            let mut answers = true;
            let mut read = |at: u64, length: usize| {
                let read = if answers { Some(apart::read_at(&disk, at, length)) } else { None };
                answers &= !matches!(&read, Some(Err(error)) if error.kind() == io::ErrorKind::TimedOut);
                read?.ok()
            };
            let found = |place: std::ops::Range<u64>| Some((place.start, zfs::pool(place, &mut read)?));
            // What lies in a partition is no label of the disk.
            self.place.possible_members().into_iter().filter_map(found).collect()
        })
    }
}
