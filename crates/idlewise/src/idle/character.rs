//! Body, tail or tail and bursty: which part of the idle times background work should use (DSN 2008, section 4).

use serde::Serialize;

use super::Idleness;
use crate::TotalTime;

/// Up to this coefficient of variation intervals are of similar lengths; 1 is exponential, and the papers' T1 has 0.98.
const VARIES: f64 = 1.2;
/// Intervals below which none is told: of so many exponential lengths the coefficient has a standard error of 0.1, and twice that
/// is what lies between similar lengths and others.
const FEWEST: usize = 100;
/// Bursty from this on, if chance does not explain it.
const BURSTY: f64 = 0.1;
/// How many standard deviations chance explains.
const CHANCE: f64 = 2.58;

/// The part of the idle times to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Character {
    /// Lengths are similar: wait briefly, and do a little in most intervals.
    Body,
    /// Lengths vary: wait long, and do much in the few long intervals.
    Tail,
    /// And long intervals follow each other: after a long one expect another.
    TailBursty,
}

/// The verdict and its reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The part of the idle times to use.
    pub character: Character,
    /// Why.
    pub reason: String,
}

/// How much likelier an interval longer than the mean is after another such one: (P(long | long) - P(long)) /
/// (1 - P(long)), which is the autocorrelation at lag 1 of being long. 0 if intervals are independent, 1 if all long ones
/// come together. `None` if fewer than two are long or short.
pub fn burstiness(disk: &Idleness) -> Option<f64> {
    let count = disk.intervals.len() as u64;
    let total: TotalTime = disk.intervals.iter().map(|interval| interval.length).sum();
    let long: Vec<bool> = disk.intervals.iter().map(|i| i.length * count > total).collect();
    let longs = long.iter().filter(|&&long| long).count();
    if longs < 2 || long.len() - longs < 2 {
        return None;
    }
    let after = long[..long.len() - 1].iter().filter(|&&long| long).count();
    let pairs = long.windows(2).filter(|pair| pair[0] && pair[1]).count();
    let share = longs as f64 / long.len() as f64;
    Some((pairs as f64 / after as f64 - share) / (1.0 - share))
}

impl Verdict {
    /// Classifies idle times by their coefficient of variation and their burstiness; `None` for fewer than a hundred.
    pub fn of(cov: f64, burstiness: Option<f64>, intervals: usize) -> Option<Self> {
        if intervals < FEWEST {
            return None;
        }
        let chance = CHANCE / (intervals.max(1) as f64).sqrt();
        let bursty = burstiness.filter(|&burstiness| burstiness >= BURSTY && burstiness > chance);
        let (character, reason) = match (cov > VARIES.max(1.0 + chance), bursty) {
            (false, _) => (
                Character::Body,
                format!("a coefficient of variation of {cov:.2} is no more than about 1: lengths are similar"),
            ),
            (true, None) => (
                Character::Tail,
                format!(
                    "a coefficient of variation of {cov:.2}: most of the idle time is in few long intervals, which come singly"
                ),
            ),
            (true, Some(burstiness)) => (
                Character::TailBursty,
                format!(
                    "a coefficient of variation of {cov:.2}, and after a long interval another is likelier (burstiness \
                     {burstiness:.2})"
                ),
            ),
        };
        Some(Self { character, reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Nanos;
    use crate::idle::Interval;

    fn disk(lengths: impl Iterator<Item = u64>) -> Idleness {
        let interval = |ms| Interval { length: Nanos::from_millis(ms), ..Interval::default() };
        Idleness { intervals: lengths.map(interval).collect(), ..Idleness::default() }
    }

    #[test]
    fn burstiness_is_the_correlation_of_being_long() {
        let together = burstiness(&disk((0..1_000).map(|k| if k / 100 % 5 == 0 { 100 } else { 1 }))).unwrap();
        assert!((together - (0.99 - 0.2) / 0.8).abs() < 0.01, "{together}");
        let apart = burstiness(&disk((0..1_000).map(|k| if k % 5 == 0 { 100 } else { 1 }))).unwrap();
        assert!((apart + 0.25).abs() < 0.01, "{apart}");
        assert_eq!(burstiness(&disk((0..10).map(|_| 7))), None);
    }

    #[test]
    fn the_papers_traces_are_what_the_papers_say() {
        let character = |cov, burstiness| Verdict::of(cov, Some(burstiness), 100_000).unwrap().character;
        assert_eq!(character(0.98, 0.4), Character::Body);
        assert_eq!(character(6.41, 0.0), Character::Tail);
        assert_eq!(character(3.79, 0.4), Character::TailBursty);
        assert_eq!(Verdict::of(1.24, None, 100).unwrap().character, Character::Body);
        assert_eq!(Verdict::of(9.0, None, 99), None);
    }
}
