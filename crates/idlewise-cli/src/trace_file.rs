//! Traces being written: whole or not at all, compressed as their names say.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use flate2::Compression;
use flate2::write::GzEncoder;
use idlewise::Bytes;
use idlewise::report::printable;
use idlewise::trace::write::{Target, TraceWriter};
use idlewise::trace::{Columns, Provenance};
use idlewise_linux::Replacement;

use crate::exit::UsageError;
use crate::input::list;
use crate::output;

/// Where a trace goes, and as what.
#[derive(clap::Args)]
pub struct OutArguments {
    /// The trace to write; compressed if its name ends in .gz or .zst; - for standard output
    #[arg(long, short, value_name = "FILE")]
    pub out: PathBuf,

    /// Its format, one of the targets listed below [default: by the file's ending]
    #[arg(long, value_name = "NAME")]
    format: Option<String>,
}

impl OutArguments {
    /// The format to write.
    pub fn target(&self) -> anyhow::Result<Target> {
        let names = || Target::all().map(Target::name).collect::<Vec<_>>().join(", ");
        let usage = |problem: String| UsageError(format!("{problem}: --format takes {}", names()));
        match &self.format {
            Some(name) => Ok(Target::named(name).ok_or_else(|| usage(format!("no format '{name}' to write")))?),
            None => {
                let unknown =
                    || usage(format!("{}: the name does not say in which format to write", self.out.display()));
                Ok(Target::of_path(&self.out).ok_or_else(unknown)?)
            }
        }
    }
}

impl OutArguments {
    /// Several files cannot all go to standard output.
    pub fn check_parts(&self, several: bool) -> anyhow::Result<()> {
        if several && output::is_stdout(&self.out) {
            return Err(UsageError("--out -: several files need a name, to which their parts are added".into()).into());
        }
        Ok(())
    }
}

/// The part of `--help` that lists what can be written.
pub fn targets_help() -> String {
    let about = |target: Target| match (target, target.keeps_responses()) {
        (Target::Parquet, _) => format!("keeps everything; .{}", target.extension()),
        (_, true) => format!("keeps response times; .{}", target.extension()),
        _ => format!("arrivals only; .{}", target.extension()),
    };
    let targets: Vec<_> = Target::all().map(|target| (target.name(), about(target))).collect();
    let targets = targets.iter().map(|(name, about)| (*name, about.as_str()));
    list("Targets", targets)
}

/// One trace being written.
pub struct TraceFile {
    path: PathBuf,
    writer: TraceWriter<Sink>,
}

enum Sink {
    Plain(BufWriter<Replacement>),
    Gzip(GzEncoder<BufWriter<Replacement>>),
    Zstd(zstd::Encoder<'static, BufWriter<Replacement>>),
    Stdout(BufWriter<Shown>),
}

/// Standard output, where a terminal is not sent what it would obey.
struct Shown(io::Stdout);

impl Write for Shown {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.0.is_terminal() {
            return self.0.write(bytes);
        }
        self.0.write_all(printable::lines(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl TraceFile {
    /// Begins a file; nothing is seen of it before it is finished.
    pub fn create(path: &Path, target: Target, provenance: &Provenance) -> anyhow::Result<Self> {
        let sink = Sink::open(path).with_context(|| path.display().to_string())?;
        let writer = TraceWriter::new(target, sink, provenance).with_context(|| path.display().to_string())?;
        Ok(Self { path: path.into(), writer })
    }

    /// Writes requests in order of arrival.
    pub fn write(&mut self, requests: &Columns) -> anyhow::Result<()> {
        self.writer.write(requests).with_context(|| self.path.display().to_string())
    }

    /// How much its file system can still take, where it is a file.
    pub fn room(&self) -> Option<Bytes> {
        self.file()?.room()
    }

    /// Number of the device that its file system is on, where it is a file.
    pub fn device(&self) -> Option<u64> {
        self.file()?.device()
    }

    fn file(&self) -> Option<&Replacement> {
        match self.writer.get_ref() {
            Sink::Plain(file) => Some(file.get_ref()),
            Sink::Gzip(encoder) => Some(encoder.get_ref().get_ref()),
            Sink::Zstd(encoder) => Some(encoder.get_ref().get_ref()),
            Sink::Stdout(_) => None,
        }
    }

    /// Puts the file in its place.
    pub fn finish(self) -> anyhow::Result<()> {
        self.writer.finish().and_then(Sink::commit).with_context(|| self.path.display().to_string())
    }
}

impl Sink {
    fn open(path: &Path) -> io::Result<Self> {
        if output::is_stdout(path) {
            return Ok(Self::Stdout(BufWriter::new(Shown(io::stdout()))));
        }
        let file = BufWriter::new(Replacement::new(path)?);
        Ok(match path.extension().and_then(|extension| extension.to_str()) {
            Some("gz") => Self::Gzip(GzEncoder::new(file, Compression::default())),
            Some("zst") => Self::Zstd(zstd::Encoder::new(file, zstd::DEFAULT_COMPRESSION_LEVEL)?),
            _ => Self::Plain(file),
        })
    }

    fn commit(self) -> io::Result<()> {
        let file = match self {
            Self::Plain(file) => file,
            Self::Gzip(encoder) => encoder.finish()?,
            Self::Zstd(encoder) => encoder.finish()?,
            Self::Stdout(mut out) => return out.flush(),
        };
        file.into_inner()?.commit()
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
            Self::Zstd(encoder) => encoder.write(bytes),
            Self::Stdout(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.flush(),
            Self::Gzip(encoder) => encoder.flush(),
            Self::Zstd(encoder) => encoder.flush(),
            Self::Stdout(out) => out.flush(),
        }
    }
}

/// Names of the files of parts: `out.csv.gz` and `usr_0` give `out.usr_0.csv.gz`.
pub struct PartPaths {
    out: PathBuf,
    /// Those that are given away, by part.
    given: HashMap<String, PathBuf>,
    taken: HashSet<PathBuf>,
    /// How many parts have a name that is this as far as files can be called so.
    alike: HashMap<String, u64>,
}

/// The longest name of a part in bytes: that of a file may have 255.
const LONGEST_PART: usize = 200;

impl PartPaths {
    /// They will be named after `out`.
    pub fn new(out: PathBuf) -> Self {
        Self { out, given: HashMap::new(), taken: HashSet::new(), alike: HashMap::new() }
    }

    /// The file of a part, which is that of no other whose name differs only by what files cannot be called.
    pub fn of(&mut self, part: &str) -> PathBuf {
        if let Some(path) = self.given.get(part) {
            return path.clone();
        }
        let mut safe: String =
            part.chars().map(|c| if c.is_alphanumeric() || "-_".contains(c) { c } else { '-' }).collect();
        while safe.len() > LONGEST_PART {
            safe.pop();
        }
        loop {
            let alike = self.alike.entry(safe.clone()).or_default();
            *alike += 1;
            let name = if *alike == 1 { safe.clone() } else { format!("{safe}-{alike}") };
            let path = self.path(&name);
            if self.taken.insert(path.clone()) {
                self.given.insert(part.into(), path.clone());
                return path;
            }
        }
    }

    fn path(&self, part: &str) -> PathBuf {
        let name = self.out.file_name().unwrap_or_default().to_string_lossy();
        let (stem, ending) = name.split_once('.').map_or((name.as_ref(), String::new()), |(s, e)| (s, format!(".{e}")));
        self.out.with_file_name(format!("{stem}.{part}{ending}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_named_before_the_ending_and_each_has_its_own() {
        let of = |out: &str, parts: &[&str]| {
            let mut paths = PartPaths::new(out.into());
            parts.iter().map(|part| paths.of(part).display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(of("a/out.csv.gz", &["usr_0"]), ["a/out.usr_0.csv.gz"]);
        assert_eq!(
            of("out", &["/dev/sda", "-dev-sda", "/dev/sda"]),
            ["out.-dev-sda", "out.-dev-sda-2", "out.-dev-sda"]
        );
        let long = of("out", &[&"\u{e9}".repeat(128), &"\u{e9}".repeat(127)]);
        assert!(long[0] != long[1] && long.iter().all(|path| path.len() <= 255), "{long:?}");
    }
}
