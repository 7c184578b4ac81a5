//! A trace of a few bytes a request, so that the fuzzer need not find out how numbers are written.

use idlewise::trace::write::{Target, TraceWriter};
use idlewise::trace::{Columns, Op, Provenance, Request, Trace};
use idlewise::{Bytes, Nanos};

use crate::{Result, Unstructured};

/// Of one trace; a command that looks at each often must be asked often.
const MOST_REQUESTS: usize = 64;
const VOLUMES: [&str; 3] = ["hm_0", "b", "c"];

/// A time from a nanosecond to 26 days, each power of two as likely as the others.
pub fn time(from: &mut Unstructured) -> Result<Nanos> {
    let (exponent, fraction) = (from.int_in_range(0..=51u32)?, from.arbitrary::<u8>()?);
    Ok(Nanos(((1 << 8) + u64::from(fraction)) << exponent >> 8))
}

/// A size from a byte to 16 TiB.
pub fn size(from: &mut Unstructured) -> Result<Bytes> {
    Ok(Bytes((u64::from(from.arbitrary::<u8>()?) + 1) << from.int_in_range(0..=36u32)?))
}

/// A share above zero and up to one.
pub fn share(from: &mut Unstructured) -> Result<f64> {
    Ok((f64::from(from.arbitrary::<u16>()?) + 1.0) / 65536.0)
}

/// Requests, until the fuzzer's bytes are used up.
pub fn requests(from: &mut Unstructured) -> Result<Trace> {
    let mut columns = Columns::default();
    VOLUMES.iter().for_each(|volume| assert!(columns.volume_id(volume).is_some()));
    let (mut arrival, mut end) = (0u64, 0u64);
    while from.len() >= 6 && columns.len() < MOST_REQUESTS {
        let kind: u8 = from.arbitrary()?;
        if kind & 7 != 0 {
            arrival += time(from)?.0;
        }
        let offset = if kind & 8 != 0 { size(from)?.0 } else { end };
        let length = u32::from(from.arbitrary::<u16>()?) << 9;
        let response = if kind & 16 != 0 { Some(time(from)?) } else { None };
        let queued = response.filter(|_| kind & 24 == 24).map(|response| Nanos(response.0 / 2));
        let op = if kind & 32 != 0 { Op::Write } else { Op::Read };
        let volume = u16::from(kind >> 6) % 3;
        end = offset + u64::from(length);
        columns.push(Request { arrival: Nanos(arrival), offset: Bytes(offset), length, op, volume, queued, response });
    }
    Ok(Trace::from_columns(Provenance { resolution: Nanos(1), ..Provenance::default() }, columns))
}

/// A trace as a file.
pub fn written(trace: &Trace, target: Target) -> std::io::Result<Vec<u8>> {
    let mut writer = TraceWriter::new(target, Vec::new(), &trace.provenance)?;
    writer.write(&trace.columns)?;
    writer.finish()
}

/// The file that a command reads: of requests made up, or any bytes.
pub fn file(mut from: Unstructured) -> Result<Vec<u8>> {
    const RAW: u8 = 0;
    let kind: u8 = from.int_in_range(0..=7)?;
    if kind == RAW {
        return Ok(from.take_rest().into());
    }
    // Most in the format that is read fastest.
    let targets: Vec<Target> = Target::all().collect();
    let msr = Target::named("msr").expect("a format that is written");
    let target = targets.get(usize::from(kind)).copied().unwrap_or(msr);
    // What a format cannot hold is no file.
    Ok(written(&requests(&mut from)?, target).unwrap_or_default())
}
