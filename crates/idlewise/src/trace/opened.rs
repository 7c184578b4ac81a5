//! One input, opened: its format is found by its first bytes, unless it was stated.

use super::decoder::{Batches, Decoder, Recipe};
use super::formats::FORMATS;
use super::inputs::Input;
use super::spool::Spool;
use super::store::ParquetBatches;
use super::{ReadOptions, TraceError};
use crate::Nanos;

/// An input whose format is known.
pub struct Opened<'a> {
    pub format: &'static str,
    pub resolution: Nanos,
    pub events: bool,
    pub batches: Box<dyn Batches + 'a>,
}

/// Opens one of so many inputs.
pub fn open<'a>(
    input: Input<'a>,
    options: &ReadOptions<'a>,
    spool: &Spool,
    inputs: usize,
) -> Result<Opened<'a>, TraceError> {
    let head = input.first_bytes().map_err(|error| TraceError::Io { path: input.name.clone(), error })?;
    if head.is_empty() {
        return Err(TraceError::Nothing(input.name.clone()));
    }
    if ParquetBatches::claims(&head) {
        drop(head);
        let parquet = ParquetBatches::open(input, spool, inputs)?;
        let resolution = parquet.resolution();
        return Ok(Opened { format: "parquet", resolution, events: false, batches: Box::new(parquet) });
    }
    let recipe = match options.slice {
        // The middle of a file may not show its format.
        Some(slice) => Recipe::of_format(slice.format),
        None => Recipe::of(&head, options.columns).ok_or_else(|| unknown(input.name.clone()))?,
    };
    drop(head);
    let (format, resolution, events) = (recipe.name, recipe.resolution, recipe.events);
    let batches = Box::new(Decoder::new(input, recipe, options.skip_bad, inputs));
    Ok(Opened { format, resolution, events, batches })
}

/// The error of a file whose format nobody knows.
pub fn unknown(path: String) -> TraceError {
    let names = [FORMATS.names(), vec!["parquet"]].concat();
    TraceError::Unknown { path, known: names.join(", ") }
}
