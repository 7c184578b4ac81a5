//! The distributions that tests need. Logarithms are kept as long as possible: the p of a strong period is below any number
//! that a float can hold.

/// ln Γ(x) for x > 0, by Lanczos' series (g = 7, nine terms), to about 1e-14.
pub(super) fn ln_gamma(x: f64) -> f64 {
    const SERIES: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        return (std::f64::consts::PI / (std::f64::consts::PI * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let sum = SERIES[1..].iter().zip(1..).fold(SERIES[0], |sum, (term, k)| sum + term / (x + f64::from(k)));
    let t = x + 7.5;
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

/// ln of the probability that an F variable of `d1` and `d2` degrees of freedom exceeds `f`.
pub(super) fn ln_f_survival(f: f64, d1: f64, d2: f64) -> f64 {
    ln_beta_share(d2 / 2.0, d1 / 2.0, d2 / (d2 + d1 * f))
}

/// ln of the regularised incomplete beta function I_x(a, b).
fn ln_beta_share(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return if x <= 0.0 { f64::NEG_INFINITY } else { 0.0 };
    }
    let front = a * x.ln() + b * (-x).ln_1p() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b);
    if x < (a + 1.0) / (a + b + 2.0) {
        front + (beta_fraction(a, b, x) / a).ln()
    } else {
        (-(front + (beta_fraction(b, a, 1.0 - x) / b).ln()).exp()).ln_1p()
    }
}

/// The continued fraction of the incomplete beta function, by Lentz's method.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let guard = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / guard(1.0 - (a + b) * x / (a + 1.0));
    let mut result = d;
    for m in 1..100_000 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        for term in [even, odd] {
            d = 1.0 / guard(1.0 + term * d);
            c = guard(1.0 + term / c);
            result *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    result
}

/// The probability that a chi-squared variable of `degrees` of freedom exceeds `x`.
pub(super) fn chi2_survival(x: f64, degrees: f64) -> f64 {
    gamma_survival(degrees / 2.0, x / 2.0)
}

/// The probability that a standard normal variable is below `z`.
pub(super) fn normal_below(z: f64) -> f64 {
    let tail = gamma_survival(0.5, z * z / 2.0) / 2.0;
    if z < 0.0 { tail } else { 1.0 - tail }
}

/// The regularised upper incomplete gamma function Q(a, x).
fn gamma_survival(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    let front = (a * x.ln() - x - ln_gamma(a)).exp();
    if x < a + 1.0 {
        let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
        while term.abs() > sum.abs() * 1e-16 {
            n += 1.0;
            term *= x / n;
            sum += term;
        }
        return 1.0 - front * sum;
    }
    let mut b = x + 1.0 - a;
    let (mut c, mut d) = (1e300, 1.0 / b);
    let mut result = d;
    for i in 1..100_000 {
        let i = f64::from(i);
        let term = -i * (i - a);
        b += 2.0;
        d = 1.0 / (term * d + b);
        c = b + term / c;
        result *= c * d;
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    front * result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of scipy 1.17: `gammaln`, `f.logsf`, `chi2.sf`, `norm.cdf`.
    #[test]
    fn as_scipy_says() {
        let close = |value: f64, expected: f64| {
            assert!((value - expected).abs() <= 1e-10 * expected.abs().max(1e-300), "{value} for {expected}");
        };
        close(ln_gamma(0.1), 2.252_712_651_734_206);
        close(ln_gamma(100.5), 361.435_540_467_777_57);
        close(ln_f_survival(3.5, 23.0, 145.0), -13.065_602_295_407_997);
        close(ln_f_survival(80.0, 23.0, 145.0), -161.012_359_191_109_82);
        close(ln_f_survival(0.5, 5.0, 20.0), -0.257_988_152_102_199_66);
        close(chi2_survival(18.3, 10.0), 0.050_109_061_411_462_506);
        close(chi2_survival(2.0, 10.0), 0.996_340_153_172_656_3);
        close(chi2_survival(200.0, 10.0), 1.613_930_533_697_731_7e-37);
        close(normal_below(-3.0), 0.001_349_898_031_630_094_6);
        close(normal_below(1.5), 0.933_192_798_731_141_9);
    }
}
