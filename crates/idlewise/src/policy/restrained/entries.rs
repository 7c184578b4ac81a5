//! The policies of the table that work from I until I + T.

use super::{Choice, Pair, Part, Restrained, Target};
use crate::Nanos;
use crate::policy::{Entry, Given, IDLE_WAIT, Kind, Parameter, ParameterError, Policy, Tried};

/// Background busy period T.
pub const BUSY_PERIOD: Parameter = Parameter {
    name: "busy-period",
    about: "Longest time that background work runs in one idle interval, such as 40ms",
    kind: Kind::Time,
    tried: Tried::IdleWaits(&[2, 8, 32]),
};

/// Relative delay D of the foreground, as a share of its response time.
pub const RELATIVE_DELAY: Parameter = Parameter {
    name: "relative-delay",
    about: "Relative delay of the foreground, such as 0.07: added over original response time",
    kind: Kind::Number {
        unit: "SHARE",
        least: f64::MIN_POSITIVE,
        most: 100.0,
        expected: "a share of the response time, such as 0.07",
    },
    tried: Tried::Ratios { from: 1e-4, to: 10.0, steps: 12 },
};

pub(in crate::policy) const RESTRAINED: Entry = Entry {
    name: "restrained",
    about: "wait for --idle-wait, then issue for --busy-period at most",
    parameters: &[IDLE_WAIT, BUSY_PERIOD],
    build: |given| {
        let (idle_wait, busy_period) = (given.time(IDLE_WAIT)?, given.time(BUSY_PERIOD)?);
        let pair = Some(Pair { idle_wait, busy_period, probability: 1.0, work: 0.0 });
        let choice = Choice { after_short: pair, after_long: pair };
        let size = given.size_or_smallest();
        Ok(Box::new(Restrained::fixed(choice, size, given.setting.service_of(size))))
    },
};

pub(in crate::policy) const MONITORING: Entry = Entry {
    name: "monitoring",
    about: "the same, both chosen for --relative-delay from the idle times seen so far",
    parameters: &[RELATIVE_DELAY],
    build: |given| monitoring(given, Part::Any),
};

pub(in crate::policy) const BODY: Entry = Entry {
    name: "body",
    about: "the same, of the body of the idle times: a short wait, a little work in most intervals",
    parameters: &[RELATIVE_DELAY],
    build: |given| monitoring(given, Part::Body),
};

pub(in crate::policy) const TAIL: Entry = Entry {
    name: "tail",
    about: "the same, of their tail: a long wait, work to the end of the few long intervals",
    parameters: &[RELATIVE_DELAY],
    build: |given| monitoring(given, Part::Tail),
};

pub(in crate::policy) const TAIL_BURSTY: Entry = Entry {
    name: "tail-bursty",
    about: "the same, with a shorter wait after a long interval",
    parameters: &[RELATIVE_DELAY],
    build: |given| monitoring(given, Part::TailBursty),
};

/// Chooses its waits while it runs; the response time without background work is the past's.
fn monitoring(given: &Given, part: Part) -> Result<Box<dyn Policy>, ParameterError> {
    let relative_delay = given.number(RELATIVE_DELAY)?;
    let (size, setting) = (given.size_or_smallest(), given.setting);
    let foreground_response: Nanos = setting.past.mean_response();
    let target = Target { relative_delay, foreground_response, amount: setting.amount, part };
    Ok(Box::new(Restrained::monitoring(target, size, setting.service_of(size))))
}
