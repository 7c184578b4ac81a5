//! When background work may run: one trait, one file a policy, one line each in [`POLICIES`].
//!
//! The simulator and the live scrubber drive the same object. It never reads a clock: it is told what happens and
//! how long the device has been idle, and answers what to do next.

mod fixed_delay;
mod waiting;

pub use fixed_delay::FixedDelay;
pub use waiting::Waiting;

use crate::{Bytes, Nanos};

/// What a policy wants to do next in an idle interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Ask again when the device has been idle for `until`, which is later than now.
    Wait {
        /// Elapsed idle time.
        until: Nanos,
    },
    /// Issue `count` requests of `size`, each when the one before completes, then ask again.
    Issue {
        /// Size of each request.
        size: Bytes,
        /// How many, at least one; [`u64::MAX`] for as long as the device stays idle.
        count: u64,
    },
    /// Nothing more in this interval.
    Stop,
}

/// Decides when background requests start, and their size.
pub trait Policy: Send {
    /// The device became idle; the foreground work before that began `busy` ago.
    fn idle_began(&mut self, busy: Nanos) {
        let _ = busy;
    }

    /// What to do at an elapsed idle time. Asked when the interval begins (zero), when a wait is over, and when the
    /// requests last decided on have completed.
    fn decide(&mut self, elapsed: Nanos) -> Decision;

    /// Foreground work arrived after `idle`, with `collision` left of a background request then in service (zero if
    /// none was). Issued requests complete.
    fn foreground_arrived(&mut self, idle: Nanos, collision: Nanos) {
        let _ = (idle, collision);
    }
}

/// What policies are built from; each takes what it needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    /// Size of each request.
    pub request_size: Option<Bytes>,
    /// Idle wait (threshold t).
    pub idle_wait: Option<Nanos>,
    /// Time from the end of one background request to the start of the next.
    pub delay: Option<Nanos>,
}

/// A policy cannot be built from these parameters.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// One that it needs is not given.
    #[error("policy '{policy}' needs {option}")]
    Missing {
        /// Name of the policy.
        policy: &'static str,
        /// The option of the command line.
        option: &'static str,
    },
    /// One is given that it does not use.
    #[error("policy '{policy}' takes no {option}")]
    Unused {
        /// Name of the policy.
        policy: &'static str,
        /// The option of the command line.
        option: &'static str,
    },
    /// No policy has this name.
    #[error("no policy '{name}'; there is {known}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names in the table.
        known: String,
    },
    /// A request of no bytes.
    #[error("a request size of zero verifies nothing: give at least 512B")]
    ZeroSize,
}

/// A line of the table of policies.
pub struct Entry {
    /// Name on the command line.
    pub name: &'static str,
    /// What it does, in a line, for `--help`.
    pub about: &'static str,
    /// The options that it takes besides `--request-size`.
    pub options: &'static [&'static str],
    /// Builds it.
    pub build: fn(&Parameters) -> Result<Box<dyn Policy>, ParameterError>,
}

/// Request size of the baselines: the smallest that DSN 2012 finds worth issuing (section IV-A).
pub const SMALLEST_REQUEST: Bytes = Bytes::from_kib(64);

/// Every policy.
pub const POLICIES: &[Entry] = &[
    Entry {
        name: "waiting",
        about: "issue back to back once the disk has been idle for --idle-wait",
        options: &["--idle-wait"],
        build: |p| {
            Ok(Box::new(Waiting { idle_wait: p.idle_wait("waiting")?, request_size: p.request_size("waiting")? }))
        },
    },
    Entry {
        name: "cfq-idle",
        about: "the idle class of Linux' CFQ: waiting with 10 ms and, unless given, 64KiB",
        options: &[],
        build: |p| Ok(Box::new(Waiting { idle_wait: Nanos::from_millis(10), request_size: p.size_or_smallest()? })),
    },
    Entry {
        name: "back-to-back",
        about: "issue whenever the disk is idle, 64KiB unless given",
        options: &[],
        build: |p| Ok(Box::new(Waiting { idle_wait: Nanos::ZERO, request_size: p.size_or_smallest()? })),
    },
    Entry {
        name: "fixed-delay",
        about: "issue one request --delay after the last one, 64KiB unless given",
        options: &["--delay"],
        build: |p| {
            let delay = p.delay.ok_or(ParameterError::Missing { policy: "fixed-delay", option: "--delay" })?;
            Ok(Box::new(FixedDelay::new(delay, p.size_or_smallest()?)))
        },
    },
];

/// Builds the policy called `name`.
///
/// # Errors
/// [`ParameterError`] names the missing parameter, or the policies there are.
pub fn build(name: &str, parameters: &Parameters) -> Result<Box<dyn Policy>, ParameterError> {
    let Some(entry) = POLICIES.iter().find(|entry| entry.name == name) else {
        let known = POLICIES.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
        return Err(ParameterError::Unknown { name: name.into(), known });
    };
    let given = [("--idle-wait", parameters.idle_wait.is_some()), ("--delay", parameters.delay.is_some())];
    for (option, given) in given {
        if given && !entry.options.contains(&option) {
            return Err(ParameterError::Unused { policy: entry.name, option });
        }
    }
    (entry.build)(parameters)
}

impl Parameters {
    fn idle_wait(&self, policy: &'static str) -> Result<Nanos, ParameterError> {
        self.idle_wait.ok_or(ParameterError::Missing { policy, option: "--idle-wait" })
    }

    fn request_size(&self, policy: &'static str) -> Result<Bytes, ParameterError> {
        nonzero(self.request_size.ok_or(ParameterError::Missing { policy, option: "--request-size" })?)
    }

    fn size_or_smallest(&self) -> Result<Bytes, ParameterError> {
        nonzero(self.request_size.unwrap_or(SMALLEST_REQUEST))
    }
}

fn nonzero(size: Bytes) -> Result<Bytes, ParameterError> {
    if size == Bytes(0) { Err(ParameterError::ZeroSize) } else { Ok(size) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_builds_and_moves_on() {
        for entry in POLICIES {
            let takes = |option: &str, value| entry.options.contains(&option).then_some(value);
            let parameters = Parameters {
                request_size: Some(Bytes::from_kib(512)),
                idle_wait: takes("--idle-wait", Nanos::from_millis(100)),
                delay: takes("--delay", Nanos::from_millis(16)),
            };
            let mut policy = build(entry.name, &parameters).unwrap();
            policy.idle_began(Nanos(1));
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
                    Decision::Stop => break,
                }
            }
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = build("waiting", &Parameters::default()).err().unwrap();
        assert_eq!(error.to_string(), "policy 'waiting' needs --idle-wait");
        let unused = Parameters { idle_wait: Some(Nanos(1)), ..Parameters::default() };
        let error = build("cfq-idle", &unused).err().unwrap().to_string();
        assert_eq!(error, "policy 'cfq-idle' takes no --idle-wait");
        let error = build("wait", &Parameters::default()).err().unwrap().to_string();
        assert!(error.contains("waiting, cfq-idle"), "{error}");
        let zero = Parameters { request_size: Some(Bytes(0)), ..Parameters::default() };
        assert_eq!(build("back-to-back", &zero).err(), Some(ParameterError::ZeroSize));
    }
}
