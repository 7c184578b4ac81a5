//! blkparse's default text: `major,minor cpu seq seconds.nanoseconds pid action rwbs sector + sectors [process]`, a line an
//! event; of the many actions Q (queued), D (issued) and C (completed) matter. Summaries may follow.

use super::lines::{Fields, Line, Lines, Mistake, Row, claims};
use super::{Format, Rows};
use crate::trace::{Columns, Op, Request, Stage};
use crate::{Bytes, Nanos};

pub const FORMAT: Format = Format {
    name: "blkparse",
    about: "blkparse text: arrival (Q), issue (D) and completion (C) in ns, volumes by device number",
    detect: |head| claims(head, Blkparse::default()),
    rows: Rows::Events,
    resolution: Nanos(1),
    parser: || Box::new(Lines::new(Blkparse::default())),
    writer: None,
    sample: || {
        b"  8,0    1        1     0.000000000  4020  Q   R 282624 + 8 [my app]
  8,0    1        2     0.000001581  4020  G   R 282624 + 8 [my app]
  8,0    1        3     0.000003650  4020  P   N [my app]
  8,0    1        5     0.000005462  4020  D  RS 282624 + 8 [my app]
  8,0    0        6     0.013163464     0  C  RS 282624 + 8 [0]
  8,0    1        7     0.020000000  4020  Q FWS [my app]
  8,0    1        8     0.030000000  4020  Q  WS 8 + 16 [my app]
  8,0    0        9     0.031000000     0  C  WS 8 + 16 [0]
CPU1 (sda):
 Reads Queued:           1,        4KiB\t Writes Queued:           1,        8KiB\n"
            .to_vec()
    },
};

/// First words of what blkparse writes when the events have ended.
const SUMMARIES: [&[u8]; 6] = [b"CPU", b"Total", b"Throughput", b"Events", b"Skips", b"Input"];

#[derive(Default)]
struct Blkparse {
    ended: bool,
    last: (Vec<u8>, u16),
}

impl Row for Blkparse {
    fn row(&mut self, line: Line, out: &mut Columns) -> Result<(), Mistake> {
        self.ended |= SUMMARIES.iter().any(|word| line.starts_with(word));
        if self.ended {
            return Ok(());
        }
        let mut fields = Fields::words(line);
        let device = fields.field("a device as major,minor")?;
        let mut numbers = Fields::new(device.text, b',');
        for _ in 0..2 {
            let number =
                numbers.field("a device as major,minor").and_then(|n| n.whole::<u32>("a device as major,minor"));
            number.map_err(|_| device.mistake("a device as major,minor"))?;
        }
        fields.field("a CPU")?.whole::<u32>("a CPU")?;
        fields.field("a sequence number")?.whole::<u64>("a sequence number")?;
        let arrival = fields.field("a time in seconds")?.seconds("a time in seconds")?;
        fields.field("a process number")?.whole::<u32>("a process number")?;
        let stage = match fields.field("an action")?.text {
            b"Q" => Stage::Queued,
            b"D" => Stage::Issued,
            b"C" => Stage::Completed,
            _ => return Ok(()),
        };
        let Some(op) = op(fields.field("a kind such as R, WS or FN")?.text) else { return Ok(()) };
        // A flush has no sector; a packet command has bytes and then its hexadecimal digits.
        let Ok(sector) = fields.field("a sector") else { return Ok(()) };
        if sector.text.starts_with(b"[") || fields.field("+").is_ok_and(|plus| plus.text != b"+") {
            return Ok(());
        }
        let offset = Bytes(sector.sectors("a sector")?);
        let length: u32 = fields.field("a count of sectors")?.sectors("a count of sectors, under 4 GiB in all")?;
        if length == 0 {
            return Ok(());
        }
        if self.last.0 != device.text {
            let name = String::from_utf8_lossy(device.text);
            let id = device.volume(&name, out)?;
            self.last = (device.text.to_vec(), id);
        }
        out.push_event(stage, Request { arrival, offset, length, op, volume: self.last.1, ..Request::default() });
        Ok(())
    }
}

/// Reads and writes by the flags of a request: a flush may come first, others follow.
fn op(flags: &[u8]) -> Option<Op> {
    match flags {
        [b'R', ..] | [b'F', b'R', ..] => Some(Op::Read),
        [b'W', ..] | [b'F', b'W', ..] => Some(Op::Write),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::Nanos;
    use crate::trace::{ReadOptions, parse_bytes};

    #[test]
    fn arrival_issue_and_completion_make_a_request() {
        let trace = parse_bytes("t", &(super::FORMAT.sample)(), &ReadOptions::default()).unwrap();
        let requests: Vec<_> = trace.requests().map(|r| (r.arrival.0, r.length, r.queued, r.response)).collect();
        let known = |ns| Some(Nanos(ns));
        assert_eq!(requests[0], (0, 4096, known(5_462), known(13_163_464)));
        assert_eq!(requests[1], (30_000_000, 8192, None, known(1_000_000)));
        assert_eq!(requests.len(), 2);
        assert_eq!(trace.columns.volumes, ["8,0"]);
    }

    #[test]
    fn packet_commands_and_remaps_are_passed_over_and_nonsense_is_not() {
        let line =
            "8,0 1 1 0.1 4 Q R 8 + 8 [x]\n8,0 1 2 0.2 4 D R 36 (12 00 00) [x]\n8,0 1 3 0.3 4 A R 8 + 8 <- (8,1) 0\n";
        assert_eq!(parse_bytes("t", line.as_bytes(), &ReadOptions::default()).unwrap().len(), 1);
        let error = parse_bytes("t", format!("{line}8;0 x\n").as_bytes(), &ReadOptions::default()).unwrap_err();
        assert!(error.to_string().contains("line 4, column 1: expected a device as major,minor"), "{error}");
    }
}
