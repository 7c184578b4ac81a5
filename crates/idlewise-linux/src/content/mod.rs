//! Whose data is read: an owner that keeps checksums of them tells what they should be. One file or folder an owner, one line each in
//! [`OWNERS`].
//!
//! ```text
//! a stretch that was read ─► Content::judge ─► as it should be
//!                                            ├► a suspect: read and judged once more; twice the same is a mismatch
//!                                            └► nothing is known of it
//! ```

mod allocation;
pub(crate) mod btrfs;
mod found;
mod gate;
mod md;
mod media;
mod mounts;
mod silent;

use idlewise::order::Extent;
use idlewise::registry::{Named, Registry};

pub use allocation::{is_unknown, shell_word};
pub use found::{Found, Part, find};
pub use gate::Gate;
pub(crate) use md::Outvoted;
pub use md::{Array, Fit, Md, geometry};

/// The owner that judges nothing.
pub const ALLOCATION: &str = "allocation";
/// The kind of what can be read, and is not what its owner keeps a checksum of.
pub const CHECKSUM: &str = "checksum";
/// The same of a block of the owner's own trees, which also says what it is and when it was written.
pub const TREE_BLOCK: &str = "tree-block";
/// The same of what the members of an array hold.
pub const DIFFERS: &str = "differs";

/// Judges what was read, by what its owner keeps of it. It reads trees and tables of its own where they are not in memory.
pub trait Content: Send {
    /// Judges what begins in a stretch of the device; `read` is what was read from its first byte on, before this is called: of each member
    /// where there are several.
    ///
    /// # Errors
    /// Why the owner cannot be asked: nothing is known of the stretch.
    fn judge(&mut self, extent: Extent, read: &[&[u8]]) -> Result<Judged, Unasked>;
    /// The same where that is quick, nothing has to be asked for and nothing differs; `None` otherwise.
    fn judge_at_once(&mut self, _extent: Extent, _read: &[&[u8]]) -> Option<Judged> {
        None
    }
    /// Whether it judges what is read. Else it only tells what is free and what lies where.
    fn judges(&self) -> bool {
        true
    }
    /// Why it cannot be asked yet, if it cannot: it says itself when it can.
    fn absent(&self) -> Option<&'static str> {
        None
    }
    /// A name that no other has, of an owner that may be absent.
    fn name(&self) -> Option<String> {
        None
    }
    /// What of a stretch nothing uses, in order; nothing where that is not known.
    ///
    /// # Errors
    /// Why the owner cannot be asked: all of it may be in use.
    fn free(&mut self, _extent: Extent) -> Result<Vec<Extent>, Unasked> {
        Ok(Vec::new())
    }
    /// Has the owner rewrite what is wrong in a stretch, from a copy that it has. Only where writes were allowed.
    ///
    /// # Errors
    /// Why it does not.
    fn mend(&mut self, _extent: Extent) -> Result<(), Unasked> {
        Err("it does not rewrite a part of its data".into())
    }
    /// What is judged as one begins at multiples of this, counted from the owner's first byte.
    fn unit(&self) -> u64;
    /// What lies there: paths of files, or a word such as `metadata`; empty where nothing does.
    ///
    /// # Errors
    /// Why the owner cannot be asked.
    fn owners(&mut self, extent: Extent) -> Result<Vec<String>, Unasked>;
    /// Has the owner learn that a stretch cannot be read, if it wants to know. It may take all of it for lost.
    fn report(&mut self, _extent: Extent) {}
}

/// What the owner of a stretch says of it. The rest of the stretch holds what no checksum is kept of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// Bytes that were compared with a checksum.
    pub judged: u64,
    /// Bytes that nothing uses.
    pub free: u64,
    /// Bytes whose owner could not be asked, and why.
    pub unasked: Option<(u64, Unasked)>,
    /// Bytes of a file system that is not mounted, by its name.
    pub unmounted: Vec<(String, u64)>,
    /// File systems that are.
    pub mounted: Vec<String>,
    /// Where they differed.
    pub suspects: Vec<Suspect>,
    /// Of what was asked, where not all that is to be compared was read: nothing was said of it.
    pub open: Vec<Extent>,
}

/// A place that holds something else than it should. It may have been written meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspect {
    /// Where, on the device.
    pub extent: Extent,
    /// The kind of a run of bad blocks, such as `checksum`.
    pub kind: &'static str,
    /// What stands for what should be there.
    pub expected: u64,
}

/// The owner cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Unasked {
    /// Why not.
    pub why: String,
    /// It was asked, and did not answer in time: it may answer later.
    pub is_silent: bool,
}

impl From<String> for Unasked {
    fn from(why: String) -> Self {
        Self { why, is_silent: false }
    }
}

impl From<&str> for Unasked {
    fn from(why: &str) -> Self {
        String::from(why).into()
    }
}

/// One owner.
pub struct Owner {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// Opens the content of a part of a device; `None` where the part is not its own.
    pub open: Open,
}

impl Named for Owner {
    fn name(&self) -> &'static str {
        self.name
    }
}

/// Opens the content of a part of a device, or says why it cannot be used.
pub type Open = fn(&Part) -> Result<Option<Box<dyn Content>>, String>;

/// What there is.
pub static OWNERS: Registry<Owner> = Registry::new(&[
    Owner { name: "btrfs", about: "checksums of data and tree blocks of a mounted btrfs", open: btrfs::open },
    Owner {
        name: ALLOCATION,
        about: "what a mounted ext4 or XFS uses: it keeps no checksums, but names what lies in bad blocks, and knows what is free",
        open: allocation::open,
    },
    Owner {
        name: Md::NAME,
        about: "copies and parities on the members of an array of md, device-mapper or LVM",
        open: |_| Ok(None),
    },
]);
