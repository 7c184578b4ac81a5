//! The table of all runs.

use std::fs;
use std::path::Path;

use anyhow::Context;

/// Two-sided 95 % quantiles of Student's t by degrees of freedom, from one on.
const STUDENT: [f64; 11] = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20];

/// One run: those of the same seed have the same reads, in every schedule.
struct Run {
    bytes: f64,
    seconds: f64,
    /// Mean slowdown as the driver saw it, in milliseconds.
    seen: f64,
    /// In milliseconds.
    responses: Vec<f64>,
}

/// Prints the table of the runs in a folder, `alone-1`, `own-1`, `gaps-1` and so on.
pub fn print(folder: &Path) -> anyhow::Result<()> {
    let alone = runs(folder, "alone")?;
    println!("| compaction | reads | p50 | p99 | mean | added to the mean | added in all | compacted | done after |");
    println!("|---|---|---|---|---|---|---|---|---|");
    for (name, schedule) in [("none", "alone"), ("the store's own schedule", "own"), ("in the gaps", "gaps")] {
        let runs = runs(folder, schedule)?;
        let mut all: Vec<f64> = runs.iter().flat_map(|run| run.responses.iter().copied()).collect();
        all.sort_by(f64::total_cmp);
        let rank = |share: f64| all[((all.len() as f64 * share).ceil() as usize).max(1) - 1];
        print!("| {name} | {} | {:.1} ms | {:.1} ms | {:.2} ms |", all.len(), rank(0.5), rank(0.99), mean(&all));
        if schedule == "alone" {
            println!(" - | - | - | - |");
            continue;
        }
        let pairs =
            runs.iter().zip(&alone).map(|(run, alone)| added(run, alone)).collect::<anyhow::Result<Vec<_>>>()?;
        let (added, error) = interval(&pairs.iter().map(|pair| pair.0).collect::<Vec<_>>());
        let share = 100.0 / mean(&pairs.iter().map(|pair| pair.1).collect::<Vec<_>>());
        print!(" {added:.2} ± {error:.2} ms, {:.1} ± {:.1} % |", added * share, error * share);
        let in_all = runs.iter().zip(&pairs).map(|(run, pair)| pair.0 * run.responses.len() as f64 / 1e3);
        print!(" {:.2} s |", mean(&in_all.collect::<Vec<_>>()));
        let rates: Vec<f64> = runs.iter().map(|run| run.bytes / run.seconds / 1e6).collect();
        println!(
            " {:.1} MB/s | {:.0} s |",
            mean(&rates),
            mean(&runs.iter().map(|run| run.seconds).collect::<Vec<_>>())
        );
    }
    let seen: Vec<f64> = runs(folder, "gaps")?.iter().map(|run| run.seen).collect();
    println!("\nThe driver itself saw a mean slowdown of {:.2} ms.", mean(&seen));
    Ok(())
}

/// What a run's compaction added to its reads on average, and how long the same reads took alone.
fn added(run: &Run, alone: &Run) -> anyhow::Result<(f64, f64)> {
    let same = alone.responses.get(..run.responses.len()).context("the reads alone were too few")?;
    Ok((mean(&run.responses) - mean(same), mean(same)))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// A mean over runs and half its 95 % interval.
fn interval(values: &[f64]) -> (f64, f64) {
    let (count, mean) = (values.len() as f64, mean(values));
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let student = STUDENT.get(values.len().wrapping_sub(2)).copied().unwrap_or(f64::INFINITY);
    (mean, student * (squares / (count - 1.0) / count).sqrt())
}

fn runs(folder: &Path, schedule: &str) -> anyhow::Result<Vec<Run>> {
    let paths = (1..).map(|seed| folder.join(format!("{schedule}-{seed}"))).take_while(|path| path.exists());
    paths.map(|path| run(&path).with_context(|| path.display().to_string())).collect()
}

fn run(path: &Path) -> anyhow::Result<Run> {
    let text = fs::read_to_string(path)?;
    let mut numbers = text.split_whitespace().map(str::parse::<f64>);
    let mut next = || numbers.next().context("it is cut short");
    let (bytes, seconds, seen) = (next()??, next()??, next()?? / 1e6);
    let responses = numbers.map(|number| Ok(number? / 1e6)).collect::<anyhow::Result<_>>()?;
    Ok(Run { bytes, seconds, seen, responses })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_intervals_by_hand() {
        let run = |responses: &[f64]| Run { bytes: 0.0, seconds: 0.0, seen: 0.0, responses: responses.to_vec() };
        let (slower, same) = added(&run(&[3.0, 5.0]), &run(&[1.0, 2.0, 900.0])).unwrap();
        assert_eq!((slower, same), (2.5, 1.5));
        assert!(added(&run(&[3.0, 5.0]), &run(&[1.0])).is_err());
        let (mean, half) = interval(&[1.0, 2.0, 3.0]);
        assert!((mean - 2.0).abs() < 1e-12 && (half - 4.30 / 3f64.sqrt()).abs() < 1e-12);
    }
}
