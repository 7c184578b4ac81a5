//! Standard output and standard error: text or JSON, and no complaint when the reader has seen enough. Whatever names traces, paths
//! and devices have, nothing reaches a terminal that it would obey.

use std::collections::HashSet;
use std::fs::{FileType, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::Context;
use console::Term;
use idlewise::report::printable;
use idlewise::trace::{self, Found, metadata_of_found};
use idlewise_linux::{Destination, Replacement, metadata_at};
use serde::Serialize;

use crate::exit::UsageError;
use crate::{live, made, screen};

/// Columns of a usual terminal: no table is wider for usual values.
pub const TERMINAL: usize = 80;

/// Says a line on standard error, as `format!` puts it together.
macro_rules! say {
    ($($text:tt)*) => { $crate::output::say_line(&format!($($text)*)) };
}
pub(crate) use say;

/// Says a line on standard error.
pub fn say_line(line: &str) {
    screen::say(folded(&printable::one_line(line), &Term::stderr()) + "\n");
}

/// Prints a text of lines while there still is other work, which does not wait for it; [`screen::finish`] tells how that went.
pub fn text_meanwhile(text: &str) {
    screen::print(folded(&printable::lines(text), &Term::stdout()));
}

/// Prints a text of lines.
pub fn text(text: &str) -> anyhow::Result<()> {
    print(&folded(&printable::lines(text), &Term::stdout()))
}

/// The sentences folded between words where they are shown on a terminal.
fn folded(text: &str, terminal: &Term) -> String {
    let width = terminal.is_term().then(|| terminal.size_checked()).flatten();
    width.map_or(text.into(), |(_, columns)| fold(text, usize::from(columns)))
}

/// Lines of more than `width` columns go on in the next, below the text where a name stands before it. Those of tables, whose
/// columns are two spaces apart, stay as they are.
fn fold(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for line in text.split_inclusive('\n') {
        let begin = line.len() - line.trim_start_matches(' ').len();
        let hang = line[begin..].find("  ").map_or(begin, |gap| {
            let rest = &line[begin + gap..];
            begin + gap + rest.len() - rest.trim_start_matches(' ').len()
        });
        if line.trim_end().chars().count() <= width || line[hang..].contains("  ") {
            out += line;
            continue;
        }
        out += &line[..hang];
        let indent = line[..hang].chars().count();
        let mut column = indent;
        for word in line[hang..].split_inclusive(' ') {
            if column > indent && column + word.trim_end().chars().count() > width {
                out.truncate(out.trim_end_matches(' ').len());
                out += &format!("\n{:indent$}", "");
                column = indent;
            }
            out += word;
            column += word.chars().count();
        }
    }
    out
}

/// The work is over: only its result is to be delivered.
fn print(text: &str) -> anyhow::Result<()> {
    live::work_is_over();
    screen::print(text.into());
    screen::finish().context("standard output")
}

/// Whether a path is standard output, which a result may go to.
pub fn is_stdout(path: &Path) -> bool {
    let names = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/proc/thread-self/fd/1"];
    names.iter().any(|name| path == Path::new(name))
}

/// Prints a value as JSON, with what made it.
pub fn json(value: &impl Serialize) -> anyhow::Result<()> {
    let value = made::stamped(serde_json::to_value(value)?)?;
    print(&printable::json(&(serde_json::to_string_pretty(&value)? + "\n")))
}

/// Writes a value as JSON to a file, with what made it.
pub fn json_file(path: &Path, value: &impl Serialize) -> anyhow::Result<()> {
    let value = made::stamped(serde_json::to_value(value)?)?;
    file(path, &printable::json(&(serde_json::to_string_pretty(&value)? + "\n")))
}

/// Prints values as a list in JSON, each with what made it; one at a time, as there may be many.
pub fn json_list<T: Serialize>(values: impl IntoIterator<Item = T>) -> anyhow::Result<()> {
    let mut before = "[\n  ";
    for value in values {
        let text = serde_json::to_string_pretty(&made::stamped(serde_json::to_value(value)?)?)?;
        print(&(before.to_owned() + &printable::json(&text.replace('\n', "\n  "))))?;
        before = ",\n  ";
    }
    print(if before.starts_with(',') { "\n]\n" } else { "[]\n" })
}

/// Makes sure that a file can be written before the work whose result it will hold; it is not touched.
pub fn check(path: Option<&Path>) -> anyhow::Result<()> {
    let Some(path) = path else { return Ok(()) };
    let shown = path.display();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let there = metadata_at(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            anyhow::anyhow!("{shown}: there is no folder {}", folder.display())
        }
        _ => anyhow::Error::from(error).context(shown.to_string()),
    })?;
    // A pipe or a terminal is written as it is, wherever it lies.
    let is_straight = |kind: FileType| !kind.is_file() && !kind.is_dir() && !kind.is_block_device();
    if there.as_ref().is_some_and(|there| is_straight(there.file_type())) {
        return Ok(());
    }
    anyhow::ensure!(!there.is_some_and(|there| there.is_dir()), "{shown}: is a folder");
    // The file is begun, and has no name yet.
    Replacement::new(path).map(drop).with_context(|| format!("{shown}: it cannot be written there"))
}

/// Whether nothing is at a path yet, as far as it may be looked at.
pub fn is_free(path: &Path) -> bool {
    metadata_at(path).is_ok_and(|there| there.is_none())
}

/// Makes sure that results can be written, and that none replaces what is read, a file of a folder that is read, or another result.
pub fn check_all(inputs: &[PathBuf], outputs: &[Option<&Path>]) -> anyhow::Result<()> {
    check_beside(inputs, None, outputs)
}

/// The same with an input that nobody has named.
pub fn check_beside(inputs: &[PathBuf], found: Option<&Found>, outputs: &[Option<&Path>]) -> anyhow::Result<()> {
    // Standard input and output are no files of that name.
    let outputs: Vec<_> = outputs.iter().flatten().filter(|path| path.as_os_str() != "-").collect();
    if outputs.is_empty() {
        return Ok(());
    }
    let found = found.and_then(|found| metadata_of_found(found).ok().flatten());
    let named = inputs.iter().filter_map(|input| itself(input).metadata().ok());
    let (folders, files): (Vec<_>, Vec<_>) = named.chain(found).partition(Metadata::is_dir);
    let mut files: HashSet<_> = files.iter().map(number).collect();
    files.extend(inputs.iter().flat_map(|input| numbers_of_files(itself(input))));
    let mut results = HashSet::new();
    for path in outputs {
        check(Some(path))?;
        let shown = || path.display().to_string();
        let place = Destination::find(path).with_context(shown)?;
        let there = place.metadata().with_context(shown)?;
        let (folder, name) = place.place().with_context(shown)?;
        let is_new = results.insert((folder, name.to_os_string()));
        let within = |folder: &Metadata| place.is_within(number(folder)).unwrap_or(true);
        // What is there may have other names; beside what a folder has there is room.
        if !is_new || there.is_some_and(|there| folders.iter().any(within) || !files.insert(number(&there))) {
            let why = format!("{}: is read, or another result, and would be replaced: name another file", shown());
            return Err(UsageError(why).into());
        }
    }
    Ok(())
}

/// An input, for `-` what standard input is.
fn itself(input: &Path) -> &Path {
    if input == Path::new("-") { Path::new("/proc/self/fd/0") } else { input }
}

/// The files of an input, but for what lies behind links of other users: that is not read.
fn numbers_of_files(input: &Path) -> impl Iterator<Item = (u64, u64)> {
    let folder = if input.is_dir() { input } else { input.parent().unwrap_or(Path::new("")) }.to_path_buf();
    let files = trace::expand(input).unwrap_or_default();
    let known = move |path| metadata_of_found(&Found { path, folder: folder.clone() }).ok().flatten();
    files.into_iter().filter_map(known).map(|found| number(&found))
}

fn number(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

/// Writes a text file whole or not at all.
pub fn file(path: &Path, content: &str) -> anyhow::Result<()> {
    bytes(path, content.as_bytes())
}

/// Writes a file whole or not at all.
pub fn bytes(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    idlewise_linux::replace_file(path, content).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_folded_and_tables_are_not() {
        assert_eq!(fold("one two three\n  four five six\nend", 9), "one two\nthree\n  four\n  five\n  six\nend");
        assert_eq!(fold("a table  of three  columns\n", 9), "a table  of three  columns\n");
        assert_eq!(fold("  µ   one two three\n", 9), "  µ   one\n      two\n      three\n");
        assert_eq!(fold("a_long_word and\n", 4), "a_long_word\nand\n");
        assert_eq!(fold("exactly it\n", 10), "exactly it\n");
        assert_eq!(fold("one\n\n", 2), "one\n\n");
    }
}
