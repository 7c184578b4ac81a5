//! Parts of a file that are read apart, as by the tasks of a fleet's job.

use std::ops::Range;

use super::formats::{FORMATS, Format, Rows};
use super::{ReadOptions, Reader};
use crate::Nanos;

/// A part of a file whose rows can be read one without the other. Parts of one file that are cut at the same times have each of its
/// requests once, if all requests of a part's time lie within its bytes: those that are out of order by less than what its bytes reach
/// beyond its time.
#[derive(Clone)]
pub struct Slice {
    pub(super) format: &'static Format,
    pub(super) bytes: Range<u64>,
    pub(super) arrivals: Range<Nanos>,
}

impl Slice {
    /// The lines that begin in these bytes of a file, and of what they hold the requests that arrive then, on the source's clock. What else
    /// was read is counted in [`Provenance::outside`](super::Provenance::outside). None for a format whose rows cannot be read one
    /// without the other.
    pub fn new(format: &str, bytes: Range<u64>, arrivals: Range<Nanos>) -> Option<Self> {
        Some(Self { format: Self::format(format)?, bytes, arrivals })
    }

    /// The format of these lines of a file and the first arrival in them, by which it may be cut there; none if its rows cannot be read
    /// one without the other, or if it holds no text.
    pub fn first_arrival(lines: &[u8]) -> Option<(&'static str, Nanos)> {
        let options = ReadOptions { skip_bad: true, ..ReadOptions::default() };
        let mut reader = Reader::of_bytes("", lines, &options).ok()?;
        reader.next().ok()??;
        let found = reader.provenance();
        let format = Self::format(found.format)?;
        (found.compression.is_none() && found.passed_over.is_none()).then_some((format.name, found.origin))
    }

    fn format(name: &str) -> Option<&'static Format> {
        FORMATS.get(name).filter(|format| format.rows == Rows::Alone)
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use proptest::prelude::*;

    use super::*;
    use crate::trace::{Columns, Trace, TraceError};

    fn read(path: &std::path::Path, slice: Option<&Slice>) -> Result<Trace, TraceError> {
        Reader::open(&[path.into()], &ReadOptions { slice, ..ReadOptions::default() })?.collect()
    }

    proptest! {
        /// Rows are out of order by up to some lines, and end at any byte.
        #[test]
        fn slices_have_each_request_once(steps in prop::collection::vec(0u64..4, 2..300), late in 0u64..20, size in 30u64..4_000) {
            let (mut text, mut at) = (String::new(), 1_000_000);
            for (number, step) in steps.iter().enumerate() {
                at += step * 10_000;
                let early = (number as u64 * 7 % 5) * late * 1_000;
                writeln!(text, "{},hm,{},Read,{},512,20", at - early, number % 3, number * 512).unwrap();
            }
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("t.csv");
            std::fs::write(&path, &text).unwrap();
            let whole = read(&path, None).unwrap();
            let len = text.len() as u64;
            let (mut cuts, mut latest) = (vec![(0, Nanos::ZERO)], whole.provenance.origin);
            for begin in (1..).map(|number| number * size).take_while(|&begin| begin < len) {
                let Some(line) = text[begin as usize..].find('\n') else { continue };
                let Some((format, first)) = Slice::first_arrival(&text.as_bytes()[begin as usize + line + 1..]) else { continue };
                prop_assert_eq!(format, "msr");
                // Each has at least the request at its beginning.
                if first > latest {
                    latest = first;
                    cuts.push((begin, first));
                }
            }
            cuts.push((len, Nanos(u64::MAX)));
            // Beyond what is out of order.
            let margin = 300 * 40;
            let (mut all, mut outside) = (Columns::default(), 0);
            for pair in cuts.windows(2) {
                let bytes = pair[0].0.saturating_sub(margin)..pair[1].0 + margin;
                let slice = Slice::new("msr", bytes, pair[0].1..pair[1].1).unwrap();
                let mut part = read(&path, Some(&slice)).unwrap();
                outside += part.provenance.outside;
                let origin = part.provenance.origin.since(whole.provenance.origin);
                part.columns.arrival.iter_mut().for_each(|at| *at = *at + origin);
                all.append(part.columns).unwrap();
            }
            prop_assert_eq!(&all.arrival, &whole.columns.arrival);
            prop_assert_eq!(&all.offset, &whole.columns.offset);
            prop_assert!(cuts.len() == 2 || outside > 0);
        }
    }

    #[test]
    fn only_rows_that_stand_alone_are_cut() {
        for format in FORMATS.iter() {
            let found = Slice::first_arrival(&(format.sample)());
            assert_eq!(found.map(|(name, _)| name), (format.rows == Rows::Alone).then_some(format.name));
        }
        assert_eq!((Slice::first_arrival(b""), Slice::first_arrival(b"\x1f\x8b")), (None, None));
    }

    #[test]
    fn what_is_no_plain_file_has_no_slices() {
        let slice = Slice::new("msr", 0..9, Nanos::ZERO..Nanos(u64::MAX)).unwrap();
        let error = read("/dev/null".as_ref(), Some(&slice)).unwrap_err().to_string();
        assert!(error.contains("only of a plain file"), "{error}");
    }
}
