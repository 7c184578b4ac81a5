//! MSR Cambridge CSV: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`, times in 100 ns, no header.

use std::io::{self, Write};

use super::known::Known;
use super::lines::{Fields, Line, Lines, Mistake, Row, claims};
use super::names::WrittenNames;
use super::{Format, Output, Rows, Writer};
use crate::trace::{Columns, Op, Request};
use crate::{Bytes, Nanos};

pub const FORMAT: Format = Format {
    name: "msr",
    about: "MSR Cambridge CSV: arrival and response in 100 ns, volumes by host and disk number",
    detect: |head| claims(head, Msr::default()),
    rows: Rows::Alone,
    resolution: Nanos(TICK),
    parser: || Box::new(Lines::new(Msr::default())),
    writer: Some(Output {
        extension: "csv",
        keeps_responses: true,
        writer: |provenance| Box::new(Out { origin: provenance.origin, names: WrittenNames::default() }),
    }),
    sample: || b"128166386783630000,hm,0,Write,4096,512,20\r\n\n128166386783640000,hm,1,read,0,1024,31\n".to_vec(),
};

/// The unit of time.
const TICK: u64 = 100;
#[derive(Default)]
struct Msr {
    /// By the fields of host and disk number.
    known: Known,
}

impl Row for Msr {
    #[inline(always)]
    fn row(&mut self, line: Line, out: &mut Columns) -> Result<(), Mistake> {
        const TIME: &str = "a time in 100 ns since 1601";
        let mut fields = Fields::new(line, b',');
        let arrival = fields.time(TICK, TIME)?;
        let names = fields.raw(2);
        let volume = match self.known.get(names) {
            Some(volume) => {
                fields.step_over(names);
                volume
            }
            None => self.volume(&mut fields, names, out)?,
        };
        let op = match () {
            () if fields.skip(b"Read,") => Op::Read,
            () if fields.skip(b"Write,") => Op::Write,
            () => {
                let kind = fields.field("Read or Write")?;
                match kind.text {
                    text if text.eq_ignore_ascii_case(b"read") => Op::Read,
                    text if text.eq_ignore_ascii_case(b"write") => Op::Write,
                    _ => return Err(kind.mistake("Read or Write")),
                }
            }
        };
        let offset = Bytes(fields.whole("an offset in bytes")?);
        let length = fields.whole("a size in bytes, under 4 GiB")?;
        let response = fields.time(TICK, "a response time in 100 ns")?;
        if response.0.checked_add(arrival.0).is_none() {
            return Err(Mistake { at: 0, len: line.len(), expected: "a completion before the year 2186" });
        }
        out.push(Request { arrival, offset, length, op, volume, response: Some(response), ..Request::default() });
        Ok(())
    }
}

impl Msr {
    /// The volume that the next two fields name, which was not known.
    #[cold]
    fn volume(&mut self, fields: &mut Fields, names: &[u8], out: &mut Columns) -> Result<u16, Mistake> {
        let host = fields.field("a host name")?;
        let disk = fields.field("a disk number")?;
        disk.whole::<u32>("a disk number")?;
        if host.text.is_empty() {
            return Err(host.mistake("a host name"));
        }
        let name = format!("{}_{}", String::from_utf8_lossy(host.text), String::from_utf8_lossy(disk.text));
        let volume = host.volume(&name, out)?;
        self.known.learn(names, volume);
        Ok(volume)
    }
}

/// Times are rounded down to 100 ns; an unknown response is written as zero; a volume that is not named `host_disk`
/// becomes disk 0 of a host of that name.
struct Out {
    origin: Nanos,
    /// Host and disk of each volume so far.
    names: WrittenNames,
}

impl Writer for Out {
    fn write(&mut self, requests: &Columns, out: &mut dyn Write) -> io::Result<()> {
        self.names.add(&requests.volumes, split_name);
        for request in requests.requests() {
            let op = if request.op == Op::Read { "Read" } else { "Write" };
            let arrival = self.origin.0.saturating_add(request.arrival.0);
            // A completion beyond the end of the clock is none that could be read.
            let response = request.response.unwrap_or_default().0.min(u64::MAX - arrival) / TICK;
            let (arrival, name) = (arrival / TICK, self.names.of(request.volume));
            writeln!(out, "{arrival},{name},{op},{},{},{response}", request.offset.0, request.length)?;
        }
        Ok(())
    }
}

fn split_name(volume: &str) -> String {
    let number = |disk: &str| disk.bytes().all(|digit| digit.is_ascii_digit()) && disk.parse::<u32>().is_ok();
    let (host, disk) = volume.rsplit_once('_').filter(|(_, disk)| number(disk)).unwrap_or((volume, "0"));
    let host = host.replace(|c: char| c == ',' || c.is_control(), "_");
    // Blanks around a field are none of it.
    let host = if host.trim().len() < host.len() { host.replace(char::is_whitespace, "_") } else { host };
    format!("{},{disk}", if host.is_empty() { "_" } else { &host })
}

#[cfg(test)]
mod tests {
    use crate::trace::{ReadOptions, parse_bytes};

    fn error(line: &str) -> String {
        let good = "1,hm,0,Read,0,512,1\n";
        parse_bytes("t", format!("{good}{line}").as_bytes(), &ReadOptions::default()).unwrap_err().to_string()
    }

    #[test]
    fn each_field_is_checked_where_it_stands() {
        assert!(error("x,hm,0,Read,0,512,1").contains("line 2, column 1: expected a time"));
        assert!(error("1,,0,Read,0,512,1").contains("column 3: expected a host name, found nothing"));
        assert!(error("1,hm,-1,Read,0,512,1").contains("column 6: expected a disk number"));
        assert!(error("1,hm,0,Read,1.8E+11,512,1").contains("column 13: expected an offset in bytes"));
        assert!(error("1,hm,0,Read,0,5000000000,1").contains("column 15: expected a size in bytes, under 4 GiB"));
        assert!(error("1,hm,0,Read,0,512").contains("column 18: expected a response time"));
        assert!(error("999999999999999999999,hm,0,Read,0,512,1").contains("expected a time"));
        assert!(error("18446744073709551615,hm,0,Read,0,512,1").contains("expected a time"));
    }
}
