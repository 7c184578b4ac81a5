//! What was read of an input and is not parsed yet.

use std::io::{self, Read};

/// Bytes that were read, in memory that is used again and again.
#[derive(Default)]
pub struct Window {
    memory: Vec<u8>,
    len: usize,
}

impl Window {
    /// Of these first bytes.
    pub fn of(memory: Vec<u8>) -> Self {
        Self { len: memory.len(), memory }
    }

    /// Them.
    pub fn bytes(&self) -> &[u8] {
        &self.memory[..self.len]
    }

    /// Holds only these.
    pub fn begin_with(&mut self, bytes: &[u8]) {
        self.make_room(bytes.len());
        self.memory[..bytes.len()].copy_from_slice(bytes);
        self.len = bytes.len();
    }

    /// Forgets those before `start`.
    pub fn keep_from(&mut self, start: usize) {
        self.memory.copy_within(start..self.len, 0);
        self.len -= start;
    }

    /// Gives back the memory that holds nothing.
    pub fn shrink(&mut self) {
        self.memory.truncate(self.len);
        self.memory.shrink_to_fit();
    }

    fn make_room(&mut self, len: usize) {
        if self.memory.len() < len {
            self.memory.resize(len, 0);
        }
    }

    /// Reads another block behind what is there; true at the end of the input.
    pub fn read_block(&mut self, read: &mut dyn Read, block: usize) -> io::Result<bool> {
        let full = self.len + block;
        self.make_room(full);
        while self.len < full {
            match read.read(&mut self.memory[self.len..full]) {
                Ok(0) => return Ok(true),
                Ok(count) => self.len += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}
