//! Does the load repeat itself? Requests per hour (DSN 2012, figure 8), and the strongest period among 1 to 36 hours by
//! analysis of variance (figure 9).

use serde::Serialize;

use super::special::ln_f_survival;

/// The longest candidate, in hours.
const LONGEST: usize = 36;
/// Requests in an hour of the period, on average, below which the analysis says nothing: it takes counts to be about normal.
const FEWEST: f64 = 5.0;
/// A period counts if chance would give as strong a one, among all candidates, less often than this.
const CHANCE: f64 = 0.01;

/// How well a period explains the requests per hour.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Period {
    /// The candidate.
    pub hours: usize,
    /// Variance between the hours of the period over variance within them.
    pub f: f64,
    /// Probability of such an F without any period; 0 where it is too small for a number.
    pub p: f64,
    /// Its natural logarithm, which is never too small.
    pub ln_p: f64,
}

/// Candidate periods of at least two hours of which `counts`, one an hour, holds two or more, with five requests in each hour of
/// the period.
pub fn periods(counts: &[u64]) -> Vec<Period> {
    let total: f64 = counts.iter().map(|&count| count as f64).sum();
    let mean = total / counts.len().max(1) as f64;
    let candidates = 2..=LONGEST.min(counts.len() / 2);
    candidates.filter(|&hours| total >= FEWEST * hours as f64).filter_map(|hours| period(counts, mean, hours)).collect()
}

fn period(counts: &[u64], mean: f64, hours: usize) -> Option<Period> {
    let (mut between, mut within) = (0.0, 0.0);
    for phase in 0..hours {
        let group: Vec<f64> = counts.iter().skip(phase).step_by(hours).map(|&count| count as f64).collect();
        let size = group.len() as f64;
        let group_mean = group.iter().sum::<f64>() / size;
        between += size * (group_mean - mean).powi(2);
        within += group.iter().map(|count| (count - group_mean).powi(2)).sum::<f64>();
    }
    if within <= 0.0 {
        // Every hour is as the one a period before: certain, if hours differ at all.
        return (between > 0.0).then_some(Period { hours, f: f64::MAX, p: 0.0, ln_p: f64::MIN });
    }
    let (d1, d2) = (hours as f64 - 1.0, (counts.len() - hours) as f64);
    let f = (between / d1) / (within / d2);
    let ln_p = ln_f_survival(f, d1, d2);
    Some(Period { hours, f, p: ln_p.exp(), ln_p })
}

/// The candidate with the smallest p, if chance does not explain it: p below 0.01 over the number of candidates. Without one
/// the load has no period, for which figure 9 says one hour.
pub fn strongest(periods: &[Period]) -> Option<Period> {
    let best = periods.iter().copied().min_by(|a, b| a.ln_p.total_cmp(&b.ln_p))?;
    (best.ln_p < (CHANCE / periods.len() as f64).ln()).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daily_peak_is_found_and_noise_has_no_period() {
        let mut random: rand_pcg::Pcg64 = rand::SeedableRng::seed_from_u64(2);
        let nothing: Vec<u64> = (0..168).map(|_| rand::RngExt::random_range(&mut random, 0..100)).collect();
        let daily: Vec<u64> = (0..).zip(&nothing).map(|(hour, n)| n + if hour % 24 == 3 { 2_000 } else { 0 }).collect();
        assert_eq!(strongest(&periods(&daily)).unwrap().hours, 24);
        assert_eq!(strongest(&periods(&nothing)), None);
        assert_eq!(periods(&nothing).len(), 35);
        assert_eq!(strongest(&periods(&[5; 168])), None);
        let exact: Vec<u64> = (0..168).map(|hour| if hour % 24 == 3 { 100 } else { 1 }).collect();
        assert_eq!(strongest(&periods(&exact)).unwrap().hours, 24);
        assert_eq!(periods(&[1, 2, 3]), []);
        assert_eq!(periods(&[3, 0, 3, 0, 3, 0, 0, 0]), []);
    }
}
