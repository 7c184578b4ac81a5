//! The pages: how large they say they are, and how long the names in them may be.

use std::io::Read;

use parquet::basic::{Compression, Type};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};

use super::layout::PAGE;
use super::read_at;
use super::thrift::{Compact, Seen};
use crate::trace::spool::Part;
use crate::trace::volumes::LONGEST_NAME;

/// Bytes of a page, compressed or not; most writers make pages of 1 MiB.
const LARGEST_PAGE: i64 = 32 << 20;
/// Bytes beside a value: the length of a name, how a difference is packed, and what says whether a row has one.
const BESIDE: i64 = 8;
/// What else a page holds.
const SLACK: i64 = 4 << 10;
/// Most headers of pages are shorter; what is longer is read again with more of it.
const HEADER: u64 = 256;
const LONGEST_HEADER: u64 = 1 << 20;
/// Encodings of pages that are read: spelt out, two that refer to the dictionary, differences, and bytes in streams. Others say in a few
/// bits how many values there are, or repeat the one before, however long.
const NUMBERS: [i64; 5] = [0, 2, 8, 5, 9];
const STRINGS: [i64; 3] = [0, 2, 8];
/// Bytes that what is known of a column in a group of rows takes in memory.
const CHUNK: u64 = 512;
/// Bytes that a value of a dictionary takes in memory.
const VALUE: i64 = 32;
/// Strings in a dictionary, each of which takes some memory: volumes have as many names.
const MOST_STRINGS: i64 = 1 << 16;
/// The header that each type of page has, by its number.
const HEADERS: [&str; 4] = ["DataPageHeader", "an empty structure", "DictionaryPageHeader", "DataPageHeaderV2"];

/// Checks each page of these columns; the memory that reading them side by side takes.
pub fn check_pages(file: &Part, metadata: &ParquetMetaData, columns: &[usize]) -> Result<u64, String> {
    check_places(metadata)?;
    let chunks: usize = metadata.row_groups().iter().map(|group| group.columns().len()).sum();
    let mut memory = CHUNK * chunks as u64;
    for &index in columns {
        let mut most = 0;
        for chunk in metadata.row_groups().iter().filter_map(|group| group.columns().get(index)) {
            most = most.max(Pages::new(chunk)?.check(file)?);
        }
        memory += most;
    }
    Ok(memory)
}

/// Columns that share their pages would have them read once for each.
fn check_places(metadata: &ParquetMetaData) -> Result<(), String> {
    let chunks = metadata.row_groups().iter().flat_map(|group| group.columns());
    let mut places: Vec<(u64, u64)> = chunks.map(ColumnChunkMetaData::byte_range).collect();
    places.sort_unstable();
    let overlap = places.windows(2).find(|pair| pair[0].0.saturating_add(pair[0].1) > pair[1].0);
    overlap.map_or(Ok(()), |pair| Err(format!("a damaged Parquet file: two columns at byte {}", pair[1].0)))
}

/// The pages of a column in a row group, one after the other.
pub struct Pages {
    name: String,
    kind: Type,
    type_length: i32,
    /// In all of them.
    values: i64,
    is_gzip: bool,
    begin: u64,
    at: u64,
    end: u64,
}

impl Pages {
    pub fn new(chunk: &ColumnChunkMetaData) -> Result<Self, String> {
        let (begin, length) = chunk.byte_range();
        let pages = Self {
            name: chunk.column_path().string(),
            kind: chunk.column_type(),
            type_length: chunk.column_descr().type_length(),
            values: chunk.num_values(),
            is_gzip: matches!(chunk.compression(), Compression::GZIP(_)),
            begin,
            at: begin,
            end: begin.saturating_add(length),
        };
        if matches!(chunk.compression(), Compression::BROTLI(_) | Compression::LZ4) {
            return Err(format!(
                "column '{}' is compressed by {}: zstd, snappy, gzip, lz4_raw or none is read",
                pages.name,
                chunk.compression()
            ));
        }
        if pages.type_length > LONGEST_NAME as i32 {
            return Err(pages.long_name());
        }
        Ok(pages)
    }

    /// The memory that they take: of the dictionary, and of the largest page in each encoding, packed and unpacked.
    fn check(mut self, file: &Part) -> Result<u64, String> {
        let (mut dictionary, mut most) = (0, [0; NUMBERS.len()]);
        while let Some(page) = self.next(file)? {
            let both = page.compressed.saturating_add(page.uncompressed);
            match self.encodings().iter().position(|&encoding| encoding == page.encoding) {
                Some(kind) if !page.is_dictionary => most[kind] = both.max(most[kind]),
                _ => dictionary = both + page.values.saturating_mul(VALUE),
            }
        }
        // A reader keeps a page for each encoding.
        Ok(u64::try_from(dictionary + most.iter().sum::<i64>()).unwrap_or(u64::MAX))
    }

    /// The next page, of which only the header is read; none at the end.
    pub fn next(&mut self, file: &Part) -> Result<Option<Page>, String> {
        if self.at >= self.end {
            return Ok(None);
        }
        let page = read_header(file, self.at)?;
        self.check_page(&page)?;
        self.at = page.body.saturating_add(page.compressed as u64);
        Ok(Some(page))
    }

    /// The page as it is in the file, header and all.
    pub fn read(&self, file: &Part, page: &Page) -> Result<Vec<u8>, String> {
        let length = page.compressed as usize;
        let mut bytes = Vec::with_capacity(page.header.len() + length);
        bytes.extend_from_slice(&page.header);
        bytes.append(&mut read_at(file, page.body, length as u64)?);
        if bytes.len() < page.header.len() + length {
            return Err(format!("a damaged Parquet file: a page that is cut off at byte {}", page.body));
        }
        if self.is_gzip {
            check_gzip(&bytes[page.header.len()..], page)?;
        }
        Ok(bytes)
    }

    fn check_page(&self, page: &Page) -> Result<(), String> {
        let (at, name) = (self.at, &self.name);
        let damaged = || Err(format!("a damaged page at byte {at}"));
        let largest = page.compressed.max(page.uncompressed);
        if largest > LARGEST_PAGE {
            let most = LARGEST_PAGE;
            return Err(format!("column '{name}': a page of {largest} bytes at byte {at}; at most {most} are read"));
        }
        if page.is_dictionary {
            // A second one, or one behind the values, would not be that which the values were checked with. What a dictionary holds
            // is set aside for all its values at once.
            if at != self.begin
                || page.values.saturating_mul(self.width()) > page.uncompressed
                || page.values > self.values
            {
                return damaged();
            }
            if self.holds_strings() && page.values > MOST_STRINGS {
                return Err(format!("column '{name}' has more than {MOST_STRINGS} names in the page at byte {at}"));
            }
        } else if !self.encodings().contains(&page.encoding) {
            let (kind, encodings) = match self.holds_strings() {
                true => ("strings", "plain or with a dictionary"),
                false => ("numbers", "plain, with a dictionary, as differences or in streams"),
            };
            let encoding = page.encoding;
            return Err(format!("column '{name}' has {kind} in encoding {encoding}; {encodings} is read"));
        } else if page.rows.is_some_and(|rows| rows != page.values) {
            // No column that is read repeats.
            return damaged();
        }
        // Nothing is longer when it is compressed, but for a little. What is stretches over a hole of the file.
        if page.compressed > page.uncompressed.saturating_add(page.uncompressed / 4 + SLACK) {
            return damaged();
        }
        // A page of few values that unpacks to much is made to take time.
        let is_name = self.kind == Type::BYTE_ARRAY;
        let longest = if is_name { LONGEST_NAME as i64 } else { self.width() };
        if page.uncompressed <= (longest + BESIDE).saturating_mul(page.values).saturating_add(SLACK) {
            return Ok(());
        }
        if is_name { Err(self.long_name()) } else { damaged() }
    }

    fn long_name(&self) -> String {
        format!("column '{}': a name of more than {LONGEST_NAME} bytes in the page at byte {}", self.name, self.at)
    }

    fn encodings(&self) -> &'static [i64] {
        if self.holds_strings() { &STRINGS } else { &NUMBERS }
    }

    fn holds_strings(&self) -> bool {
        matches!(self.kind, Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY)
    }

    /// Bytes that a value takes at least where it is spelt out.
    fn width(&self) -> i64 {
        match self.kind {
            Type::BOOLEAN => 0,
            Type::INT32 | Type::FLOAT | Type::BYTE_ARRAY => 4,
            Type::INT64 | Type::DOUBLE => 8,
            Type::INT96 => 12,
            Type::FIXED_LEN_BYTE_ARRAY => i64::from(self.type_length.max(1)),
        }
    }
}

/// Whoever unpacks the page goes on for as long as there is more, whatever its header says.
fn check_gzip(body: &[u8], page: &Page) -> Result<(), String> {
    let packed = &body[usize::try_from(page.levels).unwrap_or(usize::MAX).min(body.len())..];
    let mut unpacked = flate2::read::MultiGzDecoder::new(packed).take(page.uncompressed as u64 + 1);
    match std::io::copy(&mut unpacked, &mut std::io::sink()) {
        Ok(length) if length > page.uncompressed as u64 => {
            Err(format!("a damaged page: it unpacks to more than its {} bytes", page.uncompressed))
        }
        // What cannot be unpacked is found where it is read.
        _ => Ok(()),
    }
}

/// What the header of a page says.
#[derive(Default)]
pub struct Page {
    uncompressed: i64,
    compressed: i64,
    pub values: i64,
    /// Rows, where the header says how many.
    rows: Option<i64>,
    encoding: i64,
    /// Bytes before the values that are not compressed.
    levels: i64,
    pub is_dictionary: bool,
    /// The header's own bytes.
    header: Vec<u8>,
    /// Where what follows the header begins.
    body: u64,
}

/// The header at this byte.
fn read_header(file: &Part, at: u64) -> Result<Page, String> {
    let mut length = HEADER;
    loop {
        let mut bytes = read_at(file, at, length)?;
        let mut compact = Compact::new(&bytes);
        match page(&mut compact) {
            Ok(page) => {
                bytes.truncate(compact.at());
                return Ok(Page { body: at.saturating_add(bytes.len() as u64), header: bytes, ..page });
            }
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
        Seen::Number("num_rows", count) => page.rows = Some(count),
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
