//! Scrubs that the owner of the data does itself, in the gaps: where its data cannot be judged from outside, or who wants the kernel to do it.
//!
//! ```text
//! Driven ── Scrubber   md: a gate, or steps; btrfs: one chunk after the other; ZFS: a gate. Opened and closed, and asked how far it is
//!        └─ Lanes      who else uses its disks: all of them must be idle
//! ```
//!
//! Whoever opens it is charged from then until it is quiet again: that is as long as a foreground request may wait for it.

mod btrfs;
mod driven;
mod marked;
mod md;
mod place;
mod zfs;

use std::io;

use idlewise::registry::{Named, Registry};
use idlewise::{Bytes, Nanos};

use crate::device::{Device, WholeDisk};
use crate::monitor::Monitor;

pub use driven::{Driven, DrivenSettings, SoFar};
pub use place::{Place, Unread};
pub(crate) use zfs::LetGo;

/// An owner's own scrub.
pub trait Scrubber: Send {
    /// What it works on beside the device that was named, and what lies below that.
    ///
    /// # Errors
    /// Why that cannot be told.
    fn others(&self) -> io::Result<Vec<Device>> {
        Ok(Vec::new())
    }
    /// Who else uses its disks, to be watched.
    ///
    /// # Errors
    /// Why that cannot be seen.
    fn users(&self) -> io::Result<Vec<(WholeDisk, Box<dyn Monitor>)>>;
    /// Lets it go on, or starts it; does not wait.
    ///
    /// # Errors
    /// Why it does not.
    fn open(&mut self) -> io::Result<()>;
    /// Has it stop; what is under way may take until [`Standing::is_quiet`].
    ///
    /// # Errors
    /// Why it does not.
    fn close(&mut self) -> io::Result<()>;
    /// How it stands. It is asked every millisecond.
    ///
    /// # Errors
    /// Why it cannot go on.
    fn look(&mut self) -> io::Result<Standing>;
    /// Places that could not be read, as far as they are known: the next run tries them again.
    fn unread(&self) -> Vec<Unread> {
        Vec::new()
    }
    /// Ends it, and puts back what it has set.
    ///
    /// # Errors
    /// What could not be put back.
    fn stop(&mut self) -> io::Result<()>;
}

/// How it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Where the next run begins, by its own measure.
    pub place: Bytes,
    /// So much of it is done.
    pub done: Bytes,
    /// Of so much.
    pub all: Bytes,
    /// What it has found wrong, by its own count, in its own units.
    pub wrong: u64,
    /// How much of that lies before the place: where that is not known, rather too much.
    pub wrong_in_place: u64,
    /// How much of what is done its owner has passed over, where that is known.
    pub skipped: Bytes,
    /// Nothing of it is under way.
    pub is_quiet: bool,
    /// It has come to its end.
    pub is_over: bool,
}

/// One of them.
pub struct Kind {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// What it counts.
    pub counts: &'static str,
    /// How long a foreground request may have to wait until it is quiet, where that is long: whoever uses it has to accept that.
    pub slowest: Option<Nanos>,
    /// The owner keeps the place itself, and goes on from there.
    pub keeps_its_place: bool,
    /// Names the file system or array on a device, as no other is named.
    pub of: fn(&Device) -> io::Result<String>,
    /// Prepares it for a device, from a place on.
    pub begin: fn(&Device, Place) -> io::Result<Box<dyn Scrubber>>,
}

impl Named for Kind {
    fn name(&self) -> &'static str {
        self.name
    }
}

/// What there is.
pub static SCRUBBERS: Registry<Kind> = Registry::new(&[
    Kind {
        name: "md-gate",
        about: "the check of an array by md, held and let go by its speed limit: for hard disks",
        counts: "sectors that do not match",
        of: md::name,
        begin: md::gate,
        slowest: None,
        keeps_its_place: false,
    },
    Kind {
        name: "md-steps",
        about: "the same in steps of 16 MiB of each member: for solid-state drives, as each step makes md write its superblocks",
        counts: "sectors that do not match",
        of: md::name,
        begin: md::steps,
        slowest: None,
        keeps_its_place: false,
    },
    Kind {
        name: "btrfs-chunks",
        about: "the scrub of one device by btrfs, chunk by chunk: for solid-state drives, or idle times of minutes",
        counts: "errors",
        of: btrfs::name,
        begin: btrfs::chunks,
        slowest: None,
        keeps_its_place: false,
    },
    Kind {
        name: "zfs-gate",
        about: "the scrub of a pool by ZFS, paused and resumed: takes ZFS seconds each time, so for idle times of minutes",
        counts: "reads that failed and checksums that do not match",
        of: zfs::name,
        begin: zfs::gate,
        slowest: Some(Nanos::from_secs(3)),
        keeps_its_place: true,
    },
]);

/// It cannot be done.
fn refused(why: impl Into<String>) -> io::Error {
    io::Error::other(why.into())
}
