//! From the bytes of one input to batches of requests. Where rows stand alone, pieces of the input are parsed side by side
//! while the next ones are read and decompressed.

use std::collections::VecDeque;
use std::io::{self, Read};

use rayon::prelude::*;

use super::formats::lines::LONGEST_LINE;
use super::formats::{FORMATS, Format, Parser, Rows};
use super::inputs::Input;
use super::window::Window;
use super::{Bad, Columns, CsvLayout, TraceError, Volumes};
use crate::{Bytes, Nanos};

/// Read at a time, of all inputs together.
const BLOCKS: usize = 64 << 20;
/// Of one input; while fuzzing so little that short inputs are of several blocks.
const BLOCK: usize = if cfg!(fuzzing) { 1 << 10 } else { 4 << 20 };
const SMALLEST_BLOCK: usize = if cfg!(fuzzing) { 1 << 10 } else { 4 << 10 };
/// Times the text that rows of short lines take in memory, once as they are read and once merged.
const ROWS_BESIDE_TEXT: usize = 8;
/// Of more inputs none is read ahead.
pub const MOST_AHEAD: usize = 64;
/// A piece for one thread is not smaller.
const SMALLEST_PIECE: usize = if cfg!(fuzzing) { 256 } else { 128 << 10 };
/// Of so many inputs, parsers of pieces are kept with so many volumes that they know; else each piece has a new one.
const FEW_INPUTS: usize = 4;
const FEW_VOLUMES: usize = 4096;
/// Records are mostly longer.
const SHORTEST_RECORD: usize = 40;
/// Bytes behind each other in which there is no record, nor an end of a line. A file that has more of them is none of a trace, but may be
/// as long as somebody says: what was never written to it takes no space.
const MOST_BARREN: u64 = 256 << 20;

/// Gives the requests, or the events, of one input in the order of the input.
pub trait Batches: Send {
    /// The next ones, at least one; none at the end.
    fn next(&mut self) -> Result<Option<Columns>, TraceError>;
    /// Records left out so far.
    fn bad(&self) -> &BadRecords;
}

/// Records that were left out because they could not be read.
#[derive(Clone, Debug, Default)]
pub struct BadRecords {
    pub count: u64,
    /// What was wrong with the first few of them.
    pub samples: Vec<Bad>,
}

/// How an input is read.
pub struct Recipe<'a> {
    pub name: &'static str,
    pub resolution: Nanos,
    /// Whether rows are events rather than requests.
    pub events: bool,
    rows_stand_alone: bool,
    parser: Box<dyn Fn() -> Box<dyn Parser> + Sync + Send + 'a>,
}

impl<'a> Recipe<'a> {
    /// The format of these first bytes, or the stated one.
    pub fn of(head: &[u8], stated: Option<&'a CsvLayout>) -> Option<Self> {
        if let Some(layout) = stated {
            let parser = Box::new(|| layout.parser());
            let resolution = layout.resolution();
            return Some(Self { name: "columns", resolution, events: false, rows_stand_alone: false, parser });
        }
        FORMATS.iter().find(|format| (format.detect)(head)).map(Self::of_format)
    }

    /// As this format says.
    pub fn of_format(format: &Format) -> Self {
        Self {
            name: format.name,
            resolution: format.resolution,
            events: format.rows == Rows::Events,
            rows_stand_alone: format.rows == Rows::Alone,
            parser: Box::new(format.parser),
        }
    }
}

/// Parses one input.
pub struct Decoder<'a> {
    name: String,
    read: Box<dyn Read + Send + 'a>,
    recipe: Recipe<'a>,
    skip_bad: bool,
    /// Bytes that are read at a time.
    block: usize,
    /// Whether the next block is read while one is parsed.
    ahead: bool,
    /// The parser and what it has parsed, where one must see all of the input.
    serial: (Box<dyn Parser>, Columns),
    /// Those of pieces; none where they are not kept.
    kept: Vec<OfPieces>,
    keeps: bool,
    /// Bytes read and not yet parsed.
    window: Window,
    /// The window after it, kept for its memory.
    spare: Window,
    ended: bool,
    /// The window begins with the rest of a line that was too long.
    cut: bool,
    /// Bytes since the last record, or the last end of a line.
    barren: u64,
    /// Lines in what was parsed.
    lines: u64,
    ready: VecDeque<Columns>,
    bad: BadRecords,
}

/// A parser of pieces, and the volumes that it knows by their numbers.
struct OfPieces {
    parser: Box<dyn Parser>,
    volumes: Volumes,
}

/// What came of a piece of the input.
#[derive(Default)]
struct Piece {
    columns: Columns,
    lines: u64,
    bad: BadRecords,
    stopped_at: Option<Bad>,
}

impl<'a> Decoder<'a> {
    /// A decoder of one of so many inputs, which share the memory.
    pub fn new(input: Input<'a>, recipe: Recipe<'a>, skip_bad: bool, inputs: usize) -> Self {
        Self {
            name: input.name,
            read: input.rest,
            block: (BLOCKS / (ROWS_BESIDE_TEXT * inputs)).clamp(SMALLEST_BLOCK, BLOCK),
            ahead: inputs <= MOST_AHEAD,
            serial: ((recipe.parser)(), Columns::default()),
            kept: Vec::new(),
            keeps: inputs <= FEW_INPUTS,
            recipe,
            skip_bad,
            window: Window::of(input.head),
            spare: Window::default(),
            ended: false,
            cut: false,
            barren: 0,
            lines: 0,
            ready: VecDeque::new(),
            bad: BadRecords::default(),
        }
    }

    fn fill(&mut self) -> Result<(), TraceError> {
        let read = self.window.read_block(&mut self.read, self.block);
        self.ended = read.map_err(|error| TraceError::Io { path: self.name.clone(), error })?;
        Ok(())
    }

    /// That nothing can be read for so long.
    fn nothing(&self) -> TraceError {
        let error = io::Error::new(io::ErrorKind::InvalidData, format!("{} without a record", Bytes(MOST_BARREN)));
        TraceError::Io { path: self.name.clone(), error }
    }

    /// One parser goes over all of the input.
    fn next_in_order(&mut self) -> Result<(), TraceError> {
        self.fill()?;
        let (parser, columns) = &mut self.serial;
        let mut start = 0;
        loop {
            match parser.parse(&self.window.bytes()[start..], self.ended, columns) {
                Ok(0) => break,
                Ok(used) => start += used,
                Err(bad) if self.skip_bad => {
                    start += bad.consumed;
                    self.bad.add(bad);
                }
                Err(bad) => return Err(TraceError::Bad { path: self.name.clone(), bad }),
            }
        }
        // Some lines are no records, however many: events of other kinds.
        let is_barren = columns.is_empty() && memchr::memchr(b'\n', &self.window.bytes()[..start]).is_none();
        self.barren = if is_barren { self.barren + start as u64 } else { 0 };
        if self.barren > MOST_BARREN {
            return Err(self.nothing());
        }
        // What a parser leaves at the end it can make nothing of.
        self.window.keep_from(if self.ended { self.window.bytes().len() } else { start });
        if !self.ahead {
            self.window.shrink();
        }
        if !columns.is_empty() {
            columns.name_the_only_volume();
            self.ready.push_back(columns.take());
        }
        Ok(())
    }

    /// Pieces of the window go to parsers of their own, while the next block is read.
    fn next_in_pieces(&mut self) -> Result<(), TraceError> {
        let paused = !self.ahead && !self.ended && self.window.bytes().len() < self.block;
        if self.window.bytes().is_empty() || paused {
            self.fill()?;
        }
        if self.cut {
            let end = memchr::memchr(b'\n', self.window.bytes());
            self.cut = end.is_none() && !self.ended;
            self.barren = if self.cut { self.barren + self.window.bytes().len() as u64 } else { 0 };
            if self.barren > MOST_BARREN {
                return Err(self.nothing());
            }
            self.window.keep_from(end.map_or(self.window.bytes().len(), |end| end + 1));
            return Ok(());
        }
        let read = self.window.bytes();
        // Of many inputs no more than a block, even of the first bytes: rows take about as much memory as text.
        let part = if self.ahead { read } else { &read[..read.len().min(self.block)] };
        let end = memchr::memrchr(b'\n', part).or_else(|| memchr::memrchr(b'\n', read));
        let whole_lines = match end {
            _ if self.ended && (part.len() == read.len() || end.is_none()) => read.len(),
            Some(end) => end + 1,
            None if read.len() > LONGEST_LINE => {
                self.cut = true;
                read.len()
            }
            None => return self.fill(),
        };
        let (now, later) = read.split_at(whole_lines);
        let next = &mut self.spare;
        next.begin_with(later);
        let (recipe, skip_bad, read, block) = (&self.recipe, self.skip_bad, &mut self.read, self.block);
        let (ended, pause) = (self.ended, self.ended || !self.ahead);
        let pieces = cut(now);
        let new = || OfPieces { parser: (recipe.parser)(), volumes: Volumes::default() };
        let mut parsers = std::mem::take(&mut self.kept);
        parsers.resize_with(pieces.len().max(parsers.len()), new);
        let parse = |(piece, parser): (&[u8], &mut OfPieces)| parse(parser, piece, skip_bad);
        let (read, pieces) = if pause && pieces.len() <= 1 {
            // In one thread: what others free is not given back to this one.
            (Ok(ended), pieces.into_iter().zip(&mut parsers).map(parse).collect())
        } else {
            rayon::join(
                || if pause { Ok(ended) } else { next.read_block(read, block) },
                || pieces.into_par_iter().zip(&mut parsers).map(parse).collect::<Vec<_>>(),
            )
        };
        parsers.retain(|of| self.keeps && of.volumes.len() <= FEW_VOLUMES);
        self.kept = parsers;
        self.ended = read.map_err(|error| TraceError::Io { path: self.name.clone(), error })?;
        std::mem::swap(&mut self.window, &mut self.spare);
        if pause {
            self.window.shrink();
            self.spare = Window::default();
        }
        for piece in pieces {
            if let Some(bad) = piece.stopped_at {
                return Err(TraceError::Bad { path: self.name.clone(), bad: bad.after(self.lines) });
            }
            piece.bad.samples.into_iter().for_each(|bad| self.bad.sample(bad.after(self.lines)));
            self.bad.count += piece.bad.count;
            self.lines += piece.lines;
            if !piece.columns.is_empty() {
                self.ready.push_back(piece.columns);
            }
        }
        Ok(())
    }
}

impl Batches for Decoder<'_> {
    fn next(&mut self) -> Result<Option<Columns>, TraceError> {
        loop {
            if let Some(columns) = self.ready.pop_front() {
                return Ok(Some(columns));
            }
            match self.recipe.rows_stand_alone {
                _ if self.ended && self.window.bytes().is_empty() => return Ok(None),
                true => self.next_in_pieces()?,
                false => self.next_in_order()?,
            }
        }
    }

    fn bad(&self) -> &BadRecords {
        &self.bad
    }
}

impl BadRecords {
    /// How many are kept as samples.
    pub const SAMPLES: usize = 10;

    /// Of what leaves nothing out.
    pub const NONE: &Self = &Self { count: 0, samples: Vec::new() };

    fn add(&mut self, bad: Bad) {
        self.count += 1;
        self.sample(bad);
    }

    fn sample(&mut self, bad: Bad) {
        if self.samples.len() < Self::SAMPLES {
            self.samples.push(bad);
        }
    }
}

fn parse(OfPieces { parser, volumes }: &mut OfPieces, bytes: &[u8], skip_bad: bool) -> Piece {
    let mut piece = Piece { columns: Columns::of_volumes(volumes.clone()), ..Piece::default() };
    piece.columns.reserve(bytes.len() / SHORTEST_RECORD);
    let mut start = 0;
    loop {
        match parser.parse(&bytes[start..], true, &mut piece.columns) {
            Ok(0) => break,
            Ok(used) => start += used,
            Err(bad) if skip_bad => {
                start += bad.consumed;
                piece.bad.add(bad);
            }
            Err(bad) => {
                piece.stopped_at = Some(bad);
                break;
            }
        }
    }
    piece.columns.name_the_only_volume();
    piece.lines = parser.take_lines();
    *volumes = piece.columns.volumes.clone();
    piece
}

/// Cuts at ends of lines into pieces, a few for each thread.
fn cut(bytes: &[u8]) -> Vec<&[u8]> {
    let size = (bytes.len() / (4 * rayon::current_num_threads())).max(SMALLEST_PIECE);
    let mut pieces = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let end = rest.get(size..).and_then(|tail| memchr::memchr(b'\n', tail)).map_or(rest.len(), |at| size + at + 1);
        let (piece, tail) = rest.split_at(end);
        pieces.push(piece);
        rest = tail;
    }
    pieces
}
