//! The arguments that say which trace and which disk, and their reading.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use idlewise::disk::{DiskModel, PRESETS, Preset};
use idlewise::idle::{Idleness, Keep, Reducer};
use idlewise::report::printable::one_line;
use idlewise::trace::volumes::{fits, natural};
use idlewise::trace::{
    self, Columns, CsvLayout, Found, GapFinder, Provenance, ReadOptions, Reader, Trace, TraceError, Unmatched,
};
use idlewise::tune::PlanFile;
use idlewise::{Bytes, Nanos};
use idlewise_linux::half_of_free_memory;
use serde::Serialize;

use crate::output::{self, say};
use crate::progress::Progress;

/// Mean response of a modelled disk that does not keep up.
const OVERLOADED: Nanos = Nanos::from_secs(1);

/// The heading of options that say how a trace is read.
const READING: &str = "Reading the trace";

/// How traces are read.
#[derive(Args)]
pub struct ReadArguments {
    /// Leave out records that cannot be read, and count them, instead of stopping at the first one
    #[arg(long, help_heading = READING)]
    skip_bad: bool,

    /// Read only this volume, or those that fit a pattern such as 'hm_*'; may be repeated. By default all volumes are read, each as
    /// a disk of its own
    #[arg(long, value_name = "NAME", help_heading = READING)]
    pub volume: Vec<String>,

    /// Read a table with these columns, counted from 1, such as
    /// time=1:us,offset=3:sectors512,length=4:bytes,op=2:R/W,volume=5,response=6:us,separator=tab
    #[arg(long, value_name = "LIST", help_heading = READING)]
    columns: Option<CsvLayout>,

    /// Largest space for temporary files, into which archives are unpacked [default: half of the free space of their
    /// folder]
    #[arg(long, value_name = "SIZE", help_heading = READING)]
    spool_limit: Option<Bytes>,
}

/// One trace.
#[derive(Args)]
pub struct TraceArguments {
    /// Block I/O trace: a file, several files that are one trace together, a folder, a tar archive, or - for standard input. The
    /// format is found by the content; files may be compressed
    #[arg(required = true, value_name = "TRACE")]
    pub traces: Vec<PathBuf>,

    #[command(flatten)]
    pub read: ReadArguments,
}

/// A trace and the disk it ran on.
#[derive(Args)]
pub struct TraceOnDisk {
    #[command(flatten)]
    trace: TraceArguments,

    #[command(flatten)]
    disk: DiskArguments,
}

/// The model of a disk.
#[derive(Args)]
pub struct DiskArguments {
    /// Disk model: a file that `idlewise probe` wrote, or the name of a kind of drive, such as nearline; `--disk list` shows
    /// them [default: 15k]
    #[arg(long, value_name = "FILE|NAME", value_parser = disk_or_list, help_heading = READING)]
    disk: Option<PathBuf>,
}

/// The part of `--help` that says where the trace formats are listed.
pub fn formats_help() -> String {
    "`idlewise trace formats` lists the formats of traces.".into()
}

/// A list for `--help`, from a table.
pub fn list<'a>(title: &str, lines: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let lines: Vec<_> = lines.collect();
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 2;
    let lines = lines.iter().map(|(name, about)| format!("\n  {name:<width$}{about}"));
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
    /// `recorded`, `modelled` where the trace has no response times, or `partly recorded`.
    pub response_times: &'static str,
    /// Requests whose response time is the model's.
    pub responses_modelled: u64,
    /// Holes between sessions, or jumps of the clock, that count as idle time.
    pub holes: usize,
}

impl TraceOnDisk {
    /// The files that are read.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.trace.traces.iter().chain(&self.disk.disk).cloned().collect()
    }

    /// Reads the trace and reduces it to idle intervals.
    pub fn read(&self) -> anyhow::Result<Input> {
        self.read_keeping(Keep::default())
    }

    /// Another trace, read in the same way.
    pub fn read_other(&self, path: &Path) -> anyhow::Result<Input> {
        self.trace.read.idleness(&[path.to_path_buf()], self.disk.model()?)
    }

    /// The same, keeping this of each request.
    pub fn read_keeping(&self, keep: Keep) -> anyhow::Result<Input> {
        self.trace.read.idleness_keeping(&self.trace.traces, self.disk.model()?, keep)
    }
}

impl TraceArguments {
    /// What errors and reports call the trace.
    pub fn name(&self) -> String {
        name(&self.traces)
    }
}

/// On one line, as it stands in headings.
fn name(paths: &[PathBuf]) -> String {
    let name = match paths {
        [one] => one.display().to_string(),
        [first, others @ ..] => format!("{} and {} more", first.display(), others.len()),
        [] => String::new(),
    };
    one_line(&name).into_owned()
}

impl ReadArguments {
    /// Reads a trace into memory.
    pub fn whole(&self, paths: &[PathBuf]) -> anyhow::Result<Trace> {
        self.whole_of(paths, &self.volume, &[])
    }

    /// The same, but only of these volumes, if there are any. Of the paths nobody has named those that were `found`.
    pub fn whole_of(&self, paths: &[PathBuf], volumes: &[String], found: &[Found]) -> anyhow::Result<Trace> {
        let progress = Progress::new("reading");
        let share = |done| progress.share(done);
        let trace = trace::open(paths, &ReadOptions { progress: Some(&share), volumes, found, ..self.options() })?;
        drop(progress);
        say_what_was_left_out(&trace.provenance, paths);
        Ok(trace)
    }

    /// Reads a trace batch by batch. `begin` makes what `take` then gives the batches to; it is called again where a trace
    /// turns out to be so far out of order that it must be read whole.
    pub fn stream<T>(
        &self,
        paths: &[PathBuf],
        options: ReadOptions,
        mut begin: impl FnMut(&Provenance) -> anyhow::Result<T>,
        mut take: impl FnMut(&mut T, Columns, &Provenance) -> anyhow::Result<()>,
    ) -> anyhow::Result<(T, Provenance)> {
        let can_go_back = !paths.iter().any(|path| path.as_os_str() == "-");
        let streamed = stream_once(paths, options, &mut begin, &mut take);
        let (taken, provenance) = match streamed {
            Err(error) if can_go_back && matches!(error.downcast_ref(), Some(TraceError::OutOfOrder(_))) => {
                stream_once(paths, ReadOptions { whole: true, ..options }, &mut begin, &mut take)?
            }
            streamed => streamed?,
        };
        say_what_was_left_out(&provenance, paths);
        Ok((taken, provenance))
    }

    /// How these arguments say to read.
    pub fn options(&self) -> ReadOptions<'_> {
        ReadOptions {
            skip_bad: self.skip_bad,
            volumes: &self.volume,
            columns: self.columns.as_ref(),
            spool_limit: self.spool_limit.or_else(half_of_free_space),
            memory_limit: half_of_free_memory(),
            ..ReadOptions::default()
        }
    }

    /// Those of these volumes that were asked for.
    pub fn chosen(&self, volumes: &[impl AsRef<str>]) -> Vec<String> {
        let asked = |name: &&str| self.volume.is_empty() || self.volume.iter().any(|pattern| fits(pattern, name));
        volumes.iter().map(AsRef::as_ref).filter(asked).map(String::from).collect()
    }

    /// Reads a trace and reduces it to idle intervals, with its volumes in the order of their names.
    pub fn idleness(&self, paths: &[PathBuf], model: DiskModel) -> anyhow::Result<Input> {
        self.idleness_keeping(paths, model, Keep::default())
    }

    /// The same, keeping this of each request.
    pub fn idleness_keeping(&self, paths: &[PathBuf], model: DiskModel, keep: Keep) -> anyhow::Result<Input> {
        let reducer = |resolution| Ok::<_, anyhow::Error>(Reducer::new(&model, resolution)?.keeping(keep));
        let begin = |provenance: &Provenance| Ok((reducer(provenance.resolution)?, GapFinder::default()));
        let most = half_of_free_memory().unwrap_or(Bytes(u64::MAX));
        let take = |(reducer, gaps): &mut (Reducer, GapFinder), columns: Columns, _: &Provenance| {
            columns.arrival.iter().for_each(|&arrival| gaps.arrival(arrival));
            reducer.requests(&columns)?;
            anyhow::ensure!(
                reducer.memory() <= most,
                "{}: what is kept of it takes more than {most}, half of the memory that is free: read a part of it by --volume or \
                 `idlewise trace cut`",
                name(paths)
            );
            Ok(())
        };
        let ((reducer, gaps), provenance) = self.stream(paths, self.options(), begin, take)?;
        Reducer::check(provenance.resolution)?;
        let holes = say_holes(&gaps, paths);
        let modelled = reducer.modelled();
        let mut disks = reducer.finish(provenance.origin);
        disks.sort_by(|a, b| natural(&a.volume, &b.volume));
        let requests: u64 = disks.iter().map(|disk| disk.requests).sum();
        let mean_response = disks.iter().map(Idleness::mean_response).max().unwrap_or_default();
        if modelled == requests && mean_response > OVERLOADED {
            say!(
                "idlewise: {}: the model of {} cannot keep up with this trace: requests take {mean_response} on average; --disk \
                 names the model of a faster one",
                name(paths),
                model.name
            );
        }
        let source = Source {
            trace: name(paths),
            format: provenance.format,
            bad_records: provenance.bad_records,
            disk: model.name.clone(),
            response_times: match modelled {
                0 => "recorded",
                some if some == requests => "modelled",
                _ => "partly recorded",
            },
            responses_modelled: modelled,
            holes,
        };
        Ok(Input { disks, model, source })
    }
}

/// Warns of holes in what was read; how many there are.
pub fn say_holes(gaps: &GapFinder, paths: &[PathBuf]) -> usize {
    let holes = gaps.gaps().len();
    if holes > 0 {
        say!(
            "idlewise: {}: holes between sessions, or jumps of the clock ({holes}), count as idle time here: `idlewise trace \
             cut --at-gaps 30min` splits them off",
            name(paths)
        );
    }
    holes
}

fn stream_once<T>(
    paths: &[PathBuf],
    options: ReadOptions,
    begin: &mut impl FnMut(&Provenance) -> anyhow::Result<T>,
    take: &mut impl FnMut(&mut T, Columns, &Provenance) -> anyhow::Result<()>,
) -> anyhow::Result<(T, Provenance)> {
    let progress = Progress::new("reading");
    let share = |done| progress.share(done);
    let mut reader = Reader::open(paths, &ReadOptions { progress: Some(&share), ..options })?;
    let mut taken = begin(&reader.provenance())?;
    reader.each(|columns, provenance| take(&mut taken, columns, provenance))?;
    Ok((taken, reader.provenance()))
}

impl DiskArguments {
    /// The file that is read, if it is one.
    pub fn path(&self) -> Option<PathBuf> {
        self.disk.clone()
    }

    /// The model in the file, or the default one.
    pub fn model(&self) -> anyhow::Result<DiskModel> {
        disk_model(self.disk.as_deref())
    }
}

/// Of the folder of temporary files: it may be in memory.
fn half_of_free_space() -> Option<Bytes> {
    let space = rustix::fs::statvfs(std::env::temp_dir()).ok()?;
    Some(Bytes(space.f_bavail.saturating_mul(space.f_frsize) / 2))
}

/// Says on standard error what was left out of a trace.
fn say_what_was_left_out(provenance: &Provenance, paths: &[PathBuf]) {
    let name = name(paths);
    if let Some(files) = &provenance.passed_over {
        say!("idlewise: {name}: passed over what is no trace: {files}");
    }
    if provenance.bad_records > 0 {
        say!("idlewise: {name}: {} bad records left out", provenance.bad_records);
        provenance.bad_samples.iter().for_each(|sample| say!("  {sample}"));
    }
    let Unmatched { without_completion, without_arrival } = provenance.unmatched;
    if without_completion + without_arrival > 0 {
        say!(
            "idlewise: {name}: {without_completion} requests without a completion; {without_arrival} completions without a \
             request left out"
        );
    }
}

impl Source {
    /// A line for people.
    pub fn line(&self) -> String {
        let responses = match self.response_times {
            "recorded" => "recorded response times".to_string(),
            "partly recorded" => format!(
                "recorded response times but for {} requests, which the model of {} serves",
                self.responses_modelled, self.disk
            ),
            _ => format!("no response times: served first come first served by the model of {}", self.disk),
        };
        format!("{} ({}, {responses})\n", self.trace, self.format)
    }
}

/// A text that people write or look at: no file of ours is larger.
pub fn text_file(path: &Path) -> anyhow::Result<String> {
    const LARGEST: u64 = 16 << 20;
    let name = || path.display().to_string();
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text));
    read.with_context(name)?;
    anyhow::ensure!(text.len() as u64 <= LARGEST, "{}: is larger than 16 MiB", name());
    Ok(text)
}

/// A model's file or name; `list` shows the names and ends, as `--help` does.
fn disk_or_list(text: &str) -> Result<PathBuf, String> {
    if text == "list" {
        let lines = PRESETS.iter().map(|preset| (preset.name, preset.about));
        let ended = output::text(&(list("Disk models", lines) + "\n"));
        std::process::exit(i32::from(ended.is_err()));
    }
    Ok(text.into())
}

/// The disk model in a file or of a name, or the default one.
pub fn disk_model(path: Option<&Path>) -> anyhow::Result<DiskModel> {
    let Some(path) = path else {
        return Ok(DiskModel::ultrastar_15k450());
    };
    // A file of such a name is ./nvme: what a folder happens to hold changes no result.
    if let Some(preset) = path.to_str().and_then(Preset::named) {
        return Ok(preset.model());
    }
    if !path.exists() {
        let names = PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>().join(", ");
        anyhow::bail!("--disk {}: neither a file nor one of {names}", path.display());
    }
    let text = text_file(path)?;
    let model = DiskModel::from_toml(&text).with_context(|| path.display().to_string())?;
    Ok(DiskModel { name: one_line(&model.name).into_owned(), ..model })
}

/// The plan in a file.
pub fn plan_file(path: &Path) -> anyhow::Result<PlanFile> {
    let text = text_file(path)?;
    PlanFile::from_toml(&text).with_context(|| path.display().to_string())
}
