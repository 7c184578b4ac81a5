//! A trace format: lines of `seconds R|W offset length`, such as `12.5 R 4096 8192`, offset and length in bytes.

use idlewise::trace::formats::lines::{Fields, Line, Lines, Mistake, Row, claims};
use idlewise::trace::formats::{Format, Rows};
use idlewise::trace::{Columns, Request};
use idlewise::{Bytes, Nanos};

/// The line of the table.
pub const PLAIN: Format = Format {
    name: "plain",
    about: "seconds, R or W, offset and length in bytes",
    detect: |head| claims(head, Plain),
    rows: Rows::Alone,
    resolution: Nanos(1),
    parser: || Box::new(Lines::new(Plain)),
    writer: None,
    sample: || b"12.5 R 4096 8192\n".to_vec(),
};

struct Plain;

impl Row for Plain {
    fn row(&mut self, line: Line, out: &mut Columns) -> Result<(), Mistake> {
        let mut fields = Fields::words(line);
        let arrival = fields.field("seconds")?.seconds("seconds")?;
        let op = fields.field("R or W")?.op()?;
        let offset = Bytes(fields.field("an offset in bytes")?.whole("an offset in bytes")?);
        let length = fields.field("a length in bytes")?.whole("a length in bytes")?;
        if let Ok(more) = fields.field("the end of the line") {
            return Err(more.mistake("the end of the line"));
        }
        out.push(Request { arrival, offset, length, op, ..Request::default() });
        Ok(())
    }
}
