//! Plans: what is tuned, kept in a file, and carried out.

use std::path::PathBuf;

use idlewise::disk::{DiskModel, LARGEST_REQUEST};
use idlewise::idle;
use idlewise::simulate::{Summary, scrub};
use idlewise::tune::{
    Arrivals, Caution, Gentlest, Goal, PlanFile, Predicted, Schedule, cautions, gentlest, steps_or, tune,
};
use idlewise::{Bytes, Nanos};
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

use crate::error::{Error, value_error};
use crate::files::{text_of, write_text};
use crate::running::Watch;
use crate::values::{members, to_python};

#[doc = doc!("Plan")]
#[pyclass(frozen, module = "idlewise")]
pub struct Plan {
    pub file: PlanFile,
    /// What to be careful about, where it was tuned here.
    warnings: Vec<String>,
}

/// What a plan is made for.
#[derive(Clone, Copy)]
pub struct Aim {
    pub mean_slowdown: Option<Nanos>,
    pub max_slowdown: Option<Nanos>,
    pub p99_slowdown: Option<Nanos>,
    pub finish_within: Option<Nanos>,
    pub capacity: Bytes,
    pub arrivals: Arrivals,
    pub shaped: bool,
}

/// The smallest slowdown that is looked for.
const LEAST: Nanos = Nanos(1_000);

impl Aim {
    /// An error if it makes no sense.
    pub fn check(&self) -> PyResult<()> {
        match (self.mean_slowdown, self.finish_within) {
            (None, None) => Err(value_error("mean_slowdown or finish_within says what to tune for")),
            (Some(_), Some(_)) => Err(value_error("finish_within finds the mean slowdown: leave mean_slowdown out")),
            (_, Some(Nanos::ZERO)) => Err(value_error("finish_within must be above zero, such as '14d'")),
            _ if self.capacity == Bytes(0) => Err(value_error("capacity must be above zero")),
            _ => Ok(()),
        }
    }

    /// The slowdowns to keep: those given, or the smallest that are enough.
    fn goal(&self, disks: &[idle::Idleness], model: &DiskModel, watch: &Watch) -> Result<Goal, Error> {
        let max_slowdown = self.max_slowdown.unwrap_or_else(|| model.verify_time(LARGEST_REQUEST));
        let p99_slowdown = self.p99_slowdown;
        let pass = match (self.mean_slowdown, self.finish_within) {
            (None, Some(pass)) => pass.as_secs_f64(),
            (given, _) => return Ok(Goal { mean_slowdown: given.unwrap_or_default(), p99_slowdown, max_slowdown }),
        };
        let least = Goal { mean_slowdown: LEAST, p99_slowdown, max_slowdown };
        let begin = disks.iter().map(|disk| disk.begin).min().unwrap_or_default();
        let end = disks.iter().map(|disk| disk.end).max().unwrap_or_default();
        let enough = Bytes((self.capacity.0 as f64 * end.since(begin).as_secs_f64() / pass).ceil() as u64);
        match gentlest(disks, model, &least, self.arrivals, enough, &|done| watch.share(done))? {
            Gentlest::Found(goal, _) => Ok(goal),
            Gentlest::NotEnough(_) => Err(Error::NoPlan(format!(
                "a pass over {} within {} is out of reach, whatever the mean slowdown, with at most {max_slowdown} for any request",
                self.capacity.decimal(),
                Nanos((pass * 1e9) as u64)
            ))),
        }
    }

    /// The plan for these disks together, and what it does in simulation.
    pub fn plan(
        &self,
        disks: &[idle::Idleness],
        model: &DiskModel,
        trace: &str,
        watch: &Watch,
    ) -> Result<(Plan, Map<String, Value>), Error> {
        let goal = self.goal(disks, model, watch)?;
        let plan = tune(disks, model, &goal, self.arrivals, &|done| watch.share(done))?;
        let schedule = match self.shaped {
            true => steps_or(&plan, disks, model, &goal, &|done| watch.share(done)).0,
            false => Schedule::Waiting(plan.policy()),
        };
        let run = scrub(disks, model, goal.p99_slowdown, |_| schedule.policy());
        if run.outcome.background_requests == 0 {
            let mean = goal.mean_slowdown.max(LEAST);
            let needed =
                gentlest(disks, model, &Goal { mean_slowdown: mean, ..goal }, self.arrivals, Bytes(1), &|_| ());
            let needed = match needed {
                Ok(Gentlest::Found(goal, _)) => format!(": a mean of {} would", goal.mean_slowdown),
                _ => String::new(),
            };
            return Err(Error::NoPlan(format!("these slowdowns allow no background request at all{needed}")));
        }
        let (summary, p99) = (Summary::new(&run.outcome, disks), run.slowdown_p99(goal.p99_slowdown));
        let warnings: Vec<_> = cautions(&run.outcome, disks, self.arrivals).into_iter().map(line).collect();
        let file = PlanFile::new(&schedule, goal, Predicted::new(&summary, p99, &goal), trace, &model.name);
        let (size, wait) = schedule.first();
        let mut row = members(&json!({ "request_size_bytes": size.0, "idle_wait_s": wait.as_secs_f64() }));
        let pass = self.capacity.0 as f64 / summary.throughput_bytes_per_s;
        row.extend(members(&summary));
        row.extend(members(&json!({ "slowdown_p99_s": p99.as_secs_f64(), "full_pass_s": pass })));
        row.insert("warnings".into(), (!warnings.is_empty()).then(|| warnings.join("; ")).into());
        Ok((Plan { file, warnings }, row))
    }
}

fn line(caution: Caution) -> String {
    match caution {
        Caution::FewCollisions(_) => format!("{caution}; any_moment=True plans for that"),
        _ => caution.to_string(),
    }
}

impl From<PlanFile> for Plan {
    fn from(file: PlanFile) -> Self {
        Self { file, warnings: Vec::new() }
    }
}

#[pymethods]
impl Plan {
    #[doc = doc!("Plan.load")]
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<Self> {
        let file = PlanFile::from_toml(&text_of(&path)?);
        Ok(file.map_err(|error| value_error(&format!("{}: {error}", path.display())))?.into())
    }

    #[doc = doc!("Plan.parse")]
    #[staticmethod]
    fn parse(toml: &str) -> PyResult<Self> {
        let file = PlanFile::from_toml(toml);
        Ok(file.map_err(|error| value_error(&error.to_string()))?.into())
    }

    #[doc = doc!("Plan.to_toml")]
    fn to_toml(&self) -> String {
        self.file.to_toml()
    }

    #[doc = doc!("Plan.save")]
    fn save(&self, path: PathBuf) -> PyResult<()> {
        write_text(&path, &self.to_toml())
    }

    #[doc = doc!("Plan.request_size")]
    #[getter]
    fn request_size(&self) -> u64 {
        self.file.request_size.0
    }

    #[doc = doc!("Plan.idle_wait_ns")]
    #[getter]
    fn idle_wait_ns(&self) -> u64 {
        self.file.idle_wait.0
    }

    #[doc = doc!("Plan.predicted")]
    #[getter]
    fn predicted<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Predicted { mean_slowdown, p99_slowdown, max_slowdown, throughput, utilised_idle } = self.file.predicted;
        to_python(
            py,
            &json!({
                "mean_slowdown_ns": mean_slowdown.0,
                "p99_slowdown_ns": p99_slowdown.map(|time| time.0),
                "max_slowdown_ns": max_slowdown.0,
                "throughput_bytes_per_s": throughput.0,
                "utilised_idle": utilised_idle,
            }),
        )
    }

    #[doc = doc!("Plan.goal")]
    #[getter]
    fn goal<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Goal { mean_slowdown, p99_slowdown, max_slowdown } = self.file.goal;
        to_python(
            py,
            &json!({
                "mean_slowdown_ns": mean_slowdown.0,
                "p99_slowdown_ns": p99_slowdown.map(|time| time.0),
                "max_slowdown_ns": max_slowdown.0,
            }),
        )
    }

    #[doc = doc!("Plan.warnings")]
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    #[doc = doc!("Plan.is_shaped")]
    #[getter]
    fn is_shaped(&self) -> bool {
        self.file.steps.is_some()
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.file == other.file
    }

    fn __repr__(&self) -> String {
        let PlanFile { request_size, idle_wait, .. } = &self.file;
        let then = if self.is_shaped() { ", then of other sizes" } else { "" };
        format!("<idlewise.Plan: wait {idle_wait}, then requests of {request_size}{then}>")
    }

    fn __reduce__(slf: &Bound<Self>) -> PyResult<(Py<PyAny>, (String,))> {
        Ok((slf.getattr("parse")?.unbind(), (slf.get().to_toml(),)))
    }
}
