//! Tencent CBS: `Timestamp,Offset,Size,IOType,VolumeID`, whole seconds, 512-byte sectors, 0 reads and 1 writes.

use super::known::Known;
use super::lines::{Fields, Line, Lines, Mistake, Row, claims};
use super::{Format, Rows};
use crate::trace::{Columns, Op, Request};
use crate::{Bytes, Nanos};

pub const FORMAT: Format = Format {
    name: "tencent",
    about: "Tencent CBS: arrivals in whole seconds, volumes by number, no response times",
    detect: |head| claims(head, Tencent::default()),
    rows: Rows::Alone,
    resolution: Nanos(SECOND),
    parser: || Box::new(Lines::new(Tencent::default())),
    writer: None,
    sample: || b"1538323200,12910952,128,0,1063\n1538323201,6318288,8,1,1088\n".to_vec(),
};

const SECOND: u64 = 1_000_000_000;

#[derive(Default)]
struct Tencent {
    known: Known,
}

impl Row for Tencent {
    #[inline(always)]
    fn row(&mut self, line: Line, out: &mut Columns) -> Result<(), Mistake> {
        const SECTORS: &str = "a count of 512-byte sectors, under 4 GiB in all";
        let mut fields = Fields::new(line, b',');
        let arrival = fields.time(SECOND, "a time in seconds")?;
        let offset = Bytes(fields.field("a sector number")?.sectors("a sector number")?);
        let length = fields.field(SECTORS)?.sectors(SECTORS)?;
        let kind = fields.field("0 (read) or 1 (write)")?;
        let op = match kind.text {
            b"0" => Op::Read,
            b"1" => Op::Write,
            _ => return Err(kind.mistake("0 (read) or 1 (write)")),
        };
        let (volume, known) = fields.naming(&self.known, "a volume number")?;
        let number: u64 = volume.whole("a volume number")?;
        let id = volume.known_volume(known, &mut self.known, || number.to_string(), out)?;
        out.push(Request { arrival, offset, length, op, volume: id, ..Request::default() });
        Ok(())
    }
}
