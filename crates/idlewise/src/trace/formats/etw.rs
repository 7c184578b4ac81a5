//! MSR ETW (Exchange, TPC): a header between `BeginHeader` and `EndHeader` that names the columns of each kind of event, then
//! padded lines `DiskRead|DiskWrite, TimeStamp, Process (PID), ThreadID, IrpPtr, ByteOffset, IOSize, ElapsedTime, DiskNum,
//! IrpFlags, DiskSvcTime, ...`; times in us. Windows writes the event when the request is complete, so the arrival is
//! `TimeStamp - ElapsedTime`.

use super::lines::{Field, Fields, Line, Lines, Mistake, Row};
use super::{Format, Rows};
use crate::trace::{Columns, Op, Request};
use crate::{Bytes, Nanos};

pub const FORMAT: Format = Format {
    name: "etw",
    about: "MSR ETW text (Exchange, TPC): arrival, issue and completion in us, volumes by disk number",
    detect: |head| head.trim_ascii_start().starts_with(b"BeginHeader"),
    rows: Rows::InOrder,
    resolution: Nanos(MICRO),
    parser: || Box::new(Lines::new(Etw::default())),
    writer: None,
    sample: || {
        b"BeginHeader
   DiskRead,  TimeStamp, Process Name ( PID), ThreadID, IrpPtr, ByteOffset, IOSize, ElapsedTime, DiskNum, IrpFlags, DiskSvcTime
EndHeader
   DiskRead,      22450,       System (   4),      108, 0xfffffade708ac4c0, 0x00004cf5c00, 0x00004000,  2450,  3, 0x060043,  2350
  FileIoEnd,      22500,       System (   4),      108, 0xfffffade708ac4c0
  DiskWrite,      30000,   store.exe (1428),      220, 0xfffffade708ac4c0, 0x00004cf9c00, 0x00002000,   500,  3, 0x060043,   500\n"
            .to_vec()
    },
};

const MICRO: u64 = 1_000;

#[derive(Default)]
struct Etw {
    /// Whether the header has ended.
    began: bool,
}

impl Row for Etw {
    fn row(&mut self, line: Line, out: &mut Columns) -> Result<(), Mistake> {
        if !self.began {
            self.began = line.trim_ascii() == b"EndHeader";
            return Ok(());
        }
        let mut fields = Fields::new(line, b',');
        let kind = fields.field("an event")?;
        let op = match kind.text {
            b"DiskRead" => Op::Read,
            b"DiskWrite" => Op::Write,
            [letter, ..] if letter.is_ascii_alphabetic() => return Ok(()),
            _ => return Err(kind.mistake("an event such as DiskRead")),
        };
        let completion = fields.field("a time in microseconds")?.time(MICRO, "a time in microseconds")?;
        for column in ["a process", "a thread", "an IRP"] {
            fields.field(column)?;
        }
        let offset = Bytes(hexadecimal(fields.field("an offset")?, "an offset in bytes as 0x...")?);
        let length = fields.field("a size")?;
        let bytes = hexadecimal(length, "a size in bytes as 0x...")?;
        let length = u32::try_from(bytes).map_err(|_| length.mistake("a size under 4 GiB"))?;
        let response = fields.field("the elapsed microseconds")?.time(MICRO, "the elapsed microseconds")?;
        let disk = fields.field("a disk number")?;
        let number: u32 = disk.whole("a disk number")?;
        fields.field("flags")?;
        let service = fields.field("the microseconds in the disk")?.time(MICRO, "the microseconds in the disk")?;
        let volume = disk.volume(&format!("disk{number}"), out)?;
        let arrival = completion.since(response);
        // What began before the trace begins with it.
        let whole = completion.since(arrival);
        let (queued, response) = (Some(response.since(service).min(whole)), Some(whole));
        out.push(Request { arrival, offset, length, op, volume, queued, response });
        Ok(())
    }
}

fn hexadecimal(field: Field, expected: &'static str) -> Result<u64, Mistake> {
    let digits = field.text.strip_prefix(b"0x").filter(|digits| !digits.is_empty());
    let text = digits.and_then(|digits| std::str::from_utf8(digits).ok()).filter(|text| !text.starts_with('+'));
    text.and_then(|text| u64::from_str_radix(text, 16).ok()).ok_or_else(|| field.mistake(expected))
}

#[cfg(test)]
mod tests {
    use crate::trace::{ReadOptions, parse_bytes};
    use crate::{Bytes, Nanos};

    #[test]
    fn the_arrival_is_the_completion_less_the_elapsed_time() {
        let trace = parse_bytes("t", &(super::FORMAT.sample)(), &ReadOptions::default()).unwrap();
        let read = trace.columns.request(0);
        assert_eq!((read.offset, read.length), (Bytes(0x4cf5c00), 0x4000));
        assert_eq!((read.queued, read.response), (Some(Nanos(100_000)), Some(Nanos(2_450_000))));
        // 22,450 - 2,450 us and 30,000 - 500 us.
        assert_eq!(trace.columns.request(1).arrival, Nanos(9_500_000));
        assert_eq!(trace.columns.volumes, ["disk3"]);
    }
}
