//! `idlewise trace convert` and `merge`: the same requests in another format, of one trace or of several.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use idlewise::trace::write::Target;
use idlewise::trace::{Columns, Provenance, ReadOptions};
use serde::Serialize;

use crate::exit::Exit;
use crate::input::{ReadArguments, TraceArguments, formats_help};
use crate::output::{self, say};
use crate::trace_file::{OutArguments, PartPaths, TraceFile, targets_help};

/// Write a trace in another format: Parquet for other tools, or text
#[derive(clap::Args)]
#[command(after_help = both_helps())]
pub struct Arguments {
    #[command(flatten)]
    input: TraceArguments,

    #[command(flatten)]
    out: OutArguments,

    /// Write each volume to a file of its own, with its name before the ending
    #[arg(long)]
    by_volume: bool,

    /// Print one JSON object instead of a line
    #[arg(long)]
    json: bool,
}

/// Merge traces by time into one
#[derive(clap::Args)]
#[command(after_help = both_helps())]
pub struct MergeArguments {
    #[command(flatten)]
    input: TraceArguments,

    #[command(flatten)]
    out: OutArguments,

    /// Put the file's name before the names of its volumes: volumes with the same name in different files are different disks
    #[arg(long)]
    by_file: bool,

    /// Let all traces start at the same moment, whatever their clocks say
    #[arg(long)]
    align: bool,

    /// Print one JSON object instead of a line
    #[arg(long)]
    json: bool,
}

/// What was written.
#[derive(Serialize)]
pub struct Written {
    format: &'static str,
    requests: u64,
    files: Vec<String>,
    /// Whether the trace had response times and the format does not keep them.
    responses_dropped: bool,
    /// Requests whose response is not known, and was written as zero because the format has no way to say so.
    zero_responses: u64,
}

/// Files that are written: most systems let a process have 1,024 open.
const MOST_FILES: usize = 900;

/// What all of the commands that write traces list.
pub fn both_helps() -> String {
    format!("{}\n\n{}", targets_help(), formats_help())
}

/// Runs `convert`.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let Arguments { input, out, by_volume, json } = arguments;
    let written = write(&input.read, &input.traces, input.read.options(), out, *by_volume)?;
    written.report(*json)
}

/// Runs `merge`.
pub fn run_merge(arguments: &MergeArguments) -> anyhow::Result<Exit> {
    let MergeArguments { input, out, by_file, align, json } = arguments;
    let options = ReadOptions { by_file: *by_file, aligned: *align, ..input.read.options() };
    write(&input.read, &input.traces, options, out, false)?.report(*json)
}

fn write(
    read: &ReadArguments,
    traces: &[PathBuf],
    options: ReadOptions,
    out: &OutArguments,
    by_volume: bool,
) -> anyhow::Result<Written> {
    let target = out.target()?;
    out.check_parts(by_volume)?;
    output::check_all(traces, &[Some(&out.out)])?;
    let begin = |_: &Provenance| Ok(Parts::new(out.out.clone(), target, traces));
    let take = |parts: &mut Parts, columns: Columns, provenance: &Provenance| {
        if by_volume {
            return parts.write_volumes(columns, provenance);
        }
        parts.write(out.out.clone(), &columns, provenance)
    };
    let (parts, _) = read.stream(traces, options, begin, take)?;
    parts.finish()
}

/// The files that a trace is written to.
pub struct Parts {
    out: PathBuf,
    target: Target,
    /// What is read, which none of them is to replace.
    inputs: Vec<PathBuf>,
    /// Those that are written to.
    open: HashMap<PathBuf, TraceFile>,
    /// All of them, in the order of their first requests.
    paths: Vec<PathBuf>,
    /// The files of parts, where each has its own.
    parts: PartPaths,
    requests: u64,
    had_responses: bool,
    unknown_responses: u64,
}

impl Parts {
    /// No file yet; they will be named after `out`.
    pub fn new(out: PathBuf, target: Target, inputs: &[PathBuf]) -> Self {
        Self {
            parts: PartPaths::new(out.clone()),
            out,
            target,
            inputs: inputs.to_vec(),
            open: HashMap::new(),
            paths: Vec::new(),
            requests: 0,
            had_responses: false,
            unknown_responses: 0,
        }
    }

    /// Writes requests to the file at `path`, new or begun.
    pub fn write(&mut self, path: PathBuf, columns: &Columns, provenance: &Provenance) -> anyhow::Result<()> {
        if !self.open.contains_key(&path) && self.paths.len() == MOST_FILES {
            anyhow::bail!(
                "{}: more than {MOST_FILES} files: read fewer volumes with --volume, or split at longer gaps",
                self.out.display()
            );
        }
        if !self.open.contains_key(&path) && !output::is_free(&path) {
            output::check_all(&self.inputs, &[Some(&path)])?;
        }
        let file = match self.open.entry(path) {
            Entry::Occupied(begun) => begun.into_mut(),
            Entry::Vacant(new) => {
                let file = TraceFile::create(new.key(), self.target, provenance)?;
                self.paths.push(new.key().clone());
                new.insert(file)
            }
        };
        self.requests += columns.len() as u64;
        self.unknown_responses += (columns.len() - columns.responses().count()) as u64;
        self.had_responses |= columns.has_responses();
        file.write(columns)
    }

    /// Puts the files so far in their places: there will be no more requests for them.
    pub fn finish_open(&mut self) -> anyhow::Result<()> {
        self.open.drain().try_for_each(|(_, file)| file.finish())
    }

    fn write_volumes(&mut self, columns: Columns, provenance: &Provenance) -> anyhow::Result<()> {
        let mut volumes: BTreeMap<u16, Columns> = BTreeMap::new();
        for request in columns.requests() {
            let part = volumes.entry(request.volume).or_insert_with(|| {
                let mut part = Columns::default();
                part.volume_id(&columns.volumes[usize::from(request.volume)]);
                part
            });
            part.push(idlewise::trace::Request { volume: 0, ..request });
        }
        for volume in volumes.values() {
            let path = self.parts.of(&volume.volumes[0]);
            self.write(path, volume, provenance)?;
        }
        Ok(())
    }

    /// The file of a part.
    pub fn part_path(&mut self, part: &str) -> PathBuf {
        self.parts.of(part)
    }

    /// Puts all files in their places.
    pub fn finish(mut self) -> anyhow::Result<Written> {
        let responses_dropped = self.had_responses && !self.target.keeps_responses();
        self.finish_open()?;
        let files = self.paths.iter().map(|path| path.display().to_string()).collect();
        let zero_responses = if self.target.name() == "msr" { self.unknown_responses } else { 0 };
        Ok(Written { format: self.target.name(), requests: self.requests, files, responses_dropped, zero_responses })
    }
}

impl Written {
    /// Says what was written: on standard error where the trace itself went to standard output.
    pub fn report(&self, json: bool) -> anyhow::Result<Exit> {
        if self.responses_dropped {
            say!("idlewise: {} does not keep response times; parquet and msr do", self.format);
        }
        if self.zero_responses > 0 {
            say!(
                "idlewise: {} requests have no response time, which msr cannot say: it is written as 0; parquet keeps it unknown",
                self.zero_responses
            );
        }
        if self.files.iter().any(|file| output::is_stdout(file.as_ref())) {
            return Ok(Exit::Clean);
        }
        if json {
            output::json(self)?;
        } else {
            output::text(&format!("{} requests ({}): {}\n", self.requests, self.format, self.files.join(", ")))?;
        }
        Ok(Exit::Clean)
    }
}
