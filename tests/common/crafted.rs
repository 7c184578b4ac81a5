//! Parquet files made byte by byte, so that they can be wrong.

use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

pub const LIST: u8 = 9;
pub const SET: u8 = 10;
pub const NO_GROUPS: &[u8] = &[0x0c];

/// Right: requests with a column that nobody asked for, and of volumes of this name, both long strings that a dictionary holds once.
pub fn parquet(volume: &str, junk: &str) -> Vec<u8> {
    const ROWS: i64 = 1 << 16;
    let schema = "message t { required int64 arrival; required int64 offset; required int64 length; \
        required binary op (string); required binary volume (string); required binary junk (string); }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for _ in 0..3 {
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&(0..ROWS).collect::<Vec<_>>(), None, None).unwrap();
        column.close().unwrap();
    }
    for text in ["read", volume, junk] {
        let mut column = group.next_column().unwrap().unwrap();
        let values = vec![ByteArray::from(text); ROWS as usize];
        column.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.into_inner().unwrap()
}

/// Right: so many requests a millisecond after one another, in a file of some hundred bytes.
pub fn in_step(rows: i64) -> Vec<u8> {
    let schema = "message t { required int64 arrival; required int64 offset; required int64 length; \
        required binary op (string); }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = WriterProperties::builder()
        .set_column_dictionary_enabled("arrival".into(), false)
        .set_column_encoding("arrival".into(), Encoding::DELTA_BINARY_PACKED)
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_data_page_row_count_limit(rows as usize)
        .set_write_batch_size(rows as usize)
        .set_data_page_size_limit(1 << 30)
        .set_statistics_enabled(EnabledStatistics::None)
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for step in [1_000_000, 0, 0] {
        let mut column = group.next_column().unwrap().unwrap();
        let values: Vec<i64> = (0..rows).map(|row| row * step + 512).collect();
        column.typed::<Int64Type>().write_batch(&values, None, None).unwrap();
        column.close().unwrap();
    }
    let mut column = group.next_column().unwrap().unwrap();
    let values = vec![ByteArray::from("read"); rows as usize];
    column.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.into_inner().unwrap()
}

/// A number as Thrift writes it; with its sign in the last bit where it may have one.
fn number(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

fn signed(value: i64) -> Vec<u8> {
    number(((value << 1) ^ (value >> 63)) as u64)
}

/// The head of a list of so many structures.
pub fn structures(count: usize) -> Vec<u8> {
    [vec![0xfc], number(count as u64)].concat()
}

/// A schema of columns each in the one before it, which say that they have so many, and one of a type.
pub fn nested_columns(depth: usize, children: i64) -> Vec<u8> {
    let group = [&[0x35, 0x00, 0x18, 1, b'a', 0x15], &signed(children)[..], &[0x00]].concat();
    [structures(depth + 1), group.repeat(depth), vec![0x15, 0x04, 0x25, 0x00, 0x18, 1, b'a', 0x00]].concat()
}

/// Each field of these with the byte for its step and its type: version, schema, a row, row groups.
pub fn footer(schema_type: u8, schema: &[u8], groups_type: u8, groups: &[u8]) -> Vec<u8> {
    [&[0x15, 0x02, 0x10 | schema_type], schema, &[0x16, 0x02, 0x10 | groups_type], groups, &[0x00]].concat()
}

pub fn with_footer(body: &[u8], footer: &[u8]) -> Vec<u8> {
    [b"PAR1", body, footer, &(footer.len() as u32).to_le_bytes(), b"PAR1"].concat()
}

pub fn nested(depth: usize) -> Vec<u8> {
    with_footer(&[], &footer(LIST, &nested_columns(depth, 1), LIST, NO_GROUPS))
}

/// A file of one request, whose pages are wrong.
#[derive(Clone, Copy)]
pub struct Pages {
    /// The type of the field that says the size.
    pub size_type: u8,
    /// Values that the page of a column of numbers says it has, which is then a dictionary.
    pub dictionary_of: Option<i64>,
    /// Whether all columns say that they are where the first is.
    pub all_at_once: bool,
    /// Bytes that stand behind the values of numbers, compressed.
    pub beyond: usize,
    /// Whether a dictionary follows the values of numbers.
    pub dictionary_behind: bool,
}

impl Default for Pages {
    fn default() -> Self {
        Self { size_type: 5, dictionary_of: None, all_at_once: false, beyond: 0, dictionary_behind: false }
    }
}

impl Pages {
    pub fn file(self) -> Vec<u8> {
        const ZSTD: i64 = 6;
        const COLUMNS: [(&[u8], i64, &[u8]); 4] =
            [(b"arrival", 2, &[0; 8]), (b"offset", 2, &[0; 8]), (b"length", 1, &[0; 4]), (b"op", 6, b"\x04\0\0\0read")];
        let (mut body, mut chunks) = (Vec::new(), Vec::new());
        let mut schema = [structures(5), vec![0x48, 1, b's', 0x15, 0x08, 0x00]].concat();
        for (name, kind, data) in COLUMNS {
            let at = signed(if self.all_at_once { 4 } else { 4 + body.len() as i64 });
            let beyond = if kind == 6 { 0 } else { self.beyond };
            let unpacked = [data, &vec![0; beyond]].concat();
            let packed = zstd::encode_all(&unpacked[..], 1).unwrap();
            let header = match self.dictionary_of.filter(|_| kind != 6) {
                // Field 7, of values and encoding.
                Some(values) => [&[0x4c, 0x15], &signed(values)[..], &[0x15, 0x00, 0x00, 0x00]].concat(),
                // Field 5, of values, encoding and the encodings of levels.
                None => vec![0x2c, 0x15, 0x02, 0x15, 0x00, 0x15, 0x06, 0x15, 0x06, 0x00, 0x00],
            };
            let page_kind = if header[0] == 0x4c { signed(2) } else { signed(0) };
            let page = [
                &[0x15],
                &page_kind[..],
                &[0x10 | self.size_type],
                &signed(unpacked.len() as i64),
                &[0x15],
                &signed(packed.len() as i64),
                &header,
                &packed,
            ]
            .concat();
            let behind =
                [&[0x15], &signed(2)[..], &[0x15, 0x10, 0x15, 0x10, 0x4c, 0x15, 0x02, 0x15, 0x00, 0x00, 0x00], &[0; 8]];
            let behind = if self.dictionary_behind && kind != 6 { behind.concat() } else { Vec::new() };
            let page = [page, behind].concat();
            let (kind, length) = (signed(kind), signed(page.len() as i64));
            body.extend(&page);
            let text = [&[name.len() as u8], name].concat();
            let sizes =
                [&[0x15], &signed(ZSTD)[..], &[0x16, 0x02, 0x16], &length, &[0x16], &length, &[0x26], &at, &[0x00]];
            let column = [&[0x15], &kind[..], &[0x19, 0x15, 0x00, 0x19, 0x18], &text, &sizes.concat()].concat();
            chunks.extend([&[0x26], &at[..], &[0x1c], &column, &[0x00]].concat());
            schema.extend([&[0x15], &kind[..], &[0x25, 0x00, 0x18], &text, &[0x00]].concat());
        }
        let groups = [structures(1), vec![0x19], structures(4), chunks, vec![0x16, 0x02, 0x16, 0x02, 0x00]].concat();
        with_footer(&body, &footer(LIST, &schema, LIST, &groups))
    }
}
