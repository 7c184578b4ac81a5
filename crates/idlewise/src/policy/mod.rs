//! When background work may run: one trait, one file a policy, one line each in [`POLICIES`].
//!
//! The simulator and the live scrubber drive the same object. It never reads a clock: it is told what happens and
//! how long the device has been idle, and answers what to do next.

mod account;
mod adaptive;
mod budget;
mod clairvoyant;
mod fixed_delay;
mod growing;
mod parameter;
mod parameters;
mod predicting;
pub mod restrained;
pub mod shaped;
mod table;
pub mod testing;
pub(crate) mod waiting;

pub use account::{Account, Tail};
pub use adaptive::{Adaptive, MAX_SLOWDOWN, MEAN_SLOWDOWN};
pub use budget::{BUDGET, Budget};
pub use clairvoyant::{Clairvoyant, LONGEST};
pub use fixed_delay::{DELAY, FixedDelay};
pub use growing::{GROWTH, Growing, Growth, INCREMENT, LARGEST_SIZE, SWAP_AT};
pub use parameter::{Kind, Parameter, Tried, Value};
pub use parameters::{COMMON, Given, ParameterError, Parameters, REQUEST_SIZE, Setting, all_parameters};
pub use predicting::{Predicting, THRESHOLD};
pub use restrained::{BUSY_PERIOD, RELATIVE_DELAY, Restrained};
pub use shaped::Shaped;
pub use table::{Build, Entry, POLICIES, build};
pub use waiting::{IDLE_WAIT, Waiting};

use crate::{Bytes, Nanos};

/// What a policy wants to do next in an idle interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Ask again when the device has been idle for `until`, which is later than now.
    Wait {
        /// Elapsed idle time.
        until: Nanos,
    },
    /// Issue `count` requests of `size`, each when the one before completes, then ask again.
    Issue {
        /// Size of each request.
        size: Bytes,
        /// How many, at least one; [`u64::MAX`] for as long as the device stays idle.
        count: u64,
    },
    /// Issue one request of `size` after the other, each `pause` after the one before completed, as long as the device stays idle.
    /// The policy may be asked again whenever one has completed, and is after the last.
    Paced {
        /// Size of each request.
        size: Bytes,
        /// From the end of one to the beginning of the next.
        pause: Nanos,
    },
    /// Nothing more in this interval.
    Stop,
}

/// Decides when background requests start, and their size.
pub trait Policy: Send {
    /// The interval that begins now will last for `length`. Only a simulator can tell; a live scrubber never does.
    fn interval_foreseen(&mut self, length: Nanos) {
        let _ = length;
    }

    /// The device became idle at `at`; the foreground work before that began `busy` before it. `at` is in nanoseconds since 1970
    /// where whoever drives the policy knows the wall clock, and since the trace began where not.
    fn idle_began(&mut self, busy: Nanos, at: Nanos) {
        let _ = (busy, at);
    }

    /// What to do at an elapsed idle time. Asked when the interval begins (zero), when a wait is over, and when the
    /// requests last decided on have completed.
    fn decide(&mut self, elapsed: Nanos) -> Decision;

    /// Foreground work arrived after `idle`, with `collision` left of a background request then in service (zero if
    /// none was). Issued requests complete.
    fn foreground_arrived(&mut self, idle: Nanos, collision: Nanos) {
        let _ = (idle, collision);
    }

    /// So many foreground requests were served, delayed by `delays` together. Where a 99th percentile is kept, each of
    /// them was delayed by more than that, or none.
    fn foreground_served(&mut self, requests: u64, delays: Nanos) {
        let _ = (requests, delays);
    }

    /// The account that keeps it within a mean slowdown, where there is one.
    fn account(&self) -> Option<Account> {
        None
    }
}
