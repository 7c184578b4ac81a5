//! The trace formats: one file each, one line each in [`FORMATS`].

mod alibaba;
mod blkparse;
mod blkreplay;
mod blktrace;
mod csv;
mod digits;
mod disksim;
mod etw;
mod fields;
mod fiu;
mod iolog;
mod known;
pub mod lines;
mod msr;
mod msr_short;
mod names;
mod nexus;
mod oracle_general;
mod pixel;
mod spc;
mod srt;
mod systor;
mod tencent;
mod vscsi;

use std::io::{self, Write};

pub use csv::CsvLayout;

use super::{Bad, Columns, Provenance};
use crate::Nanos;
use crate::registry::{Named, Registry};

/// Every format, in the order in which detection tries them.
pub static FORMATS: Registry<Format> = Registry::new(&[
    msr::FORMAT,
    msr_short::FORMAT,
    blkreplay::FORMAT,
    srt::FORMAT,
    spc::FORMAT,
    fiu::FORMAT,
    iolog::FORMAT,
    alibaba::FORMAT,
    tencent::FORMAT,
    systor::FORMAT,
    etw::FORMAT,
    blkparse::FORMAT,
    blktrace::FORMAT,
    nexus::FORMAT,
    pixel::FORMAT,
    vscsi::VERSION_2,
    vscsi::VERSION_1,
    disksim::FORMAT,
    oracle_general::FORMAT,
]);

/// What the reader needs to know of a format.
pub struct Format {
    /// Short name, as in `--json`.
    pub name: &'static str,
    /// What it is, for people.
    pub about: &'static str,
    /// Whether the first bytes of the (decompressed) content are of this format.
    pub detect: fn(&[u8]) -> bool,
    /// What its rows are, and whether they depend on each other.
    pub rows: Rows,
    /// The finest time difference it can express.
    pub resolution: Nanos,
    /// A new parser.
    pub parser: fn() -> Box<dyn Parser>,
    /// How to write it, where that is possible.
    pub writer: Option<Output>,
    /// A small valid file of this format, for the tests that walk this table.
    pub sample: fn() -> Vec<u8>,
}

impl Named for Format {
    fn name(&self) -> &'static str {
        self.name
    }
}

/// What the rows of a format are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Requests, each readable without the others: pieces of a file can be parsed side by side.
    Alone,
    /// Requests that are read one after the other.
    InOrder,
    /// Events of requests: queued, issued, completed.
    Events,
}

/// How a format is written.
pub struct Output {
    /// The end of the names of its files, without the dot.
    pub extension: &'static str,
    /// Whether it keeps response times.
    pub keeps_responses: bool,
    /// A new writer of a trace that comes from there.
    pub writer: fn(&Provenance) -> Box<dyn Writer>,
}

/// Requests in, bytes out.
pub trait Writer: Send {
    /// Writes requests in order of arrival, the first of the trace at time zero.
    ///
    /// # Errors
    /// What `out` says, or what this format cannot hold.
    fn write(&mut self, requests: &Columns, out: &mut dyn Write) -> io::Result<()>;
}

/// Bytes in, records out. A parser opens no file and never panics.
pub trait Parser: Send {
    /// Reads records from the front of `input` into `out` and returns the bytes used; zero asks for more input.
    /// With `last`, no more input follows. Arrival times may have any origin.
    ///
    /// # Errors
    /// The first bad record, with the bytes to skip so that parsing can go on behind it.
    fn parse(&mut self, input: &[u8], last: bool, out: &mut Columns) -> Result<usize, Bad>;

    /// Lines read since the last call, where the format has lines. Those of mistakes are counted from there as well.
    fn take_lines(&mut self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{ReadOptions, parse_bytes};

    #[test]
    fn every_format_reads_its_sample_and_no_other_claims_it() {
        for format in FORMATS.iter() {
            let sample = (format.sample)();
            let claims: Vec<_> = FORMATS.iter().filter(|f| (f.detect)(&sample)).map(|f| f.name).collect();
            assert_eq!(claims, [format.name]);
            let trace = parse_bytes("sample", &sample, &ReadOptions::default()).unwrap();
            assert_eq!(trace.provenance.format, format.name);
            assert!(trace.len() >= 2, "{}", format.name);
        }
    }

    #[test]
    fn input_in_pieces_gives_the_same_records() {
        for format in FORMATS.iter() {
            let sample = (format.sample)();
            let (mut parser, mut columns) = ((format.parser)(), Columns::default());
            let (mut start, mut end) = (0, 0);
            while end < sample.len() || start < end {
                end = (end + 7).min(sample.len());
                match parser.parse(&sample[start..end], end == sample.len(), &mut columns).unwrap() {
                    0 if end == sample.len() => break,
                    consumed => start += consumed,
                }
            }
            let mut whole = Columns::default();
            let (mut parser, mut used) = ((format.parser)(), 0);
            while used < sample.len() {
                used += parser.parse(&sample[used..], true, &mut whole).unwrap();
            }
            assert_eq!(columns.offset, whole.offset, "{}", format.name);
            assert_eq!(columns.arrival, whole.arrival, "{}", format.name);
        }
    }
}
