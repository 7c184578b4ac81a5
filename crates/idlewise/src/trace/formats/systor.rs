//! Systor'17 (enterprise VDI): `Timestamp,Response,IOType,LUN,Offset,Size` under a line of these names; seconds and bytes.
//! A response may be missing.

use super::known::Known;
use super::lines::{Fields, Line, Lines, Mistake, Row, claims};
use super::{Format, Rows};
use crate::trace::{Columns, Request};
use crate::{Bytes, Nanos};

pub const FORMAT: Format = Format {
    name: "systor",
    about: "Systor'17: arrival and, mostly, response in seconds, volumes by LUN",
    detect: |head| claims(head, Systor::default()),
    rows: Rows::Alone,
    resolution: Nanos(1_000),
    parser: || Box::new(Lines::new(Systor::default())),
    writer: None,
    sample: || {
        b"Timestamp,Response,IOType,LUN,Offset,Size
1455592863.515161000,0.000341000,W,0,409600,4096\n1455592863.516179000,,R,1,122880,8192\n"
            .to_vec()
    },
};

#[derive(Default)]
struct Systor {
    known: Known,
}

impl Row for Systor {
    fn row(&mut self, line: Line, out: &mut Columns) -> Result<(), Mistake> {
        if line.starts_with(b"Timestamp,Response") {
            return Ok(());
        }
        let mut fields = Fields::new(line, b',');
        let time = fields.field("a time in seconds")?;
        let arrival = time.seconds("a time in seconds")?;
        if !time.text.contains(&b'.') {
            return Err(time.mistake("a time in seconds with its fraction"));
        }
        let response = fields.field("a response time in seconds, or nothing")?;
        let response = match response.text {
            b"" => None,
            _ => Some(response.seconds("a response time in seconds, or nothing")?),
        };
        let op = fields.field("R or W")?.op()?;
        let (lun, known) = fields.naming(&self.known, "a LUN")?;
        let number: u32 = lun.whole("a LUN")?;
        let offset = Bytes(fields.whole("an offset in bytes")?);
        let length = fields.whole("a size in bytes, under 4 GiB")?;
        let volume = lun.known_volume(known, &mut self.known, || format!("lun{number}"), out)?;
        out.push(Request { arrival, offset, length, op, volume, response, ..Request::default() });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::Nanos;
    use crate::trace::{ReadOptions, parse_bytes};

    #[test]
    fn a_missing_response_is_unknown() {
        let trace = parse_bytes("t", &(super::FORMAT.sample)(), &ReadOptions::default()).unwrap();
        let responses: Vec<_> = trace.requests().map(|request| request.response).collect();
        assert_eq!(responses, [Some(Nanos(341_000)), None]);
    }
}
