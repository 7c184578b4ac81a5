//! DiskSim's ASCII traces: `time device block blocks flags`, times in milliseconds, blocks of 512 bytes, flags in hexadecimal
//! of which bit 0 stands for a read.

use super::lines::{Fields, Line, Lines, Mistake, Row, claims};
use super::{Format, Rows};
use crate::trace::{Columns, Op, Request};
use crate::{Bytes, Nanos};

pub const FORMAT: Format = Format {
    name: "disksim",
    about: "DiskSim ASCII: arrivals in ms, volumes by device number, no response times",
    detect: |head| claims(head, DiskSim),
    rows: Rows::Alone,
    resolution: Nanos(1_000),
    parser: || Box::new(Lines::new(DiskSim)),
    writer: None,
    sample: || b"0.000000 0 2048 8 1\n12.500000 1 4096 16 0\n".to_vec(),
};

struct DiskSim;

impl Row for DiskSim {
    fn row(&mut self, line: Line, out: &mut Columns) -> Result<(), Mistake> {
        const BLOCKS: &str = "a count of 512-byte blocks, under 4 GiB in all";
        const FLAGS: &str = "flags in hexadecimal, and nothing behind them";
        let mut fields = Fields::words(line);
        let milliseconds = fields.field("a time in milliseconds")?.seconds("a time in milliseconds")?;
        let device = fields.field("a device number")?;
        let number: u32 = device.whole("a device number")?;
        let offset = Bytes(fields.field("a block number")?.sectors("a block number")?);
        let length = fields.field(BLOCKS)?.sectors(BLOCKS)?;
        let flags = fields.field(FLAGS)?;
        let bits = std::str::from_utf8(flags.text).ok().and_then(|text| u32::from_str_radix(text, 16).ok());
        let bits = bits.filter(|_| fields.field(FLAGS).is_err());
        let bits = bits.ok_or(Mistake { at: flags.at, len: flags.text.len(), expected: FLAGS })?;
        let volume = device.volume(&number.to_string(), out)?;
        let (arrival, op) = (Nanos(milliseconds.0 / 1_000), if bits & 1 == 1 { Op::Read } else { Op::Write });
        out.push(Request { arrival, offset, length, op, volume, ..Request::default() });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{ReadOptions, parse_bytes};

    #[test]
    fn blocks_are_sectors_and_odd_flags_read() {
        let text = b"10.500000 2 8 4 0\n11.000250 2 4294967296 1 B\n";
        let trace = parse_bytes("t", text, &ReadOptions::default()).unwrap();
        let rows: Vec<_> = trace.requests().map(|r| (r.arrival.0, r.offset.0, r.length, r.op)).collect();
        assert_eq!(rows, [(0, 4096, 2048, Op::Write), (500_250, 1 << 41, 512, Op::Read)]);
        assert_eq!(trace.provenance.format, "disksim");
        assert_eq!(trace.columns.volumes, ["2"]);
        for other in ["1.5 2 3 4", "1.5 2 3 4 1 6", "1.5 2 3 4 read", "1.5 2 -3 4 1"] {
            assert!(!claims(other.as_bytes(), DiskSim), "{other}");
        }
    }
}
