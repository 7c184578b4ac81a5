//! What a scrub did to a load, by the same requests without it.

use idlewise::Nanos;
use idlewise_testbed::lab::foreground::Played;
use idlewise_testbed::lab::outcome::{Mean, longer_by};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Requests that count as the first ones.
const FIRST: usize = 500;

/// One scrub beside one load.
#[derive(Debug, Serialize, Deserialize)]
pub struct Judged {
    pub disk: String,
    pub load: String,
    /// In seconds, as all times here.
    pub goal: f64,
    /// Mean response without the scrub, before and after.
    pub alone: [f64; 2],
    /// How much longer the same requests took than before and after on average. Its error has what they differ without a scrub.
    pub slowdown: Mean,
    /// The same of the first ones.
    pub first: Mean,
    /// What the scrub says of itself.
    pub account: Option<f64>,
    pub experiment: Option<[f64; 2]>,
    /// Bytes per second.
    pub rate: Option<f64>,
    /// What was verified of what was predicted.
    pub of_predicted: Option<f64>,
    /// Share of what was read of a file system that was compared with checksums, without what is free.
    #[serde(default)]
    pub judged: Option<f64>,
    /// Share of its time that it was paused for the goal.
    pub paused: f64,
    /// How soon it acted.
    pub reaction: Option<Reaction>,
}

/// How soon a scrub acted: medians and 99th percentiles, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reaction {
    /// From the end of the idle wait until its request was at the device.
    pub started: [f64; 2],
    /// From the end of one of its requests until the next one was.
    pub followed: [f64; 2],
    /// Share of its time that it lost by the last two.
    pub lost: f64,
    /// Its requests, and those of them that came behind a foreground request that it did not know of.
    pub requests: u64,
    pub late: u64,
}

impl Reaction {
    fn of(said: &Value) -> Option<Self> {
        let reaction = &said["reaction"];
        let number = |what: &str, name: &str| reaction[what][name].as_f64();
        let times = |what: &str| Some([number(what, "p50_s")?, number(what, "p99_s")?]);
        Some(Self {
            started: times("started")?,
            followed: times("followed")?,
            lost: (number("started", "total_s")? + number("followed", "total_s")?) / said["elapsed_s"].as_f64()?,
            requests: reaction["requests"].as_u64()?,
            late: reaction["late_requests"].as_u64()?,
        })
    }
}

impl Judged {
    pub fn new(disk: &str, load: &str, goal: Nanos, alone: [&Played; 2], beside: &Played, said: &Value) -> Self {
        let without = alone.map(|played| &*played.responses);
        let mean = |of: &Played| Mean::of(of.responses.iter().copied()).value;
        let number = |value: &Value| value.as_f64();
        let (compared, held) = (&said["compared"], &said["predicted"]["while_it_held"]);
        let content = &said["content"];
        Self {
            disk: disk.into(),
            load: load.into(),
            goal: goal.as_secs_f64(),
            alone: alone.map(mean),
            slowdown: longer_by(&beside.responses, without),
            first: longer_by(first_of(&beside.responses), without.map(first_of)),
            account: number(&said["measured"]["mean_slowdown_s"]),
            experiment: number(&compared["low_s"]).zip(number(&compared["high_s"])).map(|(low, high)| [low, high]),
            rate: number(&said["rate_bytes_per_s"]),
            of_predicted: number(&held["verified_bytes"])
                .zip(number(&held["predicted_bytes"]))
                .map(|(is, was)| is / was),
            judged: number(&content["judged_bytes"])
                .zip(number(&content["unjudged_bytes"]))
                .map(|(judged, not)| judged / (judged + not).max(1.0)),
            paused: number(&said["time_s"]["overdrawn"]).unwrap_or(0.0) / number(&said["elapsed_s"]).unwrap_or(1.0),
            reaction: Reaction::of(said),
        }
    }

    /// Whether it is of this disk, load and goal.
    pub fn is_of(&self, disk: &str, load: &str, goal: Nanos) -> bool {
        self.disk == disk && self.load == load && (self.goal - goal.as_secs_f64()).abs() < 1e-9
    }

    /// Whether the goal was kept within two standard errors, over all requests and over the first ones.
    pub fn kept(&self) -> [bool; 2] {
        [self.slowdown, self.first].map(|mean| mean.value - 2.0 * mean.error <= self.goal)
    }

    /// Whether what was measured is within the experiment's interval, widened by the measurement's own two standard errors.
    pub fn covered(&self) -> Option<bool> {
        let margin = 2.0 * self.slowdown.error;
        self.experiment.map(|[low, high]| (low - margin..=high + margin).contains(&self.slowdown.value))
    }

    /// For whoever watches.
    pub fn line(&self) -> String {
        let [all, first] = self.kept().map(|kept| if kept { "kept" } else { "NOT KEPT" });
        let experiment =
            self.experiment.map_or("-".into(), |[low, high]| format!("{:.2} to {:.2}", low * 1e3, high * 1e3));
        format!(
            "{}, {}: goal {:.2} ms, slowdown {} ({all}), first {FIRST} {} ({first}), account {}, experiment {experiment}, {} MB/s",
            self.disk,
            self.load,
            self.goal * 1e3,
            self.slowdown.milliseconds(),
            self.first.milliseconds(),
            or_dash(self.account, 1e3),
            or_dash(self.rate, 1e-6),
        )
    }
}

/// Two digits of a number that may not be there.
pub fn or_dash(number: Option<f64>, unit: f64) -> String {
    number.map_or("-".into(), |number| format!("{:.2}", number * unit))
}

fn first_of(all: &[f64]) -> &[f64] {
    &all[..all.len().min(FIRST)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn judged_by_hand() {
        let played = |add: f64| Played {
            responses: (0..1_000).map(|k| 0.01 + if k % 2 == 0 { add } else { 0.0 }).collect(),
            elapsed: 1.0,
            bytes: 0,
            read: 0,
        };
        let said = serde_json::json!({
            "measured": {"mean_slowdown_s": 0.001}, "rate_bytes_per_s": 5e6, "elapsed_s": 10.0,
            "content": {"judged_bytes": 40_000_000, "unjudged_bytes": 10_000_000},
            "compared": {"low_s": 0.0005, "high_s": 0.002},
            "reaction": {
                "started": {"p50_s": 3e-5, "p99_s": 4e-5, "total_s": 0.5},
                "followed": {"p50_s": 5e-5, "p99_s": 6e-5, "total_s": 1.5}, "requests": 200, "late_requests": 1
            }
        });
        let judged = Judged::new("d", "l", Nanos(1_000_000), [&played(0.0); 2], &played(0.003), &said);
        assert!((judged.slowdown.value - 0.0015).abs() < 1e-9 && judged.slowdown.error < 1e-9, "{:?}", judged.slowdown);
        assert_eq!((judged.kept(), judged.covered()), ([false; 2], Some(true)));
        assert!(judged.is_of("d", "l", Nanos(1_000_000)) && !judged.is_of("d", "l", Nanos(2_000_000)));
        // Two plays without a scrub that differ by 1 ms on average.
        let differ = Judged::new("d", "l", Nanos(1_000_000), [&played(0.001), &played(0.003)], &played(0.005), &said);
        assert!((differ.slowdown.value - 0.0015).abs() < 1e-9, "{:?}", differ.slowdown);
        assert!((differ.slowdown.error - 0.75f64.sqrt() * 1e-3).abs() < 1e-9, "{:?}", differ.slowdown);
        assert_eq!(differ.kept(), [true; 2]);
        assert_eq!(judged.judged, Some(0.8));
        let reaction = judged.reaction.unwrap();
        assert_eq!((reaction.started, reaction.followed), ([3e-5, 4e-5], [5e-5, 6e-5]));
        assert_eq!((reaction.lost, reaction.requests, reaction.late), (0.2, 200, 1));
    }
}
