//! Writes a trace as Parquet.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::{ORIGIN_KEY, RESOLUTION_KEY, VERSION, VERSION_KEY};
use crate::Nanos;
use crate::trace::{Columns, Op, Provenance, Request};

const SCHEMA: &str = "message trace {
    required int64 arrival;
    optional int64 issue;
    optional int64 completion;
    required int64 offset (integer(64, false));
    required int32 length (integer(32, false));
    required binary op (string);
    required binary volume (string);
}";
const UNITS: [(&str, &str); 5] =
    [("arrival", "ns"), ("issue", "ns"), ("completion", "ns"), ("offset", "bytes"), ("length", "bytes")];
/// Times and places are nearly all different: differences are shorter than a dictionary, and made faster.
const DIFFERENCES: [&str; 4] = ["arrival", "issue", "completion", "offset"];
/// Rows in a group, which are held until it is full.
const GROUP: usize = 1 << 18;
/// Values that are handed over at a time.
const CHUNK: usize = 1 << 12;

/// Writes a trace as Parquet.
pub struct ParquetWriter<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    /// The rows of the next group.
    held: Columns,
}

impl<W: Write + Send> ParquetWriter<W> {
    /// Begins a file for a trace that comes from there.
    ///
    /// # Errors
    /// What `out` says.
    pub fn new(out: W, provenance: &Provenance) -> io::Result<Self> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_key_value_metadata(Some(stated(provenance)));
        let properties = DIFFERENCES.into_iter().fold(properties, |properties, column| {
            properties
                .set_column_dictionary_enabled(column.into(), false)
                .set_column_encoding(column.into(), Encoding::DELTA_BINARY_PACKED)
        });
        let schema = Arc::new(parse_message_type(SCHEMA)?);
        let writer = SerializedFileWriter::new(out, schema, Arc::new(properties.build()))?;
        Ok(Self { writer, held: Columns::default() })
    }

    /// Writes requests, in order of arrival.
    ///
    /// # Errors
    /// What the file says.
    pub fn write(&mut self, requests: &Columns) -> io::Result<()> {
        let latest = requests.arrival.last().map_or(0, |arrival| arrival.0);
        if i64::try_from(latest).is_err() {
            let problem =
                "requests 292 years apart: their clocks begin at different times, which merge --align evens out";
            return Err(io::Error::other(problem));
        }
        self.held.append(requests.clone()).ok_or_else(|| io::Error::other("more than 65,536 volumes"))?;
        let full = self.held.len() / GROUP * GROUP;
        for begin in (0..full).step_by(GROUP) {
            self.write_group(begin..begin + GROUP)?;
        }
        self.held = self.held.split_off(full);
        Ok(())
    }

    /// Where it goes.
    pub fn get_ref(&self) -> &W {
        self.writer.inner()
    }

    /// Ends the file.
    ///
    /// # Errors
    /// What the file says.
    pub fn finish(mut self) -> io::Result<W> {
        if !self.held.is_empty() {
            self.write_group(0..self.held.len())?;
        }
        Ok(self.writer.into_inner()?)
    }

    fn write_group(&mut self, rows: Range<usize>) -> io::Result<()> {
        let all = &self.held;
        let volumes: Vec<ByteArray> = all.volumes.iter().map(|name| name.as_bytes().to_vec().into()).collect();
        let [read, write] = ["read", "write"].map(ByteArray::from);
        let op = |op| if op == Op::Read { read.clone() } else { write.clone() };
        let mut group = self.writer.next_row_group()?;
        put::<Int64Type, _>(&mut group, &all.arrival[rows.clone()], |at| at.0 as i64)?;
        put_known(&mut group, all, rows.clone(), |request| request.queued)?;
        put_known(&mut group, all, rows.clone(), |request| request.response)?;
        put::<Int64Type, _>(&mut group, &all.offset[rows.clone()], |at| at.0 as i64)?;
        put::<Int32Type, _>(&mut group, &all.length[rows.clone()], |length| length as i32)?;
        put::<ByteArrayType, _>(&mut group, &all.op[rows.clone()], op)?;
        put::<ByteArrayType, _>(&mut group, &all.volume[rows], |volume| volumes[usize::from(volume)].clone())?;
        group.close()?;
        Ok(())
    }
}

/// What the file says of a trace that comes from there.
fn stated(provenance: &Provenance) -> Vec<KeyValue> {
    let numbers =
        [(VERSION_KEY, VERSION), (RESOLUTION_KEY, provenance.resolution.0), (ORIGIN_KEY, provenance.origin.0)];
    let numbers = numbers.map(|(key, value)| KeyValue::new(key.to_string(), value.to_string()));
    let units = UNITS.map(|(column, unit)| KeyValue::new(format!("idlewise.unit.{column}"), unit.to_string()));
    numbers.into_iter().chain(units).collect()
}

/// Writes the next column of the group: a value for each of these.
fn put<T: DataType, V: Copy>(
    group: &mut SerializedRowGroupWriter<impl Write + Send>,
    all: &[V],
    value: impl Fn(V) -> T::T,
) -> Result<()> {
    let Some(mut column) = group.next_column()? else { return Ok(()) };
    for chunk in all.chunks(CHUNK) {
        let values: Vec<T::T> = chunk.iter().copied().map(&value).collect();
        column.typed::<T>().write_batch(&values, None, None)?;
    }
    column.close()
}

/// Writes the next column of the group: when something happened to each request, where that is known.
fn put_known(
    group: &mut SerializedRowGroupWriter<impl Write + Send>,
    requests: &Columns,
    rows: Range<usize>,
    after_arrival: impl Fn(Request) -> Option<Nanos>,
) -> Result<()> {
    let Some(mut column) = group.next_column()? else { return Ok(()) };
    let time = |request: Request| {
        let at = after_arrival(request)?.0.saturating_add(request.arrival.0);
        Some(i64::try_from(at).unwrap_or(i64::MAX))
    };
    for begin in rows.clone().step_by(CHUNK) {
        let chunk = begin..rows.end.min(begin + CHUNK);
        let times: Vec<Option<i64>> = chunk.map(|index| time(requests.request(index))).collect();
        let present: Vec<i16> = times.iter().map(|time| i16::from(time.is_some())).collect();
        let known: Vec<i64> = times.into_iter().flatten().collect();
        column.typed::<Int64Type>().write_batch(&known, Some(&present), None)?;
    }
    column.close()
}
