//! The trace formats: one file each, one line each in [`FORMATS`].

mod alibaba;
mod blkreplay;
mod fiu;
mod iolog;
mod lines;
mod msr;
mod msr_short;
mod nexus;
mod pixel;
mod spc;
mod srt;
mod tencent;
mod vscsi;

pub use msr::write_msr;

use super::{Bad, Columns};
use crate::Nanos;

/// Every format, in the order in which detection tries them.
pub const FORMATS: &[Format] = &[
    msr::FORMAT,
    msr_short::FORMAT,
    blkreplay::FORMAT,
    srt::FORMAT,
    spc::FORMAT,
    fiu::FORMAT,
    iolog::FORMAT,
    alibaba::FORMAT,
    tencent::FORMAT,
    nexus::FORMAT,
    pixel::FORMAT,
    vscsi::VERSION_2,
    vscsi::VERSION_1,
];

/// What the reader needs to know of a format.
pub struct Format {
    /// Short name, as in `--json`.
    pub name: &'static str,
    /// What it is, for people.
    pub about: &'static str,
    /// Whether the first bytes of the (decompressed) content are of this format.
    pub detect: fn(&[u8]) -> bool,
    /// Whether its records have response times.
    pub has_responses: bool,
    /// The finest time difference it can express.
    pub resolution: Nanos,
    /// A new parser.
    pub parser: fn() -> Box<dyn Parser>,
    /// A small valid file of this format, for the tests that walk this table.
    pub sample: fn() -> Vec<u8>,
}

/// Bytes in, records out. A parser opens no file and never panics.
pub trait Parser {
    /// Reads records from the front of `input` into `out` and returns the bytes used; zero asks for more input.
    /// With `last`, no more input follows. Arrival times may have any origin.
    ///
    /// # Errors
    /// The first bad record, with the bytes to skip so that parsing can go on behind it.
    fn parse(&mut self, input: &[u8], last: bool, out: &mut Columns) -> Result<usize, Bad>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{ReadOptions, parse_bytes};

    #[test]
    fn every_format_reads_its_sample_and_no_other_claims_it() {
        for format in FORMATS {
            let sample = (format.sample)();
            let claims: Vec<_> = FORMATS.iter().filter(|f| (f.detect)(&sample)).map(|f| f.name).collect();
            assert_eq!(claims, [format.name]);
            let trace = parse_bytes("sample", &sample, &ReadOptions::default()).unwrap();
            assert_eq!(trace.format, format.name);
            assert_eq!(trace.has_response_times(), format.has_responses, "{}", format.name);
            assert!(trace.len() >= 2, "{}", format.name);
        }
    }

    #[test]
    fn input_in_pieces_gives_the_same_records() {
        for format in FORMATS {
            let sample = (format.sample)();
            let (mut parser, mut columns) = ((format.parser)(), Columns::new(format.has_responses));
            let (mut start, mut end) = (0, 0);
            while end < sample.len() || start < end {
                end = (end + 7).min(sample.len());
                match parser.parse(&sample[start..end], end == sample.len(), &mut columns).unwrap() {
                    0 if end == sample.len() => break,
                    consumed => start += consumed,
                }
            }
            let whole = parse_bytes("sample", &sample, &ReadOptions::default()).unwrap();
            assert_eq!(columns.offset, whole.columns.offset, "{}", format.name);
        }
    }
}
