//! The service: every disk is verified in time, within its slowdown goal.
//!
//! ```text
//! Config ──► Wish of a disk ─┐
//! machine ─► disks, the time ─┼─► decision ──► Worker   one process of `idlewise scrub`, begun and ended
//! Record ──► its hours ───────┘       │ └────► Record    what the hour gave, what passes cost
//! Overview ──► messages ──► a folder, from which `idlewise notify` sends them
//! web, control ──► orders ────────────┘ └────► Overview ──► web   page, metrics, status
//! ```
//!
//! When a pass begins, how it stands and what it may spend is decided by [`idlewise::schedule`], which reads no clock.

mod config;
mod control;
mod daemon;
mod decision;
mod disk;
mod finder;
// With the tests as well, so that it is seen to build.
#[cfg(any(fuzzing, test))]
pub mod fuzzing;
mod machine;
mod messages;
mod orders;
mod outbox;
mod overview;
pub mod play;
mod recent;
mod record;
mod told;
mod web;
mod worker;

pub use config::{Config, ConfigError, Notify, OnBattery, SENDMAIL, Sleeping, Webhook, WhenBehind, Wish};
pub use control::Until;
pub use daemon::{Daemon, Options};
pub use decision::{Facts, Next, Reason, next};
pub use machine::{Moment, Present, present};
pub use messages::{Kind, Message};
pub use outbox::{Outbox, outbox};
pub use record::{Done, Known, Paused, Record};
pub use web::http::escaped;
pub use web::listen::connect;
