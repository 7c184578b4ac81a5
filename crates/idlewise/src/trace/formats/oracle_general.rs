//! libCacheSim's oracleGeneral, little-endian, 24 bytes a record: u32 time in seconds, u64 object, u32 bytes, i64 number of the
//! record that asks for the object next, or none. In traces of disks an object is a block of 512 bytes.

use super::{Format, Parser, Rows};
use crate::trace::{Bad, Columns, Op, Place, Request};
use crate::{Bytes, Nanos};

pub const FORMAT: Format = Format {
    name: "oracle-general",
    about: "libCacheSim oracleGeneral: arrivals in whole seconds, objects as blocks of 512 bytes, no response times",
    detect,
    rows: Rows::InOrder,
    resolution: Nanos(SECOND),
    parser: || Box::new(OracleGeneral { at: 0 }),
    writer: None,
    sample: || [record(10, 8, 4096, 3), record(11, 16, 512, -1)].concat(),
};

const SECOND: u64 = 1_000_000_000;
const RECORD: usize = 24;
const SECTOR: u64 = 512;
/// Texts and other tables have larger numbers where the next record is told.
const RECORDS: i64 = 1 << 48;

struct OracleGeneral {
    at: u64,
}

#[derive(Clone, Copy)]
struct Record {
    seconds: u32,
    object: u64,
    length: u32,
    next: i64,
}

impl Record {
    /// The caller has checked the length.
    fn decode(bytes: &[u8]) -> Self {
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|index| bytes[at + index]));
        let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| bytes[at + index]));
        Self { seconds: word(0), object: long(4), length: word(12), next: long(16).cast_signed() }
    }

    /// The first byte of its block; `None` for the hashed names of a cache, which are no blocks.
    fn offset(self) -> Option<Bytes> {
        self.object.checked_mul(SECTOR).filter(|offset| *offset <= i64::MAX.unsigned_abs()).map(Bytes)
    }
}

/// Without a mark of its own it is known by its times, which do not go back, and by the records to come, which are later ones.
fn detect(head: &[u8]) -> bool {
    const LOOKED_AT: usize = 64;
    let records: Vec<Record> = head.chunks_exact(RECORD).take(LOOKED_AT).map(Record::decode).collect();
    let later = |(index, record): (usize, &Record)| {
        record.next == -1 || record.next == i64::MAX || (index as i64..RECORDS).contains(&record.next)
    };
    records.len() >= 2
        && records.is_sorted_by_key(|record| record.seconds)
        && records.iter().all(|record| record.length > 0 && record.offset().is_some())
        && records.iter().enumerate().all(later)
}

impl Parser for OracleGeneral {
    fn parse(&mut self, input: &[u8], last: bool, out: &mut Columns) -> Result<usize, Bad> {
        let mut used = 0;
        for bytes in input.chunks_exact(RECORD) {
            used += RECORD;
            let place = self.at;
            self.at += RECORD as u64;
            let record = Record::decode(bytes);
            let Some(offset) = record.offset() else {
                let expected = "the number of a 512-byte block, under 8 EiB; the trace of a cache has none";
                return Err(Bad::new(Place::Byte(place), expected, bytes, used));
            };
            let arrival = Nanos(u64::from(record.seconds) * SECOND);
            // It does not tell reads from writes.
            out.push(Request { arrival, offset, length: record.length, op: Op::Read, ..Request::default() });
        }
        if last && used < input.len() {
            return Err(Bad::new(Place::Byte(self.at), "a whole record", &input[used..], input.len()));
        }
        Ok(used)
    }
}

fn record(seconds: u32, object: u64, length: u32, next: i64) -> Vec<u8> {
    [&seconds.to_le_bytes()[..], &object.to_le_bytes(), &length.to_le_bytes(), &next.to_le_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{ReadOptions, parse_bytes};

    #[test]
    fn objects_are_blocks() {
        let bytes = [record(7, 3, 1024, 2), record(9, 1 << 40, 512, i64::MAX), record(9, 3, 1024, -1)].concat();
        let trace = parse_bytes("t", &bytes, &ReadOptions::default()).unwrap();
        let rows: Vec<_> = trace.requests().map(|r| (r.arrival.0, r.offset.0, r.length)).collect();
        assert_eq!(rows, [(0, 1536, 1024), (2 * SECOND, 1 << 49, 512), (2 * SECOND, 1536, 1024)]);
    }

    #[test]
    fn what_goes_back_or_has_no_size_is_another_format() {
        let first = record(7, 3, 1024, 2);
        assert!(detect(&[&first[..], &record(7, 3, 1024, -1)].concat()));
        for other in [record(6, 3, 1, -1), record(7, 3, 0, -1), record(7, 3, 1, 0), record(7, u64::MAX, 1, -1)] {
            assert!(!detect(&[&first[..], &other].concat()));
        }
        assert!(!detect(&first) && !detect("a text, and nothing but a text, of some length\n".as_bytes()));
    }

    #[test]
    fn names_of_a_cache_are_an_error_with_its_place() {
        let mut parser = OracleGeneral { at: 0 };
        let bytes = [record(7, 3, 1024, 2), record(7, u64::MAX, 1, -1)].concat();
        let error = parser.parse(&bytes, true, &mut Columns::default()).unwrap_err();
        assert_eq!(format!("{:?}", error.place), format!("{:?}", Place::Byte(24)));
    }
}
