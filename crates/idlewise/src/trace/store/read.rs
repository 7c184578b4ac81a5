//! Reads a trace from Parquet.

use std::io::Read;
use std::sync::Arc;

use parquet::file::metadata::ParquetMetaData;

use super::columns::{Column, Rows, column, needed_column};
use super::kept::Kept;
use super::{MAGIC, ORIGIN_KEY, RESOLUTION_KEY, VERSION, VERSION_KEY, limits};
use crate::trace::decoder::{BadRecords, Batches};
use crate::trace::inputs::Input;
use crate::trace::spool::{Part, Spool};
use crate::trace::volumes::LONGEST_NAME;
use crate::trace::{Columns, Op, Request, TraceError};
use crate::{Bytes, Nanos};

/// Rows of a batch of one input.
const ROWS: usize = 1 << 16;
/// Rows of the batches of all inputs together.
const ALL_ROWS: usize = 1 << 20;
const FEWEST_ROWS: usize = 1 << 8;
/// Rows for each byte of a file: few requests arrive at the same time, so that a row takes a byte or more in a trace.
const ROWS_OF_A_BYTE: u64 = 100;
/// The same of a file that was compressed as a whole: thousands of its bytes may take one.
const ROWS_OF_AN_UNPACKED_BYTE: u64 = 1;
/// Memory for what stays open of all inputs together.
const OPEN: u64 = 96 << 20;

/// Reads a trace from Parquet.
pub struct ParquetBatches {
    name: String,
    file: Arc<Part>,
    /// What says where all is; read again for each batch where it does not stay open.
    metadata: Option<Arc<ParquetMetaData>>,
    columns: TraceColumns,
    origin: Nanos,
    resolution: Nanos,
    /// Rows that are read at a time.
    rows: usize,
    /// Whether pages are kept from batch to batch.
    stays_open: bool,
    /// All rows, where there are many files whose pages cannot be.
    kept: Option<Kept>,
    /// The group of rows that is read, and how many of its rows are behind us.
    group: usize,
    done: usize,
    /// Rows behind us in all groups.
    row: u64,
}

struct TraceColumns {
    arrival: Column,
    offset: Column,
    length: Column,
    op: Column,
    issue: Option<Column>,
    completion: Option<Column>,
    volume: Option<Column>,
}

impl TraceColumns {
    fn all(&mut self) -> impl Iterator<Item = &mut Column> {
        let needed = [&mut self.arrival, &mut self.offset, &mut self.length, &mut self.op];
        let optional = [&mut self.issue, &mut self.completion, &mut self.volume];
        needed.into_iter().chain(optional.into_iter().flatten())
    }
}

impl ParquetBatches {
    /// Whether the first bytes are of a Parquet file.
    pub fn claims(head: &[u8]) -> bool {
        head.starts_with(MAGIC)
    }

    /// One of so many inputs, which share the memory.
    pub fn open(input: Input, spool: &Spool, inputs: usize) -> Result<Self, TraceError> {
        let name = input.name;
        let rows_of_a_byte = if input.compression.is_some() { ROWS_OF_AN_UNPACKED_BYTE } else { ROWS_OF_A_BYTE };
        // The end of the file says where its parts are.
        let file = match input.file {
            Some(file) => Ok(file),
            None => spool.part(&mut input.head.chain(input.rest)),
        };
        let file = file.map_err(|error| TraceError::Io { path: name.clone(), error })?;
        guarded(|| Self::of_file(file, rows_of_a_byte, inputs)?.among(spool, inputs))
            .map_err(|problem| TraceError::Parquet { path: name.clone(), problem })
            .map(|batches| Self { name: name.clone(), ..batches })
    }

    fn of_file(file: Part, rows_of_a_byte: u64, inputs: usize) -> Result<Self, String> {
        let footer = limits::read_footer(&file)?;
        let metadata = footer.metadata;
        let stated = metadata.file_metadata().key_value_metadata().map_or(&[][..], Vec::as_slice);
        let number = |key: &str| stated.iter().find(|stated| stated.key == key)?.value.as_ref()?.parse::<u64>().ok();
        if let Some(version) = number(VERSION_KEY).filter(|&version| version > VERSION) {
            return Err(format!("a trace of version {version}; this idlewise reads up to version {VERSION}"));
        }
        let (origin, resolution) = (number(ORIGIN_KEY), number(RESOLUTION_KEY));
        let schema = metadata.file_metadata().schema_descr();
        let mut columns = TraceColumns {
            arrival: needed_column("arrival", schema)?,
            offset: needed_column("offset", schema)?,
            length: needed_column("length", schema)?,
            op: needed_column("op", schema)?,
            issue: column("issue", schema)?,
            completion: column("completion", schema)?,
            volume: column("volume", schema)?,
        };
        let groups = metadata.row_groups().iter();
        let rows = groups.fold(0, |sum, group| u64::try_from(group.num_rows()).unwrap_or(u64::MAX).saturating_add(sum));
        let bytes = file.written();
        if rows / rows_of_a_byte > bytes {
            let hint =
                if rows_of_a_byte < ROWS_OF_A_BYTE { ", as it is compressed as a whole: unpack it first" } else { "" };
            return Err(format!("{rows} rows in {bytes} bytes; at most {rows_of_a_byte} rows a byte are read{hint}"));
        }
        let indices: Vec<usize> = columns.all().map(|column| column.index).collect();
        let pages = limits::check_pages(&file, &metadata, &indices)?;
        let stays_open = footer.memory.saturating_add(pages) <= OPEN / inputs as u64;
        Ok(Self {
            name: String::new(),
            file: Arc::new(file),
            metadata: stays_open.then(|| Arc::new(metadata)),
            columns,
            origin: Nanos(origin.unwrap_or(0)),
            resolution: Nanos(resolution.unwrap_or(1)),
            // Where pages are read again for each batch, few large batches take less time.
            rows: if stays_open { rows_of_a_batch(inputs).min(ROWS) } else { ALL_ROWS },
            stays_open,
            kept: None,
            group: 0,
            done: 0,
            row: 0,
        })
    }

    /// The same among so many inputs, of which each may have large pages.
    fn among(mut self, spool: &Spool, inputs: usize) -> Result<Self, String> {
        if !self.stays_open && inputs > 1 {
            self.kept = Some(Kept::keep(spool, rows_of_a_batch(inputs), || self.batch())?);
            self.metadata = None;
        }
        Ok(self)
    }

    /// From memory, so many rows at a time.
    #[cfg(test)]
    pub fn of_bytes(bytes: &[u8], rows: usize, stays_open: bool) -> Self {
        Self::of_part(Spool::new(Bytes(u64::MAX)).part(&mut &bytes[..]).unwrap(), rows, stays_open)
    }

    /// From a file, so many rows at a time.
    #[cfg(test)]
    pub fn of_disk(file: &std::fs::File, rows: usize, stays_open: bool) -> Self {
        Self::of_part(Part::of_file(file).unwrap().unwrap(), rows, stays_open)
    }

    #[cfg(test)]
    fn of_part(file: Part, rows: usize, stays_open: bool) -> Self {
        let open = Self::of_file(file, ROWS_OF_A_BYTE, 1).unwrap();
        Self { rows, stays_open, metadata: open.metadata.filter(|_| stays_open), ..open }
    }

    /// The finest difference in time of the source.
    pub fn resolution(&self) -> Nanos {
        self.resolution
    }

    /// The next rows; none at the end.
    pub fn batch(&mut self) -> Result<Option<Columns>, String> {
        if let Some(kept) = &mut self.kept {
            return kept.next();
        }
        let metadata = match &self.metadata {
            Some(metadata) => metadata.clone(),
            None => Arc::new(limits::read_footer(&self.file)?.metadata),
        };
        while let Some(group) = metadata.row_groups().get(self.group) {
            let left = usize::try_from(group.num_rows()).unwrap_or(0).saturating_sub(self.done);
            if left == 0 {
                (self.group, self.done) = (self.group + 1, 0);
                continue;
            }
            let count = left.min(self.rows);
            let rows = Rows { file: &self.file, metadata: &metadata, group: self.group, begin: self.done, count };
            let columns = requests(&mut self.columns, &rows, self.row, self.origin, self.stays_open)?;
            self.done += count;
            self.row += count as u64;
            return Ok(Some(columns));
        }
        Ok(None)
    }
}

/// Rows of the batches of one of so many inputs.
fn rows_of_a_batch(inputs: usize) -> usize {
    (ALL_ROWS / inputs).clamp(FEWEST_ROWS, ALL_ROWS)
}

impl Batches for ParquetBatches {
    fn next(&mut self) -> Result<Option<Columns>, TraceError> {
        guarded(|| self.batch()).map_err(|problem| TraceError::Parquet { path: self.name.clone(), problem })
    }

    fn bad(&self) -> &BadRecords {
        BadRecords::NONE
    }
}

/// The requests in these rows, of which the first is row `first` of the file.
fn requests(
    from: &mut TraceColumns,
    rows: &Rows,
    first: u64,
    origin: Nanos,
    stays_open: bool,
) -> Result<Columns, String> {
    // Where pages are not kept, those of one column are given back before those of the next are read.
    fn read<T>(
        column: &mut Column,
        stays_open: bool,
        read: impl FnOnce(&mut Column) -> Result<T, String>,
    ) -> Result<T, String> {
        let values = read(column)?;
        if !stays_open {
            column.rest();
        }
        Ok(values)
    }
    let numbers = |column: &mut Column| read(column, stays_open, |column| column.numbers(rows));
    let known = |column: &mut Option<Column>| column.as_mut().map(numbers).transpose();
    let mut columns = Columns::default();
    let arrival = numbers(&mut from.arrival)?;
    let (issue, completion) = (known(&mut from.issue)?, known(&mut from.completion)?);
    let (offset, length) = (numbers(&mut from.offset)?, numbers(&mut from.length)?);
    let op = read(&mut from.op, stays_open, |column| column.texts(rows, op))?;
    let mut volume_id = |name: &str| {
        if name.len() > LONGEST_NAME {
            return Err(format!("column 'volume': a name of more than {LONGEST_NAME} bytes"));
        }
        columns.volume_id(name).ok_or_else(|| "more than 65,536 volumes".to_string())
    };
    let volume = match &mut from.volume {
        Some(column) => read(column, stays_open, |column| column.texts(rows, &mut volume_id))?,
        None => vec![Some(volume_id("disk")?); rows.count],
    };
    columns.reserve(rows.count);
    for index in 0..rows.count {
        let row = first + index as u64;
        let at = arrival[index].and_then(|at| u64::try_from(at).ok()).filter(|&at| i64::try_from(at).is_ok());
        let place = offset[index].and_then(|offset| u64::try_from(offset).ok());
        let length = length[index].and_then(|length| u32::try_from(length).ok());
        let arrived = at.and_then(|at| at.checked_add(origin.0));
        let (Some(at), Some(arrived), Some(place), Some(length)) = (at, arrived, place, length) else {
            return Err(format!("row {row}: expected an arrival, an offset and a length"));
        };
        let since_arrival = |times: &Option<Vec<Option<i128>>>, name: &str| {
            let Some(time) = times.as_ref().and_then(|times| times[index]) else { return Ok(None) };
            let since = u64::try_from(time - i128::from(at)).map(|time| Some(Nanos(time)));
            since.map_err(|_| format!("row {row}: {name} before the arrival"))
        };
        columns.push(Request {
            arrival: Nanos(arrived),
            offset: Bytes(place),
            length,
            op: op[index].ok_or_else(|| format!("row {row}: no op"))?,
            volume: volume[index].ok_or_else(|| format!("row {row}: no volume"))?,
            queued: since_arrival(&issue, "issue")?,
            response: since_arrival(&completion, "completion")?,
        });
    }
    Ok(columns)
}

fn op(text: &str) -> Result<Op, String> {
    match text {
        "read" => Ok(Op::Read),
        "write" => Ok(Op::Write),
        other => {
            let shown: String = other.chars().take(40).flat_map(char::escape_debug).collect();
            Err(format!("op '{shown}' is not read or write"))
        }
    }
}

/// The reader of Parquet panics on some damaged files; to us they are damaged files.
fn guarded<T>(read: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read));
    done.unwrap_or_else(|_| Err("a damaged Parquet file".into()))
}
