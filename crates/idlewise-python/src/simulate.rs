//! Policies on the idle times of a trace: simulated, compared and explored.

use std::sync::Arc;

use idlewise::policy::POLICIES;
use idlewise::policy::restrained::Amount;
use idlewise::simulate::{self as simulation, Command, Lane, Run, Scrub, Service, Summary, Work};
use idlewise::tune::{COMPARED, Comparison, Question};
use idlewise::{Bytes, Nanos};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use serde_json::{Map, Value, json};

use crate::error::value_error;
use crate::idle::Idleness;
use crate::policy::Chosen;
use crate::running::{self, Watch};
use crate::table::Table;
use crate::units::{Size, Time};
use crate::values::{members, to_python, to_value};

#[doc = doc!("Outcome")]
#[pyclass(frozen, module = "idlewise")]
pub struct Outcome {
    run: Run,
    summary: Summary,
    requests: u64,
    policy: String,
    /// Of a command that ran in the gaps: how long it was at work for what need not be done again.
    useful: Option<idlewise::TotalTime>,
}

impl Outcome {
    fn new(policy: String, run: Run, idle: &Idleness) -> Self {
        let summary = Summary::new(&run.outcome, &idle.disks);
        let requests = idle.disks.iter().map(|disk| disk.requests).sum();
        Self { run, summary, requests, policy, useful: None }
    }

    fn of_a_command(self) -> Self {
        let useful = self.run.details.first().map(|detail| detail.useful).unwrap_or_default();
        Self { useful: Some(useful), ..self }
    }

    fn quantile(&self, of_thousand: u64) -> idlewise::Nanos {
        self.run.slowdown_quantile(of_thousand, self.requests)
    }

    /// The members of `simulate --json`.
    fn members(&self) -> Map<String, Value> {
        let mut all = members(&self.summary);
        all.extend(members(&json!({
            "slowdown_p90_s": self.quantile(900).as_secs_f64(),
            "slowdown_p99_s": self.quantile(990).as_secs_f64(),
            "slowdown_p999_s": self.quantile(999).as_secs_f64(),
            "ran_s": self.run.outcome.used_idle.as_secs_f64(),
        })));
        all.extend(self.useful.map(|useful| ("useful_s".into(), json!(useful.as_secs_f64()))));
        all
    }
}

#[pymethods]
impl Outcome {
    #[doc = doc!("Outcome.policy")]
    #[getter]
    fn policy(&self) -> &str {
        &self.policy
    }

    #[doc = doc!("Outcome.scrubbed_bytes")]
    #[getter]
    fn scrubbed_bytes(&self) -> u64 {
        self.summary.scrubbed_bytes
    }

    #[doc = doc!("Outcome.background_requests")]
    #[getter]
    fn background_requests(&self) -> u64 {
        self.summary.background_requests
    }

    #[doc = doc!("Outcome.collisions")]
    #[getter]
    fn collisions(&self) -> u64 {
        self.summary.collisions
    }

    #[doc = doc!("Outcome.collision_rate")]
    #[getter]
    fn collision_rate(&self) -> f64 {
        self.summary.collision_rate
    }

    #[doc = doc!("Outcome.mean_slowdown_ns")]
    #[getter]
    fn mean_slowdown_ns(&self) -> u64 {
        self.run.outcome.delay_sum.mean(self.requests).0
    }

    #[doc = doc!("Outcome.slowdown_p99_ns")]
    #[getter]
    fn slowdown_p99_ns(&self) -> u64 {
        self.quantile(990).0
    }

    #[doc = doc!("Outcome.max_slowdown_ns")]
    #[getter]
    fn max_slowdown_ns(&self) -> u64 {
        self.run.outcome.longest_delay.0
    }

    #[doc = doc!("Outcome.throughput_bytes_per_s")]
    #[getter]
    fn throughput_bytes_per_s(&self) -> f64 {
        self.summary.throughput_bytes_per_s
    }

    #[doc = doc!("Outcome.ran_ns")]
    #[getter]
    fn ran_ns(&self) -> u128 {
        self.run.outcome.used_idle.0
    }

    #[doc = doc!("Outcome.useful_ns")]
    #[getter]
    fn useful_ns(&self) -> Option<u128> {
        self.useful.map(|useful| useful.0)
    }

    #[doc = doc!("Outcome.utilised_idle")]
    #[getter]
    fn utilised_idle(&self) -> f64 {
        self.summary.utilised_idle
    }

    #[doc = doc!("Outcome.relative_delay")]
    #[getter]
    fn relative_delay(&self) -> Option<f64> {
        self.summary.relative_delay
    }

    #[doc = doc!("Outcome.to_dict")]
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.members())
    }

    fn __repr__(&self) -> String {
        let Summary { scrubbed_bytes, .. } = self.summary;
        let mean = idlewise::Nanos(self.mean_slowdown_ns());
        let did = match self.useful {
            Some(_) => format!("ran for {}", self.run.outcome.used_idle),
            None => format!("scrubbed {}", Bytes(scrubbed_bytes)),
        };
        format!("<idlewise.Outcome: {} {did}, mean slowdown {mean}>", self.policy)
    }
}

/// How late a command is held: a time, several of which each is as likely, or the `overruns` of a disk as `idlewise run --json` has them.
pub struct Overruns(Vec<Nanos>);

impl<'py> FromPyObject<'_, 'py> for Overruns {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let Ok(measured) = given.cast::<PyDict>() else {
            let times = match given.cast::<PyList>() {
                Ok(times) => times.iter().map(|time| Ok(time.extract::<Time>()?.0)).collect::<PyResult<Vec<_>>>()?,
                Err(_) => vec![given.extract::<Time>()?.0],
            };
            let none = || value_error("overruns: an empty list: give at least one time, such as '8ms'");
            return (!times.is_empty()).then_some(Self(times)).ok_or_else(none);
        };
        let wrong = "overruns: neither times nor what `idlewise run --json` has as the overruns of a disk: count, uses and percentiles_s";
        let member = |name| measured.get_item(name)?.ok_or_else(|| value_error(wrong));
        let (uses, count) = (member("uses")?.extract()?, member("count")?.extract()?);
        let percentiles_s: Vec<f64> = member("percentiles_s")?.extract()?;
        if count == 0 {
            return Err(value_error(
                "overruns: no foreground request came while the command used the disk: measure for longer, or give times",
            ));
        }
        Command::measured(uses, count, &percentiles_s).map(Self).ok_or_else(|| value_error(wrong))
    }
}

/// What runs in the gaps, and by whose leave.
struct Tried<'a> {
    chosen: &'a Chosen,
    idle: &'a Idleness,
    /// Disks that policies learn from, in the same order; else from those that they run on.
    train: Option<&'a [idlewise::idle::Idleness]>,
    model: &'a idlewise::disk::DiskModel,
    /// A command and its mean overrun, instead of a scrub.
    command: Option<(&'a Command, Nanos)>,
}

impl Tried<'_> {
    /// Over all disks.
    fn run(&self, watch: &Arc<Watch>) -> Run {
        let Self { chosen, idle, train, model, command } = self;
        let all = || {
            let mut done = 0;
            simulation::run(&idle.disks, |disk| {
                watch.share(done as f64 / idle.disks.len() as f64);
                let past = train.and_then(|train| train.get(done)).unwrap_or(disk);
                done += 1;
                let policy = chosen.build(past, idle, model, command.map(|(_, mean)| mean), watch);
                let scrub = || Box::new(Scrub::new(Service::OfSize((*model).clone()))) as Box<dyn Work>;
                vec![Lane::new(policy, command.map_or_else(scrub, |(command, _)| Box::new(command.clone())))]
            })
        };
        // A thread that is attached once, not for each call, takes a tenth of the time; Python lets others run meanwhile.
        if chosen.is_own() { Python::attach(|_| all()) } else { all() }
    }
}

#[doc = doc!("simulate")]
#[pyfunction]
#[pyo3(signature = (idle, policy, *, train=None, overruns=None, opening=None, piece=None, disk=None, progress=None, **parameters))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub fn simulate(
    idle: &Bound<Idleness>,
    policy: Bound<PyAny>,
    train: Option<&Idleness>,
    overruns: Option<Overruns>,
    opening: Option<Time>,
    piece: Option<Time>,
    disk: Option<&Bound<PyAny>>,
    progress: Option<&Bound<PyAny>>,
    parameters: Option<&Bound<PyDict>>,
) -> PyResult<Outcome> {
    if overruns.is_none() && (opening.is_some() || piece.is_some()) {
        return Err(value_error("opening and piece are of a command: give its overruns, such as overruns=\"8ms\""));
    }
    let chosen =
        if overruns.is_some() { Chosen::of_a_command(&policy, parameters) } else { Chosen::new(&policy, parameters) }?;
    let model = idle.get().model(disk)?;
    let time = |given: Option<Time>| given.map_or(Nanos::ZERO, |time| time.0);
    let command = overruns.map(|Overruns(overruns)| {
        let mean = Command::mean(&overruns);
        (Command::new(overruns).opening(time(opening)).in_pieces(time(piece)), mean)
    });
    let (name, idle_times) = (chosen.name(), idle.get().clone());
    let train = train.map(|train| matching(&idle_times, train)).transpose()?;
    running::run(idle.py(), progress, move |watch| {
        let command = command.as_ref().map(|(command, mean)| (command, *mean));
        let tried = Tried { chosen: &chosen, idle: &idle_times, train: train.as_deref(), model: &model, command };
        let outcome = Outcome::new(name, tried.run(watch), &idle_times);
        Ok(if command.is_some() { outcome.of_a_command() } else { outcome })
    })
}

#[doc = doc!("grid")]
#[pyfunction]
#[pyo3(signature = (idle, sizes, waits, *, disk=None, progress=None))]
pub fn grid(
    py: Python,
    idle: &Idleness,
    sizes: Vec<Size>,
    waits: Vec<Time>,
    disk: Option<&Bound<PyAny>>,
    progress: Option<&Bound<PyAny>>,
) -> PyResult<Table> {
    let mut sizes: Vec<Bytes> = sizes.into_iter().map(|size| size.0).collect();
    let mut waits: Vec<Nanos> = waits.into_iter().map(|wait| wait.0).collect();
    if sizes.iter().any(|&size| size < Bytes(512)) {
        return Err(value_error("sizes: no disk has blocks so short: give at least 512"));
    }
    sizes.sort_unstable();
    sizes.dedup();
    waits.sort_unstable();
    waits.dedup();
    let (model, idle) = (idle.model(disk)?, idle.clone());
    running::run(py, progress, move |watch| {
        let cells = idlewise::tune::grid(&idle.disks, &model, &sizes, &waits, &|done| watch.share(done));
        Ok(Table::new(cells.iter().map(members).collect()))
    })
}

#[doc = doc!("compare")]
#[pyfunction]
#[pyo3(signature = (idle, policies=None, *, request_size=None, train=None, disk=None, progress=None))]
pub fn compare(
    py: Python,
    idle: &Idleness,
    policies: Option<Vec<Bound<PyAny>>>,
    request_size: Option<Size>,
    train: Option<&Idleness>,
    disk: Option<&Bound<PyAny>>,
    progress: Option<&Bound<PyAny>>,
) -> PyResult<Table> {
    let size = request_size.map_or(Bytes::from_kib(64), |size| size.0);
    if size < Bytes(512) {
        return Err(value_error("request_size: no disk has blocks so short: give at least 512"));
    }
    let (mut named, mut own): (Vec<&'static str>, Vec<Chosen>) = (Vec::new(), Vec::new());
    for policy in policies.iter().flatten() {
        let Ok(name) = policy.cast::<PyString>() else {
            own.push(match policy.extract::<(Bound<PyAny>, Bound<PyDict>)>() {
                Ok((policy, parameters)) => Chosen::new(&policy, Some(&parameters))?,
                Err(_) => Chosen::new(policy, None)?,
            });
            continue;
        };
        let (name, known) = (name.to_string(), || POLICIES.names().join(", "));
        let entry = POLICIES.get(&name);
        named.push(entry.ok_or_else(|| value_error(&format!("no policy '{name}'; there are {}", known())))?.name);
    }
    if policies.is_none() {
        named.extend(COMPARED);
    }
    let model = idle.model(disk)?;
    let idle = idle.clone();
    let train = train.map(|train| matching(&idle, train)).transpose()?;
    running::run(py, progress, move |watch| {
        let comparison =
            Comparison { disks: &idle.disks, train: train.as_deref(), model: &model, size, policies: &named };
        let mut rows: Vec<Map<String, Value>> = comparison.points(&|done| watch.share(done)).iter().map(flat).collect();
        for chosen in own {
            let tried = Tried { chosen: &chosen, idle: &idle, train: train.as_deref(), model: &model, command: None };
            let outcome = Outcome::new(chosen.name(), tried.run(watch), &idle);
            let Summary { utilised_idle, collision_rate, mean_slowdown_s, throughput_bytes_per_s, .. } =
                outcome.summary;
            let mut row = members(&json!({
                "policy": outcome.policy, "utilised_idle": utilised_idle, "collision_rate": collision_rate,
                "mean_slowdown_s": mean_slowdown_s, "throughput_bytes_per_s": throughput_bytes_per_s,
            }));
            row.extend(chosen.parameters());
            if let Some(train) = &train {
                let of_train = idle.with(train.clone());
                let run = Tried { idle: &of_train, train: None, ..tried }.run(watch);
                let Summary { utilised_idle, collision_rate, .. } = Summary::new(&run.outcome, train);
                row.extend(members(&json!({
                    "trained_utilised_idle": utilised_idle, "trained_collision_rate": collision_rate,
                })));
            }
            rows.push(row);
        }
        Ok(Table::new(rows))
    })
}

/// The disks to learn from, in the order of those that are run on.
fn matching(idle: &Idleness, train: &Idleness) -> PyResult<Vec<idlewise::idle::Idleness>> {
    let found = |disk: &idlewise::idle::Idleness| {
        let other = train.disks.iter().find(|other| other.volume == disk.volume);
        other.cloned().ok_or_else(|| value_error(&format!("train has no volume '{}'", disk.volume)))
    };
    idle.disks.iter().map(found).collect()
}

/// The parameters beside the rest.
fn flat(point: &idlewise::tune::OperatingPoint) -> Map<String, Value> {
    let mut row = Map::new();
    for (name, value) in members(point) {
        match value {
            Value::Object(inner) if name == "parameters" => row.extend(inner),
            Value::Object(inner) => {
                row.extend(inner.into_iter().map(|(part, value)| (format!("{name}_{part}"), value)))
            }
            value => _ = row.insert(name, value),
        }
    }
    row
}

#[doc = doc!("explore")]
#[pyfunction]
#[pyo3(signature = (idle, *, relative_delay=0.07, request_size=None, disk=None, progress=None))]
pub fn explore<'py>(
    py: Python<'py>,
    idle: &Idleness,
    relative_delay: f64,
    request_size: Option<Size>,
    disk: Option<&Bound<'py, PyAny>>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let size = request_size.map_or(Bytes::from_kib(64), |size| size.0);
    if size < Bytes(512) || !(relative_delay > 0.0 && relative_delay <= 100.0) {
        return Err(value_error("request_size is at least 512 bytes, and relative_delay a share such as 0.07"));
    }
    let (model, disks) = (idle.model(disk)?, idle.disks.clone());
    let explored = running::run(py, progress, move |watch| {
        let work = || Box::new(Scrub::new(Service::OfSize((*model).clone()))) as Box<dyn Work>;
        let service = model.verify_time(size);
        let amount = Amount::Infinite;
        let asked = Question { disks: &disks, work: &work, amount, service, size, relative_delay };
        let plane = asked.plane(&|done| watch.share(done));
        let [no_wait, service_wait] = asked.practices();
        Ok(json!({
            "target": relative_delay,
            "chosen": to_value(&asked.chosen()),
            "no_wait": to_value(&no_wait),
            "service_wait": to_value(&service_wait),
            "penalties": to_value(&asked.penalties()),
            "plane": to_value(&plane),
        }))
    })?;
    to_python(py, &explored)
}
