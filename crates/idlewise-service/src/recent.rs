//! What scrubs of a disk have cost in each hour of the last week.

use serde::{Deserialize, Serialize};

use crate::record::Cost;

/// So many hours are remembered.
const WEEK: u64 = 168;

/// The hours in which there were foreground requests, the latest last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Recent(Vec<Hour>);

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Hour {
    /// In hours since 1970.
    hour: u64,
    cost: Cost,
}

impl Recent {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes in what scrubs have cost just now; what is older than a week, or later than now by a clock that was wrong, is forgotten.
    pub fn add(&mut self, unix_s: f64, cost: Cost) {
        let now = hour_of(unix_s);
        self.0.retain(|one| one.hour <= now && now - one.hour < WEEK);
        match self.0.last_mut().filter(|last| last.hour == now) {
            _ if cost == Cost::default() => {}
            Some(last) => last.cost.add(cost),
            None => self.0.push(Hour { hour: now, cost }),
        }
    }

    /// What they have cost in the last so many hours, the present one included.
    pub fn of_the_last(&self, hours: u64, unix_s: f64) -> Cost {
        let now = hour_of(unix_s);
        let mut all = Cost::default();
        let of_them = self.0.iter().filter(|one| one.hour <= now && now - one.hour < hours);
        of_them.for_each(|one| all.add(one.cost));
        all
    }
}

fn hour_of(unix_s: f64) -> u64 {
    (unix_s / 3600.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_day_and_the_last_week() {
        let mut recent = Recent::default();
        let cost = |requests| Cost { requests, slowdown_s: requests as f64 * 1e-3 };
        let at = |hour: u64| hour as f64 * 3600.0 + 1.0;
        for hour in 0..400 {
            // Twice an hour, and not in each.
            let requests = if hour % 3 == 0 { 5 } else { 0 };
            recent.add(at(hour), cost(requests));
            recent.add(at(hour) + 60.0, cost(requests));
        }
        let of = |hours| recent.of_the_last(hours, at(399)).requests;
        assert_eq!((of(1), of(24), of(WEEK), recent.0.len()), (10, 80, 560, 56));
        assert!((recent.of_the_last(24, at(399)).mean_s() - 1e-3).abs() < 1e-12);
        // A clock that is set back.
        recent.add(at(390), cost(7));
        assert_eq!(recent.of_the_last(1, at(390)).requests, 17);
        assert_eq!(recent.of_the_last(WEEK, at(2000)), Cost::default());
    }
}
