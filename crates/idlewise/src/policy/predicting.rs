//! AR(p), and AR + Waiting: use an interval if autoregression predicts that it will be long (DSN 2012, section V-B).

use std::collections::VecDeque;

use super::{Decision, Entry, Given, IDLE_WAIT, Kind, Parameter, ParameterError, Policy, Tried};
use crate::idle::AutoRegression;
use crate::{Bytes, Nanos};

/// Predicts the length of an interval when it begins, from those before it. If the prediction reaches `threshold`, which with a
/// threshold of zero each does, requests are issued back to back once the device has been idle for `idle_wait`, which is zero for AR alone.
#[derive(Clone, Debug)]
pub struct Predicting {
    /// Fitted to the lengths of idle intervals in seconds.
    model: AutoRegression,
    threshold: Nanos,
    idle_wait: Nanos,
    request_size: Bytes,
    /// The last lengths in seconds, as many as the model has coefficients.
    past: VecDeque<f64>,
    promising: bool,
}

impl Predicting {
    /// A policy that knows no interval yet: the model's mean stands for each.
    pub fn new(model: AutoRegression, threshold: Nanos, idle_wait: Nanos, request_size: Bytes) -> Self {
        Self { model, threshold, idle_wait, request_size, past: VecDeque::new(), promising: false }
    }
}

impl Policy for Predicting {
    fn idle_began(&mut self, _busy: Nanos, _at: Nanos) {
        let predicted = self.model.predict(self.past.make_contiguous());
        self.promising = predicted.max(0.0) >= self.threshold.as_secs_f64();
    }

    fn decide(&mut self, elapsed: Nanos) -> Decision {
        match self.promising {
            false => Decision::Stop,
            true if elapsed < self.idle_wait => Decision::Wait { until: self.idle_wait },
            true => Decision::Issue { size: self.request_size, count: u64::MAX },
        }
    }

    fn foreground_arrived(&mut self, idle: Nanos, _collision: Nanos) {
        self.past.push_back(idle.as_secs_f64());
        if self.past.len() > self.model.coefficients.len() {
            self.past.pop_front();
        }
    }
}

/// Predicted length (threshold c) that an interval must exceed.
pub const THRESHOLD: Parameter = Parameter {
    name: "threshold",
    about: "Predicted length that an interval must exceed",
    kind: Kind::Time,
    tried: Tried::Predictions,
};

pub(super) const AR: Entry = Entry {
    name: "ar",
    about: "issue in intervals that autoregression predicts to exceed --threshold",
    parameters: &[THRESHOLD],
    build: |given| Ok(Box::new(fitted(given, Nanos::ZERO)?)),
};

pub(super) const AR_WAITING: Entry = Entry {
    name: "ar-waiting",
    about: "both: predicted to exceed --threshold, and idle for --idle-wait",
    parameters: &[THRESHOLD, IDLE_WAIT],
    build: |given| Ok(Box::new(fitted(given, given.time(IDLE_WAIT)?)?)),
};

/// With a model fitted to the past; where there is too little of it, the mean predicts.
fn fitted(given: &Given, idle_wait: Nanos) -> Result<Predicting, ParameterError> {
    let series: Vec<f64> = given.setting.past.intervals.iter().map(|interval| interval.length.as_secs_f64()).collect();
    let mean = series.iter().sum::<f64>() / series.len().max(1) as f64;
    let constant = AutoRegression { mean, coefficients: Vec::new(), variance: 0.0, series_variance: 0.0 };
    let model = AutoRegression::fit(&series).unwrap_or(constant);
    Ok(Predicting::new(model, given.time(THRESHOLD)?, idle_wait, given.size_or_smallest()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_long_promises_to_be_long_again() {
        let model = AutoRegression { mean: 1.0, coefficients: vec![0.5], variance: 1.0, series_variance: 2.0 };
        let size = Bytes(65_536);
        let mut policy = Predicting::new(model, Nanos::from_secs(2), Nanos::from_millis(5), size);
        policy.idle_began(Nanos(1), Nanos::ZERO);
        assert_eq!(policy.decide(Nanos::ZERO), Decision::Stop);
        // 1 + 0.5 (4 - 1) = 2.5 s, above the threshold of 2 s.
        policy.foreground_arrived(Nanos::from_secs(4), Nanos::ZERO);
        policy.idle_began(Nanos(1), Nanos::ZERO);
        assert_eq!(policy.decide(Nanos::ZERO), Decision::Wait { until: Nanos::from_millis(5) });
        assert_eq!(policy.decide(Nanos::from_millis(5)), Decision::Issue { size, count: u64::MAX });
        policy.foreground_arrived(Nanos::from_secs(1), Nanos::ZERO);
        policy.idle_began(Nanos(1), Nanos::ZERO);
        assert_eq!(policy.decide(Nanos::ZERO), Decision::Stop);
    }
}
