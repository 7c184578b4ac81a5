//! What a plan is worth on a disk (SIGMETRICS 2015, figure 5, all three steps): a whole trace replayed on an emulated disk, against
//! its representatives.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Parser;
use idlewise::report::percent;
use idlewise::sample::{Extractor, SamplingPlan, TraceInterval, mean_response, relative_error};
use idlewise::trace::{Columns, ReadOptions, Request, Trace, open};
use idlewise::{Bytes, Nanos};
use idlewise_testbed::{EmulatedDisk, Options, Timing, Tool};
use serde_json::Value;

/// Replay a trace on an emulated 15,000 rpm disk, once whole and once by its representatives, and compare mean response times. Needs
/// root and FUSE, and as long as the trace.
#[derive(Parser)]
struct Arguments {
    /// The trace
    trace: PathBuf,

    /// Only this volume of it
    #[arg(long)]
    volume: Option<String>,

    /// Closed loop; the trace must have response times
    #[arg(long)]
    closed: bool,

    /// Size of the disk; places beyond are wrapped around
    #[arg(long, default_value = "64GiB")]
    size: Bytes,

    /// Size of its cache, for the warm-up; it has none, but the host's read-ahead is on it
    #[arg(long, default_value = "32MiB")]
    device_cache: Bytes,

    /// Seed of the clustering
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// The whole replay, as `idlewise replay --out` wrote it: it is not done again
    #[arg(long, value_name = "FILE.parquet")]
    played: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let folder = tempfile::tempdir()?;
    let [plan_path, played_path] =
        ["plan", "played.parquet"].map(|name| folder.path().join(name).display().to_string());
    let trace = arguments.trace.display().to_string();
    let volume: Vec<&str> = arguments.volume.iter().flat_map(|volume| ["--volume", volume]).collect();
    let control: &[&str] = if arguments.closed { &["--closed"] } else { &[] };

    let (tool, seed) = (Tool::beside_us()?, arguments.seed.to_string());
    let step_1 = tool.json(&[&["sample", &trace, "-o", &plan_path, "--seed", &seed][..], &volume].concat())?;
    let plan = SamplingPlan::from_toml(&std::fs::read_to_string(&plan_path)?)?;
    let played = match &arguments.played {
        Some(path) => path.display().to_string(),
        None => {
            let disk = emulated(arguments.size)?;
            let device = disk.path().display().to_string();
            tool.json(&[&["replay", &trace, &device, "--out", &played_path][..], &volume, control].concat())?;
            played_path
        }
    };
    let intervals = as_played(&arguments, &plan, Path::new(&played))?;
    let truth = mean_response(&intervals).context("the replay has response times")?;
    let mean = |index: u64| TraceInterval::find(&intervals, index)?.mean_response();
    let parts = plan.parts();
    let step_2 = plan.estimate(&parts.iter().map(|part| mean(part.index)).collect::<Vec<_>>());
    let step_2_half = step_2.and_then(|estimate| estimate.half_width_s);
    let step_2 = step_2.map(|estimate| estimate.mean_response_s);

    let disk = emulated(arguments.size)?;
    let (device, cache) = (disk.path().display().to_string(), arguments.device_cache.exact());
    let options = ["--device-cache", &cache, "--trace", &trace];
    let step_3 = tool.json(&[&["replay", &plan_path, &device][..], &options, control].concat())?;
    let weighted = step_3["weighted_response_s"].as_f64();
    table(&serde_json::json!({
        "trace": trace,
        "k": parts.len(),
        "share_of_time": step_1["share_of_time"],
        "step_1_error": step_1["error"],
        "true_mean_response_s": truth,
        "step_2_estimate_s": step_2,
        "step_2_half_width_s": step_2_half,
        "step_2_error": relative_error(step_2, Some(truth)),
        "step_3_estimate_s": weighted,
        "step_3_half_width_s": step_3["half_width_s"],
        "step_3_error": relative_error(weighted, Some(truth)),
        "elapsed_s": step_3["plan"]["elapsed_s"],
        "speed_up": step_3["plan"]["speed_up"],
    }));
    Ok(())
}

fn emulated(size: Bytes) -> anyhow::Result<EmulatedDisk> {
    EmulatedDisk::new(&Options { size, timing: Timing::HardDisk { queue: 1 }, ..Options::default() })
}

/// The intervals of the trace with the response times of its replay, on the trace's own clock.
fn as_played(arguments: &Arguments, plan: &SamplingPlan, played: &Path) -> anyhow::Result<Vec<TraceInterval>> {
    let read = |path: &Path, volumes: &[String]| -> anyhow::Result<Trace> {
        Ok(open(&[path.to_path_buf()], &ReadOptions { volumes, ..ReadOptions::default() })?)
    };
    let mut trace = read(&arguments.trace, arguments.volume.as_slice())?;
    let played = read(played, &[])?;
    let (all, there) = (trace.columns.len(), played.columns.len());
    ensure!(all == there, "the replay has {there} requests, the trace {all}");
    trace.columns = with_responses(&trace.columns, &played.columns);
    let mut extractor = Extractor::new(plan.interval);
    extractor.requests(&trace.columns);
    Ok(extractor.finish())
}

fn with_responses(requests: &Columns, played: &Columns) -> Columns {
    let mut columns = requests.with_volumes_of();
    for (request, played) in requests.requests().zip(played.requests()) {
        columns.push(Request { response: played.service(), ..request });
    }
    columns
}

fn table(report: &Value) {
    let time = |field: &str| report[field].as_f64().map_or("-".into(), |s| Nanos((s * 1e9) as u64).to_string());
    let share = |field: &str| report[field].as_f64().map_or("-".into(), percent);
    println!("{} on an emulated disk", report["trace"].as_str().unwrap_or_default());
    println!("mean response time of the whole trace   {}", time("true_mean_response_s"));
    println!("representatives                         {}, {} of the time", report["k"], share("share_of_time"));
    println!("step 1, by the trace's own times        error {}", share("step_1_error"));
    println!("step 2, by the whole replay             {}, error {}", time("step_2_estimate_s"), share("step_2_error"));
    println!("step 3, replayed alone                  {}, error {}", time("step_3_estimate_s"), share("step_3_error"));
    let speed_up = report["speed_up"].as_f64().unwrap_or_default();
    println!("                                        in {}, {speed_up:.1} times faster", time("elapsed_s"));
}
