//! What is to be replayed, as a file (docs/formats.md).

use serde::{Deserialize, Serialize};

use super::{FeatureSet, Representative, Rule};
use crate::Nanos;
use crate::replay::Segment;

/// The intervals of a trace to replay, with their weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SamplingPlan {
    /// Version of this layout.
    pub version: u32,
    /// The trace.
    pub trace: String,
    /// The only volume that was looked at, if not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// Length of an interval.
    pub interval: Nanos,
    /// The features that were compared.
    pub features: FeatureSet,
    /// How the number of clusters was chosen.
    pub rule: Rule,
    /// Seed of the clustering.
    pub seed: u64,
    /// Requests of the trace.
    pub requests: u64,
    /// From its first arrival to its last.
    pub span: Nanos,
    /// The intervals, in order of time.
    pub representatives: Vec<Representative>,
}

/// A plan cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SamplingPlanError {
    /// Not TOML, or not these fields.
    #[error("not a plan as `sample` writes it: {0}")]
    Syntax(String),
    /// Written by another version.
    #[error("sampling plan of version {0}; this idlewise reads version {version}", version = SamplingPlan::VERSION)]
    Version(i64),
    /// Fields that contradict each other.
    #[error("{0}")]
    Contradiction(String),
}

impl SamplingPlan {
    /// The version that is written and read.
    pub const VERSION: u32 = 1;

    /// Reads the TOML text of a plan.
    ///
    /// # Errors
    /// [`SamplingPlanError`] says what is wrong.
    pub fn from_toml(text: &str) -> Result<Self, SamplingPlanError> {
        let syntax = |error: toml::de::Error| SamplingPlanError::Syntax(error.message().into());
        let table: toml::Table = text.parse().map_err(syntax)?;
        if let Some(version) = table.get("version").and_then(toml::Value::as_integer)
            && version != i64::from(Self::VERSION)
        {
            return Err(SamplingPlanError::Version(version));
        }
        let plan: Self = toml::from_str(text).map_err(syntax)?;
        plan.check().map_err(SamplingPlanError::Contradiction)?;
        Ok(plan)
    }

    /// The TOML text of this plan.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a plan has only text, numbers and tables")
    }

    /// The representatives as a replay takes them: on the clock of the trace, in order of time, not overlapping.
    pub fn segments(&self) -> Vec<Segment> {
        let segment = |one: &Representative| Segment {
            begin: one.begin,
            end: Nanos(one.begin.0.saturating_add(self.interval.0)),
            weight: one.weight as f64,
        };
        self.representatives.iter().map(segment).collect()
    }

    fn check(&self) -> Result<(), String> {
        if self.interval == Nanos::ZERO {
            return Err("interval must be longer than zero".into());
        }
        if self.representatives.is_empty() {
            return Err("there must be at least one of [[representatives]]".into());
        }
        for representative in &self.representatives {
            let Representative { index, begin, requests, weight } = representative;
            if index.checked_mul(self.interval.0) != Some(begin.0) {
                return Err(format!("interval {index} must begin after {index} times {}", self.interval.exact()));
            }
            if *requests == 0 || weight < requests {
                return Err(format!("interval {index} must have requests, and a weight no less than they are"));
            }
        }
        if !self.representatives.is_sorted_by(|a, b| a.index < b.index) {
            return Err("[[representatives]] must be in order of time, each once".into());
        }
        let weights: u128 = self.representatives.iter().map(|representative| u128::from(representative.weight)).sum();
        if weights != u128::from(self.requests) {
            return Err(format!(
                "the weights must add up to the {} requests of the trace, not to {weights}",
                self.requests
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> SamplingPlan {
        let interval = Nanos(10_000_000_001);
        let representative =
            |index, requests, weight| Representative { index, begin: Nanos(index * interval.0), requests, weight };
        SamplingPlan {
            version: SamplingPlan::VERSION,
            trace: "hm_0.csv".into(),
            volume: None,
            interval,
            features: FeatureSet::default(),
            rule: Rule::Bic90,
            seed: 7,
            requests: 1_000,
            span: Nanos(604_800_000_000_007),
            representatives: vec![representative(0, 3, 10), representative(60_000, 40, 990)],
        }
    }

    #[test]
    fn reads_back_exactly_what_it_writes() {
        let text = plan().to_toml();
        assert_eq!(SamplingPlan::from_toml(&text).unwrap(), plan(), "{text}");
        let one = SamplingPlan { volume: Some("hm 0".into()), ..plan() };
        assert_eq!(SamplingPlan::from_toml(&one.to_toml()).unwrap(), one);
        let segment = |begin, end, weight| Segment { begin: Nanos(begin), end: Nanos(end), weight };
        let second = segment(600_000_000_060_000, 600_010_000_060_001, 990.0);
        assert_eq!(plan().segments(), [segment(0, 10_000_000_001, 10.0), second]);
    }

    /// A plan written by version 0.1 must stay readable.
    #[test]
    fn version_1_stays_readable() {
        let text = "version = 1\ntrace = \"t\"\ninterval = \"10s\"\nfeatures = \"RdCnt\"\nrule = \"bic\"\nseed = 1\n\
            requests = 9\nspan = \"31s\"\n[[representatives]]\nindex = 3\nbegin = \"30s\"\nrequests = 4\nweight = 9\n";
        let plan = SamplingPlan::from_toml(text).unwrap();
        let [begin, end] = [30, 40].map(Nanos::from_secs);
        assert_eq!(plan.segments(), [Segment { begin, end, weight: 9.0 }]);
    }

    #[test]
    fn refuses_what_contradicts_itself() {
        let text = plan().to_toml();
        for (from, to, why) in [
            ("version = 1", "version = 9", "version 9"),
            ("index = 60000", "index = 60001", "60001 times 10.000000001s"),
            ("weight = 990", "weight = 99", "add up to the 1000"),
            ("requests = 40", "requests = 0", "must have requests"),
            ("interval = \"10.000000001s\"", "interval = \"0s\"", "longer than zero"),
            ("seed = 7", "seeds = 7", "seeds"),
            ("ArqWsl", "Xyz", "'Xyz'"),
        ] {
            assert!(text.contains(from), "{from} in {text}");
            let error = SamplingPlan::from_toml(&text.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(why), "{to}: {error}");
        }
        let none = text.split("[[representatives]]").next().unwrap().to_string() + "representatives = []\n";
        assert!(SamplingPlan::from_toml(&none).unwrap_err().to_string().contains("at least one"));
        assert!(matches!(SamplingPlan::from_toml("hello"), Err(SamplingPlanError::Syntax(_))));
    }
}
