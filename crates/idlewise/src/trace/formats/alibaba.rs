//! Alibaba 2020: `device_id,R|W,offset,length,timestamp`, bytes and microseconds.

use super::known::Known;
use super::lines::{Fields, Line, Lines, Mistake, Row, claims};
use super::{Format, Rows};
use crate::trace::{Columns, Request};
use crate::{Bytes, Nanos};

pub const FORMAT: Format = Format {
    name: "alibaba",
    about: "Alibaba block traces 2020: arrivals in us, volumes by device, no response times",
    detect: |head| claims(head, Alibaba::default()),
    rows: Rows::Alone,
    resolution: Nanos(MICRO),
    parser: || Box::new(Lines::new(Alibaba::default())),
    writer: None,
    sample: || b"419,W,8792731648,16384,1577808000000034\n420,R,0,4096,1577808000000120\n".to_vec(),
};

const MICRO: u64 = 1_000;

#[derive(Default)]
struct Alibaba {
    known: Known,
}

impl Row for Alibaba {
    #[inline(always)]
    fn row(&mut self, line: Line, out: &mut Columns) -> Result<(), Mistake> {
        let mut fields = Fields::new(line, b',');
        let (device, known) = fields.naming(&self.known, "a device number")?;
        let number: u64 = device.whole("a device number")?;
        let op = fields.field("R or W")?.op()?;
        let offset = Bytes(fields.whole("an offset in bytes")?);
        let length = fields.whole("a length in bytes, under 4 GiB")?;
        let arrival = fields.time(MICRO, "a time in microseconds")?;
        let volume = device.known_volume(known, &mut self.known, || number.to_string(), out)?;
        out.push(Request { arrival, offset, length, op, volume, ..Request::default() });
        Ok(())
    }
}
