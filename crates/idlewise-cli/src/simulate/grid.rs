//! `simulate --grid`: Waiting with every pair of some request sizes and idle waits.

use std::str::FromStr;

use idlewise::report::{Table, percent};
use idlewise::tune::{Cell, grid};
use idlewise::{Bytes, Nanos, Rate};
use serde::Serialize;

use super::seconds;
use crate::csv::csv;
use crate::exit::{Exit, UsageError};
use crate::input::{Source, TraceOnDisk};
use crate::output;
use crate::progress::Progress;

/// In a range of waits, these times every power of ten.
const STEPS: [u64; 3] = [1, 2, 5];

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    source: Source,
    policy: &'static str,
    cells: Vec<Cell>,
}

/// Runs `simulate --grid SIZES WAITS`.
pub fn run(input: &TraceOnDisk, asked: &[String], json: bool, as_csv: bool) -> anyhow::Result<Exit> {
    let [sizes, waits] = asked else { anyhow::bail!(UsageError("--grid takes SIZES and WAITS".into())) };
    let (sizes, waits) = (sizes_of(sizes)?, waits_of(waits)?);
    let input = input.read()?;
    let progress = Progress::new("simulating");
    let cells = grid(&input.disks, &input.model, &sizes, &waits, &|done| progress.share(done));
    drop(progress);
    let report = Report { source: input.source, policy: "waiting", cells };
    if json {
        output::json(&report)?;
    } else if as_csv {
        output::text(&rows(&report.cells))?;
    } else {
        let title = format!(
            "{}policy waiting, simulated on {}\nmean, p99, max: slowdown; used: of the idle time\n\n",
            report.source.line(),
            report.source.disk
        );
        output::text(&(title + &table(&report.cells).to_string()))?;
    }
    Ok(Exit::Clean)
}

fn wrong(list: &str, why: &str) -> UsageError {
    UsageError(format!("--grid: {list}: {why}"))
}

fn sizes_of(list: &str) -> Result<Vec<Bytes>, UsageError> {
    let size = |text: &str| match Bytes::from_str(text) {
        Ok(size) if size < Bytes(512) => Err(wrong(text, "no disk has blocks so short: give at least 512B")),
        Ok(size) => Ok(size),
        Err(error) => Err(wrong(text, &error.to_string())),
    };
    sorted(list.split(',').map(size).collect())
}

/// Times, and ranges of times such as `10ms..1s`.
fn waits_of(list: &str) -> Result<Vec<Nanos>, UsageError> {
    let time = |text: &str| Nanos::from_str(text).map_err(|error| wrong(text, &error.to_string()));
    let mut waits = Vec::new();
    for text in list.split(',') {
        let Some((from, to)) = text.split_once("..") else {
            waits.push(time(text)?);
            continue;
        };
        let (from, to) = (time(from)?, time(to)?);
        if from == Nanos::ZERO || from > to {
            return Err(wrong(text, "a range goes up, from more than zero"));
        }
        let powers = (0..20).map(|power| 10u64.pow(power));
        let steps = powers.flat_map(|power| STEPS.into_iter().filter_map(move |step| power.checked_mul(step)));
        waits.extend(steps.map(Nanos).filter(|&step| from < step && step < to).chain([from, to]));
    }
    sorted(Ok(waits))
}

fn sorted<T: Ord>(list: Result<Vec<T>, UsageError>) -> Result<Vec<T>, UsageError> {
    let mut list = list?;
    list.sort_unstable();
    list.dedup();
    Ok(list)
}

fn table(cells: &[Cell]) -> Table {
    let mut table = Table::new(["size", "wait", "rate", "mean", "p99", "max", "collisions", "used"]);
    for cell in cells {
        let summary = &cell.summary;
        table.row([
            Bytes(cell.request_size_bytes).to_string(),
            seconds(cell.idle_wait_s),
            Rate(summary.throughput_bytes_per_s as u64).to_string(),
            seconds(summary.mean_slowdown_s),
            seconds(cell.slowdown_p99_s),
            seconds(summary.max_slowdown_s),
            summary.collisions.to_string(),
            percent(summary.utilised_idle),
        ]);
    }
    table
}

fn rows(cells: &[Cell]) -> String {
    const HEAD: [&str; 10] = [
        "request_size_bytes",
        "idle_wait_s",
        "scrubbed_bytes",
        "throughput_bytes_per_s",
        "mean_slowdown_s",
        "slowdown_p99_s",
        "max_slowdown_s",
        "collisions",
        "collision_rate",
        "utilised_idle",
    ];
    let row = |cell: &Cell| {
        let s = &cell.summary;
        vec![
            cell.request_size_bytes.to_string(),
            cell.idle_wait_s.to_string(),
            s.scrubbed_bytes.to_string(),
            s.throughput_bytes_per_s.to_string(),
            s.mean_slowdown_s.to_string(),
            cell.slowdown_p99_s.to_string(),
            s.max_slowdown_s.to_string(),
            s.collisions.to_string(),
            s.collision_rate.to_string(),
            s.utilised_idle.to_string(),
        ]
    };
    csv(&HEAD, cells.iter().map(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_their_ends_and_round_times_between() {
        let ms = |list: &str| waits_of(list).unwrap().iter().map(|wait| wait.0 as f64 / 1e6).collect::<Vec<_>>();
        assert_eq!(ms("10ms..1s"), [10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0]);
        assert_eq!(ms("15ms..60ms,1ms,20ms"), [1.0, 15.0, 20.0, 50.0, 60.0]);
        assert_eq!(ms("0ms"), [0.0]);
        assert!((40..60).contains(&ms("1ns..10000d").len()));
        for wrong in ["0ms..1s", "2s..1s", "10ms..", "ten", ""] {
            assert!(waits_of(wrong).is_err(), "{wrong}");
        }
        assert_eq!(sizes_of("1MiB,64KiB,64KiB").unwrap(), [Bytes::from_kib(64), Bytes::from_kib(1024)]);
        assert!(sizes_of("100B").is_err() && sizes_of("64").is_err());
    }
}
