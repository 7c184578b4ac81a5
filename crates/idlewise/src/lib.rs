//! Background disk work that fits into the gaps.
//!
//! This crate decides *when* background work may run on a disk and in *what size* of request, from the disk's own
//! idle times. It knows no clock and no device: traces and intervals come in, decisions and numbers come out.
//!
//! ```text
//! trace ──► idle ──► policy ──► simulate ──► tune ──► report
//! ```
//!
//! Times are [`Nanos`], sizes [`Bytes`]; every public item states its unit and where its definition comes from.
//! "DSN 2012" stands for Amvrosiadis, Oprea, Schroeder, *Practical Scrubbing: Getting to the bad sector at the right
//! time*.

mod cdh;
pub mod disk;
pub mod drive;
pub mod idle;
pub mod order;
pub mod policy;
pub mod registry;
pub mod reliability;
#[cfg(feature = "files")]
pub mod replay;
#[cfg(feature = "report")]
pub mod report;
#[cfg(feature = "files")]
pub mod sample;
pub mod simulate;
pub mod trace;
pub mod tune;
mod units;

pub use cdh::Cdh;
pub use units::{Bytes, Nanos, Rate, UnitError};
