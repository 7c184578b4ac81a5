//! Policies by name, as plans, and written in Python.

use std::sync::Arc;

use idlewise::disk::{DiskModel, SMALLEST_REQUEST};
use idlewise::policy::{BUDGET, Kind, POLICIES, Parameter, REQUEST_SIZE, Value};
use idlewise::policy::{Budget, Decision, Parameters, Policy, Setting, all_parameters, build};
use idlewise::tune::PlanFile;
use idlewise::{Bytes, Nanos};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde_json::{Map, Value as Json};

use crate::error::{Error, value_error};
use crate::idle::Idleness;
use crate::plan::Plan;
use crate::running::Watch;
use crate::units::{Size, Time};

#[doc = doc!("Wait")]
#[pyclass(frozen, eq, module = "idlewise")]
#[derive(PartialEq)]
pub struct Wait {
    #[doc = doc!("Wait.until_ns")]
    #[pyo3(get)]
    until_ns: u64,
}

#[doc = doc!("Issue")]
#[pyclass(frozen, eq, module = "idlewise")]
#[derive(PartialEq)]
pub struct Issue {
    #[doc = doc!("Issue.size")]
    #[pyo3(get)]
    size: u64,
    #[doc = doc!("Issue.count")]
    #[pyo3(get)]
    count: Option<u64>,
}

#[pymethods]
impl Wait {
    #[new]
    fn new(until: Time) -> Self {
        Self { until_ns: until.0.0 }
    }

    fn __repr__(&self) -> String {
        format!("Wait({})", self.until_ns)
    }
}

#[pymethods]
impl Issue {
    #[new]
    #[pyo3(signature = (size, count=Some(1)))]
    fn new(size: Size, count: Option<u64>) -> PyResult<Self> {
        if count == Some(0) || size.0.0 < 512 {
            return Err(value_error("Issue takes a size of at least 512 bytes, and a count of at least 1"));
        }
        Ok(Self { size: size.0.0, count })
    }

    fn __repr__(&self) -> String {
        let count = self.count.map_or("None".into(), |count| count.to_string());
        format!("Issue({}, {count})", self.size)
    }
}

/// What runs in the gaps.
pub enum Chosen {
    /// A policy of the table.
    Named(&'static str, Parameters),
    /// A plan.
    Plan(PlanFile, Parameters),
    /// Makes an object with `decide` for each volume.
    Made(Py<PyAny>),
}

impl Chosen {
    /// From what `simulate` was given.
    pub fn new(policy: &Bound<PyAny>, given: Option<&Bound<PyDict>>) -> PyResult<Self> {
        Self::with(policy, given.map_or(Ok(Parameters::default()), parameters)?)
    }

    /// The same for a command that runs in the gaps, whose requests have no size that a policy chooses.
    ///
    /// # Errors
    /// Also if the policy ends by itself, which a command does not.
    pub fn of_a_command(policy: &Bound<PyAny>, given: Option<&Bound<PyDict>>) -> PyResult<Self> {
        let mut parameters = given.map_or(Ok(Parameters::default()), parameters)?;
        let name = policy.cast::<PyString>().map(|name| name.to_string());
        if let Some(entry) = name.ok().and_then(|name| POLICIES.get(&name)) {
            if entry.ends_by_itself() {
                let why = "a command knows no end but the foreground's coming";
                return Err(value_error(&format!("overruns: {why}, and {} has another", entry.name)));
            }
            if entry.takes(REQUEST_SIZE.name) && parameters.size(REQUEST_SIZE).is_none() {
                parameters = parameters.with(REQUEST_SIZE, SMALLEST_REQUEST);
            }
        }
        Self::with(policy, parameters)
    }

    fn with(policy: &Bound<PyAny>, parameters: Parameters) -> PyResult<Self> {
        if let Ok(plan) = policy.cast::<Plan>() {
            if let Some((name, _)) = parameters.iter().find(|(name, _)| *name != BUDGET.name) {
                return Err(value_error(&format!("a plan takes no {}: it has its own", name.replace('-', "_"))));
            }
            return Ok(Self::Plan(plan.get().file.clone(), parameters));
        }
        if let Ok(name) = policy.cast::<PyString>() {
            let name = name.to_string();
            let (nothing, any) = (idlewise::idle::Idleness::default(), DiskModel::ultrastar_15k450());
            build(&name, &parameters, &Setting::scrub(&nothing, &any)).map_err(Error::from)?;
            let entry = POLICIES.get(&name).expect("it was just built");
            return Ok(Self::Named(entry.name, parameters));
        }
        if !policy.is_callable() {
            return Err(Error::Type(format!(
                "a policy is a name, a Plan, or what makes an object with decide() for each volume: give the class, and no {}",
                policy.get_type().name()?
            ))
            .into());
        }
        if let Some((name, _)) = parameters.iter().next() {
            return Err(value_error(&format!("a policy of your own takes no {}", name.replace('-', "_"))));
        }
        Ok(Self::Made(policy.clone().unbind()))
    }

    /// What it is called.
    pub fn name(&self) -> String {
        match self {
            Self::Named(name, _) => (*name).into(),
            Self::Plan(..) => "plan".into(),
            Self::Made(class) => Python::attach(|py| {
                let name = class.bind(py).getattr("__name__").and_then(|name| name.extract());
                name.unwrap_or_else(|_| "policy".into())
            }),
        }
    }

    /// What it was given, as `--json` names it: times in seconds.
    pub fn parameters(&self) -> Map<String, Json> {
        let (Self::Named(_, given) | Self::Plan(_, given)) = self else { return Map::new() };
        let known = all_parameters().into_iter().filter_map(|one| Some((one, given.get(one)?)));
        known.map(|(one, value)| (one.field(), value.as_f64().into())).collect()
    }

    /// Whether it is written in Python.
    pub fn is_own(&self) -> bool {
        matches!(self, Self::Made(_))
    }

    /// The policy for a disk, by what it learns from. `service` is the mean time of what it lets run, where the disk's model does not say it.
    pub fn build(
        &self,
        past: &idlewise::idle::Idleness,
        idle: &Idleness,
        model: &DiskModel,
        service: Option<Nanos>,
        watch: &Arc<Watch>,
    ) -> Box<dyn Policy> {
        let policy = match self {
            Self::Named(name, parameters) => {
                let setting = Setting { service, ..Setting::scrub(past, model) };
                build(name, parameters, &setting).expect("it was built before")
            }
            Self::Plan(plan, parameters) => match parameters.time(BUDGET) {
                Some(target) => Box::new(Budget::new(plan.schedule().policy(), target)),
                None => plan.schedule().policy(),
            },
            Self::Made(class) => return Box::new(Own::new(class, idle.with(vec![past.clone()]), watch)),
        };
        Box::new(Watched { policy, watch: watch.clone() })
    }
}

/// Keywords such as `idle_wait="100ms"`, by the names of the command's options.
fn parameters(given: &Bound<PyDict>) -> PyResult<Parameters> {
    let mut parameters = Parameters::default();
    for (name, value) in given {
        let name: String = name.extract()?;
        let known = all_parameters().into_iter().find(|one| one.name.replace('-', "_") == name);
        let parameter = known.ok_or_else(|| {
            let names: Vec<_> = all_parameters().iter().map(|one| one.name.replace('-', "_")).collect();
            value_error(&format!("no policy takes '{name}'; there are {}", names.join(", ")))
        })?;
        parameters = parameters.with(parameter, read(parameter, &value)?);
    }
    Ok(parameters)
}

fn read(parameter: Parameter, given: &Bound<PyAny>) -> PyResult<Value> {
    Ok(match parameter.kind {
        Kind::Time => given.extract::<Time>()?.0.into(),
        Kind::Size { .. } => given.extract::<Size>()?.0.into(),
        Kind::Number { .. } => given.extract::<f64>()?.into(),
    })
}

/// A policy that stops with the simulation.
struct Watched {
    policy: Box<dyn Policy>,
    watch: Arc<Watch>,
}

impl Policy for Watched {
    fn interval_foreseen(&mut self, length: Nanos) {
        self.policy.interval_foreseen(length);
    }

    fn idle_began(&mut self, busy: Nanos, at: Nanos) {
        self.watch.go_on();
        self.policy.idle_began(busy, at);
    }

    fn decide(&mut self, elapsed: Nanos) -> Decision {
        self.policy.decide(elapsed)
    }

    fn foreground_arrived(&mut self, idle: Nanos, collision: Nanos) {
        self.policy.foreground_arrived(idle, collision);
    }

    fn foreground_served(&mut self, requests: u64, delays: Nanos) {
        self.policy.foreground_served(requests, delays);
    }

    fn account(&self) -> Option<idlewise::policy::Account> {
        self.policy.account()
    }
}

/// A policy written in Python.
struct Own {
    decide: Py<PyAny>,
    idle_began: Option<Py<PyAny>>,
    foreground_arrived: Option<Py<PyAny>>,
    watch: Arc<Watch>,
}

impl Own {
    fn new(class: &Py<PyAny>, past: Idleness, watch: &Arc<Watch>) -> Self {
        let made = Python::attach(|py| {
            let object = class.bind(py).call1((past,))?;
            // Of a class that says nothing about them, the methods of `Policy` need not be called.
            let usual = py.import("idlewise._policy")?.getattr("Policy")?;
            let optional = |name: &str| -> PyResult<Option<Py<PyAny>>> {
                let of_class = object.get_type().getattr_opt(name)?;
                if of_class.is_some_and(|method| usual.getattr(name).is_ok_and(|usual| method.is(&usual))) {
                    return Ok(None);
                }
                Ok(object.getattr_opt(name)?.map(Bound::unbind))
            };
            Ok(Self {
                decide: object.getattr("decide")?.unbind(),
                idle_began: optional("idle_began")?,
                foreground_arrived: optional("foreground_arrived")?,
                watch: watch.clone(),
            })
        });
        made.unwrap_or_else(|error| watch.raise(error))
    }

    fn tell(&self, method: &Option<Py<PyAny>>, first: Nanos, second: Nanos) {
        let Some(method) = method else { return };
        let told = Python::attach(|py| method.call1(py, (first.0, second.0)).map(drop));
        told.unwrap_or_else(|error| self.watch.raise(error));
    }
}

impl Policy for Own {
    fn idle_began(&mut self, busy: Nanos, at: Nanos) {
        self.tell(&self.idle_began, busy, at);
    }

    fn decide(&mut self, elapsed: Nanos) -> Decision {
        self.watch.go_on();
        let decided = Python::attach(|py| decision(self.decide.bind(py).call1((elapsed.0,))?, elapsed));
        decided.unwrap_or_else(|error| self.watch.raise(error))
    }

    fn foreground_arrived(&mut self, idle: Nanos, collision: Nanos) {
        self.tell(&self.foreground_arrived, idle, collision);
    }
}

/// What `decide` returned.
fn decision(returned: Bound<PyAny>, elapsed: Nanos) -> PyResult<Decision> {
    if returned.is_none() {
        return Ok(Decision::Stop);
    }
    if let Ok(issue) = returned.cast::<Issue>() {
        let Issue { size, count } = *issue.get();
        return Ok(Decision::Issue { size: Bytes(size), count: count.unwrap_or(u64::MAX) });
    }
    if let Ok(wait) = returned.cast::<Wait>() {
        let until = Nanos(wait.get().until_ns);
        if until <= elapsed {
            let why = format!("decide({}) returned Wait({}), which is over", elapsed.0, until.0);
            return Err(value_error(&why));
        }
        return Ok(Decision::Wait { until });
    }
    let kind = returned.get_type().name()?.to_string();
    Err(Error::Type(format!("decide() returns Wait, Issue or None, not {kind}")).into())
}
