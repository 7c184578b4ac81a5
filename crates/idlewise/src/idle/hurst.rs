//! Long-range dependence of idle lengths: the Hurst parameter by two estimators that fail in different ways. 0.5 stands for
//! none; above, long intervals gather on every scale.

use realfft::RealFftPlanner;

/// The smallest box and the fewest boxes of the fluctuation analysis.
const SMALLEST_BOX: usize = 16;
const FEWEST_BOXES: usize = 4;
/// Shorter series say nothing: of so many values 100 frequencies carry the long range, and local Whittle's standard error, 1 / (2
/// sqrt(frequencies)), is 0.05.
const SHORTEST: usize = 1_193;
/// Of the n / 2 frequencies, n to this power carry the long range (Robinson's usual choice).
const LOW_FREQUENCIES: f64 = 0.65;

/// By detrended fluctuation analysis: how the deviation of sums from a straight line, in a box, grows with the box (Peng and
/// others, 1994). `None` for short or constant series, and where the slope is no Hurst parameter, which is between 0 and 1.
pub fn by_fluctuation(series: &[f64]) -> Option<f64> {
    if series.len() < SHORTEST {
        return None;
    }
    let mean = series.iter().sum::<f64>() / series.len() as f64;
    let sums = series.iter().scan(0.0, |sum, value| {
        *sum += value - mean;
        Some(*sum)
    });
    let sums: Vec<f64> = sums.collect();
    let mut points = Vec::new();
    let mut size = SMALLEST_BOX;
    while size <= series.len() / FEWEST_BOXES {
        let boxes = sums.chunks_exact(size);
        let count = boxes.len() as f64;
        let squares: f64 = boxes.map(around_line).sum();
        if squares > (mean * mean * 1e-20) * count * size as f64 {
            points.push(((size as f64).ln(), (squares / (count * size as f64)).ln() / 2.0));
        }
        size = (size as f64 * std::f64::consts::SQRT_2).round() as usize;
    }
    (points.len() >= 3).then(|| slope(&points)).filter(valid)
}

/// Sum of the squared distances from the straight line that fits best.
fn around_line(sums: &[f64]) -> f64 {
    let count = sums.len() as f64;
    let (mean_x, mean_y) = ((count - 1.0) / 2.0, sums.iter().sum::<f64>() / count);
    let (mut xy, mut xx, mut yy) = (0.0, 0.0, 0.0);
    for (index, sum) in sums.iter().enumerate() {
        let (x, y) = (index as f64 - mean_x, sum - mean_y);
        (xy, xx, yy) = (xy + x * y, xx + x * x, yy + y * y);
    }
    (yy - xy * xy / xx).max(0.0)
}

fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean_x = points.iter().map(|point| point.0).sum::<f64>() / count;
    let mean_y = points.iter().map(|point| point.1).sum::<f64>() / count;
    let covariance: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    covariance / points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum::<f64>()
}

/// By local Whittle: the H whose power law best fits the periodogram at low frequencies (Robinson, 1995). `None` for short or
/// constant series, and where no H between 0 and 1 fits best.
pub fn by_local_whittle(series: &[f64]) -> Option<f64> {
    let n = series.len();
    if n < SHORTEST {
        return None;
    }
    let mean = series.iter().sum::<f64>() / n as f64;
    let mut centred: Vec<f64> = series.iter().map(|value| value - mean).collect();
    let transform = RealFftPlanner::new().plan_fft_forward(n);
    let mut spectrum = transform.make_output_vec();
    transform.process(&mut centred, &mut spectrum).expect("the lengths are those that the plan made");
    let count = ((n as f64).powf(LOW_FREQUENCIES) as usize).min(spectrum.len() - 1);
    let frequency = |j: usize| std::f64::consts::TAU * j as f64 / n as f64;
    let points: Vec<(f64, f64)> = (1..=count).map(|j| (frequency(j).ln(), spectrum[j].norm_sqr())).collect();
    let mean_log = points.iter().map(|point| point.0).sum::<f64>() / count as f64;
    let power: f64 = points.iter().map(|point| point.1).sum();
    if power <= (mean * n as f64).powi(2) * 1e-24 {
        return None;
    }
    let loss = |h: f64| {
        let weighted = points.iter().map(|(log, power)| power * ((2.0 * h - 1.0) * log).exp());
        (weighted.sum::<f64>() / count as f64).ln() - (2.0 * h - 1.0) * mean_log
    };
    Some(minimum(loss, -0.5, 1.5)).filter(valid)
}

fn valid(hurst: &f64) -> bool {
    *hurst > 0.0 && *hurst < 1.0
}

/// Where a function with one valley is least, by the golden section.
fn minimum(function: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    let ratio = (5f64.sqrt() - 1.0) / 2.0;
    while high - low > 1e-6 {
        let (left, right) = (high - ratio * (high - low), low + ratio * (high - low));
        if function(left) < function(right) { high = right } else { low = left }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use rand_distr::{Distribution, StandardNormal};
    use realfft::num_complex::Complex;

    use super::*;

    /// Fractional Gaussian noise (Davies and Harte): the sum of waves whose powers are the transform of its covariances.
    fn noise(hurst: f64, n: usize, seed: u64) -> Vec<f64> {
        let power = |k: f64| k.abs().powf(2.0 * hurst);
        let covariance = |k: usize| (power(k as f64 + 1.0) - 2.0 * power(k as f64) + power(k as f64 - 1.0)) / 2.0;
        let mut circle: Vec<f64> = (0..=n).chain((1..n).rev()).map(covariance).collect();
        let mut planner = RealFftPlanner::new();
        let forward = planner.plan_fft_forward(2 * n);
        let mut powers = forward.make_output_vec();
        forward.process(&mut circle, &mut powers).unwrap();
        let mut random: rand_pcg::Pcg64 = rand::SeedableRng::seed_from_u64(seed);
        let mut normal = || -> f64 { StandardNormal.sample(&mut random) };
        let mut waves: Vec<Complex<f64>> =
            powers.iter().map(|power| Complex::new(normal(), normal()) * (power.re.max(0.0) / 2.0).sqrt()).collect();
        (waves[0].im, waves[n].im) = (0.0, 0.0);
        let mut series = vec![0.0; 2 * n];
        planner.plan_fft_inverse(2 * n).process(&mut waves, &mut series).unwrap();
        series.truncate(n);
        series
    }

    #[test]
    fn both_find_the_parameter_of_noise_that_has_it() {
        for hurst in [0.5, 0.7, 0.9] {
            let series = noise(hurst, 1 << 15, 11);
            let (fluctuation, whittle) = (by_fluctuation(&series).unwrap(), by_local_whittle(&series).unwrap());
            assert!((fluctuation - hurst).abs() < 0.05, "fluctuation {fluctuation} for {hurst}");
            assert!((whittle - hurst).abs() < 0.04, "local Whittle {whittle} for {hurst}");
        }
    }

    #[test]
    fn nothing_is_said_of_short_or_constant_series() {
        assert_eq!((by_fluctuation(&[1.0; 1000]), by_local_whittle(&[1.0; 1000])), (None, None));
        assert_eq!(by_fluctuation(&noise(0.5, 1024, 1)), None);
        // Sums of noise wander: no stationary series is like them.
        let wandering: Vec<f64> = noise(0.7, 4096, 1)
            .iter()
            .scan(0.0, |sum, value| {
                *sum += value;
                Some(*sum)
            })
            .collect();
        assert_eq!((by_fluctuation(&wandering), by_local_whittle(&wandering)), (None, None));
    }
}
