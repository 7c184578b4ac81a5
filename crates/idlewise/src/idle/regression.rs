//! AR(p): the length of an idle interval from those before it (DSN 2012, equation 1), the order by Akaike's criterion.

use serde::Serialize;

use super::autocorrelation::autocovariances;

/// X_t = mean + sum of a_i (X_(t-i) - mean) + noise.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AutoRegression {
    /// Mean of the series.
    pub mean: f64,
    /// a_1, a_2, ...: none where the mean is the best prediction.
    pub coefficients: Vec<f64>,
    /// Variance of the noise.
    pub variance: f64,
    /// Variance of the series.
    pub series_variance: f64,
}

impl AutoRegression {
    /// Fits a series by the Yule-Walker equations (Levinson and Durbin), with the order up to 10 log10(n) that has the least
    /// AIC = n ln(variance) + 2 (p + 1). `None` for a series that is constant or too short.
    pub fn fit(series: &[f64]) -> Option<Self> {
        let n = series.len() as f64;
        let covariances = autocovariances(series, (10.0 * n.log10()) as usize)?;
        let mean = series.iter().sum::<f64>() / n;
        let aic = |variance: f64, order: usize| n * variance.ln() + 2.0 * (order as f64 + 1.0);
        let (mut coefficients, mut variance) = (Vec::new(), covariances[0]);
        let mut best = (aic(variance, 0), coefficients.clone(), variance);
        for order in 1..covariances.len() {
            let explained: f64 = coefficients.iter().zip((1..order).rev()).map(|(a, lag)| a * covariances[lag]).sum();
            let reflection = (covariances[order] - explained) / variance;
            let mirrored: Vec<f64> = coefficients.iter().rev().copied().collect();
            coefficients.iter_mut().zip(mirrored).for_each(|(a, other)| *a -= reflection * other);
            coefficients.push(reflection);
            variance *= 1.0 - reflection * reflection;
            if variance <= 0.0 || !variance.is_finite() {
                break;
            }
            let criterion = aic(variance, order);
            if criterion < best.0 {
                best = (criterion, coefficients.clone(), variance);
            }
        }
        let (_, coefficients, variance) = best;
        Some(Self { mean, coefficients, variance, series_variance: covariances[0] })
    }

    /// What comes next after `past`, the latest last; the mean stands for what is missing of it.
    pub fn predict(&self, past: &[f64]) -> f64 {
        let terms = self.coefficients.iter().zip(past.iter().rev());
        self.mean + terms.map(|(a, value)| a * (value - self.mean)).sum::<f64>()
    }

    /// What it would have predicted for each value of a series.
    pub fn predictions(&self, series: &[f64]) -> Vec<f64> {
        let order = self.coefficients.len();
        (0..series.len()).map(|at| self.predict(&series[at.saturating_sub(order)..at])).collect()
    }

    /// Share of the variance that the past explains.
    pub fn explained(&self) -> f64 {
        1.0 - self.variance / self.series_variance
    }
}

#[cfg(test)]
mod tests {
    use rand_distr::{Distribution, StandardNormal};

    use super::*;

    #[test]
    fn finds_the_process_that_made_the_series() {
        let mut random: rand_pcg::Pcg64 = rand::SeedableRng::seed_from_u64(5);
        let mut series = vec![0.0, 0.0];
        for t in 2..50_000 {
            let noise: f64 = StandardNormal.sample(&mut random);
            series.push(0.5 * series[t - 1] + 0.3 * series[t - 2] + noise);
        }
        series.iter_mut().for_each(|value| *value += 10.0);
        let fit = AutoRegression::fit(&series).unwrap();
        assert!((fit.coefficients[0] - 0.5).abs() < 0.02 && (fit.coefficients[1] - 0.3).abs() < 0.02, "{fit:?}");
        assert!((fit.variance - 1.0).abs() < 0.02 && fit.coefficients.len() < 10, "{fit:?}");
        let past = [13.0, 12.0];
        let expected = fit.mean + fit.coefficients[0] * (12.0 - fit.mean) + fit.coefficients[1] * (13.0 - fit.mean);
        let two = AutoRegression { coefficients: fit.coefficients[..2].to_vec(), ..fit.clone() };
        assert!((two.predict(&past) - expected).abs() < 1e-12);
        assert_eq!(fit.predict(&[]), fit.mean);
    }

    #[test]
    fn white_noise_has_no_order_to_speak_of_and_a_constant_none() {
        let mut random: rand_pcg::Pcg64 = rand::SeedableRng::seed_from_u64(6);
        let series: Vec<f64> = (0..10_000).map(|_| StandardNormal.sample(&mut random)).collect();
        let fit = AutoRegression::fit(&series).unwrap();
        assert!(fit.explained() < 0.01, "{fit:?}");
        assert_eq!(AutoRegression::fit(&[2.0; 50]), None);
    }
}
