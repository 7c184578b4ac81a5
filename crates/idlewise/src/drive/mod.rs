//! Between a policy and whoever works: what a scrubber, a compaction or a backup needs to keep within a slowdown.
//!
//! [`Driver`] is told when foreground requests arrive and complete, and when a step of background work begins and ends. It says
//! when the next step may begin and how large it may be. It reads no clock: every call has the time.
//!
//! ```text
//!  foreground              Driver                      Policy                  worker
//!      │  arrived(t)          │                           │                       │
//!      ├─────────────────────►│                           │                       │
//!      │  completed(t)        │                           │        next(t)        │
//!      ├─────────────────────►│◄──────────────────────────┼───────────────────────┤
//!      │                      │  foreground_arrived       │                       │  the interval before ended so
//!      │                      ├──────────────────────────►│                       │
//!      │                      │  foreground_served        │                       │  what its requests suffered
//!      │                      ├──────────────────────────►│                       │
//!      │                      │  idle_began               │                       │  a new one began
//!      │                      ├──────────────────────────►│                       │
//!      │                      │  decide(elapsed)          │                       │
//!      │                      ├──────────────────────────►│                       │
//!      │                      │  Issue { size, count }    │                       │
//!      │                      │◄──────────────────────────┤    Step(size)         │
//!      │                      ├───────────────────────────┼──────────────────────►│
//!      │                      │◄──────────────────────────┼─── step_began(t) ─────┤
//!      │  arrived(t)          │                           │                       │  a collision
//!      ├─────────────────────►│                           │                       │
//!      │                      │◄──────────────────────────┼─── step_ended(t) ─────┤
//! ```
//!
//! [`shared()`] is the same for programs of many threads: theirs tell of requests without a lock, and a [`Worker`] blocks, or awaits, until
//! a step may begin. It is the one part of the library that reads a clock; policies are told the time of day.
//!
//! What the work costs is measured on a second clock ([`SecondClock`]) and by experiment: of the intervals that the policy
//! would use, some are drawn by lot and left alone ([`Compared`]).

mod arms;
mod displacement;
mod driver;
mod experiment;
mod learnt;
mod measured;
mod second_clock;
mod shared;
mod slowdowns;
mod worker;

pub use displacement::LEFT_ALONE;
pub use driver::{Driver, Next};
pub use experiment::Compared;
pub use learnt::Learnt;
pub use measured::Measured;
pub use second_clock::SecondClock;
pub use shared::{Foreground, Request, shared};
pub use slowdowns::Slowdowns;
pub use worker::{Step, Worker};
