//! Whether a scrub kept its goal, and why it was slower than predicted.

use std::collections::BTreeMap;

use idlewise::drive::{Compared, Measured};
use idlewise::report::percent;
use idlewise::tune::{Goal, Predicted};
use idlewise::{Bytes, Nanos, TotalTime};
use idlewise_linux::scrub::{Doing, Report};
use serde::Serialize;

use super::words::named;

/// A rate this much below the prediction is explained.
const BELOW: f64 = 0.95;
/// What takes a smaller share of the time is not listed.
const LISTED: f64 = 0.005;
/// What a prediction knows nothing of, or not how much of it there will be: that of a plan is of the plan alone, on a disk without errors.
const NOT_PREDICTED: [&str; 8] =
    [Doing::OVERDRAWN, "control", "others", "retrying", "narrowing", "rate-limit", "too-slow", "hung"];

/// Part of the fields of `scrub --json`.
#[derive(Serialize)]
pub struct Kept {
    /// Whether the measured slowdowns are within the goal; null where there is no goal, no foreground request, or nothing was scrubbed.
    mean_slowdown_kept: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p99_slowdown_kept: Option<bool>,
    max_slowdown_kept: Option<bool>,
    /// On what the time of this run went.
    time_s: BTreeMap<&'static str, f64>,
    #[serde(skip)]
    goal: Option<Goal>,
    #[serde(skip)]
    measured: Measured,
    /// The mean slowdown by experiment.
    #[serde(skip)]
    compared: Option<Compared>,
    /// What was verified by what was predicted.
    #[serde(skip)]
    of_predicted: Option<f64>,
    /// Nothing was verified.
    #[serde(skip)]
    nothing: bool,
}

impl Kept {
    /// Of a run.
    pub fn new(report: &Report, goal: Option<Goal>, predicted: Option<Predicted>) -> Self {
        let measured = report.measured;
        // The few requests that measuring the disk met say nothing about a goal.
        let nothing = report.verified_now == Bytes(0);
        let goal = goal.filter(|_| measured.foreground_requests > 0 && !nothing);
        let rate = report.verified_now.0 as f64 / report.scrubbing.as_secs_f64().max(1e-9);
        // Tunings predict for as long as they hold; a plan that was given, for the whole run.
        let (verified, predicted) = match report.forecast {
            Some(foretold) => (foretold.verified.0 as f64, foretold.predicted.0 as f64),
            None => (rate, predicted.map_or(0.0, |predicted| predicted.throughput.0 as f64)),
        };
        Self {
            mean_slowdown_kept: goal.map(|goal| measured.mean_slowdown() <= goal.mean_slowdown),
            p99_slowdown_kept: goal.filter(|goal| goal.p99_slowdown.is_some()).map(|goal| keeps_p99(&goal, &measured)),
            max_slowdown_kept: goal.map(|goal| measured.max_slowdown <= goal.max_slowdown),
            time_s: report.spent.iter().map(|(name, time)| (*name, time.as_secs_f64())).collect(),
            goal,
            measured,
            compared: report.compared,
            of_predicted: (predicted > 0.0).then(|| verified / predicted),
            nothing,
        }
    }

    /// Whether nothing was verified: the requests that were seen say nothing of a scrub.
    pub fn is_of_nothing(&self) -> bool {
        self.nothing
    }

    /// For people: lines, or nothing where nothing was done.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if self.nothing {
            text += "Nothing was scrubbed in this run.\n";
            if self.measured.slowdown_sum > TotalTime::ZERO {
                text += "The slowdowns are those of measuring the disk before the scrub.\n";
            }
            let most_of_it = |doing: [&str; 2]| {
                let shares = self.shares().into_iter().filter(|(name, _)| doing.contains(name));
                shares.map(|(_, share)| share).sum::<f64>() > 0.5
            };
            if most_of_it([Doing::OVERDRAWN, Doing::PolicyStopped.name()]) {
                text += "For most of the time the goal allowed no request. A larger goal allows some.\n";
            } else if most_of_it([Doing::ForegroundActive.name(), Doing::IdleWait.name()]) {
                text += "The disk was never idle for as long as the scrub waits.\n";
            }
        }
        if let Some(goal) = &self.goal {
            let kept = |kept| if kept { "kept" } else { "not kept" };
            let line =
                |what, measured, goal| format!("{what} slowdown {measured}, goal {goal}: {}\n", kept(measured <= goal));
            let (mean, max) = (self.measured.mean_slowdown(), self.measured.max_slowdown);
            text += &line("mean", mean, goal.mean_slowdown);
            if let Some(p99) = goal.p99_slowdown {
                let (share, kept) = (percent(self.measured.slowed_share()), kept(keeps_p99(goal, &self.measured)));
                text += &format!("p99 slowdown: {share} of the requests slowed by more than {p99}, goal 1 %: {kept}\n");
            }
            text += &line("max", max, goal.max_slowdown);
            let above = [("mean", mean > goal.mean_slowdown), ("p99", self.p99_slowdown_kept == Some(false))];
            let above: Vec<&str> = above.into_iter().filter(|(_, above)| *above).map(|(what, _)| what).collect();
            if !above.is_empty() {
                text += &format!(
                    "One collision may cost more than the account holds, so a short run can end above its {}.\n",
                    above.join(" and ")
                );
            }
        }
        let above = |by: &Compared| self.goal.is_some_and(|goal| by.low_ns > goal.mean_slowdown.0 as i64);
        if let Some(by) = self.compared.filter(above) {
            let [low, high] = [by.low_ns, by.high_ns].map(|end| Nanos(end.max(0) as u64));
            text += &format!("By experiment the mean slowdown is above the goal: {low} to {high} (95 %).\n");
        }
        let mut shares = self.shares();
        shares.retain(|(_, share)| *share >= LISTED);
        if !shares.is_empty() {
            let shares: Vec<_> =
                shares.iter().map(|(name, share)| format!("{} {}", percent(*share), named(name))).collect();
            text += &format!("time: {}\n", shares.join(", "));
        }
        if let Some(of_predicted) = self.of_predicted.filter(|share| *share < BELOW && !self.nothing) {
            let lost = self.shares().into_iter().filter(|(name, _)| NOT_PREDICTED.contains(name));
            let lost: f64 = lost.map(|(_, share)| share).sum();
            text += &format!("The rate is {} of the predicted one. ", percent(of_predicted));
            text += &match lost > 1.0 - BELOW {
                true => format!(
                    "{} of the time went on pauses for the goal, unused intervals, --max-rate, other checks and errors.\n",
                    percent(lost)
                ),
                false => "The foreground left less idle time than predicted, verifying took longer, or the run was too short to tell.\n".into(),
            };
        }
        text
    }

    /// Share of the time by what was done, the largest first.
    fn shares(&self) -> Vec<(&'static str, f64)> {
        let all: f64 = self.time_s.values().sum();
        let mut shares: Vec<_> = self.time_s.iter().map(|(name, time)| (*name, time / all.max(1e-9))).collect();
        shares.sort_by(|a, b| b.1.total_cmp(&a.1));
        shares
    }
}

/// Whether no more requests were slowed by more than the 99th percentile than may be.
fn keeps_p99(goal: &Goal, measured: &Measured) -> bool {
    measured.slowed.0 <= goal.allows_requests(measured.foreground_requests).slowed
}

#[cfg(test)]
mod tests {
    use idlewise::Rate;
    use idlewise_linux::scrub::{Foretold, State};

    use super::*;

    fn report(spent: &[(&'static str, u64)], slowdown: Nanos) -> Report {
        let measured = Measured {
            foreground_requests: 10,
            slowdown_sum: slowdown * 10,
            max_slowdown: Nanos::from_millis(20),
            ..Measured::default()
        };
        Report {
            state: State::Complete,
            failure: None,
            verified: Bytes(100_000_000),
            verified_now: Bytes(100_000_000),
            errors: Vec::new(),
            retries: 0,
            elapsed: Nanos::from_secs(100),
            scrubbing: Nanos::from_secs(100),
            spent: spent.iter().map(|(name, s)| (*name, Nanos::from_secs(*s))).collect(),
            measured,
            plan: None,
            account: None,
            compared: None,
            reaction: None,
            lost_events: 0,
            forecast: None,
            content: None,
            unsaved: None,
        }
    }

    const GOAL: Goal = Goal { mean_slowdown: Nanos(100_000), p99_slowdown: None, max_slowdown: Nanos(50_000_000) };

    fn predicted(rate: u64) -> Predicted {
        Predicted {
            mean_slowdown: Nanos::ZERO,
            p99_slowdown: None,
            max_slowdown: Nanos::ZERO,
            throughput: Rate(rate),
            utilised_idle: 0.5,
        }
    }

    #[test]
    fn what_was_not_kept_is_said_with_its_reason() {
        let spent = [("verifying", 4), (Doing::OVERDRAWN, 71), ("foreground-active", 20), ("idle-wait", 5)];
        let kept = Kept::new(&report(&spent, Nanos(142_000)), Some(GOAL), Some(predicted(30_000_000)));
        assert_eq!((kept.mean_slowdown_kept, kept.max_slowdown_kept), (Some(false), Some(true)));
        assert_eq!(
            kept.text(),
            "mean slowdown 142 us, goal 100 us: not kept\nmax slowdown 20.0 ms, goal 50.0 ms: kept\n\
             One collision may cost more than the account holds, so a short run can end above its mean.\n\
             time: 71.0 % paused for the goal, 20.0 % waiting for others' requests, 5.00 % waiting, not idle for long enough, \
             4.00 % verifying\nThe rate is 3.33 % of the predicted one. 71.0 % of the time went on \
             pauses for the goal, unused intervals, --max-rate, other checks and errors.\n"
        );
    }

    #[test]
    fn why_nothing_was_scrubbed_is_said() {
        let said = |spent: &[(&'static str, u64)]| {
            let report = Report { verified_now: Bytes(0), ..report(spent, Nanos(0)) };
            let text = Kept::new(&report, Some(GOAL), None).text();
            ["A larger goal allows some", "never idle for as long"].map(|words| text.contains(words))
        };
        assert_eq!(said(&[(Doing::OVERDRAWN, 40), ("policy-stopped", 20), ("idle-wait", 40)]), [true, false]);
        assert_eq!(said(&[(Doing::OVERDRAWN, 40), ("idle-wait", 30), ("foreground-active", 30)]), [false, true]);
        assert_eq!(said(&[(Doing::OVERDRAWN, 50), ("idle-wait", 50)]), [false, false]);
    }

    #[test]
    fn a_99th_percentile_is_told_as_a_share() {
        let goal = Goal { p99_slowdown: Some(Nanos(10_000_000)), ..GOAL };
        let kept = |slowed| {
            let mut report = report(&[], Nanos(90_000));
            (report.measured.foreground_requests, report.measured.slowdown_sum) = (1_000, Nanos(90_000) * 1_000);
            report.measured.slowed = (slowed, TotalTime::ZERO);
            Kept::new(&report, Some(goal), None)
        };
        let (ten, eleven) = (kept(10), kept(11));
        assert_eq!((ten.p99_slowdown_kept, eleven.p99_slowdown_kept), (Some(true), Some(false)));
        let line = |share| format!("p99 slowdown: {share} of the requests slowed by more than 10.0 ms, goal 1 %: ");
        assert!(
            ten.text().contains(&(line("1.00 %") + "kept\nmax")) && !ten.text().contains("account"),
            "{}",
            ten.text()
        );
        let text = eleven.text();
        assert!(text.contains(&(line("1.10 %") + "not kept\n")) && text.contains("above its p99."), "{text}");
    }

    #[test]
    fn an_experiment_that_says_otherwise_is_told() {
        let said = |low_ns| {
            let compared = Compared { mean_slowdown_ns: low_ns + 50_000, low_ns, high_ns: 200_000, used: 90, left: 10 };
            Kept::new(&Report { compared: Some(compared), ..report(&[], Nanos(90_000)) }, Some(GOAL), None).text()
        };
        assert!(said(120_000).contains("above the goal: 120 us to 200 us (95 %)"), "{}", said(120_000));
        assert!(!said(99_000).contains("experiment"));
    }

    #[test]
    fn what_was_kept_and_as_fast_as_predicted_is_short() {
        let kept = Kept::new(&report(&[("verifying", 100)], Nanos(90_000)), Some(GOAL), Some(predicted(1_000_000)));
        let text = kept.text();
        assert!(
            text.starts_with("mean slowdown 90.0 us, goal 100 us: kept\n") && !text.contains("predicted"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 3);
        let as_foretold = Foretold { time: Nanos(1), predicted: Bytes(100), verified: Bytes(96) };
        let tuned = Report { forecast: Some(as_foretold), ..report(&[("verifying", 100)], Nanos(1)) };
        assert!(!Kept::new(&tuned, None, Some(predicted(2_000_000))).text().contains("predicted"));
        let slower = Kept::new(&report(&[("verifying", 100)], Nanos(1)), None, Some(predicted(2_000_000)));
        assert_eq!(slower.mean_slowdown_kept, None);
        assert!(slower.text().ends_with(
            "50.0 % of the predicted one. The foreground left less idle time than predicted, verifying took longer, or the run was too short to tell.\n"
        ));
    }
}
