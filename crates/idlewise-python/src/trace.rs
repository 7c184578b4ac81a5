//! Traces: where requests come from, and their reading.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::ArrowError;
use idlewise::Bytes;
use idlewise::trace::{Columns, CsvLayout, Provenance, ReadOptions, Reader, TraceError, volumes};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::capsule::{self, Made};
use crate::disk::Disk;
use crate::error::Error;
use crate::idle::Idleness;
use crate::ordered::Ordered;
use crate::requests::{self, Layout};
use crate::running::{self, Watch};
use crate::table::one_batch;
use crate::units::Size;
use crate::values::to_python;

/// Batches of requests that wait for whoever reads the stream.
const AHEAD: usize = 2;

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
    volumes: Vec<String>,
    columns: Option<CsvLayout>,
    skip_bad: bool,
    by_file: bool,
    whole: bool,
    memory_limit: Option<Bytes>,
}

/// What a whole reading has shown.
#[derive(Clone)]
struct Seen {
    provenance: Provenance,
    requests: u64,
    volumes: Vec<String>,
}

/// A trace of requests. Nothing is read before it is asked for.
#[pyclass(frozen, module = "idlewise")]
pub struct Trace {
    inner: Arc<Inner>,
    /// What must live as long, such as a folder of temporary files.
    _kept: Option<Py<PyAny>>,
}

/// What is read without Python's lock.
pub struct Inner {
    pub name: String,
    source: Source,
    reading: Reading,
    seen: OnceLock<Seen>,
}

impl Trace {
    /// A trace that was made here.
    pub fn of_memory(name: &str, trace: idlewise::trace::Trace) -> Self {
        let (source, reading) = (Source::Memory(Box::new(trace)), Reading::default());
        Self { inner: Arc::new(Inner { name: name.into(), source, reading, seen: OnceLock::new() }), _kept: None }
    }

    pub fn inner(&self) -> Arc<Inner> {
        self.inner.clone()
    }

    fn seen(&self, py: Python) -> PyResult<Seen> {
        if let Some(seen) = self.inner.seen.get() {
            return Ok(seen.clone());
        }
        let inner = self.inner.clone();
        running::run(py, None, move |watch| {
            let count = |(requests, names): &mut (u64, Vec<String>), columns: &Columns| {
                *requests += columns.len() as u64;
                *names = columns.volumes.iter().map(|name| name.to_string()).collect();
                Ok(())
            };
            let ((requests, names), provenance) = inner.each(watch, |_| Ok((0, Vec::new())), count)?;
            let wanted = |name: &String| inner.wants(name);
            let seen = Seen { provenance, requests, volumes: names.into_iter().filter(wanted).collect() };
            Ok(inner.seen.get_or_init(|| seen).clone())
        })
    }
}

impl Inner {
    /// Reads all requests, batch by batch. `begin` makes what `take` is given beside them; it is called again where files turn out to
    /// be so far out of order that they must be read whole.
    pub fn each<T>(
        &self,
        watch: &Watch,
        mut begin: impl FnMut(&Provenance) -> Result<T, Error>,
        mut take: impl FnMut(&mut T, &Columns) -> Result<(), Error>,
    ) -> Result<(T, Provenance), Error> {
        match &self.source {
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
        }
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
        let Reading { volumes, columns, skip_bad, by_file, memory_limit, .. } = &self.reading;
        let options = ReadOptions {
            skip_bad: *skip_bad,
            volumes,
            columns: columns.as_ref(),
            whole,
            by_file: *by_file,
            memory_limit: *memory_limit,
            progress: Some(&share),
            ..ReadOptions::default()
        };
        let mut reader = Reader::open(paths, &options)?;
        let mut taken = begin(&reader.provenance())?;
        while let Some(columns) = reader.next()? {
            watch.go_on();
            take(&mut taken, &columns)?;
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
        let resolution = layout.resolution(&batches.schema());
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

    fn wants(&self, volume: &str) -> bool {
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
fn send_files(inner: &Inner, sender: &Sender) {
    let sent = Cell::new(false);
    let again = "too far out of order to be read as a stream: give whole=True to scan";
    let begin = |_: &Provenance| if sent.get() { Err(Error::Value(again.into())) } else { Ok(()) };
    let take = |(): &mut (), columns: &Columns| {
        sent.set(true);
        let gone = || Error::Value("nobody reads the stream any more".into());
        sender.send(Ok(requests::to_batch(columns))).map_err(|_| gone())
    };
    if let Err(error) = inner.each(&Watch::default(), begin, take) {
        let _ = sender.send(Err(ArrowError::ExternalError(error.message().into())));
    }
}

#[pymethods]
impl Trace {
    /// Of files; `kept` lives as long as the trace.
    #[staticmethod]
    #[pyo3(signature = (paths, name, *, volumes, columns, skip_bad, by_file, whole, memory_limit, kept))]
    #[allow(clippy::too_many_arguments, reason = "they are the options of `scan`")]
    fn _of_files(
        paths: Vec<PathBuf>,
        name: String,
        volumes: Vec<String>,
        columns: Option<&str>,
        skip_bad: bool,
        by_file: bool,
        whole: bool,
        memory_limit: Option<Size>,
        kept: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let layout = columns.map(str::parse::<CsvLayout>).transpose();
        let columns = layout.map_err(|error| Error::Value(format!("columns: {error}")))?;
        let memory_limit = memory_limit.map(|limit| limit.0);
        let reading = Reading { volumes, columns, skip_bad, by_file, whole, memory_limit };
        let inner = Inner { name, source: Source::Files(paths), reading, seen: OnceLock::new() };
        Ok(Self { inner: Arc::new(inner), _kept: kept })
    }

    /// Of a table.
    #[staticmethod]
    #[pyo3(signature = (table, *, volumes, columns, unit))]
    fn _of_table(
        table: &Bound<PyAny>,
        volumes: Vec<String>,
        columns: Option<&Bound<PyDict>>,
        unit: Option<&str>,
    ) -> PyResult<Self> {
        let source = Source::Table(table.clone().unbind(), Layout::new(columns, unit)?);
        let (name, reading) = (table.get_type().name()?.to_string(), Reading { volumes, ..Reading::default() });
        Ok(Self { inner: Arc::new(Inner { name, source, reading, seen: OnceLock::new() }), _kept: None })
    }

    #[getter]
    fn name(&self) -> &str {
        &self.inner.name
    }

    #[getter]
    fn volumes(&self, py: Python) -> PyResult<Vec<String>> {
        Ok(self.seen(py)?.volumes)
    }

    #[getter]
    fn requests(&self, py: Python) -> PyResult<u64> {
        Ok(self.seen(py)?.requests)
    }

    #[getter]
    fn provenance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Provenance {
            format,
            compression,
            resolution,
            origin,
            was_sorted,
            bad_records,
            bad_samples,
            unmatched,
            passed_over,
        } = self.seen(py)?.provenance;
        to_python(
            py,
            &serde_json::json!({
                "format": format,
                "compression": compression,
                "resolution_ns": resolution.0,
                "origin_ns": origin.0,
                "sorted": was_sorted,
                "bad_records": bad_records,
                "bad_samples": bad_samples,
                "without_completion": unmatched.without_completion,
                "completions_without_arrival": unmatched.without_arrival,
                "passed_over": passed_over,
            }),
        )
    }

    #[pyo3(signature = (*, disk=None, progress=None))]
    fn idle(&self, py: Python, disk: Option<&Bound<PyAny>>, progress: Option<&Bound<PyAny>>) -> PyResult<Idleness> {
        let (inner, model) = (self.inner.clone(), Disk::given(disk)?);
        running::run(py, progress, move |watch| Idleness::read(&inner, model, watch))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsule::schema(py, &requests::SCHEMA)
    }

    /// Batches come as they are read, by a thread that ends with the stream.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // What is asked for is a wish; who has it casts.
        drop(requested_schema);
        let (inner, schema) = (self.inner.clone(), requests::SCHEMA.clone());
        match &self.inner.source {
            Source::Files(_) => {
                let (sender, receiver) = sync_channel(AHEAD);
                let thread = std::thread::Builder::new().name("idlewise-stream".into());
                let started = thread.spawn(move || send_files(&inner, &sender));
                started.map_err(|error| Error::Machine(format!("no thread to read with: {error}")))?;
                capsule::stream(py, Box::new(Made { schema, next: move || receiver.recv().ok() }))
            }
            Source::Table(object, layout) => {
                let batches = capsule::batches(object.bind(py))?;
                let mut ordered = Ordered::new(batches, layout.clone(), inner.reading.volumes.clone());
                let next = move || {
                    let columns = ordered.next().transpose()?;
                    let batch = columns.map(|columns| requests::to_batch(&columns));
                    Some(batch.map_err(|error| ArrowError::ExternalError(error.message().into())))
                };
                capsule::stream(py, Box::new(Made { schema, next }))
            }
            Source::Memory(trace) => one_batch(py, requests::to_batch(&trace.columns)),
        }
    }

    fn __repr__(&self) -> String {
        format!("<idlewise.Trace: {}>", self.inner.name)
    }
}
