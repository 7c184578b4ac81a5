//! What is looked at in a Parquet file before it is read: a small file must not ask for all memory.
//!
//! Who reads it goes by the numbers of fields and believes them; here their types and sizes are looked at too (`thrift`, `layout`).
//! A schema is read by a function that calls itself, so its depth is checked first (`footer`). A page says how large it will be, and
//! every row of a column of names may repeat one that is long (`pages`).
//!
//! What is handed on are the bytes that were looked at: whoever owns the file may rewrite it meanwhile.

mod footer;
mod layout;
mod pages;
mod thrift;

pub use footer::read_footer;
pub use pages::{Page, Pages, check_pages};

use crate::trace::spool::Part;

/// Up to `length` bytes from there.
fn read_at(file: &Part, at: u64, length: u64) -> Result<Vec<u8>, String> {
    file.from(at).take_all(length).map_err(|error| error.to_string())
}
