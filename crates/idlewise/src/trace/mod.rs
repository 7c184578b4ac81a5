//! Block I/O traces: who asked the disk for what, and when.
//!
//! ```text
//! paths ─► inputs ─► decoder ─► ordered ─► (matcher) ─► Reader ─► batches of requests, or a Trace
//!        open, unzip  parse      sort, merge  events to
//!        and unpack   (formats)               requests
//! ```
//!
//! A [`Reader`] streams in flat memory; [`open`] reads everything into a [`Trace`]. [`formats::FORMATS`] is the table of
//! formats; [`mod@write`] goes the other way.

mod archive;
mod columns;
mod compression;
mod decoder;
mod error;
mod folder;
pub mod formats;
mod gaps;
mod inputs;
mod matcher;
mod ordered;
mod reader;
mod spool;
pub mod stats;
pub mod store;
pub mod synth;
pub mod volumes;
pub mod write;

pub use columns::{Columns, Op, Request, Stage};
pub use error::{Bad, Place, TraceError};
pub use formats::CsvLayout;
pub use gaps::{Gap, GapFinder};
pub use inputs::ShareDone;
pub use matcher::Unmatched;
pub use reader::{Provenance, ReadOptions, Reader, open, parse_bytes};
pub use volumes::Volumes;

/// A block I/O trace in memory, sorted by arrival; the first request arrives at time zero.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Where it comes from.
    pub provenance: Provenance,
    /// The requests, in columns.
    pub columns: Columns,
}

impl Trace {
    /// A trace of requests that are not yet in order, nor count time from the first.
    pub fn from_columns(mut provenance: Provenance, mut columns: Columns) -> Self {
        provenance.was_sorted = columns.sort_by_arrival();
        if let Some(&first) = columns.arrival.first() {
            provenance.origin = first;
            columns.arrival.iter_mut().for_each(|at| at.0 -= first.0);
        }
        Self { provenance, columns }
    }

    /// Number of requests.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether there is no request.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The requests in order of arrival.
    pub fn requests(&self) -> impl ExactSizeIterator<Item = Request> + '_ {
        self.columns.requests()
    }
}
