//! Shaped: at each elapsed idle time the best of waiting and of issuing a request of the best size.

mod fit;

pub use fit::Fit;

use serde::{Deserialize, Serialize};

use super::{Decision, Policy};
use crate::{Bytes, Nanos};

/// What is done from some elapsed idle time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Elapsed idle time.
    pub from: Nanos,
    /// Requests of this size back to back; none for waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// How long one takes.
    pub service: Nanos,
}

/// Steps in order of time; before the first one it waits.
pub type Steps = Vec<Step>;

/// A policy that changes with elapsed idle time, and may differ after long intervals.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shaped {
    /// The length between short and long.
    pub border: Nanos,
    /// What is done after an interval no longer than `border`.
    pub after_short: Steps,
    /// What is done after a longer one.
    pub after_long: Steps,
    #[serde(skip)]
    after_a_long_one: bool,
}

impl Shaped {
    /// The same steps after every interval.
    pub fn new(steps: Steps) -> Self {
        Self { after_short: steps.clone(), after_long: steps, ..Self::default() }
    }

    /// Different steps after intervals up to and above `border`.
    pub fn with_context(after_short: Steps, after_long: Steps, border: Nanos) -> Self {
        Self { after_short, after_long, border, after_a_long_one: false }
    }

    /// Every step, of both contexts.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.after_short.iter().chain(&self.after_long)
    }

    /// The steps of `self` up to an elapsed idle time, and those of `other` from then on.
    pub fn until(&self, at: Nanos, other: &Self) -> Self {
        let joined = |before: &Steps, after: &Steps| {
            let mut steps: Steps = before.iter().copied().filter(|step| step.from < at).collect();
            let now = after.partition_point(|step| step.from <= at).checked_sub(1).map(|now| after[now]);
            steps.extend(now.map(|step| Step { from: at, ..step }));
            steps.extend(after.iter().copied().filter(|step| step.from > at));
            steps.dedup_by_key(|step| step.size);
            steps
        };
        let (short, long) =
            (joined(&self.after_short, &other.after_short), joined(&self.after_long, &other.after_long));
        Self::with_context(short, long, self.border)
    }
}

impl Policy for Shaped {
    fn decide(&mut self, elapsed: Nanos) -> Decision {
        let steps = if self.after_a_long_one { &self.after_long } else { &self.after_short };
        let next = steps.partition_point(|step| step.from <= elapsed);
        if let Some(Step { size: Some(size), service, .. }) = next.checked_sub(1).map(|now| steps[now]) {
            let left = steps.get(next).map(|step| step.from.0 - elapsed.0);
            return Decision::Issue { size, count: left.map_or(u64::MAX, |left| left.div_ceil(service.0.max(1))) };
        }
        let begins = steps[next..].iter().find(|step| step.size.is_some());
        begins.map_or(Decision::Stop, |step| Decision::Wait { until: step.from })
    }

    fn foreground_arrived(&mut self, idle: Nanos, _collision: Nanos) {
        self.after_a_long_one = idle > self.border;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_has_its_size_until_the_next_begins() {
        let step =
            |from, kib: Option<u64>| Step { from: Nanos(from), size: kib.map(Bytes::from_kib), service: Nanos(30) };
        let steps = vec![step(100, Some(64)), step(200, None), step(300, None), step(400, Some(128))];
        let mut policy = Shaped::new(steps);
        let issue = |kib, count| Decision::Issue { size: Bytes::from_kib(kib), count };
        assert_eq!(policy.decide(Nanos(0)), Decision::Wait { until: Nanos(100) });
        assert_eq!(policy.decide(Nanos(100)), issue(64, 4));
        assert_eq!(policy.decide(Nanos(199)), issue(64, 1));
        assert_eq!(policy.decide(Nanos(220)), Decision::Wait { until: Nanos(400) });
        assert_eq!(policy.decide(Nanos(400)), issue(128, u64::MAX));
        assert_eq!(Shaped::default().decide(Nanos(1)), Decision::Stop);
        let other = Shaped::new(vec![step(0, None), step(50, Some(256)), step(500, Some(512))]);
        let joined = policy.until(Nanos(250), &other).after_short;
        assert_eq!(joined, [step(100, Some(64)), step(200, None), step(250, Some(256)), step(500, Some(512))]);
        assert_eq!(policy.until(Nanos(0), &other).after_short[1..], other.after_short[1..]);
        let mut policy = Shaped::with_context(vec![step(0, None)], vec![step(0, Some(64))], Nanos(50));
        assert_eq!(policy.decide(Nanos(0)), Decision::Stop);
        policy.foreground_arrived(Nanos(51), Nanos::ZERO);
        assert_eq!(policy.decide(Nanos(0)), issue(64, u64::MAX));
    }
}
