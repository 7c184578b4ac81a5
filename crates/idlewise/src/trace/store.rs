//! Traces as Parquet files, version 1: a row a request.
//!
//! | column | type | unit |
//! |---|---|---|
//! | `arrival` | int64 | nanoseconds since the first arrival |
//! | `issue` | int64, may be null | nanoseconds since the first arrival |
//! | `completion` | int64, may be null | nanoseconds since the first arrival |
//! | `offset` | uint64 | bytes |
//! | `length` | uint32 | bytes |
//! | `op` | dictionary of strings | `read`, `write` |
//! | `volume` | dictionary of strings | |
//!
//! Each column states its unit in its metadata. The file's metadata hold `idlewise.version`, `idlewise.resolution_ns` and
//! `idlewise.origin_ns`, the first arrival on the clock of the source.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Cursor, Read, Seek, Write};
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, StringDictionaryBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, DictionaryArray, Int64Array, PrimitiveArray, RecordBatch, StringArray,
    UInt32Array, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use super::decoder::{BadRecords, Batches};
use super::inputs::Input;
use super::spool::Spool;
use super::volumes::LONGEST_NAME;
use super::{Columns, Op, Provenance, Request, TraceError, parquet_limits};
use crate::{Bytes, Nanos};

/// The version of the schema that is written, and the newest that is read.
pub const VERSION: u64 = 1;
const MAGIC: &[u8] = b"PAR1";
/// Of a file that is no trace so many columns are named.
const SHOWN: usize = 10;
/// Rows in a group: what a reader must hold.
const GROUP: usize = 1 << 20;
const VERSION_KEY: &str = "idlewise.version";
const RESOLUTION_KEY: &str = "idlewise.resolution_ns";
const ORIGIN_KEY: &str = "idlewise.origin_ns";

/// The schema of a trace.
fn schema() -> SchemaRef {
    let field = |name: &str, kind: DataType, nullable: bool, unit: &str| {
        Field::new(name, kind, nullable).with_metadata(HashMap::from([("unit".to_string(), unit.to_string())]))
    };
    let names = |key: DataType| DataType::Dictionary(Box::new(key), Box::new(DataType::Utf8));
    let fields = vec![
        field("arrival", DataType::Int64, false, "ns"),
        field("issue", DataType::Int64, true, "ns"),
        field("completion", DataType::Int64, true, "ns"),
        field("offset", DataType::UInt64, false, "bytes"),
        field("length", DataType::UInt32, false, "bytes"),
        field("op", names(DataType::Int8), false, "read or write"),
        field("volume", names(DataType::Int32), false, "name"),
    ];
    Arc::new(Schema::new(fields))
}

/// What the file says of a trace that comes from there.
fn stated(provenance: &Provenance) -> Vec<KeyValue> {
    let stated = [(VERSION_KEY, VERSION), (RESOLUTION_KEY, provenance.resolution.0), (ORIGIN_KEY, provenance.origin.0)];
    stated.map(|(key, value)| KeyValue::new(key.to_string(), value.to_string())).into()
}

/// Writes a trace as Parquet.
pub struct ParquetWriter<W: Write + Send> {
    schema: SchemaRef,
    writer: ArrowWriter<W>,
}

impl<W: Write + Send> ParquetWriter<W> {
    /// Begins a file for a trace that comes from there.
    ///
    /// # Errors
    /// What `out` says.
    pub fn new(out: W, provenance: &Provenance) -> std::io::Result<Self> {
        // Times and places are nearly all different: differences are shorter than a dictionary, and made faster.
        let properties = ["arrival", "issue", "completion", "offset"].into_iter().fold(
            WriterProperties::builder()
                .set_compression(Compression::ZSTD(ZstdLevel::default()))
                .set_max_row_group_row_count(Some(GROUP))
                .set_key_value_metadata(Some(stated(provenance))),
            |properties, column| {
                properties
                    .set_column_dictionary_enabled(column.into(), false)
                    .set_column_encoding(column.into(), Encoding::DELTA_BINARY_PACKED)
            },
        );
        let schema = schema();
        let writer = ArrowWriter::try_new(out, schema.clone(), Some(properties.build()))?;
        Ok(Self { schema, writer })
    }

    /// Writes requests, in order of arrival.
    ///
    /// # Errors
    /// What the file says.
    pub fn write(&mut self, requests: &Columns) -> std::io::Result<()> {
        let latest = requests.arrival.last().map_or(0, |arrival| arrival.0);
        if i64::try_from(latest).is_err() {
            let problem =
                "requests 292 years apart: their clocks begin at different times, which merge --align evens out";
            return Err(std::io::Error::other(problem));
        }
        let volumes = StringArray::from_iter_values(requests.volumes.iter());
        let keys = requests.volume.iter().map(|&volume| i32::from(volume));
        let volume = DictionaryArray::<Int32Type>::try_new(keys.collect::<Vec<_>>().into(), Arc::new(volumes));
        let mut op = StringDictionaryBuilder::<Int8Type>::new();
        requests.op.iter().for_each(|&kind| op.append_value(if kind == Op::Read { "read" } else { "write" }));
        let (mut issue, mut completion) = (Int64Builder::new(), Int64Builder::new());
        for request in requests.requests() {
            let after = |time: Option<Nanos>| {
                time.map(|time| i64::try_from(request.arrival.0.saturating_add(time.0)).unwrap_or(i64::MAX))
            };
            issue.append_option(after(request.queued));
            completion.append_option(after(request.response));
        }
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values(requests.arrival.iter().map(|arrival| arrival.0 as i64))),
            Arc::new(issue.finish()),
            Arc::new(completion.finish()),
            Arc::new(UInt64Array::from_iter_values(requests.offset.iter().map(|offset| offset.0))),
            Arc::new(UInt32Array::from_iter_values(requests.length.iter().copied())),
            Arc::new(op.finish()),
            Arc::new(volume.map_err(std::io::Error::other)?),
        ];
        let batch = RecordBatch::try_new(self.schema.clone(), columns).map_err(std::io::Error::other)?;
        Ok(self.writer.write(&batch)?)
    }

    /// Ends the file.
    ///
    /// # Errors
    /// What the file says.
    pub fn finish(self) -> std::io::Result<W> {
        Ok(self.writer.into_inner()?)
    }
}

/// Reads a trace from Parquet.
pub struct ParquetBatches {
    name: String,
    reader: ParquetRecordBatchReader,
    origin: Nanos,
    resolution: Nanos,
    row: u64,
}

impl ParquetBatches {
    /// Whether the first bytes are of a Parquet file.
    pub(super) fn claims(head: &[u8]) -> bool {
        head.starts_with(MAGIC)
    }

    pub(super) fn open(input: Input, spool: &Spool) -> Result<Self, TraceError> {
        let name = input.name;
        let io_error = |error| TraceError::Io { path: name.clone(), error };
        // The end of the file says where its parts are.
        let file = match input.file {
            Some(mut file) => file.rewind().map(|()| file),
            None => spool.file(&mut Cursor::new(input.head).chain(input.rest)),
        };
        let file = file.map_err(io_error)?;
        guarded(|| Self::of_file(file))
            .map_err(|problem| TraceError::Parquet { path: name.clone(), problem })
            .map(|batches| Self { name: name.clone(), ..batches })
    }

    fn of_file(mut file: File) -> Result<Self, String> {
        let problem = |error: ParquetError| error.to_string();
        parquet_limits::check_footer(&mut file)?;
        // Arrow's own schema, a few bytes of which may stand for very many columns, says nothing that a trace needs.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let found = ArrowReaderMetadata::load(&file, options).map_err(problem)?;
        let stated = found.metadata().file_metadata().key_value_metadata().map_or(&[][..], Vec::as_slice);
        let number = |key: &str| stated.iter().find(|stated| stated.key == key)?.value.as_ref()?.parse::<u64>().ok();
        if let Some(version) = number(VERSION_KEY).filter(|&version| version > VERSION) {
            return Err(format!("a trace of version {version}; this idlewise reads up to version {VERSION}"));
        }
        let (origin, resolution) = (number(ORIGIN_KEY), number(RESOLUTION_KEY));
        let roots = columns_of(found.schema())?;
        let described = found.parquet_schema();
        let leaves = (0..described.num_columns()).filter(|&leaf| roots.contains(&described.get_column_root_idx(leaf)));
        let rows = parquet_limits::check_pages(&mut file, found.metadata(), &leaves.collect::<Vec<_>>())?;
        let options = ArrowReaderOptions::new().with_schema(with_dictionaries(found.schema(), &roots));
        let found = ArrowReaderMetadata::try_new(found.metadata().clone(), options).map_err(problem)?;
        let mask = ProjectionMask::roots(found.parquet_schema(), roots);
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, found);
        let reader = builder.with_projection(mask).with_batch_size(rows).build().map_err(problem)?;
        let (origin, resolution) = (Nanos(origin.unwrap_or(0)), Nanos(resolution.unwrap_or(1)));
        Ok(Self { name: String::new(), reader, origin, resolution, row: 0 })
    }

    /// The finest difference in time of the source.
    pub(super) fn resolution(&self) -> Nanos {
        self.resolution
    }

    fn columns(&mut self, batch: &RecordBatch) -> Result<Columns, String> {
        let arrival = numbers::<Int64Type>(batch, "arrival")?.ok_or("no column 'arrival'")?;
        let issue = numbers::<Int64Type>(batch, "issue")?;
        let completion = numbers::<Int64Type>(batch, "completion")?;
        let (issue, completion) = (issue.as_ref(), completion.as_ref());
        let offset = numbers::<UInt64Type>(batch, "offset")?.ok_or("no column 'offset'")?;
        let length = numbers::<UInt32Type>(batch, "length")?.ok_or("no column 'length'")?;
        let op = texts(batch, "op")?.ok_or("no column 'op'")?;
        let volume = texts(batch, "volume")?;
        let mut columns = Columns::default();
        for index in 0..batch.num_rows() {
            let row = self.row + index as u64;
            let null = [arrival.is_null(index), offset.is_null(index), length.is_null(index)].contains(&true);
            let arrived = u64::try_from(arrival.value(index)).ok().filter(|_| !null);
            let arrived = arrived.and_then(|at| at.checked_add(self.origin.0));
            let arrived = arrived.ok_or_else(|| format!("row {row}: expected an arrival, an offset and a length"))?;
            let since_arrival = |times: Option<&Int64Array>, name: &str| match times {
                Some(times) if times.is_valid(index) => {
                    let time = times.value(index).checked_sub(arrival.value(index)).and_then(|t| u64::try_from(t).ok());
                    time.map(|time| Some(Nanos(time))).ok_or_else(|| format!("row {row}: {name} before the arrival"))
                }
                _ => Ok(None),
            };
            let op = match op.value(index) {
                "read" => Op::Read,
                "write" => Op::Write,
                other => {
                    return Err(format!(
                        "row {row}: op '{:.40}' is not read or write",
                        other.escape_debug().to_string()
                    ));
                }
            };
            let name = volume.as_ref().map_or("disk", |volume| volume.value(index));
            if name.len() > LONGEST_NAME {
                return Err(format!("row {row}: expected a name of at most {LONGEST_NAME} bytes"));
            }
            let id = columns.volume_id(name).ok_or("more than 65,536 volumes")?;
            columns.push(Request {
                arrival: Nanos(arrived),
                offset: Bytes(offset.value(index)),
                length: length.value(index),
                op,
                volume: id,
                queued: since_arrival(issue, "issue")?,
                response: since_arrival(completion, "completion")?,
            });
        }
        self.row += batch.num_rows() as u64;
        Ok(columns)
    }
}

impl Batches for ParquetBatches {
    fn next(&mut self) -> Result<Option<Columns>, TraceError> {
        let columns = guarded(|| match self.reader.next() {
            None => Ok(None),
            Some(Err(error)) => Err(error.to_string()),
            Some(Ok(batch)) => self.columns(&batch).map(Some),
        });
        columns.map_err(|problem| TraceError::Parquet { path: self.name.clone(), problem })
    }

    fn bad(&self) -> BadRecords {
        BadRecords::default()
    }
}

/// Where the columns of a trace are; no other is read.
fn columns_of(schema: &Schema) -> Result<Vec<usize>, String> {
    const NEEDED: [&str; 4] = ["arrival", "offset", "length", "op"];
    let index = |name: &str| schema.index_of(name).ok();
    if let Some(name) = NEEDED.into_iter().find(|name| index(name).is_none()) {
        let mut columns = schema.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>();
        columns.truncate(SHOWN);
        return Err(format!("not a trace: no column '{name}' among {}", columns.join(", ")));
    }
    let columns: Vec<usize> = NEEDED.into_iter().chain(["issue", "completion", "volume"]).filter_map(index).collect();
    match columns.iter().map(|&column| schema.field(column)).find(|field| field.data_type().is_nested()) {
        Some(field) => Err(format!("column '{}' is nested, not numbers or strings", field.name())),
        None => Ok(columns),
    }
}

/// The same schema, but strings in these columns stay in their dictionaries: written out, each row may take as much as the longest.
fn with_dictionaries(schema: &Schema, columns: &[usize]) -> SchemaRef {
    let dictionary = |values| DataType::Dictionary(Box::new(DataType::Int32), Box::new(values));
    let fields = schema.fields().iter().enumerate().map(|(index, field)| match field.data_type() {
        _ if !columns.contains(&index) => field.clone(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            Arc::new(field.as_ref().clone().with_data_type(dictionary(DataType::Utf8)))
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            Arc::new(field.as_ref().clone().with_data_type(dictionary(DataType::Binary)))
        }
        _ => field.clone(),
    });
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

/// The reader of Parquet panics on some damaged files; to us they are damaged files.
fn guarded<T>(read: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read));
    done.unwrap_or_else(|_| Err("a damaged Parquet file".into()))
}

/// A column of numbers, whatever type other tools gave them; what does not fit is null.
fn numbers<T: ArrowPrimitiveType>(batch: &RecordBatch, name: &str) -> Result<Option<PrimitiveArray<T>>, String> {
    let Some(column) = batch.column_by_name(name) else { return Ok(None) };
    let wrong = || format!("column '{name}' is {}, not numbers", column.data_type());
    let numbers = arrow_cast::cast(column, &T::DATA_TYPE).map_err(|_| wrong())?;
    numbers.as_primitive_opt::<T>().cloned().map(Some).ok_or_else(wrong)
}

/// A column of strings, plain or with a dictionary.
struct Texts {
    values: StringArray,
    keys: Option<Vec<usize>>,
}

impl Texts {
    fn value(&self, index: usize) -> &str {
        let index = self.keys.as_ref().map_or(index, |keys| keys[index]);
        if index < self.values.len() && self.values.is_valid(index) { self.values.value(index) } else { "" }
    }
}

fn texts(batch: &RecordBatch, name: &str) -> Result<Option<Texts>, String> {
    let Some(column) = batch.column_by_name(name) else { return Ok(None) };
    let wrong = || format!("column '{name}' is {}, not strings", column.data_type());
    let plain = |values: &ArrayRef| {
        let values = arrow_cast::cast(values, &DataType::Utf8).map_err(|_| wrong())?;
        values.as_string_opt::<i32>().cloned().ok_or_else(wrong)
    };
    let Some(dictionary) = column.as_any_dictionary_opt() else {
        return Ok(Some(Texts { values: plain(column)?, keys: None }));
    };
    let keys = if dictionary.values().is_empty() { vec![0; column.len()] } else { dictionary.normalized_keys() };
    Ok(Some(Texts { values: plain(dictionary.values())?, keys: Some(keys) }))
}

#[cfg(test)]
mod tests {
    use arrow_array::StructArray;
    use parquet::arrow::arrow_writer::ArrowWriterOptions;
    use parquet::file::properties::WriterVersion;

    use super::*;
    use crate::trace::{ReadOptions, parse_bytes};

    #[test]
    fn what_is_written_reads_back_with_every_time() {
        let text = "BeginHeader\nEndHeader\nDiskRead,22450,a (1),1,0x1,0x1000,0x4000,2450,3,0x6,2350\n\
            DiskWrite,30000,a (1),1,0x1,0x2000,0x200,500,4,0x6,500\n";
        let trace = parse_bytes("t", text.as_bytes(), &ReadOptions::default()).unwrap();
        let mut writer = ParquetWriter::new(Vec::new(), &trace.provenance).unwrap();
        writer.write(&trace.columns).unwrap();
        let bytes = writer.finish().unwrap();
        let again = parse_bytes("t.parquet", &bytes, &ReadOptions::default()).unwrap();
        assert_eq!(again.requests().collect::<Vec<_>>(), trace.requests().collect::<Vec<_>>());
        assert_eq!(again.columns.volumes, ["disk3", "disk4"]);
        let (before, after) = (&trace.provenance, &again.provenance);
        assert_eq!((after.format, after.resolution, after.origin), ("parquet", before.resolution, before.origin));
        for cut in [5, 100, bytes.len() - 1] {
            assert!(parse_bytes("t.parquet", &bytes[..cut], &ReadOptions::default()).is_err());
        }
    }

    fn file(columns: Vec<(&str, ArrayRef)>, properties: WriterProperties) -> Vec<u8> {
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.into_inner().unwrap()
    }

    /// Requests on a volume of this name, with another column.
    fn requests(rows: usize, volume: &str, other: (&str, ArrayRef), properties: WriterProperties) -> Vec<u8> {
        let numbers = |count: usize| Arc::new(Int64Array::from_iter_values(0..count as i64)) as ArrayRef;
        let texts = |text: &str| Arc::new(StringArray::from_iter_values((0..rows).map(|_| text))) as ArrayRef;
        let columns = vec![
            ("arrival", numbers(rows)),
            ("offset", numbers(rows)),
            ("length", numbers(rows)),
            ("op", texts("read")),
            ("volume", texts(volume)),
            other,
        ];
        file(columns, properties)
    }

    fn read(bytes: &[u8]) -> Result<crate::trace::Trace, TraceError> {
        parse_bytes("t.parquet", bytes, &ReadOptions::default())
    }

    fn junk(rows: usize) -> (&'static str, ArrayRef) {
        ("junk", Arc::new(StringArray::from_iter_values((0..rows).map(|_| "j".repeat(300)))))
    }

    #[test]
    fn names_are_short_however_they_are_encoded_and_other_columns_are_not_looked_at() {
        let long = "n".repeat(100_000);
        let plain = || WriterProperties::builder().set_dictionary_enabled(false);
        for properties in [WriterProperties::builder, plain] {
            let trace = read(&requests(200, &"n".repeat(255), junk(200), properties().build())).unwrap();
            assert_eq!((trace.len(), trace.columns.volumes.len()), (200, 1));
            let error = read(&requests(200, &long, junk(200), properties().build())).unwrap_err().to_string();
            assert!(error.contains("column 'volume': a name of more than 255 bytes in the page at byte"), "{error}");
            let error =
                read(&requests(200, &"n".repeat(256), junk(200), properties().build())).unwrap_err().to_string();
            assert!(error.contains("255 bytes"), "{error}");
        }
        for encoding in [Encoding::DELTA_BYTE_ARRAY, Encoding::DELTA_LENGTH_BYTE_ARRAY] {
            let properties = plain().set_column_encoding("volume".into(), encoding).build();
            let error = read(&requests(2, "v", junk(2), properties)).unwrap_err().to_string();
            assert!(error.contains("column 'volume' has strings in encoding"), "{error}");
        }
        for codec in [Compression::GZIP(Default::default()), Compression::SNAPPY, Compression::LZ4_RAW] {
            let properties =
                WriterProperties::builder().set_compression(codec).set_writer_version(WriterVersion::PARQUET_2_0);
            assert_eq!(read(&requests(300, "v", junk(300), properties.build())).unwrap().len(), 300);
        }
    }

    #[test]
    fn what_a_file_says_of_arrows_types_is_not_looked_at() {
        let numbers = || Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef;
        let op = Arc::new(StringArray::from(vec!["read", "write"])) as ArrayRef;
        let columns = [("arrival", numbers()), ("offset", numbers()), ("length", numbers()), ("op", op)];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let stated = KeyValue::new("ARROW:schema".to_string(), "nonsense".to_string());
        let properties = WriterProperties::builder().set_key_value_metadata(Some(vec![stated])).build();
        let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let mut writer = ArrowWriter::try_new_with_options(Vec::new(), batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        assert_eq!(read(&writer.into_inner().unwrap()).unwrap().len(), 2);
    }

    #[test]
    fn a_schema_is_neither_deep_nor_wide() {
        let nested = |depth: usize| {
            let mut column: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
            for _ in 0..depth {
                let field = Arc::new(Field::new("in", column.data_type().clone(), true));
                column = Arc::new(StructArray::from(vec![(field, column)]));
            }
            read(&requests(2, "v", ("deep", column), WriterProperties::default()))
        };
        assert_eq!(nested(9).unwrap().len(), 2);
        for depth in [10, 60] {
            let error = nested(depth).unwrap_err().to_string();
            assert!(error.ends_with("columns within columns deeper than 10"), "{error}");
        }
        let wide = (0..1_001).map(|column| (column.to_string(), Arc::new(Int64Array::from(vec![1])) as ArrayRef));
        let batch = RecordBatch::try_from_iter(wide).unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        let error = read(&writer.into_inner().unwrap()).unwrap_err().to_string();
        assert!(error.ends_with("a schema of more than 1000 columns"), "{error}");
        let list = Int64Array::from(vec![1, 2]);
        let nested =
            StructArray::from(vec![(Arc::new(Field::new("in", DataType::Int64, true)), Arc::new(list) as ArrayRef)]);
        let error = read(&requests(2, "v", ("issue", Arc::new(nested)), WriterProperties::default())).unwrap_err();
        assert!(error.to_string().contains("column 'issue' is nested"), "{error}");
    }
}
