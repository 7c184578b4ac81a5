//! What a scrubber did to a foreground in several runs, and how sure that is.

use idlewise::{Nanos, Rate};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::foreground::Played;

/// One run.
pub struct Run {
    /// The foreground.
    pub played: Played,
    /// Bytes read by the scrubber meanwhile.
    pub scrubbed: u64,
}

/// All runs of one scrubber beside one foreground.
pub struct Outcome {
    /// The runs; those of the same number have the same foreground, whatever the scrubber.
    pub runs: Vec<Run>,
    /// What idlewise said of itself.
    pub said: Option<Value>,
}

/// A mean and its standard error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mean {
    /// The mean.
    pub value: f64,
    /// Its standard error, if the values do not depend on each other.
    pub error: f64,
}

impl Mean {
    /// Of some values.
    pub fn of(values: impl Iterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.collect();
        let count = values.len() as f64;
        let value = values.iter().sum::<f64>() / count.max(1.0);
        let squares: f64 = values.iter().map(|x| (x - value).powi(2)).sum();
        Self { value, error: (squares / (count - 1.0).max(1.0) / count.max(1.0)).sqrt() }
    }

    /// Of seconds, in milliseconds; of one run without an error.
    pub fn of_runs(self, count: u64) -> String {
        if count > 1 { self.milliseconds() } else { format!("{:.2} ms", self.value * 1e3) }
    }

    /// Of seconds, in milliseconds: `5.31 ± 0.20 ms`.
    pub fn milliseconds(self) -> String {
        format!("{:.2} ± {:.2} ms", self.value * 1e3, self.error * 1e3)
    }
}

impl Outcome {
    /// Every response time in seconds.
    pub fn responses(&self) -> impl Iterator<Item = f64> + '_ {
        self.runs.iter().flat_map(|run| run.played.responses.iter().copied())
    }

    fn means(&self) -> impl Iterator<Item = f64> + '_ {
        self.runs.iter().map(|run| Mean::of(run.played.responses.iter().copied()).value)
    }

    /// Mean response time in seconds; its error is that between the runs, each of which has places of its own.
    pub fn response(&self) -> Mean {
        Mean::of(self.means())
    }

    /// How much longer the same requests took here than there, in seconds; the error is that between the requests.
    pub fn longer_than(&self, other: &Self) -> Mean {
        Mean::of(self.responses().zip(other.responses()).map(|(ours, theirs)| ours - theirs))
    }

    /// The same, but the error is that between the runs, where requests wait for each other.
    pub fn runs_longer_than(&self, other: &Self) -> Mean {
        Mean::of(self.means().zip(other.means()).map(|(ours, theirs)| ours - theirs))
    }

    /// The least and the greatest mean response time of a run, in milliseconds.
    pub fn by_run(&self) -> String {
        let (low, high) =
            self.means().fold((f64::INFINITY, 0.0), |(l, h): (f64, f64), mean| (l.min(mean), h.max(mean)));
        format!("{:.2} to {:.2}", low * 1e3, high * 1e3)
    }

    /// The response time that this share of the requests kept.
    pub fn percentile(&self, share: f64) -> Nanos {
        let mut sorted: Vec<f64> = self.responses().collect();
        sorted.sort_by(f64::total_cmp);
        let rank = ((sorted.len() as f64 * share).ceil() as usize).max(1) - 1;
        Nanos(sorted.get(rank).map_or(0, |value| (value * 1e9) as u64))
    }

    fn rate(&self, bytes: impl Fn(&Run) -> u64) -> Rate {
        let elapsed: f64 = self.runs.iter().map(|run| run.played.elapsed).sum();
        Rate((self.runs.iter().map(bytes).sum::<u64>() as f64 / elapsed.max(1e-9)) as u64)
    }

    /// What the foreground moved in a second.
    pub fn foreground(&self) -> Rate {
        self.rate(|run| run.played.bytes)
    }

    /// What the scrubber read in a second.
    pub fn scrub(&self) -> Rate {
        self.rate(|run| run.scrubbed)
    }

    /// What idlewise chose, and the mean slowdown that it measured itself.
    pub fn chosen(&self) -> Option<String> {
        let said = self.said.as_ref()?;
        let time = |value: &Value| Some(Nanos((value.as_f64()? * 1e9) as u64));
        let size = idlewise::Bytes(said["request_size_bytes"].as_u64()?);
        let wait = time(&said["idle_wait_s"])?;
        let slowdown = time(&said["measured"]["mean_slowdown_s"])?;
        Some(format!("requests of {size} once idle for {wait}; mean slowdown by its own measurement {slowdown}"))
    }
}

/// Differences are averaged over so many stretches of requests: those of a stretch wait for each other.
const STRETCHES: usize = 20;

/// How much longer the same requests took, in seconds, than in two plays without what was done to them. The error is that between stretches
/// of equally many requests, and that between plays: what two of them differ, on average, is the root of two times what one play is off, and
/// one is compared with the mean of two.
pub fn longer_by(with: &[f64], without: [&[f64]; 2]) -> Mean {
    let pairs = without[0].iter().zip(without[1]);
    let (usual, differ): (Vec<_>, Vec<_>) = pairs.map(|(a, b)| ((a + b) / 2.0, a - b)).unzip();
    let longer: Vec<f64> = with.iter().zip(&usual).map(|(with, without)| with - without).collect();
    let plays = Mean::of(differ.into_iter()).value * 0.75f64.sqrt();
    let length = (longer.len() / STRETCHES).max(1);
    let mean = Mean::of(longer.iter().copied()).value;
    let stretches = longer.chunks_exact(length).map(|stretch| Mean::of(stretch.iter().copied()).value);
    Mean { value: mean, error: Mean::of(stretches).error.hypot(plays) }
}

/// A rate with the digits that a slow foreground needs.
pub fn megabytes(rate: Rate) -> String {
    format!("{:.3}", rate.0 as f64 / 1e6)
}

/// A rate beside another one: `-3.2 %`.
pub fn against(rate: Rate, other: Rate) -> String {
    format!("{:+.1} %", (rate.0 as f64 / other.0.max(1) as f64 - 1.0) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(runs: [&[f64]; 2]) -> Outcome {
        let run = |responses: &[f64]| {
            let played = Played { responses: responses.to_vec(), elapsed: 2.0, bytes: 1_000_000, read: 1_000_000 };
            Run { played, scrubbed: 4_000_000 }
        };
        Outcome { runs: runs.map(run).into(), said: None }
    }

    #[test]
    fn means_errors_and_rates_by_hand() {
        let (ours, theirs) = (outcome([&[0.002, 0.004], &[0.006, 0.008]]), outcome([&[0.001, 0.003], &[0.005, 0.007]]));
        let mean = ours.response();
        assert!((mean.value - 0.005).abs() < 1e-12 && (mean.error - 0.002).abs() < 1e-12);
        let longer = ours.longer_than(&theirs);
        assert!((longer.value - 0.001).abs() < 1e-12 && longer.error < 1e-12);
        assert!((ours.runs_longer_than(&theirs).value - 0.001).abs() < 1e-12);
        assert_eq!((ours.foreground(), ours.scrub()), (Rate(500_000), Rate(2_000_000)));
        assert_eq!(ours.by_run(), "3.00 to 7.00");
        assert_eq!((ours.percentile(0.5), ours.percentile(1.0)), (Nanos(4_000_000), Nanos(8_000_000)));
    }
}
