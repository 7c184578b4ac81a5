//! `idlewise trace formats`: which formats of traces are read, and which are written.

use idlewise::trace::formats::FORMATS;
use idlewise::trace::write::Target;
use serde::Serialize;

use crate::exit::Exit;
use crate::input::list;
use crate::output;

/// List the formats of traces
///
/// The format of a trace is found by its content, whatever its name, and whether it is plain or compressed (gzip, xz, zstd, bzip2),
/// in a folder or in a tar archive. A table in any other format is read with --columns.
#[derive(clap::Args)]
pub struct Arguments {
    /// Print a list of JSON objects instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Format {
    name: &'static str,
    about: &'static str,
    /// How the names of files end that are written in it, if it is written.
    written_as: Option<String>,
    /// Whether writing it keeps response times.
    keeps_response_times: Option<bool>,
}

const PARQUET: &str = "what `trace convert` and `capture` write: arrival, issue and completion in ns";

fn formats() -> Vec<Format> {
    let known = FORMATS.iter().map(|format| (format.name, format.about)).chain([("parquet", PARQUET)]);
    let format = |(name, about)| {
        let target = Target::named(name);
        let written_as = target.map(|target| format!(".{}", target.extension()));
        Format { name, about, written_as, keeps_response_times: target.map(Target::keeps_responses) }
    };
    known.map(format).collect()
}

/// Lists them.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let formats = formats();
    if arguments.json {
        return output::json(&formats).map(|()| Exit::Clean);
    }
    let (written, read): (Vec<_>, Vec<_>) = formats.iter().partition(|format| format.written_as.is_some());
    let lines = |title: &str, formats: Vec<&Format>| list(title, formats.into_iter().map(|f| (f.name, f.about)));
    let (written, read) = (lines("Read, and written by `trace convert`", written), lines("Read", read));
    let other = "Any other table: --columns time=1:us,offset=3:sectors512,length=4:bytes,op=2:R/W";
    output::text(&format!("{written}\n\n{read}\n\n{other}\n"))?;
    Ok(Exit::Clean)
}
