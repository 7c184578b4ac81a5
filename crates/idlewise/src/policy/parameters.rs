//! What a policy is told, and what is wrong with it.

use std::collections::BTreeMap;
use std::fmt;

use super::parameter::{Kind, Parameter, Tried, Value};
use super::restrained::Amount;
use super::{BUDGET, Entry, MEAN_SLOWDOWN, POLICIES, RELATIVE_DELAY};
use crate::disk::{DiskModel, SMALLEST_REQUEST};
use crate::idle::Idleness;
use crate::{Bytes, Nanos};

/// Size of each request, or of the first. Every policy takes it.
pub const REQUEST_SIZE: Parameter = Parameter {
    name: "request-size",
    about: "Size of each background request, such as 512KiB",
    kind: Kind::Size { least: Bytes(512) },
    tried: Tried::AtLeastFirst(Bytes(0)),
};

/// The parameters that every policy takes.
pub const COMMON: [Parameter; 2] = [REQUEST_SIZE, BUDGET];

/// Every parameter of every policy in the table, each once; the common ones come first.
pub fn all_parameters() -> Vec<Parameter> {
    let mut all = COMMON.to_vec();
    for parameter in POLICIES.iter().flat_map(|entry| entry.parameters) {
        match all.iter().find(|one| one.name == parameter.name) {
            None => all.push(*parameter),
            Some(one) => assert!(one.kind == parameter.kind, "two parameters are called {}", one.name),
        }
    }
    all
}

/// Values of parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters(BTreeMap<&'static str, Value>);

impl Parameters {
    /// The same with this value.
    ///
    /// # Panics
    /// If it is not of the parameter's kind.
    pub fn with(mut self, parameter: Parameter, value: impl Into<Value>) -> Self {
        self.set(parameter, value);
        self
    }

    /// Sets a value.
    ///
    /// # Panics
    /// If it is not of the parameter's kind.
    pub fn set(&mut self, parameter: Parameter, value: impl Into<Value>) {
        let value = value.into();
        assert!(parameter.kind.is_of(value), "{} takes another kind of value than {value}", parameter.name);
        self.0.insert(parameter.name, value);
    }

    /// Removes a value.
    pub fn without(mut self, parameter: Parameter) -> Self {
        self.0.remove(parameter.name);
        self
    }

    /// A value, where it is given.
    pub fn get(&self, parameter: Parameter) -> Option<Value> {
        self.0.get(parameter.name).copied()
    }

    /// A time, where it is given.
    pub fn time(&self, parameter: Parameter) -> Option<Nanos> {
        self.get(parameter).and_then(|value| if let Value::Time(time) = value { Some(time) } else { None })
    }

    /// A size, where it is given.
    pub fn size(&self, parameter: Parameter) -> Option<Bytes> {
        self.get(parameter).and_then(|value| if let Value::Size(size) = value { Some(size) } else { None })
    }

    /// A number, where it is given.
    pub fn number(&self, parameter: Parameter) -> Option<f64> {
        self.get(parameter).and_then(|value| if let Value::Number(number) = value { Some(number) } else { None })
    }

    /// All that are given, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Value)> {
        self.0.iter().map(|(&name, &value)| (name, value))
    }

    /// Those of these that a policy takes.
    pub fn taken_by(&self, entry: &Entry) -> Self {
        Self(self.iter().filter(|(name, _)| entry.takes(name)).collect())
    }

    /// The same, allowed to delay the foreground by this share of that.
    pub fn scaled(&self, share: f64) -> Self {
        let mut scaled = self.clone();
        for (name, value) in &mut scaled.0 {
            match value {
                Value::Number(delay) if *name == RELATIVE_DELAY.name => *delay *= share,
                Value::Time(time) if [MEAN_SLOWDOWN.name, BUDGET.name].contains(name) => {
                    time.0 = (time.0 as f64 * share) as u64;
                }
                _ => {}
            }
        }
        scaled
    }
}

/// Where a policy is to run. What it learns from the past, it learns from this disk's.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The disk's idle times.
    pub past: &'a Idleness,
    /// How long its requests take.
    pub model: &'a DiskModel,
    /// Mean service time of a background request, where it does not depend on its size.
    pub service: Option<Nanos>,
    /// How much background work there is.
    pub amount: Amount,
}

impl<'a> Setting<'a> {
    /// A scrub of this disk.
    pub fn scrub(past: &'a Idleness, model: &'a DiskModel) -> Self {
        Self { past, model, service: None, amount: Amount::Infinite }
    }

    pub(super) fn service_of(&self, size: Bytes) -> Nanos {
        self.service.unwrap_or_else(|| self.model.verify_time(size))
    }
}

/// What a policy is built from.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// Its name.
    pub policy: &'static str,
    /// What it is told.
    pub parameters: &'a Parameters,
    /// Where it is to run.
    pub setting: &'a Setting<'a>,
}

impl Given<'_> {
    /// A time that the policy cannot do without.
    ///
    /// # Errors
    /// [`ParameterError::Missing`].
    pub fn time(&self, parameter: Parameter) -> Result<Nanos, ParameterError> {
        self.parameters.time(parameter).ok_or_else(|| self.missing(parameter))
    }

    /// A size that the policy cannot do without.
    ///
    /// # Errors
    /// [`ParameterError::Missing`].
    pub fn size(&self, parameter: Parameter) -> Result<Bytes, ParameterError> {
        self.parameters.size(parameter).ok_or_else(|| self.missing(parameter))
    }

    /// A number that the policy cannot do without.
    ///
    /// # Errors
    /// [`ParameterError::Missing`].
    pub fn number(&self, parameter: Parameter) -> Result<f64, ParameterError> {
        self.parameters.number(parameter).ok_or_else(|| self.missing(parameter))
    }

    /// The size of its requests: what is given, or 64 KiB.
    pub fn size_or_smallest(&self) -> Bytes {
        self.parameters.size(REQUEST_SIZE).unwrap_or(SMALLEST_REQUEST)
    }

    fn missing(&self, parameter: Parameter) -> ParameterError {
        ParameterError::Missing { policy: self.policy, parameters: vec![parameter.name] }
    }
}

/// A policy cannot be built from these parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParameterError {
    /// Some that it needs are not given.
    Missing {
        /// Name of the policy.
        policy: &'static str,
        /// Names of the parameters.
        parameters: Vec<&'static str>,
    },
    /// One is given that it does not use.
    Unused {
        /// Name of the policy.
        policy: &'static str,
        /// Name of the parameter.
        parameter: &'static str,
    },
    /// No policy has this name.
    Unknown {
        /// The name asked for.
        name: String,
        /// The names in the table.
        known: Vec<&'static str>,
    },
    /// A value is out of its range.
    Range {
        /// Name of the parameter.
        parameter: &'static str,
        /// What it could be.
        expected: String,
    },
}

impl ParameterError {
    /// The message, with this before the name of each parameter: two dashes on a command line.
    pub fn message(&self, before: &str) -> String {
        match self {
            Self::Missing { policy, parameters } => {
                let names: Vec<String> = parameters.iter().map(|name| format!("{before}{name}")).collect();
                format!("policy '{policy}' needs {}", names.join(" and "))
            }
            Self::Unused { policy, parameter } => format!("policy '{policy}' takes no {before}{parameter}"),
            Self::Unknown { name, known } => format!("no policy '{name}'; there is {}", known.join(", ")),
            Self::Range { parameter, expected } => format!("{before}{parameter} is {expected}"),
        }
    }
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message(""))
    }
}

impl std::error::Error for ParameterError {}
