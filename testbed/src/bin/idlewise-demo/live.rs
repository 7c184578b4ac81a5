//! The live part: one emulated disk, the foreground alone, then with each scrubber.

use std::path::Path;

use anyhow::{Context, ensure};
use idlewise::trace::{ReadOptions, open};
use idlewise::{Bytes, Nanos, Rate};
use idlewise_testbed::{EmulatedDisk, Options, Tool};
use serde_json::Value;

use crate::{PLAYED, Row};

/// What was measured.
pub struct Measured {
    /// The foreground alone: mean response time, and every one in seconds.
    pub alone: (Nanos, Vec<f64>),
    /// idlewise, then the idle class.
    pub rows: Vec<Row>,
    /// Request size and idle wait that were chosen.
    pub plan: (Bytes, Nanos),
}

/// Plays everything.
pub fn run(tool: &Tool, trace: &Path, folder: &Path) -> anyhow::Result<Measured> {
    let disk = EmulatedDisk::new(&Options { size: Bytes(8 << 30), bad_blocks: Vec::new(), hang: None, timing: true })?;
    let play = Play { tool, device: text(disk.path())?, trace: text(trace)?, folder };
    let (model, alone_trace, plan) = (play.file("disk.toml")?, play.file("alone.csv")?, play.file("plan.toml")?);

    println!("1. How long does the disk take?");
    tool.show(&["probe", play.device, "--out", &model])?;
    println!("2. The foreground alone.");
    let alone = play.foreground("alone.csv")?;
    println!("\n3. Choose request size and idle wait.");
    let goal = ["--mean-slowdown", "1ms", "--max-slowdown", "50ms"];
    let tuned =
        tool.json(&[&["tune", &alone_trace, "--disk", &model, "--any-moment", "--out", &plan], &goal[..]].concat())?;
    let chosen = (Bytes(number(&tuned, "request_size_bytes")? as u64), seconds(&tuned, "idle_wait_s")?);
    println!("   once idle for {}, requests of {}", chosen.1, chosen.0);
    println!("\n4. The foreground with idlewise scrubbing.");
    let ours = play.with_scrub("idlewise", "with-idlewise.csv", &["--plan", &plan], &tuned)?;
    println!("\n5. The foreground with the scrubbing of CFQ's idle class (64KiB after 10 ms).");
    let cfq = &tuned["baselines"][0];
    let pace = ["--request-size", "64KiB", "--idle-wait", "10ms"];
    let idle_class = play.with_scrub("CFQ idle class", "with-idle-class.csv", &pace, cfq)?;
    Ok(Measured { alone, rows: vec![ours, idle_class], plan: chosen })
}

struct Play<'a> {
    tool: &'a Tool,
    device: &'a str,
    trace: &'a str,
    folder: &'a Path,
}

impl Play<'_> {
    fn file(&self, name: &str) -> anyhow::Result<String> {
        Ok(text(&self.folder.join(name))?.to_string())
    }

    /// Plays the foreground; mean response time, and every one in seconds.
    fn foreground(&self, name: &str) -> anyhow::Result<(Nanos, Vec<f64>)> {
        let out = self.file(name)?;
        let time = PLAYED.exact();
        let played =
            self.tool.json(&["replay", self.trace, self.device, "--for", &time, "--allow-writes", "--out", &out])?;
        ensure!(played["failed"] == 0, "the emulated disk failed");
        let trace = open(&[out.into()], &ReadOptions::default())?;
        let responses = trace.columns.responses().map(Nanos::as_secs_f64).collect();
        Ok((seconds(&played, "mean_response_s")?, responses))
    }

    /// Plays the foreground with a scrubber beside it.
    fn with_scrub(&self, name: &'static str, out: &str, pace: &[&str], simulated: &Value) -> anyhow::Result<Row> {
        let state = self.file("state")?;
        let scrub = [&["scrub", self.device, "--state-dir", &state, "--restart", "--quiet", "--json"], pace].concat();
        let scrub = self.tool.start(&scrub)?;
        let played = self.foreground(out);
        scrub.interrupt()?;
        let scrubbed = scrub.finish()?;
        std::fs::write(self.folder.join(out).with_extension("json"), serde_json::to_string_pretty(&scrubbed)?)?;
        let (response, responses) = played?;
        Ok(Row {
            name,
            mean: [seconds(simulated, "mean_slowdown_s")?, seconds(&scrubbed["measured"], "mean_slowdown_s")?],
            max: [seconds(simulated, "max_slowdown_s")?, seconds(&scrubbed["measured"], "max_slowdown_s")?],
            rate: [rate(simulated, "throughput_bytes_per_s")?, rate(&scrubbed, "rate_bytes_per_s")?],
            response,
            responses,
        })
    }
}

fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("the project's path is text")
}

fn number(value: &Value, field: &str) -> anyhow::Result<f64> {
    value[field].as_f64().with_context(|| format!("no {field} in {value}"))
}

fn seconds(value: &Value, field: &str) -> anyhow::Result<Nanos> {
    Ok(Nanos((number(value, field)? * 1e9).round() as u64))
}

fn rate(value: &Value, field: &str) -> anyhow::Result<Rate> {
    Ok(Rate(number(value, field)? as u64))
}
