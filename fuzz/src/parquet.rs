//! Parquet files of every type and encoding, whose footers and pages are right until they are damaged.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BinaryArray, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    StructArray, UInt32Array, UInt64Array,
};
use arrow_schema::{Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};

use crate::patch::patch;
use crate::{Result, Unstructured};

const NAMES: [&str; 7] = ["arrival", "offset", "length", "op", "volume", "issue", "completion"];
const TEXTS: [&str; 5] = ["read", "write", "", "hm_0", "a,b\n"];
const ENCODINGS: [Encoding; 5] = [
    Encoding::PLAIN,
    Encoding::DELTA_BINARY_PACKED,
    Encoding::DELTA_BYTE_ARRAY,
    Encoding::DELTA_LENGTH_BYTE_ARRAY,
    Encoding::BYTE_STREAM_SPLIT,
];
const METADATA: [&str; 3] = ["idlewise.version", "idlewise.resolution_ns", "idlewise.origin_ns"];

/// A file with the columns of a trace, or nearly; none where the writer takes no such column.
pub fn file(from: &mut Unstructured) -> Result<Option<Vec<u8>>> {
    let rows = from.int_in_range(0..=20usize)?;
    let columns: Vec<(String, ArrayRef, bool)> = NAMES
        .iter()
        .take(from.int_in_range(3..=NAMES.len())?)
        .map(|name| Ok((name.to_string(), column(name, rows, from)?, true)))
        .collect::<Result<_>>()?;
    let mut metadata = HashMap::new();
    for key in METADATA {
        if from.arbitrary()? {
            metadata
                .insert(key.to_string(), from.arbitrary::<u64>()?.checked_shr(from.int_in_range(0..=64)?).unwrap_or(1));
        }
    }
    let metadata = metadata.into_iter().map(|(key, value)| (key, value.to_string()));
    let fields = columns.iter().map(|(name, array, null)| Field::new(name, array.data_type().clone(), *null));
    let schema = Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), metadata.collect()));
    let properties = properties(from)?;
    let arrays = columns.into_iter().map(|(_, array, _)| array).collect();
    let Some(mut file) = written(schema, arrays, properties) else { return Ok(None) };
    patch(&mut file, from)?;
    Ok(Some(file))
}

fn properties(from: &mut Unstructured) -> Result<WriterProperties> {
    let version = if from.arbitrary()? { WriterVersion::PARQUET_2_0 } else { WriterVersion::PARQUET_1_0 };
    let compressions = [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::ZSTD(ZstdLevel::default())];
    let mut properties = WriterProperties::builder()
        .set_writer_version(version)
        .set_compression(*from.choose(&compressions)?)
        .set_max_row_group_row_count(Some(from.int_in_range(1..=20)?))
        .set_data_page_row_count_limit(from.int_in_range(1..=20)?)
        .set_write_batch_size(from.int_in_range(1..=20)?);
    for name in NAMES {
        let dictionary: bool = from.arbitrary()?;
        properties = properties.set_column_dictionary_enabled(name.into(), dictionary);
        if !dictionary {
            properties = properties.set_column_encoding(name.into(), *from.choose(&ENCODINGS)?);
        }
    }
    Ok(properties.build())
}

/// The writer panics where an encoding does not go with a type.
fn written(schema: Arc<Schema>, arrays: Vec<ArrayRef>, properties: WriterProperties) -> Option<Vec<u8>> {
    let write = || {
        let batch = RecordBatch::try_new(schema.clone(), arrays).ok()?;
        let mut writer = ArrowWriter::try_new(Vec::new(), schema.clone(), Some(properties)).ok()?;
        writer.write(&batch).ok()?;
        writer.into_inner().ok()
    };
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(write)).ok()?
}

/// Mostly of the type that a trace has.
fn column(name: &str, rows: usize, from: &mut Unstructured) -> Result<ArrayRef> {
    let usual = match name {
        "offset" => 1,
        "length" => 2,
        "op" | "volume" => 3,
        _ => 0,
    };
    let kind = if from.ratio(7u8, 8u8)? { usual } else { from.int_in_range(0..=8u8)? };
    let mut numbers = Vec::new();
    for _ in 0..rows {
        let shift = from.int_in_range(0..=64u32)?;
        numbers.push(from.arbitrary::<u64>()?.checked_shr(shift));
    }
    let text = |number: &Option<u64>| number.map(|number| TEXTS[(number % TEXTS.len() as u64) as usize]);
    let texts = || numbers.iter().map(text);
    Ok(match kind {
        0 => Arc::new(numbers.iter().map(|number| number.map(|number| number as i64)).collect::<Int64Array>()),
        1 => Arc::new(numbers.iter().copied().collect::<UInt64Array>()),
        2 => Arc::new(numbers.iter().map(|number| number.map(|number| number as u32)).collect::<UInt32Array>()),
        3 if name == "op" => {
            Arc::new(numbers.iter().map(|n| Some(TEXTS[(n.unwrap_or(0) % 2) as usize])).collect::<StringArray>())
        }
        3 => Arc::new(texts().collect::<StringArray>()),
        4 => Arc::new(texts().collect::<DictionaryArray<Int32Type>>()),
        5 => Arc::new(texts().map(|text| text.map(str::as_bytes)).collect::<BinaryArray>()),
        6 => Arc::new(numbers.iter().map(|number| number.map(|number| number as f64)).collect::<Float64Array>()),
        7 => Arc::new(numbers.iter().map(|number| number.map(|number| number as i32)).collect::<Int32Array>()),
        _ => {
            let inner: ArrayRef = Arc::new(numbers.iter().copied().collect::<UInt64Array>());
            let field = Arc::new(Field::new("inner", inner.data_type().clone(), true));
            Arc::new(StructArray::from(vec![(field, inner)]))
        }
    })
}
