//! The features of an interval (SIGMETRICS 2015, table 1), and sets of them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::TraceInterval;
use super::working_set::SECTOR;

/// One feature.
#[derive(Debug)]
pub struct Feature {
    /// The short form of table 1.
    pub name: &'static str,
    /// What it is, and its unit.
    pub about: &'static str,
    /// Its value for an interval.
    pub value: fn(&TraceInterval) -> f64,
}

/// All features of table 1, in its order.
pub const FEATURES: [Feature; 11] = [
    Feature {
        name: "Rnd",
        about: "share of requests over 128 KiB away from each of the 32 before them",
        value: |i| ratio(i.random as f64, i.requests),
    },
    Feature { name: "Rd", about: "share of reads", value: |i| ratio(i.reads as f64, i.requests) },
    Feature { name: "Mss", about: "total traffic, bytes", value: |i| i.traffic as f64 },
    Feature { name: "Cnt", about: "requests", value: |i| i.requests as f64 },
    Feature {
        name: "Ant",
        about: "entropy of first addresses, mean of buckets of 512 B, 1 KiB, ... 16 MiB, bits",
        value: |i| i.address_entropy,
    },
    Feature {
        name: "Ent",
        about: "entropy of arrival times, mean of an interval's halves, quarters, ... 65,536ths, bits",
        value: |i| i.arrival_entropy,
    },
    Feature { name: "Wst", about: "working set: different sectors, bytes", value: |i| (i.sectors * SECTOR) as f64 },
    Feature {
        name: "Wsl",
        about: "working set locality: traffic over working set; 1 without either",
        value: |i| if i.sectors == 0 { 1.0 } else { ratio(i.traffic as f64, i.sectors * SECTOR) },
    },
    Feature { name: "Arq", about: "mean request size, bytes", value: |i| ratio(i.traffic as f64, i.requests) },
    Feature {
        name: "Tre",
        about: "total distance from the nearest of the 32 requests before, bytes",
        value: |i| i.travel as f64,
    },
    Feature { name: "Ate", about: "the mean of it, bytes", value: |i| ratio(i.travel as f64, i.requests) },
];

fn ratio(sum: f64, count: u64) -> f64 {
    sum / count as f64
}

/// Features, each once, in the order given; in text their short forms, one after the other, as in the paper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureSet(Vec<usize>);

/// A text that is no set of features.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no set of features: {why}; write for example {example} or Rd,Cnt,Ent", example = FeatureSet::PAPERS)]
pub struct FeatureError {
    text: String,
    why: String,
}

impl FeatureSet {
    /// The best one in the paper (section 4.4).
    pub const PAPERS: &'static str = "ArqWslRndAntEntTreAte";

    /// The features.
    pub fn features(&self) -> impl ExactSizeIterator<Item = &'static Feature> + '_ {
        self.0.iter().map(|&index| &FEATURES[index])
    }
}

impl Default for FeatureSet {
    fn default() -> Self {
        Self::PAPERS.parse().expect("the paper's features are known")
    }
}

impl fmt::Display for FeatureSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.features().map(|feature| feature.name).collect::<String>())
    }
}

impl FromStr for FeatureSet {
    type Err = FeatureError;

    fn from_str(text: &str) -> Result<Self, FeatureError> {
        let error = |why: String| FeatureError { text: text.into(), why };
        let mut set = Vec::new();
        for part in text.split(',') {
            let mut rest = part.trim();
            while !rest.is_empty() {
                // Each name begins with a capital, and with no other.
                let mut capitals = rest.char_indices().skip(1).filter(|(_, c)| c.is_ascii_uppercase());
                let end = capitals.next().map_or(rest.len(), |(at, _)| at);
                let (name, others) = rest.split_at(end);
                let index = FEATURES.iter().position(|feature| feature.name == name).ok_or_else(|| {
                    let names: Vec<_> = FEATURES.iter().map(|feature| feature.name).collect();
                    error(format!("'{name}' is none of {}", names.join(" ")))
                })?;
                if set.contains(&index) {
                    return Err(error(format!("{name} stands there twice")));
                }
                set.push(index);
                rest = others;
            }
        }
        if set.is_empty() { Err(error("it names none".into())) } else { Ok(Self(set)) }
    }
}

impl Serialize for FeatureSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FeatureSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_read_back_and_may_be_concatenated_or_listed() {
        let all: String = FEATURES.iter().map(|feature| feature.name).collect();
        assert_eq!(all.parse::<FeatureSet>().unwrap().to_string(), all);
        let listed: FeatureSet = "Arq, Wsl,Rnd,Ant,Ent,TreAte".parse().unwrap();
        assert_eq!(listed, FeatureSet::default());
        assert_eq!(FeatureSet::default().features().len(), 7);
    }

    #[test]
    fn says_what_is_wrong_with_others() {
        for (text, why) in
            [("", "none"), (",", "none"), ("RdRd", "twice"), ("RdXyz", "'Xyz'"), ("rd", "'rd'"), ("é", "'é'")]
        {
            let error = text.parse::<FeatureSet>().unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("ArqWsl"), "{text}: {error}");
        }
    }
}
