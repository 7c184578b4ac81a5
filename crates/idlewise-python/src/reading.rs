//! Reading requests, batch by batch and without Python's lock, from wherever they come.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::mpsc::SyncSender;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use idlewise::Bytes;
use idlewise::trace::{
    Columns, CsvLayout, Found, Provenance, ReadOptions, Reader, Slice, TraceError, Volumes, volumes,
};
use pyo3::prelude::*;

use crate::capsule;
use crate::error::Error;
use crate::ordered::Ordered;
use crate::requests::{Layout, to_batch};
use crate::running::Watch;

/// Where requests come from.
pub enum Source {
    /// Files of any format.
    Files(Vec<PathBuf>),
    /// Anything that gives `__arrow_c_stream__`.
    Table(Py<PyAny>, Layout),
    /// Made here.
    Memory(Box<idlewise::trace::Trace>),
}

/// What is read of it, and how.
#[derive(Default)]
pub struct Reading {
    pub volumes: Vec<String>,
    pub columns: Option<CsvLayout>,
    pub skip_bad: bool,
    pub by_file: bool,
    pub whole: bool,
    pub memory_limit: Option<Bytes>,
    pub found: Vec<Found>,
    pub slice: Option<Slice>,
}

/// What a whole reading has shown.
#[derive(Clone)]
pub struct Seen {
    pub provenance: Provenance,
    pub requests: u64,
    pub volumes: Vec<String>,
}

/// Requests, and how they are read.
pub struct Requests {
    pub name: String,
    pub source: Source,
    pub reading: Reading,
    pub seen: OnceLock<Seen>,
}

impl Requests {
    /// Reads all requests, batch by batch. `begin` makes what `take` is given beside them; it is called again where files turn out to
    /// be so far out of order that they must be read whole.
    pub fn each<T>(
        &self,
        watch: &Watch,
        mut begin: impl FnMut(&Provenance) -> Result<T, Error>,
        mut take: impl FnMut(&mut T, &Columns) -> Result<(), Error>,
    ) -> Result<(T, Provenance), Error> {
        let mut begin = |provenance: &Provenance| Ok((begin(provenance)?, 0, Volumes::default()));
        let mut take = |(taken, requests, names): &mut (T, u64, Volumes), columns: &Columns| {
            *requests += columns.len() as u64;
            names.clone_from(&columns.volumes);
            take(taken, columns)
        };
        let ((taken, requests, names), provenance) = match &self.source {
            Source::Files(paths) => match self.read(paths, self.reading.whole, watch, &mut begin, &mut take) {
                Err(Error::Trace(TraceError::OutOfOrder(_))) => self.read(paths, true, watch, &mut begin, &mut take),
                read => read,
            },
            Source::Table(object, layout) => self.read_table(object, layout, watch, &mut begin, &mut take),
            Source::Memory(trace) => {
                let mut taken = begin(&trace.provenance)?;
                take(&mut taken, &trace.columns)?;
                Ok((taken, trace.provenance.clone()))
            }
        }?;
        let volumes = names.iter().map(ToString::to_string).filter(|name| self.wants(name)).collect();
        self.seen.get_or_init(|| Seen { provenance: provenance.clone(), requests, volumes });
        Ok((taken, provenance))
    }

    fn read<T>(
        &self,
        paths: &[PathBuf],
        whole: bool,
        watch: &Watch,
        begin: &mut impl FnMut(&Provenance) -> Result<T, Error>,
        take: &mut impl FnMut(&mut T, &Columns) -> Result<(), Error>,
    ) -> Result<(T, Provenance), Error> {
        let share = |done| watch.share(done);
        let Reading { volumes, columns, skip_bad, by_file, memory_limit, found, slice, .. } = &self.reading;
        let options = ReadOptions {
            skip_bad: *skip_bad,
            volumes,
            columns: columns.as_ref(),
            whole,
            by_file: *by_file,
            memory_limit: *memory_limit,
            progress: Some(&share),
            found,
            slice: slice.as_ref(),
            ..ReadOptions::default()
        };
        let mut reader = Reader::open(paths, &options)?;
        // Where its clock begins is known with the first requests.
        let first = reader.next()?;
        let mut taken = begin(&reader.provenance())?;
        let mut take = |columns: &Columns| {
            watch.go_on();
            take(&mut taken, columns)
        };
        if let Some(first) = first {
            take(&first)?;
            reader.each(|columns, _| take(&columns))?;
        }
        Ok((taken, reader.provenance()))
    }

    fn read_table<T>(
        &self,
        object: &Py<PyAny>,
        layout: &Layout,
        watch: &Watch,
        begin: &mut impl FnMut(&Provenance) -> Result<T, Error>,
        take: &mut impl FnMut(&mut T, &Columns) -> Result<(), Error>,
    ) -> Result<(T, Provenance), Error> {
        let batches = Python::attach(|py| capsule::batches(object.bind(py)))?;
        let resolution = layout.resolution(batches.schema());
        let mut provenance = Provenance { format: "arrow", resolution, was_sorted: true, ..Provenance::default() };
        let mut taken = begin(&provenance)?;
        let mut ordered = Ordered::new(batches, layout.clone(), self.reading.volumes.clone());
        while let Some(columns) = ordered.next()? {
            watch.go_on();
            take(&mut taken, &columns)?;
        }
        ordered.check_any()?;
        provenance.origin = ordered.origin();
        Ok((taken, provenance))
    }

    /// Whether a volume was asked for.
    pub fn wants(&self, volume: &str) -> bool {
        let patterns = &self.reading.volumes;
        patterns.is_empty() || patterns.iter().any(|pattern| volumes::fits(pattern, volume))
    }

    /// The volume of which a plan is, where one was asked for.
    pub fn only_volume(&self, names: &[String]) -> Option<String> {
        let mut wanted = names.iter().filter(|name| self.wants(name));
        wanted.next().filter(|_| wanted.next().is_none() && !self.reading.volumes.is_empty()).cloned()
    }
}

/// Where a batch is sent to.
type Sender = SyncSender<Result<RecordBatch, ArrowError>>;

/// Sends the requests of files, without Python's lock: who waits for them may hold it.
pub fn send_files(requests: &Requests, sender: &Sender) {
    let sent = Cell::new(false);
    let again = "too far out of order to be read as a stream: give whole=True to scan";
    let begin = |_: &Provenance| if sent.get() { Err(Error::Value(again.into())) } else { Ok(()) };
    let take = |(): &mut (), columns: &Columns| {
        sent.set(true);
        let gone = || Error::Value("nobody reads the stream any more".into());
        sender.send(Ok(to_batch(columns)?)).map_err(|_| gone())
    };
    if let Err(error) = requests.each(&Watch::default(), begin, take) {
        let _ = sender.send(Err(ArrowError::ExternalError(error.message().into())));
    }
}
