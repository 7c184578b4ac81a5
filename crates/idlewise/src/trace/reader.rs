//! From files to a [`Trace`], or to its requests as a stream.

use std::path::PathBuf;

use super::decoder::{BadRecords, Batches, Decoder, Recipe};
use super::formats::FORMATS;
use super::inputs::{self, Input, Inputs, Looks, ShareDone};
use super::matcher::Matcher;
use super::ordered::{Merged, Ordered, Room};
use super::spool::Spool;
use super::store::ParquetBatches;
use super::{Columns, CsvLayout, Provenance, Trace, TraceError, Volumes, volumes};
use crate::{Bytes, Nanos};

/// How to read a trace.
#[derive(Clone, Copy, Default)]
pub struct ReadOptions<'a> {
    /// Count and leave out records that cannot be read, instead of failing on the first.
    pub skip_bad: bool,
    /// Only the requests of the volumes that fit one of these patterns, see [`volumes::fits`]; without any, all.
    pub volumes: &'a [String],
    /// Read a table whose columns are these, instead of finding the format by content.
    pub columns: Option<&'a CsvLayout>,
    /// Read all of an input before anything is given, and sort it: the memory is no longer flat.
    pub whole: bool,
    /// Put the name of its file before the name of each volume.
    pub by_file: bool,
    /// Let each input begin at time zero, whatever its clock says.
    pub aligned: bool,
    /// Most bytes of temporary files: members of archives, and Parquet that is compressed or comes from standard input.
    pub spool_limit: Option<Bytes>,
    /// Most bytes of memory for requests where all of an input is read before anything is given.
    pub memory_limit: Option<Bytes>,
    /// Told the share of the input that has been read.
    pub progress: Option<ShareDone<'a>>,
}

/// A trace as a stream: batches of requests in order of arrival, the first at time zero, in flat memory.
pub struct Reader<'a> {
    name: String,
    merged: Merged<'a>,
    /// Where rows are events.
    matcher: Option<Matcher>,
    /// The volumes so far: each keeps its index from batch to batch.
    volumes: Volumes,
    patterns: &'a [String],
    /// Which volumes fit a pattern.
    wanted: Vec<bool>,
    provenance: Provenance,
    /// The greatest step of which all arrivals so far are multiples.
    step: u64,
    requests: u64,
    began: bool,
    ended: bool,
}

/// A step that so many requests keep is the clock's.
const SURE: u64 = 1_000;
/// Finer ones make no difference to idle times.
const COARSE: Nanos = Nanos(100_000);

impl<'a> Reader<'a> {
    /// Opens the files as one trace: files, folders, tar archives or `-` for standard input, each plain or compressed by
    /// gzip, xz, zstd or bzip2. Formats are found by content.
    ///
    /// # Errors
    /// [`TraceError`] names the file.
    pub fn open(paths: &[PathBuf], options: &ReadOptions<'a>) -> Result<Self, TraceError> {
        let name = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
        Self::of_inputs(name, options, |looks| inputs::open_all(paths, looks, options.progress))
    }

    /// Reads from memory; `name` is what errors call it.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn of_bytes(name: &str, bytes: &'a [u8], options: &ReadOptions<'a>) -> Result<Self, TraceError> {
        Self::of_inputs(name.into(), options, |looks| inputs::open_bytes(name, bytes, looks))
    }

    fn of_inputs(
        name: String,
        options: &ReadOptions<'a>,
        open: impl FnOnce(Looks) -> Result<Inputs<'a>, TraceError>,
    ) -> Result<Self, TraceError> {
        let spool = Spool::new(options.spool_limit.unwrap_or(Bytes(u64::MAX)));
        let claims = |head: &[u8]| {
            !head.is_empty() && (ParquetBatches::claims(head) || Recipe::of(head, options.columns).is_some())
        };
        let inputs = open(Looks { claims: &claims, spool: &spool })?;
        let mut provenance = Provenance::default();
        let (mut ordered, mut of_events) = (Vec::new(), Vec::new());
        provenance.passed_over = inputs.passed_over();
        let names: Vec<String> = inputs.all.iter().map(|input| input.name.clone()).collect();
        let room = Room::new(options.memory_limit);
        for input in inputs.all {
            let (input_name, compression) = (input.name.clone(), input.compression);
            let opened = open_input(input, options, &spool, names.len())?;
            provenance.add(&opened, compression);
            let prefix = options.by_file.then(|| inputs::short_name(&input_name, &names).to_string());
            of_events.push(opened.events);
            ordered.push(Ordered::new(input_name, opened.batches, prefix, options, &room, names.len()));
        }
        if ordered.is_empty() {
            return Err(unknown(name));
        }
        let events = of_events[0];
        if of_events.contains(&!events) {
            return Err(TraceError::Mixed(name));
        }
        Ok(Self {
            name,
            merged: Merged::new(ordered),
            matcher: events.then(Matcher::default),
            volumes: Volumes::default(),
            patterns: options.volumes,
            wanted: Vec::new(),
            provenance,
            step: 0,
            requests: 0,
            began: false,
            ended: false,
        })
    }

    /// The next requests in order of arrival, at least one; none at the end.
    ///
    /// # Errors
    /// [`TraceError`] names the file, and the place of a damaged record.
    #[allow(clippy::should_implement_trait, reason = "an iterator would hide the errors")]
    pub fn next(&mut self) -> Result<Option<Columns>, TraceError> {
        while !self.ended {
            let mut columns = match (self.merged.next()?, &mut self.matcher) {
                (Some(columns), None) => columns,
                (Some(events), Some(matcher)) => matcher.settle(&events),
                (None, matcher) => {
                    self.ended = true;
                    let volumes = Columns::of_volumes(self.volumes.clone());
                    matcher.as_mut().map(|matcher| matcher.finish(volumes)).unwrap_or_default()
                }
            };
            self.settle_volumes(&mut columns)?;
            if !self.began && !columns.is_empty() {
                self.began = true;
                self.provenance.origin = columns.arrival[0];
            }
            let origin = self.provenance.origin;
            columns.arrival.iter_mut().for_each(|arrival| *arrival = arrival.since(origin));
            if !columns.is_empty() {
                self.requests += columns.len() as u64;
                self.watch_step(&columns);
                return Ok(Some(columns));
            }
        }
        self.check_end()?;
        Ok(None)
    }

    /// Gives volumes the indices that they had in batches before, and leaves out those not asked for.
    fn settle_volumes(&mut self, columns: &mut Columns) -> Result<(), TraceError> {
        let numbered = columns.number_volumes_as(&mut self.volumes);
        numbered.ok_or_else(|| TraceError::TooManyVolumes(self.name.clone()))?;
        if !self.patterns.is_empty() {
            let fits = |name: &str| self.patterns.iter().any(|pattern| volumes::fits(pattern, name));
            self.wanted.extend(self.volumes[self.wanted.len()..].iter().map(|name| fits(name)));
            columns.retain(|request| self.wanted[usize::from(request.volume)]);
        }
        Ok(())
    }

    fn watch_step(&mut self, columns: &Columns) {
        for arrival in &columns.arrival {
            if self.step != 0 && self.step < COARSE.0 {
                return;
            }
            self.step = greatest_common_divisor(self.step, arrival.0);
        }
    }

    fn check_end(&mut self) -> Result<(), TraceError> {
        self.provenance = self.provenance();
        let fits_none = |pattern: &&String| !self.volumes.iter().any(|name| volumes::fits(pattern, name));
        if let Some(pattern) = self.patterns.iter().find(fits_none) {
            return Err(TraceError::NoSuchVolume { name: pattern.clone(), volumes: inputs::name_some(&self.volumes) });
        }
        if self.began {
            return Ok(());
        }
        let Provenance { format, bad_records, .. } = self.provenance;
        Err(TraceError::Empty { path: self.name.clone(), format, bad_records })
    }

    /// How the trace has been read so far; complete at its end.
    pub fn provenance(&self) -> Provenance {
        let inputs = &self.merged.inputs;
        let bad: Vec<BadRecords> = inputs.iter().map(Ordered::bad).collect();
        let several = inputs.len() > 1;
        let samples = inputs.iter().zip(&bad).flat_map(|(input, bad)| {
            bad.samples
                .iter()
                .map(move |bad| if several { format!("{}: {bad}", input.name()) } else { bad.to_string() })
        });
        let observed = if self.requests >= SURE && self.step >= COARSE.0 { Nanos(self.step) } else { Nanos::ZERO };
        Provenance {
            resolution: self.provenance.resolution.max(observed),
            was_sorted: inputs.iter().all(Ordered::was_sorted),
            bad_records: bad.iter().map(|bad| bad.count).sum(),
            bad_samples: samples.take(BadRecords::SAMPLES).collect(),
            unmatched: self.matcher.as_ref().map(|matcher| matcher.unmatched).unwrap_or_default(),
            ..self.provenance.clone()
        }
    }

    /// Reads everything that is left into memory.
    ///
    /// # Errors
    /// As [`Self::next`].
    pub fn collect(mut self) -> Result<Trace, TraceError> {
        let mut all = Columns::default();
        while let Some(columns) = self.next()? {
            all.append(columns).ok_or_else(|| TraceError::TooManyVolumes(self.name.clone()))?;
        }
        if !self.patterns.is_empty() {
            all = only_used_volumes(all);
        }
        Ok(Trace { provenance: self.provenance(), columns: all })
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Reads the trace that the files are together.
///
/// # Errors
/// As [`Reader::open`].
pub fn open(paths: &[PathBuf], options: &ReadOptions) -> Result<Trace, TraceError> {
    Reader::open(paths, &ReadOptions { whole: true, ..*options })?.collect()
}

/// Reads a trace from memory; `name` is what errors call it.
///
/// # Errors
/// As [`Reader::open`].
pub fn parse_bytes(name: &str, bytes: &[u8], options: &ReadOptions) -> Result<Trace, TraceError> {
    Reader::of_bytes(name, bytes, &ReadOptions { whole: true, ..*options })?.collect()
}

/// An input whose format is known.
struct OpenedInput<'a> {
    format: &'static str,
    resolution: Nanos,
    events: bool,
    batches: Box<dyn Batches + 'a>,
}

fn open_input<'a>(
    input: Input<'a>,
    options: &ReadOptions<'a>,
    spool: &Spool,
    inputs: usize,
) -> Result<OpenedInput<'a>, TraceError> {
    let head = input.first_bytes().map_err(|error| TraceError::Io { path: input.name.clone(), error })?;
    if head.is_empty() {
        return Err(TraceError::Nothing(input.name.clone()));
    }
    if ParquetBatches::claims(&head) {
        drop(head);
        let parquet = ParquetBatches::open(input, spool, inputs)?;
        let resolution = parquet.resolution();
        return Ok(OpenedInput { format: "parquet", resolution, events: false, batches: Box::new(parquet) });
    }
    let recipe = Recipe::of(&head, options.columns).ok_or_else(|| unknown(input.name.clone()))?;
    drop(head);
    let (format, resolution, events) = (recipe.name, recipe.resolution, recipe.events);
    let batches = Box::new(Decoder::new(input, recipe, options.skip_bad, inputs));
    Ok(OpenedInput { format, resolution, events, batches })
}

fn unknown(path: String) -> TraceError {
    let names = [FORMATS.names(), vec!["parquet"]].concat();
    TraceError::Unknown { path, known: names.join(", ") }
}

impl Provenance {
    fn add(&mut self, opened: &OpenedInput, compression: Option<&'static str>) {
        self.compression = self.compression.or(compression);
        self.resolution = self.resolution.max(opened.resolution);
        self.format = match self.format {
            "" => opened.format,
            format if format == opened.format => format,
            _ => "several",
        };
    }
}

/// The same requests, in columns that know no other volumes than theirs.
fn only_used_volumes(columns: Columns) -> Columns {
    let mut used = Columns::default();
    for request in columns.requests() {
        let volume = used.volume_id(&columns.volumes[usize::from(request.volume)]).unwrap_or_default();
        used.push(super::Request { volume, ..request });
    }
    used
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    const MSR: &str = "128166386783630000,hm,0,Write,4096,512,20\n128166386783629990,hm,1,Read,0,1024,30\n";

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut archive = tar::Builder::new(Vec::new());
        for (name, bytes) in files {
            let mut header = tar::Header::new_ustar();
            header.set_size(bytes.len() as u64);
            header.set_cksum();
            archive.append_data(&mut header, name, *bytes).unwrap();
        }
        archive.into_inner().unwrap()
    }

    fn arrivals(trace: &Trace) -> Vec<u64> {
        trace.columns.arrival.iter().map(|arrival| arrival.0).collect()
    }

    #[test]
    fn sorts_rebases_and_decompresses() {
        for bytes in [MSR.as_bytes().to_vec(), gzip(MSR.as_bytes())] {
            let trace = parse_bytes("t.csv", &bytes, &ReadOptions::default()).unwrap();
            let Provenance { format, was_sorted, origin, .. } = trace.provenance;
            assert_eq!((format, was_sorted, origin), ("msr", false, Nanos(12_816_638_678_362_999_000)));
            assert_eq!(arrivals(&trace), [0, 1_000]);
            assert_eq!(trace.columns.volumes, ["hm_0", "hm_1"]);
            assert!(trace.columns.responses().eq([Nanos(3_000), Nanos(2_000)]));
            let read = |volumes: &[&str]| {
                let volumes: Vec<String> = volumes.iter().map(ToString::to_string).collect();
                parse_bytes("t.csv", &bytes, &ReadOptions { volumes: &volumes, ..ReadOptions::default() })
            };
            let one = read(&["hm_0"]).unwrap();
            assert_eq!((arrivals(&one), &*one.columns.volumes[0], one.columns.volumes.len()), (vec![0], "hm_0", 1));
            for both in [&["hm_*"][..], &["hm_1", "hm_0"]] {
                assert_eq!(arrivals(&read(both).unwrap()), [0, 1_000]);
            }
            for none in [&["hm_9"][..], &["hm_0", "hm_9"]] {
                assert_eq!(read(none).unwrap_err().to_string(), "no volume 'hm_9' in the trace; it has hm_0, hm_1");
            }
        }
    }

    #[test]
    fn a_name_of_more_than_255_bytes_is_a_bad_record() {
        let csv = "time=1:ns,offset=2:bytes,length=3:bytes,op=4:R/W,volume=5".parse().unwrap();
        let columns = ReadOptions { columns: Some(&csv), ..ReadOptions::default() };
        for (options, before, after, lead) in [
            (ReadOptions::default(), "1,", ",0,Read,0,512,1\n", ""),
            (ReadOptions::default(), "0 ", " read 0 512\n", "fio version 3 iolog\n"),
            (columns, "1,0,512,R,", "\n", ""),
        ] {
            let text = |bytes| format!("{lead}{before}{}{after}", "n".repeat(bytes));
            assert_eq!(parse_bytes("t", text(253).as_bytes(), &options).unwrap().len(), 1);
            let error = parse_bytes("t", text(256).as_bytes(), &options).unwrap_err().to_string();
            assert!(error.contains("expected a name of at most 255 bytes, found 'nnn"), "{error}");
        }
        let by_file = ReadOptions { by_file: true, ..ReadOptions::default() };
        let error = parse_bytes(&"f".repeat(252), MSR.as_bytes(), &by_file).unwrap_err().to_string();
        assert!(error.contains("more than 255 bytes: give it a shorter name"), "{error}");
    }

    #[test]
    fn few_names_of_many_are_named() {
        let lines: String = (0..7).map(|host| format!("{host},h{host},0,Read,0,512,1\n")).collect();
        let options = ReadOptions { volumes: &["x".into()], ..ReadOptions::default() };
        let error = parse_bytes("t", lines.as_bytes(), &options).unwrap_err().to_string();
        assert_eq!(error, "no volume 'x' in the trace; it has h0_0, h1_0, h2_0, h3_0, h4_0 and 2 more");
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
        assert_eq!((trace.len(), trace.provenance.bad_records), (4, 1));
    }

    #[test]
    fn bad_records_are_counted_and_placed_across_pieces_and_blocks() {
        let mut text = "128166386783630000,hm,0,Write,4096,512,20\n".repeat(400_000);
        let bad: Vec<usize> = vec![7, 123_456, 399_999];
        for line in &bad {
            text.replace_range(line * 42..line * 42 + 1, "x");
        }
        let options = ReadOptions { skip_bad: true, ..ReadOptions::default() };
        let trace = parse_bytes("t", text.as_bytes(), &options).unwrap();
        assert_eq!((trace.len(), trace.provenance.bad_records), (399_997, 3));
        for (line, sample) in bad.iter().zip(&trace.provenance.bad_samples) {
            assert!(sample.starts_with(&format!("line {}, column 1:", line + 1)), "{sample}");
        }
        text.replace_range(7 * 42..7 * 42 + 1, "1");
        let error = parse_bytes("t", text.as_bytes(), &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains("line 123457, column 1"), "{error}");
    }

    #[test]
    fn an_archive_is_one_trace_of_its_members() {
        let early = "1,a,0,Read,0,512,1\n9,a,0,Read,0,512,1\n";
        let late = gzip(b"5,b,0,Read,0,512,1\n");
        let archive = gzip(&tar(&[("x/README", b"about"), ("x/late.gz", &late), ("x/early", early.as_bytes())]));
        let trace = parse_bytes("t.tgz", &archive, &ReadOptions::default()).unwrap();
        assert_eq!((arrivals(&trace), trace.columns.volumes.len()), (vec![0, 400, 800], 2));
        assert_eq!(trace.provenance.passed_over.as_deref(), Some("t.tgz:x/README"));
        let options = ReadOptions { aligned: true, by_file: true, ..ReadOptions::default() };
        let aligned = parse_bytes("t.tgz", &archive, &options).unwrap();
        assert_eq!(arrivals(&aligned), [0, 0, 800]);
        assert_eq!(aligned.columns.volumes, ["late:b_0", "early:a_0"]);
    }

    #[test]
    fn members_of_every_kind_are_read_or_named() {
        use tar::EntryType::{Continuous, Directory, Link, Regular};
        let mut archive = tar::Builder::new(Vec::new());
        let long = format!("{}.csv", "n".repeat(10_000));
        for (name, kind, bytes) in
            [("a.csv", Continuous, MSR), ("folder", Directory, ""), ("b.csv", Link, ""), (&long, Regular, "")]
        {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(kind);
            header.set_size(bytes.len() as u64);
            header.set_cksum();
            archive.append_data(&mut header, name, bytes.as_bytes()).unwrap();
        }
        let trace = parse_bytes("t.tar", &archive.into_inner().unwrap(), &ReadOptions::default()).unwrap();
        let shown = format!("t.tar:b.csv, t.tar:...{}.csv", "n".repeat(251));
        assert_eq!((trace.len(), trace.provenance.passed_over), (2, Some(shown)));
    }

    #[test]
    fn a_member_that_cannot_be_unpacked_is_an_error() {
        let packed = gzip(MSR.as_bytes());
        let archive = tar(&[("a.csv", MSR.as_bytes()), ("b.csv.gz", &packed[..12])]);
        let error = parse_bytes("t.tar", &archive, &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.starts_with("t.tar: b.csv.gz: "), "{error}");
    }

    #[test]
    fn many_compressed_members_are_one_trace() {
        let packed = gzip(MSR.as_bytes());
        let names: Vec<String> = (0..100).map(|at| format!("{at}.csv.gz")).collect();
        let members: Vec<(&str, &[u8])> = names.iter().map(|name| (&**name, &packed[..])).collect();
        assert_eq!(parse_bytes("t.tar", &tar(&members), &ReadOptions::default()).unwrap().len(), 200);
    }

    #[test]
    fn the_clock_is_as_coarse_as_its_times() {
        let lines = |step: u64, offset: u64| -> String {
            (0..2_000u64).map(|k| format!("{},hm,0,Read,0,512,1\n", (k * k % 777 + 5 * k) * step + offset)).collect()
        };
        let resolution =
            |text: &str| parse_bytes("t", text.as_bytes(), &ReadOptions::default()).unwrap().provenance.resolution;
        assert_eq!(resolution(&lines(10_000_000, 7)), Nanos::from_secs(1));
        assert_eq!(resolution(&lines(10, 7)), Nanos(100));
        let few: String = lines(10_000_000, 7).split_inclusive('\n').take(20).collect();
        assert_eq!(resolution(&few), Nanos(100), "too few to tell");
    }

    #[test]
    fn events_and_requests_do_not_mix() {
        let sample = |name| (FORMATS.get(name).unwrap().sample)();
        let archive = tar(&[("a", &sample("blkparse")), ("b", &sample("spc"))]);
        assert!(matches!(parse_bytes("t", &archive, &ReadOptions::default()), Err(TraceError::Mixed(_))));
    }

    #[test]
    fn of_an_archive_only_traces_are_unpacked_and_no_deeper_than_two_levels() {
        let zeros = vec![0; 3 << 20];
        let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
        bzip2.write_all(MSR.repeat(10_000).as_bytes()).unwrap();
        let traces = tar(&[("zeros", &zeros), ("empty", b""), ("hm.bz2", &bzip2.finish().unwrap())]);
        let limited = |bytes| ReadOptions { spool_limit: Some(Bytes(bytes)), ..ReadOptions::default() };
        let trace = parse_bytes("t.tar", &traces, &limited(100_000)).unwrap();
        assert_eq!((trace.len(), trace.provenance.passed_over.as_deref()), (20_000, Some("t.tar:zeros, t.tar:empty")));
        let error = parse_bytes("t.tar", &traces, &limited(100)).unwrap_err().to_string();
        assert!(error.starts_with("t.tar: more than 100 B of temporary files in "), "{error}");
        let two = gzip(&tar(&[("inner.tar", &traces)]));
        assert_eq!(parse_bytes("t.tgz", &two, &ReadOptions::default()).unwrap().len(), 20_000);
        let error =
            parse_bytes("t.tar", &tar(&[("outer.tgz", &two)]), &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains("archives in archives in archives; 2 levels are read"), "{error}");
    }

    #[test]
    fn a_header_of_an_archive_is_short() {
        let mut archive = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::GNULongName);
        header.set_size(2 << 20);
        header.set_cksum();
        archive.append_data(&mut header, "x", &vec![b'n'; 2 << 20][..]).unwrap();
        let error = parse_bytes("t", &archive.into_inner().unwrap(), &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains("a header of more than 1 MiB"), "{error}");
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
            for format in FORMATS.iter() {
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
