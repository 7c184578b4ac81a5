//! What can be wrong with a trace.

use std::fmt;

use crate::Bytes;

/// A record that cannot be read: where it is, what was found and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// Where it is.
    pub place: Place,
    /// What a valid record has there.
    pub expected: String,
    /// What this one has.
    pub found: String,
    /// Bytes of the input that end with this record, so that reading can go on behind it.
    pub consumed: usize,
}

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line and a column, counted from 1.
    Line {
        /// The line.
        line: u64,
        /// The column in bytes.
        column: usize,
    },
    /// A byte, counted from 0.
    Byte(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { line, column } => write!(f, "line {line}, column {column}"),
            Self::Byte(byte) => write!(f, "byte {byte}"),
        }
    }
}

impl Bad {
    /// A bad record of `consumed` bytes at `place`.
    pub fn new(place: Place, expected: impl Into<String>, found: &[u8], consumed: usize) -> Self {
        const SHOWN: usize = 40;
        let text: String = String::from_utf8_lossy(&found[..found.len().min(SHOWN)]).escape_debug().collect();
        let more = if found.len() > SHOWN { "..." } else { "" };
        let found = if found.is_empty() { "nothing".into() } else { format!("'{text}{more}'") };
        Self { place, expected: expected.into(), found, consumed }
    }

    /// The same in a file that has `lines` more before it.
    pub(super) fn after(mut self, lines: u64) -> Self {
        if let Place::Line { line, .. } = &mut self.place {
            *line += lines;
        }
        self
    }
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, found {}", self.place, self.expected, self.found)
    }
}

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file cannot be opened or read.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// There is nothing in it.
    #[error("{0}: empty")]
    Nothing(String),
    /// No reader knows the content.
    #[error("{path}: not a trace that idlewise reads; it reads {known}, and other tables with --columns")]
    Unknown {
        /// The file.
        path: String,
        /// Names of the known formats.
        known: String,
    },
    /// A record is damaged.
    #[error("{path}: {bad}; --skip-bad leaves such records out")]
    Bad {
        /// The file.
        path: String,
        /// The record.
        bad: Bad,
    },
    /// Nothing was left after parsing.
    #[error("{path}: {format}, but it holds no readable request ({bad_records} bad records)")]
    Empty {
        /// The file.
        path: String,
        /// Name of the format.
        format: &'static str,
        /// Records skipped.
        bad_records: u64,
    },
    /// A volume was asked for that is not in the trace.
    #[error("no volume '{name}' in the trace; it has {volumes}")]
    NoSuchVolume {
        /// The volume asked for.
        name: String,
        /// Those there are.
        volumes: String,
    },
    /// There are more volumes than can be told apart.
    #[error("{0}: more than 65,536 volumes")]
    TooManyVolumes(String),
    /// The name of a file is too long to be put before those of its volumes.
    #[error("{0}: its name and that of a volume take more than 255 bytes: give it a shorter name")]
    LongPrefix(String),
    /// A stream is so far out of order that it cannot be put in order on the way.
    #[error("{0}: too far out of order to be read as a stream: read it from a file, which can be sorted")]
    OutOfOrder(String),
    /// What must be read whole, to be sorted or played, is larger than the memory for it.
    #[error(
        "{path}: takes more than {limit} of memory, half of what is free, as it must be read whole: cut it, or sort it by time"
    )]
    TooLarge {
        /// The file.
        path: String,
        /// The memory for it.
        limit: Bytes,
    },
    /// Traces of requests and of events cannot be mixed.
    #[error("{0}: blktrace and blkparse events cannot be one trace together with other formats")]
    Mixed(String),
    /// A Parquet file that is no trace.
    #[error("{path}: {problem}")]
    Parquet {
        /// The file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
}
