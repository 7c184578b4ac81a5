//! HP SRT (Cello, hplajw): an ASCII header ended by byte 0x0C, then records of big-endian 32-bit words.
//!
//! Words of a record: 0 size in bytes, 1 version << 16 | type, 2 seconds, 3 microseconds, 4 start and 5 stop (us after
//! the enqueue), 6 bytes, 7 sector, 8 device, 9 driver type, 10 cylinder, 11 flags (bit 0: read).

use super::{Format, Parser, Rows};
use crate::trace::{Bad, Columns, Op, Place, Request};
use crate::{Bytes, Nanos};

pub const FORMAT: Format = Format {
    name: "srt",
    about: "HP SRT 1 to 4 (Cello, hplajw): enqueue, start and stop in us, volumes by disk",
    detect: |head| {
        head.starts_with(b"$$TR_IOREC") || (head.contains(&HEADER_END) && find(head, b"tracedate").is_some())
    },
    rows: Rows::InOrder,
    resolution: Nanos(MICRO),
    parser: || Box::<Srt>::default(),
    writer: None,
    sample,
};

const HEADER_END: u8 = 0x0c;
/// A header longer than this has no end.
const LONGEST_HEADER: usize = 1 << 20;
const MICRO: u64 = 1_000;
/// Words up to the flags, which all versions have.
const WORDS: usize = 12;
const LONGEST_RECORD: usize = 1 << 10;
const SHORT_IO: u32 = 1;
const SUSPECT_IO: u32 = 4;

#[derive(Default)]
struct Srt {
    /// Bytes of the file behind us.
    at: u64,
    /// Sector size by disk, once the header is read.
    sectors: Option<SectorSizes>,
}

/// Sector sizes by disk as the header states them, the first where it does twice.
struct SectorSizes([Option<u64>; 256]);

/// HP-UX's block, where the header does not say.
const USUAL_SECTOR: u64 = 1024;

impl Parser for Srt {
    fn parse(&mut self, input: &[u8], last: bool, out: &mut Columns) -> Result<usize, Bad> {
        let bad =
            |expected: &str, found: &[u8], consumed| Err(Bad::new(Place::Byte(self.at), expected, found, consumed));
        let Some(sectors) = &self.sectors else {
            let Some(end) = memchr::memchr(HEADER_END, &input[..input.len().min(LONGEST_HEADER)]) else {
                return match input.is_empty() || !(last || input.len() > LONGEST_HEADER) {
                    true => Ok(0),
                    false => bad("a header of at most 1 MiB that ends with a form feed", input, input.len()),
                };
            };
            self.sectors = Some(SectorSizes::from_header(&input[..end]));
            self.at += end as u64 + 1;
            return Ok(end + 1);
        };
        if input.len() < 8 {
            return match last && !input.is_empty() {
                true => bad("a whole record", input, input.len()),
                false => Ok(0),
            };
        }
        let size = word(input, 0) as usize;
        let kind = word(input, 1) & 0xffff;
        if size < 8 || !size.is_multiple_of(4) || size > LONGEST_RECORD {
            // Without a size the next record must be found by its looks.
            let skipped = (1..input.len()).find(|&at| looks_like_a_record(&input[at..])).unwrap_or(input.len());
            let expected = format!("a record size of 8 to 1,024 bytes (the next record is {skipped} bytes on)");
            let error = bad(&expected, &input[..4], skipped);
            return self.skip(skipped, error);
        }
        if input.len() < size {
            return match last {
                true => bad("a whole record", input, input.len()),
                false => Ok(0),
            };
        }
        let record = &input[..size];
        let request = match kind {
            SUSPECT_IO => None,
            SHORT_IO if size < WORDS * 4 => return self.skip(size, bad("a record of at least 48 bytes", record, size)),
            SHORT_IO => match sectors.request(record, out) {
                Some(request) => Some(request),
                None => {
                    return self.skip(size, bad("microseconds under a million, an offset under 16 EiB", record, size));
                }
            },
            _ => return self.skip(size, bad("record type 1 or 4", record, size)),
        };
        if let Some(request) = request {
            out.push(request);
        }
        self.at += size as u64;
        Ok(size)
    }
}

impl Srt {
    /// Steps over a bad record whose size is known.
    fn skip(&mut self, size: usize, bad: Result<usize, Bad>) -> Result<usize, Bad> {
        self.at += size as u64;
        bad
    }
}

impl SectorSizes {
    /// Finds `N -> { ... sectorsize = S` in the header's list of disks.
    fn from_header(header: &[u8]) -> Self {
        let text = String::from_utf8_lossy(header);
        let (mut sizes, mut depth, mut disk) = ([None; 256], 0, None::<usize>);
        for line in text.lines() {
            let words: Vec<&str> = line.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty()).collect();
            if depth == 1 && line.contains("->") {
                disk = words.first().and_then(|word| word.parse().ok());
            }
            depth += line.matches('{').count() as i64 - line.matches('}').count() as i64;
            if let (Some(disk), ["sectorsize", size]) = (disk, &words[..])
                && let Some(size) = size.parse().ok().filter(|size| (1..=1 << 20).contains(size))
            {
                sizes.get_mut(disk).map(|known| known.get_or_insert(size));
            }
        }
        Self(sizes)
    }

    fn request(&self, record: &[u8], out: &mut Columns) -> Option<Request> {
        let micros = word(record, 3);
        if micros >= 1_000_000 {
            return None;
        }
        let disk = (word(record, 8) >> 8) & 0xff;
        let sector_size = self.0[disk as usize].unwrap_or(USUAL_SECTOR);
        Some(Request {
            arrival: Nanos((u64::from(word(record, 2)) * 1_000_000 + u64::from(micros)) * MICRO),
            offset: Bytes(u64::from(word(record, 7)) * sector_size),
            length: word(record, 6),
            op: if word(record, 11) & 1 == 1 { Op::Read } else { Op::Write },
            volume: out.volume_id(&format!("disk{disk}"))?,
            queued: Some(Nanos(u64::from(word(record, 4)) * MICRO)),
            response: Some(Nanos(u64::from(word(record, 5)) * MICRO)),
        })
    }
}

/// Whether a record with a usual header begins here, and another one behind it as far as can be seen.
fn looks_like_a_record(input: &[u8]) -> bool {
    let header = |input: &[u8]| {
        let (size, id) = (word(input, 0) as usize, word(input, 1));
        let usual = (WORDS * 4..=LONGEST_RECORD).contains(&size) && size.is_multiple_of(4);
        (usual && (1..=4).contains(&(id >> 16)) && matches!(id & 0xffff, SHORT_IO | SUSPECT_IO)).then_some(size)
    };
    let Some(size) = (input.len() >= 8).then(|| header(input)).flatten() else { return false };
    match input.get(size..) {
        Some(next) => next.is_empty() || next.len() < 8 || header(next).is_some(),
        None => false,
    }
}

/// The big-endian word at `index`; the caller has checked the length.
fn word(record: &[u8], index: usize) -> u32 {
    let bytes = &record[index * 4..index * 4 + 4];
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    memchr::memmem::find(haystack, needle)
}

/// Two requests on two disks and one suspect record between them.
fn sample() -> Vec<u8> {
    let mut bytes = b"$$TR_IOREC-1.3\ntracedate\t= \"Sat May 30 00:03:06 1992\";
disks = {\n 0 -> {\n sectorsize = 256,\n sections = {\n 8 -> {\n }\n }\n },\n 1 -> {\n sectorsize = 512\n }\n};\n\x0c"
        .to_vec();
    let records: [[u32; 14]; 3] = [
        [56, 0x4_0001, 1, 500, 174, 19_687, 4096, 1056, 0x0800_0007, 4, 1, 27, 0, 1],
        [56, 0x4_0004, 1, 600, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        [56, 0x4_0001, 2, 0, 76, 10_038, 8192, 16, 0x0800_0108, 4, 1, 26, 0, 1],
    ];
    for word in records.as_flattened() {
        bytes.extend(word.to_be_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{ReadOptions, parse_bytes};

    #[test]
    fn records_are_read_with_their_disks_sector_size() {
        let trace = parse_bytes("t", &sample(), &ReadOptions::default()).unwrap();
        let requests: Vec<Request> = trace.requests().collect();
        assert_eq!(requests.len(), 2);
        assert_eq!(requests[0].offset, Bytes(1056 * 256));
        assert_eq!(requests[1].offset, Bytes(16 * 512));
        assert_eq!((requests[0].op, requests[1].op), (Op::Read, Op::Write));
        assert_eq!(requests[0].response, Some(Nanos(19_687_000)));
        assert_eq!(requests[1].arrival, Nanos(999_500_000));
        assert_eq!(trace.columns.volumes, ["disk0", "disk1"]);
    }

    #[test]
    fn damage_is_named_by_its_byte() {
        let mut bytes = sample();
        let first = bytes.iter().position(|&byte| byte == HEADER_END).unwrap() + 1;
        bytes.truncate(bytes.len() - 1);
        let error = parse_bytes("t", &bytes, &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains(&format!("byte {}: expected a whole record", first + 112)), "{error}");
        let skipping = ReadOptions { skip_bad: true, ..ReadOptions::default() };
        let mut damaged = sample();
        damaged[first] = 0xff;
        let trace = parse_bytes("t", &damaged, &skipping).unwrap();
        assert_eq!((trace.len(), trace.provenance.bad_records), (1, 1), "the records behind the damaged one are found");
        bytes[first + 3] = 7;
        let error = parse_bytes("t", &bytes, &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains(&format!("byte {first}: expected a record size")), "{error}");
    }

    #[test]
    fn a_header_is_short_and_the_first_size_of_a_disk_counts() {
        let text = sample();
        let end = text.iter().position(|&byte| byte == HEADER_END).unwrap();
        let with = |more: &str| [&text[..end], more.as_bytes(), &text[end..]].concat();
        let again =
            "disks = {\n 1 -> {\n sectorsize = 1024\n }\n 4000000 -> {\n sectorsize = 512\n }\n};\n".repeat(5_000);
        let trace = parse_bytes("t", &with(&again), &ReadOptions::default()).unwrap();
        assert_eq!(trace.columns.request(1).offset, Bytes(16 * 512));
        let error = parse_bytes("t", &with(&again.repeat(3)), &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains("expected a header of at most 1 MiB"), "{error}");
    }
}
