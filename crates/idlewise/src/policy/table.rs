//! The table of policies, and how one is built from parameters.

use super::parameter::Parameter;
use super::parameters::{COMMON, Given, ParameterError, Parameters, Setting};
use super::restrained::{BODY, MONITORING, RESTRAINED, TAIL, TAIL_BURSTY};
use super::{BUDGET, BUSY_PERIOD, Budget, Policy, RELATIVE_DELAY};
use super::{adaptive, clairvoyant, fixed_delay, growing, predicting, waiting};
use crate::registry::{Named, Registry};

/// A line of the table of policies.
pub struct Entry {
    /// Name on the command line.
    pub name: &'static str,
    /// What it does, in a line, for `--help`.
    pub about: &'static str,
    /// What it can be told besides [`COMMON`].
    pub parameters: &'static [Parameter],
    /// Builds it. Values are in their ranges, and none is given that it does not take.
    pub build: Build,
}

/// Builds a policy.
pub type Build = fn(&Given) -> Result<Box<dyn Policy>, ParameterError>;

impl Named for Entry {
    fn name(&self) -> &'static str {
        self.name
    }
}

impl Entry {
    /// Whether it can be told this, by the name of a parameter.
    pub fn takes(&self, name: &str) -> bool {
        self.parameters.iter().chain(&COMMON).any(|parameter| parameter.name == name)
    }

    /// Whether it ends its work in an idle interval by itself, and not only when a foreground request comes: as a command in the gaps cannot.
    pub fn ends_by_itself(&self) -> bool {
        [BUSY_PERIOD, RELATIVE_DELAY].iter().any(|parameter| self.takes(parameter.name))
    }
}

/// Every policy.
pub static POLICIES: Registry<Entry> = Registry::new(&[
    waiting::WAITING,
    predicting::AR,
    predicting::AR_WAITING,
    clairvoyant::LOSSLESS_WAITING,
    clairvoyant::ORACLE,
    growing::EXPONENTIAL,
    growing::LINEAR,
    growing::SWAPPING,
    RESTRAINED,
    MONITORING,
    BODY,
    TAIL,
    TAIL_BURSTY,
    adaptive::ADAPTIVE,
    waiting::CFQ_IDLE,
    waiting::BACK_TO_BACK,
    fixed_delay::FIXED_DELAY,
]);

/// Builds the policy called `name`.
///
/// # Errors
/// [`ParameterError`] names what is missing, unused or out of its range, or the policies there are.
pub fn build(name: &str, parameters: &Parameters, setting: &Setting) -> Result<Box<dyn Policy>, ParameterError> {
    let Some(entry) = POLICIES.get(name) else {
        return Err(ParameterError::Unknown { name: name.into(), known: POLICIES.names() });
    };
    for (name, value) in parameters.iter() {
        let taken = entry.parameters.iter().chain(&COMMON).find(|parameter| parameter.name == name);
        let Some(taken) = taken else {
            return Err(ParameterError::Unused { policy: entry.name, parameter: name });
        };
        if let Some(expected) = taken.kind.out_of_range(value) {
            return Err(ParameterError::Range { parameter: name, expected });
        }
    }
    let policy = built(entry, parameters, setting)?;
    Ok(match parameters.time(BUDGET) {
        Some(target) => Box::new(Budget::new(policy, target)),
        None => policy,
    })
}

/// Asks for one thing at a time, so that all that is missing is found by giving it what it asks for.
fn built(entry: &Entry, parameters: &Parameters, setting: &Setting) -> Result<Box<dyn Policy>, ParameterError> {
    let build = |parameters: &Parameters| (entry.build)(&Given { policy: entry.name, parameters, setting });
    let (mut given, mut missing) = (parameters.clone(), Vec::new());
    loop {
        match build(&given) {
            Err(ParameterError::Missing { parameters, .. }) if !missing.contains(&parameters[0]) => {
                let asked = entry.parameters.iter().chain(&COMMON).find(|one| one.name == parameters[0]);
                missing.push(parameters[0]);
                let Some(asked) = asked else { break };
                given.set(*asked, asked.usual());
            }
            built if missing.is_empty() => return built,
            _ => break,
        }
    }
    Err(ParameterError::Missing { policy: entry.name, parameters: missing })
}

#[cfg(all(test, feature = "files"))]
mod tests {
    use super::super::testing::parameters_of;
    use super::super::{Decision, IDLE_WAIT, LONGEST, REQUEST_SIZE};
    use super::*;
    use crate::disk::DiskModel;
    use crate::idle::{Idleness, Interval};
    use crate::{Bytes, Nanos};

    fn built(name: &str, parameters: &Parameters) -> Result<Box<dyn Policy>, ParameterError> {
        let interval = |ms| Interval { length: Nanos::from_millis(ms), followers: 1, busy_before: Nanos(1) };
        let past = Idleness { intervals: (1..=100).map(|k| interval(k * k % 37 + 1)).collect(), ..Idleness::default() };
        build(name, parameters, &Setting::scrub(&past, &DiskModel::ultrastar_15k450()))
    }

    #[test]
    fn every_policy_builds_and_moves_on() {
        for entry in POLICIES.iter() {
            let mut policy = built(entry.name, &parameters_of(entry)).unwrap();
            policy.interval_foreseen(Nanos::from_secs(9));
            policy.idle_began(Nanos(1), Nanos::ZERO);
            let mut elapsed = Nanos::ZERO;
            for _ in 0..100 {
                match policy.decide(elapsed) {
                    Decision::Wait { until } => {
                        assert!(until > elapsed, "{} waits for the past", entry.name);
                        elapsed = until;
                    }
                    Decision::Issue { size, count } => {
                        assert!(size > Bytes(0) && count > 0, "{} issues nothing", entry.name);
                        elapsed.0 += 1_000_000;
                    }
                    Decision::IssueUntil { size, until } => {
                        assert!(size > Bytes(0) && until > elapsed, "{} issues nothing", entry.name);
                        elapsed.0 += 1_000_000;
                    }
                    Decision::Paced { size, pause } => {
                        assert!(size > Bytes(0), "{} issues nothing", entry.name);
                        elapsed.0 += 1_000_000 + pause.0;
                    }
                    Decision::Stop => break,
                }
            }
        }
    }

    #[test]
    fn what_is_missing_or_senseless_is_named() {
        let none = Parameters::default;
        let error = |name: &str, parameters| built(name, &parameters).err().unwrap();
        assert_eq!(error("waiting", none()).to_string(), "policy 'waiting' needs idle-wait and request-size");
        let unused = none().with(IDLE_WAIT, Nanos(1));
        assert_eq!(error("cfq-idle", unused).message("--"), "policy 'cfq-idle' takes no --idle-wait");
        assert!(error("wait", none()).to_string().contains("waiting, ar"));
        let zero = none().with(REQUEST_SIZE, Bytes(0));
        assert_eq!(error("back-to-back", zero).message("--"), "--request-size is at least 512 B, a block of a disk");
        assert_eq!(error("oracle", none().with(LONGEST, 15.0)).message("--"), "--longest is a share from 0 to 1");
    }
}
