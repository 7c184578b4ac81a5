//! A key-value store whose compaction runs in the gaps between its reads.
//!
//! ```text
//! reads ──────── Store::get ────────► drive::Foreground: a request, and it is done
//! compaction ─── Pace::filter_item ─► drive::Worker: may I merge on?
//! ```

pub mod pace;
pub mod reads;
pub mod store;
