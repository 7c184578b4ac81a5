//! Traces into files, so that other tools can use them.

use std::io::{self, Write};
use std::path::Path;

use super::formats::{FORMATS, Format, Writer};
use super::store::ParquetWriter;
use super::{Columns, Provenance};

/// What can be written.
#[derive(Clone, Copy)]
pub enum Target {
    /// Parquet, which keeps everything.
    Parquet,
    /// One of the formats that have a writer.
    Format(&'static Format),
}

impl Target {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let formats = FORMATS.iter().filter(|format| format.writer.is_some()).map(Self::Format);
        std::iter::once(Self::Parquet).chain(formats)
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|target| target.name() == name)
    }

    /// The one whose files end like this one, not counting `.gz` and the like.
    pub fn of_path(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_string_lossy().to_lowercase();
        let plain = [".gz", ".zst"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
        Self::all().find(|target| plain.ends_with(&format!(".{}", target.extension())))
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Format(format) => format.name,
        }
    }

    /// How the names of its files end, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Format(format) => format.writer.as_ref().map_or("", |writer| writer.extension),
        }
    }

    /// Whether it keeps response times.
    pub fn keeps_responses(self) -> bool {
        match self {
            Self::Parquet => true,
            Self::Format(format) => format.writer.as_ref().is_some_and(|writer| writer.keeps_responses),
        }
    }
}

/// A trace being written.
pub enum TraceWriter<W: Write + Send> {
    /// As Parquet.
    Parquet(Box<ParquetWriter<W>>),
    /// As a text of some format.
    Text(Box<dyn Writer>, W),
}

impl<W: Write + Send> TraceWriter<W> {
    /// Begins a file for a trace that comes from there.
    ///
    /// # Errors
    /// What `out` says.
    pub fn new(target: Target, out: W, provenance: &Provenance) -> io::Result<Self> {
        match target {
            Target::Parquet => Ok(Self::Parquet(Box::new(ParquetWriter::new(out, provenance)?))),
            Target::Format(format) => match &format.writer {
                Some(output) => Ok(Self::Text((output.writer)(provenance), out)),
                None => Err(io::Error::other(format!("{} cannot be written", format.name))),
            },
        }
    }

    /// Writes requests in order of arrival, the first of the trace at time zero.
    ///
    /// # Errors
    /// What the file says, or what the format cannot hold.
    pub fn write(&mut self, requests: &Columns) -> io::Result<()> {
        match self {
            Self::Parquet(writer) => writer.write(requests),
            Self::Text(writer, out) => writer.write(requests, out),
        }
    }

    /// Where it goes.
    pub fn get_ref(&self) -> &W {
        match self {
            Self::Parquet(writer) => writer.get_ref(),
            Self::Text(_, out) => out,
        }
    }

    /// Ends the file.
    ///
    /// # Errors
    /// What the file says.
    pub fn finish(self) -> io::Result<W> {
        match self {
            Self::Parquet(writer) => writer.finish(),
            Self::Text(_, mut out) => out.flush().map(|()| out),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::trace::{Op, ReadOptions, Request, Trace, parse_bytes};
    use crate::{Bytes, Nanos};

    fn trace() -> Trace {
        let mut columns = Columns::default();
        columns.volume_id("asu1");
        for k in 0..50u64 {
            let op = if k % 3 == 0 { Op::Write } else { Op::Read };
            let (arrival, offset) = (Nanos(k * k * 1_000_000), Bytes((k * 7 % 50) << 12));
            columns.push(Request {
                arrival,
                offset,
                op,
                length: 4096,
                response: Some(Nanos(k * 100)),
                ..Request::default()
            });
        }
        Trace::from_columns(Provenance { resolution: Nanos(1), ..Provenance::default() }, columns)
    }

    #[test]
    fn every_target_reads_back_as_the_format_that_it_is() {
        let trace = trace();
        for target in Target::all() {
            let mut writer = TraceWriter::new(target, Vec::new(), &trace.provenance).unwrap();
            writer.write(&trace.columns).unwrap();
            let bytes = writer.finish().unwrap();
            let again = parse_bytes("t", &bytes, &ReadOptions::default()).unwrap();
            assert_eq!(again.provenance.format, target.name());
            let plain = |r: Request| (r.arrival, r.offset, r.length, r.op);
            assert!(again.requests().map(plain).eq(trace.requests().map(plain)), "{}", target.name());
            assert_eq!(again.columns.has_responses(), target.keeps_responses(), "{}", target.name());
            let path = format!("some.{}.gz", target.extension());
            assert_eq!(Target::of_path(Path::new(&path)).unwrap().name(), target.name());
        }
        assert!(Target::named("srt").is_none());
    }

    /// Names as Parquet may hold them: of any characters, of those that mean something in a text, nearly alike, and long ones.
    fn names() -> impl Strategy<Value = Vec<String>> {
        let name = prop_oneof![
            "[,_ \n\r\t0-9a\u{1b}\u{0}\u{3000}+-]{0,6}",
            "[a,_]_0",
            "\\PC{0,20}",
            "[a,]{250,255}",
            "é{120,126}_7"
        ];
        prop::collection::btree_set(name, 1..9).prop_map(|names| names.into_iter().collect())
    }

    proptest! {
        #[test]
        fn whatever_is_written_reads_back(
            names in names(),
            rows in prop::collection::vec((0u64..1 << 40, any::<u64>(), any::<u32>(), any::<bool>(), any::<u16>(), any::<u64>()), 1..20),
            origin in prop_oneof![Just(0), any::<u64>().prop_map(|at| at >> 1)],
        ) {
            for target in Target::all() {
                let mut columns = Columns::default();
                // Blkreplay's format holds one volume.
                let most = if target.name() == "blkreplay" { 1 } else { names.len() };
                names[..most].iter().for_each(|name| assert!(columns.volume_id(name).is_some()));
                for &(arrival, offset, length, write, volume, response) in &rows {
                    let op = if write { Op::Write } else { Op::Read };
                    let volume = volume % most as u16;
                    let response = Some(Nanos(response >> (response % 64)));
                    columns.push(Request {
                        arrival: Nanos(arrival), offset: Bytes(offset), length, op, volume, response, ..Request::default()
                    });
                }
                let mut trace = Trace::from_columns(Provenance { resolution: Nanos(1), ..Provenance::default() }, columns);
                trace.provenance.origin = Nanos(origin);
                let mut writer = TraceWriter::new(target, Vec::new(), &trace.provenance).unwrap();
                writer.write(&trace.columns).unwrap();
                let bytes = writer.finish().unwrap();
                let again = parse_bytes("t", &bytes, &ReadOptions::default());
                let again = again.unwrap_or_else(|error| panic!("{}: {error}", target.name()));
                prop_assert_eq!((again.provenance.format, again.len()), (target.name(), trace.len()));
                let mut alike = std::collections::BTreeMap::new();
                let mut back = std::collections::BTreeMap::new();
                for (before, after) in trace.requests().zip(again.requests()) {
                    prop_assert_eq!((before.op, before.offset.0 / 512), (after.op, after.offset.0 / 512), "{}", target.name());
                    prop_assert_eq!(*alike.entry(before.volume).or_insert(after.volume), after.volume, "{}", target.name());
                    prop_assert_eq!(*back.entry(after.volume).or_insert(before.volume), before.volume, "{}", target.name());
                }
            }
        }
    }
}
