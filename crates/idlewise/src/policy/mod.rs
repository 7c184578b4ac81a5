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
mod reserve;
pub mod restrained;
pub mod shaped;
mod table;
pub mod testing;
pub(crate) mod waiting;

pub use account::{Account, Tail, Terms};
pub use adaptive::{Adaptive, MAX_SLOWDOWN, MEAN_SLOWDOWN};
pub use budget::{BUDGET, Budget};
pub use clairvoyant::{Clairvoyant, LONGEST};
pub use fixed_delay::{DELAY, FixedDelay};
pub use growing::{GROWTH, Growing, Growth, INCREMENT, LARGEST_SIZE, SWAP_AT};
pub use parameter::{Kind, Parameter, Tried, Value};
pub use parameters::{COMMON, Given, ParameterError, Parameters, REQUEST_SIZE, Setting, all_parameters};
pub use predicting::{Predicting, THRESHOLD};
pub use reserve::{Delays, Reserve};
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
    /// Issue requests of `size` back to back, each of which begins before the device has been idle for `until`, then ask again.
    /// The policy may be asked again whenever one has completed.
    IssueUntil {
        /// Size of each request.
        size: Bytes,
        /// Elapsed idle time, which is later than now.
        until: Nanos,
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
///
/// Of each idle interval it is told once, in this order: [`idle_began`](Self::idle_began); then [`decide`](Self::decide) as often as
/// somebody asks, which may be never; [`foreground_arrived`](Self::foreground_arrived) when the first foreground request ends the interval;
/// and, before the next interval begins, [`foreground_served`](Self::foreground_served) for the requests of the busy period. A request that
/// collides is known to do so only when the background request has ended, so the last two may come late.
///
/// # Examples
/// Half of what the last interval lasted, and then no more:
/// ```
/// use idlewise::policy::{Decision, Policy, testing};
/// use idlewise::{Bytes, Nanos};
///
/// #[derive(Default)]
/// struct Half {
///     last: Nanos,
/// }
///
/// impl Policy for Half {
///     fn decide(&mut self, elapsed: Nanos) -> Decision {
///         // Asked again behind each request. A `count` of u64::MAX would go on for as long as the device stays idle.
///         let request = Decision::Issue { size: Bytes::from_kib(256), count: 1 };
///         if elapsed.0 < self.last.0 / 2 { request } else { Decision::Stop }
///     }
///
///     fn foreground_arrived(&mut self, idle: Nanos, _collision: Nanos) {
///         self.last = idle;
///     }
/// }
///
/// testing::check(Half::default, 1);
/// ```
/// [`testing::check`] finds what breaks these rules. How good a policy is, [`crate::simulate::simulate`] says: on a trace, or on what a
/// program has seen, `worker.clock().undisturbed()`.
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

    /// What to do at an elapsed idle time. The simulator asks when the interval begins (zero), when a wait is over, and when the
    /// requests last decided on have completed. Live it is asked whenever somebody has time, the first time perhaps late.
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
