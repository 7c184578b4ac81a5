//! Memory for direct I/O.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Alignment that every disk's direct I/O accepts.
const ALIGNMENT: usize = 4096;

/// A zeroed buffer, aligned for direct I/O.
pub struct Buffer {
    memory: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the memory belongs to this value alone.
unsafe impl Send for Buffer {}

// SAFETY: whoever shares it gets no more than the address.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// A buffer of at least `length` bytes, under 2 GiB.
    pub fn new(length: usize) -> Self {
        let layout = Layout::from_size_align(length.max(ALIGNMENT), ALIGNMENT).expect("a request is under 2 GiB");
        // SAFETY: the layout's size is above zero.
        let memory = unsafe { alloc_zeroed(layout) };
        Self { memory: NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout)), layout }
    }

    /// Its first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.memory.as_ptr()
    }

    /// Its first bytes, at most as many as it has.
    pub fn bytes(&mut self, count: usize) -> &mut [u8] {
        // SAFETY: the memory is initialised, belongs to this value, and is borrowed with it.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_ptr(), count.min(self.len())) }
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout in `new`.
        unsafe { dealloc(self.memory.as_ptr(), self.layout) }
    }
}
