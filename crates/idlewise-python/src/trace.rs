//! Traces: where requests come from, and their reading.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, OnceLock};

use arrow_schema::ArrowError;
use idlewise::Nanos;
use idlewise::report::printable::one_line;
use idlewise::trace::{Columns, CsvLayout, Found, Provenance, Slice};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::capsule::{self, Made};
use crate::disk::Disk;
use crate::error::Error;
use crate::idle::Idleness;
use crate::ordered::Ordered;
use crate::reading::{Reading, Requests, Seen, Source, send_files};
use crate::requests::{self, Layout};
use crate::running;
use crate::table::one_batch;
use crate::units::Size;
use crate::values::to_python;

/// Batches of requests that wait for whoever reads the stream.
const AHEAD: usize = 2;

#[doc = doc!("Trace")]
#[pyclass(frozen, module = "idlewise")]
pub struct Trace {
    inner: Arc<Requests>,
    /// What must live as long, such as a folder of temporary files.
    _kept: Option<Py<PyAny>>,
}

impl Trace {
    /// A trace that was made here.
    pub fn of_memory(name: &str, trace: idlewise::trace::Trace) -> Self {
        let (source, reading) = (Source::Memory(Box::new(trace)), Reading::default());
        Self { inner: Arc::new(Requests { name: name.into(), source, reading, seen: OnceLock::new() }), _kept: None }
    }

    pub fn inner(&self) -> Arc<Requests> {
        self.inner.clone()
    }

    fn seen(&self, py: Python) -> PyResult<Seen> {
        if let Some(seen) = self.inner.seen.get() {
            return Ok(seen.clone());
        }
        let inner = self.inner.clone();
        running::run(py, None, move |watch| {
            inner.each(watch, |_| Ok(()), |(), _: &Columns| Ok(()))?;
            Ok(inner.seen.get().expect("all of it was read").clone())
        })
    }
}

#[pymethods]
impl Trace {
    /// Of files, of which patterns have found some below a folder; `kept` lives as long as the trace. Of them only a slice is read, where one is given: its format, from which byte to
    /// which, and from which time to which.
    #[staticmethod]
    #[pyo3(signature = (paths, name, *, found, volumes, columns, skip_bad, by_file, whole, memory_limit, slice, kept))]
    #[allow(clippy::too_many_arguments, reason = "they are the options of `scan`")]
    fn _of_files(
        paths: Vec<PathBuf>,
        name: OsString,
        found: Vec<(PathBuf, PathBuf)>,
        volumes: Vec<String>,
        columns: Option<&str>,
        skip_bad: bool,
        by_file: bool,
        whole: bool,
        memory_limit: Option<Size>,
        slice: Option<(String, u64, u64, u64, u64)>,
        kept: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let layout = columns.map(str::parse::<CsvLayout>).transpose();
        let columns = layout.map_err(|error| Error::Value(format!("columns: {error}")))?;
        let memory_limit = memory_limit.map(|limit| limit.0);
        let of_format = |(format, begin, end, from, until): (String, u64, u64, u64, u64)| {
            Slice::new(&format, begin..end, Nanos(from)..Nanos(until))
                .ok_or_else(|| Error::Value(format!("of the format {format:?} no part of a file can be read")))
        };
        let slice = slice.map(of_format).transpose()?;
        let found = found.into_iter().map(|(path, folder)| Found { path, folder }).collect();
        let reading = Reading { volumes, columns, skip_bad, by_file, whole, memory_limit, found, slice };
        // A name that is no text is shown as well as it can be.
        let name = name.to_string_lossy().into_owned();
        let inner = Requests { name, source: Source::Files(paths), reading, seen: OnceLock::new() };
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
        Ok(Self { inner: Arc::new(Requests { name, source, reading, seen: OnceLock::new() }), _kept: None })
    }

    #[doc = doc!("Trace.name")]
    #[getter]
    fn name(&self) -> &str {
        &self.inner.name
    }

    #[doc = doc!("Trace.volumes")]
    #[getter]
    fn volumes(&self, py: Python) -> PyResult<Vec<String>> {
        Ok(self.seen(py)?.volumes)
    }

    #[doc = doc!("Trace.requests")]
    #[getter]
    fn requests(&self, py: Python) -> PyResult<u64> {
        Ok(self.seen(py)?.requests)
    }

    #[doc = doc!("Trace.provenance")]
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
            outside,
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
                "outside": outside,
            }),
        )
    }

    #[doc = doc!("Trace.idle")]
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
                    let batch = columns.and_then(|columns| requests::to_batch(&columns));
                    Some(batch.map_err(|error| ArrowError::ExternalError(error.message().into())))
                };
                capsule::stream(py, Box::new(Made { schema, next }))
            }
            Source::Memory(trace) => one_batch(py, requests::to_batch(&trace.columns)?),
        }
    }

    fn __repr__(&self) -> String {
        format!("<idlewise.Trace: {}>", one_line(&self.inner.name))
    }
}
