//! The table of policies, and how one is built from parameters.

use super::parameters::{ParameterError, Parameters, Setting};
use super::restrained::{Choice, Pair, Part, Target};
use super::{Adaptive, Budget, Clairvoyant, FixedDelay, Growing, Growth, Policy, Predicting, Restrained, Waiting};
use crate::disk::{LARGEST_REQUEST, SMALLEST_REQUEST};
use crate::idle::{AutoRegression, Idleness};
use crate::{Bytes, Nanos};

/// A line of the table of policies.
pub struct Entry {
    /// Name on the command line.
    pub name: &'static str,
    /// What it does, in a line, for `--help`.
    pub about: &'static str,
    /// The options that it takes besides `--request-size` and `--budget`.
    pub options: &'static [&'static str],
    /// Builds it for a disk whose past is this.
    build: Build,
}

type Build = fn(&Asked, &Setting) -> Result<Box<dyn Policy>, ParameterError>;

/// Every policy.
pub const POLICIES: &[Entry] = &[
    Entry {
        name: "waiting",
        about: "issue back to back once the disk has been idle for --idle-wait",
        options: &["--idle-wait"],
        build: |p, _| Ok(Box::new(Waiting { idle_wait: p.idle_wait()?, request_size: p.size()? })),
    },
    Entry {
        name: "ar",
        about: "issue in intervals that autoregression predicts to exceed --threshold",
        options: &["--threshold"],
        build: |p, setting| Ok(Box::new(p.predicting(setting.past, Nanos::ZERO)?)),
    },
    Entry {
        name: "ar-waiting",
        about: "both: predicted to exceed --threshold, and idle for --idle-wait",
        options: &["--threshold", "--idle-wait"],
        build: |p, setting| Ok(Box::new(p.predicting(setting.past, p.idle_wait()?)?)),
    },
    Entry {
        name: "lossless-waiting",
        about: "the intervals of waiting from their beginning (no real policy can)",
        options: &["--idle-wait"],
        build: |p, _| Ok(Box::new(Clairvoyant::new(p.idle_wait()?, p.size_or_smallest()?))),
    },
    Entry {
        name: "oracle",
        about: "the --longest intervals, as a share, from their beginning (no real policy can)",
        options: &["--longest"],
        build: |p, setting| Ok(Box::new(Clairvoyant::new(p.shortest_of_longest(setting.past)?, p.size_or_smallest()?))),
    },
    Entry {
        name: "exponential",
        about: "waiting, with sizes from --request-size to --largest-size, each --growth times the last",
        options: &["--idle-wait", "--growth", "--largest-size"],
        build: |p, _| Ok(Box::new(p.growing(Growth::Each { factor: p.growth()?, increment: Bytes(0) })?)),
    },
    Entry {
        name: "linear",
        about: "the same, each --increment more than --growth times the last",
        options: &["--idle-wait", "--growth", "--increment", "--largest-size"],
        build: |p, _| {
            let increment = p.needed(p.given.increment, "--increment")?;
            let factor = p.given.growth.map_or(Ok(1.0), |_| p.growth())?;
            Ok(Box::new(p.growing(Growth::Each { factor, increment })?))
        },
    },
    Entry {
        name: "swapping",
        about: "waiting, with --largest-size once idle for --swap-at",
        options: &["--idle-wait", "--swap-at", "--largest-size"],
        build: |p, _| Ok(Box::new(p.growing(Growth::Once { at: p.needed(p.given.swap_at, "--swap-at")? })?)),
    },
    Entry {
        name: "restrained",
        about: "wait for --idle-wait, then issue for --busy-period at most",
        options: &["--idle-wait", "--busy-period"],
        build: |p, setting| {
            let busy_period = p.needed(p.given.busy_period, "--busy-period")?;
            let pair = Some(Pair { idle_wait: p.idle_wait()?, busy_period, probability: 1.0, work: 0.0 });
            let choice = Choice { after_short: pair, after_long: pair };
            let size = p.size_or_smallest()?;
            Ok(Box::new(Restrained::fixed(choice, size, setting.service_of(size))))
        },
    },
    Entry {
        name: "monitoring",
        about: "the same, both chosen for --relative-delay from the idle times seen so far",
        options: &["--relative-delay"],
        build: |p, setting| Ok(Box::new(p.monitoring(setting, Part::Any)?)),
    },
    Entry {
        name: "body",
        about: "the same, of the body of the idle times: a short wait, a little work in most intervals",
        options: &["--relative-delay"],
        build: |p, setting| Ok(Box::new(p.monitoring(setting, Part::Body)?)),
    },
    Entry {
        name: "tail",
        about: "the same, of their tail: a long wait, work to the end of the few long intervals",
        options: &["--relative-delay"],
        build: |p, setting| Ok(Box::new(p.monitoring(setting, Part::Tail)?)),
    },
    Entry {
        name: "tail-bursty",
        about: "the same, with a shorter wait after a long interval",
        options: &["--relative-delay"],
        build: |p, setting| Ok(Box::new(p.monitoring(setting, Part::TailBursty)?)),
    },
    Entry {
        name: "adaptive",
        about: "waiting, tuned again and again for --mean-slowdown and --max-slowdown, and held within it",
        options: &["--mean-slowdown", "--max-slowdown"],
        build: |p, setting| {
            let target = p.needed(p.given.mean_slowdown, "--mean-slowdown")?;
            let longest = p.needed(p.given.max_slowdown, "--max-slowdown")?;
            Ok(Box::new(Budget::new(Adaptive::new(target, longest, setting.model), target)))
        },
    },
    Entry {
        name: "cfq-idle",
        about: "the idle class of Linux' CFQ: waiting with 10 ms and, unless given, 64KiB",
        options: &[],
        build: |p, _| Ok(Box::new(Waiting { idle_wait: Nanos::from_millis(10), request_size: p.size_or_smallest()? })),
    },
    Entry {
        name: "back-to-back",
        about: "issue whenever the disk is idle, 64KiB unless given",
        options: &[],
        build: |p, _| Ok(Box::new(Waiting { idle_wait: Nanos::ZERO, request_size: p.size_or_smallest()? })),
    },
    Entry {
        name: "fixed-delay",
        about: "issue one request --delay after the last one, 64KiB unless given",
        options: &["--delay"],
        build: |p, _| Ok(Box::new(FixedDelay::new(p.needed(p.given.delay, "--delay")?, p.size_or_smallest()?))),
    },
];

/// Builds the policy called `name`.
///
/// # Errors
/// [`ParameterError`] names the missing parameter, or the policies there are.
pub fn build(name: &str, parameters: &Parameters, setting: &Setting) -> Result<Box<dyn Policy>, ParameterError> {
    let Some(entry) = POLICIES.iter().find(|entry| entry.name == name) else {
        let known = POLICIES.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
        return Err(ParameterError::Unknown { name: name.into(), known });
    };
    for (option, given) in parameters.options() {
        if given && !entry.options.contains(&option) {
            return Err(ParameterError::Unused { policy: entry.name, option });
        }
    }
    let policy = (entry.build)(&Asked { policy: entry.name, given: parameters }, setting)?;
    Ok(match parameters.budget {
        Some(target) => Box::new(Budget::new(policy, target)),
        None => policy,
    })
}

/// Parameters, and the policy that asks for them.
struct Asked<'a> {
    policy: &'static str,
    given: &'a Parameters,
}

impl Asked<'_> {
    fn needed<T>(&self, value: Option<T>, option: &'static str) -> Result<T, ParameterError> {
        value.ok_or(ParameterError::Missing { policy: self.policy, option })
    }

    fn idle_wait(&self) -> Result<Nanos, ParameterError> {
        self.needed(self.given.idle_wait, "--idle-wait")
    }

    fn size(&self) -> Result<Bytes, ParameterError> {
        nonzero(self.needed(self.given.request_size, "--request-size")?)
    }

    fn size_or_smallest(&self) -> Result<Bytes, ParameterError> {
        nonzero(self.given.request_size.unwrap_or(SMALLEST_REQUEST))
    }

    fn growth(&self) -> Result<f64, ParameterError> {
        let growth = self.needed(self.given.growth, "--growth")?;
        let range = ParameterError::Range { option: "--growth", expected: "a factor from 1 to 1000" };
        if (1.0..=1e3).contains(&growth) { Ok(growth) } else { Err(range) }
    }

    fn growing(&self, growth: Growth) -> Result<Growing, ParameterError> {
        let largest = nonzero(self.given.largest_size.unwrap_or(LARGEST_REQUEST))?;
        Ok(Growing::new(self.idle_wait()?, self.size_or_smallest()?, largest, growth))
    }

    /// Chooses its waits while it runs; the response time without background work is the past's.
    fn monitoring(&self, setting: &Setting, part: Part) -> Result<Restrained, ParameterError> {
        let relative_delay = self.needed(self.given.relative_delay, "--relative-delay")?;
        if !(relative_delay > 0.0 && relative_delay <= 100.0) {
            return Err(ParameterError::Range {
                option: "--relative-delay",
                expected: "a share of the response time, such as 0.07",
            });
        }
        let size = self.size_or_smallest()?;
        let foreground_response = setting.past.mean_response();
        let target = Target { relative_delay, foreground_response, amount: setting.amount, part };
        Ok(Restrained::monitoring(target, size, setting.service_of(size)))
    }

    /// A model fitted to the past; where there is too little of it, the mean predicts.
    fn predicting(&self, past: &Idleness, idle_wait: Nanos) -> Result<Predicting, ParameterError> {
        let series: Vec<f64> = past.intervals.iter().map(|interval| interval.length.as_secs_f64()).collect();
        let mean = series.iter().sum::<f64>() / series.len().max(1) as f64;
        let constant = AutoRegression { mean, coefficients: Vec::new(), variance: 0.0, series_variance: 0.0 };
        let model = AutoRegression::fit(&series).unwrap_or(constant);
        let threshold = self.needed(self.given.threshold, "--threshold")?;
        Ok(Predicting::new(model, threshold, idle_wait, self.size_or_smallest()?))
    }

    /// The length that the longest intervals of the past exceed, and no others.
    fn shortest_of_longest(&self, past: &Idleness) -> Result<Nanos, ParameterError> {
        let share = self.needed(self.given.longest, "--longest")?;
        if !(0.0..=1.0).contains(&share) {
            return Err(ParameterError::Range { option: "--longest", expected: "a share from 0 to 1" });
        }
        let mut lengths: Vec<Nanos> = past.intervals.iter().map(|interval| interval.length).collect();
        let count = (share * lengths.len() as f64).round() as usize;
        if count >= lengths.len() {
            return Ok(Nanos::ZERO);
        }
        let index = lengths.len() - count - 1;
        Ok(*lengths.select_nth_unstable(index).1)
    }
}

fn nonzero(size: Bytes) -> Result<Bytes, ParameterError> {
    if size < Bytes(512) { Err(ParameterError::ZeroSize) } else { Ok(size) }
}

#[cfg(test)]
mod tests {
    use super::super::Decision;
    use super::*;
    use crate::disk::DiskModel;
    use crate::idle::Interval;

    fn past() -> Idleness {
        let interval = |ms| Interval { length: Nanos::from_millis(ms), followers: 1, busy_before: Nanos(1) };
        Idleness { intervals: (1..=100).map(|k| interval(k * k % 37 + 1)).collect(), ..Idleness::default() }
    }

    fn built(name: &str, parameters: &Parameters) -> Result<Box<dyn Policy>, ParameterError> {
        build(name, parameters, &Setting::scrub(&past(), &DiskModel::ultrastar_15k450()))
    }

    #[test]
    fn every_policy_builds_and_moves_on() {
        for entry in POLICIES {
            let takes = |option: &str| entry.options.contains(&option);
            let parameters = Parameters {
                request_size: Some(Bytes::from_kib(512)),
                idle_wait: takes("--idle-wait").then_some(Nanos::from_millis(100)),
                delay: takes("--delay").then_some(Nanos::from_millis(16)),
                threshold: takes("--threshold").then_some(Nanos::from_millis(10)),
                longest: takes("--longest").then_some(0.1),
                growth: takes("--growth").then_some(1.5),
                increment: takes("--increment").then_some(Bytes(4096)),
                swap_at: takes("--swap-at").then_some(Nanos::from_secs(1)),
                largest_size: takes("--largest-size").then_some(Bytes::from_kib(4096)),
                busy_period: takes("--busy-period").then_some(Nanos::from_secs(1)),
                relative_delay: takes("--relative-delay").then_some(0.07),
                mean_slowdown: takes("--mean-slowdown").then_some(Nanos::from_millis(1)),
                max_slowdown: takes("--max-slowdown").then_some(Nanos::from_millis(50)),
                budget: Some(Nanos::from_millis(1)),
            };
            let mut policy = built(entry.name, &parameters).unwrap();
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
        let error = |name: &str, parameters| built(name, &parameters).err().unwrap().to_string();
        assert_eq!(error("waiting", Parameters::default()), "policy 'waiting' needs --idle-wait");
        let unused = Parameters { idle_wait: Some(Nanos(1)), ..Parameters::default() };
        assert_eq!(error("cfq-idle", unused), "policy 'cfq-idle' takes no --idle-wait");
        assert!(error("wait", Parameters::default()).contains("waiting, ar"));
        let zero = Parameters { request_size: Some(Bytes(0)), ..Parameters::default() };
        assert!(error("back-to-back", zero).contains("at least 512B"));
        let share = Parameters { longest: Some(15.0), ..Parameters::default() };
        assert_eq!(error("oracle", share), "--longest is a share from 0 to 1");
    }

    #[test]
    fn the_oracle_takes_as_many_as_it_is_told() {
        let asked = |longest| {
            let given = Parameters { longest: Some(longest), ..Parameters::default() };
            let threshold = Asked { policy: "oracle", given: &given }.shortest_of_longest(&past()).unwrap();
            past().intervals.iter().filter(|interval| interval.length > threshold).count()
        };
        assert_eq!((asked(0.0), asked(1.0)), (0, 100));
        // Lengths tie: no more than asked for.
        assert!((10..=15).contains(&asked(0.15)));
    }
}
