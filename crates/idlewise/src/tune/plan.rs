//! A plan: what the tuner chose, as an object and as a file.

use serde::{Deserialize, Serialize};

use super::Goal;
use crate::policy::Waiting;
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

/// A plan as kept in a TOML file (docs/formats.md): what to do, what it should keep, what it was predicted to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanFile {
    /// Version of this layout: [`PlanFile::VERSION`].
    pub version: u32,
    /// Size of each request.
    pub request_size: Bytes,
    /// Idle wait (threshold t).
    pub idle_wait: Nanos,
    /// The trace it was tuned on.
    pub trace: String,
    /// Name of the disk model.
    pub disk: String,
    /// What the user asked for.
    pub goal: Goal,
    /// What the simulation says of it.
    pub predicted: Predicted,
}

/// What a plan did in simulation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Predicted {
    /// Mean slowdown of all foreground requests.
    pub mean_slowdown: Nanos,
    /// Longest slowdown.
    pub max_slowdown: Nanos,
    /// Scrub throughput over the trace's span.
    pub throughput: Rate,
    /// Share of the idle time used.
    pub utilised_idle: f64,
}

impl From<&Summary> for Predicted {
    fn from(summary: &Summary) -> Self {
        let nanos = |seconds: f64| Nanos((seconds * 1e9).round() as u64);
        Self {
            mean_slowdown: nanos(summary.mean_slowdown_s),
            max_slowdown: nanos(summary.max_slowdown_s),
            throughput: Rate(summary.throughput_bytes_per_s.round() as u64),
            utilised_idle: summary.utilised_idle,
        }
    }
}

/// A plan file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Not TOML, or not these fields.
    #[error("not a plan as `tune --out` writes it: {0}")]
    Syntax(String),
    /// Written by another version.
    #[error("plan version {0}; this idlewise reads version {version}", version = PlanFile::VERSION)]
    Version(u32),
    /// A size that cannot be issued.
    #[error("request_size is {0}: it must be a multiple of 512B, at least 512B and at most 64MiB")]
    Size(Bytes),
}

impl PlanFile {
    /// The version that is written and read.
    pub const VERSION: u32 = 1;

    /// Puts a plan and where it came from into a file's form.
    pub fn new(plan: &Plan, goal: Goal, predicted: &Summary, trace: &str, disk: &str) -> Self {
        let predicted = Predicted::from(predicted);
        let (request_size, idle_wait) = (plan.request_size, plan.idle_wait);
        let (trace, disk) = (trace.into(), disk.into());
        Self { version: Self::VERSION, request_size, idle_wait, trace, disk, goal, predicted }
    }

    /// Reads the TOML text of a plan.
    ///
    /// # Errors
    /// [`PlanError`] says what is wrong.
    pub fn from_toml(text: &str) -> Result<Self, PlanError> {
        let syntax = |error: toml::de::Error| PlanError::Syntax(error.message().into());
        let table: toml::Table = text.parse().map_err(syntax)?;
        if let Some(version) = table.get("version").and_then(toml::Value::as_integer)
            && version != i64::from(Self::VERSION)
        {
            return Err(PlanError::Version(u32::try_from(version).unwrap_or(u32::MAX)));
        }
        let plan: Self = toml::from_str(text).map_err(syntax)?;
        let size = plan.request_size;
        if !(512..=64 << 20).contains(&size.0) || !size.0.is_multiple_of(512) {
            return Err(PlanError::Size(size));
        }
        Ok(plan)
    }

    /// The TOML text of this plan.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a plan has only text, numbers and tables")
    }

    /// The policy that carries it out.
    pub fn policy(&self) -> Waiting {
        Waiting { idle_wait: self.idle_wait, request_size: self.request_size }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> PlanFile {
        let plan =
            Plan { request_size: Bytes::from_kib(1280), idle_wait: Nanos(205_000_001), outcome: Outcome::default() };
        let goal = Goal { mean_slowdown: Nanos::from_millis(1), max_slowdown: Nanos::from_millis(50) };
        let summary = Summary { mean_slowdown_s: 0.000_999, throughput_bytes_per_s: 38.75e6, ..Summary::default() };
        PlanFile::new(&plan, goal, &summary, "hp.srt", "Ultrastar")
    }

    #[test]
    fn reads_back_exactly_what_it_writes() {
        assert_eq!(PlanFile::from_toml(&file().to_toml()).unwrap(), file());
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
        assert!(odd.contains("multiple of 512B"), "{odd}");
        assert!(matches!(PlanFile::from_toml("hello"), Err(PlanError::Syntax(_))));
    }
}
