//! Compressed files.

use std::io::Write;

use crate::patch::patch;
use crate::{Result, Unstructured};

/// The content of a file in one of the ways that are read, then damaged if the fuzzer says so.
pub fn wrapped(content: &[u8], from: &mut Unstructured) -> Result<Vec<u8>> {
    let mut file = match from.int_in_range(0..=4u8)? {
        0 => gzip(content),
        1 => zstd::encode_all(content, 1),
        2 => xz(content),
        3 => bzip2(content),
        _ => Ok(content.into()),
    }
    .expect("memory takes it");
    patch(&mut file, from)?;
    Ok(file)
}

fn gzip(content: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(content)?;
    out.finish()
}

fn xz(content: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut out = liblzma::write::XzEncoder::new(Vec::new(), 0);
    out.write_all(content)?;
    out.finish()
}

fn bzip2(content: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut out = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    out.write_all(content)?;
    out.finish()
}
