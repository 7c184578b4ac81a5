//! CloudPhysics vSCSI, little-endian. Version 1, 32 bytes: u32 sn, u32 bytes, u32 nSG, u16 command, u16 version, u64 block,
//! u64 time. Version 2, 40 bytes: u16 command, u16 version, u32 sn, u32 bytes, u32 nSG, u64 block, u64 time, u64 response.
//! Times in microseconds, blocks of 512 bytes; the version is in the upper byte of its word.

use super::{Format, Parser, Rows};
use crate::trace::{Bad, Columns, Op, Place, Request};
use crate::{Bytes, Nanos};

pub const VERSION_1: Format = Format {
    name: "vscsi1",
    about: "CloudPhysics vSCSI 1: arrivals in us, no response times",
    detect: |head| !fits(head, LAYOUT_2) && fits(head, LAYOUT_1),
    rows: Rows::InOrder,
    resolution: Nanos(MICRO),
    parser: || Box::new(Vscsi { at: 0, layout: LAYOUT_1 }),
    writer: None,
    sample: || {
        let record = |block: u64, command: u16, time: u64| {
            let mut bytes = Vec::new();
            [1u32, 4096, 1].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
            [command, 0x0100].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
            [block, time].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
            bytes
        };
        [record(8, 0x2a, 1_000_000), record(16, 0x28, 1_000_500)].concat()
    },
};

pub const VERSION_2: Format = Format {
    name: "vscsi2",
    about: "CloudPhysics vSCSI 2: arrivals and responses in us",
    detect: |head| fits(head, LAYOUT_2),
    rows: Rows::InOrder,
    resolution: Nanos(MICRO),
    parser: || Box::new(Vscsi { at: 0, layout: LAYOUT_2 }),
    writer: None,
    sample: || {
        let record = |block: u64, command: u16, time: u64| {
            let mut bytes = Vec::new();
            [command, 0x0200].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
            [1u32, 4096, 1].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
            [block, time, 250].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
            bytes
        };
        [record(8, 0x8a, 1_000_000), record(16, 0x88, 1_000_500)].concat()
    },
};

const MICRO: u64 = 1_000;
const SECTOR: u64 = 512;

/// Where the fields of a version are.
#[derive(Clone, Copy)]
struct Layout {
    version: u16,
    size: usize,
    command: usize,
    bytes: usize,
    block: usize,
    time: usize,
    response: Option<usize>,
}

const LAYOUT_1: Layout = Layout { version: 1, size: 32, command: 12, bytes: 4, block: 16, time: 24, response: None };
const LAYOUT_2: Layout = Layout { version: 2, size: 40, command: 0, bytes: 8, block: 16, time: 24, response: Some(32) };

struct Vscsi {
    at: u64,
    layout: Layout,
}

/// Whether the first two records, or the only one, are of this layout, and one of the first moves data.
fn fits(head: &[u8], layout: Layout) -> bool {
    const LOOKED_AT: usize = 64;
    let records = || head.chunks_exact(layout.size).take(LOOKED_AT);
    let of_layout = |record: &[u8]| half(record, layout.command + 2) >> 8 == layout.version;
    records().take(2).all(of_layout) && records().any(|record| of_layout(record) && op(record, layout).is_some())
}

/// Reads and writes by their SCSI operation code.
fn op(record: &[u8], layout: Layout) -> Option<Op> {
    match half(record, layout.command) {
        0x08 | 0x28 | 0xa8 | 0x88 => Some(Op::Read),
        0x0a | 0x2a | 0xaa | 0x8a => Some(Op::Write),
        _ => None,
    }
}

impl Parser for Vscsi {
    fn parse(&mut self, input: &[u8], last: bool, out: &mut Columns) -> Result<usize, Bad> {
        let layout = self.layout;
        let mut used = 0;
        for record in input.chunks_exact(layout.size) {
            used += layout.size;
            let place = self.at;
            self.at += layout.size as u64;
            if half(record, layout.command + 2) >> 8 == layout.version && op(record, layout).is_none() {
                // Commands that move no data.
                continue;
            }
            let offset = long(record, layout.block).checked_mul(SECTOR);
            let arrival = long(record, layout.time).checked_mul(MICRO);
            let response = layout.response.map_or(Some(0), |at| long(record, at).checked_mul(MICRO));
            let known = (op(record, layout), offset, arrival, response);
            let (Some(op), Some(offset), Some(arrival), Some(response)) = known else {
                let expected = "a read or write with a time and a place of under 16 EiB";
                return Err(Bad::new(Place::Byte(place), expected, record, used));
            };
            let length = u32::from(half(record, layout.bytes)) | u32::from(half(record, layout.bytes + 2)) << 16;
            let response = layout.response.map(|_| Nanos(response));
            out.push(Request {
                arrival: Nanos(arrival),
                offset: Bytes(offset),
                length,
                op,
                response,
                ..Request::default()
            });
        }
        if last && used < input.len() {
            let rest = &input[used..];
            return Err(Bad::new(Place::Byte(self.at), "a whole record", rest, input.len()));
        }
        Ok(used)
    }
}

/// The little-endian 16-bit word at a byte; the caller has checked the length.
fn half(record: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([record[at], record[at + 1]])
}

fn long(record: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|index| record[at + index]))
}
