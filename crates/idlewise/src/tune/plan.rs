//! A plan: what the tuner chose, as an object and as a file.

use serde::{Deserialize, Serialize};

use super::Goal;
#[cfg(feature = "files")]
use crate::policy::shaped::Step;
use crate::policy::{Policy, Shaped, Waiting};
use crate::simulate::{Outcome, Summary};
use crate::{Bytes, Nanos, Rate};

/// A request size and an idle wait, with what they did in simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Size of each request.
    pub request_size: Bytes,
    /// Idle wait (threshold t).
    pub idle_wait: Nanos,
    /// The simulated outcome.
    pub outcome: Outcome,
}

impl Plan {
    /// The policy that carries it out.
    pub fn policy(&self) -> Waiting {
        Waiting { idle_wait: self.idle_wait, request_size: self.request_size }
    }
}

/// What a plan file says to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// One wait and one size.
    Waiting(Waiting),
    /// Steps.
    Shaped(Shaped),
}

impl Schedule {
    /// The policy that carries it out.
    pub fn policy(&self) -> Box<dyn Policy> {
        match self {
            Self::Waiting(waiting) => Box::new(*waiting),
            Self::Shaped(shaped) => Box::new(shaped.clone()),
        }
    }

    /// The sizes of its requests.
    pub fn sizes(&self) -> Vec<Bytes> {
        match self {
            Self::Waiting(waiting) => vec![waiting.request_size],
            Self::Shaped(shaped) => shaped.steps().filter_map(|step| step.size).collect(),
        }
    }

    /// How long its requests take at most, where it says so.
    pub fn longest(&self) -> Nanos {
        match self {
            Self::Waiting(_) => Nanos::ZERO,
            Self::Shaped(shaped) => shaped.steps().map(|step| step.service).max().unwrap_or_default(),
        }
    }

    fn steps(&self) -> Option<Shaped> {
        match self {
            Self::Waiting(_) => None,
            Self::Shaped(shaped) => Some(shaped.clone()),
        }
    }

    /// Size of the first request of an interval, and the idle time before it.
    pub fn first(&self) -> (Bytes, Nanos) {
        match self {
            Self::Waiting(waiting) => (waiting.request_size, waiting.idle_wait),
            Self::Shaped(shaped) => {
                let first = shaped.steps().filter_map(|step| Some((step.size?, step.from))).min_by_key(|step| step.1);
                first.unwrap_or((Bytes(0), Nanos(u64::MAX)))
            }
        }
    }
}

/// A plan as kept in a TOML file (docs/formats.md): what to do, what it should keep, what it was predicted to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanFile {
    /// Version of this layout: 1, or 2 where there are steps, or 3 where a 99th percentile is to be kept.
    pub version: u32,
    /// Size of each request; of the first in an interval where there are steps.
    pub request_size: Bytes,
    /// Idle wait (threshold t) before the first request.
    pub idle_wait: Nanos,
    /// The trace it was tuned on.
    pub trace: String,
    /// Name of the disk model.
    pub disk: String,
    /// What the user asked for.
    pub goal: Goal,
    /// What the simulation says of it.
    pub predicted: Predicted,
    /// Steps that are followed instead of one wait and one size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Shaped>,
}

/// What a plan did in simulation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Predicted {
    /// Mean slowdown of all foreground requests.
    pub mean_slowdown: Nanos,
    /// Slowdown that 99 % of them do not exceed, where that is a goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_slowdown: Option<Nanos>,
    /// Longest slowdown.
    pub max_slowdown: Nanos,
    /// Scrub throughput over the trace's span.
    pub throughput: Rate,
    /// Share of the idle time used.
    pub utilised_idle: f64,
}

impl Predicted {
    /// What a simulation says of a goal.
    pub fn new(summary: &Summary, slowdown_p99: Nanos, goal: &Goal) -> Self {
        let nanos = |seconds: f64| Nanos((seconds * 1e9).round() as u64);
        Self {
            mean_slowdown: nanos(summary.mean_slowdown_s),
            p99_slowdown: goal.p99_slowdown.and(Some(slowdown_p99)),
            max_slowdown: nanos(summary.max_slowdown_s),
            throughput: Rate(summary.throughput_bytes_per_s.round() as u64),
            utilised_idle: summary.utilised_idle,
        }
    }
}

/// A plan file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// Not TOML, or not these fields.
    #[error("not a plan as `tune --out` writes it: {0}")]
    Syntax(String),
    /// Written by another version.
    #[error("plan version {0}; this idlewise reads versions 1 to {version}", version = PlanFile::VERSION)]
    Version(u32),
    /// A size that cannot be issued.
    #[error("a request size is {0}: it must be a multiple of 512 B, at least 512 B and at most 64 MiB")]
    Size(Bytes),
    /// Steps that are not in order of time.
    #[error("the steps are not in order of time, or issue nothing")]
    Steps,
}

impl PlanFile {
    /// The newest version that is written and read.
    pub const VERSION: u32 = 3;

    /// Puts a schedule and where it came from into a file's form.
    pub fn new(schedule: &Schedule, goal: Goal, predicted: Predicted, trace: &str, disk: &str) -> Self {
        let (request_size, idle_wait) = schedule.first();
        let (trace, disk) = (trace.into(), disk.into());
        let (version, steps) = match schedule {
            _ if goal.p99_slowdown.is_some() => (3, schedule.steps()),
            Schedule::Waiting(_) => (1, None),
            Schedule::Shaped(_) => (2, schedule.steps()),
        };
        Self { version, request_size, idle_wait, trace, disk, goal, predicted, steps }
    }

    /// Reads the TOML text of a plan.
    ///
    /// # Errors
    /// [`PlanError`] says what is wrong.
    #[cfg(feature = "files")]
    pub fn from_toml(text: &str) -> Result<Self, PlanError> {
        let syntax = |error: toml::de::Error| PlanError::Syntax(error.message().into());
        crate::small::check(text).map_err(PlanError::Syntax)?;
        let table: toml::Table = text.parse().map_err(syntax)?;
        let version = table.get("version").and_then(toml::Value::as_integer);
        drop(table);
        if let Some(version) = version
            && !(1..=i64::from(Self::VERSION)).contains(&version)
        {
            return Err(PlanError::Version(u32::try_from(version).unwrap_or(u32::MAX)));
        }
        let plan: Self = toml::from_str(text).map_err(syntax)?;
        if let Some(steps) = &plan.steps {
            let ordered = |steps: &[Step]| steps.is_sorted_by(|a, b| a.from < b.from);
            let issues = steps.steps().any(|step| step.size.is_some());
            if !(ordered(&steps.after_short) && ordered(&steps.after_long) && issues) {
                return Err(PlanError::Steps);
            }
        }
        for size in plan.schedule().sizes().into_iter().chain([plan.request_size]) {
            if !(512..=64 << 20).contains(&size.0) || !size.0.is_multiple_of(512) {
                return Err(PlanError::Size(size));
            }
        }
        Ok(plan)
    }

    /// The TOML text of this plan.
    #[cfg(feature = "files")]
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a plan has only text, numbers and tables")
    }

    /// What to do.
    pub fn schedule(&self) -> Schedule {
        match &self.steps {
            Some(steps) => Schedule::Shaped(steps.clone()),
            None => Schedule::Waiting(Waiting { idle_wait: self.idle_wait, request_size: self.request_size }),
        }
    }
}

#[cfg(all(test, feature = "files"))]
mod tests {
    use super::*;

    fn file() -> PlanFile {
        let waiting = Waiting { request_size: Bytes::from_kib(1280), idle_wait: Nanos(205_000_001) };
        of(&Schedule::Waiting(waiting))
    }

    fn of(schedule: &Schedule) -> PlanFile {
        kept_within(schedule, Goal::new(Nanos::from_millis(1), Nanos::from_millis(50)))
    }

    fn kept_within(schedule: &Schedule, goal: Goal) -> PlanFile {
        let summary = Summary { mean_slowdown_s: 0.000_999, throughput_bytes_per_s: 38.75e6, ..Summary::default() };
        PlanFile::new(schedule, goal, Predicted::new(&summary, Nanos(9_000), &goal), "hp.srt", "Ultrastar")
    }

    #[test]
    fn reads_back_exactly_what_it_writes() {
        assert_eq!(PlanFile::from_toml(&file().to_toml()).unwrap(), file());
        let step =
            |from, kib: Option<u64>| Step { from: Nanos(from), size: kib.map(Bytes::from_kib), service: Nanos(9) };
        let steps = vec![step(0, None), step(1_000, Some(64)), step(2_001, None), step(3_000, Some(128))];
        let shaped = of(&Schedule::Shaped(Shaped::with_context(steps[..2].into(), steps.clone(), Nanos(77))));
        let text = shaped.to_toml();
        assert_eq!(PlanFile::from_toml(&text).unwrap(), shaped, "{text}");
        assert_eq!((shaped.version, shaped.request_size, shaped.idle_wait), (2, Bytes::from_kib(64), Nanos(1_000)));
        let unordered = of(&Schedule::Shaped(Shaped::new(steps.into_iter().rev().collect())));
        assert!(matches!(PlanFile::from_toml(&unordered.to_toml()), Err(PlanError::Steps)));
    }

    #[test]
    fn a_99th_percentile_is_version_3() {
        let waiting = Schedule::Waiting(Waiting { request_size: Bytes::from_kib(64), idle_wait: Nanos(1) });
        let shaped =
            Schedule::Shaped(Shaped::new(vec![Step { from: Nanos(5), size: Some(Bytes(512)), service: Nanos(9) }]));
        let goal = Goal { p99_slowdown: Some(Nanos::from_millis(10)), ..file().goal };
        for schedule in [waiting, shaped] {
            let plan = kept_within(&schedule, goal);
            let text = plan.to_toml();
            assert!(
                plan.version == 3
                    && text.contains("p99_slowdown = \"10ms\"")
                    && text.contains("p99_slowdown = \"9us\""),
                "{text}"
            );
            assert_eq!(PlanFile::from_toml(&text).unwrap(), plan);
        }
        assert!(!file().to_toml().contains("p99"));
    }

    /// A plan written by version 0.1 must stay readable.
    #[test]
    fn version_1_stays_readable() {
        let text = "version = 1\nrequest_size = \"1280KiB\"\nidle_wait = \"205ms\"\ntrace = \"t\"\ndisk = \"d\"\n[goal]\n\
            mean_slowdown = \"1ms\"\nmax_slowdown = \"50ms\"\n[predicted]\nmean_slowdown = \"999us\"\n\
            max_slowdown = \"18ms\"\nthroughput = \"38750000B/s\"\nutilised_idle = 0.5\n";
        assert_eq!(PlanFile::from_toml(text).unwrap().idle_wait, Nanos::from_millis(205));
    }

    #[test]
    fn refuses_other_versions_and_sizes() {
        let text = file().to_toml();
        let newer = PlanFile::from_toml(&text.replace("version = 1", "version = 7")).unwrap_err().to_string();
        assert!(newer.contains("plan version 7"), "{newer}");
        let odd = PlanFile::from_toml(&text.replace("1280KiB", "1000B")).unwrap_err().to_string();
        assert!(odd.contains("multiple of 512 B"), "{odd}");
        assert!(matches!(PlanFile::from_toml("hello"), Err(PlanError::Syntax(_))));
    }
}
