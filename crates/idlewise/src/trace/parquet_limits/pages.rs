//! The pages: how large they say they are, and how long the names in them may be.

use std::fs::File;
use std::io::Read;

use parquet::basic::{Compression, Type};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};

use super::layout::PAGE;
use super::read_at;
use super::thrift::{Compact, Seen};
use crate::trace::volumes::LONGEST_NAME;

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
/// The encoding that spells every value out.
const PLAIN: i64 = 0;
/// Rows of a batch.
const ROWS: usize = 1 << 16;
/// Bytes of names in a batch.
const NAMES: usize = 64 << 20;
/// The header that each type of page has, by its number.
const HEADERS: [&str; 4] = ["DataPageHeader", "an empty structure", "DictionaryPageHeader", "DataPageHeaderV2"];

/// Checks each page of these columns, and says how many rows may be read at a time.
pub fn check_pages(file: &mut File, metadata: &ParquetMetaData, columns: &[usize]) -> Result<usize, String> {
    let mut rows = ROWS;
    check_places(metadata)?;
    let several = metadata.row_groups().len() > 1;
    for group in metadata.row_groups() {
        for &index in columns {
            let Some(chunk) = group.columns().get(index) else { continue };
            rows = rows.min(Pages { file, chunk, several }.check()?);
        }
    }
    Ok(rows)
}

/// Columns that share their pages would have them read once for each.
fn check_places(metadata: &ParquetMetaData) -> Result<(), String> {
    let chunks = metadata.row_groups().iter().flat_map(|group| group.columns());
    let mut places: Vec<(u64, u64)> = chunks.map(ColumnChunkMetaData::byte_range).collect();
    places.sort_unstable();
    let overlap = places.windows(2).find(|pair| pair[0].0.saturating_add(pair[0].1) > pair[1].0);
    overlap.map_or(Ok(()), |pair| Err(format!("a damaged Parquet file: two columns at byte {}", pair[1].0)))
}

/// The pages of a column in a row group.
struct Pages<'a> {
    file: &'a mut File,
    chunk: &'a ColumnChunkMetaData,
    /// Whether a batch may reach into another row group.
    several: bool,
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
            if largest > LARGEST_PAGE {
                let most = LARGEST_PAGE;
                return Err(format!(
                    "column '{name}': a page of {largest} bytes at byte {at}; at most {most} are read"
                ));
            }
            // What a dictionary holds is set aside for all its values at once.
            if page.is_dictionary && page.values.saturating_mul(self.width()) > page.uncompressed {
                return Err(format!("a damaged page at byte {at}"));
            }
            if self.chunk.column_type() == Type::BYTE_ARRAY {
                let most = (LONGEST_NAME as i64 + BESIDE_NAME).saturating_mul(page.values).saturating_add(SLACK);
                match page.encoding {
                    _ if page.uncompressed > most => return long_name(at),
                    _ if page.is_dictionary => dictionary = page.uncompressed as usize,
                    PLAIN => spelt_out = true,
                    encoding if REFERRING.contains(&encoding) => {}
                    // Others say in a few bits how many there are, or repeat the one before, however long.
                    encoding => {
                        return Err(format!(
                            "column '{name}' has strings in encoding {encoding}; plain or with a dictionary is read"
                        ));
                    }
                }
            }
            let data = at.saturating_add(header);
            if matches!(self.chunk.compression(), Compression::GZIP(_)) {
                self.check_gzip(data, &page)?;
            }
            at = data.saturating_add(page.compressed as u64);
        }
        // Where only some pages refer to the dictionary, or a batch to two of them, names are written out for each row.
        let written_out = (spelt_out || self.several) && dictionary > 0;
        Ok(if written_out { (NAMES / dictionary).clamp(1, ROWS) } else { ROWS })
    }

    /// Bytes that a value takes at least where it is spelt out.
    fn width(&self) -> i64 {
        match self.chunk.column_type() {
            Type::BOOLEAN => 0,
            Type::INT32 | Type::FLOAT | Type::BYTE_ARRAY => 4,
            Type::INT64 | Type::DOUBLE => 8,
            Type::INT96 => 12,
            Type::FIXED_LEN_BYTE_ARRAY => i64::from(self.chunk.column_descr().type_length().max(1)),
        }
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
    encoding: i64,
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
            Ok(page) => return Ok((page, compact.at() as u64)),
            Err(wrong) if (bytes.len() as u64) < length || length >= LONGEST_HEADER => {
                return Err(format!("a damaged page at byte {at}: {wrong}"));
            }
            Err(_) => length *= 16,
        }
    }
}

fn page(compact: &mut Compact) -> Result<Page, String> {
    let (mut page, mut kind, mut headers) = (Page::default(), 0, Vec::new());
    compact.walk(&PAGE, &mut |seen| match seen {
        Seen::Begin(name) if HEADERS.contains(&name) => headers.push(name),
        Seen::Number("type", number) => kind = number,
        Seen::Number("uncompressed_page_size", size) => page.uncompressed = size,
        Seen::Number("compressed_page_size", size) => page.compressed = size,
        Seen::Number("num_values", count) => page.values = count,
        Seen::Number("encoding", encoding) => page.encoding = encoding,
        Seen::Number("definition_levels_byte_length" | "repetition_levels_byte_length", length) => {
            page.levels = page.levels.saturating_add(length.max(0));
        }
        _ => {}
    })?;
    let own = usize::try_from(kind).ok().and_then(|kind| HEADERS.get(kind)).ok_or("a page of an unknown type")?;
    if headers != [*own] {
        return Err(format!("a page without {own}, or with another"));
    }
    page.is_dictionary = *own == HEADERS[2];
    let negative = page.values.min(page.compressed).min(page.uncompressed) < 0;
    if negative { Err("a size below zero".into()) } else { Ok(page) }
}
