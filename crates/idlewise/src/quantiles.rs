//! Quantiles that confidence intervals need.

/// The two-sided 95 % quantile of the normal distribution.
pub const TWO_SIDED: f64 = 1.959_964;

/// The same of Student's t with so many degrees of freedom, at least one (Abramowitz and Stegun, 26.7.5).
pub fn student(freedom: u64) -> f64 {
    let (z, n) = (TWO_SIDED, freedom as f64);
    z + (z.powi(3) + z) / (4.0 * n) + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * n * n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_student() {
        // As scipy.stats.t.ppf(0.975, n) has them.
        for (freedom, expected) in [(7, 2.364_624), (15, 2.131_450), (100, 1.983_972)] {
            assert!((student(freedom) - expected).abs() < 0.01, "{freedom}: {}", student(freedom));
        }
    }
}
