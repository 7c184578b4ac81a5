//! When a pass has to be over, when it begins, and how it stands.

use super::Forecast;

/// A pass begins so many times as long before its deadline as it may take.
const AHEAD: f64 = 3.0;
/// And so much of the time between two deadlines at least, and up to so much more.
const LEAST_AHEAD: f64 = 0.25;
const APART: f64 = 0.25;
/// Where more may be spent, a pass is to end by so much of that time before its deadline: what is expected is missed half of the times.
const SPARE: f64 = 0.02;
/// When a pass begins is known so well, in seconds.
const CLOSE: f64 = 600.0;

/// When a disk is to be verified: each pass is over so long after the one before. Times are seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Deadline {
    /// Between the ends of two passes, in seconds.
    pub every_s: f64,
    /// The end of the last whole pass; nothing where there was none.
    pub last: Option<f64>,
    /// Since when the disk is known here.
    pub known_since: f64,
    /// Between 0 and 1, another for each disk: passes of disks that are due together begin that far apart.
    pub spread: f64,
}

/// How a pass stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Standing {
    /// Nothing is known of the disk's hours yet.
    Unknown,
    /// It is expected to end in time.
    InTime,
    /// It is expected to end after its deadline.
    Behind,
    /// The deadline has passed.
    Overdue,
}

impl Deadline {
    /// When the next pass has to be over.
    pub fn at(&self) -> f64 {
        self.last.unwrap_or(self.known_since) + self.every_s
    }

    /// When it begins; `whole` is how long all of it may take. What takes a short time rests before it, what takes long does not. Where
    /// that is not known the first one begins at once, and later ones after half the time.
    pub fn begins(&self, whole: Option<Forecast>) -> f64 {
        let unknown = if self.last.is_some() { 0.5 * self.every_s } else { self.every_s };
        let ahead = whole.map_or(unknown, |forecast| AHEAD * forecast.late_s);
        let least = LEAST_AHEAD + APART * self.spread.clamp(0.0, 1.0);
        self.at() - ahead.clamp(least * self.every_s, self.every_s)
    }

    /// When it begins at the latest where the disk is read only in windows, so that what it takes depends on when that is. `late` tells how
    /// long it may take from a moment on; nothing where that is not known.
    pub fn begins_at_the_latest(&self, late: impl Fn(f64) -> Option<f64>) -> Option<f64> {
        let least = LEAST_AHEAD + APART * self.spread.clamp(0.0, 1.0);
        let (mut sure, mut latest) = (self.at() - self.every_s, self.at() - least * self.every_s);
        let is_in_time = |begin: f64| late(begin).map(|late| begin + late <= self.at());
        if is_in_time(latest)? {
            return Some(latest);
        }
        // Whoever begins later ends later.
        while latest - sure > CLOSE {
            let middle = sure + (latest - sure) / 2.0;
            if is_in_time(middle)? { sure = middle } else { latest = middle }
        }
        Some(sure)
    }

    /// How it stands at a moment, with what is expected of the rest of it.
    pub fn standing(&self, now: f64, rest: Option<Forecast>) -> Standing {
        let left = self.at() - now;
        if left <= 0.0 {
            return Standing::Overdue;
        }
        match rest {
            None => Standing::Unknown,
            Some(rest) if rest.expected_s <= left => Standing::InTime,
            Some(_) => Standing::Behind,
        }
    }

    /// The mean slowdown that may be spent: the goal's times the square of how many times as much would have to be verified to end a little
    /// before the deadline, up to `most`; all of that when it is overdue. What is verified grows more slowly than what it costs: with
    /// the lack alone, played disks were later (docs/deadlines.md).
    pub fn spend(&self, now: f64, rest: Option<Forecast>, goal: f64, most: f64) -> f64 {
        let most = most.max(goal);
        let left = self.at() - now;
        let aim = (left - SPARE * self.every_s).max(left / 2.0);
        match (self.standing(now, rest), rest) {
            (Standing::Unknown, _) | (_, None) => goal,
            (Standing::Overdue, _) => most,
            (_, Some(rest)) => (goal * (rest.expected_s / aim).powi(2)).clamp(goal, most),
        }
    }

    /// The share of the time between two deadlines by which the end is expected to be late; below zero where it is in time.
    pub fn late_by(&self, now: f64, rest: Forecast) -> f64 {
        (now + rest.expected_s - self.at()) / self.every_s
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DAY: f64 = 86_400.0;

    fn takes(seconds: f64) -> Option<Forecast> {
        Some(Forecast { expected_s: seconds, early_s: seconds, late_s: seconds })
    }

    #[test]
    fn a_pass_begins_early_enough() {
        let deadline = Deadline { every_s: 14.0 * DAY, last: Some(100.0 * DAY), known_since: 0.0, spread: 0.3 };
        assert_eq!(deadline.at(), 114.0 * DAY);
        // Short ones a quarter before, or up to a half; longer ones three times as long as they take; the longest at once.
        assert_eq!(Deadline { spread: 0.0, ..deadline }.begins(takes(DAY)), 110.5 * DAY);
        assert_eq!(Deadline { spread: 1.0, ..deadline }.begins(takes(DAY)), 107.0 * DAY);
        assert_eq!(deadline.begins(takes(2.0 * DAY)), 108.0 * DAY);
        assert_eq!(deadline.begins(takes(10.0 * DAY)), 100.0 * DAY);
        assert_eq!(deadline.begins(takes(f64::INFINITY)), 100.0 * DAY);
        assert_eq!(deadline.begins(None), 107.0 * DAY);
        let first = Deadline { last: None, known_since: 100.0 * DAY, ..deadline };
        assert_eq!((first.at() / DAY, first.begins(None) / DAY), (114.0, 100.0));
    }

    #[test]
    fn what_is_spent_is_what_it_lacks() {
        let deadline = Deadline { every_s: 10.0 * DAY, last: Some(0.0), known_since: 0.0, spread: 0.0 };
        let at = |day: f64, takes_days: f64| deadline.standing(day * DAY, takes(takes_days * DAY));
        assert_eq!(at(4.0, 6.0), Standing::InTime);
        assert_eq!((at(4.0, 12.0), at(10.0, 0.1)), (Standing::Behind, Standing::Overdue));
        assert_eq!(deadline.standing(4.0 * DAY, None), Standing::Unknown);
        let spent = |day: f64, takes_days: f64| deadline.spend(day * DAY, takes(takes_days * DAY), 1.0, 3.0);
        // 5.8 days are left until a fifth of a day before the deadline.
        let all = [spent(4.0, 5.8), spent(4.0, 8.7), spent(4.0, 60.0), spent(11.0, 1.0)];
        assert_eq!(all.map(|mean| (mean * 1e9).round() / 1e9), [1.0, 2.25, 3.0, 3.0]);
        assert_eq!((spent(9.9, 0.04), deadline.spend(4.0 * DAY, None, 1.0, 3.0)), (1.0, 1.0));
        assert_eq!(deadline.spend(4.0 * DAY, takes(12.0 * DAY), 2.0, 1.0), 2.0, "never less than the goal");
        assert_eq!(deadline.late_by(4.0 * DAY, takes(8.0 * DAY).unwrap()), 0.2);
    }

    proptest! {
        /// Whatever the clock shows: a pass is never begun before the one before has ended, nor later than a quarter before it is due.
        #[test]
        fn it_begins_between(every in 1.0..1e8f64, last in -1e10..1e10f64, long in 0.0..1e9f64, spread in -1.0..2.0f64) {
            let deadline = Deadline { every_s: every, last: Some(last), known_since: 0.0, spread };
            let begins = deadline.begins(takes(long));
            prop_assert!(begins >= last - 1e-3 && begins <= deadline.at() - 0.25 * every + 1e-3);
            let first = Deadline { last: None, ..deadline };
            prop_assert_eq!(first.at(), every);
        }
    }
}
