//! Bars for a terminal: what each scrubber got done, and what it cost the foreground.

use std::fmt::Write;

use crate::Row;

/// Characters of the longest bar.
const LONGEST: f64 = 20.0;
/// Room for a bar and the number behind it.
const COLUMN: usize = 32;
const NAME: usize = 23;

/// A line for each scrubber; the first row is the foreground alone.
pub fn chart(rows: &[Row]) -> String {
    let Some((alone, scrubbers)) = rows.split_first() else { return String::new() };
    let numbers = scrubbers.iter().map(|row| {
        let added = row.outcome.longer_than(&alone.outcome).value * 1e3;
        (row.name.as_str(), row.outcome.scrub().0 as f64 / 1e6, added)
    });
    bars(&numbers.collect::<Vec<_>>())
}

/// Of each scrubber its name, MB/s and added milliseconds.
fn bars(scrubbers: &[(&str, f64, f64)]) -> String {
    let most = |values: &mut dyn Iterator<Item = f64>| values.fold(1e-9, f64::max);
    let (fastest, dearest) = (most(&mut scrubbers.iter().map(|s| s.1)), most(&mut scrubbers.iter().map(|s| s.2)));
    let mut text = format!("  {:NAME$} {:COLUMN$} added to each request\n", "", "scrub rate");
    for (name, rate, added) in scrubbers {
        let rate = bar(rate / fastest, &format!("{rate:.1} MB/s"));
        let added = bar(added / dearest, &format!("{added:.1} ms"));
        let _ = writeln!(text, "  {name:NAME$} {rate:COLUMN$} {}", added.trim_end());
    }
    text
}

fn bar(share: f64, value: &str) -> String {
    let length = (share.clamp(0.0, 1.0) * LONGEST).round() as usize;
    format!("{} {value}", "█".repeat(length.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_share_and_fit_a_terminal() {
        let text = bars(&[("idle I/O class, 64KiB", 10.0, 8.0), ("idlewise, 512KiB", 5.0, -0.4)]);
        let counts: Vec<usize> = text.lines().map(|line| line.matches('█').count()).collect();
        assert_eq!(counts, [0, 40, 11]);
        assert!(text.contains("10.0 MB/s") && text.contains("-0.4 ms"));
        assert!(text.lines().all(|line| line.chars().count() <= 90), "{text}");
    }
}
