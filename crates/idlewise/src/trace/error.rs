//! What can be wrong with a trace.

/// A record that cannot be read: where it is, what was found and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// `line 12, column 27` or `byte 2203`.
    pub place: String,
    /// What a valid record has there.
    pub expected: String,
    /// What this one has.
    pub found: String,
    /// Bytes of the input that end with this record, so that reading can go on behind it.
    pub consumed: usize,
}

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
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
    #[error("{path}: not a trace that idlewise reads; it reads {known}")]
    Unknown {
        /// The file.
        path: String,
        /// Names of the known formats.
        known: String,
    },
    /// A record is damaged.
    #[error("{path}: {}: expected {}, found {}; --skip-bad leaves such records out", bad.place, bad.expected, bad.found)]
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
}
