//! The demonstration: a recorded foreground played on an emulated disk, alone and with two scrubbers, through the commands
//! that anyone would use.

mod live;
mod page;

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use idlewise::report::Table;
use idlewise::tune::Goal;
use idlewise::{Nanos, Rate};
use idlewise_testbed::Tool;

/// What the foreground may suffer.
pub const GOAL: Goal = Goal { mean_slowdown: Nanos::from_millis(1), max_slowdown: Nanos::from_millis(50) };
/// How much of the trace is played.
const PLAYED: Nanos = Nanos::from_secs(60);

/// What one schedule did.
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// Simulated and measured mean slowdown.
    pub mean: [Nanos; 2],
    /// Simulated and measured longest slowdown.
    pub max: [Nanos; 2],
    /// Simulated and measured scrub rate.
    pub rate: [Rate; 2],
    /// Mean response time measured.
    pub response: Nanos,
    /// Every response time, in seconds.
    pub responses: Vec<f64>,
}

fn main() -> anyhow::Result<()> {
    let trace = PathBuf::from("testbed/traces/pgbench.csv.gz");
    ensure!(trace.exists(), "{} is not here: run `make demo` in the project's folder", trace.display());
    let folder = PathBuf::from("demo");
    std::fs::create_dir_all(&folder)?;
    let tool = Tool::beside_us()?;
    println!("The foreground: {PLAYED} of PostgreSQL under pgbench with think times, recorded on a loop device.\n");
    if let Some(missing) = idlewise_testbed::missing() {
        return simulated(&tool, &trace, &missing);
    }
    let result = live::run(&tool, &trace, &folder)?;
    println!("\n{}", table(&result.rows));
    let idlewise = &result.rows[0];
    let kept = idlewise.mean[1] <= GOAL.mean_slowdown && idlewise.max[1] <= GOAL.max_slowdown;
    let (predicted, measured) = (idlewise.rate[0].0 as f64, idlewise.rate[1].0 as f64);
    println!(
        "Target: mean slowdown {}, max {}: {}. Scrub rate {:+.1} % of the simulator's prediction.",
        GOAL.mean_slowdown,
        GOAL.max_slowdown,
        if kept { "kept" } else { "NOT kept" },
        (measured / predicted - 1.0) * 100.0
    );
    println!(
        "Mean response time of the foreground: {} alone, {} with idlewise, {} with the idle class (two runs \
         alone differ as well, by 0.1 ms or so).",
        result.alone.0, idlewise.response, result.rows[1].response
    );
    println!("The disk is emulated; its times are those of a 15,000 rpm drive.");
    let report = folder.join("report.html");
    std::fs::write(&report, page::html(&result))?;
    println!("\nResponse-time distributions: {}", report.display());
    Ok(())
}

/// Predictions beside measurements.
fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(["", "mean slowdown", "", "max slowdown", "", "scrub rate", ""]);
    table.row(["", "predicted", "measured", "predicted", "measured", "predicted", "measured"].map(String::from));
    for row in rows {
        let [mean, max, rate] =
            [row.mean.map(|t| t.to_string()), row.max.map(|t| t.to_string()), row.rate.map(|r| r.to_string())];
        let ([a, b], [c, d], [e, f]) = (mean, max, rate);
        table.row([row.name.into(), a, b, c, d, e, f]);
    }
    table
}

/// Without root: everything but the disk.
fn simulated(tool: &Tool, trace: &Path, missing: &str) -> anyhow::Result<()> {
    let trace = trace.to_str().context("the project's path is text")?;
    tool.show(&["idle", trace])?;
    tool.show(&["tune", trace, "--mean-slowdown", "1ms", "--max-slowdown", "50ms", "--any-moment"])?;
    println!(
        "Only simulated: the emulated disk, and so the live part, needs {missing}. Run `sudo make demo` for all of it."
    );
    Ok(())
}
