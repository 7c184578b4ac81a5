//! What is looked at in a Parquet file before it is read: a small file must not ask for all memory.
//!
//! A schema is read by a function that calls itself, so its depth is checked first. A page says how large it will be, and every row of
//! a column of names may repeat one that is long.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use parquet::basic::{Compression, Type};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};

use super::thrift::{Compact, I32, LIST, STRUCT};
use super::volumes::LONGEST_NAME;

/// Bytes of the footer: enough for thousands of row groups.
const LONGEST_FOOTER: u64 = 4 << 20;
/// Columns and groups of columns in the schema.
const MOST_ELEMENTS: u64 = 1_000;
/// Groups within groups.
const DEEPEST: usize = 10;
/// Bytes of a page, compressed or not; most writers make pages of 1 MiB.
const LARGEST_PAGE: i64 = 64 << 20;
/// Bytes that its length takes beside a name, and what says whether a row has one.
const BESIDE_NAME: i64 = 8;
/// What else a page of names holds.
const SLACK: i64 = 4 << 10;
/// Most headers of pages are shorter; what is longer is read again with more of it.
const HEADER: u64 = 256;
const LONGEST_HEADER: u64 = 1 << 20;
/// Encodings of pages that refer to the dictionary.
const REFERRING: [i64; 2] = [2, 8];
/// The encoding that lets a row repeat the one before it in a bit, however long.
const REPEATING: i64 = 7;
/// Rows of a batch.
const ROWS: usize = 1 << 16;
/// Bytes of names in a batch.
const NAMES: usize = 64 << 20;

/// Checks the size of the footer and the shape of the schema in it.
pub fn check_footer(file: &mut File) -> Result<(), String> {
    let damaged = || "a damaged Parquet file".to_string();
    let size = file.seek(SeekFrom::End(0)).map_err(|error| error.to_string())?;
    let tail = read_at(file, size.checked_sub(8).ok_or_else(damaged)?, 8)?;
    let length = u64::from(u32::from_le_bytes(tail[..4].try_into().map_err(|_| damaged())?));
    if length > LONGEST_FOOTER {
        return Err(format!("a footer of {length} bytes; at most {LONGEST_FOOTER} are read"));
    }
    let footer = read_at(file, size.checked_sub(8 + length).ok_or_else(damaged)?, length)?;
    let children = schema(&footer).ok_or_else(damaged)?;
    if children.len() as u64 > MOST_ELEMENTS {
        return Err(format!("a schema of more than {MOST_ELEMENTS} columns"));
    }
    // Children that are still to come of each group that holds the element.
    let mut open: Vec<i64> = Vec::new();
    for children in children {
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

/// How many children each element of the schema has; of too many elements only so many that it shows.
fn schema(footer: &[u8]) -> Option<Vec<i64>> {
    const SCHEMA: i64 = 2;
    const CHILDREN: i64 = 5;
    let mut compact = Compact::new(footer);
    let (mut last, mut all) = (0, Vec::new());
    while let Some((number, kind)) = compact.field(last)? {
        last = number;
        if (number, kind) != (SCHEMA, LIST) {
            compact.skip(kind)?;
            continue;
        }
        let (length, kind) = compact.list()?;
        if kind != STRUCT {
            return None;
        }
        for _ in 0..length.min(MOST_ELEMENTS + 1) {
            let (mut last, mut children) = (0, 0);
            while let Some((number, kind)) = compact.field(last)? {
                last = number;
                match (number, kind) {
                    (CHILDREN, I32) => children = compact.signed()?,
                    _ => compact.skip(kind)?,
                }
            }
            all.push(children);
        }
        if length > MOST_ELEMENTS {
            break;
        }
    }
    Some(all)
}

/// Checks each page of these columns, and says how many rows may be read at a time.
pub fn check_pages(file: &mut File, metadata: &ParquetMetaData, columns: &[usize]) -> Result<usize, String> {
    let mut rows = ROWS;
    for group in metadata.row_groups() {
        for &index in columns {
            let Some(chunk) = group.columns().get(index) else { continue };
            rows = rows.min(Pages { file, chunk }.check()?);
        }
    }
    Ok(rows)
}

/// The pages of a column in a row group.
struct Pages<'a> {
    file: &'a mut File,
    chunk: &'a ColumnChunkMetaData,
}

impl Pages<'_> {
    fn check(mut self) -> Result<usize, String> {
        let name = self.chunk.column_path().string();
        if matches!(self.chunk.compression(), Compression::BROTLI(_) | Compression::LZ4) {
            return Err(format!(
                "column '{name}' is compressed by {}: zstd, snappy, gzip, lz4_raw or none is read",
                self.chunk.compression()
            ));
        }
        let long_name =
            |at| Err(format!("column '{name}': a name of more than {LONGEST_NAME} bytes in the page at byte {at}"));
        let (begin, length) = self.chunk.byte_range();
        let (mut at, end) = (begin, begin.saturating_add(length));
        if self.chunk.column_descr().type_length() > LONGEST_NAME as i32 {
            return long_name(at);
        }
        let (mut dictionary, mut spelt_out) = (0, false);
        while at < end {
            let (page, header) = read_header(self.file, at)?;
            let largest = page.compressed.max(page.uncompressed);
            if page.compressed.min(page.uncompressed) < 0 || largest > LARGEST_PAGE {
                let most = LARGEST_PAGE;
                return Err(format!(
                    "column '{name}': a page of {largest} bytes at byte {at}; at most {most} are read"
                ));
            }
            if self.chunk.column_type() == Type::BYTE_ARRAY {
                let most = (LONGEST_NAME as i64 + BESIDE_NAME).saturating_mul(page.values).saturating_add(SLACK);
                match page.encoding {
                    _ if page.uncompressed > most => return long_name(at),
                    _ if page.is_dictionary => dictionary = page.uncompressed as usize,
                    Some(REPEATING) => {
                        return Err(format!(
                            "column '{name}' is encoded as DELTA_BYTE_ARRAY; plain or with a dictionary is read"
                        ));
                    }
                    encoding => spelt_out |= !encoding.is_some_and(|encoding| REFERRING.contains(&encoding)),
                }
            }
            let data = at.saturating_add(header);
            if matches!(self.chunk.compression(), Compression::GZIP(_)) {
                self.check_gzip(data, &page)?;
            }
            at = data.saturating_add(page.compressed as u64);
        }
        // Where only some pages refer to the dictionary, its names are written out for each row.
        Ok(if spelt_out && dictionary > 0 { (NAMES / dictionary).clamp(1, ROWS) } else { ROWS })
    }

    /// Whoever unpacks the page goes on for as long as there is more, whatever its header says.
    fn check_gzip(&mut self, at: u64, page: &Page) -> Result<(), String> {
        let packed =
            read_at(self.file, at.saturating_add(page.levels as u64), (page.compressed - page.levels).max(0) as u64)?;
        let mut unpacked = flate2::read::MultiGzDecoder::new(&packed[..]).take(page.uncompressed as u64 + 1);
        match std::io::copy(&mut unpacked, &mut std::io::sink()) {
            Ok(length) if length > page.uncompressed as u64 => Err(format!("a damaged page at byte {at}")),
            // What cannot be unpacked is found where it is read.
            _ => Ok(()),
        }
    }
}

/// What the header of a page says.
#[derive(Default)]
struct Page {
    uncompressed: i64,
    compressed: i64,
    values: i64,
    encoding: Option<i64>,
    /// Bytes before the values that are not compressed.
    levels: i64,
    is_dictionary: bool,
}

/// The header at this byte, and its length.
fn read_header(file: &mut File, at: u64) -> Result<(Page, u64), String> {
    let mut length = HEADER;
    loop {
        let bytes = read_at(file, at, length)?;
        let mut compact = Compact::new(&bytes);
        match page(&mut compact) {
            Some(page) => return Ok((page, compact.at() as u64)),
            None if (bytes.len() as u64) < length || length >= LONGEST_HEADER => {
                return Err(format!("a damaged page at byte {at}"));
            }
            None => length *= 16,
        }
    }
}

fn page(compact: &mut Compact) -> Option<Page> {
    /// Where each kind of page has its own header, and in that the encoding; the number of values is its first field.
    const KINDS: [(i64, i64); 3] = [(5, 2), (DICTIONARY, 2), (8, 4)];
    const DICTIONARY: i64 = 7;
    let (mut page, mut last) = (Page::default(), 0);
    while let Some((number, kind)) = compact.field(last)? {
        last = number;
        match (number, kind) {
            (2, I32) => page.uncompressed = compact.signed()?,
            (3, I32) => page.compressed = compact.signed()?,
            (number, STRUCT) if KINDS.iter().any(|(own, _)| *own == number) => {
                let encoding = KINDS.iter().find(|(own, _)| *own == number)?.1;
                page.is_dictionary = number == DICTIONARY;
                let mut last = 0;
                while let Some((number, kind)) = compact.field(last)? {
                    last = number;
                    match (number, kind) {
                        (1, I32) => page.values = compact.signed()?,
                        (5 | 6, I32) if encoding == 4 => {
                            page.levels = page.levels.saturating_add(compact.signed()?.max(0))
                        }
                        (number, I32) if number == encoding => page.encoding = Some(compact.signed()?),
                        _ => compact.skip(kind)?,
                    }
                }
            }
            _ => compact.skip(kind)?,
        }
    }
    Some(page)
}

/// Up to `length` bytes from there.
fn read_at(file: &mut File, at: u64, length: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = file.seek(SeekFrom::Start(at)).and_then(|_| file.take(length).read_to_end(&mut bytes));
    read.map_err(|error| error.to_string()).map(|_| bytes)
}
