//! When what is left of a pass will be verified, by what the hours of the week have given.

use serde::Serialize;

use super::{WEEK, Week, Windows};
use crate::Bytes;

/// The normal distribution has nine tenths between minus and plus so many standard deviations.
const SURE: f64 = 1.645;
/// What is not done by then is never done.
const LONGEST_HOURS: u32 = 2 * 366 * 24;

/// Seconds from now until a pass is done. Simulated: it is the sum of what the coming hours are expected to give.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// On average; infinite where two years are not enough.
    pub expected_s: f64,
    /// It is sooner in one case of twenty.
    pub early_s: f64,
    /// It is later in one case of twenty; infinite where that cannot be bounded.
    pub late_s: f64,
}

/// The end of a pass of which so much is left, from a minute of the week on. Nothing where nothing is known of the disk's hours.
pub fn forecast(left: Bytes, from: u32, week: &Week, windows: &Windows) -> Option<Forecast> {
    let (all, hours) = (week.all()?, week.expected()?);
    // How well their mean is known, which is the same for all of them.
    let doubt = (all.squares / all.weight.max(1.0)).sqrt() / all.weight.max(1.0).sqrt();
    let left = left.0 as f64;
    let mut ends = [f64::INFINITY; 3];
    let (mut now, mut given, mut variance, mut open_s) = (0.0, 0.0, 0.0, 0.0);
    let mut reached = [0.0; 3];
    let mut minute = from % WEEK;
    if left <= 0.0 {
        return Some(Forecast { expected_s: 0.0, early_s: 0.0, late_s: 0.0 });
    }
    for _ in 0..LONGEST_HOURS {
        let minutes = 60 - minute % 60;
        let open = f64::from(windows.open_within(minute, minutes) * 60);
        let (rate, of_an_hour) = hours[Week::hour(minute)];
        given += rate * open;
        // A part of an hour varies as the whole hour does.
        variance += of_an_hour * open * open;
        open_s += open;
        let spread = SURE * (variance + (doubt * open_s).powi(2)).sqrt();
        let seconds = f64::from(minutes * 60);
        for ((end, reached), bytes) in ends.iter_mut().zip(&mut reached).zip([given, given + spread, given - spread]) {
            if end.is_infinite() && bytes >= left {
                // As if what the hour gives came evenly.
                *end = now + seconds * ((left - *reached) / (bytes - *reached)).clamp(0.0, 1.0);
            }
            *reached = bytes;
        }
        if ends.iter().all(|end| end.is_finite()) {
            break;
        }
        now += seconds;
        minute = (minute + minutes) % WEEK;
    }
    let [expected_s, early_s, late_s] = ends;
    Some(Forecast { expected_s, early_s, late_s })
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    use super::*;

    fn steady(rate: u64) -> Week {
        let mut week = Week::default();
        (0..168).for_each(|hour| week.add(hour * 60, 3600.0, rate * 3600));
        week
    }

    #[test]
    fn a_steady_disk_ends_when_its_bytes_are_done() {
        let week = steady(1_000_000);
        for (left, from) in [(3_600_000_000u64, 0), (123_456_789, 59), (1_000_000_000_000, 777)] {
            let found = forecast(Bytes(left), from, &week, &Windows::default()).unwrap();
            let expected = left as f64 / 1e6;
            for end in [found.expected_s, found.early_s, found.late_s] {
                assert!((end - expected).abs() < 1e-6 * expected, "{found:?} for {expected}");
            }
        }
        assert_eq!(forecast(Bytes(0), 0, &week, &Windows::default()).unwrap().late_s, 0.0);
        assert_eq!(forecast(Bytes(1), 0, &Week::default(), &Windows::default()), None);
    }

    #[test]
    fn a_window_that_is_closed_gives_nothing() {
        let week = steady(1_000_000);
        let nights = Windows::new(&["22:00-06:00"]).unwrap();
        // Two nights of 8 hours and an hour of the third; from Monday noon on.
        let left = Bytes(17 * 3_600_000_000);
        let found = forecast(left, 12 * 60, &week, &nights).unwrap();
        assert!((found.expected_s - (10.0 + 48.0 + 1.0) * 3600.0).abs() < 1.0, "{found:?}");
        let nothing = steady(0);
        assert_eq!(forecast(left, 0, &nothing, &nights).unwrap().expected_s, f64::INFINITY);
    }

    /// Weeks in which each hour has its own level and varies about it: nine of ten ends lie within the band.
    #[test]
    fn nine_of_ten_ends_are_within_the_band() {
        const SEED: u64 = 7;
        println!("seed {SEED}");
        let mut random = Pcg64::seed_from_u64(SEED);
        let (mut within, mut early, runs) = (0, 0, 400);
        for _ in 0..runs {
            let levels: Vec<f64> = (0..168).map(|_| random.random_range(0.0..2e6)).collect();
            let mut give = |hour: usize| levels[hour] * random.random_range(0.0..2.0);
            let mut week = Week::default();
            for hour in 0..6 * 168 {
                week.add(hour as u32 % 168 * 60, 3600.0, (give(hour % 168) * 3600.0) as u64);
            }
            let left = 400e9;
            let band = forecast(Bytes(left as u64), 0, &week, &Windows::default()).unwrap();
            let (mut done, mut end) = (0.0, 0.0);
            for hour in 0.. {
                let rate = give(hour % 168);
                if done + rate * 3600.0 >= left {
                    end += (left - done) / rate;
                    break;
                }
                (done, end) = (done + rate * 3600.0, end + 3600.0);
            }
            within += u32::from((band.early_s..=band.late_s).contains(&end));
            early += u32::from(end < band.expected_s);
        }
        println!("{within} of {runs} within, {early} before what was expected");
        // Binomial: 360 with a standard deviation of 6, and the band may be a little wide.
        assert!((342..=396).contains(&within), "{within} of {runs}");
        assert!((160..=240).contains(&early), "{early} of {runs}");
    }
}
