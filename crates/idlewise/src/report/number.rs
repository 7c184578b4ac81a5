//! Numbers as people read them, everywhere alike.

/// A share of one: per cent, or how many times where it is beyond a thousand per cent.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        _ if percent < 0.0 => format!("-{}", self::percent(-share)),
        0.0 => "0 %".into(),
        little if little < 0.01 => "< 0.01 %".into(),
        little if little < 9.995 => format!("{little:.2} %"),
        some if some <= 1_000.0 => format!("{some:.1} %"),
        _ => format!("{} times", number(share)),
    }
}

/// A number in four digits, without an exponent where it needs none.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        "0".into()
    } else if !(1e-3..1e7).contains(&size) {
        format!("{value:.2e}")
    } else {
        let decimals = (3 - size.log10().floor() as i32).max(0) as usize;
        format!("{value:.decimals$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_share_looks_like_nothing_or_like_a_phone_number() {
        let shown = [0.0, 0.000_05, 0.000_1, 0.012_34, 0.099_99, 0.5, 1.0, 10.0, 17_337.257, -0.25].map(percent);
        let expected = [
            "0 %",
            "< 0.01 %",
            "0.01 %",
            "1.23 %",
            "10.0 %",
            "50.0 %",
            "100.0 %",
            "1000.0 %",
            "17337 times",
            "-25.0 %",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn four_digits() {
        let shown = [0.0, 1.0, 0.98, 12.345_6, 123_456.7, 1.5e7, 2.5e-5, -3.0, 0.001].map(number);
        assert_eq!(shown, ["0", "1.000", "0.9800", "12.35", "123457", "1.50e7", "2.50e-5", "-3.000", "0.001000"]);
    }
}
