//! From a file to a [`Trace`]: decompression, detection by content, and the loop that feeds a parser.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::compression::decompressed;
use super::formats::{FORMATS, Format};
use super::{Bad, Columns, Trace, TraceError};

/// How much of the content the detection sees.
const HEAD: usize = 64 << 10;
/// How much is read at a time.
const CHUNK: usize = 1 << 20;
/// How many bad records are kept as samples.
const SAMPLES: usize = 10;

/// How to read a trace.
#[derive(Default)]
pub struct ReadOptions<'a> {
    /// Count and leave out records that cannot be read, instead of failing on the first.
    pub skip_bad: bool,
    /// Told the bytes read of the file and the file's size.
    pub progress: Option<&'a dyn Fn(u64, u64)>,
}

/// Reads the trace at `path`, plain or compressed by gzip, xz, zstd or bzip2; its format is found by content.
///
/// # Errors
/// [`TraceError`] names the file, and the line and column of a damaged record.
pub fn open(path: &Path, options: &ReadOptions) -> Result<Trace, TraceError> {
    let name = path.display().to_string();
    let io_error = |error| TraceError::Io { path: name.clone(), error };
    let file = File::open(path).map_err(io_error)?;
    let size = file.metadata().map_err(io_error)?.len();
    let counted = Counted { file, size, done: 0, progress: options.progress };
    let (mut plain, compression) = decompressed(counted).map_err(io_error)?;
    Ok(Trace { compression, ..parse(&name, &mut plain, options)? })
}

/// Reads a trace from memory; `name` is what errors call it.
///
/// # Errors
/// As [`open`].
pub fn parse_bytes(name: &str, bytes: &[u8], options: &ReadOptions) -> Result<Trace, TraceError> {
    let read = decompressed(bytes).map_err(|error| TraceError::Io { path: name.into(), error });
    let (mut plain, compression) = read?;
    Ok(Trace { compression, ..parse(name, &mut plain, options)? })
}

/// A file that tells how much of it has been read.
struct Counted<'a> {
    file: File,
    size: u64,
    done: u64,
    progress: Option<&'a dyn Fn(u64, u64)>,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.done += count as u64;
        if let Some(progress) = self.progress {
            progress(self.done, self.size);
        }
        Ok(count)
    }
}

fn parse(path: &str, input: &mut dyn Read, options: &ReadOptions) -> Result<Trace, TraceError> {
    let io_error = |error| TraceError::Io { path: path.into(), error };
    let mut window = Vec::new();
    (&mut *input).take(HEAD as u64).read_to_end(&mut window).map_err(io_error)?;
    if window.is_empty() {
        return Err(TraceError::Nothing(path.into()));
    }
    let format = detect(&window).ok_or_else(|| TraceError::Unknown {
        path: path.into(),
        known: FORMATS.iter().map(|format| format.name).collect::<Vec<_>>().join(", "),
    })?;

    let mut parser = (format.parser)();
    let mut columns = Columns::new(format.has_responses);
    let (mut bad_records, mut bad_samples) = (0, Vec::new());
    let (mut start, mut last) = (0, window.len() < HEAD);
    loop {
        match parser.parse(&window[start..], last, &mut columns) {
            Ok(0) if last => break,
            Ok(0) => {
                window.drain(..start);
                start = 0;
                let more = (&mut *input).take(CHUNK as u64).read_to_end(&mut window).map_err(io_error)?;
                last = more < CHUNK;
            }
            Ok(consumed) => start += consumed,
            Err(bad) if options.skip_bad => {
                start += bad.consumed;
                bad_records += 1;
                if bad_samples.len() < SAMPLES {
                    bad_samples.push(format!("{}: expected {}, found {}", bad.place, bad.expected, bad.found));
                }
            }
            Err(bad) => return Err(TraceError::Bad { path: path.into(), bad }),
        }
    }
    if columns.arrival.is_empty() {
        return Err(TraceError::Empty { path: path.into(), format: format.name, bad_records });
    }
    let trace = Trace::from_columns(format.name, format.resolution, columns);
    Ok(Trace { bad_records, bad_samples, ..trace })
}

fn detect(head: &[u8]) -> Option<&'static Format> {
    FORMATS.iter().find(|format| (format.detect)(head))
}

impl Bad {
    /// A bad record of `consumed` bytes at `place`.
    pub fn new(place: String, expected: impl Into<String>, found: &[u8], consumed: usize) -> Self {
        const SHOWN: usize = 40;
        let text: String = String::from_utf8_lossy(&found[..found.len().min(SHOWN)]).escape_debug().collect();
        let more = if found.len() > SHOWN { "..." } else { "" };
        let found = if found.is_empty() { "nothing".into() } else { format!("'{text}{more}'") };
        Self { place, expected: expected.into(), found, consumed }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::Nanos;
    use proptest::prelude::*;

    const MSR: &str = "128166386783630000,hm,0,Write,4096,512,20\n128166386783629990,hm,1,Read,0,1024,30\n";

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn sorts_rebases_and_decompresses() {
        for bytes in [MSR.as_bytes().to_vec(), gzip(MSR.as_bytes())] {
            let trace = parse_bytes("t.csv", &bytes, &ReadOptions::default()).unwrap();
            assert_eq!(trace.format, "msr");
            assert!(!trace.was_sorted);
            assert_eq!(trace.columns.arrival, [Nanos(0), Nanos(1_000)]);
            assert_eq!(trace.columns.volumes, ["hm_0", "hm_1"]);
            assert_eq!(trace.columns.response, Some(vec![Nanos(3_000), Nanos(2_000)]));
            assert_eq!(trace.volume("hm_0").unwrap().columns.arrival, [Nanos(0)]);
            let error = trace.volume("hm_9").unwrap_err().to_string();
            assert!(error.contains("hm_0, hm_1"), "{error}");
        }
    }

    #[test]
    fn a_bad_record_is_an_error_or_counted() {
        let text = format!("{MSR}128166386783640000,hm,0,Wrote,4096,512,20\n{MSR}");
        let error = parse_bytes("t.csv", text.as_bytes(), &ReadOptions::default()).unwrap_err().to_string();
        assert_eq!(
            error,
            "t.csv: line 3, column 25: expected Read or Write, found 'Wrote'; --skip-bad leaves such records out"
        );
        let options = ReadOptions { skip_bad: true, ..ReadOptions::default() };
        let trace = parse_bytes("t.csv", text.as_bytes(), &options).unwrap();
        assert_eq!((trace.len(), trace.bad_records), (4, 1));
    }

    #[test]
    fn a_truncated_archive_is_an_error() {
        let bytes = gzip(MSR.repeat(1000).as_bytes());
        let error = parse_bytes("t.gz", &bytes[..bytes.len() / 2], &ReadOptions::default()).unwrap_err();
        assert!(matches!(error, TraceError::Io { .. }), "{error}");
    }

    #[test]
    fn unknown_content_names_the_known_formats() {
        let error = parse_bytes("x", b"once upon a time", &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains("msr, msr-short, blkreplay"), "{error}");
    }

    proptest! {
        // Seeds of failures are printed by proptest and kept in proptest-regressions/.
        #[test]
        fn no_damage_panics_or_hangs(cut in 0usize..4000, hits in prop::collection::vec((any::<usize>(), any::<u8>()), 0..20)) {
            let options = ReadOptions { skip_bad: true, ..ReadOptions::default() };
            for format in FORMATS {
                let mut bytes = (format.sample)();
                for (at, value) in &hits {
                    let len = bytes.len();
                    bytes[at % len] = *value;
                }
                bytes.truncate(bytes.len().saturating_sub(cut % 200));
                if let Ok(trace) = parse_bytes("damaged", &bytes, &options) {
                    prop_assert!(trace.columns.arrival.is_sorted());
                    prop_assert_eq!(trace.columns.offset.len(), trace.len());
                }
            }
        }
    }
}
