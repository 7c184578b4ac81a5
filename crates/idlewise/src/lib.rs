#![doc = include_str!("../README.md")]

mod cdh;
pub mod disk;
pub mod drive;
pub mod idle;
pub mod order;
pub mod policy;
mod quantiles;
pub mod registry;
pub mod reliability;
#[cfg(feature = "files")]
pub mod replay;
#[cfg(feature = "report")]
pub mod report;
#[cfg(feature = "files")]
pub mod sample;
pub mod schedule;
pub mod simulate;
#[cfg(feature = "files")]
pub mod small;
pub mod trace;
pub mod tune;
mod units;

pub use cdh::Cdh;
pub use units::{Bytes, Nanos, Rate, TotalTime, UnitError};
