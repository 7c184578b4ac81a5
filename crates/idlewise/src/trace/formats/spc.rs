//! SPC (UMass): `ASU,LBA,Size,Opcode,Timestamp[,...]`, LBA in 512-byte blocks of the ASU, time in seconds.

use super::Format;
use super::lines::{Fields, Lines, Mistake, Row, claims};
use crate::trace::{Columns, Request};
use crate::{Bytes, Nanos};

pub const FORMAT: Format = Format {
    name: "spc",
    about: "SPC (UMass): arrivals in seconds, volumes by ASU, no response times",
    detect: |head| claims(head, Spc),
    has_responses: false,
    resolution: Nanos(1_000),
    parser: || Box::new(Lines::new(Spc)),
    sample: || b"0,20941264,8192,W,0.551706\n1, 20939840, 8192, r, 0.554041, x\n".to_vec(),
};

struct Spc;

impl Row for Spc {
    fn row(&mut self, line: &[u8], out: &mut Columns) -> Result<(), Mistake> {
        let mut fields = Fields::new(line, b',');
        let unit = fields.field("an ASU number")?;
        let number: u32 = unit.whole("an ASU number")?;
        let offset = Bytes(fields.field("a block number")?.sectors("a block number")?);
        let length = fields.field("a size in bytes")?.whole("a size in bytes, under 4 GiB")?;
        let op = fields.field("R or W")?.op()?;
        let arrival = fields.field("a time in seconds")?.seconds("a time in seconds")?;
        let volume = out.volume_id(&format!("asu{number}"));
        let volume = volume.ok_or_else(|| unit.mistake("one of at most 65,536 volumes"))?;
        out.push(Request { arrival, offset, length, op, volume, response: None });
        Ok(())
    }
}
