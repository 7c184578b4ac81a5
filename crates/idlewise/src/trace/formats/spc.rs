//! SPC (UMass): `ASU,LBA,Size,Opcode,Timestamp[,...]`, LBA in 512-byte blocks of the ASU, time in seconds.

use std::collections::HashSet;
use std::io::{self, Write};

use super::known::Known;
use super::lines::{Fields, Line, Lines, Mistake, Row, claims};
use super::{Format, Output, Rows, Writer};
use crate::trace::{Columns, Op, Request};
use crate::{Bytes, Nanos};

pub const FORMAT: Format = Format {
    name: "spc",
    about: "SPC (UMass): arrivals in seconds, volumes by ASU, no response times",
    detect: |head| claims(head, Spc::default()),
    rows: Rows::Alone,
    resolution: Nanos(1_000),
    parser: || Box::new(Lines::new(Spc::default())),
    writer: Some(Output { extension: "spc", keeps_responses: false, writer: |_| Box::<Out>::default() }),
    sample: || b"0,20941264,8192,W,0.551706\n1, 20939840, 8192, r, 0.554041, x\n".to_vec(),
};

#[derive(Default)]
struct Spc {
    known: Known,
}

impl Row for Spc {
    fn row(&mut self, line: Line, out: &mut Columns) -> Result<(), Mistake> {
        let mut fields = Fields::new(line, b',');
        let (unit, known) = fields.naming(&self.known, "an ASU number")?;
        let number: u32 = unit.whole("an ASU number")?;
        let offset = Bytes(fields.field("a block number")?.sectors("a block number")?);
        let length = fields.whole("a size in bytes, under 4 GiB")?;
        let op = fields.field("R or W")?.op()?;
        let arrival = fields.field("a time in seconds")?.seconds("a time in seconds")?;
        let volume = unit.known_volume(known, &mut self.known, || format!("asu{number}"), out)?;
        out.push(Request { arrival, offset, length, op, volume, ..Request::default() });
        Ok(())
    }
}

/// The volume called `asu7` is ASU 7, unless another took the number; others take the first that is free. Offsets are rounded
/// down to blocks, times to microseconds.
#[derive(Default)]
struct Out {
    /// Of each volume so far.
    numbers: Vec<u32>,
    taken: HashSet<u32>,
    /// All below are taken.
    free: u32,
}

impl Writer for Out {
    fn write(&mut self, requests: &Columns, out: &mut dyn Write) -> io::Result<()> {
        for name in &requests.volumes[self.numbers.len().min(requests.volumes.len())..] {
            let own = name.strip_prefix("asu").and_then(|number| number.parse().ok());
            let own = own.filter(|number| !self.taken.contains(number));
            let number = own.or_else(|| (self.free..).find(|number| !self.taken.contains(number))).unwrap_or_default();
            self.free = if own.is_some() { self.free } else { number + 1 };
            self.taken.insert(number);
            self.numbers.push(number);
        }
        for request in requests.requests() {
            let op = if request.op == Op::Read { 'R' } else { 'W' };
            let (unit, micros) = (self.numbers[usize::from(request.volume)], request.arrival.0 / 1_000);
            let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
            writeln!(out, "{unit},{},{},{op},{seconds}.{fraction:06}", request.offset.0 / 512, request.length)?;
        }
        Ok(())
    }
}
