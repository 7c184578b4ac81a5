//! What was verified, against what each tuning had predicted for as long as it held: the last prediction says nothing of the time before.

use idlewise::{Bytes, Nanos, Rate};

/// What was predicted so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Forecast {
    /// When the first prediction was made, and what had been verified then.
    first: Option<(Nanos, u64)>,
    /// The rate of the present one, and since when it holds.
    present: (Rate, Nanos),
    /// Bytes that those before it predicted.
    before: f64,
}

/// The same for whoever reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foretold {
    /// How long there were predictions.
    pub time: Nanos,
    /// What they add up to.
    pub predicted: Bytes,
    /// What was verified in that time.
    pub verified: Bytes,
}

impl Forecast {
    /// From now on this is predicted; so much has been verified.
    pub fn turn_to(&mut self, rate: Rate, now: Nanos, verified: Bytes) {
        self.first.get_or_insert((now, verified.0));
        if self.present.0 != rate {
            self.before = self.predicted(now);
            self.present = (rate, now);
        }
    }

    /// What it has come to, if anything was predicted.
    pub fn so_far(&self, now: Nanos, verified: Bytes) -> Option<Foretold> {
        let (since, then) = self.first?;
        let predicted = Bytes(self.predicted(now).round() as u64);
        Some(Foretold { time: now.since(since), predicted, verified: Bytes(verified.0.saturating_sub(then)) })
    }

    fn predicted(&self, now: Nanos) -> f64 {
        let (rate, since) = self.present;
        self.before + rate.0 as f64 * now.since(since).as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_prediction_counts_while_it_holds() {
        let mut forecast = Forecast::default();
        assert_eq!(forecast.so_far(Nanos::from_secs(1), Bytes(5)), None);
        for (second, rate, verified) in [(10, 100, 7), (15, 100, 300), (20, 30, 900)] {
            forecast.turn_to(Rate(rate), Nanos::from_secs(second), Bytes(verified));
        }
        let expected = Foretold { time: Nanos::from_secs(14), predicted: Bytes(1_000 + 120), verified: Bytes(1_000) };
        assert_eq!(forecast.so_far(Nanos::from_secs(24), Bytes(1_007)), Some(expected));
    }
}
