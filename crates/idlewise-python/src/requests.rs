//! Requests between Arrow's columns and the library's.

use std::sync::{Arc, LazyLock};

use arrow_array::cast::AsArray;
use arrow_array::types::{DurationNanosecondType, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, DurationNanosecondArray, Int64Array, RecordBatch, StringArray};
use arrow_cast::cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use idlewise::trace::{Columns, Op, Request};
use idlewise::{Bytes, Nanos};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::Error;

const TIME: DataType = DataType::Duration(TimeUnit::Nanosecond);

/// The columns of requests that go out, as in Parquet files.
pub static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        Field::new("arrival", TIME, false),
        Field::new("issue", TIME, true),
        Field::new("completion", TIME, true),
        Field::new("offset", DataType::Int64, false),
        Field::new("length", DataType::Int64, false),
        Field::new("op", DataType::Utf8, false),
        Field::new("volume", DataType::Utf8, false),
    ]))
});

/// Requests as they go out.
pub fn to_batch(requests: &Columns) -> RecordBatch {
    let time = |of: &dyn Fn(Request) -> Option<Nanos>| {
        let times = requests.requests().map(|request| of(request).map(|time| time.0 as i64));
        Arc::new(DurationNanosecondArray::from_iter(times)) as ArrayRef
    };
    let after = |request: Request, later: Option<Nanos>| later.map(|later| request.arrival + later);
    let op = |request: Request| if request.op == Op::Read { "read" } else { "write" };
    let volume = |request: Request| &*requests.volumes[usize::from(request.volume)];
    let arrivals: DurationNanosecondArray = requests.arrival.iter().map(|at| at.0 as i64).collect::<Vec<_>>().into();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(arrivals),
        time(&|request| after(request, request.queued)),
        time(&|request| after(request, request.response)),
        Arc::new(requests.offset.iter().map(|offset| offset.0 as i64).collect::<Int64Array>()),
        Arc::new(requests.length.iter().map(|&length| i64::from(length)).collect::<Int64Array>()),
        Arc::new(StringArray::from_iter_values(requests.requests().map(op))),
        Arc::new(StringArray::from_iter_values(requests.requests().map(volume))),
    ];
    RecordBatch::try_new(SCHEMA.clone(), columns).expect("the columns are those of the schema")
}

/// Which columns of a table are which, and in what unit its plain numbers are times.
#[derive(Clone)]
pub struct Layout {
    /// What a column that we look for is called in the table.
    names: Vec<(String, String)>,
    /// Nanoseconds in the unit.
    unit: i64,
}

/// Columns that are looked for.
const KNOWN: [&str; 8] = ["arrival", "issue", "completion", "response", "offset", "length", "op", "volume"];

impl Layout {
    /// From what `scan` was given.
    pub fn new(columns: Option<&Bound<PyDict>>, unit: Option<&str>) -> Result<Self, Error> {
        let unit = match unit.unwrap_or("ns") {
            "s" => 1_000_000_000,
            "ms" => 1_000_000,
            "us" => 1_000,
            "ns" => 1,
            other => return Err(Error::Value(format!("unit='{other}': it is one of s, ms, us and ns"))),
        };
        let names: Vec<(String, String)> = columns
            .map(|columns| columns.extract())
            .transpose()?
            .map_or(Vec::new(), |names: std::collections::HashMap<String, String>| names.into_iter().collect());
        if let Some((name, _)) = names.iter().find(|(name, _)| !KNOWN.contains(&name.as_str())) {
            return Err(Error::Value(format!("columns: no '{name}' is looked for, only {}", KNOWN.join(", "))));
        }
        Ok(Self { names, unit })
    }

    fn column<'a>(&self, batch: &'a RecordBatch, name: &str) -> Result<Option<&'a ArrayRef>, Error> {
        let given = self.names.iter().find(|(one, _)| one == name).map(|(_, given)| given.as_str());
        let found = batch.column_by_name(given.unwrap_or(name));
        match (found, given) {
            (None, Some(given)) => Err(Error::Value(format!("columns: there is no column '{given}'"))),
            (found, _) => Ok(found),
        }
    }

    fn needed<'a>(&self, batch: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef, Error> {
        self.column(batch, name)?.ok_or_else(|| {
            let schema = batch.schema();
            let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            Error::Value(format!("no column '{name}' among {}: columns= says what it is called", names.join(", ")))
        })
    }

    /// The finest difference that times of this column can have.
    pub fn resolution(&self, schema: &Schema) -> Nanos {
        let given = self.names.iter().find(|(one, _)| one == "arrival").map_or("arrival", |(_, given)| given.as_str());
        match schema.field_with_name(given).map(Field::data_type) {
            Ok(DataType::Timestamp(unit, _) | DataType::Duration(unit)) => Nanos(nanoseconds(*unit) as u64),
            Ok(DataType::Float16 | DataType::Float32 | DataType::Float64) => Nanos(1),
            _ => Nanos(self.unit as u64),
        }
    }

    /// The requests of a batch, whose volumes are added to those of `known`. Times are as they are.
    pub fn requests(&self, batch: &RecordBatch, known: &Columns) -> Result<Columns, Error> {
        let arrival = self.times(self.needed(batch, "arrival")?, "arrival")?;
        let optional = |name| self.column(batch, name)?.map(|column| self.times(column, name)).transpose();
        let (issue, completion, response) = (optional("issue")?, optional("completion")?, optional("response")?);
        let offset = whole(self.needed(batch, "offset")?, "offset")?;
        let length = whole(self.needed(batch, "length")?, "length")?;
        let op = text(self.needed(batch, "op")?, "op")?;
        let volume = self.column(batch, "volume")?.map(|column| text(column, "volume")).transpose()?;
        let mut requests = known.with_volumes_of();
        requests.reserve(batch.num_rows());
        // Of neighbours the volume is mostly the same.
        let mut last: Option<(String, u16)> = None;
        for row in 0..batch.num_rows() {
            let name = volume.as_ref().map_or("disk", |volume| volume.as_string::<i32>().value(row));
            let id = match &last {
                Some((known, id)) if known == name => *id,
                _ => {
                    let id = requests.volume_id(name);
                    let id =
                        id.ok_or_else(|| Error::Value("more than 65,536 volumes, or a name of over 255 bytes".into()))?;
                    last = Some((name.into(), id));
                    id
                }
            };
            let at = value(&arrival, row, "arrival")?;
            let later = |times: &Option<Int64Array>, name| {
                let known = times.as_ref().filter(|times| times.is_valid(row));
                known.map(|times| value(times, row, name)).transpose()
            };
            let since = |time: Option<u64>| time.map(|time| Nanos(time.saturating_sub(at)));
            let response = match later(&response, "response")? {
                Some(response) => Some(Nanos(response)),
                None => since(later(&completion, "completion")?),
            };
            let length = value(&length, row, "length")?;
            requests.push(Request {
                arrival: Nanos(at),
                offset: Bytes(value(&offset, row, "offset")?),
                length: u32::try_from(length)
                    .map_err(|_| Error::Value(format!("row {row}: a length of 4 GiB or more")))?,
                op: of_text(op.as_string::<i32>().value(row), row)?,
                volume: id,
                queued: since(later(&issue, "issue")?),
                response,
            });
        }
        Ok(requests)
    }

    /// Times in nanoseconds.
    fn times(&self, column: &ArrayRef, name: &str) -> Result<Int64Array, Error> {
        match column.data_type() {
            DataType::Timestamp(_, zone) => {
                let cast = cast(column, &DataType::Timestamp(TimeUnit::Nanosecond, zone.clone()), name)?;
                whole(&cast, name)
            }
            // DuckDB has intervals where others have durations.
            DataType::Duration(_) | DataType::Interval(_) => {
                let cast = cast(column, &TIME, name)?;
                Ok(cast.as_primitive::<DurationNanosecondType>().reinterpret_cast::<Int64Type>())
            }
            kind if kind.is_floating() => {
                let numbers = cast(column, &DataType::Float64, name)?;
                let unit = self.unit as f64;
                Ok(numbers.as_primitive::<Float64Type>().unary(|time| (time * unit).round() as i64))
            }
            _ => {
                let times = whole(column, name)?;
                let beyond = || Error::Value(format!("column '{name}': a time is beyond 292 years"));
                let unit = self.unit;
                let scaled = times.iter().map(|time| time.map(|time| time.checked_mul(unit).ok_or(())).transpose());
                if unit == 1 { Ok(times) } else { scaled.collect::<Result<_, ()>>().map_err(|()| beyond()) }
            }
        }
    }
}

fn nanoseconds(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

/// What cannot be cast is an error, and no null.
fn cast(column: &ArrayRef, kind: &DataType, name: &str) -> Result<ArrayRef, Error> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(column, kind, &options).map_err(|error| Error::Value(format!("column '{name}': {error}")))
}

fn whole(column: &ArrayRef, name: &str) -> Result<Int64Array, Error> {
    Ok(cast(column, &DataType::Int64, name)?.as_primitive::<Int64Type>().clone())
}

/// Any kind of text, numbers too.
fn text(column: &ArrayRef, name: &str) -> Result<ArrayRef, Error> {
    let text = cast(column, &DataType::Utf8, name)?;
    if text.null_count() > 0 { Err(Error::Value(format!("column '{name}' has nulls"))) } else { Ok(text) }
}

fn value(column: &Int64Array, row: usize, name: &str) -> Result<u64, Error> {
    let value = column.is_valid(row).then(|| column.value(row));
    let found = || value.map_or("null".into(), |value| value.to_string());
    value
        .and_then(|value| value.try_into().ok())
        .ok_or_else(|| Error::Value(format!("row {row}: column '{name}' is {}, and no number from 0 on", found())))
}

fn of_text(op: &str, row: usize) -> Result<Op, Error> {
    match op.as_bytes().first() {
        Some(b'r' | b'R') => Ok(Op::Read),
        Some(b'w' | b'W') => Ok(Op::Write),
        _ => Err(Error::Value(format!("row {row}: op is '{op}', and neither read nor write"))),
    }
}
