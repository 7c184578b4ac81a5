//! The requests of a table, batch by batch, counted from the first arrival.

use idlewise::Nanos;
use idlewise::trace::{Columns, volumes};

use crate::batches::Batches;
use crate::error::Error;
use crate::requests::Layout;

/// Requests that must come in order of arrival.
pub struct Ordered {
    batches: Batches,
    layout: Layout,
    /// Only the volumes that fit one of these; without any, all.
    patterns: Vec<String>,
    /// The volumes so far.
    known: Columns,
    /// The last arrival.
    last: Option<Nanos>,
    rows: usize,
    /// What becomes zero: the first arrival where nothing else is said.
    origin: Option<Nanos>,
}

impl Ordered {
    /// Those of these batches and of these volumes, counted from the first.
    pub fn new(batches: Batches, layout: Layout, patterns: Vec<String>) -> Self {
        Self { batches, layout, patterns, known: Columns::default(), last: None, rows: 0, origin: None }
    }

    /// All of these batches, counted from `origin`.
    pub fn from(batches: Batches, layout: Layout, origin: Nanos) -> Self {
        Self { origin: Some(origin), ..Self::new(batches, layout, Vec::new()) }
    }

    /// What has become zero.
    pub fn origin(&self) -> Nanos {
        self.origin.unwrap_or_default()
    }

    /// An error where there was no request, or none of a volume that was asked for.
    pub fn check_any(&self) -> Result<(), Error> {
        let fits_none = |pattern: &&String| !self.known.volumes.iter().any(|name| volumes::fits(pattern, name));
        match self.patterns.iter().find(fits_none) {
            Some(pattern) => Err(Error::Value(format!("no volume '{pattern}' in the table"))),
            None if self.rows == 0 => Err(Error::Value("the table holds no request".into())),
            None => Ok(()),
        }
    }

    /// The next requests; none at the end.
    pub fn next(&mut self) -> Result<Option<Columns>, Error> {
        let Some(batch) = self.batches.next() else { return Ok(None) };
        let mut columns = self.layout.requests(&batch?, &self.known, self.rows)?;
        self.known = columns.with_volumes_of();
        check_order(&columns, self.last, self.rows)?;
        self.rows += columns.len();
        self.last = columns.arrival.last().copied().or(self.last);
        if !self.patterns.is_empty() {
            let wanted = |name: &str| self.patterns.iter().any(|pattern| volumes::fits(pattern, name));
            let wanted: Vec<bool> = columns.volumes.iter().map(|name| wanted(name)).collect();
            columns.retain(|request| wanted[usize::from(request.volume)]);
        }
        self.origin = self.origin.or(columns.arrival.first().copied());
        let origin = self.origin();
        if columns.arrival.first().is_some_and(|&first| first < origin) {
            return Err(Error::Value(format!("a request arrives before origin_ns, {}", origin.0)));
        }
        columns.arrival.iter_mut().for_each(|at| *at = at.since(origin));
        Ok(Some(columns))
    }
}

/// Requests that are not in order would be taken for others. `rows` came before, of which the last arrived at `last`.
fn check_order(columns: &Columns, last: Option<Nanos>, rows: usize) -> Result<(), Error> {
    let mut before = last.unwrap_or_default();
    for (at, &arrival) in columns.arrival.iter().enumerate() {
        if arrival < before {
            let row = rows + at;
            return Err(Error::Value(format!(
                "row {row} arrives before the one above it: sort the table by arrival first"
            )));
        }
        before = arrival;
    }
    Ok(())
}
