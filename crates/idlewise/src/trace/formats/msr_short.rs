//! MSR Cambridge cut down to `Timestamp Type Offset Size`, between blanks or tabs, times in 100 ns: one volume, no responses.

use super::lines::{Fields, Line, Lines, Mistake, Row, claims};
use super::{Format, Rows};
use crate::trace::{Columns, Op, Request};
use crate::{Bytes, Nanos};

pub const FORMAT: Format = Format {
    name: "msr-short",
    about: "MSR Cambridge without host, disk and response: arrivals in 100 ns",
    detect: |head| claims(head, MsrShort),
    rows: Rows::Alone,
    resolution: Nanos(TICK),
    parser: || Box::new(Lines::new(MsrShort)),
    writer: None,
    sample: || b"128166465299039000 \tRead\t32256\t8192\n128166465299119000 \tWrite\t64512\t4096\n".to_vec(),
};

const TICK: u64 = 100;

struct MsrShort;

impl Row for MsrShort {
    fn row(&mut self, line: Line, out: &mut Columns) -> Result<(), Mistake> {
        const TIME: &str = "a time in 100 ns since 1601";
        let mut fields = Fields::words(line);
        let arrival = fields.time(TICK, TIME)?;
        let kind = fields.field("Read or Write")?;
        let op = match kind.text {
            b"Read" => Op::Read,
            b"Write" => Op::Write,
            _ => return Err(kind.mistake("Read or Write")),
        };
        let offset = Bytes(fields.whole("an offset in bytes")?);
        let length = fields.whole("a size in bytes, under 4 GiB")?;
        out.push(Request { arrival, offset, length, op, volume: 0, ..Request::default() });
        Ok(())
    }
}
