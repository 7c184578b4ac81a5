//! A trace in memory, and where it comes from.

use super::{Columns, Request};
use crate::Nanos;

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

/// Where a trace comes from and how it was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Provenance {
    /// Name of the format it was read from; `several` if its files are of several.
    pub format: &'static str,
    /// How the (first) file was compressed, if it was.
    pub compression: Option<&'static str>,
    /// The finest difference in time that the source can express, or that its times show if that is coarser.
    pub resolution: Nanos,
    /// The first arrival on the clock of the source.
    pub origin: Nanos,
    /// Whether the source was in order of arrival.
    pub was_sorted: bool,
    /// Records that were skipped because they could not be read.
    pub bad_records: u64,
    /// What was wrong with the first few of them.
    pub bad_samples: Vec<String>,
    /// Requests of which a trace of events holds only a part.
    pub unmatched: Unmatched,
    /// Files of a folder or an archive that are no traces, if any.
    pub passed_over: Option<String>,
    /// Requests that were read and left out, as a part of a file was asked for and they arrive at other times.
    pub outside: u64,
}

/// Requests that are not whole in the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unmatched {
    /// Requests whose completion is not in the trace; their response is unknown.
    pub without_completion: u64,
    /// Completions of requests whose arrival is not in the trace; they are left out.
    pub without_arrival: u64,
}
