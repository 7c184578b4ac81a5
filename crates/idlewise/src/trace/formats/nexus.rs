//! Nexus 5 eMMC traces: sector, sectors, bytes, flags (bit 0 write, 4 no wait), then the times in seconds at which the
//! request was generated, dequeued, submitted and finished.

use super::lines::{Fields, Line, Lines, Mistake, Row, claims};
use super::{Format, Rows};
use crate::trace::{Columns, Op, Request};
use crate::{Bytes, Nanos};

pub const FORMAT: Format = Format {
    name: "nexus",
    about: "Nexus 5 eMMC (smartphone traces): generated to finished in ns",
    detect: |head| claims(head, Nexus),
    rows: Rows::Alone,
    resolution: Nanos(1),
    parser: || Box::new(Lines::new(Nexus)),
    writer: None,
    sample: || {
        b"4572376\t\t24\t\t12288\t\t5\t\t1398405332.080820638\t\t1398405332.080861784\t\t1398405332.083687044\t\t1398405332.084604388
4572392 24 12288 4 1398405332.229751263 1398405332.229834023 1398405332.229882096 1398405332.231245273\n"
            .to_vec()
    },
};

struct Nexus;

impl Row for Nexus {
    fn row(&mut self, line: Line, out: &mut Columns) -> Result<(), Mistake> {
        const TIME: &str = "a time in seconds";
        let mut fields = Fields::words(line);
        let offset = Bytes(fields.field("a sector number")?.sectors("a sector number")?);
        fields.field("a count of sectors")?.whole::<u64>("a count of sectors")?;
        let length = fields.field("a size in bytes")?.whole("a size in bytes, under 4 GiB")?;
        let flags: u8 = fields.field("flags")?.whole("flags")?;
        let arrival = fields.field(TIME)?.seconds(TIME)?;
        fields.field(TIME)?.seconds(TIME)?;
        let submitted = fields.field(TIME)?.seconds(TIME)?;
        let finished = fields.field(TIME)?;
        let at = finished.seconds(TIME)?;
        if at < arrival {
            return Err(finished.mistake("a finish not before the request"));
        }
        let op = if flags & 1 == 1 { Op::Write } else { Op::Read };
        let (queued, response) = (Some(submitted.since(arrival)), Some(at.since(arrival)));
        out.push(Request { arrival, offset, length, op, volume: 0, queued, response });
        Ok(())
    }
}
