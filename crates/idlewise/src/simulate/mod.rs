//! A policy's background work run against recorded idle intervals: what gets done, and what the foreground pays.

mod engine;
#[cfg(test)]
pub mod naive;
mod run;
mod summary;
mod work;

pub use engine::{Lane, Outcome, Simulation};
pub use run::{Foreground, Run, run, run_while, scrub, simulate};
pub use summary::Summary;
pub use work::{Command, Detail, ParityUpdates, Scrub, Served, Service, Tally, Work, WriteVerification};
