//! The goal of a scrub: as given, or the default for the kind of disk; and the pace that it leads to.

use idlewise::tune::Goal;
use idlewise::{Bytes, Nanos};
use idlewise_linux::device::Kind;
use idlewise_linux::scrub::Progress;

use crate::dates::{date, unix_now};

/// A pass that takes longer is reported: checks of arrays are run once a month.
const MONTH: Nanos = Nanos::from_secs(35 * 86_400);
/// A pace is known after so long.
const KNOWN: Nanos = Nanos::from_secs(600);

/// What was asked for on the command line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    pub mean_slowdown: Option<Nanos>,
    pub p99_slowdown: Option<Nanos>,
    pub max_slowdown: Option<Nanos>,
    /// The pass is to end so long after it began; the mean slowdown is chosen for that.
    pub finish_within: Option<Nanos>,
}

impl Wanted {
    /// Whether any slowdown was given.
    pub fn any(&self) -> bool {
        self.mean_slowdown.or(self.p99_slowdown).or(self.max_slowdown).is_some()
    }

    /// The goal for a kind of disk.
    pub fn goal(&self, kind: Kind) -> Goal {
        let Goal { mean_slowdown, max_slowdown, .. } = kind.goal();
        Goal {
            mean_slowdown: self.mean_slowdown.unwrap_or(mean_slowdown),
            p99_slowdown: self.p99_slowdown,
            max_slowdown: self.max_slowdown.unwrap_or(max_slowdown),
        }
    }

    /// The goal in words, and where it comes from.
    pub fn line(&self, kind: Kind) -> String {
        let default = match (self.mean_slowdown, self.max_slowdown) {
            (Some(_), Some(_)) => String::new(),
            (Some(_), None) => format!(" (the default max for {kind})"),
            (None, Some(_)) => format!(" (the default mean for {kind})"),
            (None, None) if self.p99_slowdown.is_some() => format!(" (the default mean and max for {kind})"),
            (None, None) => format!(" (the default for {kind})"),
        };
        let goal = self.goal(kind);
        let moot = match goal.mean_slowdown {
            Nanos::ZERO => "; a mean of 0 allows no delay: scrubbed once a day at most, after five idle minutes",
            mean if mean > goal.max_slowdown => "; a mean above the max limits nothing",
            _ => "",
        };
        words(&goal) + &default + moot
    }

    /// How long the pass may still take, if that was said.
    pub fn time_left(&self, began_unix_s: u64) -> Option<Nanos> {
        let passed_s = unix_now().saturating_sub(began_unix_s);
        Some(self.finish_within?.since(Nanos(passed_s.saturating_mul(1_000_000_000))))
    }

    /// When the pass is to end, for people.
    pub fn end(&self, began_unix_s: u64) -> Option<String> {
        date(began_unix_s.saturating_add(self.finish_within?.0 / 1_000_000_000))
    }
}

/// A goal in words.
pub fn words(goal: &Goal) -> String {
    let p99 = goal.p99_slowdown.map(|p99| format!("p99 {p99}, ")).unwrap_or_default();
    format!("goal: mean slowdown {}, {p99}max {}", goal.mean_slowdown, goal.max_slowdown)
}

/// Says once that a pass takes very long.
pub struct Pace {
    longest: Nanos,
    told: bool,
}

impl Pace {
    /// Longer than was asked for is too long, or else than a month.
    pub fn new(wanted: &Wanted) -> Self {
        Self { longest: wanted.finish_within.unwrap_or(MONTH), told: false }
    }

    /// What to say of a run, if anything.
    pub fn look(&mut self, progress: &Progress) -> Option<String> {
        if progress.elapsed < KNOWN {
            return None;
        }
        let rate = progress.verified_now.0 as f64 / progress.elapsed.as_secs_f64();
        self.at(rate, progress.size, "at this pace")
    }

    /// What to say of a rate in bytes a second, if anything.
    pub fn at(&mut self, rate: f64, size: Bytes, pace: &str) -> Option<String> {
        let pass_s = size.0 as f64 / rate;
        if self.told || pass_s <= self.longest.as_secs_f64() {
            return None;
        }
        self.told = true;
        let takes = if pass_s.is_finite() { Nanos((pass_s * 1e9) as u64).to_string() } else { "for ever".into() };
        Some(format!("{pace} a pass takes {takes}, longer than {}", self.longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_given_is_the_default_of_the_disk_and_said() {
        let line = |mean: Option<u64>, max: Option<u64>, kind| {
            let (mean_slowdown, max_slowdown) = (mean.map(Nanos::from_millis), max.map(Nanos::from_millis));
            Wanted { mean_slowdown, max_slowdown, ..Wanted::default() }.line(kind)
        };
        let disk = Kind::HardDisk;
        assert_eq!(line(None, None, disk), "goal: mean slowdown 1.00 ms, max 50.0 ms (the default for a hard disk)");
        assert_eq!(
            line(Some(2), None, disk),
            "goal: mean slowdown 2.00 ms, max 50.0 ms (the default max for a hard disk)"
        );
        assert_eq!(
            line(None, Some(9), Kind::Nvme),
            "goal: mean slowdown 10.0 us, max 9.00 ms (the default mean for an NVMe disk)"
        );
        assert_eq!(line(Some(2), Some(9), Kind::Ssd), "goal: mean slowdown 2.00 ms, max 9.00 ms");
        let moot = "goal: mean slowdown 60.0 ms, max 50.0 ms (the default max for a hard disk); a mean above the max limits nothing";
        assert_eq!(line(Some(60), None, disk), moot);
        assert!(
            line(Some(0), None, disk)
                .ends_with("; a mean of 0 allows no delay: scrubbed once a day at most, after five idle minutes")
        );
        let p99 = Wanted { p99_slowdown: Some(Nanos::from_millis(5)), ..Wanted::default() };
        let expected =
            "goal: mean slowdown 1.00 ms, p99 5.00 ms, max 50.0 ms (the default mean and max for a hard disk)";
        assert!(p99.any() && p99.line(disk) == expected, "{}", p99.line(disk));
    }

    #[test]
    fn a_pass_of_months_is_told_once() {
        let run = |elapsed, verified| Progress {
            elapsed: Nanos::from_secs(elapsed),
            verified_now: Bytes(verified),
            size: Bytes(16_000_000_000_000),
            ..Progress::default()
        };
        let mut pace = Pace::new(&Wanted::default());
        assert_eq!(pace.look(&run(599, 0)), None);
        assert_eq!(pace.look(&run(600, 6_000_000_000)), None);
        let expected = "at this pace a pass takes 97.0 d, longer than 35.0 d";
        assert_eq!(pace.look(&run(1_000, 1_910_000_000)).as_deref(), Some(expected));
        assert_eq!(pace.look(&run(1_000, 0)), None);
        let mut pace = Pace::new(&Wanted { finish_within: Some(Nanos::from_secs(86_400)), ..Wanted::default() });
        assert!(pace.at(1e8, Bytes(16_000_000_000_000), "as predicted").is_some_and(|line| line.contains("44.4 h")));
        assert!(Pace::new(&Wanted::default()).at(0.0, Bytes(1), "now").is_some_and(|line| line.contains("for ever")));
    }

    #[test]
    fn the_time_of_a_pass_counts_from_its_beginning() {
        let wanted = Wanted { finish_within: Some(Nanos::from_secs(1_000)), ..Wanted::default() };
        let left = wanted.time_left(unix_now() - 400).unwrap();
        assert!((Nanos::from_secs(598)..=Nanos::from_secs(600)).contains(&left), "{left}");
        assert_eq!(wanted.time_left(1), Some(Nanos::ZERO));
        assert_eq!(Wanted::default().time_left(1), None);
    }
}
