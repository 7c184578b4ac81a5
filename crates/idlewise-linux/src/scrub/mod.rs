//! The live scrubber: drives a policy and a scan order over a real device, and measures what it costs the foreground.

mod bad_runs;
mod ceiling;
mod checkpoint;
pub(crate) mod claim;
mod deadline;
mod engine;
mod faults;
mod folder;
mod groups;
mod home;
mod judging;
pub(crate) mod lane;
mod learn;
mod outdated;
mod pacing;
mod pass;
mod process;
mod rate_cap;
mod reaction;
pub(crate) mod retune;
mod run;
mod so_far;
mod spent;
mod subject;
mod words;

pub use bad_runs::BadBlocks;
pub use checkpoint::{Begun, Checkpoint, CheckpointError};
pub use claim::{Claim, Note, is_claimed, notes};
pub use deadline::{InTime, in_time};
pub use engine::{Report, ScrubError, Scrubber};
pub use folder::{Listed, StateFolder};
pub use groups::{Groups, Leave};
pub use learn::Watch;
pub use outdated::Outdated;
pub use pacing::Pacing;
pub use pass::{Left, Pass, State};
pub use process::Process;
pub(crate) use process::boot_id;
pub use rate_cap::RateCap;
pub use reaction::{ReactionSoFar, Times};
pub use run::Foretold;
pub use so_far::{AccountSoFar, ComparedSoFar, ContentSoFar, Learnt, Owned, RunSoFar};
pub use words::in_words;

use idlewise::drive::{Compared, Measured};
use idlewise::policy::Account;
use idlewise::{Bytes, Nanos};

/// Where a scrub stands, for whoever watches.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// What it is doing, and why.
    pub doing: Doing,
    /// Bytes of the device verified in this pass.
    pub verified: Bytes,
    /// Bytes verified since this run began.
    pub verified_now: Bytes,
    /// Size of the device.
    pub size: Bytes,
    /// Time since this run began.
    pub elapsed: Nanos,
    /// Unreadable blocks so far.
    pub bad_blocks: u64,
    /// Requests repeated so far.
    pub retries: u64,
    /// What the foreground suffered so far.
    pub measured: Measured,
    /// Request size and idle wait in use.
    pub plan: Option<(Bytes, Nanos)>,
    /// Larger requests would take longer than the maximum slowdown; the plan has some.
    pub cut_to: Option<Bytes>,
    /// How the account of the mean slowdown stands, if one is to be kept.
    pub account: Option<Account>,
    /// What comparing used idle intervals with some left alone has found.
    pub compared: Option<Compared>,
    /// How long this run has been paused because that was overdrawn.
    pub paused: Nanos,
    /// What the owners of the data said, where they are asked.
    pub content: Option<ContentSoFar>,
    /// Why the checkpoint could not be saved, when it was last tried.
    pub unsaved: Option<String>,
    /// Why the run failed, if it did.
    pub failure: Option<String>,
}

/// What a scrub does at the moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Doing {
    /// Watching the foreground before the first request.
    #[default]
    Observing,
    /// Measuring how long requests of each size take.
    Calibrating,
    /// A request of ours is in service.
    Verifying,
    /// Narrowing an unreadable stretch down to its blocks.
    Narrowing,
    /// Foreground requests are outstanding.
    ForegroundActive,
    /// The disk is idle, but not yet for long enough.
    IdleWait,
    /// The disk is idle, but the account of the slowdown holds less than one more collision may cost.
    Overdrawn {
        /// How much longer the disk must be idle for the scrub to go on nevertheless.
        left: Nanos,
    },
    /// The policy wants nothing more in this idle interval.
    PolicyStopped,
    /// An idle interval that could be used is left alone, to compare with.
    Control,
    /// Something else than the medium was in the way of the last request.
    Retrying,
    /// The disk is idle, but the cap of the rate is reached.
    RateLimit,
    /// The disk is idle, but even its smallest requests took longer than the maximum slowdown.
    TooSlow,
    /// Someone else checks this disk.
    Others(String),
    /// A request of ours has been in service for unusually long.
    Hung(Nanos),
}

impl Doing {
    /// Name of [`Self::Overdrawn`].
    pub const OVERDRAWN: &str = "overdrawn";
    /// Name of [`Self::Hung`].
    pub const HUNG: &str = "hung";
    /// What a process does that a signal has stopped; it cannot say so itself.
    pub const STOPPED: &str = "stopped";

    /// Whether it goes on as before, pauses for the goal included: nobody knows how long a request that hangs will.
    pub fn goes_on(&self) -> bool {
        !matches!(self, Self::Hung(_))
    }

    /// Its name, as in files and `--json`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Observing => "observing",
            Self::Calibrating => "calibrating",
            Self::Verifying => "verifying",
            Self::Narrowing => "narrowing",
            Self::ForegroundActive => "foreground-active",
            Self::IdleWait => "idle-wait",
            Self::Overdrawn { .. } => Self::OVERDRAWN,
            Self::PolicyStopped => "policy-stopped",
            Self::Control => "control",
            Self::Retrying => "retrying",
            Self::RateLimit => "rate-limit",
            Self::TooSlow => "too-slow",
            Self::Others(_) => "others",
            Self::Hung(_) => "hung",
        }
    }
}
