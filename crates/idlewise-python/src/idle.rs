//! Idle times of disks.

use std::path::PathBuf;
use std::sync::Arc;

use idlewise::Nanos;
use idlewise::disk::DiskModel;
use idlewise::idle::{self, Part, Profile, Reducer, Statistics};
use idlewise::report::idle_page;
use idlewise::report::printable::one_line;
use idlewise::trace::volumes::natural;
use idlewise::trace::{Columns, GapFinder};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use rayon::prelude::*;

use crate::capsule;
use crate::disk::Disk;
use crate::error::{Error, value_error};
use crate::files::write_text;
use crate::intervals::{intervals, schema};
use crate::partial::Partial;
use crate::reading::Requests;
use crate::running::{self, Watch};
use crate::table::{Table, escaped, one_batch};
use crate::values::{members, to_python};

#[doc = doc!("Idleness")]
#[pyclass(frozen, mapping, module = "idlewise")]
#[derive(Clone)]
pub struct Idleness {
    pub disks: Arc<Vec<idle::Idleness>>,
    pub model: Arc<DiskModel>,
    pub source: Arc<Source>,
}

/// Where the numbers come from, as the command says it.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Source {
    pub trace: String,
    pub format: String,
    pub bad_records: u64,
    pub disk: String,
    pub response_times: &'static str,
    pub responses_modelled: u64,
    pub holes: usize,
}

impl Source {
    /// Of so many requests some were served by the model.
    pub fn of(trace: &str, format: &str, model: &DiskModel, modelled: u64, requests: u64) -> Self {
        let response_times = match modelled {
            0 => "recorded",
            some if some == requests => "modelled",
            _ => "partly recorded",
        };
        let (trace, format, disk) = (trace.into(), format.into(), model.name.clone());
        Self { trace, format, disk, response_times, responses_modelled: modelled, ..Self::default() }
    }
}

impl Idleness {
    /// Reads a trace and reduces it, with its volumes in the order of their names.
    pub fn read(trace: &Requests, model: Arc<DiskModel>, watch: &Watch) -> Result<Self, Error> {
        let borrowed = &*model;
        let begin = |provenance: &idlewise::trace::Provenance| {
            Ok((Reducer::new(borrowed, provenance.resolution)?, GapFinder::default()))
        };
        let take = |(reducer, gaps): &mut (Reducer, GapFinder), columns: &Columns| {
            columns.arrival.iter().for_each(|&arrival| gaps.arrival(arrival));
            Ok(reducer.requests(columns)?)
        };
        let ((reducer, gaps), provenance) = trace.each(watch, begin, take)?;
        Reducer::check(provenance.resolution)?;
        let modelled = reducer.modelled();
        let disks = reducer.finish(provenance.origin);
        let requests = disks.iter().map(|disk| disk.requests).sum();
        let source = Source {
            bad_records: provenance.bad_records,
            holes: gaps.gaps().len(),
            ..Source::of(&trace.name, provenance.format, &model, modelled, requests)
        };
        Ok(Self::new(disks, model, source))
    }

    /// Sorts them as people count.
    pub fn new(mut disks: Vec<idle::Idleness>, model: Arc<DiskModel>, source: Source) -> Self {
        disks.sort_by(|a, b| natural(&a.volume, &b.volume));
        Self { disks: Arc::new(disks), model, source: Arc::new(source) }
    }

    /// The same with other disks.
    pub fn with(&self, disks: Vec<idle::Idleness>) -> Self {
        Self { disks: Arc::new(disks), ..self.clone() }
    }

    /// The model of `disk=`, or that which the trace was reduced with.
    pub fn model(&self, disk: Option<&Bound<PyAny>>) -> PyResult<Arc<DiskModel>> {
        if disk.is_none() { Ok(self.model.clone()) } else { Disk::given(disk) }
    }

    fn sum(&self, of: impl Fn(&idle::Idleness) -> u64) -> u64 {
        self.disks.iter().map(of).sum()
    }
}

#[pymethods]
impl Idleness {
    #[doc = doc!("Idleness.merge")]
    #[staticmethod]
    #[pyo3(signature = (parts))]
    fn merge(py: Python, parts: Vec<Bound<Partial>>) -> PyResult<Self> {
        let Some(first) = parts.first() else { return Err(value_error("no parts to merge")) };
        first.get().with(&parts[1..])?.idle(py)
    }

    #[doc = doc!("Idleness.volumes")]
    #[getter]
    fn volumes(&self) -> Vec<&str> {
        self.disks.iter().map(|disk| disk.volume.as_str()).collect()
    }

    #[doc = doc!("Idleness.disk")]
    #[getter]
    fn disk(&self) -> Disk {
        Disk { model: self.model.clone() }
    }

    #[doc = doc!("Idleness.source")]
    #[getter]
    fn source<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &*self.source)
    }

    #[doc = doc!("Idleness.requests")]
    #[getter]
    fn requests(&self) -> u64 {
        self.sum(|disk| disk.requests)
    }

    #[doc = doc!("Idleness.intervals")]
    #[getter]
    fn intervals(&self) -> u64 {
        self.sum(|disk| disk.intervals.len() as u64)
    }

    #[doc = doc!("Idleness.idle_ns")]
    #[getter]
    fn idle_ns(&self) -> u64 {
        self.sum(|disk| disk.idle().0)
    }

    #[doc = doc!("Idleness.begin_ns")]
    #[getter]
    fn begin_ns(&self) -> u64 {
        self.disks.iter().map(|disk| disk.begin.0).min().unwrap_or(0)
    }

    #[doc = doc!("Idleness.end_ns")]
    #[getter]
    fn end_ns(&self) -> u64 {
        self.disks.iter().map(|disk| disk.end.0).max().unwrap_or(0)
    }

    #[doc = doc!("Idleness.origin_ns")]
    #[getter]
    fn origin_ns(&self) -> u64 {
        self.disks.first().map_or(0, |disk| disk.origin.0)
    }

    fn __len__(&self) -> usize {
        self.disks.len()
    }

    fn __contains__(&self, volume: &Bound<PyAny>) -> bool {
        volume.extract::<String>().is_ok_and(|name| self.disks.iter().any(|disk| disk.volume == name))
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, pyo3::types::PyIterator>> {
        slf.getattr("volumes")?.try_iter()
    }

    fn __getitem__(&self, volume: &str) -> PyResult<Self> {
        let disk = self.disks.iter().find(|disk| disk.volume == volume);
        disk.map(|disk| self.with(vec![disk.clone()])).ok_or_else(|| {
            const SHOWN: usize = 5;
            let names: Vec<_> = self.disks.iter().take(SHOWN).map(|disk| &*disk.volume).collect();
            let more = if self.disks.len() > SHOWN { ", ..." } else { "" };
            PyKeyError::new_err(format!("no volume '{volume}'; there is {}{more}", names.join(", ")))
        })
    }

    #[doc = doc!("Idleness.keys")]
    fn keys(&self) -> Vec<&str> {
        self.volumes()
    }

    #[doc = doc!("Idleness.values")]
    fn values(&self) -> Vec<Self> {
        self.disks.iter().map(|disk| self.with(vec![disk.clone()])).collect()
    }

    #[doc = doc!("Idleness.items")]
    fn items(&self) -> Vec<(&str, Self)> {
        self.keys().into_iter().zip(self.values()).collect()
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.disks == other.disks
    }

    #[doc = doc!("Idleness.profile")]
    fn profile<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let disks = self.disks.clone();
        to_python(py, &running::run(py, None, move |_| Ok(Profile::of(&disks)))?)
    }

    #[doc = doc!("Idleness.statistics")]
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let disks = self.disks.clone();
        to_python(py, &running::run(py, None, move |_| Ok(Statistics::of(&disks)))?)
    }

    #[doc = doc!("Idleness.by_volume")]
    fn by_volume(&self, py: Python) -> PyResult<Table> {
        let disks = self.disks.clone();
        running::run(py, None, move |_| {
            let row = |disk: &idle::Idleness| {
                let mut row = members(&serde_json::json!({ "volume": disk.volume }));
                row.extend(members(&Statistics::of(std::slice::from_ref(disk))));
                row
            };
            Ok(Table::new(disks.par_iter().map(row).collect()))
        })
    }

    #[doc = doc!("Idleness.split")]
    fn split(&self, share: f64) -> PyResult<(Self, Self)> {
        if !(share > 0.0 && share < 1.0) {
            return Err(value_error("a share of the time is between 0 and 1, such as 0.5"));
        }
        let (first, rest) = self.disks.iter().map(|disk| disk.split(share)).unzip();
        Ok((self.with(first), self.with(rest)))
    }

    #[doc = doc!("Idleness.report")]
    #[pyo3(signature = (path=None))]
    fn report(&self, py: Python, path: Option<PathBuf>) -> PyResult<String> {
        let (disks, source) = (self.disks.clone(), self.source.clone());
        let page = running::run(py, None, move |_| {
            let Source { trace, format, responses_modelled, disk, .. } = &*source;
            let name = one_line(trace.rsplit('/').next().unwrap_or(trace)).into_owned();
            let read = match responses_modelled {
                0 => format!("{format}, all response times recorded"),
                count => format!("{format}, {count} response times by the model of {disk}"),
            };
            Ok(idle_page(&[(name.clone(), Profile::of(&disks))], vec![(name, read)]).html())
        })?;
        path.map_or(Ok(()), |path| write_text(&path, &page))?;
        Ok(page)
    }

    fn _repr_html_(&self, py: Python) -> PyResult<String> {
        let page = escaped(&self.report(py, None)?);
        Ok(format!("<iframe srcdoc=\"{page}\" width=\"100%\" height=\"600\"></iframe>"))
    }

    fn __repr__(&self) -> String {
        format!("<idlewise.Idleness: {} volumes, {} idle intervals>", self.disks.len(), self.intervals())
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsule::schema(py, &schema())
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        one_batch(py, intervals(&self.disks)?)
    }
}

/// Parts that are whole, whose times count from `origin` on the source's clock.
pub fn of_parts(parts: Vec<Part>, model: Arc<DiskModel>, origin: Nanos) -> Result<Idleness, Error> {
    let modelled = parts.iter().map(|part| u128::from(part.modelled())).sum();
    let disks: Vec<_> = Part::finish(parts).into_iter().map(|disk| idle::Idleness { origin, ..disk }).collect();
    let requests: u128 = disks.iter().map(|disk| u128::from(disk.requests)).sum();
    // No more are modelled than there are.
    let fits =
        |count: u128| u64::try_from(count).map_err(|_| Error::Value("the parts have 2^64 requests or more".into()));
    let source = Source::of("parts", "arrow", &model, fits(modelled)?, fits(requests)?);
    Ok(Idleness::new(disks, model, source))
}
