//! The arguments that name a policy and its parameters.

use std::collections::BTreeMap;
use std::path::PathBuf;

use idlewise::disk::DiskModel;
use idlewise::idle::Idleness;
use idlewise::policy::{Budget, POLICIES, Parameters, Policy, Setting, build};
use idlewise::tune::PlanFile;
use idlewise::{Bytes, Nanos};

use crate::exit::UsageError;
use crate::input::{formats_help, list, plan_file};

/// The heading of these options.
const POLICY: &str = "Policy";

/// A policy, or a plan.
#[derive(clap::Args)]
pub struct PolicyArguments {
    /// Policy, one of those listed below
    #[arg(long, help_heading = POLICY, value_name = "NAME")]
    policy: Option<String>,

    /// Run a plan that `idlewise tune --out` wrote, instead of a policy with parameters
    #[arg(long, help_heading = POLICY, value_name = "FILE", conflicts_with_all = [
        "policy", "idle_wait", "request_size", "delay", "threshold", "longest", "growth", "increment", "swap_at", "largest_size",
        "busy_period", "relative_delay", "mean_slowdown", "max_slowdown",
    ])]
    plan: Option<PathBuf>,

    /// Idle time before the first background request, such as 100ms
    #[arg(long, help_heading = POLICY, value_name = "TIME")]
    idle_wait: Option<Nanos>,

    /// Longest time that background work runs in one idle interval, such as 40ms (restrained)
    #[arg(long, help_heading = POLICY, value_name = "TIME")]
    busy_period: Option<Nanos>,

    /// Relative delay of the foreground, such as 0.07: added over original response time (monitoring, body, tail, tail-bursty)
    #[arg(long, help_heading = POLICY, value_name = "SHARE")]
    pub relative_delay: Option<f64>,

    /// Mean slowdown to tune for (adaptive)
    #[arg(long, help_heading = POLICY, value_name = "TIME")]
    mean_slowdown: Option<Nanos>,

    /// Longest service time of a background request (adaptive)
    #[arg(long, help_heading = POLICY, value_name = "TIME")]
    max_slowdown: Option<Nanos>,

    /// Size of each background request, such as 512KiB
    #[arg(long, help_heading = POLICY, value_name = "SIZE")]
    pub request_size: Option<Bytes>,

    /// Time from one background request to the next, such as 16ms
    #[arg(long, help_heading = POLICY, value_name = "TIME")]
    delay: Option<Nanos>,

    /// Predicted length that an interval must exceed (ar, ar-waiting)
    #[arg(long, help_heading = POLICY, value_name = "TIME")]
    threshold: Option<Nanos>,

    /// Share of the intervals to use, the longest ones, such as 0.1 (oracle)
    #[arg(long, help_heading = POLICY, value_name = "SHARE")]
    longest: Option<f64>,

    /// Factor from one request size to the next (exponential, linear)
    #[arg(long, help_heading = POLICY, value_name = "FACTOR")]
    growth: Option<f64>,

    /// What is added to that for each request (linear)
    #[arg(long, help_heading = POLICY, value_name = "SIZE")]
    increment: Option<Bytes>,

    /// Idle time after which requests have the largest size (swapping)
    #[arg(long, help_heading = POLICY, value_name = "TIME")]
    swap_at: Option<Nanos>,

    /// Largest size that growing requests reach [default: 4MiB]
    #[arg(long, help_heading = POLICY, value_name = "SIZE")]
    largest_size: Option<Bytes>,

    /// Keep any policy within this mean slowdown: it pauses while its account is overdrawn
    #[arg(long, help_heading = POLICY, value_name = "TIME")]
    budget: Option<Nanos>,
}

/// What `--help` says of policies and traces.
pub fn policies_and_formats() -> String {
    let policies = list("Policies", POLICIES.iter().map(|entry| (entry.name, entry.about)));
    format!("{policies}\n\n{}", formats_help())
}

/// A policy that can be built for any disk, or a plan.
pub struct Chosen {
    name: String,
    parameters: Parameters,
    plan: Option<PlanFile>,
}

impl PolicyArguments {
    /// The policy asked for, or the one called `default`, checked.
    pub fn chosen(&self, default: &str) -> anyhow::Result<Chosen> {
        self.or_default(default)?.checked()
    }

    /// The policy asked for, or the one called `default`, and another for other work, which is built from the same options. Where
    /// a relative delay is needed and none is given, it is `relative_delay`.
    pub fn chosen_pair(
        &self,
        default: &str,
        other: Option<&str>,
        relative_delay: f64,
    ) -> anyhow::Result<(Chosen, Option<Chosen>)> {
        let Chosen { name, plan, .. } = self.or_default(default)?;
        let options =
            |name: &str| POLICIES.iter().find(|entry| entry.name == name).map_or(&[][..], |entry| entry.options);
        let names: Vec<&str> = std::iter::once(name.as_str()).chain(other).collect();
        let taken: Vec<&str> = names.iter().flat_map(|name| options(name)).copied().collect();
        for (option, given) in self.parameters().options() {
            if given && !taken.contains(&option) {
                return Err(UsageError(format!("{} takes no {option}", names.join(" and "))).into());
            }
        }
        let of = |name: &str, plan| {
            let with_default =
                Parameters { relative_delay: self.relative_delay.or(Some(relative_delay)), ..self.parameters() };
            Chosen { name: name.into(), parameters: with_default.taken_by(options(name)), plan }.checked()
        };
        Ok((of(&name, plan)?, other.map(|other| of(other, None)).transpose()?))
    }

    /// Whether the policy asked for, or the one called `default`, takes a relative delay.
    pub fn takes_relative_delay(&self, default: &str) -> bool {
        let name = self.policy.as_deref().unwrap_or(default);
        let entry = POLICIES.iter().find(|entry| entry.name == name);
        self.plan.is_none() && entry.is_some_and(|entry| entry.options.contains(&"--relative-delay"))
    }

    /// Whether a policy or a plan is named.
    pub fn named(&self) -> bool {
        self.policy.is_some() || self.plan.is_some()
    }

    fn or_default(&self, default: &str) -> anyhow::Result<Chosen> {
        let plan = self.plan.as_deref().map(plan_file).transpose()?;
        let name = match &self.plan {
            Some(path) => format!("plan {}", path.display()),
            None => self.policy.clone().unwrap_or_else(|| default.into()),
        };
        Ok(Chosen { name, parameters: self.parameters(), plan })
    }

    /// The options that were given, as text.
    pub fn given(&self) -> BTreeMap<&'static str, String> {
        let time = |time: Option<Nanos>| time.map(|time| time.exact());
        let size = |size: Option<Bytes>| size.map(|size| size.to_string());
        let number = |number: Option<f64>| number.map(|number| number.to_string());
        let all = [
            ("idle-wait", time(self.idle_wait)),
            ("busy-period", time(self.busy_period)),
            ("relative-delay", number(self.relative_delay)),
            ("mean-slowdown", time(self.mean_slowdown)),
            ("max-slowdown", time(self.max_slowdown)),
            ("request-size", size(self.request_size)),
            ("delay", time(self.delay)),
            ("threshold", time(self.threshold)),
            ("longest", number(self.longest)),
            ("growth", number(self.growth)),
            ("increment", size(self.increment)),
            ("swap-at", time(self.swap_at)),
            ("largest-size", size(self.largest_size)),
            ("budget", time(self.budget)),
        ];
        all.into_iter().filter_map(|(option, value)| Some((option, value?))).collect()
    }

    fn parameters(&self) -> Parameters {
        Parameters {
            request_size: self.request_size,
            idle_wait: self.idle_wait,
            delay: self.delay,
            threshold: self.threshold,
            longest: self.longest,
            growth: self.growth,
            increment: self.increment,
            swap_at: self.swap_at,
            largest_size: self.largest_size,
            budget: self.budget,
            busy_period: self.busy_period,
            relative_delay: self.relative_delay,
            mean_slowdown: self.mean_slowdown,
            max_slowdown: self.max_slowdown,
        }
    }
}

impl Chosen {
    fn checked(self) -> anyhow::Result<Self> {
        let (nothing, any) = (Idleness::default(), DiskModel::ultrastar_15k450());
        let setting = Setting::scrub(&nothing, &any);
        if self.plan.is_none() {
            build(&self.name, &self.parameters, &setting).map_err(|error| UsageError(error.to_string()))?;
        }
        Ok(self)
    }

    /// The same, allowed to delay the foreground by this share of that.
    pub fn scaled(&self, share: f64) -> Self {
        Self { name: self.name.clone(), parameters: self.parameters.scaled(share), plan: self.plan.clone() }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The policy for a disk.
    pub fn build(&self, setting: &Setting) -> Box<dyn Policy> {
        match (&self.plan, self.parameters.budget) {
            (Some(plan), Some(target)) => Box::new(Budget::new(plan.schedule().policy(), target)),
            (Some(plan), None) => plan.schedule().policy(),
            (None, _) => build(&self.name, &self.parameters, setting).expect("checked before"),
        }
    }
}
