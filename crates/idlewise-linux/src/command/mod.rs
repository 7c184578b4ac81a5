//! Any command, in the gaps: its processes are held while the foreground is at a disk that they use, and let go when the policy says so
//! ("Restrained Utilization of Idleness", SIGMETRICS 2009, of background jobs in general).
//!
//! ```text
//! Paced ── Held     its processes: a control group (cgroup, hierarchy), or signals (tree); family tells who they are, asked what they
//!       │           have asked their disks for; the guard undoes it if this process is killed
//!       └─ Lanes    the disks that are watched
//!          ├─ Lane   one for each: a monitor, and the policy that it drives
//!          └─ Disks  which others have come to work, and are to be watched
//! ```

mod asked;
mod cgroup;
mod disks;
mod family;
mod guard;
mod held;
mod hierarchy;
mod lane;
mod lanes;
mod launch;
mod left;
mod note;
mod paced;
mod progress;
mod tree;

pub use guard::stand;
pub use held::{Held, Whose};
pub(crate) use lane::Lane;
pub use lane::{Overruns, Why};
pub use launch::launch;
#[cfg(feature = "bpf")]
pub(crate) use note::running_in;
pub use note::{DiskNote, Noted, RunNote, running};
pub use paced::{Paced, RunError, Settings};
pub use progress::{DiskSoFar, Progress};
