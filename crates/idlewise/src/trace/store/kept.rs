//! Rows of a Parquet file whose pages cannot all stay in memory, in a temporary file: to unpack them again for each batch would take
//! time without end where there are many files.
//!
//! Blocks, one behind the other, each with the names of its volumes: their number, and each with its length; the number of rows; the
//! rows.

use std::io::{BufReader, Read};

use crate::trace::spool::{Part, Spool};
use crate::trace::{Columns, Op, Request};
use crate::{Bytes, Nanos};

/// Bytes of a row.
const ROW: usize = 40;
/// Stands for a time that is not known.
const UNKNOWN: u64 = u64::MAX;
/// Bytes that are read at a time.
const READ: usize = 16 << 10;

/// The blocks of a file, which are read in their order.
pub struct Kept(BufReader<Part>);

impl Kept {
    /// Keeps what `next` gives, in blocks of at most so many rows.
    pub fn keep(
        spool: &Spool,
        rows: usize,
        mut next: impl FnMut() -> Result<Option<Columns>, String>,
    ) -> Result<Self, String> {
        let mut blocks =
            Blocks { next: &mut next, rows, rest: Columns::default(), bytes: Vec::new(), at: 0, problem: None };
        let part =
            spool.part(&mut blocks).map_err(|error| blocks.problem.take().unwrap_or_else(|| error.to_string()))?;
        Ok(Self(BufReader::with_capacity(READ, part)))
    }

    /// The next block; none at the end.
    pub fn next(&mut self) -> Result<Option<Columns>, String> {
        self.read().map_err(|error| error.to_string())
    }

    fn read(&mut self) -> std::io::Result<Option<Columns>> {
        let mut names = [0; 4];
        match self.0.read_exact(&mut names) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        let mut columns = Columns::default();
        for _ in 0..u32::from_le_bytes(names) {
            let mut length = [0];
            self.0.read_exact(&mut length)?;
            let mut name = vec![0; length[0].into()];
            self.0.read_exact(&mut name)?;
            columns.volume_id(&String::from_utf8_lossy(&name));
        }
        let mut rows = [0; 4];
        self.0.read_exact(&mut rows)?;
        let rows = u32::from_le_bytes(rows);
        columns.reserve(rows as usize);
        let mut row = [0; ROW];
        for _ in 0..rows {
            self.0.read_exact(&mut row)?;
            columns.push(request(&row));
        }
        Ok(Some(columns))
    }
}

/// Blocks as they are written, a reader of which is what a spool takes.
struct Blocks<'a> {
    next: &'a mut dyn FnMut() -> Result<Option<Columns>, String>,
    rows: usize,
    /// What is not yet in a block.
    rest: Columns,
    bytes: Vec<u8>,
    at: usize,
    problem: Option<String>,
}

impl Read for Blocks<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.bytes.len() && !self.fill()? {
            return Ok(0);
        }
        let count = buffer.len().min(self.bytes.len() - self.at);
        buffer[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

impl Blocks<'_> {
    /// Writes the next block; whether there is one.
    fn fill(&mut self) -> std::io::Result<bool> {
        while self.rest.is_empty() {
            match (self.next)() {
                Ok(Some(columns)) => self.rest = columns,
                Ok(None) => return Ok(false),
                Err(problem) => {
                    self.problem = Some(problem.clone());
                    return Err(std::io::Error::other(problem));
                }
            }
        }
        let rest = self.rest.split_off(self.rows.min(self.rest.len()));
        let whole = std::mem::replace(&mut self.rest, rest);
        // Only the names that are in it.
        let mut block = Columns::default();
        for request in whole.requests() {
            let volume = block.volume_id(&whole.volumes[usize::from(request.volume)]).unwrap_or_default();
            block.push(Request { volume, ..request });
        }
        (self.bytes, self.at) = (Vec::new(), 0);
        self.bytes.extend_from_slice(&(block.volumes.len() as u32).to_le_bytes());
        for name in block.volumes.iter() {
            self.bytes.push(name.len() as u8);
            self.bytes.extend_from_slice(name.as_bytes());
        }
        self.bytes.extend_from_slice(&(block.len() as u32).to_le_bytes());
        block.requests().for_each(|request| self.bytes.extend_from_slice(&row(&request)));
        Ok(true)
    }
}

fn row(request: &Request) -> [u8; ROW] {
    let time = |time: Option<Nanos>| time.map_or(UNKNOWN, |time| time.0).to_le_bytes();
    let mut row = [0; ROW];
    row[..8].copy_from_slice(&request.arrival.0.to_le_bytes());
    row[8..16].copy_from_slice(&request.offset.0.to_le_bytes());
    row[16..24].copy_from_slice(&time(request.queued));
    row[24..32].copy_from_slice(&time(request.response));
    row[32..36].copy_from_slice(&request.length.to_le_bytes());
    row[36..38].copy_from_slice(&request.volume.to_le_bytes());
    row[38] = u8::from(request.op == Op::Write);
    row
}

fn request(row: &[u8; ROW]) -> Request {
    let long = |at: usize| row[at..at + 8].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
    let time = |at: usize| Some(Nanos(long(at))).filter(|time| time.0 != UNKNOWN);
    Request {
        arrival: Nanos(long(0)),
        offset: Bytes(long(8)),
        length: u32::from_le_bytes([row[32], row[33], row[34], row[35]]),
        op: if row[38] == 1 { Op::Write } else { Op::Read },
        volume: u16::from_le_bytes([row[36], row[37]]),
        queued: time(16),
        response: time(24),
    }
}
