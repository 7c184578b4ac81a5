//! How late a command is held: given as times, or as `idlewise run --json` measured it.

use std::path::PathBuf;

use anyhow::Context;
use idlewise::Nanos;
use serde::Deserialize;

use crate::exit::UsageError;
use crate::input::text_file;

/// So many draws stand for a disk: enough for whatever share of uses ends without an overrun.
const DRAWS: u64 = 10_000;

/// The part of the file that is read.
#[derive(Deserialize)]
struct Run {
    disks: Vec<Disk>,
}

#[derive(Deserialize)]
struct Disk {
    overruns: Overruns,
}

#[derive(Deserialize)]
struct Overruns {
    count: u64,
    uses: u64,
    percentiles_s: Vec<f64>,
}

/// The file, if it is one: what reads as times is times, whatever the folder has.
pub fn file(given: &str) -> Option<PathBuf> {
    Some(PathBuf::from(given)).filter(|path| times(given).is_none() && path.exists())
}

/// The overruns, each as likely as the others.
pub fn read(given: &str) -> anyhow::Result<Vec<Nanos>> {
    let Some(path) = file(given) else {
        let wrong = || UsageError(format!("--run {given}: neither a file nor times such as 8ms or 2ms,5ms,40ms"));
        return Ok(times(given).ok_or_else(wrong)?);
    };
    let run: Run = serde_json::from_str(&text_file(&path)?)
        .map_err(|error| anyhow::anyhow!("{given}: not what `idlewise run --json` writes: {error}"))?;
    // Where it used several disks, the one of which most is known.
    let disk = run.disks.into_iter().map(|disk| disk.overruns).max_by_key(|overruns| overruns.count);
    let overruns = disk.filter(|overruns| overruns.count > 0 && !overruns.percentiles_s.is_empty());
    let none = || {
        format!(
            "{given}: no foreground request came while the command used a disk, so nothing was delayed: measure for longer, or give \
             times"
        )
    };
    drawn(&overruns.with_context(none)?).with_context(|| format!("{given}: its overruns are no times"))
}

fn times(given: &str) -> Option<Vec<Nanos>> {
    given.split(',').map(|time| time.trim().parse().ok()).collect()
}

/// What is as likely as it was measured, with uses that ended without an overrun.
fn drawn(overruns: &Overruns) -> Option<Vec<Nanos>> {
    let Overruns { count, uses, percentiles_s } = overruns;
    let known = percentiles_s.iter().all(|time| time.is_finite() && (0.0..1e9).contains(time));
    // Rounded up: what is rare is not never.
    let late = (u128::from(DRAWS) * u128::from(*count)).div_ceil(u128::from(*uses.max(count)).max(1)) as u64;
    let time = |draw: u64| {
        let place = (draw as f64 + 0.5) / late as f64 * (percentiles_s.len() - 1) as f64;
        let (below, part) = (place as usize, place.fract());
        let next = percentiles_s[(below + 1).min(percentiles_s.len() - 1)];
        Nanos(((percentiles_s[below] * (1.0 - part) + next * part) * 1e9).round() as u64)
    };
    known.then(|| (0..DRAWS).map(|draw| if draw < late { time(draw) } else { Nanos::ZERO }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_taken_as_they_are_and_files_by_how_often_they_overran() {
        let read = |given: &str| read(given).map_err(|error| error.to_string());
        assert_eq!(read("8ms"), Ok(vec![Nanos::from_millis(8)]));
        assert_eq!(read("2ms, 5ms"), Ok(vec![Nanos::from_millis(2), Nanos::from_millis(5)]));
        assert!(read("8 parsecs").unwrap_err().starts_with("--run 8 parsecs: neither a file nor times"));
        let percentiles_s: Vec<f64> = (0..=100).map(|hundredth| f64::from(hundredth) * 1e-4).collect();
        let overruns = Overruns { count: 30, uses: 40, percentiles_s };
        let drawn = drawn(&overruns).unwrap();
        let late: Vec<_> = drawn.iter().filter(|time| **time > Nanos::ZERO).collect();
        assert_eq!((drawn.len(), late.len()), (10_000, 7_500));
        let mean = late.iter().map(|time| time.0).sum::<u64>() as f64 / 7_500.0;
        assert!((mean - 5e6).abs() < 1e3 && late.is_sorted(), "{mean}");
        let rare = Overruns { count: 1, uses: 20_001, percentiles_s: overruns.percentiles_s.clone() };
        assert_eq!(super::drawn(&rare).unwrap().iter().filter(|time| **time > Nanos::ZERO).count(), 1);
        let wrong = Overruns { percentiles_s: vec![f64::NAN, 1.0], ..overruns };
        assert!(super::drawn(&wrong).is_none());
    }
}
