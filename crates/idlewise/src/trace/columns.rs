//! Requests as parallel columns.

use std::collections::HashMap;

use crate::{Bytes, Nanos};

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Reads data.
    Read,
    /// Writes data.
    Write,
}

/// One foreground request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Time from arrival to completion, where the source knows it.
    pub response: Option<Nanos>,
}

/// Requests as parallel columns of equal length.
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
    /// Response times, for all requests or for none.
    pub response: Option<Vec<Nanos>>,
    /// Names of the volumes, each its own disk.
    pub volumes: Vec<String>,
    /// Where each name is.
    index: HashMap<String, u16>,
}

impl Columns {
    /// Empty columns, with or without response times.
    pub fn new(with_responses: bool) -> Self {
        Self { response: with_responses.then(Vec::new), ..Self::default() }
    }

    /// Adds a request; a missing response time counts as zero where the columns hold response times.
    pub fn push(&mut self, request: Request) {
        self.arrival.push(request.arrival);
        self.offset.push(request.offset);
        self.length.push(request.length);
        self.op.push(request.op);
        self.volume.push(request.volume);
        if let Some(response) = &mut self.response {
            response.push(request.response.unwrap_or_default());
        }
    }

    /// The request at `index`; panics past the end, as indexing does.
    pub fn request(&self, index: usize) -> Request {
        Request {
            arrival: self.arrival[index],
            offset: self.offset[index],
            length: self.length[index],
            op: self.op[index],
            volume: self.volume[index],
            response: self.response.as_ref().map(|response| response[index]),
        }
    }

    /// The index of the volume called `name`, new or known; `None` beyond 65,536 volumes.
    pub fn volume_id(&mut self, name: &str) -> Option<u16> {
        if let Some(&known) = self.index.get(name) {
            return Some(known);
        }
        let new = u16::try_from(self.volumes.len()).ok()?;
        self.volumes.push(name.into());
        self.index.insert(name.into(), new);
        Some(new)
    }

    /// Puts the requests in order of arrival; those that arrive together keep their order.
    pub fn sort_by_arrival(&mut self) {
        let mut order: Vec<usize> = (0..self.arrival.len()).collect();
        order.sort_by_key(|&index| self.arrival[index]);
        fn pick<T: Copy>(column: &mut Vec<T>, order: &[usize]) {
            *column = order.iter().map(|&index| column[index]).collect();
        }
        pick(&mut self.arrival, &order);
        pick(&mut self.offset, &order);
        pick(&mut self.length, &order);
        pick(&mut self.op, &order);
        pick(&mut self.volume, &order);
        if let Some(response) = &mut self.response {
            pick(response, &order);
        }
    }
}
