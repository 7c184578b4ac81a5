//! Block I/O traces: who asked the disk for what, and when.
//!
//! A [`Trace`] is parallel columns, sorted by arrival, whatever file it came from. [`open`] finds the format by
//! content; [`formats::FORMATS`] is the table of formats.

mod columns;
mod compression;
mod error;
pub mod formats;
mod gaps;
mod read;

pub use columns::{Columns, Op, Request};
pub use error::{Bad, TraceError};
pub use gaps::Gap;
pub use read::{ReadOptions, open, parse_bytes};

use crate::{Bytes, Nanos};

/// A block I/O trace, sorted by arrival; the first request arrives at time zero.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Name of the format it was read from.
    pub format: &'static str,
    /// How the file was compressed, if it was.
    pub compression: Option<&'static str>,
    /// The requests, in columns.
    pub columns: Columns,
    /// The finest difference in time that the source can express.
    pub resolution: Nanos,
    /// Whether the source was in order of arrival.
    pub was_sorted: bool,
    /// Records that were skipped because they could not be read.
    pub bad_records: u64,
    /// What was wrong with the first few of them.
    pub bad_samples: Vec<String>,
}

impl Trace {
    /// Takes the columns as parsed: sorts them by arrival where needed, and counts time from the first one.
    pub fn from_columns(format: &'static str, resolution: Nanos, mut columns: Columns) -> Self {
        let was_sorted = columns.arrival.is_sorted();
        if !was_sorted {
            columns.sort_by_arrival();
        }
        if let Some(&first) = columns.arrival.first() {
            columns.arrival.iter_mut().for_each(|at| at.0 -= first.0);
        }
        Self { format, columns, resolution, was_sorted, ..Self::default() }
    }

    /// Number of requests.
    pub fn len(&self) -> usize {
        self.columns.arrival.len()
    }

    /// Whether there is no request.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The requests in order of arrival.
    pub fn requests(&self) -> impl ExactSizeIterator<Item = Request> + '_ {
        (0..self.len()).map(|index| self.columns.request(index))
    }

    /// Whether each request's completion is known.
    pub fn has_response_times(&self) -> bool {
        self.columns.response.is_some()
    }

    /// The end of the last byte that a request touches.
    pub fn extent(&self) -> Bytes {
        Bytes(self.requests().map(|r| r.offset.0.saturating_add(u64::from(r.length))).max().unwrap_or(0))
    }

    /// The part of the trace that is on one volume.
    ///
    /// # Errors
    /// [`TraceError::NoSuchVolume`] lists the volumes there are.
    pub fn volume(&self, name: &str) -> Result<Self, TraceError> {
        let Some(wanted) = self.columns.volumes.iter().position(|volume| volume == name) else {
            return Err(TraceError::NoSuchVolume { name: name.into(), volumes: self.columns.volumes.join(", ") });
        };
        let mut columns = Columns::new(self.has_response_times());
        columns.volume_id(name);
        for request in self.requests().filter(|r| usize::from(r.volume) == wanted) {
            columns.push(Request { volume: 0, ..request });
        }
        let part = Self::from_columns(self.format, self.resolution, columns);
        let compression = self.compression;
        let was_sorted = self.was_sorted;
        Ok(Self {
            compression,
            was_sorted,
            bad_records: self.bad_records,
            bad_samples: self.bad_samples.clone(),
            ..part
        })
    }
}
