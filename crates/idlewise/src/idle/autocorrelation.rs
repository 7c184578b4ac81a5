//! Do the lengths of idle intervals depend on those before? The autocorrelation function.

use serde::Serialize;

use super::special::chi2_survival;

/// Lags that the verdict looks at.
const LAGS: usize = 20;
/// Strong: one of them correlates at least so much ...
const STRONG: f64 = 0.1;
/// ... and chance would not have it, all of them taken together.
const CHANCE: f64 = 0.01;

/// The autocorrelation of a series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Autocorrelation {
    /// At lags 1, 2, ...
    pub lags: Vec<f64>,
    /// Of a series without any, 95 % of the lags are within plus or minus this: 1.96 / sqrt(n).
    pub bound_95: f64,
    /// Probability of the first twenty lags without any autocorrelation (Ljung and Box).
    pub ljung_box_p: f64,
    /// Whether it is strong: Ljung-Box p below 0.01, and one of the first twenty lags at least 0.1.
    pub strong: bool,
}

impl Autocorrelation {
    /// The first `most` lags of a series, or all that it has. `None` for a series that is constant or too short.
    pub fn of(series: &[f64], most: usize) -> Option<Self> {
        let covariances = autocovariances(series, most.max(LAGS))?;
        let lags: Vec<f64> = covariances[1..].iter().map(|covariance| covariance / covariances[0]).collect();
        let n = series.len() as f64;
        let first = &lags[..LAGS.min(lags.len())];
        let q = n * (n + 2.0) * first.iter().zip(1..).map(|(r, k)| r * r / (n - f64::from(k))).sum::<f64>();
        let ljung_box_p = chi2_survival(q, first.len() as f64);
        let strong = ljung_box_p < CHANCE && first.iter().any(|&r| r >= STRONG);
        let lags = lags[..most.min(lags.len())].to_vec();
        Some(Self { lags, bound_95: 1.96 / n.sqrt(), ljung_box_p, strong })
    }
}

impl Autocorrelation {
    /// The lag among the first twenty at which the autocorrelation is highest, and how high.
    pub fn strongest(&self) -> (usize, f64) {
        let first = (1..).zip(self.lags.iter().copied()).take(LAGS);
        first.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((1, 0.0))
    }
}

/// With more lags the Fourier transform is faster than their sums.
const FEW: usize = 128;

/// Autocovariances at lags 0 to `most` (sums over n, as usual); `None` for a constant or too short series.
pub(super) fn autocovariances(series: &[f64], most: usize) -> Option<Vec<f64>> {
    if series.len() < 3 {
        return None;
    }
    let (most, n) = (most.min(series.len() - 2), series.len() as f64);
    let mean = series.iter().sum::<f64>() / n;
    let centred: Vec<f64> = series.iter().map(|value| value - mean).collect();
    let mut covariances = if most <= FEW { sums(&centred, most) } else { transformed(centred, most) };
    covariances.iter_mut().for_each(|sum| *sum /= n);
    let smallest = mean * mean * 1e-24;
    (covariances[0] > smallest && covariances[0].is_finite()).then_some(covariances)
}

/// Sums of products at lags 0 to `most`.
fn sums(centred: &[f64], most: usize) -> Vec<f64> {
    // Independent sums leave the processor free to add several at a time.
    let product = |lag: usize| {
        let (mut parts, (a, b)) = ([0.0; 8], (&centred[..centred.len() - lag], &centred[lag..]));
        for (a, b) in a.chunks(8).zip(b.chunks(8)) {
            parts.iter_mut().zip(a.iter().zip(b)).for_each(|(part, (a, b))| *part += a * b);
        }
        parts.iter().sum()
    };
    (0..=most).map(product).collect()
}

/// The same by Fourier transform, in n log n.
#[cfg(feature = "statistics")]
fn transformed(mut centred: Vec<f64>, most: usize) -> Vec<f64> {
    // Zeros behind the series keep its end from touching its beginning.
    let size = (centred.len() + most + 1).next_power_of_two();
    centred.resize(size, 0.0);
    let mut planner = realfft::RealFftPlanner::new();
    let forward = planner.plan_fft_forward(size);
    let mut spectrum = forward.make_output_vec();
    forward.process(&mut centred, &mut spectrum).expect("the lengths are those that the plan made");
    spectrum.iter_mut().for_each(|value| *value = value.norm_sqr().into());
    let inverse = planner.plan_fft_inverse(size);
    inverse.process(&mut spectrum, &mut centred).expect("a spectrum of squares is real at both ends");
    let scale = 1.0 / size as f64;
    centred[..=most].iter().map(|sum| sum * scale).collect()
}

#[cfg(not(feature = "statistics"))]
fn transformed(centred: Vec<f64>, most: usize) -> Vec<f64> {
    sums(&centred, most)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn alternation_and_constancy() {
        let alternating: Vec<f64> = (0..1_000).map(|k| f64::from(k % 2)).collect();
        let acf = Autocorrelation::of(&alternating, 3).unwrap();
        assert!((acf.lags[0] + 0.999).abs() < 1e-9 && (acf.lags[1] - 0.998).abs() < 1e-9, "{acf:?}");
        assert!(acf.strong && acf.lags.len() == 3);
        assert_eq!(Autocorrelation::of(&[4.0; 100], 10), None);
        assert_eq!(Autocorrelation::of(&[1.0, 2.0], 10), None);
    }

    proptest! {
        #[test]
        fn both_ways_give_the_sums(series in prop::collection::vec(-1e3f64..1e3, 5..200), most in 1usize..50) {
            let most = most.min(series.len() - 2);
            let both = [sums(&series, most), transformed(series.clone(), most)];
            for (lag, covariance) in both.iter().flat_map(|covariances| covariances.iter().enumerate()) {
                let sum: f64 = series.iter().zip(&series[lag..]).map(|(a, b)| a * b).sum();
                prop_assert!((covariance - sum).abs() < 1e-8 * 1e6 * 200.0, "lag {lag}");
            }
        }
    }
}
