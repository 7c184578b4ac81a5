//! Requests between Arrow's columns and the library's.

use std::sync::{Arc, LazyLock};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, DurationNanosecondArray, Int64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use idlewise::trace::{Columns, Op, Request};
use idlewise::{Bytes, Nanos};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::column::{Column, scale};
use crate::error::Error;
use crate::table::{TIME, signed};

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

/// Requests as they go out. A number that a column cannot hold is an error: as a null it would count as not recorded.
pub fn to_batch(requests: &Columns) -> Result<RecordBatch, Error> {
    let time = |name: &str, later: &dyn Fn(Request) -> Option<Nanos>| {
        let at = |request: Request| later(request).map(|later| signed(name, (request.arrival + later).0)).transpose();
        let times: Vec<Option<i64>> = requests.requests().map(at).collect::<Result<_, Error>>()?;
        Ok::<ArrayRef, Error>(Arc::new(DurationNanosecondArray::from(times)))
    };
    let op = |request: Request| if request.op == Op::Read { "read" } else { "write" };
    let volume = |request: Request| &*requests.volumes[usize::from(request.volume)];
    let arrivals: Vec<i64> = requests.arrival.iter().map(|at| signed("arrival", at.0)).collect::<Result<_, _>>()?;
    let offsets: Vec<i64> =
        requests.offset.iter().map(|offset| signed("offset", offset.0)).collect::<Result<_, _>>()?;
    let columns: Vec<ArrayRef> = vec![
        Arc::new(DurationNanosecondArray::from(arrivals)),
        time("issue", &|request| request.queued)?,
        time("completion", &|request| request.response)?,
        Arc::new(Int64Array::from(offsets)),
        Arc::new(requests.length.iter().map(|&length| i64::from(length)).collect::<Int64Array>()),
        Arc::new(StringArray::from_iter_values(requests.requests().map(op))),
        Arc::new(StringArray::from_iter_values(requests.requests().map(volume))),
    ];
    Ok(RecordBatch::try_new(SCHEMA.clone(), columns).expect("the columns are those of the schema"))
}

/// Which columns of a table are which, and in what unit its plain numbers are times.
#[derive(Clone)]
pub struct Layout {
    /// What a column that we look for is called in the table.
    names: Vec<(String, String)>,
    /// Of a number of nanoseconds in the unit, so many digits are zeros.
    digits: u32,
}

/// Columns that are looked for.
const KNOWN: [&str; 8] = ["arrival", "issue", "completion", "response", "offset", "length", "op", "volume"];

impl Layout {
    /// From what `scan` was given.
    pub fn new(columns: Option<&Bound<PyDict>>, unit: Option<&str>) -> Result<Self, Error> {
        let digits = match unit.unwrap_or("ns") {
            "s" => 9,
            "ms" => 6,
            "us" => 3,
            // Ticks of Windows' clock.
            "100ns" => 2,
            "ns" => 0,
            other => return Err(Error::Value(format!("unit='{other}': it is one of s, ms, us, 100ns and ns"))),
        };
        let names: Vec<(String, String)> = columns
            .map(|columns| columns.extract())
            .transpose()?
            .map_or(Vec::new(), |names: std::collections::HashMap<String, String>| names.into_iter().collect());
        if let Some((name, _)) = names.iter().find(|(name, _)| !KNOWN.contains(&name.as_str())) {
            return Err(Error::Value(format!("columns: no '{name}' is looked for, only {}", KNOWN.join(", "))));
        }
        Ok(Self { names, digits })
    }

    fn given(&self, name: &str) -> Option<&str> {
        self.names.iter().find(|(one, _)| one == name).map(|(_, given)| given.as_str())
    }

    /// What a column that is looked for is called in the table.
    fn called<'a>(&'a self, name: &'a str) -> &'a str {
        self.given(name).unwrap_or(name)
    }

    fn column<'a>(&self, batch: &'a RecordBatch, name: &str) -> Result<Option<&'a ArrayRef>, Error> {
        let given = self.given(name);
        let found = batch.column_by_name(self.called(name));
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
        let kind = schema.field_with_name(self.called("arrival")).map(Field::data_type).ok();
        let digits = match kind.map(|kind| if let DataType::Dictionary(_, of) = kind { of } else { kind }) {
            Some(
                DataType::Timestamp(unit, _)
                | DataType::Duration(unit)
                | DataType::Time32(unit)
                | DataType::Time64(unit),
            ) => match unit {
                TimeUnit::Second => 9,
                TimeUnit::Millisecond => 6,
                TimeUnit::Microsecond => 3,
                TimeUnit::Nanosecond => 0,
            },
            Some(DataType::Interval(_)) => 0,
            Some(kind) if kind.is_floating() => 0,
            Some(kind) => self.digits.saturating_add_signed(-i32::from(scale(kind))),
            None => self.digits,
        };
        Nanos(10_u64.saturating_pow(digits))
    }

    /// The requests of a batch, before which came so many rows, whose volumes are added to those of `known`. Times are as they are.
    pub fn requests(&self, batch: &RecordBatch, known: &Columns, before: usize) -> Result<Columns, Error> {
        let named = |name: &'static str| move |array| Column { array, name: self.called(name), before };
        let needed = |name| self.needed(batch, name).map(named(name));
        let optional = |name| Ok::<_, Error>(self.column(batch, name)?.map(named(name)));
        let arrival = needed("arrival")?.times(self.digits)?;
        let times = |name| optional(name)?.map(|column| column.times(self.digits)).transpose();
        let (issue, completion, response) = (times("issue")?, times("completion")?, times("response")?);
        let (offset, length) = (needed("offset")?.whole()?, needed("length")?.whole()?);
        let op = needed("op")?.text()?;
        let volume = optional("volume")?.map(|column| column.text()).transpose()?;
        let value = |column: &UInt64Array, row, name| value(column, row, before, self.called(name));
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
            let later = |times: &Option<UInt64Array>, name| {
                let known = times.as_ref().filter(|times| times.is_valid(row));
                known.map(|times| value(times, row, name)).transpose()
            };
            let since = |time: Option<u64>, name| {
                let early = || Error::Value(format!("row {}: {} before the arrival", before + row, self.called(name)));
                time.map(|time| time.checked_sub(at).map(Nanos).ok_or_else(early)).transpose()
            };
            let response = match later(&response, "response")? {
                Some(response) => Some(Nanos(response)),
                None => since(later(&completion, "completion")?, "completion")?,
            };
            let length = value(&length, row, "length")?;
            requests.push(Request {
                arrival: Nanos(at),
                offset: Bytes(value(&offset, row, "offset")?),
                length: u32::try_from(length)
                    .map_err(|_| Error::Value(format!("row {}: a length of 4 GiB or more", before + row)))?,
                op: of_text(op.as_string::<i32>().value(row), before + row)?,
                volume: id,
                queued: since(later(&issue, "issue")?, "issue")?,
                response,
            });
        }
        Ok(requests)
    }
}

fn value(column: &UInt64Array, row: usize, before: usize, name: &str) -> Result<u64, Error> {
    let missing = || Error::Value(format!("row {}: column '{name}' is null or NaN", before + row));
    column.is_valid(row).then(|| column.value(row)).ok_or_else(missing)
}

fn of_text(op: &str, row: usize) -> Result<Op, Error> {
    match op.as_bytes().first() {
        Some(b'r' | b'R') => Ok(Op::Read),
        Some(b'w' | b'W') => Ok(Op::Write),
        _ => Err(Error::Value(format!("row {row}: op is '{op}', and neither read nor write"))),
    }
}
