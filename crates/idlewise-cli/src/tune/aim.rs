//! What to tune for: the fastest scrub within a slowdown, or the gentlest that is fast enough.

use std::str::FromStr;

use clap::Args;
use idlewise::disk::{DiskModel, LARGEST_REQUEST};
use idlewise::idle::Idleness;
use idlewise::reliability::{Errors, YEAR};
use idlewise::tune::{Arrivals, Gentlest, Goal, Plan, gentlest};
use idlewise::{Bytes, Nanos};

use crate::exit::UsageError;
use crate::progress::Progress;
use crate::simulate::seconds;

/// Search for the gentlest schedule from this mean slowdown on.
const LEAST: Nanos = Nanos(1_000);

/// The aim.
#[derive(Args)]
pub struct AimArguments {
    /// Mean added response time that foreground requests may suffer, such as 1ms
    #[arg(long, value_name = "TIME", required_unless_present_any = ["finish_within", "goal"], requires = "max_slowdown")]
    mean_slowdown: Option<Nanos>,

    /// Longest added response time that 99 % of all foreground requests may suffer, such as 10ms: at most one in a hundred may suffer
    /// more. Requests that are not delayed count as well
    #[arg(long, value_name = "TIME")]
    p99_slowdown: Option<Nanos>,

    /// Longest added response time that any foreground request may suffer, such as 50ms [default with --finish-within or
    /// --goal mttdl=YEARS: the time of the largest request]
    #[arg(long, value_name = "TIME")]
    max_slowdown: Option<Nanos>,

    /// Choose the gentlest schedule whose pass over --capacity takes at most this long, such as 14d
    #[arg(long, value_name = "TIME", conflicts_with_all = ["mean_slowdown", "goal"])]
    finish_within: Option<Nanos>,

    /// mttdl=YEARS: choose the gentlest schedule with this mean time to data loss. mttdl: choose the schedule with the longest one
    /// within the slowdowns. Both are for data in two copies (DSN 2008, equation 2 and table 1)
    #[arg(long, value_name = "GOAL")]
    goal: Option<Lifetime>,
}

/// How long data are to live.
#[derive(Clone, Copy, Debug)]
enum Lifetime {
    Longest,
    Years(f64),
}

impl FromStr for Lifetime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let years = |years: &str| years.parse().ok().filter(|years: &f64| *years > 0.0 && *years <= 1e15);
        match (text, text.strip_prefix("mttdl=").and_then(years)) {
            ("mttdl", _) => Ok(Self::Longest),
            (_, Some(years)) => Ok(Self::Years(years)),
            _ => Err("expected mttdl, or mttdl=YEARS such as mttdl=1e5".into()),
        }
    }
}

impl AimArguments {
    /// An error if the options do not go together.
    pub fn check(&self) -> Result<(), UsageError> {
        if self.finish_within == Some(Nanos::ZERO) {
            return Err(UsageError("--finish-within must be above zero, such as 14d".into()));
        }
        match (self.goal, self.mean_slowdown) {
            (Some(Lifetime::Years(_)), Some(_)) => Err(UsageError(
                "--goal mttdl=YEARS finds the mean slowdown: leave --mean-slowdown out, or ask for --goal mttdl".into(),
            )),
            (Some(Lifetime::Longest), None) => {
                Err(UsageError("--goal mttdl needs --mean-slowdown and --max-slowdown, or mttdl=YEARS".into()))
            }
            _ => Ok(()),
        }
    }

    /// The slowdowns to keep: those given, or the smallest that are enough for these disks.
    pub fn goal(
        &self,
        disks: &[Idleness],
        model: &DiskModel,
        arrivals: Arrivals,
        capacity: Bytes,
    ) -> anyhow::Result<Goal> {
        let max_slowdown = self.max_slowdown.unwrap_or_else(|| model.verify_time(LARGEST_REQUEST));
        if let Some(mean_slowdown) = self.mean_slowdown {
            return Ok(Goal { mean_slowdown, p99_slowdown: self.p99_slowdown, max_slowdown });
        }
        let (pass, why) = self.longest_pass()?;
        let least = Goal { mean_slowdown: LEAST, p99_slowdown: self.p99_slowdown, max_slowdown };
        least.check(model)?;
        let span = disks.iter().map(|disk| disk.begin).min().zip(disks.iter().map(|disk| disk.end).max());
        let span_s = span.map_or(0.0, |(begin, end)| end.since(begin).as_secs_f64());
        let pass_s = |plan: &Plan| capacity.0 as f64 * span_s / plan.outcome.scrubbed.0 as f64;
        let progress = Progress::new("looking for the gentlest");
        let enough = Bytes((capacity.0 as f64 * span_s / pass).ceil() as u64);
        match gentlest(disks, model, &least, arrivals, enough, &|done| progress.share(done))? {
            Gentlest::Found(goal, _) => Ok(goal),
            Gentlest::NotEnough(plan) => {
                let best = pass_s(&plan);
                let best = if best.is_finite() { seconds(best) } else { "never".into() };
                let p99 = self.p99_slowdown.map(|p99| format!("{p99} for 99 % of the requests and "));
                anyhow::bail!(
                    "a pass over {} within {}{why} is out of reach: whatever the mean slowdown, with at most {}{max_slowdown} for any \
                     request the fastest schedule takes {best}",
                    capacity.decimal(),
                    seconds(pass),
                    p99.unwrap_or_default()
                )
            }
        }
    }

    /// What was asked for besides slowdowns, for people.
    pub fn line(&self) -> Option<String> {
        match (self.finish_within, self.goal) {
            (Some(time), _) => Some(format!("a pass within {time}")),
            (None, Some(Lifetime::Years(years))) => Some(format!("a mean time to data loss of {years} years")),
            _ => None,
        }
    }

    /// How long a pass may take in seconds, and why if that was not said.
    fn longest_pass(&self) -> anyhow::Result<(f64, String)> {
        match (self.finish_within, self.goal) {
            (Some(time), _) => Ok((time.as_secs_f64(), String::new())),
            (None, Some(Lifetime::Years(years))) => {
                let errors = Errors::default();
                let Some(detection) = errors.detection_for(years * YEAR) else {
                    let limit = errors.mttdl_scrubbed(0.0) / YEAR;
                    anyhow::bail!("--goal mttdl={years}: no scrub is fast enough; the limit is {limit:.3e} years");
                };
                Ok((2.0 * detection, format!(", as mttdl={years} takes,")))
            }
            _ => anyhow::bail!(UsageError(
                "--mean-slowdown, --finish-within or --goal mttdl=YEARS says what to tune for".into()
            )),
        }
    }

    /// Mean time to data loss with passes of this length, where the goal is one.
    pub fn mttdl_s(&self, pass_s: Option<f64>) -> Option<f64> {
        self.goal.and(pass_s).map(|pass_s| Errors::default().mttdl_scrubbed(pass_s / 2.0))
    }

    /// The smallest mean slowdown that would allow any work, where the goal allows none.
    pub fn needed(&self, disks: &[Idleness], model: &DiskModel, goal: &Goal, arrivals: Arrivals) -> Option<Nanos> {
        let least = Goal { mean_slowdown: goal.mean_slowdown.max(LEAST), ..*goal };
        match gentlest(disks, model, &least, arrivals, Bytes(1), &|_| ()) {
            Ok(Gentlest::Found(goal, _)) => Some(goal.mean_slowdown),
            _ => None,
        }
    }
}
