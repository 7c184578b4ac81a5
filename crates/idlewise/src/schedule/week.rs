//! What the hours of a disk's week have given: bytes verified while a pass was wanted.

use serde::{Deserialize, Serialize};

use super::WEEK;

const HOURS: usize = 168;
const HOUR_S: f64 = 3600.0;
/// What an hour gave counts half as much after so many weeks.
const HALF_LIFE_WEEKS: f64 = 4.0;
/// So much of an hour tells of it.
const ENOUGH_S: f64 = 60.0;

/// What was seen of an hour of the week, the latest counting most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hour {
    /// How many such hours, by their weights.
    pub weight: f64,
    /// Bytes in a second of an hour in which a pass was wanted.
    pub rate: f64,
    /// The sum of the squared differences from that, by weights (West, "Updating mean and variance estimates", 1979).
    pub squares: f64,
}

impl Hour {
    fn add(&mut self, rate: f64, weight: f64) {
        let kept = 0.5f64.powf(1.0 / HALF_LIFE_WEEKS);
        let total = self.weight * kept + weight;
        let difference = rate - self.rate;
        self.rate += difference * weight / total;
        self.squares = self.squares * kept + weight * difference * (rate - self.rate);
        self.weight = total;
    }

    fn expected(&self, all: &Self) -> (f64, f64) {
        const AS_MANY: f64 = 1.0;
        let weight = self.weight + AS_MANY;
        let rate = (self.weight * self.rate + AS_MANY * all.rate) / weight;
        // Within the hour, and how far what stands for the others is from it.
        let apart = self.weight * (self.rate - rate).powi(2) + AS_MANY * (all.rate - rate).powi(2);
        let variance = (self.squares + AS_MANY * all.squares / all.weight.max(1.0) + apart) / weight;
        (rate, variance)
    }
}

/// The 168 hours of a week, from Monday 00:00 on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<Hour>", into = "Vec<Hour>")]
pub struct Week {
    hours: [Hour; HOURS],
}

impl Default for Week {
    fn default() -> Self {
        Self { hours: [Hour::default(); HOURS] }
    }
}

impl From<Vec<Hour>> for Week {
    /// Those that are missing, or are no numbers, are unknown.
    fn from(hours: Vec<Hour>) -> Self {
        let mut week = Self::default();
        let is_known = |hour: &Hour| {
            [hour.weight, hour.rate, hour.squares].iter().all(|number| number.is_finite() && *number >= 0.0)
        };
        week.hours.iter_mut().zip(hours).filter(|(_, seen)| is_known(seen)).for_each(|(hour, seen)| *hour = seen);
        week
    }
}

impl From<Week> for Vec<Hour> {
    fn from(week: Week) -> Self {
        week.hours.to_vec()
    }
}

impl Week {
    /// Adds that in so many seconds of the hour of a minute of the week, in which a pass was wanted, so many bytes were verified.
    pub fn add(&mut self, minute: u32, wanted_s: f64, bytes: u64) {
        if wanted_s >= ENOUGH_S {
            let weight = (wanted_s / HOUR_S).min(1.0);
            self.hours[Self::hour(minute)].add(bytes as f64 / wanted_s, weight);
        }
    }

    /// The hour of a minute of the week.
    pub fn hour(minute: u32) -> usize {
        (minute % WEEK / 60) as usize
    }

    /// Whether anything is known.
    pub fn is_known(&self) -> bool {
        self.hours.iter().any(|hour| hour.weight > 0.0)
    }

    /// All of them.
    pub fn hours(&self) -> &[Hour] {
        &self.hours
    }

    /// What is to be expected of each hour in bytes a second, and the variance of that. Of an hour of which little was seen it is what the
    /// others gave, for as much as one hour seen.
    pub fn expected(&self) -> Option<[(f64, f64); HOURS]> {
        let all = self.all()?;
        Some(self.hours.map(|hour| hour.expected(&all)))
    }

    /// All hours as one.
    pub fn all(&self) -> Option<Hour> {
        let weight: f64 = self.hours.iter().map(|hour| hour.weight).sum();
        if weight <= 0.0 {
            return None;
        }
        let rate = self.hours.iter().map(|hour| hour.weight * hour.rate).sum::<f64>() / weight;
        let squares = self.hours.iter().map(|hour| hour.squares + hour.weight * (hour.rate - rate).powi(2)).sum();
        Some(Hour { weight, rate, squares })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the sums over all that was seen, with weights as they are.
    #[test]
    fn an_hour_is_the_weighted_mean_of_what_was_seen() {
        let seen = [(3600.0, 360_000u64), (1800.0, 90_000), (3600.0, 0), (3600.0, 720_000)];
        let mut week = Week::default();
        seen.iter().for_each(|(wanted, bytes)| week.add(61, *wanted, *bytes));
        week.add(61, 59.0, 1 << 40);
        let kept = 0.5f64.powf(0.25);
        let weighted: Vec<(f64, f64)> = seen
            .iter()
            .rev()
            .zip(0..)
            .map(|((wanted, bytes), age)| (wanted / 3600.0 * kept.powi(age), *bytes as f64 / wanted))
            .collect();
        let weight: f64 = weighted.iter().map(|one| one.0).sum();
        let mean = weighted.iter().map(|(weight, rate)| weight * rate).sum::<f64>() / weight;
        let squares: f64 = weighted.iter().map(|(weight, rate)| weight * (rate - mean).powi(2)).sum();
        let hour = week.hours()[1];
        for (found, expected) in [(hour.weight, weight), (hour.rate, mean), (hour.squares, squares)] {
            assert!((found - expected).abs() < 1e-6 * expected, "{found} {expected}");
        }
        assert!((week.all().unwrap().rate - hour.rate).abs() < 1e-9);
        assert_eq!(week.hours()[0], Hour::default());
    }

    #[test]
    fn an_hour_that_was_not_seen_is_as_the_others() {
        let mut week = Week::default();
        assert_eq!(week.expected(), None);
        week.add(0, 3600.0, 3_600_000);
        assert_eq!(week.expected().unwrap()[10], (1000.0, 0.0));
    }

    #[test]
    fn what_is_no_week_is_unknown() {
        let text = r#"[{"weight":1.0,"rate":-5.0,"squares":0.0},{"weight":1.0,"rate":5.0,"squares":0.0}]"#;
        let week: Week = serde_json::from_str(text).unwrap();
        assert_eq!((week.hours()[0].weight, week.hours()[1].rate), (0.0, 5.0));
        let again: Week = serde_json::from_str(&serde_json::to_string(&week).unwrap()).unwrap();
        assert_eq!(again, week);
        assert!(serde_json::from_str::<Week>(r#"[{"weight":1.0}]"#).is_err());
    }
}
