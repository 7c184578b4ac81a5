//! One column of a Parquet file after another, as far as a trace needs it.

use std::sync::Arc;

use parquet::basic::{ConvertedType, IntType, LogicalType, TimeUnit, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{AsBytes, DataType};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};

use super::pages::CheckedPages;
use crate::trace::spool::Part;

/// Of a file that is no trace so many columns are named.
const SHOWN: usize = 10;
const LONGEST_SHOWN: usize = 40;

/// Where a column of a trace is, by its name.
pub struct Column {
    pub name: &'static str,
    /// Which of the file's it is.
    pub index: usize,
    /// Whether its numbers have no sign.
    unsigned: bool,
    /// Nanoseconds, or whatever else is wanted, in a unit of its numbers.
    unit: i128,
    /// Reads the group of rows that is read, from where it was left.
    reader: Option<ColumnReader>,
}

/// Where the next rows are.
pub struct Rows<'a> {
    pub file: &'a Arc<Part>,
    pub metadata: &'a ParquetMetaData,
    pub group: usize,
    /// Rows of the group that are behind us.
    pub begin: usize,
    pub count: usize,
}

/// The column of this name, if there is one.
pub fn column(name: &'static str, schema: &SchemaDescriptor) -> Result<Option<Column>, String> {
    let roots = schema.root_schema().get_fields();
    let Some(root) = roots.iter().position(|field| field.name() == name) else { return Ok(None) };
    let index = (0..schema.num_columns()).find(|&leaf| schema.get_column_root_idx(leaf) == root);
    let index = index.filter(|_| roots[root].is_primitive());
    let simple = index.filter(|&index| schema.column(index).max_rep_level() == 0);
    let index = simple.ok_or_else(|| format!("column '{name}' is nested, not numbers or strings"))?;
    let found = schema.column(index);
    if found.type_scale() > 0 {
        return Err(format!("column '{name}' is DECIMAL, not whole numbers"));
    }
    let unit = unit(&found).ok_or_else(|| format!("column '{name}' is dates, not times in ns"))?;
    Ok(Some(Column { name, index, unsigned: is_unsigned(&found), unit, reader: None }))
}

/// The column of this name, without which a file is no trace.
pub fn needed_column(name: &'static str, schema: &SchemaDescriptor) -> Result<Column, String> {
    column(name, schema)?.ok_or_else(|| {
        let shown = |name: &str| name.chars().take(LONGEST_SHOWN).collect::<String>();
        let names = schema.root_schema().get_fields().iter().take(SHOWN).map(|field| shown(field.name()));
        format!("not a trace: no column '{name}' among {}", names.collect::<Vec<_>>().join(", "))
    })
}

/// Nanoseconds in a unit of a column of times; 1 for plain numbers, and none for dates.
fn unit(column: &ColumnDescriptor) -> Option<i128> {
    let of = |unit: &TimeUnit| match unit {
        TimeUnit::MILLIS => 1_000_000,
        TimeUnit::MICROS => 1_000,
        TimeUnit::NANOS => 1,
    };
    match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Timestamp(kind)), _) => Some(of(&kind.unit)),
        (Some(LogicalType::Time(kind)), _) => Some(of(&kind.unit)),
        (Some(LogicalType::Date), _) | (_, ConvertedType::DATE) => None,
        (_, ConvertedType::TIMESTAMP_MILLIS | ConvertedType::TIME_MILLIS) => Some(1_000_000),
        (_, ConvertedType::TIMESTAMP_MICROS | ConvertedType::TIME_MICROS) => Some(1_000),
        _ => Some(1),
    }
}

fn is_unsigned(column: &ColumnDescriptor) -> bool {
    let old = [ConvertedType::UINT_8, ConvertedType::UINT_16, ConvertedType::UINT_32, ConvertedType::UINT_64];
    matches!(column.logical_type_ref(), Some(LogicalType::Integer(IntType { is_signed: false, .. })))
        || old.contains(&column.converted_type())
}

impl Column {
    /// The numbers in these rows; none where a row has none, or one that is no whole number.
    pub fn numbers(&mut self, rows: &Rows) -> Result<Vec<Option<i128>>, String> {
        let (name, unsigned, unit) = (self.name, self.unsigned, self.unit);
        let whole = |number: f64| (number.fract() == 0.0).then_some(number as i128);
        let numbers = match self.reader(rows)? {
            ColumnReader::Int32ColumnReader(reader) if unsigned => {
                values(name, reader, rows.count, |value| Ok(Some(i128::from(value as u32))))
            }
            ColumnReader::Int32ColumnReader(reader) => {
                values(name, reader, rows.count, |value| Ok(Some(i128::from(value))))
            }
            ColumnReader::Int64ColumnReader(reader) if unsigned => {
                values(name, reader, rows.count, |value| Ok(Some(i128::from(value as u64))))
            }
            ColumnReader::Int64ColumnReader(reader) => {
                values(name, reader, rows.count, |value| Ok(Some(i128::from(value))))
            }
            ColumnReader::FloatColumnReader(reader) => {
                values(name, reader, rows.count, |value| Ok(whole(f64::from(value))))
            }
            ColumnReader::DoubleColumnReader(reader) => values(name, reader, rows.count, |value| Ok(whole(value))),
            other => Err(format!("column '{name}' is {}, not numbers", kind(other))),
        };
        match unit {
            1 => numbers,
            _ => Ok(numbers?.into_iter().map(|number| number?.checked_mul(unit)).collect()),
        }
    }

    /// What `text` makes of the strings in these rows; none where a row has none. It is called once for several of the same that stand
    /// one behind the other.
    pub fn texts<T: Copy>(
        &mut self,
        rows: &Rows,
        mut text: impl FnMut(&str) -> Result<T, String>,
    ) -> Result<Vec<Option<T>>, String> {
        let name = self.name;
        let mut last: Option<(*const u8, usize, T)> = None;
        let mut made = |bytes: &[u8]| {
            if let Some((.., known)) = last.filter(|&(at, len, _)| (at, len) == (bytes.as_ptr(), bytes.len())) {
                return Ok(Some(known));
            }
            let made =
                text(std::str::from_utf8(bytes).map_err(|_| format!("column '{name}': a string that is not UTF-8"))?)?;
            last = Some((bytes.as_ptr(), bytes.len(), made));
            Ok(Some(made))
        };
        match self.reader(rows)? {
            ColumnReader::ByteArrayColumnReader(reader) => {
                values(name, reader, rows.count, |value| made(value.as_bytes()))
            }
            ColumnReader::FixedLenByteArrayColumnReader(reader) => {
                values(name, reader, rows.count, |value| made(value.as_bytes()))
            }
            other => Err(format!("column '{name}' is {}, not strings", kind(other))),
        }
    }

    /// Gives back the memory of the page that is read: the next rows are sought anew.
    pub fn rest(&mut self) {
        self.reader = None;
    }

    /// What reads the next of these rows.
    fn reader(&mut self, rows: &Rows) -> Result<&mut ColumnReader, String> {
        let reader = match self.reader.take().filter(|_| rows.begin > 0) {
            Some(reader) => reader,
            None => self.open(rows)?,
        };
        Ok(self.reader.insert(reader))
    }

    fn open(&self, rows: &Rows) -> Result<ColumnReader, String> {
        let problem = |error: ParquetError| error.to_string();
        let group = rows.metadata.row_group(rows.group);
        let chunk = group.columns().get(self.index).ok_or("a damaged Parquet file: a group without a column")?;
        let pages = CheckedPages::new(rows.file.clone(), chunk)?;
        let mut reader = get_column_reader(chunk.column_descr_ptr(), Box::new(pages));
        let skipped = match &mut reader {
            ColumnReader::Int32ColumnReader(reader) => reader.skip_records(rows.begin),
            ColumnReader::Int64ColumnReader(reader) => reader.skip_records(rows.begin),
            ColumnReader::FloatColumnReader(reader) => reader.skip_records(rows.begin),
            ColumnReader::DoubleColumnReader(reader) => reader.skip_records(rows.begin),
            ColumnReader::ByteArrayColumnReader(reader) => reader.skip_records(rows.begin),
            ColumnReader::FixedLenByteArrayColumnReader(reader) => reader.skip_records(rows.begin),
            _ => Ok(rows.begin),
        };
        if skipped.map_err(problem)? < rows.begin {
            return Err(short(self.name));
        }
        Ok(reader)
    }
}

/// So many rows, of which some may have no value.
fn values<T: DataType, V>(
    name: &str,
    reader: &mut ColumnReaderImpl<T>,
    count: usize,
    mut value: impl FnMut(T::T) -> Result<Option<V>, String>,
) -> Result<Vec<Option<V>>, String> {
    let (mut present, mut given) = (Vec::new(), Vec::new());
    let read = reader.read_records(count, Some(&mut present), None, &mut given);
    let (rows, ..) = read.map_err(|error| error.to_string())?;
    if rows < count {
        return Err(short(name));
    }
    let mut given = given.into_iter();
    let mut next = || given.next().map_or(Ok(None), &mut value);
    if present.is_empty() {
        return (0..count).map(|_| next()).collect();
    }
    // A column that is neither repeated nor in a group has a value where the level is 1.
    let value = |level| match level {
        0 => Ok(None),
        1 => next(),
        other => Err(format!("a damaged Parquet file: column '{name}' has a level of {other}")),
    };
    present.into_iter().map(value).collect()
}

fn short(name: &str) -> String {
    format!("a damaged Parquet file: column '{name}' has fewer rows than it says")
}

fn kind(reader: &ColumnReader) -> Type {
    match reader {
        ColumnReader::BoolColumnReader(_) => Type::BOOLEAN,
        ColumnReader::Int32ColumnReader(_) => Type::INT32,
        ColumnReader::Int64ColumnReader(_) => Type::INT64,
        ColumnReader::Int96ColumnReader(_) => Type::INT96,
        ColumnReader::FloatColumnReader(_) => Type::FLOAT,
        ColumnReader::DoubleColumnReader(_) => Type::DOUBLE,
        ColumnReader::ByteArrayColumnReader(_) => Type::BYTE_ARRAY,
        ColumnReader::FixedLenByteArrayColumnReader(_) => Type::FIXED_LEN_BYTE_ARRAY,
    }
}
