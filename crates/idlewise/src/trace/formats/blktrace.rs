//! blktrace's binary files, version 7 and 8, of either byte order: a header an event, with data behind some. Files come one
//! a CPU and are read together.

use super::{Format, Parser, Rows};
use crate::trace::{Bad, Columns, Op, Place, Request, Stage};
use crate::{Bytes, Nanos};

pub const FORMAT: Format = Format {
    name: "blktrace",
    about: "blktrace binary 7 and 8: arrival, issue and completion in ns; name DEV for DEV.blktrace.0, .1, ...",
    detect: |head| Order::of(head).is_some(),
    rows: Rows::Events,
    resolution: Nanos(1),
    parser: || Box::<Blktrace>::default(),
    writer: None,
    sample: || {
        let queue_read = (1 << 16) | (1 << 20) | 1;
        let complete_read = (1 << 16) | (1 << 23) | 8 | WITH_CGROUP;
        [
            record_7(10, 64, 4096, queue_read, 0),
            record_7(20, 72, 4096, queue_read, 0),
            record_7(90, 64, 8192, complete_read, 8),
        ]
        .concat()
    },
};

/// The magic without its lowest byte, which is the version.
const MAGIC: u32 = 0x6561_7400;
const SHORTEST: usize = 48;
const SECTOR: u64 = 512;
/// Bits of the action beside its number.
const WITH_CGROUP: u64 = 0x100;
const WRITE: u64 = 1 << 17;
const READ: u64 = 1 << 16;
/// Packet commands, notes and discards move no data of ours.
const NO_DATA: u64 = 1 << 25 | 1 << 26 | 1 << 29;

/// Where the fields of a version are, and in which order their bytes.
#[derive(Clone, Copy)]
struct Order {
    big_endian: bool,
    size: usize,
    action: (usize, usize),
    device: usize,
    data: usize,
}

impl Order {
    fn of(record: &[u8]) -> Option<Self> {
        let magic: [u8; 4] = record.get(..4)?.try_into().ok()?;
        let (little, big) = (u32::from_le_bytes(magic), u32::from_be_bytes(magic));
        let big_endian = big & !0xff == MAGIC;
        match if big_endian { big } else { little } ^ MAGIC {
            7 => Some(Self { big_endian, size: 48, action: (28, 4), device: 36, data: 46 }),
            8 => Some(Self { big_endian, size: 64, action: (32, 8), device: 40, data: 50 }),
            _ => None,
        }
    }

    /// The number of `len` bytes at a place; the caller has checked that the record is whole.
    fn number(self, record: &[u8], at: usize, len: usize) -> u64 {
        let bytes = record[at..at + len].iter();
        let push = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        if self.big_endian { bytes.fold(0, push) } else { bytes.rev().fold(0, push) }
    }
}

#[derive(Default)]
struct Blktrace {
    at: u64,
    last: Option<(u64, u16)>,
}

impl Parser for Blktrace {
    fn parse(&mut self, input: &[u8], last: bool, out: &mut Columns) -> Result<usize, Bad> {
        let mut used = 0;
        while input.len() - used >= SHORTEST {
            let rest = &input[used..];
            let Some(order) = Order::of(rest) else {
                let next = (1..rest.len()).find(|&at| Order::of(&rest[at..]).is_some()).unwrap_or(rest.len());
                return Err(self.bad("the mark of a blktrace 7 or 8 event", &rest[..4], next, used));
            };
            let whole = if rest.len() < order.size {
                order.size
            } else {
                order.size + order.number(rest, order.data, 2) as usize
            };
            if rest.len() < whole {
                break;
            }
            if self.event(order, rest, out).is_none() {
                return Err(self.bad(
                    "a sector of under 16 EiB, and at most 65,536 devices",
                    &rest[..SHORTEST],
                    whole,
                    used,
                ));
            }
            used += whole;
            self.at += whole as u64;
        }
        if last && used == 0 && !input.is_empty() {
            return Err(self.bad("a whole event", &input[..input.len().min(4)], input.len(), 0));
        }
        Ok(used)
    }
}

impl Blktrace {
    /// A bad record of `size` bytes that begins `used` bytes behind the front of the input.
    fn bad(&mut self, expected: &str, found: &[u8], size: usize, used: usize) -> Bad {
        let bad = Bad::new(Place::Byte(self.at), expected, found, used + size);
        self.at += size as u64;
        bad
    }

    fn event(&mut self, order: Order, record: &[u8], out: &mut Columns) -> Option<()> {
        let action = order.number(record, order.action.0, order.action.1);
        let stage = match action & 0xffff & !WITH_CGROUP {
            1 => Stage::Queued,
            7 => Stage::Issued,
            8 => Stage::Completed,
            _ => return Some(()),
        };
        let op = match action & (READ | WRITE) {
            READ => Op::Read,
            WRITE => Op::Write,
            _ => return Some(()),
        };
        let length = order.number(record, 24, 4) as u32;
        if action & NO_DATA != 0 || length == 0 {
            return Some(());
        }
        let device = order.number(record, order.device, 4);
        let volume = match self.last {
            Some((known, id)) if known == device => id,
            _ => out.volume_id(&format!("{},{}", device >> 20, device & 0xf_ffff))?,
        };
        self.last = Some((device, volume));
        let offset = Bytes(order.number(record, 16, 8).checked_mul(SECTOR)?);
        let arrival = Nanos(order.number(record, 8, 8));
        out.push_event(stage, Request { arrival, offset, length, op, volume, ..Request::default() });
        Some(())
    }
}

/// A version 7 event of device 8,0 with `data` bytes behind it, for tests.
fn record_7(time: u64, sector: u64, bytes: u32, action: u64, data: u16) -> Vec<u8> {
    let mut record = Vec::new();
    [MAGIC | 7, 1].iter().for_each(|word| record.extend(word.to_le_bytes()));
    [time, sector].iter().for_each(|word| record.extend(word.to_le_bytes()));
    [bytes, action as u32, 4020, 8 << 20, 0].iter().for_each(|word| record.extend(word.to_le_bytes()));
    [0, data].iter().for_each(|word| record.extend(word.to_le_bytes()));
    record.resize(SHORTEST + usize::from(data), 0);
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{ReadOptions, parse_bytes};

    /// The same event in version 8, big-endian.
    fn record_8(time: u64, sector: u64, bytes: u32, action: u64) -> Vec<u8> {
        let mut record = Vec::new();
        [MAGIC | 8, 1].iter().for_each(|word| record.extend(word.to_be_bytes()));
        [time, sector].iter().for_each(|word| record.extend(word.to_be_bytes()));
        [bytes, 4020].iter().for_each(|word| record.extend(word.to_be_bytes()));
        record.extend(action.to_be_bytes());
        [8 << 20, 0u32].iter().for_each(|word| record.extend(word.to_be_bytes()));
        record.resize(64, 0);
        record
    }

    #[test]
    fn both_versions_and_byte_orders_say_the_same() {
        let (queue, complete) = (READ | 1, READ | 8);
        let little = [record_7(10, 64, 4096, queue, 0), record_7(90, 64, 4096, complete, 0)].concat();
        let big = [record_8(10, 64, 4096, queue), record_8(90, 64, 4096, complete)].concat();
        let read =
            |bytes: &[u8]| parse_bytes("t", bytes, &ReadOptions::default()).unwrap().requests().collect::<Vec<_>>();
        assert_eq!(read(&little), read(&big));
        assert_eq!(read(&little)[0].response, Some(Nanos(80)));
        assert_eq!(read(&little)[0].offset, Bytes(64 * 512));
    }

    #[test]
    fn damage_is_found_and_stepped_over() {
        let event = |time| record_7(time, 64, 4096, READ | 1, 0);
        let damaged = [event(1), vec![0; 60], event(2), event(3)[..20].to_vec()].concat();
        let error = parse_bytes("t", &damaged, &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains("byte 48: expected the mark of a blktrace"), "{error}");
        let trace = parse_bytes("t", &damaged, &ReadOptions { skip_bad: true, ..ReadOptions::default() }).unwrap();
        assert_eq!((trace.len(), trace.provenance.bad_records), (2, 2));
    }
}
