//! Pixel 6a UFS traces: `process,device,R|W,sector,size,time`, 512-byte sectors, seconds, after a line of names. Process
//! names may hold commas, so the fields are found from the end.

use super::lines::{Fields, Line, Lines, Mistake, Row, claims};
use super::{Format, Rows};
use crate::trace::{Columns, Request};
use crate::{Bytes, Nanos};

pub const FORMAT: Format = Format {
    name: "pixel",
    about: "Pixel 6a UFS (smartphone traces): arrivals in us, volumes by device number, no response times",
    detect: |head| claims(head, Pixel),
    rows: Rows::Alone,
    resolution: Nanos(1_000),
    parser: || Box::new(Lines::new(Pixel)),
    writer: None,
    sample: || {
        b"proces,device,rw_flag,sector,size,timestamp\nloop40-2757,8388608,R,206567552,8,653406.907265
<...>-21515,8388608,W,206567560,16,653406.908974\n"
            .to_vec()
    },
};

/// Fields behind the process name.
const BEHIND: usize = 5;
/// Bits of the minor number in a kernel device number.
const MINOR_BITS: u32 = 20;

struct Pixel;

impl Row for Pixel {
    fn row(&mut self, line: Line, out: &mut Columns) -> Result<(), Mistake> {
        const SECTORS: &str = "a count of 512-byte sectors, under 4 GiB in all";
        if line.starts_with(b"proces") && line.ends_with(b"timestamp") {
            return Ok(());
        }
        if memchr::memchr_iter(b',', &line).count() < BEHIND {
            return Err(Mistake { at: line.len(), len: 0, expected: "six fields" });
        }
        let mut fields = Fields::last(line, b',', BEHIND);
        let device = fields.field("a device number")?;
        let number: u32 = device.whole("a device number")?;
        let op = fields.field("R or W")?.op()?;
        let offset = Bytes(fields.field("a sector number")?.sectors("a sector number")?);
        let length = fields.field(SECTORS)?.sectors(SECTORS)?;
        let arrival = fields.field("a time in seconds")?.seconds("a time in seconds")?;
        let volume = device.volume(&format!("{},{}", number >> MINOR_BITS, number & ((1 << MINOR_BITS) - 1)), out)?;
        out.push(Request { arrival, offset, length, op, volume, ..Request::default() });
        Ok(())
    }
}
