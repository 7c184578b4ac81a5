//! Traces as Parquet files, version 1: a row a request.
//!
//! | column | type | unit |
//! |---|---|---|
//! | `arrival` | int64 | nanoseconds since the first arrival |
//! | `issue` | int64, may be null | nanoseconds since the first arrival |
//! | `completion` | int64, may be null | nanoseconds since the first arrival |
//! | `offset` | uint64 | bytes |
//! | `length` | uint32 | bytes |
//! | `op` | string | `read`, `write` |
//! | `volume` | string | |
//!
//! The file's metadata hold `idlewise.version`, `idlewise.resolution_ns` and `idlewise.origin_ns`, the first arrival on the clock
//! of the source; `idlewise.unit.COLUMN` is the unit of a column.
//!
//! Parquet's own columns are read and written, without Arrow's between: a trace needs seven simple ones.

mod columns;
mod kept;
mod limits;
mod pages;
mod read;
mod write;

pub(super) use read::ParquetBatches;
pub use write::ParquetWriter;

/// The version of the schema that is written, and the newest that is read.
pub const VERSION: u64 = 1;
/// What a file begins and ends with.
const MAGIC: &[u8] = b"PAR1";
const VERSION_KEY: &str = "idlewise.version";
const RESOLUTION_KEY: &str = "idlewise.resolution_ns";
const ORIGIN_KEY: &str = "idlewise.origin_ns";

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::basic::{Compression, Encoding};
    use parquet::data_type::{
        ByteArray, ByteArrayType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, Int32Type, Int64Type,
    };
    use parquet::errors::Result;
    use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
    use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
    use parquet::schema::parser::parse_message_type;

    use super::*;
    use crate::trace::{ReadOptions, Trace, TraceError, parse_bytes};

    fn read(bytes: &[u8]) -> std::result::Result<Trace, TraceError> {
        parse_bytes("t.parquet", bytes, &ReadOptions::default())
    }

    #[test]
    fn what_is_written_reads_back_with_every_time() {
        let text = "BeginHeader\nEndHeader\nDiskRead,22450,a (1),1,0x1,0x1000,0x4000,2450,3,0x6,2350\n\
            DiskWrite,30000,a (1),1,0x1,0x2000,0x200,500,4,0x6,500\n";
        let trace = parse_bytes("t", text.as_bytes(), &ReadOptions::default()).unwrap();
        let mut writer = ParquetWriter::new(Vec::new(), &trace.provenance).unwrap();
        writer.write(&trace.columns).unwrap();
        let bytes = writer.finish().unwrap();
        let again = read(&bytes).unwrap();
        assert_eq!(again.requests().collect::<Vec<_>>(), trace.requests().collect::<Vec<_>>());
        assert_eq!(again.columns.volumes, ["disk3", "disk4"]);
        let (before, after) = (&trace.provenance, &again.provenance);
        assert_eq!((after.format, after.resolution, after.origin), ("parquet", before.resolution, before.origin));
        for cut in [5, 100, bytes.len() - 1] {
            assert!(read(&bytes[..cut]).is_err());
        }
    }

    /// The values of a column.
    enum Values<'a> {
        Long(Vec<i64>),
        Short(Vec<i32>),
        Real(Vec<f64>),
        Text(Vec<&'a str>),
        Fixed(Vec<&'a str>),
    }

    impl Values<'_> {
        fn put(&self, group: &mut SerializedRowGroupWriter<Vec<u8>>) -> Result<()> {
            let mut column = group.next_column()?.unwrap();
            match self {
                Self::Long(values) => column.typed::<Int64Type>().write_batch(values, None, None),
                Self::Short(values) => column.typed::<Int32Type>().write_batch(values, None, None),
                Self::Real(values) => column.typed::<DoubleType>().write_batch(values, None, None),
                Self::Text(values) => {
                    let values: Vec<ByteArray> = values.iter().map(|&value| value.into()).collect();
                    column.typed::<ByteArrayType>().write_batch(&values, None, None)
                }
                Self::Fixed(values) => {
                    let values: Vec<FixedLenByteArray> = values.iter().map(|&v| ByteArray::from(v).into()).collect();
                    column.typed::<FixedLenByteArrayType>().write_batch(&values, None, None)
                }
            }?;
            column.close()
        }
    }

    /// A file of these columns, each with its type in the schema, in so many groups of rows that are all alike.
    fn file(columns: &[(&str, Values)], groups: usize, properties: WriterProperties) -> Vec<u8> {
        let schema = columns.iter().map(|(column, _)| format!("required {column};")).collect::<String>();
        let schema = parse_message_type(&format!("message t {{ {schema} }}")).unwrap();
        let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties)).unwrap();
        for _ in 0..groups {
            let mut group = writer.next_row_group().unwrap();
            columns.iter().for_each(|(_, values)| values.put(&mut group).unwrap());
            group.close().unwrap();
        }
        writer.into_inner().unwrap()
    }

    /// Requests on a volume of this name, with another column.
    fn requests<'a>(rows: usize, volume: &'a str, other: (&'a str, Values<'a>)) -> Vec<(&'a str, Values<'a>)> {
        let numbers = || Values::Long((0..rows as i64).collect());
        vec![
            ("int64 arrival", numbers()),
            ("int64 offset", numbers()),
            ("int64 length", numbers()),
            ("binary op (string)", Values::Text(vec!["read"; rows])),
            ("binary volume (string)", Values::Text(vec![volume; rows])),
            other,
        ]
    }

    fn junk(rows: usize) -> (&'static str, Values<'static>) {
        ("binary junk (string)", Values::Text(vec!["a string that nobody asked for"; rows]))
    }

    fn plain() -> WriterPropertiesBuilder {
        WriterProperties::builder().set_dictionary_enabled(false)
    }

    #[test]
    fn names_are_short_however_they_are_encoded_and_other_columns_are_not_looked_at() {
        for properties in [WriterProperties::builder, plain] {
            let written = |name: &str| file(&requests(200, name, junk(200)), 1, properties().build());
            let trace = read(&written(&"n".repeat(255))).unwrap();
            assert_eq!((trace.len(), trace.columns.volumes.len()), (200, 1));
            let error = read(&written(&"n".repeat(100_000))).unwrap_err().to_string();
            assert!(error.contains("column 'volume': a name of more than 255 bytes in the page at byte"), "{error}");
            let error = read(&written(&"n".repeat(256))).unwrap_err().to_string();
            assert!(error.contains("255 bytes"), "{error}");
        }
        for encoding in [Encoding::DELTA_BYTE_ARRAY, Encoding::DELTA_LENGTH_BYTE_ARRAY] {
            let properties = plain().set_column_encoding("volume".into(), encoding).build();
            let error = read(&file(&requests(2, "v", junk(2)), 1, properties)).unwrap_err().to_string();
            assert!(error.contains("column 'volume' has strings in encoding"), "{error}");
        }
        let mut fixed = requests(2, "v", junk(2));
        fixed[4] = ("fixed_len_byte_array(2) volume", Values::Fixed(vec!["v1", "v2"]));
        assert_eq!(read(&file(&fixed, 1, plain().build())).unwrap().columns.volumes, ["v1", "v2"]);
        let properties = plain().set_column_encoding("volume".into(), Encoding::DELTA_BYTE_ARRAY).build();
        let error = read(&file(&fixed, 1, properties)).unwrap_err().to_string();
        assert!(error.contains("column 'volume' has strings in encoding 7"), "{error}");
        for codec in [Compression::GZIP(Default::default()), Compression::SNAPPY, Compression::LZ4_RAW] {
            let properties =
                WriterProperties::builder().set_compression(codec).set_writer_version(WriterVersion::PARQUET_2_0);
            assert_eq!(read(&file(&requests(300, "v", junk(300)), 1, properties.build())).unwrap().len(), 300);
        }
    }

    #[test]
    fn a_file_reads_the_same_in_batches_of_any_size_with_pages_kept_or_not() {
        for (properties, page) in [(WriterProperties::builder(), 7), (plain(), 11), (plain(), 400)] {
            let properties = properties.set_data_page_row_count_limit(page).set_write_batch_size(page).build();
            let bytes = file(&requests(400, "v", junk(400)), 3, properties);
            let read = |most, stays_open| {
                let mut batches = ParquetBatches::of_bytes(&bytes, most, stays_open);
                let mut all = Vec::new();
                while let Some(columns) = batches.batch().unwrap() {
                    all.extend(columns.requests().map(|request| (request.arrival.0, request.offset.0)));
                }
                all
            };
            let whole: Vec<(u64, u64)> = (0..3).flat_map(|_| (0..400).map(|at| (at, at))).collect();
            for most in [1, 64, 399, 400, 5_000] {
                assert_eq!([true, false].map(|stays_open| read(most, stays_open)), [whole.clone(), whole.clone()]);
            }
        }
    }

    #[test]
    fn rows_that_are_kept_are_those_of_the_file() {
        let bytes = file(&requests(400, "v", junk(400)), 3, plain().build());
        let spool = crate::trace::spool::Spool::new(crate::Bytes(1 << 20));
        for rows in [1, 7, 400, 5_000] {
            let mut whole = ParquetBatches::of_bytes(&bytes, 500, false);
            let mut kept = kept::Kept::keep(&spool, rows, || whole.batch()).unwrap();
            let mut all = Vec::new();
            while let Some(columns) = kept.next().unwrap() {
                assert!(columns.len() <= rows && &*columns.volumes[0] == "v");
                all.extend(columns.requests());
            }
            let expected = read(&bytes).unwrap();
            // They are sorted by arrival there.
            all.sort_by_key(|request| request.arrival);
            assert_eq!(all, expected.requests().collect::<Vec<_>>());
        }
        let mut whole = ParquetBatches::of_bytes(&bytes, 500, false);
        let small = crate::trace::spool::Spool::new(crate::Bytes(1_000));
        let error = kept::Kept::keep(&small, 10, || whole.batch()).err().unwrap();
        assert!(error.contains("of temporary files in"), "{error}");
    }

    #[test]
    fn a_file_that_is_rewritten_while_it_is_read_keeps_the_limits() {
        use std::os::unix::fs::FileExt;
        let properties = || plain().set_data_page_row_count_limit(100).set_write_batch_size(100).build();
        let bytes = file(&requests(400, "v", junk(400)), 1, properties());
        // The same layout, but for one byte of a page: a length of 1 GiB, or an encoding that is not read.
        let header = bytes.windows(2).position(|pair| pair == [0x15, 0x00]).unwrap();
        for stays_open in [true, false] {
            for damage in [&[0x15, 0x00, 0x15, 0x80, 0x80, 0x80, 0x80, 0x08][..], &[0x15, 0x08], &[0xff; 64]] {
                let disk = tempfile::tempfile().unwrap();
                disk.write_all_at(&bytes, 0).unwrap();
                let mut batches = ParquetBatches::of_disk(&disk, 100, stays_open);
                for page in bytes.windows(2).enumerate().filter(|(_, pair)| **pair == bytes[header..header + 2]) {
                    disk.write_all_at(damage, page.0 as u64).unwrap();
                }
                assert!(batches.batch().is_err(), "{stays_open} {damage:x?}");
            }
        }
        let disk = tempfile::tempfile().unwrap();
        disk.write_all_at(&bytes, 0).unwrap();
        let mut batches = ParquetBatches::of_disk(&disk, 100, false);
        assert_eq!(batches.batch().unwrap().unwrap().len(), 100);
        disk.set_len(bytes.len() as u64 / 2).unwrap();
        assert!(batches.batch().is_err());
    }

    #[test]
    fn numbers_are_read_whatever_type_they_have() {
        let columns = |offset: (&'static str, Values<'static>), length: (&'static str, Values<'static>)| {
            let (arrival, op) = (Values::Long(vec![3, 4]), Values::Text(vec!["read", "write"]));
            let columns = [("int64 arrival", arrival), offset, length, ("binary op", op)];
            read(&file(&columns, 1, WriterProperties::default()))
                .map(|trace| trace.requests().map(|request| (request.offset.0, request.length)).collect::<Vec<_>>())
                .map_err(|error| error.to_string())
        };
        let lengths = || ("int32 length (integer(32, false))", Values::Short(vec![-1, 512]));
        let offsets = ("int64 offset (integer(64, false))", Values::Long(vec![-1, 0]));
        assert_eq!(columns(offsets, lengths()).unwrap(), [(u64::MAX, u32::MAX), (0, 512)]);
        let offsets = || ("double offset", Values::Real(vec![4096.0, 0.0]));
        assert_eq!(columns(offsets(), lengths()).unwrap(), [(4096, u32::MAX), (0, 512)]);
        let wrong = |offset, length| columns(offset, length).unwrap_err();
        assert!(wrong(offsets(), ("int32 length", Values::Short(vec![1, -1]))).contains("row 1: expected an arrival"));
        assert!(wrong(("double offset", Values::Real(vec![0.5, f64::NAN])), lengths()).contains("row 0: expected"));
        let texts = ("binary offset (string)", Values::Text(vec!["1", "2"]));
        assert!(wrong(texts, lengths()).ends_with("column 'offset' is BYTE_ARRAY, not numbers"));
        let arrivals = |kind: &'static str, at: Vec<i64>| {
            let columns = [(kind, Values::Long(at)), ("int64 offset", Values::Long(vec![0, 0])), lengths()];
            let op = ("binary op", Values::Text(vec!["read", "write"]));
            let columns: Vec<_> = columns.into_iter().chain([op]).collect();
            let trace = read(&file(&columns, 1, WriterProperties::default()));
            trace.map(|trace| trace.columns.arrival[1].0).map_err(|error| error.to_string())
        };
        assert_eq!(arrivals("int64 arrival (timestamp(millis, true))", vec![5, 7]).unwrap(), 2_000_000);
        assert_eq!(arrivals("int64 arrival (timestamp(micros, true))", vec![5, 7]).unwrap(), 2_000);
        assert_eq!(arrivals("int64 arrival (timestamp(nanos, true))", vec![5, 7]).unwrap(), 2);
        assert!(arrivals("int64 arrival (timestamp(millis, true))", vec![0, i64::MAX]).unwrap_err().contains("row 1"));
        let scaled = ("int64 offset (decimal(9, 2))", Values::Long(vec![100, 200]));
        assert!(wrong(scaled, lengths()).ends_with("column 'offset' is DECIMAL, not whole numbers"));
    }

    #[test]
    fn a_schema_is_neither_deep_nor_wide() {
        let nested = |depth: usize| {
            let column = format!("{}required int64 x; {}", "required group in { ".repeat(depth), "} ".repeat(depth));
            let schema = parse_message_type(&format!("message t {{ required int64 arrival; {column} }}")).unwrap();
            let writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::default()).unwrap();
            read(&writer.into_inner().unwrap()).unwrap_err().to_string()
        };
        assert!(nested(9).contains("no column 'offset' among arrival, in"), "{}", nested(9));
        for depth in [10, 60] {
            assert!(nested(depth).ends_with("columns within columns deeper than 10"), "{}", nested(depth));
        }
        let names: Vec<String> = (0..1_001).map(|at| format!("int64 c{at}")).collect();
        let wide: Vec<_> = names.iter().map(|name| (name.as_str(), Values::Long(vec![1]))).collect();
        let error = read(&file(&wide, 1, WriterProperties::default())).unwrap_err().to_string();
        assert!(error.ends_with("a schema of more than 1000 columns"), "{error}");
        let schema = "message t { required int64 arrival; required int64 offset; required int64 length; \
            required binary op; required group issue { required int64 at; } }";
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let writer = SerializedFileWriter::new(Vec::new(), schema, Arc::default()).unwrap();
        let error = read(&writer.into_inner().unwrap()).unwrap_err();
        assert!(error.to_string().contains("column 'issue' is nested"), "{error}");
    }

    #[test]
    fn a_dictionary_has_no_more_names_than_a_trace_has_volumes() {
        let names: Vec<String> = (0..70_000).map(|at| format!("{at:x}")).collect();
        let mut columns = requests(70_000, "v", junk(70_000));
        columns[4].1 = Values::Text(names.iter().map(String::as_str).collect());
        let error = read(&file(&columns, 1, WriterProperties::default())).unwrap_err().to_string();
        assert!(error.contains("column 'volume' has more than 65536 names in the page at byte"), "{error}");
        let error = read(&file(&columns, 1, plain().build())).unwrap_err().to_string();
        assert!(error.ends_with("more than 65,536 volumes"), "{error}");
    }
}
