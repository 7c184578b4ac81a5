//! blkreplay `.load`: a licence in prose, a line of column names, then `seconds ; sector ; sectors ; R|W ; x ; y`.

use std::io::{self, Write};

use super::lines::{Fields, Line, Lines, Mistake, Row, head_lines};
use super::{Format, Output, Rows, Writer};
use crate::trace::{Columns, Op, Request};
use crate::{Bytes, Nanos};

pub const FORMAT: Format = Format {
    name: "blkreplay",
    about: "blkreplay .load: arrivals in ns, sectors of 512 bytes, no response times",
    detect: |head| {
        head_lines(head).any(is_column_names)
            || head_lines(head).find(|line| !line.is_empty()).is_some_and(|line| request(line).is_ok())
    },
    rows: Rows::InOrder,
    resolution: Nanos(1),
    parser: || Box::new(Lines::new(Load::default())),
    writer: Some(Output { extension: "load", keeps_responses: false, writer: |_| Box::<Out>::default() }),
    sample: || {
        b"Free to copy.\n\nstart ; sector; length ; op ;  replay_delay=0 ; replay_duration=0
   0.000000000 ;  100 ; 8 ; W ; 0.0 ; 0.0\n   1.5 ;  108 ; 16 ; RA ; 0.0 ; 0.0\n"
            .to_vec()
    },
};

#[derive(Default)]
struct Load {
    /// Whether a request was read: prose is only allowed before the first.
    began: bool,
}

impl Row for Load {
    fn row(&mut self, line: Line, out: &mut Columns) -> Result<(), Mistake> {
        // Files put together from several have several headers.
        let prose = !self.began && memchr::memchr(b';', &line).is_none();
        if prose || is_column_names(&line) {
            return Ok(());
        }
        let request = request(&line)?;
        self.began = true;
        out.push(request);
        Ok(())
    }
}

fn is_column_names(line: &[u8]) -> bool {
    let mut fields = line.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    fields.next() == Some(b"start") && fields.next() == Some(b"sector")
}

fn request(line: &[u8]) -> Result<Request, Mistake> {
    const SECTORS: &str = "a count of 512-byte sectors, under 4 GiB in all";
    let mut fields = Fields::new(line, b';');
    Ok(Request {
        arrival: fields.field("seconds since the start")?.seconds("seconds since the start")?,
        offset: Bytes(fields.field("a sector number")?.sectors("a sector number")?),
        length: fields.field(SECTORS)?.sectors(SECTORS)?,
        op: fields.field("R or W")?.op()?,
        volume: 0,
        ..Request::default()
    })
}

/// Holds one volume. Offsets are rounded down to sectors, lengths up where that stays under 4 GiB.
#[derive(Default)]
struct Out {
    began: bool,
    volume: Option<u16>,
}

impl Writer for Out {
    fn write(&mut self, requests: &Columns, out: &mut dyn Write) -> io::Result<()> {
        for request in requests.requests() {
            if *self.volume.get_or_insert(request.volume) != request.volume {
                return Err(io::Error::other(
                    "blkreplay's format holds one volume: choose it with --volume, or --by-volume",
                ));
            }
        }
        if !std::mem::replace(&mut self.began, true) {
            writeln!(out, "start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0")?;
        }
        for request in requests.requests() {
            let op = if request.op == Op::Read { 'R' } else { 'W' };
            let (seconds, nanos) = (request.arrival.0 / 1_000_000_000, request.arrival.0 % 1_000_000_000);
            let (sector, sectors) = (request.offset.0 / 512, request.length.div_ceil(512).min(u32::MAX / 512));
            writeln!(out, "{seconds:4}.{nanos:09} ; {sector:10} ; {sectors:3} ; {op} ; 0.0 ; 0.0")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::trace::{ReadOptions, parse_bytes};
    use crate::{Bytes, Nanos};

    #[test]
    fn times_are_exact_and_lengths_in_bytes() {
        let text = "0.000000001 ; 1 ; 8 ; W ; 0 ; 0\n12.3456789019 ; 2 ; 3 ; R ; 0 ; 0\n";
        let trace = parse_bytes("t", text.as_bytes(), &ReadOptions::default()).unwrap();
        assert_eq!(trace.columns.arrival, [Nanos(0), Nanos(12_345_678_900)]);
        assert_eq!(trace.columns.length, [4096, 1536]);
        assert_eq!(trace.columns.offset, [Bytes(512), Bytes(1024)]);
    }

    #[test]
    fn prose_after_the_first_request_is_an_error() {
        let text = "prose\nstart ; sector; length ; op\n0.1 ; 1 ; 8 ; W\nmore prose\n";
        let error = parse_bytes("t", text.as_bytes(), &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains("line 4, column 1: expected seconds since the start, found 'more prose'"), "{error}");
    }

    #[test]
    fn overflow_is_a_bad_record() {
        for line in ["1 ; 99999999999999999999 ; 8 ; W", "1 ; 1 ; 99999999 ; W", "99999999999 ; 1 ; 8 ; W"] {
            let text = format!("0 ; 1 ; 8 ; W\n{line}\n");
            let error = parse_bytes("t", text.as_bytes(), &ReadOptions::default()).unwrap_err().to_string();
            assert!(error.contains("line 2"), "{error}");
        }
    }
}
