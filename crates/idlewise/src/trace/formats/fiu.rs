//! FIU blkparse text: `ts_ns pid process lba size W|R major minor md5`, 512-byte sectors. Process names may hold blanks, so
//! what follows them is found from the end.

use super::lines::{Fields, Line, Lines, Mistake, Row, claims};
use super::{Format, Rows};
use crate::trace::{Columns, Request};
use crate::{Bytes, Nanos};

pub const FORMAT: Format = Format {
    name: "fiu",
    about: "FIU (blkparse text with hashes): arrivals in ns, volumes by device number, no response times",
    detect: |head| claims(head, Fiu),
    rows: Rows::Alone,
    resolution: Nanos(1),
    parser: || Box::new(Lines::new(Fiu)),
    writer: None,
    sample: || {
        b"89966056854122 4892 syslogd 904265560 8 W 6 0 531e779d0ff4b8d3\n\
          89966056999999 4893 kjournald 2 904265568 16 R 6 1 00aa779d0ff4b8d3\n"
            .to_vec()
    },
};

/// Fields behind the process name.
const BEHIND: usize = 6;

struct Fiu;

impl Row for Fiu {
    fn row(&mut self, line: Line, out: &mut Columns) -> Result<(), Mistake> {
        const SECTORS: &str = "a count of 512-byte sectors, under 4 GiB in all";
        let line = line.trim_ascii_end();
        let arrival = Fields::words(line).field("a time in ns")?.time(1, "a time in ns")?;
        let mut fields = Fields::last(line, b' ', BEHIND);
        let offset = Bytes(fields.field("a sector number")?.sectors("a sector number")?);
        let length = fields.field(SECTORS)?.sectors(SECTORS)?;
        let op = fields.field("R or W")?.op()?;
        let major = fields.field("a major number")?;
        let numbers: (u32, u32) = (major.whole("a major number")?, fields.whole("a minor number")?);
        fields.field("a hash")?;
        let volume = major.volume(&format!("{},{}", numbers.0, numbers.1), out)?;
        out.push(Request { arrival, offset, length, op, volume, ..Request::default() });
        Ok(())
    }
}
