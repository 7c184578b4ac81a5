//! The arguments that say which trace and which disk, and their reading.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use idlewise::disk::DiskModel;
use idlewise::idle::Idleness;
use idlewise::trace::formats::FORMATS;
use idlewise::trace::{self, ReadOptions, Trace};
use serde::Serialize;

use crate::progress::Progress;

/// A trace.
#[derive(Args)]
pub struct TraceArguments {
    /// Block I/O trace, plain or compressed (gzip, xz, zstd, bzip2); its format, one of those below, is told by its content
    pub trace: PathBuf,

    /// Leave out records that cannot be read, and count them, instead of stopping at the first
    #[arg(long)]
    skip_bad: bool,

    /// Only this volume; without it all of them, each as its own disk
    #[arg(long, value_name = "NAME")]
    volume: Option<String>,
}

/// A trace and the disk it ran on.
#[derive(Args)]
pub struct TraceOnDisk {
    #[command(flatten)]
    trace: TraceArguments,

    /// Disk model in TOML, as `idlewise probe` writes it [default: Hitachi Ultrastar 15K450]
    #[arg(long, value_name = "FILE")]
    disk: Option<PathBuf>,
}

/// The part of `--help` that lists the trace formats.
pub fn formats_help() -> String {
    list("Trace formats", FORMATS.iter().map(|format| (format.name, format.about)))
}

/// A list for `--help`, from a table.
pub fn list<'a>(title: &str, lines: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let lines = lines.map(|(name, about)| format!("\n  {name:<14}{about}"));
    format!("{title}:{}", lines.collect::<String>())
}

/// What was read, with where its numbers come from.
pub struct Input {
    /// The idle times of each volume.
    pub disks: Vec<Idleness>,
    /// The disk model.
    pub model: DiskModel,
    /// How the trace was read.
    pub source: Source,
}

/// The part of `--json` that says where the numbers come from.
#[derive(Clone, Debug, Serialize)]
pub struct Source {
    /// The file.
    pub trace: String,
    /// Its format.
    pub format: &'static str,
    /// Records left out.
    pub bad_records: u64,
    /// Name of the disk model.
    pub disk: String,
    /// `recorded`, or `modelled` where the trace has no response times.
    pub response_times: &'static str,
}

impl TraceOnDisk {
    /// Reads the trace and reduces it to idle intervals.
    pub fn read(&self) -> anyhow::Result<Input> {
        let model = disk_model(self.disk.as_deref())?;
        let trace = self.trace.read()?;
        let source = Source {
            trace: self.trace.trace.display().to_string(),
            format: trace.format,
            bad_records: trace.bad_records,
            disk: model.name.clone(),
            response_times: if trace.has_response_times() { "recorded" } else { "modelled" },
        };
        let disks = Idleness::of_trace(&trace, &model)?;
        Ok(Input { disks, model, source })
    }
}

impl TraceArguments {
    /// Reads the trace; says on standard error what was left out.
    pub fn read(&self) -> anyhow::Result<Trace> {
        let progress = Progress::new("reading");
        let share = |done: u64, size: u64| progress.share(done as f64 / size.max(1) as f64);
        let trace = trace::open(&self.trace, &ReadOptions { skip_bad: self.skip_bad, progress: Some(&share) })?;
        drop(progress);
        if trace.bad_records > 0 {
            eprintln!("idlewise: {}: {} bad records left out", self.trace.display(), trace.bad_records);
            trace.bad_samples.iter().for_each(|sample| eprintln!("  {sample}"));
        }
        match &self.volume {
            Some(name) => trace.volume(name).with_context(|| self.trace.display().to_string()),
            None => Ok(trace),
        }
    }
}

impl Source {
    /// A line for people.
    pub fn line(&self) -> String {
        let responses = match self.response_times {
            "recorded" => "recorded response times".to_string(),
            _ => format!("no response times: served first come first served by the model of {}", self.disk),
        };
        format!("{} ({}, {responses})\n", self.trace, self.format)
    }
}

/// The disk model in a file, or the default one.
pub fn disk_model(path: Option<&Path>) -> anyhow::Result<DiskModel> {
    let Some(path) = path else {
        return Ok(DiskModel::ultrastar_15k450());
    };
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    DiskModel::from_toml(&text).with_context(|| path.display().to_string())
}
