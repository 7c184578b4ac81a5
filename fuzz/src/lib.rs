//! What fuzz targets share: how one is chosen, and how inputs that get past magic numbers are made of any bytes.

pub mod commands;
pub mod compressed;
pub mod load;
pub mod models;
pub mod parquet;
pub mod patch;
pub mod reading;
pub mod srt;
pub mod tar;
pub mod targets;

pub use libfuzzer_sys;
pub use libfuzzer_sys::arbitrary::{Result, Unstructured};
