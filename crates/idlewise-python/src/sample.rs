//! The few intervals that stand for a trace.

use std::path::PathBuf;

use idlewise::Nanos;
use idlewise::sample::{
    Amount, Chosen, Extractor, FeatureSet, Outcome, Part, Rule, SamplingPlan as File, Settings, Way, sample as sampled,
};
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

#[doc = doc!("SamplingPlan")]
#[pyclass(frozen, module = "idlewise")]
pub struct SamplingPlan {
    file: File,
    /// Where it was made here.
    outcome: Option<Outcome>,
}

#[pymethods]
impl SamplingPlan {
    #[doc = doc!("SamplingPlan.load")]
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<Self> {
        let file = File::from_toml(&text_of(&path)?);
        let file = file.map_err(|error| value_error(&format!("{}: {error}", path.display())))?;
        Ok(Self { file, outcome: None })
    }

    #[doc = doc!("SamplingPlan.to_toml")]
    fn to_toml(&self) -> String {
        self.file.to_toml()
    }

    #[doc = doc!("SamplingPlan.save")]
    fn save(&self, path: PathBuf) -> PyResult<()> {
        write_text(&path, &self.to_toml())
    }

    #[doc = doc!("SamplingPlan.interval_ns")]
    #[getter]
    fn interval_ns(&self) -> u64 {
        self.file.interval.0
    }

    #[doc = doc!("SamplingPlan.representatives")]
    #[getter]
    fn representatives(&self) -> Table {
        let row = |one: Part| {
            members(&json!({
                "index": one.index, "begin_s": one.begin.as_secs_f64(), "requests": one.requests, "weight": one.weight,
                "probability": one.probability, "turn": one.turn,
            }))
        };
        Table::new(self.file.parts().into_iter().map(row).collect())
    }

    #[doc = doc!("SamplingPlan.estimate")]
    fn estimate(&self, means: Vec<Option<f64>>) -> PyResult<(f64, Option<f64>)> {
        let wanted = self.file.parts().len();
        if means.len() != wanted {
            return Err(value_error(&format!("{} mean response times for {wanted} intervals", means.len())));
        }
        if let Some(none) = means.iter().flatten().find(|mean| !mean.is_finite() || **mean < 0.0) {
            return Err(value_error(&format!("{none} is no mean response time in seconds")));
        }
        let estimate = self.file.estimate(&means);
        let estimate = estimate.ok_or_else(|| value_error("the mean response time of an interval is missing"))?;
        Ok((estimate.mean_response_s, estimate.half_width_s))
    }

    #[doc = doc!("SamplingPlan.outcome")]
    #[getter]
    fn outcome<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(outcome) = &self.outcome else { return Ok(None) };
        let value = json!({
            "requests": outcome.requests,
            "intervals": outcome.intervals,
            "way": if matches!(outcome.chosen, Chosen::Drawn(_)) { "drawn" } else { "clusters" },
            "k": self.file.parts().len(),
            "share_of_time": outcome.share_of_time,
            "expected_error": outcome.expected_error,
            "estimate_mean_response_s": outcome.estimate_mean_response_s,
            "half_width_s": outcome.half_width_s,
            "true_mean_response_s": outcome.true_mean_response_s,
            "error": outcome.error,
            "rules": to_value(&outcome.choices),
            "systematic": to_value(&outcome.systematic),
            "phases": to_value(&outcome.phases),
            "criteria": to_value(&outcome.criteria),
        });
        to_python(py, &value).map(Some)
    }

    fn __repr__(&self) -> String {
        format!("<idlewise.SamplingPlan: {} intervals of {}>", self.file.parts().len(), self.file.interval)
    }
}

#[doc = doc!("sample")]
#[pyfunction]
#[pyo3(signature = (trace, *, interval=None, intervals=None, error=None, features=None, rule=None, seed=1, progress=None))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub fn sample(
    py: Python,
    trace: &Trace,
    interval: Option<Time>,
    intervals: Option<usize>,
    error: Option<f64>,
    features: Option<&str>,
    rule: Option<&str>,
    seed: u64,
    progress: Option<&Bound<PyAny>>,
) -> PyResult<SamplingPlan> {
    let interval = interval.map_or(Nanos::from_secs(10), |interval| interval.0);
    if interval == Nanos::ZERO {
        return Err(value_error("interval is longer than zero, such as '10s'"));
    }
    let way = way(intervals, error, features, rule)?;
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
        let settings = Settings { interval, way, seed };
        let outcome = sampled(&extractor.finish(), &settings, &|done| watch.share(done));
        let outcome = outcome.ok_or_else(|| Error::Value(format!("{}: has no requests", inner.name)))?;
        let file = File {
            version: File::VERSION,
            trace: inner.name.clone(),
            volume: inner.only_volume(&names),
            interval,
            seed,
            requests: outcome.requests,
            span,
            chosen: outcome.chosen.clone(),
        };
        Ok(SamplingPlan { file, outcome: Some(outcome) })
    })
}

/// How intervals are chosen: by lot, unless clusters are asked for.
fn way(intervals: Option<usize>, error: Option<f64>, features: Option<&str>, rule: Option<&str>) -> PyResult<Way> {
    let by_lot = intervals.is_some() || error.is_some();
    match (features, rule) {
        (None, None) => {}
        _ if by_lot => {
            return Err(value_error(
                "intervals and error are for intervals drawn by lot, features and rule for clusters",
            ));
        }
        _ => {
            let features = features.unwrap_or(FeatureSet::PAPERS).parse();
            let rule = rule.map_or(Ok(Rule::Bic), str::parse);
            return Ok(Way::Clusters {
                features: features.map_err(|error| value_error(&format!("features: {error}")))?,
                rule: rule.map_err(|error| value_error(&format!("rule: {error}")))?,
            });
        }
    }
    match (intervals, error) {
        (Some(_), Some(_)) => Err(value_error("either intervals or error says how many are drawn, not both")),
        (Some(0), _) => Err(value_error("intervals is at least 1")),
        (_, Some(error)) if !(error > 0.0 && error <= 1.0) => {
            Err(value_error("error is above 0 and at most 1, such as 0.05"))
        }
        (_, Some(error)) => Ok(Way::Drawn(Amount::Error(error))),
        (count, None) => Ok(Way::Drawn(count.map(Amount::Intervals).unwrap_or_default())),
    }
}
