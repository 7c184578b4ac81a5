//! What is looked at in a Parquet file before it is read: a small file must not ask for all memory.
//!
//! Who reads it goes by the numbers of fields and believes them; here their types and sizes are looked at too (`thrift`, `layout`).
//! A schema is read by a function that calls itself, so its depth is checked first (`footer`). A page says how large it will be, and
//! every row of a column of names may repeat one that is long (`pages`).

mod footer;
mod layout;
mod pages;
mod thrift;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

pub use footer::check_footer;
pub use pages::check_pages;

/// Up to `length` bytes from there.
fn read_at(file: &mut File, at: u64, length: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = file.seek(SeekFrom::Start(at)).and_then(|_| file.take(length).read_to_end(&mut bytes));
    read.map_err(|error: io::Error| error.to_string()).map(|_| bytes)
}
