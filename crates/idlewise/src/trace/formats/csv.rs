//! Any table of requests, its columns named on the command line: `time=1:us,offset=3:sectors512,length=4,op=2`.

use std::str::FromStr;

use super::Parser;
use super::known::Known;
use super::lines::{Field, Fields, Line, Lines, Mistake, Row};
use crate::trace::{Columns, Op, Request};
use crate::{Bytes, Nanos};

/// Which column of a table holds what, and in which unit. Columns count from 1.
#[derive(Clone, Debug, PartialEq)]
pub struct CsvLayout {
    separator: u8,
    time: (usize, TimeUnit),
    offset: (usize, u64),
    length: (usize, u64),
    op: Option<(usize, String, String)>,
    volume: Option<usize>,
    response: Option<(usize, TimeUnit)>,
    completion: Option<(usize, TimeUnit)>,
}

/// How times are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimeUnit {
    /// Whole numbers of so many nanoseconds.
    Whole(u64),
    /// Seconds, with decimals.
    Seconds,
}

/// What is wrong with a description of columns.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}; write for example {EXAMPLE}")]
pub struct CsvLayoutError(String);

const EXAMPLE: &str = "time=1:us,offset=3:sectors512,length=4:bytes,op=2,volume=5,response=6:us";

impl CsvLayout {
    /// A parser of tables of this layout. Their first line may be a line of names.
    pub fn parser(&self) -> Box<dyn Parser> {
        Box::new(Lines::new(Csv { layout: self.clone(), began: false, known: Known::default() }))
    }

    /// The finest difference in time.
    pub fn resolution(&self) -> Nanos {
        match self.time.1 {
            TimeUnit::Whole(unit) => Nanos(unit),
            TimeUnit::Seconds => Nanos(1),
        }
    }
}

impl FromStr for CsvLayout {
    type Err = CsvLayoutError;

    fn from_str(text: &str) -> Result<Self, CsvLayoutError> {
        let mut separator = b',';
        let (mut time, mut offset, mut length, mut op, mut volume) = (None, None, None, None, None);
        let (mut response, mut completion) = (None, None);
        for part in text.split(',') {
            let wrong = |problem: &str| CsvLayoutError(format!("'{part}': {problem}"));
            let (key, value) = part.trim().split_once('=').ok_or_else(|| wrong("not NAME=COLUMN[:UNIT]"))?;
            if key == "separator" {
                separator = match value {
                    "comma" => b',',
                    "semicolon" => b';',
                    "tab" => b'\t',
                    "space" => b' ',
                    "bar" => b'|',
                    _ => return Err(wrong("a separator is comma, semicolon, tab, space or bar")),
                };
                continue;
            }
            let (column, unit) = value.split_once(':').map_or((value, None), |(column, unit)| (column, Some(unit)));
            let column: usize = column
                .parse()
                .ok()
                .filter(|column| (1..=1_000).contains(column))
                .ok_or_else(|| wrong("a column is a number from 1"))?;
            let time_unit = || time_unit(unit).ok_or_else(|| wrong("a unit of time is s, ms, us, 100ns or ns"));
            let size_unit = || size_unit(unit).ok_or_else(|| wrong("a unit of size is bytes, KiB or sectors512"));
            match key {
                "time" => time = Some((column, time_unit()?)),
                "response" => response = Some((column, time_unit()?)),
                "completion" => completion = Some((column, time_unit()?)),
                "offset" => offset = Some((column, size_unit()?)),
                "length" => length = Some((column, size_unit()?)),
                "volume" => volume = Some(column),
                "op" => {
                    let (read, write) =
                        unit.unwrap_or("R/W").split_once('/').ok_or_else(|| wrong("op=2:READ/WRITE"))?;
                    op = Some((column, read.to_string(), write.to_string()));
                }
                _ => {
                    return Err(wrong("a name is time, offset, length, op, volume, response, completion or separator"));
                }
            }
        }
        let missing = |name: &str| CsvLayoutError(format!("no column for {name}"));
        Ok(Self {
            separator,
            time: time.ok_or_else(|| missing("time"))?,
            offset: offset.ok_or_else(|| missing("offset"))?,
            length: length.ok_or_else(|| missing("length"))?,
            op,
            volume,
            response,
            completion,
        })
    }
}

fn time_unit(unit: Option<&str>) -> Option<TimeUnit> {
    match unit? {
        "s" => Some(TimeUnit::Seconds),
        "ms" => Some(TimeUnit::Whole(1_000_000)),
        "us" => Some(TimeUnit::Whole(1_000)),
        "100ns" => Some(TimeUnit::Whole(100)),
        "ns" => Some(TimeUnit::Whole(1)),
        _ => None,
    }
}

fn size_unit(unit: Option<&str>) -> Option<u64> {
    match unit.unwrap_or("bytes") {
        "bytes" | "B" => Some(1),
        "KiB" => Some(1 << 10),
        unit => unit.strip_prefix("sectors")?.parse().ok().filter(|size| (1..=1 << 20).contains(size)),
    }
}

struct Csv {
    layout: CsvLayout,
    began: bool,
    known: Known,
}

impl Row for Csv {
    fn row(&mut self, line: Line, out: &mut Columns) -> Result<(), Mistake> {
        let first = !std::mem::replace(&mut self.began, true);
        match self.request(line, out) {
            Ok(request) => out.push(request),
            // A line of names has no digit where the time is.
            Err(_) if first && self.time(line).is_none_or(|field| !field.text.iter().any(u8::is_ascii_digit)) => {}
            Err(mistake) => return Err(mistake),
        }
        Ok(())
    }
}

impl Csv {
    fn fields<'a>(layout: &CsvLayout, line: Line<'a>) -> Fields<'a> {
        match layout.separator {
            b' ' => Fields::words(line),
            separator => Fields::new(line, separator),
        }
    }

    fn time<'a>(&self, line: Line<'a>) -> Option<Field<'a>> {
        let mut fields = Self::fields(&self.layout, line);
        (1..self.layout.time.0).try_for_each(|_| fields.field("").map(|_| ())).ok()?;
        fields.field("").ok()
    }

    fn request(&mut self, line: Line, out: &mut Columns) -> Result<Request, Mistake> {
        let layout = &self.layout;
        let (mut arrival, mut response, mut completion) = (None, None, None);
        let mut request = Request::default();
        let mut volume = None;
        let others = [
            layout.op.as_ref().map(|op| op.0),
            layout.volume,
            layout.response.map(|r| r.0),
            layout.completion.map(|c| c.0),
        ];
        let last =
            others.into_iter().flatten().chain([layout.time.0, layout.offset.0, layout.length.0]).max().unwrap_or(0);
        let mut fields = Self::fields(layout, line);
        for column in 1..=last {
            let field = fields.field("one more column")?;
            if column == layout.time.0 {
                arrival = Some(time(field, layout.time.1)?);
            }
            if column == layout.offset.0 {
                request.offset = Bytes(size(field, layout.offset.1)?);
            }
            if column == layout.length.0 {
                let bytes = size(field, layout.length.1)?;
                request.length = u32::try_from(bytes).map_err(|_| field.mistake("a length under 4 GiB"))?;
            }
            if let Some((_, read, write)) = layout.op.as_ref().filter(|op| op.0 == column) {
                request.op = op(field, read, write)?;
            }
            if layout.volume == Some(column) {
                volume = Some(field);
            }
            if let Some((_, unit)) = layout.response.filter(|known| known.0 == column && !field.text.is_empty()) {
                response = Some(time(field, unit)?);
            }
            if let Some((_, unit)) = layout.completion.filter(|known| known.0 == column && !field.text.is_empty()) {
                completion = Some((time(field, unit)?, field));
            }
        }
        request.arrival = arrival.unwrap_or_default();
        request.response = match completion {
            Some((completion, field)) if completion < request.arrival => {
                return Err(field.mistake("a completion that is not before the arrival"));
            }
            Some((completion, _)) => Some(completion.since(request.arrival)),
            None => response,
        };
        request.volume = match volume {
            Some(field) => {
                let name = || String::from_utf8_lossy(field.text).into_owned();
                field.known_volume(self.known.get(field.text), &mut self.known, name, out)?
            }
            None => 0,
        };
        Ok(request)
    }
}

fn time(field: Field, unit: TimeUnit) -> Result<Nanos, Mistake> {
    match unit {
        TimeUnit::Seconds => field.seconds("a time in seconds"),
        TimeUnit::Whole(unit) => field.time(unit, "a whole number of the stated unit of time"),
    }
}

fn size(field: Field, unit: u64) -> Result<u64, Mistake> {
    const SIZE: &str = "a whole number of the stated unit of size, under 16 EiB in all";
    field.whole::<u64>(SIZE)?.checked_mul(unit).ok_or_else(|| field.mistake(SIZE))
}

/// Reads and writes as the layout spells them, or by their first letter.
fn op(field: Field, read: &str, write: &str) -> Result<Op, Mistake> {
    match field.text {
        text if text.eq_ignore_ascii_case(read.as_bytes()) => Ok(Op::Read),
        text if text.eq_ignore_ascii_case(write.as_bytes()) => Ok(Op::Write),
        text if text.eq_ignore_ascii_case(b"read") => Ok(Op::Read),
        text if text.eq_ignore_ascii_case(b"write") => Ok(Op::Write),
        _ if read == "R" && write == "W" => field.op(),
        _ => Err(field.mistake("a read or a write; op=COLUMN:READ/WRITE says how they are spelt")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{ReadOptions, parse_bytes};

    fn read(layout: &str, text: &str) -> Result<Vec<Request>, String> {
        let layout: CsvLayout = layout.parse().map_err(|error: CsvLayoutError| error.to_string())?;
        let options = ReadOptions { columns: Some(&layout), ..ReadOptions::default() };
        let trace = parse_bytes("t", text.as_bytes(), &options).map_err(|error| error.to_string())?;
        Ok(trace.requests().collect())
    }

    #[test]
    fn columns_and_units_as_stated() {
        let text = "when;what;where;blocks;done\n1.5;1;8;2;1.75\n2.5;0;0;1;\n";
        let layout = "separator=semicolon,time=1:s,op=2:0/1,offset=3:sectors512,length=4:sectors4096,completion=5:s";
        let requests = read(layout, text).unwrap();
        let (write, read) = (requests[0], requests[1]);
        assert_eq!((write.op, write.offset, write.length), (Op::Write, Bytes(4096), 8192));
        assert_eq!((write.response, read.response), (Some(Nanos(250_000_000)), None));
        assert_eq!((read.op, read.arrival), (Op::Read, Nanos(1_000_000_000)));
    }

    #[test]
    fn mistakes_are_named() {
        let error = |layout: &str| read(layout, "1,2,3\n").unwrap_err();
        assert!(error("time=1:us,offset=2").contains("no column for length; write for example time=1:us"));
        assert!(error("time=1,offset=2,length=3").contains("'time=1': a unit of time is s, ms"));
        assert!(error("time=0:us").contains("a column is a number from 1"));
        assert!(error("speed=1").contains("a name is time, offset"));
        let layout = "time=1:us,offset=2,length=4,separator=space";
        assert!(read(layout, "1 2 3 4\n1 2 3\n").unwrap_err().contains("line 2, column 6: expected one more column"));
    }
}
