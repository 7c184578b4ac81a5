//! What is to be replayed, as a file (docs/formats.md).

use serde::{Deserialize, Serialize};

use super::{Draw, Estimate, FeatureSet, Representative, Rule};
use crate::Nanos;
use crate::replay::{Segment, weighted_response};

/// The intervals of a trace to replay, and what they stand for.
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
    /// Seed of the lot, or of the clustering.
    pub seed: u64,
    /// Requests of the trace.
    pub requests: u64,
    /// From its first arrival to its last.
    pub span: Nanos,
    /// The intervals.
    pub chosen: Chosen,
}

/// The intervals, in order of time, by how they were chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Chosen {
    /// By lot.
    Drawn(Draw),
    /// The nearest to the middle of each cluster.
    Clusters(Clusters),
}

/// Intervals that stand for clusters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clusters {
    /// The features that were compared.
    pub features: FeatureSet,
    /// How the number of clusters was chosen.
    pub rule: Rule,
    /// One for each cluster.
    pub representatives: Vec<Representative>,
}

/// One of the intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// Its number, from 0 on.
    pub index: u64,
    /// When it begins, since the trace's first request.
    pub begin: Nanos,
    /// Its requests.
    pub requests: u64,
    /// The requests that it stands for, its own among them.
    pub weight: f64,
    /// How likely it was to be drawn, where it was.
    pub probability: Option<f64>,
    /// In which turn, from 0 on.
    pub turn: Option<u32>,
}

/// A plan as version 1 wrote it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Version1 {
    #[serde(rename = "version")]
    _version: u32,
    trace: String,
    volume: Option<String>,
    interval: Nanos,
    features: FeatureSet,
    rule: Rule,
    seed: u64,
    requests: u64,
    span: Nanos,
    representatives: Vec<Representative>,
}

impl From<Version1> for SamplingPlan {
    fn from(plan: Version1) -> Self {
        let Version1 { trace, volume, interval, features, rule, seed, requests, span, representatives, .. } = plan;
        let chosen = Chosen::Clusters(Clusters { features, rule, representatives });
        Self { version: Self::VERSION, trace, volume, interval, seed, requests, span, chosen }
    }
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
    /// The version that is written; version 1 is read as well.
    pub const VERSION: u32 = 2;

    /// Reads the TOML text of a plan.
    ///
    /// # Errors
    /// [`SamplingPlanError`] says what is wrong.
    pub fn from_toml(text: &str) -> Result<Self, SamplingPlanError> {
        let syntax = |error: toml::de::Error| SamplingPlanError::Syntax(error.message().into());
        crate::small::check(text).map_err(SamplingPlanError::Syntax)?;
        let table: toml::Table = text.parse().map_err(syntax)?;
        let version = table.get("version").and_then(toml::Value::as_integer);
        drop(table);
        let plan: Self = match version {
            Some(1) => toml::from_str::<Version1>(text).map_err(syntax)?.into(),
            Some(version) if version != i64::from(Self::VERSION) => return Err(SamplingPlanError::Version(version)),
            _ => toml::from_str(text).map_err(syntax)?,
        };
        plan.check().map_err(SamplingPlanError::Contradiction)?;
        Ok(plan)
    }

    /// The TOML text of this plan.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a plan has only text, numbers and tables")
    }

    /// The intervals, in order of time.
    pub fn parts(&self) -> Vec<Part> {
        match &self.chosen {
            Chosen::Drawn(draw) => draw
                .intervals
                .iter()
                .map(|one| Part {
                    index: one.index,
                    begin: one.begin,
                    requests: one.requests,
                    weight: one.weight(),
                    probability: Some(one.probability),
                    turn: Some(one.turn),
                })
                .collect(),
            Chosen::Clusters(clusters) => clusters
                .representatives
                .iter()
                .map(|&Representative { index, begin, requests, weight }| Part {
                    index,
                    begin,
                    requests,
                    weight: weight as f64,
                    probability: None,
                    turn: None,
                })
                .collect(),
        }
    }

    /// The intervals as a replay takes them: on the clock of the trace, in order of time, not overlapping.
    pub fn segments(&self) -> Vec<Segment> {
        let segment = |one: Part| Segment {
            begin: one.begin,
            end: Nanos(one.begin.0.saturating_add(self.interval.0)),
            weight: one.weight,
        };
        self.parts().into_iter().map(segment).collect()
    }

    /// What mean response times say of the trace, in seconds, one for each interval; none where one is missing. How far off that may be is
    /// known of intervals that were drawn.
    pub fn estimate(&self, means: &[Option<f64>]) -> Option<Estimate> {
        match &self.chosen {
            Chosen::Drawn(draw) => draw.estimate(self.requests, means),
            Chosen::Clusters(_) => {
                means.iter().all(Option::is_some).then_some(())?;
                let weights = self.parts().into_iter().map(|one| one.weight);
                let mean_response_s = weighted_response(weights.zip(means.iter().copied()))?;
                Some(Estimate { mean_response_s, half_width_s: None })
            }
        }
    }

    fn check(&self) -> Result<(), String> {
        if self.interval == Nanos::ZERO {
            return Err("interval must be longer than zero".into());
        }
        let parts = self.parts();
        if parts.is_empty() {
            return Err("there must be at least one interval".into());
        }
        for Part { index, begin, requests, weight, .. } in &parts {
            if index.checked_mul(self.interval.0) != Some(begin.0) {
                return Err(format!("interval {index} must begin after {index} times {}", self.interval.exact()));
            }
            if *requests == 0 || *weight < *requests as f64 {
                return Err(format!("interval {index} must have requests, and a weight no less than they are"));
            }
        }
        if !parts.is_sorted_by(|a, b| a.index < b.index) {
            return Err("the intervals must be in order of time, each once".into());
        }
        match &self.chosen {
            Chosen::Drawn(draw) => draw.check(),
            Chosen::Clusters(clusters) => {
                let weights: u128 = clusters.representatives.iter().map(|one| u128::from(one.weight)).sum();
                match weights == u128::from(self.requests) {
                    true => Ok(()),
                    false => Err(format!(
                        "the weights must add up to the {} requests of the trace, not to {weights}",
                        self.requests
                    )),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Drawn;

    fn plan() -> SamplingPlan {
        let interval = Nanos(10_000_000_001);
        let representative =
            |index, requests, weight| Representative { index, begin: Nanos(index * interval.0), requests, weight };
        SamplingPlan {
            version: SamplingPlan::VERSION,
            trace: "hm_0.csv".into(),
            volume: None,
            interval,
            seed: 7,
            requests: 1_000,
            span: Nanos(604_800_000_000_007),
            chosen: Chosen::Clusters(Clusters {
                features: FeatureSet::default(),
                rule: Rule::Bic90,
                representatives: vec![representative(0, 3, 10), representative(60_000, 40, 990)],
            }),
        }
    }

    fn drawn() -> SamplingPlan {
        let one = |index, requests, probability, turn| Drawn {
            index,
            begin: Nanos(index * plan().interval.0),
            requests,
            probability,
            turn,
        };
        let draw = Draw { prior: 0.25, intervals: vec![one(2, 30, 0.1, 1), one(7, 500, 1.0, 0), one(9, 20, 0.05, 2)] };
        SamplingPlan { chosen: Chosen::Drawn(draw), ..plan() }
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
        let text = drawn().to_toml();
        assert_eq!(SamplingPlan::from_toml(&text).unwrap(), drawn(), "{text}");
        assert_eq!(drawn().segments()[2].weight, 400.0);
    }

    #[test]
    fn what_is_measured_is_weighted_as_it_was_chosen() {
        let clusters = plan().estimate(&[Some(0.1), Some(0.001)]).unwrap();
        assert!((clusters.mean_response_s - 0.00199).abs() < 1e-12 && clusters.half_width_s.is_none());
        assert_eq!(plan().estimate(&[Some(0.1), None]), None);
        // Of 1,000 requests those drawn stand for 300, 500 and 400.
        let estimate = drawn().estimate(&[Some(0.01), Some(0.002), Some(0.005)]).unwrap();
        assert!((estimate.mean_response_s - 0.006).abs() < 1e-12);
        // By hand: sums of 3 and 2 s by lot differ by 1 s; 6 s are expected to vary by half of that; 21 degrees of freedom.
        let seen = (0.9f64 * 0.95).sqrt() / 2.0 * 2.0;
        let half = 2.0796 * ((20.0 * 0.25 * 36.0 + seen) / 21.0).sqrt() / 1_000.0;
        assert!((estimate.half_width_s.unwrap() / half - 1.0).abs() < 1e-3, "{estimate:?} {half}");
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
            ("version = 2", "version = 9", "version 9"),
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
        let text = drawn().to_toml();
        for (from, to, why) in [
            ("probability = 0.05", "probability = 0.0", "probability above 0"),
            ("probability = 0.05", "probability = 1.5", "a weight no less"),
            ("turn = 2", "turn = 1", "each once"),
            ("prior = 0.25", "prior = nan", "prior"),
            ("index = 9", "index = 8", "8 times"),
        ] {
            assert!(text.contains(from), "{from} in {text}");
            let error = SamplingPlan::from_toml(&text.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(why), "{to}: {error}");
        }
        let none = text.split("[[chosen").next().unwrap().to_string() + "intervals = []\n";
        assert!(SamplingPlan::from_toml(&none).unwrap_err().to_string().contains("at least one"), "{none}");
        assert!(matches!(SamplingPlan::from_toml("hello"), Err(SamplingPlanError::Syntax(_))));
    }
}
