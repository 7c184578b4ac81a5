//! Block I/O traces: who asked the disk for what, and when.
//!
//! ```text
//! paths ─► inputs ─► decoder ─► ordered ─► (matcher) ─► Reader ─► batches of requests, or a Trace
//!        open, unzip  parse      sort, merge  events to
//!        and unpack   (formats)               requests
//! ```
//!
//! A `Reader` streams in flat memory; `open` reads everything into a [`Trace`]. `formats::FORMATS` is the table of
//! formats; `write` goes the other way. Without the feature `files` there are only [`Columns`] and [`Trace`], for requests that come from
//! elsewhere.

#[cfg(feature = "files")]
mod archive;
mod columns;
#[cfg(feature = "files")]
mod compression;
#[cfg(feature = "files")]
mod decoder;
#[cfg(feature = "files")]
mod error;
#[cfg(feature = "files")]
mod folder;
#[cfg(feature = "files")]
pub mod formats;
mod gaps;
#[cfg(feature = "files")]
mod inputs;
#[cfg(feature = "files")]
mod matcher;
#[cfg(feature = "files")]
mod opened;
#[cfg(feature = "files")]
mod ordered;
mod provenance;
#[cfg(feature = "files")]
mod reader;
#[cfg(feature = "files")]
mod slice;
#[cfg(feature = "files")]
mod spool;
#[cfg(feature = "files")]
pub mod stats;
#[cfg(feature = "files")]
pub mod store;
#[cfg(feature = "files")]
pub mod synth;
pub mod volumes;
#[cfg(feature = "files")]
mod window;
#[cfg(feature = "files")]
pub mod write;

pub use columns::{Columns, Op, Request, Stage};
#[cfg(feature = "files")]
pub use error::{Bad, Place, TraceError};
#[cfg(all(feature = "files", target_os = "linux"))]
pub use folder::is_mount_of_another;
#[cfg(feature = "files")]
pub use folder::{Found, entries as entries_of_found, metadata as metadata_of_found, open as open_found};
#[cfg(feature = "files")]
pub use formats::CsvLayout;
pub use gaps::{Gap, GapFinder};
#[cfg(feature = "files")]
pub use inputs::{ShareDone, expand};
pub use provenance::{Provenance, Trace, Unmatched};
#[cfg(feature = "files")]
pub use reader::{ReadOptions, Reader, open, parse_bytes};
#[cfg(feature = "files")]
pub use slice::Slice;
pub use volumes::Volumes;
