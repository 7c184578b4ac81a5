//! Requests as parallel columns.

use super::Volumes;
use crate::{Bytes, Nanos};

/// What a request does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Op {
    /// Reads data.
    #[default]
    Read,
    /// Writes data.
    Write,
}

/// One foreground request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// When it was issued.
    pub arrival: Nanos,
    /// First byte on its volume.
    pub offset: Bytes,
    /// Bytes moved.
    pub length: u32,
    /// Read or write.
    pub op: Op,
    /// Index of its volume in [`Columns::volumes`].
    pub volume: u16,
    /// Time from arrival until the device was given it, where the source knows it.
    pub queued: Option<Nanos>,
    /// Time from arrival to completion, where the source knows it.
    pub response: Option<Nanos>,
}

impl Request {
    /// When it completed, where the source knows it.
    pub fn end(&self) -> Option<Nanos> {
        self.response.map(|response| Nanos(self.arrival.0.saturating_add(response.0)))
    }

    /// Time from when the device was given it, or from arrival where the source does not know that, to completion.
    pub fn service(&self) -> Option<Nanos> {
        self.response.map(|response| response.since(self.queued.unwrap_or_default()))
    }
}

/// What an event of a trace of events says of its request. Columns of events become requests in
/// `Reader`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The request arrived.
    Queued,
    /// The device was given it.
    Issued,
    /// Its last byte was served.
    Completed,
}

/// Stands for a time that the source does not know.
const UNKNOWN: Nanos = Nanos(u64::MAX);

/// Requests as parallel columns of equal length; those that hold nothing are empty.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// Arrival times.
    pub arrival: Vec<Nanos>,
    /// First bytes.
    pub offset: Vec<Bytes>,
    /// Lengths in bytes.
    pub length: Vec<u32>,
    /// Operations.
    pub op: Vec<Op>,
    /// Volume indices.
    pub volume: Vec<u16>,
    /// Names of the volumes, each its own disk.
    pub volumes: Volumes,
    /// Times to issue, or empty if none is known.
    queued: Vec<Nanos>,
    /// Response times, or empty if none is known.
    response: Vec<Nanos>,
    /// What each row is, where rows are events; otherwise empty.
    pub(super) stage: Vec<Stage>,
}

/// Applies `$do` to each column, `$column`, that is not empty.
macro_rules! each_column {
    ($columns:expr, $column:ident => $do:expr) => {
        each_column!($columns, $column => $do, arrival offset length op volume queued response stage)
    };
    ($columns:expr, $column:ident => $do:expr, $($name:ident)*) => {{
        $(
            let $column = &mut $columns.$name;
            if !$column.is_empty() {
                $do
            }
        )*
    }};
}

impl Columns {
    /// Number of requests.
    pub fn len(&self) -> usize {
        self.arrival.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.arrival.is_empty()
    }

    /// Makes room for so many more.
    pub fn reserve(&mut self, more: usize) {
        self.arrival.reserve(more);
        self.offset.reserve(more);
        self.length.reserve(more);
        self.op.reserve(more);
        self.volume.reserve(more);
        each_column!(self, times => times.reserve(more), queued response);
    }

    /// Adds a request.
    #[inline]
    pub fn push(&mut self, request: Request) {
        let before = self.len();
        self.arrival.push(request.arrival);
        self.offset.push(request.offset);
        self.length.push(request.length);
        self.op.push(request.op);
        self.volume.push(request.volume);
        push_known(&mut self.queued, before, request.queued);
        push_known(&mut self.response, before, request.response);
    }

    #[cfg(feature = "files")]
    /// Adds an event of a request.
    pub(super) fn push_event(&mut self, stage: Stage, request: Request) {
        self.push(request);
        self.stage.push(stage);
    }

    /// The request at `index`; panics past the end, as indexing does.
    pub fn request(&self, index: usize) -> Request {
        Request {
            arrival: self.arrival[index],
            offset: self.offset[index],
            length: self.length[index],
            op: self.op[index],
            volume: self.volume[index],
            queued: known(&self.queued, index),
            response: known(&self.response, index),
        }
    }

    /// The requests in their order.
    pub fn requests(&self) -> impl ExactSizeIterator<Item = Request> + '_ {
        (0..self.len()).map(|index| self.request(index))
    }

    /// Whether at least one request's completion is known.
    pub fn has_responses(&self) -> bool {
        !self.response.is_empty()
    }

    /// The known response times.
    pub fn responses(&self) -> impl Iterator<Item = Nanos> + '_ {
        self.response.iter().copied().filter(|&response| response != UNKNOWN)
    }

    /// The index of the volume called `name`, new or known; `None` beyond 65,536 volumes and for names of more than 255 bytes.
    pub fn volume_id(&mut self, name: &str) -> Option<u16> {
        self.volumes.id(name)
    }

    #[cfg(feature = "files")]
    /// Requests of a format that knows no volumes are all of one disk.
    pub(super) fn name_the_only_volume(&mut self) {
        if self.volumes.is_empty() && !self.is_empty() {
            self.volumes.id("disk");
        }
    }

    /// Columns without requests that know the volumes of these.
    pub fn with_volumes_of(&self) -> Self {
        Self::of_volumes(self.volumes.clone())
    }

    /// Columns without requests that know these volumes.
    pub(super) fn of_volumes(volumes: Volumes) -> Self {
        Self { volumes, ..Self::default() }
    }

    #[cfg(feature = "files")]
    /// Takes all requests out; the volumes stay known.
    pub(super) fn take(&mut self) -> Self {
        let volumes = std::mem::take(&mut self.volumes);
        let taken = Self { volumes: volumes.clone(), ..std::mem::take(self) };
        self.volumes = volumes;
        taken
    }

    /// Adds all requests of `other`, whose volumes are found by name; `None` beyond 65,536 volumes.
    pub fn append(&mut self, mut other: Self) -> Option<()> {
        if self.is_empty() && self.volumes.is_empty() {
            *self = other;
            return Some(());
        }
        let (before, added) = (self.len(), other.len());
        other.number_volumes_as(&mut self.volumes)?;
        self.arrival.append(&mut other.arrival);
        self.offset.append(&mut other.offset);
        self.length.append(&mut other.length);
        self.op.append(&mut other.op);
        self.volume.append(&mut other.volume);
        self.stage.append(&mut other.stage);
        append_known(&mut self.queued, before, &mut other.queued, added);
        append_known(&mut self.response, before, &mut other.response, added);
        Some(())
    }

    /// Gives volumes the numbers that they have in `known`, which takes the new ones in; `None` beyond 65,536 volumes.
    pub(super) fn number_volumes_as(&mut self, known: &mut Volumes) -> Option<()> {
        let ids = known.take_in(&self.volumes)?;
        if !ids.is_empty() {
            self.volume.iter_mut().for_each(|volume| *volume = ids[usize::from(*volume)]);
        }
        self.volumes = known.clone();
        Some(())
    }

    /// Takes the requests from `index` on out into columns of their own.
    pub fn split_off(&mut self, index: usize) -> Self {
        let mut rest = self.with_volumes_of();
        macro_rules! split {
            ($($name:ident)*) => { $(if !self.$name.is_empty() { rest.$name = self.$name.split_off(index); })* };
        }
        split!(arrival offset length op volume queued response stage);
        rest
    }

    /// Leaves out the requests that do not pass.
    pub fn retain(&mut self, pass: impl Fn(Request) -> bool) {
        let keep: Vec<bool> = self.requests().map(pass).collect();
        each_column!(self, column => {
            let mut kept = keep.iter();
            column.retain(|_| *kept.next().expect("columns are of one length"));
        });
    }

    /// Puts the requests in order of arrival, if they are not yet; those that arrive together keep their order.
    /// Returns whether they were in order.
    pub fn sort_by_arrival(&mut self) -> bool {
        if self.arrival.is_sorted() {
            return true;
        }
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_by_key(|&index| self.arrival[index]);
        each_column!(self, column => *column = order.iter().map(|&index| column[index]).collect());
        false
    }
}

fn known(column: &[Nanos], index: usize) -> Option<Nanos> {
    column.get(index).copied().filter(|&time| time != UNKNOWN)
}

/// A column of times begins with the first time that is known.
fn push_known(column: &mut Vec<Nanos>, before: usize, time: Option<Nanos>) {
    if time.is_some() && column.is_empty() {
        column.resize(before, UNKNOWN);
    }
    if time.is_some() || !column.is_empty() {
        column.push(time.unwrap_or(UNKNOWN));
    }
}

fn append_known(column: &mut Vec<Nanos>, before: usize, other: &mut Vec<Nanos>, added: usize) {
    if column.is_empty() && other.is_empty() {
        return;
    }
    column.resize(before, UNKNOWN);
    column.append(other);
    column.resize(before + added, UNKNOWN);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(name: &str, rows: &[(u64, Option<u64>)]) -> Columns {
        let mut columns = Columns::default();
        let volume = columns.volume_id(name).unwrap();
        for &(arrival, response) in rows {
            let response = response.map(Nanos);
            columns.push(Request { arrival: Nanos(arrival), volume, response, ..Request::default() });
        }
        columns
    }

    #[test]
    fn unknown_times_stay_unknown_through_sorting_and_appending() {
        let mut all = columns("a", &[(5, None), (9, Some(2))]);
        all.append(columns("b", &[(1, None), (7, None)])).unwrap();
        all.append(columns("a", &[(3, Some(4))])).unwrap();
        assert!(!all.sort_by_arrival());
        let rows: Vec<_> = all.requests().map(|r| (r.arrival.0, r.response, r.volume)).collect();
        let known = |time| Some(Nanos(time));
        assert_eq!(rows, [(1, None, 1), (3, known(4), 0), (5, None, 0), (7, None, 1), (9, known(2), 0)]);
        let rest = all.split_off(3);
        assert_eq!((all.len(), rest.len(), rest.request(1).response), (3, 2, known(2)));
        all.retain(|request| request.volume == 0);
        assert_eq!(all.requests().map(|r| r.response).collect::<Vec<_>>(), [known(4), None]);
    }

    #[test]
    fn columns_without_known_times_hold_none() {
        let mut none = columns("a", &[(1, None)]);
        none.append(columns("a", &[(2, None)])).unwrap();
        assert!(!none.has_responses());
        assert_eq!(none.request(1).response, None);
    }
}
