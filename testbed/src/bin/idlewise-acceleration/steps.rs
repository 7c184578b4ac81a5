//! The three steps for one trace on one disk: its own response times, the whole replay's, and the plan replayed alone.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use idlewise::Bytes;
use idlewise::report::percent;
use idlewise::sample::{Extractor, SamplingPlan, TraceInterval, mean_response, relative_error};
use idlewise::trace::{Columns, ReadOptions, Request, Trace, open};
use idlewise_testbed::{EmulatedDisk, Options, Timing, Tool};
use serde::{Deserialize, Serialize};

use crate::Arguments;

/// What is to be replayed.
#[derive(Clone)]
pub struct Run {
    /// What the trace is called.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// What the disk is called.
    pub disk: &'static str,
    /// Its times.
    pub timing: Timing,
    /// In closed loop.
    pub closed: bool,
}

/// An estimate of the mean response time of the whole replay.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Estimate {
    /// Its error against the whole replay, as a share of that.
    pub error: f64,
    /// How far off it says it may be (95 %), as a share of itself.
    pub stated: f64,
}

impl Estimate {
    /// Whether it is as near as it says.
    pub fn is_within(self) -> bool {
        self.error <= self.stated
    }
}

/// What came of a run.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Compared {
    /// What the trace is called.
    pub name: String,
    /// What the disk is called.
    pub disk: String,
    /// In closed loop.
    pub closed: bool,
    /// Mean response time of the whole replay, in seconds.
    pub whole_s: f64,
    /// Intervals that are replayed.
    pub intervals: usize,
    /// Their share of the trace's time.
    pub share: f64,
    /// Step 1: error by the trace's own response times, if it has any.
    pub own: Option<f64>,
    /// Step 2: the whole replay's response times in these intervals.
    pub sampled: Estimate,
    /// Step 3: only these intervals replayed, each after a warm-up.
    pub replayed: Estimate,
    /// How many times faster than the whole trace that was.
    pub faster: f64,
}

impl Compared {
    /// Whether it came of that run.
    pub fn is_of(&self, run: &Run) -> bool {
        self.name == run.name && self.disk == run.disk && self.closed == run.closed
    }

    /// For the terminal.
    pub fn line(&self) -> String {
        let Self { name, disk, sampled, replayed, .. } = self;
        let (way, whole) = (if self.closed { "closed" } else { "open" }, self.whole_s * 1e3);
        let errors =
            self.own.into_iter().chain([sampled.error, replayed.error]).map(percent).collect::<Vec<_>>().join(", ");
        format!("{name} on a {disk}, {way}: {whole:.2} ms, errors {errors}, {:.1} times faster", self.faster)
    }
}

impl Run {
    /// All three steps.
    pub fn compare(&self, tool: &Tool, arguments: &Arguments) -> anyhow::Result<Compared> {
        let folder = tempfile::tempdir()?;
        let [plan_path, played_path] = ["plan.toml", "played.parquet"].map(|name| folder.path().join(name));
        let text = |path: &Path| path.display().to_string();
        let (trace, plan_at, played_at) = (text(&self.path), text(&plan_path), text(&played_path));
        let control: &[&str] = if self.closed { &["--closed"] } else { &[] };

        let seed = arguments.seed.to_string();
        let step_1 = tool.json(&["sample", &trace, "-o", &plan_at, "--seed", &seed])?;
        let plan = SamplingPlan::from_toml(&std::fs::read_to_string(&plan_path)?)?;

        let disk = self.emulated(arguments.size)?;
        let device = text(disk.path());
        tool.json(&[&["replay", &trace, &device, "--out", &played_at][..], control].concat())?;
        let intervals = self.as_played(&plan, &played_path)?;
        let truth = mean_response(&intervals).context("the replay has response times")?;
        let mean = |index: u64| TraceInterval::find(&intervals, index)?.mean_response();
        let means: Vec<_> = plan.parts().iter().map(|part| mean(part.index)).collect();
        let step_2 = plan.estimate(&means).context("the sampled intervals have requests")?;
        drop(disk);

        // A disk that nothing was read from.
        let disk = self.emulated(arguments.size)?;
        let (device, cache) = (text(disk.path()), arguments.device_cache.exact());
        let options = ["--device-cache", &cache, "--trace", &trace];
        let step_3 = tool.json(&[&["replay", &plan_at, &device][..], &options, control].concat())?;
        let number = |at: &str| step_3.pointer(at).and_then(serde_json::Value::as_f64).context(format!("no {at}"));

        let estimate = |mean_s: f64, half_width_s: Option<f64>| {
            Some(Estimate { error: relative_error(Some(mean_s), Some(truth))?, stated: half_width_s? / mean_s })
        };
        Ok(Compared {
            name: self.name.clone(),
            disk: self.disk.into(),
            closed: self.closed,
            whole_s: truth,
            intervals: plan.parts().len(),
            share: step_1["share_of_time"].as_f64().context("a share of the time")?,
            own: step_1["error"].as_f64(),
            sampled: estimate(step_2.mean_response_s, step_2.half_width_s).context("how far off step 2 may be")?,
            replayed: estimate(number("/weighted_response_s")?, number("/half_width_s").ok())
                .context("how far off step 3 may be")?,
            faster: number("/plan/speed_up")?,
        })
    }

    fn emulated(&self, size: Bytes) -> anyhow::Result<EmulatedDisk> {
        EmulatedDisk::new(&Options { size, timing: self.timing, ..Options::default() })
    }

    /// The intervals of the trace with the response times of its replay, on the trace's own clock.
    fn as_played(&self, plan: &SamplingPlan, played: &Path) -> anyhow::Result<Vec<TraceInterval>> {
        let read = |path: &Path| -> anyhow::Result<Trace> { Ok(open(&[path.to_path_buf()], &ReadOptions::default())?) };
        let (mut trace, played) = (read(&self.path)?, read(played)?);
        let (all, there) = (trace.columns.len(), played.columns.len());
        ensure!(all == there, "the replay has {there} requests, the trace {all}");
        trace.columns = with_responses(&trace.columns, &played.columns);
        let mut extractor = Extractor::new(plan.interval);
        extractor.requests(&trace.columns);
        Ok(extractor.finish())
    }
}

fn with_responses(requests: &Columns, played: &Columns) -> Columns {
    let mut columns = requests.with_volumes_of();
    for (request, played) in requests.requests().zip(played.requests()) {
        columns.push(Request { response: played.service(), ..request });
    }
    columns
}
