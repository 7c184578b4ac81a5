//! fio iolog: a line `fio version 2 iolog` or `fio version 3 iolog`, then `file action [offset length]`, in version 3
//! behind a time in microseconds. In version 2 time passes only by `file wait microseconds`.

use std::io::{self, Write};

use super::lines::{Fields, Line, Lines, Mistake, Row};
use super::names::WrittenNames;
use super::{Format, Output, Rows, Writer};
use crate::trace::{Columns, Op, Request};
use crate::{Bytes, Nanos};

pub const FORMAT: Format = Format {
    name: "iolog",
    about: "fio iolog 2 and 3: arrivals in us, volumes by file, no response times",
    detect: |head| version(head.split(|&byte| byte == b'\n').next().unwrap_or_default()).is_some(),
    rows: Rows::InOrder,
    resolution: Nanos(MICRO),
    parser: || Box::new(Lines::new(Iolog::default())),
    writer: Some(Output { extension: "iolog", keeps_responses: false, writer: |_| Box::<Out>::default() }),
    sample: || {
        b"fio version 3 iolog\n0 /dev/sdb add\n0 /dev/sdb open\n10 /dev/sdb read 4096 8192\n25 /dev/sdb sync\n\
          30 /dev/sdb write 0 512\n40 /dev/sdb close\n"
            .to_vec()
    },
};

const MICRO: u64 = 1_000;

#[derive(Default)]
struct Iolog {
    version: u8,
    /// The time of version 2.
    clock: u64,
}

/// The version of a first line.
fn version(line: &[u8]) -> Option<u8> {
    match line.trim_ascii() {
        b"fio version 2 iolog" => Some(2),
        b"fio version 3 iolog" => Some(3),
        _ => None,
    }
}

impl Row for Iolog {
    fn row(&mut self, line: Line, out: &mut Columns) -> Result<(), Mistake> {
        const TIME: &str = "a time in microseconds";
        if let Some(version) = version(&line) {
            self.version = version;
            return Ok(());
        }
        let mut fields = Fields::words(line);
        let arrival = match self.version {
            3 => fields.field(TIME)?.time(MICRO, TIME)?,
            _ => Nanos(self.clock),
        };
        let file = fields.field("a file")?;
        let action = fields.field("an action")?;
        let op = match action.text {
            b"read" => Op::Read,
            b"write" => Op::Write,
            b"wait" if self.version == 2 => {
                let wait = fields.field(TIME)?;
                let clock = self.clock.checked_add(wait.time(MICRO, TIME)?.0);
                self.clock = clock.ok_or_else(|| wait.mistake(TIME))?;
                return Ok(());
            }
            b"add" | b"open" | b"close" | b"sync" | b"datasync" | b"trim" | b"wait" => return Ok(()),
            _ => return Err(action.mistake("add, open, close, read, write, trim, sync, datasync or wait")),
        };
        let offset = Bytes(fields.field("an offset in bytes")?.whole("an offset in bytes")?);
        let length = fields.field("a length in bytes")?.whole("a length in bytes, under 4 GiB")?;
        let volume = file.volume(&String::from_utf8_lossy(file.text), out)?;
        out.push(Request { arrival, offset, length, op, volume, ..Request::default() });
        Ok(())
    }
}

/// Version 3, whose times are rounded down to microseconds. Volumes become files, opened when they first appear.
#[derive(Default)]
struct Out {
    began: bool,
    files: WrittenNames,
}

impl Writer for Out {
    fn write(&mut self, requests: &Columns, out: &mut dyn Write) -> io::Result<()> {
        if !std::mem::replace(&mut self.began, true) {
            writeln!(out, "fio version 3 iolog")?;
        }
        let now = requests.arrival.first().map_or(0, |arrival| arrival.0 / MICRO);
        for name in self.files.add(&requests.volumes, file_name) {
            writeln!(out, "{now} {name} add\n{now} {name} open")?;
        }
        for request in requests.requests() {
            let op = if request.op == Op::Read { "read" } else { "write" };
            let (at, name) = (request.arrival.0 / MICRO, self.files.of(request.volume));
            writeln!(out, "{at} {name} {op} {} {}", request.offset.0, request.length)?;
        }
        Ok(())
    }
}

/// A blank would end the name.
fn file_name(volume: &str) -> String {
    let name = volume.replace(|c: char| c.is_whitespace() || c.is_control(), "_");
    if name.is_empty() { "_".into() } else { name }
}

#[cfg(test)]
mod tests {
    use crate::Nanos;
    use crate::trace::{ReadOptions, parse_bytes};

    #[test]
    fn version_2_takes_its_time_from_waits() {
        let text = "fio version 2 iolog\nf add\nf open\nf read 0 512\nf wait 250 0\nf write 512 512\nf close\n";
        let trace = parse_bytes("t", text.as_bytes(), &ReadOptions::default()).unwrap();
        assert_eq!(trace.columns.arrival, [Nanos(0), Nanos(250_000)]);
        let wrong = text.replace("close", "clothe");
        let error = parse_bytes("t", wrong.as_bytes(), &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains("line 7, column 3: expected add, open"), "{error}");
    }
}
