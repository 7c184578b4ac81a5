//! The footer: its size, that every field in it is of its type, and the shape of the schema.

use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

use super::layout::FILE;
use super::read_at;
use super::thrift::{Compact, Seen};
use crate::trace::spool::Part;
use crate::trace::store::MAGIC;

/// Bytes of the footer: enough for thousands of row groups.
const LONGEST_FOOTER: u64 = 4 << 20;
/// Times the footer that what is read from it takes in memory.
const READ_AS: u64 = 8;
/// Columns and groups of columns in the schema.
const MOST_ELEMENTS: usize = 1_000;
/// Groups within groups.
const DEEPEST: usize = 10;

/// What the footer says, and the memory that it takes.
pub struct Footer {
    pub metadata: ParquetMetaData,
    pub memory: u64,
}

/// The footer, after a look at its size, its fields, and the shape of the schema in it.
pub fn read_footer(file: &Part) -> Result<Footer, String> {
    let damaged = || "a damaged Parquet file".to_string();
    let size = file.left();
    let tail = read_at(file, size.checked_sub(8).ok_or_else(damaged)?, 8)?;
    if tail.len() < 8 || &tail[4..] != MAGIC {
        return Err("a damaged Parquet file: it does not end as one".into());
    }
    let length = u64::from(u32::from_le_bytes(tail[..4].try_into().map_err(|_| damaged())?));
    if length > LONGEST_FOOTER {
        return Err(format!("a footer of {length} bytes; at most {LONGEST_FOOTER} are read"));
    }
    let footer = read_at(file, size.checked_sub(8 + length).ok_or_else(damaged)?, length)?;
    // How many children each element of the schema has.
    let mut schema: Vec<i64> = Vec::new();
    let mut compact = Compact::new(&footer);
    let whole = compact.walk(&FILE, &mut |seen| match seen {
        Seen::Begin("SchemaElement") => schema.push(0),
        Seen::Number("num_children", children) => schema.last_mut().into_iter().for_each(|last| *last = children),
        _ => {}
    });
    whole.map_err(|wrong| format!("a damaged Parquet file: {wrong} in its footer"))?;
    check_shape(&schema)?;
    let metadata = ParquetMetaDataReader::decode_metadata(&footer).map_err(|error| error.to_string())?;
    Ok(Footer { metadata, memory: READ_AS * length })
}

/// Holds the schema to its limits, given how many children each element has.
fn check_shape(schema: &[i64]) -> Result<(), String> {
    if schema.len() > MOST_ELEMENTS {
        return Err(format!("a schema of more than {MOST_ELEMENTS} columns"));
    }
    // Children that are still to come of each group that holds the element.
    let mut open: Vec<i64> = Vec::new();
    for (index, &children) in schema.iter().enumerate() {
        let left = schema.len() - index - 1;
        if usize::try_from(children).ok().is_none_or(|children| children > left) {
            return Err(format!("a damaged Parquet file: a column of {children} columns where {left} are left"));
        }
        while open.last() == Some(&0) {
            open.pop();
        }
        open.last_mut().into_iter().for_each(|left| *left -= 1);
        if children > 0 {
            open.push(children);
        }
        if open.len() > DEEPEST {
            return Err(format!("columns within columns deeper than {DEEPEST}"));
        }
    }
    Ok(())
}
