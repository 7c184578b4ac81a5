//! The few intervals that stand for a trace.

use std::path::PathBuf;

use idlewise::Nanos;
use idlewise::sample::{Extractor, FeatureSet, Outcome, Rule, SamplingPlan as File, Settings, sample as sampled};
use idlewise::trace::Columns;
use pyo3::prelude::*;
use serde_json::json;

use crate::error::{Error, value_error};
use crate::files::{text_of, write_text};
use crate::running;
use crate::table::Table;
use crate::trace::Trace;
use crate::units::Time;
use crate::values::{members, to_python, to_value};

/// The intervals of a trace to replay, with their weights.
#[pyclass(frozen, module = "idlewise")]
pub struct SamplingPlan {
    file: File,
    /// Where it was made here.
    outcome: Option<Outcome>,
}

#[pymethods]
impl SamplingPlan {
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<Self> {
        let file = File::from_toml(&text_of(&path)?);
        let file = file.map_err(|error| value_error(&format!("{}: {error}", path.display())))?;
        Ok(Self { file, outcome: None })
    }

    fn to_toml(&self) -> String {
        self.file.to_toml()
    }

    fn save(&self, path: PathBuf) -> PyResult<()> {
        write_text(&path, &self.to_toml())
    }

    #[getter]
    fn interval_ns(&self) -> u64 {
        self.file.interval.0
    }

    #[getter]
    fn representatives(&self) -> Table {
        let row = |one: &idlewise::sample::Representative| {
            members(&json!({
                "index": one.index, "begin_s": one.begin.as_secs_f64(), "requests": one.requests, "weight": one.weight,
            }))
        };
        Table::new(self.file.representatives.iter().map(row).collect())
    }

    /// None of a plan that was loaded.
    #[getter]
    fn outcome<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(outcome) = &self.outcome else { return Ok(None) };
        let chosen = outcome.chosen;
        let value = json!({
            "requests": outcome.requests,
            "intervals": outcome.intervals,
            "k": chosen.k,
            "share_of_time": chosen.share_of_time,
            "estimate_mean_response_s": chosen.estimate_mean_response_s,
            "true_mean_response_s": outcome.true_mean_response_s,
            "error": chosen.error,
            "rules": to_value(&outcome.choices),
            "systematic": to_value(&outcome.systematic),
            "phases": to_value(&outcome.phases),
            "criteria": to_value(&outcome.criteria),
        });
        to_python(py, &value).map(Some)
    }

    fn __repr__(&self) -> String {
        format!("<idlewise.SamplingPlan: {} intervals of {}>", self.file.representatives.len(), self.file.interval)
    }
}

/// Find the few intervals that stand for a trace.
#[pyfunction]
#[pyo3(signature = (trace, *, interval=None, features=None, rule="bic", seed=1, progress=None))]
pub fn sample(
    py: Python,
    trace: &Trace,
    interval: Option<Time>,
    features: Option<&str>,
    rule: &str,
    seed: u64,
    progress: Option<&Bound<PyAny>>,
) -> PyResult<SamplingPlan> {
    let interval = interval.map_or(Nanos::from_secs(10), |interval| interval.0);
    if interval == Nanos::ZERO {
        return Err(value_error("interval is longer than zero, such as '10s'"));
    }
    let features: FeatureSet =
        features.unwrap_or(FeatureSet::PAPERS).parse().map_err(|error| value_error(&format!("features: {error}")))?;
    let rule: Rule = rule.parse().map_err(|error| value_error(&format!("rule: {error}")))?;
    let inner = trace.inner();
    running::run(py, progress, move |watch| {
        let take = |(extractor, last, names): &mut (Extractor, Nanos, Vec<String>), columns: &Columns| {
            extractor.requests(columns);
            *last = columns.arrival.last().copied().unwrap_or(*last);
            *names = columns.volumes.iter().map(|name| name.to_string()).collect();
            Ok(())
        };
        let ((extractor, span, names), _) =
            inner.each(watch, |_| Ok((Extractor::new(interval), Nanos::ZERO, Vec::new())), take)?;
        let settings = Settings { interval, features, rule, seed };
        let outcome = sampled(&extractor.finish(), &settings, &|done| watch.share(done));
        let outcome = outcome.ok_or_else(|| Error::Value(format!("{}: has no requests", inner.name)))?;
        let file = File {
            version: File::VERSION,
            trace: inner.name.clone(),
            volume: inner.only_volume(&names),
            interval,
            features: settings.features,
            rule,
            seed,
            requests: outcome.requests,
            span,
            representatives: outcome.representatives.clone(),
        };
        Ok(SamplingPlan { file, outcome: Some(outcome) })
    })
}
