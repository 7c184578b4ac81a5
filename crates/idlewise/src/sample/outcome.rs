//! All of it for one trace: which intervals to replay, and what they would have said (SIGMETRICS 2015, step 1 of figure 5).

use serde::Serialize;

use super::plan::{Chosen, Clusters};
use super::{
    Amount, Criterion, Draw, FeatureSet, MOST_CLUSTERS, Points, RULES, Rule, Systematic, TraceInterval, clusterings,
    criteria, mean_response, phases, relative_error, representatives, systematic, weighted_response,
};
use crate::Nanos;

/// How a trace is sampled.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Length of an interval.
    pub interval: Nanos,
    /// How intervals are chosen.
    pub way: Way,
    /// Seed of the lot, or of the clustering.
    pub seed: u64,
}

/// How intervals are chosen.
#[derive(Clone, Debug)]
pub enum Way {
    /// By lot.
    Drawn(Amount),
    /// The nearest to the middle of each cluster, as in the paper.
    Clusters {
        /// What intervals are compared by.
        features: FeatureSet,
        /// How the number of clusters is chosen.
        rule: Rule,
    },
}

/// What one rule chooses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// The rule.
    pub rule: Rule,
    /// Its number of clusters.
    pub k: usize,
    /// Share of the trace's intervals, with those that have no requests, that is replayed.
    pub share_of_time: f64,
    /// Weighted response time of the representatives in seconds, where the trace has response times.
    pub estimate_mean_response_s: Option<f64>,
    /// Its distance from the true one, as a share of that.
    pub error: Option<f64>,
}

/// Lengths of phases.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Phases {
    /// How many there are.
    pub count: usize,
    /// Mean length in seconds.
    pub mean_s: f64,
    /// Greatest length in seconds.
    pub longest_s: f64,
}

/// A sampled trace.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Requests.
    pub requests: u64,
    /// Intervals from the first arrival to the last.
    pub intervals: u64,
    /// Mean response time of the requests whose response time is known, in seconds.
    pub true_mean_response_s: Option<f64>,
    /// The intervals to replay.
    pub chosen: Chosen,
    /// Share of the trace's intervals, with those that have no requests, that is replayed.
    pub share_of_time: f64,
    /// How far off an estimate is expected to be, as a share of it, with a confidence of 95 %; known of what is drawn.
    pub expected_error: Option<f64>,
    /// What the chosen intervals say of the trace: its mean response time in seconds, where they have response times.
    pub estimate_mean_response_s: Option<f64>,
    /// So far that may be off, with a confidence of 95 %; known of what is drawn.
    pub half_width_s: Option<f64>,
    /// Its distance from the true one, as a share of that.
    pub error: Option<f64>,
    /// What each rule gives; empty where intervals are drawn.
    pub choices: Vec<Choice>,
    /// How clusterings into 1, 2, ... clusters are judged; empty where intervals are drawn.
    pub criteria: Vec<Criterion>,
    /// The baseline; empty without response times.
    pub systematic: Vec<Systematic>,
    /// Phases; none without response times.
    pub phases: Option<Phases>,
}

/// Samples a trace of these intervals, in order; none where there is no interval. `done` is told the share of the work done.
pub fn sample(intervals: &[TraceInterval], settings: &Settings, done: &(dyn Fn(f64) + Sync)) -> Option<Outcome> {
    // One of 2^64 is beyond counting.
    let all = intervals.last()?.index.saturating_add(1);
    let truth = mean_response(intervals);
    let seconds = settings.interval.as_secs_f64();
    let lengths = phases(intervals, all);
    let phases = lengths.iter().max().map(|longest| Phases {
        count: lengths.len(),
        mean_s: all as f64 / lengths.len() as f64 * seconds,
        longest_s: *longest as f64 * seconds,
    });
    let by_way = match &settings.way {
        Way::Drawn(amount) => drawn(intervals, *amount, settings)?,
        Way::Clusters { features, rule } => clustered(intervals, all, (features, *rule), settings, done)?,
    };
    Some(Outcome {
        requests: intervals.iter().map(|interval| interval.requests).sum(),
        intervals: all,
        true_mean_response_s: truth,
        share_of_time: by_way.count as f64 / all as f64,
        chosen: by_way.chosen,
        expected_error: by_way.expected_error,
        estimate_mean_response_s: by_way.estimate,
        half_width_s: by_way.half_width_s,
        error: relative_error(by_way.estimate, truth),
        choices: by_way.choices,
        criteria: by_way.criteria,
        systematic: systematic(intervals, all),
        phases,
    })
}

/// What depends on how intervals are chosen.
struct ByWay {
    chosen: Chosen,
    count: usize,
    expected_error: Option<f64>,
    estimate: Option<f64>,
    half_width_s: Option<f64>,
    choices: Vec<Choice>,
    criteria: Vec<Criterion>,
}

fn drawn(intervals: &[TraceInterval], amount: Amount, settings: &Settings) -> Option<ByWay> {
    let draw = Draw::of(intervals, settings.interval, amount, settings.seed)?;
    let estimate = draw.as_recorded(intervals);
    Some(ByWay {
        count: draw.intervals.len(),
        expected_error: Some(draw.expected_error()),
        estimate: estimate.map(|estimate| estimate.mean_response_s),
        half_width_s: estimate.and_then(|estimate| estimate.half_width_s),
        chosen: Chosen::Drawn(draw),
        choices: Vec::new(),
        criteria: Vec::new(),
    })
}

fn clustered(
    intervals: &[TraceInterval],
    all: u64,
    (features, rule): (&FeatureSet, Rule),
    settings: &Settings,
    done: &(dyn Fn(f64) + Sync),
) -> Option<ByWay> {
    let points = Points::standardised(intervals, features);
    let clusterings = clusterings(&points, MOST_CLUSTERS, settings.seed, done);
    let criteria = criteria(&clusterings, points.dimensions());
    let truth = mean_response(intervals);
    let choose = |rule: Rule| {
        let k = rule.choose(&criteria, intervals.len())?;
        let representatives = representatives(intervals, &clusterings[k - 1], settings.interval);
        let estimate = weighted_response(intervals, &representatives);
        let choice = Choice {
            rule,
            k,
            share_of_time: representatives.len() as f64 / all as f64,
            estimate_mean_response_s: estimate,
            error: relative_error(estimate, truth),
        };
        Some((choice, representatives))
    };
    let (choice, representatives) = choose(rule)?;
    Some(ByWay {
        count: representatives.len(),
        expected_error: None,
        estimate: choice.estimate_mean_response_s,
        half_width_s: None,
        chosen: Chosen::Clusters(Clusters { features: features.clone(), rule, representatives }),
        choices: RULES.into_iter().filter_map(|rule| Some(choose(rule)?.0)).collect(),
        criteria,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TotalTime;

    fn settings() -> Settings {
        let features = "CntRdMss".parse().unwrap();
        Settings { interval: Nanos::from_secs(10), way: Way::Clusters { features, rule: Rule::Bic }, seed: 1 }
    }

    fn chosen(outcome: &Outcome) -> usize {
        match &outcome.chosen {
            Chosen::Drawn(draw) => draw.intervals.len(),
            Chosen::Clusters(clusters) => clusters.representatives.len(),
        }
    }

    /// `count` intervals, every second one empty, of three kinds that take 1, 2 and 6 ms.
    fn intervals(count: u64) -> Vec<TraceInterval> {
        let of = |number: u64| {
            let (requests, ms) = [(10, 1), (100, 2), (400, 6)][(number % 3) as usize];
            TraceInterval {
                index: 2 * number,
                requests,
                reads: requests / 2,
                traffic: requests * 4096,
                responses: requests,
                response_sum: Nanos::from_millis(ms) * requests,
                ..TraceInterval::default()
            }
        };
        (0..count).map(of).collect()
    }

    #[test]
    fn kinds_of_intervals_are_found_and_estimate_without_error() {
        let outcome = sample(&intervals(300), &settings(), &|_| ()).unwrap();
        assert_eq!(chosen(&outcome), 3);
        assert_eq!((outcome.intervals, outcome.requests), (599, 51_000));
        assert!(outcome.error.unwrap() < 1e-12);
        assert_eq!(outcome.share_of_time, 3.0 / 599.0);
        assert_eq!(outcome.phases.unwrap().count, 300);
        assert_eq!(outcome.choices.len(), 3);
    }

    #[test]
    fn drawn_intervals_say_how_far_off_they_may_be() {
        let way = Way::Drawn(Amount::Intervals(30));
        let outcome = sample(&intervals(300), &Settings { way, ..settings() }, &|_| ()).unwrap();
        assert_eq!((chosen(&outcome), outcome.share_of_time), (30, 30.0 / 599.0));
        let (estimate, truth) = (outcome.estimate_mean_response_s.unwrap(), outcome.true_mean_response_s.unwrap());
        assert!((estimate - truth).abs() <= outcome.half_width_s.unwrap(), "{outcome:?}");
        assert!(outcome.error.unwrap() < 0.1 && outcome.expected_error.unwrap() > 0.0 && outcome.choices.is_empty());
    }

    #[test]
    fn few_intervals_stand_for_themselves() {
        assert!(sample(&[], &settings(), &|_| ()).is_none());
        for (count, k) in [(1, 1), (2, 2), (3, 2), (4, 3)] {
            let outcome = sample(&intervals(count), &settings(), &|_| ()).unwrap();
            assert_eq!(chosen(&outcome), k, "{count} intervals");
            assert!(count == 3 || outcome.error.unwrap() < 1e-12);
        }
    }

    #[test]
    fn without_response_times_there_are_representatives_all_the_same() {
        let mut silent = intervals(60);
        silent.iter_mut().for_each(|interval| (interval.responses, interval.response_sum) = (0, TotalTime::ZERO));
        let outcome = sample(&silent, &settings(), &|_| ()).unwrap();
        assert_eq!(chosen(&outcome), 3);
        assert_eq!((outcome.estimate_mean_response_s, outcome.error), (None, None));
        assert_eq!((outcome.true_mean_response_s, outcome.phases), (None, None));
        assert!(outcome.systematic.is_empty());
    }
}
