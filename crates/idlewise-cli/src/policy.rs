//! The arguments that name a policy and its parameters.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Arg, ArgGroup, ArgMatches, Command};
use idlewise::disk::{DiskModel, SMALLEST_REQUEST};
use idlewise::idle::Idleness;
use idlewise::policy::{
    BUDGET, Budget, POLICIES, Parameters, Policy, RELATIVE_DELAY, REQUEST_SIZE, Setting, Value, all_parameters, build,
};
use idlewise::tune::PlanFile;

use crate::exit::UsageError;
use crate::input::{formats_help, list, plan_file};

/// The heading of these options.
const POLICY: &str = "Policy";
/// The group of the options for parameters.
pub const OPTIONS: &str = "PolicyOptions";
/// An option that so many policies take names them.
const SHOWN: usize = 4;

/// A policy, or a plan.
#[derive(clap::Args)]
pub struct PolicyArguments {
    /// Policy, one of those listed below
    #[arg(long, help_heading = POLICY, value_name = "NAME")]
    policy: Option<String>,

    /// Run a plan that `idlewise tune --out` wrote, instead of a policy with parameters
    #[arg(long, help_heading = POLICY, value_name = "FILE", conflicts_with = "policy")]
    plan: Option<PathBuf>,

    #[command(flatten)]
    options: Options,
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
    /// The file of the plan, if one is run.
    pub fn plan_path(&self) -> Option<PathBuf> {
        self.plan.clone()
    }

    /// The policy asked for, or the one called `default`, checked.
    pub fn chosen(&self, default: &str) -> anyhow::Result<Chosen> {
        self.or_default(default)?.checked()
    }

    /// The same for work in which the size of a request has no meaning: none need be given.
    pub fn chosen_without_sizes(&self, default: &str) -> anyhow::Result<Chosen> {
        let mut chosen = self.or_default(default)?;
        let takes = POLICIES.get(&chosen.name).is_some_and(|entry| entry.takes(REQUEST_SIZE.name));
        if takes && chosen.parameters.size(REQUEST_SIZE).is_none() {
            chosen.parameters = chosen.parameters.with(REQUEST_SIZE, SMALLEST_REQUEST);
        }
        chosen.checked()
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
        let names: Vec<&str> = std::iter::once(name.as_str()).chain(other).collect();
        let takes = |option| names.iter().filter_map(|name| POLICIES.get(name)).any(|entry| entry.takes(option));
        if let Some((option, _)) = self.parameters().iter().find(|(option, _)| !takes(option)) {
            return Err(UsageError(format!("{} takes no --{option}", names.join(" and "))).into());
        }
        let of = |name: &str, plan| {
            let delay = self.parameters().number(RELATIVE_DELAY).unwrap_or(relative_delay);
            let all = self.parameters().clone().with(RELATIVE_DELAY, delay);
            let parameters = POLICIES.get(name).map(|entry| all.taken_by(entry)).unwrap_or_default();
            Chosen { name: name.into(), parameters, plan }.checked()
        };
        Ok((of(&name, plan)?, other.map(|other| of(other, None)).transpose()?))
    }

    /// Whether the policy asked for, or the one called `default`, takes a relative delay.
    pub fn takes_relative_delay(&self, default: &str) -> bool {
        let name = self.policy.as_deref().unwrap_or(default);
        self.plan.is_none() && POLICIES.get(name).is_some_and(|entry| entry.takes(RELATIVE_DELAY.name))
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
        Ok(Chosen { name, parameters: self.parameters().clone(), plan })
    }

    /// The options that were given, as text.
    pub fn given(&self) -> BTreeMap<&'static str, String> {
        self.parameters().iter().map(|(name, value)| (name, value.to_string())).collect()
    }

    /// The options that were given.
    pub fn parameters(&self) -> &Parameters {
        &self.options.0
    }
}

/// An option for each parameter of each policy in the table.
struct Options(Parameters);

impl clap::Args for Options {
    fn augment_args(command: Command) -> Command {
        let names = all_parameters().into_iter().map(|parameter| parameter.name);
        let command = command.group(ArgGroup::new(OPTIONS).multiple(true).args(names));
        all_parameters().into_iter().fold(command, |command, parameter| {
            let with = POLICIES.iter().filter(|entry| entry.parameters.iter().any(|one| one.name == parameter.name));
            let names: Vec<&str> = with.map(|entry| entry.name).collect();
            let about = match names.len() {
                1..=SHOWN => format!("{} ({})", parameter.about, names.join(", ")),
                _ => parameter.about.into(),
            };
            let option = Arg::new(parameter.name).long(parameter.name).value_name(parameter.kind.unit());
            let option =
                option.help(about).help_heading(POLICY).value_parser(move |text: &str| parameter.kind.parse(text));
            command.arg(if parameter == BUDGET { option } else { option.conflicts_with("plan") })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for Options {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = all_parameters().into_iter().filter_map(|one| Some((one, *matches.get_one::<Value>(one.name)?)));
        Ok(Self(given.fold(Parameters::default(), |parameters, (one, value)| parameters.with(one, value))))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Chosen {
    fn checked(self) -> anyhow::Result<Self> {
        let (nothing, any) = (Idleness::default(), DiskModel::ultrastar_15k450());
        let setting = Setting::scrub(&nothing, &any);
        if self.plan.is_none() {
            build(&self.name, &self.parameters, &setting).map_err(|error| UsageError(error.message("--")))?;
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
        match (&self.plan, self.parameters.time(BUDGET)) {
            (Some(plan), Some(target)) => Box::new(Budget::new(plan.schedule().policy(), target)),
            (Some(plan), None) => plan.schedule().policy(),
            (None, _) => build(&self.name, &self.parameters, setting).expect("checked before"),
        }
    }
}
