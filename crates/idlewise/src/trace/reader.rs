//! From files to a [`Trace`], or to its requests as a stream.

use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::thread;

use super::decoder::{BadRecords, MOST_AHEAD, Recipe};
use super::folder::Found;
use super::inputs::{self, Inputs, Looks, ShareDone};
use super::matcher::Matcher;
use super::opened::{self, Opened};
use super::ordered::{Merged, Ordered, Room};
use super::spool::Spool;
use super::store::ParquetBatches;
use super::{Columns, CsvLayout, Provenance, Slice, Trace, TraceError, Volumes, volumes};
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
    /// Of the paths those that a pattern has found, and nobody has named: as in a folder, what is no regular file, or lies behind a link that
    /// another user may have put there, is passed over.
    pub found: &'a [Found],
    /// Read only this part of each file.
    pub slice: Option<&'a Slice>,
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
    slice: Option<&'a Slice>,
    /// Which volumes fit a pattern.
    wanted: Vec<bool>,
    provenance: Provenance,
    /// The greatest step of which all arrivals so far are multiples.
    step: u64,
    requests: u64,
    began: bool,
    ended: bool,
}

/// Batches that may wait for who takes them.
const BATCHES_AHEAD: usize = 8;
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
        Self::of_inputs(name, options, |looks| {
            inputs::open_all((paths, options.found), looks, options.slice, options.progress)
        })
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
            let opened = opened::open(input, options, &spool, names.len())?;
            provenance.add(&opened, compression);
            let prefix = options.by_file.then(|| inputs::short_name(&input_name, &names).to_string());
            of_events.push(opened.events);
            ordered.push(Ordered::new(input_name, opened.batches, prefix, options, &room, names.len()));
        }
        if ordered.is_empty() {
            return Err(opened::unknown(name));
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
            slice: options.slice,
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
            // Most batches are within the slice, and are in order.
            let ends = [columns.arrival.first(), columns.arrival.last()];
            if let Some(Slice { arrivals, .. }) = self.slice
                && !ends.into_iter().flatten().all(|arrival| arrivals.contains(arrival))
            {
                let read = columns.len();
                columns.retain(|request| arrivals.contains(&request.arrival));
                self.provenance.outside += (read - columns.len()) as u64;
            }
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

    /// Hands over all requests that are left, batch by batch as [`Self::next`] gives them, with how the trace has been read until then.
    /// Meanwhile a thread reads the next ones.
    ///
    /// # Errors
    /// As [`Self::next`]; and that of `take`, after which nothing more is read.
    pub fn each<E: From<TraceError>>(
        &mut self,
        mut take: impl FnMut(Columns, &Provenance) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.merged.inputs.len() <= MOST_AHEAD {
            thread::scope(|scope| {
                let (send, given) = sync_channel(BATCHES_AHEAD);
                let read = || {
                    let send = send;
                    let mut goes_on = true;
                    while goes_on {
                        let next = self.next_and_how();
                        goes_on = matches!(next, Ok(Some(_)));
                        goes_on &= send.send(next).is_ok();
                    }
                };
                // Without a thread all of it is left for below.
                let _ = thread::Builder::new().name("reading".into()).spawn_scoped(scope, read);
                for next in given {
                    let Some((columns, provenance)) = next? else { break };
                    take(columns, &provenance)?;
                }
                Ok::<(), E>(())
            })?;
        }
        while let Some((columns, provenance)) = self.next_and_how()? {
            take(columns, &provenance)?;
        }
        Ok(())
    }

    fn next_and_how(&mut self) -> Result<Option<(Columns, Provenance)>, TraceError> {
        let next = self.next()?;
        Ok(next.map(|columns| (columns, self.provenance())))
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
        let several = inputs.len() > 1;
        let samples = inputs.iter().flat_map(|input| {
            let bad = input.bad().samples.iter();
            bad.map(move |bad| if several { format!("{}: {bad}", input.name()) } else { bad.to_string() })
        });
        let observed = if self.requests >= SURE && self.step >= COARSE.0 { Nanos(self.step) } else { Nanos::ZERO };
        Provenance {
            resolution: self.provenance.resolution.max(observed),
            was_sorted: inputs.iter().all(Ordered::was_sorted),
            bad_records: inputs.iter().map(|input| input.bad().count).sum(),
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

impl Provenance {
    fn add(&mut self, opened: &Opened, compression: Option<&'static str>) {
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
mod tests;
