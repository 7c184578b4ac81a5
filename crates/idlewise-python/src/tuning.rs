//! Plans for a slowdown goal, and what they are put beside.

use idlewise::disk::LARGEST_REQUEST;
use idlewise::simulate::Summary;
use idlewise::tune::{Arrivals, Baseline, baselines as usual, baselines_of_plan, frontier as points};
use idlewise::{Bytes, Nanos};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Map, Value, json};

use crate::error::value_error;
use crate::idle::Idleness;
use crate::plan::{Aim, Plan};
use crate::running;
use crate::table::Table;
use crate::units::{Size, Time};
use crate::values::members;

/// Keywords that say what is tuned for.
const AIMS: [&str; 7] =
    ["mean_slowdown", "max_slowdown", "p99_slowdown", "finish_within", "capacity", "any_moment", "shaped"];

/// What is tuned for, from keywords.
fn aim(given: Option<&Bound<PyDict>>) -> PyResult<Aim> {
    let mut aim = Aim {
        mean_slowdown: None,
        max_slowdown: None,
        p99_slowdown: None,
        finish_within: None,
        capacity: Bytes(10_000_000_000_000),
        arrivals: Arrivals::Recorded,
        shaped: false,
    };
    let given = given.iter().flat_map(|given| given.iter()).filter(|(_, value)| !value.is_none());
    for (name, value) in given {
        let time = || -> PyResult<Option<Nanos>> { Ok(Some(value.extract::<Time>()?.0)) };
        match name.extract::<String>()?.as_str() {
            "mean_slowdown" => aim.mean_slowdown = time()?,
            "max_slowdown" => aim.max_slowdown = time()?,
            "p99_slowdown" => aim.p99_slowdown = time()?,
            "finish_within" => aim.finish_within = time()?,
            "capacity" => aim.capacity = value.extract::<Size>()?.0,
            "any_moment" => aim.arrivals = arrivals(value.extract()?),
            "shaped" => aim.shaped = value.extract()?,
            other => {
                let why = format!("tune has no keyword '{other}'; there are {}", AIMS.join(", "));
                return Err(pyo3::exceptions::PyTypeError::new_err(why));
            }
        }
    }
    aim.check()?;
    Ok(aim)
}

fn arrivals(any_moment: bool) -> Arrivals {
    if any_moment { Arrivals::AnyMoment } else { Arrivals::Recorded }
}

#[doc = doc!("tune")]
#[pyfunction]
#[pyo3(signature = (idle, *, disk=None, progress=None, **aim))]
pub fn tune(
    py: Python,
    idle: &Idleness,
    disk: Option<&Bound<PyAny>>,
    progress: Option<&Bound<PyAny>>,
    aim: Option<&Bound<PyDict>>,
) -> PyResult<Plan> {
    let (aim, model, idle) = (self::aim(aim)?, idle.model(disk)?, idle.clone());
    running::run(py, progress, move |watch| Ok(aim.plan(&idle.disks, &model, &idle.source.trace, watch)?.0))
}

#[doc = doc!("tune_each")]
#[pyfunction]
#[pyo3(signature = (idle, *, disk=None, progress=None, **aim))]
pub fn tune_each(
    py: Python,
    idle: &Idleness,
    disk: Option<&Bound<PyAny>>,
    progress: Option<&Bound<PyAny>>,
    aim: Option<&Bound<PyDict>>,
) -> PyResult<Table> {
    let (aim, model, idle) = (self::aim(aim)?, idle.model(disk)?, idle.clone());
    running::run(py, progress, move |watch| {
        let mut rows = Vec::new();
        for (at, disk) in idle.disks.iter().enumerate() {
            let mut row = members(&json!({ "volume": disk.volume, "requests": disk.requests }));
            // Each plan counts its own share: what is told is that of the volumes.
            let inner = running::Watch::within(watch, at, idle.disks.len());
            match aim.plan(std::slice::from_ref(disk), &model, &idle.source.trace, &inner) {
                Ok((plan, told)) => {
                    row.extend(told);
                    row.insert("plan".into(), plan.file.to_toml().into());
                }
                Err(error) => _ = row.insert("error".into(), error.message().into()),
            }
            rows.push(row);
        }
        Ok(Table::like(&plan_columns(), rows))
    })
}

/// The columns of a table of plans, each with a value of its type.
pub fn plan_columns() -> Map<String, Value> {
    let mut columns = members(&json!({ "volume": "", "requests": 0, "request_size_bytes": 0, "idle_wait_s": 0.5 }));
    columns.extend(members(&Summary { relative_delay: Some(0.5), ..Summary::default() }));
    columns.extend(members(
        &json!({ "slowdown_p99_s": 0.5, "full_pass_s": 0.5, "warnings": "", "plan": "", "error": "" }),
    ));
    columns
}

#[doc = doc!("frontier")]
#[pyfunction]
#[pyo3(signature = (idle, *, max_slowdown=None, any_moment=false, disk=None, progress=None))]
pub fn frontier(
    py: Python,
    idle: &Idleness,
    max_slowdown: Option<Time>,
    any_moment: bool,
    disk: Option<&Bound<PyAny>>,
    progress: Option<&Bound<PyAny>>,
) -> PyResult<Table> {
    let (model, disks) = (idle.model(disk)?, idle.disks.clone());
    let longest = max_slowdown.map_or_else(|| model.verify_time(LARGEST_REQUEST), |time| time.0);
    if longest < model.verify_time(idlewise::disk::SMALLEST_REQUEST) {
        return Err(value_error("max_slowdown is below the time of the smallest request"));
    }
    running::run(py, progress, move |watch| {
        let points = points(&disks, &model, longest, arrivals(any_moment), &|done| watch.share(done));
        Ok(Table::new(points.iter().map(members).collect()))
    })
}

#[doc = doc!("baselines")]
#[pyfunction]
#[pyo3(signature = (idle, plan=None, *, disk=None))]
pub fn baselines(
    py: Python,
    idle: &Idleness,
    plan: Option<&Bound<Plan>>,
    disk: Option<&Bound<PyAny>>,
) -> PyResult<Table> {
    let (model, disks) = (idle.model(disk)?, idle.disks.clone());
    let plan = plan.map(|plan| plan.get().file.schedule());
    running::run(py, None, move |watch| {
        let mut all = usual(&disks, &model);
        watch.go_on();
        if let Some(schedule) = plan {
            let run = idlewise::simulate::scrub(&disks, &model, None, |_| schedule.policy());
            let mean = Summary::new(&run.outcome, &disks).mean_slowdown_s;
            all.extend(baselines_of_plan(&disks, &model, schedule.first().0, mean));
        }
        Ok(Table::new(all.iter().map(row).collect()))
    })
}

fn row(base: &Baseline) -> Map<String, Value> {
    let mut row = members(&json!({
        "name": base.name,
        "request_size_bytes": base.request_size.0,
        "idle_wait_s": base.wait.as_secs_f64(),
    }));
    row.extend(members(&base.summary));
    row.insert("slowdown_p99_s".into(), base.slowdown_p99.as_secs_f64().into());
    row
}
