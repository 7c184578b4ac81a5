//! Parts of a trace that are reduced apart, and put together exactly.

use std::sync::{Arc, Mutex, PoisonError};

use idlewise::disk::DiskModel;
use idlewise::idle::{Part, Reducer};
use idlewise::trace::{Columns, Provenance};
use idlewise::{Bytes, Nanos};
use idlewise_linux::half_of_free_memory;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::capsule;
use crate::disk::Disk;
use crate::error::{Error, value_error};
use crate::idle::{Idleness, of_parts};
use crate::ordered::Ordered;
use crate::reading::{Requests, Source};
use crate::requests::Layout;
use crate::running::{self, Watch};
use crate::trace::Trace;
use crate::units::Size;

#[doc = doc!("Partial")]
#[pyclass(frozen, module = "idlewise")]
pub struct Partial {
    /// By volume, and in order of time.
    parts: Mutex<Vec<Arc<Part>>>,
    model: Arc<DiskModel>,
    /// What counts as time zero.
    origin: Nanos,
}

impl Partial {
    fn parts(&self) -> Vec<Arc<Part>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// These parts and those of others.
    pub fn with(&self, others: &[Bound<Self>]) -> PyResult<Self> {
        let mut all = self.parts();
        for other in others.iter().map(|other| other.get()) {
            if *other.model != *self.model {
                return Err(value_error("the parts were reduced with different models of disks"));
            }
            if other.origin != self.origin {
                return Err(value_error("the parts count time from different origins"));
            }
            all.extend(other.parts());
        }
        Ok(Self { parts: Mutex::new(in_order(all)?), model: self.model.clone(), origin: self.origin })
    }
}

/// By volume and in order of time; an error where two are of the same time.
fn in_order(mut parts: Vec<Arc<Part>>) -> Result<Vec<Arc<Part>>, Error> {
    parts.sort_by(|a, b| a.volume().cmp(b.volume()).then((a.begin(), a.last()).cmp(&(b.begin(), b.last()))));
    for pair in parts.windows(2).filter(|pair| pair[0].volume() == pair[1].volume()) {
        pair[0].precedes(&pair[1])?;
    }
    Ok(parts)
}

/// One part a volume.
fn joined(parts: impl IntoIterator<Item = Arc<Part>>) -> Result<Vec<Part>, Error> {
    let mut joined: Vec<Part> = Vec::new();
    for part in parts {
        match joined.last_mut().filter(|last| last.volume() == part.volume()) {
            Some(last) => last.append(&part)?,
            None => joined.push(Arc::unwrap_or_clone(part)),
        }
    }
    Ok(joined)
}

/// The parts of a trace, counted from `origin` on the source's clock; its own zero is its first arrival.
fn of_trace(
    trace: &Requests,
    model: &DiskModel,
    origin: Nanos,
    most: Bytes,
    watch: &Watch,
) -> Result<Vec<Part>, Error> {
    let read = |zero: &dyn Fn(&Provenance) -> Nanos| {
        let begin = |provenance: &Provenance| {
            let zero = zero(provenance);
            Ok((zero, Reducer::new(model, Nanos::ZERO)?.from(zero.since(origin))))
        };
        let take = |(zero, reducer): &mut (Nanos, Reducer), requests: &Columns| {
            if *zero < origin {
                return Err(Error::Value(format!("a request arrives before origin_ns, {}", origin.0)));
            }
            reducer.requests(requests)?;
            fits(reducer, most)
        };
        trace.each(watch, begin, take)
    };
    let ((_, reducer), provenance) = match &trace.source {
        // Where a table's clock begins is known only once it is read.
        Source::Table(..) => {
            let (_, provenance) = trace.each(watch, |_| Ok(()), |(), _| Ok(()))?;
            read(&|_| provenance.origin)?
        }
        Source::Files(_) | Source::Memory(_) => read(&|provenance| provenance.origin)?,
    };
    Reducer::check(provenance.resolution)?;
    Ok(reducer.parts())
}

/// Nothing is computed from what is kept before it is asked for: until then it takes a part of that memory.
const COMPUTING: u64 = 4;

/// Whether what is kept fits the memory.
fn fits(reducer: &Reducer, most: Bytes) -> Result<(), Error> {
    if reducer.memory().0 / COMPUTING <= most.0 {
        return Ok(());
    }
    Err(Error::Value(format!(
        "its idle times take more than {most} of memory, which is the limit; memory_limit= raises it"
    )))
}

/// What another process makes a partial from.
type Sent<'py> = (Bound<'py, PyBytes>, Disk, u64);

#[pymethods]
impl Partial {
    #[new]
    #[pyo3(signature = (*, disk=None, origin_ns=0))]
    fn new(disk: Option<&Bound<PyAny>>, origin_ns: u64) -> PyResult<Self> {
        Ok(Self { parts: Mutex::default(), model: Disk::given(disk)?, origin: Nanos(origin_ns) })
    }

    #[doc = doc!("Partial.push")]
    #[pyo3(signature = (requests, *, columns=None, unit=None, memory_limit=None))]
    fn push(
        &self,
        py: Python,
        requests: &Bound<PyAny>,
        columns: Option<&Bound<PyDict>>,
        unit: Option<&str>,
        memory_limit: Option<Size>,
    ) -> PyResult<()> {
        let most = memory_limit.map(|limit| limit.0).or_else(half_of_free_memory).unwrap_or(Bytes(u64::MAX));
        let (model, origin) = (self.model.clone(), self.origin);
        let pushed = match requests.cast::<Trace>().ok().map(|trace| trace.get().inner()) {
            // Its stream counts from its first arrival.
            Some(_) if columns.is_some() || unit.is_some() => {
                return Err(value_error("columns= and unit= are for tables: a trace was read with its own"));
            }
            Some(trace) => running::run(py, None, move |watch| of_trace(&trace, &model, origin, most, watch))?,
            None => {
                let mut ordered = Ordered::from(capsule::batches(requests)?, Layout::new(columns, unit)?, origin);
                running::run(py, None, move |watch| {
                    let mut reducer = Reducer::new(&model, Nanos::ZERO)?;
                    while let Some(requests) = ordered.next()? {
                        watch.go_on();
                        reducer.requests(&requests)?;
                        fits(&reducer, most)?;
                    }
                    Ok(reducer.parts())
                })?
            }
        };
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        *parts = in_order(parts.iter().cloned().chain(pushed.into_iter().map(Arc::new)).collect())?;
        Ok(())
    }

    #[doc = doc!("Partial.merge")]
    #[pyo3(signature = (*others))]
    fn merge(&self, others: Vec<Bound<Self>>) -> PyResult<Self> {
        self.with(&others)
    }

    #[doc = doc!("Partial.volumes")]
    #[getter]
    fn volumes(&self) -> Vec<String> {
        let mut volumes: Vec<String> = self.parts().iter().map(|part| part.volume().to_owned()).collect();
        volumes.dedup();
        volumes
    }

    #[doc = doc!("Partial.memory")]
    #[getter]
    fn memory(&self) -> u64 {
        self.parts().iter().map(|part| part.memory().0).sum()
    }

    /// Those of one volume.
    fn __getitem__(&self, volume: &str) -> PyResult<Self> {
        let parts = self.parts();
        let first = parts.partition_point(|part| part.volume() < volume);
        let of_it = parts[first..].iter().take_while(|part| part.volume() == volume).cloned().collect::<Vec<_>>();
        if of_it.is_empty() {
            return Err(PyKeyError::new_err(volume.to_owned()));
        }
        Ok(Self { parts: Mutex::new(of_it), model: self.model.clone(), origin: self.origin })
    }

    #[doc = doc!("Partial.to_bytes")]
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let mut bytes = Vec::new();
        for part in self.parts() {
            let begin = bytes.len();
            bytes.extend([0; 8]);
            part.write_to(&mut bytes);
            let length = (bytes.len() - begin - 8) as u64;
            bytes[begin..begin + 8].copy_from_slice(&length.to_le_bytes());
        }
        PyBytes::new(py, &bytes)
    }

    #[doc = doc!("Partial.from_bytes")]
    #[staticmethod]
    #[pyo3(signature = (data, *, disk=None, origin_ns=0))]
    fn from_bytes(mut data: &[u8], disk: Option<&Bound<PyAny>>, origin_ns: u64) -> PyResult<Self> {
        let mut parts = Vec::new();
        while !data.is_empty() {
            let taken = data.split_first_chunk::<8>().and_then(|(length, rest)| {
                let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
                let (part, rest) = rest.split_at_checked(length)?;
                Some((Part::from_bytes(part)?, rest))
            });
            let (part, rest) = taken.ok_or_else(|| value_error("not what Partial.to_bytes gave"))?;
            parts.push(Arc::new(part));
            data = rest;
        }
        Ok(Self { parts: Mutex::new(in_order(parts)?), model: Disk::given(disk)?, origin: Nanos(origin_ns) })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Sent<'py>)> {
        let partial = slf.get();
        let disk = Disk { model: partial.model.clone() };
        Ok((slf.getattr("_of")?, (partial.to_bytes(slf.py()), disk, partial.origin.0)))
    }

    #[staticmethod]
    fn _of(data: &[u8], disk: &Bound<PyAny>, origin_ns: u64) -> PyResult<Self> {
        Self::from_bytes(data, Some(disk), origin_ns)
    }

    #[doc = doc!("Partial.idle")]
    pub fn idle(&self, py: Python) -> PyResult<Idleness> {
        let (parts, model, origin) = (self.parts(), self.model.clone(), self.origin);
        running::run(py, None, move |_| of_parts(joined(parts)?, model, origin))
    }

    fn __repr__(&self) -> String {
        format!("<idlewise.Partial: {} volumes>", self.volumes().len())
    }
}
