use super::size::SIZES;
use super::time::TIMES;
use super::*;
use proptest::prelude::*;

#[test]
fn reads_what_people_write() {
    assert_eq!("4.8ms".parse(), Ok(Nanos(4_800_000)));
    assert_eq!("14 d".parse(), Ok(Nanos(14 * 86_400_000_000_000)));
    assert_eq!("0".parse(), Ok(Nanos::ZERO));
    assert_eq!("64KiB".parse(), Ok(Bytes(65_536)));
    assert_eq!("10TB".parse(), Ok(Bytes(10_000_000_000_000)));
    assert_eq!("1.5M".parse(), Ok(Bytes(3 << 19)));
    assert_eq!("90MB/s".parse(), Ok(Rate(90_000_000)));
}

#[test]
fn refuses_what_is_ambiguous() {
    for text in ["", "5", "ms", "1.2.3ms", "-1ms", "1e3s", "99999999999d", "1 fortnight"] {
        let error = text.parse::<Nanos>().expect_err(text);
        assert!(error.to_string().contains("1ms"), "{error}");
    }
    assert!("12 parsecs".parse::<Bytes>().is_err());
    assert!("90MB".parse::<Rate>().is_err());
    assert!("34028236692093846346337460743176821145.5B".parse::<Bytes>().is_err());
}

#[test]
fn prints_for_people() {
    assert_eq!(Nanos(4_800_000).to_string(), "4.80 ms");
    assert_eq!(Nanos(88_123_456).to_string(), "88.1 ms");
    assert_eq!([999_499, 999_500, 999_500_000].map(|n| Nanos(n).to_string()), ["999 us", "1.00 ms", "1.00 s"]);
    assert_eq!(Nanos::from_secs(7_200).to_string(), "2.00 h");
    let printed = |sizes: &[u64]| sizes.iter().map(|&size| Bytes(size).to_string()).collect::<Vec<_>>().join(", ");
    let sizes = [0, 512, 2_500, 640 << 10, 1_001 << 20, 1 << 30, 300_000_000_000];
    assert_eq!(printed(&sizes), "0 B, 512 B, 2.44 KiB, 640 KiB, 1001 MiB, 1.00 GiB, 279 GiB");
    let requests = [1_024, 1_280, 1_152, 1_088, 4_096, 4_097, 8_128, 12_800].map(|kib| kib << 10);
    let expected = "1.00 MiB, 1.25 MiB, 1.125 MiB, 1.0625 MiB, 4.00 MiB, 4.00 MiB, 7.9375 MiB, 12.5 MiB";
    assert_eq!(printed(&requests), expected);
    assert_eq!(Rate(38_750_000).to_string(), "38.8 MB/s");
}

#[test]
fn a_total_outlasts_the_end_of_time() {
    let longest = Nanos(u64::MAX);
    let mut total: TotalTime = [longest, longest].into_iter().sum();
    assert_eq!((total, total.mean(2), total.mean(1), total.mean(0)), (longest * 2, longest, longest, Nanos::ZERO));
    total += Nanos(1);
    total += TotalTime(2);
    assert_eq!(total.saturating_sub(longest * 2), TotalTime(3));
    assert_eq!((longest * 1).saturating_sub(total), TotalTime::ZERO);
    assert_eq!(
        (TotalTime(u128::MAX) + TotalTime(1), TotalTime(u128::MAX) * 2),
        (TotalTime(u128::MAX), TotalTime(u128::MAX))
    );
    assert_eq!([TotalTime(4_800_000), longest * 2].map(|total| total.to_string()), ["4.80 ms", "427008 d"]);
    assert_eq!((Nanos::from_millis(250) * 3 + TotalTime(0)).as_secs_f64(), 0.75);
}

/// The same digit by digit, as on paper: numbers of any length.
fn on_paper(number: &str, factor: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    // The last digit first.
    let mut digits: Vec<u128> =
        [whole, fraction].concat().bytes().rev().map(|digit| u128::from(digit - b'0')).collect();
    digits.resize(digits.len() + 20, 0);
    let mut carry = 0;
    for digit in &mut digits {
        let sum = *digit * u128::from(factor) + carry;
        (*digit, carry) = (sum % 10, sum / 10);
    }
    let cut = fraction.len();
    let up = cut > 0 && digits[cut - 1] >= 5;
    let value = digits[cut..].iter().rev().try_fold(0u128, |value, digit| value.checked_mul(10)?.checked_add(*digit));
    u64::try_from(value?.checked_add(u128::from(up))?).ok()
}

/// Numbers of any length, those around 2^64 and 2^128 in some unit, and how they are rounded.
fn numbers() -> impl Strategy<Value = String> {
    let edges = prop::sample::select(vec![u128::from(u64::MAX), u128::MAX, u128::MAX / 10, u128::MAX >> 40]);
    let edge = (edges, 0u128..3, 0usize..19).prop_map(|(edge, above, places)| {
        let digits = edge.saturating_sub(1).saturating_add(above).to_string();
        let (whole, fraction) = digits.split_at(digits.len() - places);
        if places == 0 { whole.into() } else { format!("{whole}.{fraction}") }
    });
    prop_oneof!["[0-9]{1,45}", "[0-9]{0,40}\\.[0-9]{1,18}", "[0-9]{1,12}\\.[0459]{1,18}", edge]
}

proptest! {
    #[test]
    fn numbers_are_read_as_on_paper(number in numbers(), unit in any::<prop::sample::Index>(), space in " {0,2}") {
        let (name, factor) = SIZES[unit.index(SIZES.len())];
        let size = on_paper(&number, factor);
        prop_assert_eq!(format!("{number}{space}{name}").parse().ok(), size.map(Bytes));
        prop_assert_eq!(format!("{number}{space}{name}/s").parse().ok(), size.map(Rate));
        let (name, factor) = TIMES[unit.index(TIMES.len())];
        prop_assert_eq!(format!("{number}{space}{name}").parse().ok(), on_paper(&number, factor).map(Nanos));
    }

    #[test]
    fn exact_text_reads_back(n in any::<u64>(), shift in 0u32..64) {
        let n = n >> shift;
        prop_assert_eq!(Nanos(n).exact().parse(), Ok(Nanos(n)));
        prop_assert_eq!(Bytes(n).exact().parse(), Ok(Bytes(n)));
    }
}
