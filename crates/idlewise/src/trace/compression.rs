//! Compressed files, told by their first bytes.

use std::io::{self, BufReader, Cursor, Read};

/// Read at a time from the file.
const CHUNK: usize = 1 << 20;
/// Memory that a damaged or hostile .xz file may ask for.
const XZ_MEMORY: u64 = 256 << 20;

type Reader<'a> = Box<dyn Read + Send + 'a>;

/// One way to compress a file.
struct Compression {
    name: &'static str,
    magic: &'static [u8],
    open: for<'a> fn(Reader<'a>) -> io::Result<Reader<'a>>,
}

const COMPRESSIONS: &[Compression] = &[
    Compression {
        name: "gzip",
        magic: b"\x1f\x8b",
        open: |input| Ok(Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(CHUNK, input)))),
    },
    Compression {
        name: "xz",
        magic: b"\xfd7zXZ\0",
        open: |input| {
            let stream = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY, liblzma::stream::CONCATENATED)?;
            Ok(Box::new(liblzma::read::XzDecoder::new_stream(BufReader::with_capacity(CHUNK, input), stream)))
        },
    },
    Compression {
        name: "zstd",
        magic: b"\x28\xb5\x2f\xfd",
        open: |input| Ok(Box::new(zstd::stream::read::Decoder::new(input)?)),
    },
    Compression {
        name: "bzip2",
        magic: b"BZh",
        open: |input| Ok(Box::new(bzip2::bufread::MultiBzDecoder::new(BufReader::with_capacity(CHUNK, input)))),
    },
];

/// The content of `input`, and how it was compressed, if it was.
pub fn decompressed<'a>(mut input: impl Read + Send + 'a) -> io::Result<(Reader<'a>, Option<&'static str>)> {
    let longest = COMPRESSIONS.iter().map(|compression| compression.magic.len()).max().unwrap_or(0);
    let mut head = Vec::new();
    input.by_ref().take(longest as u64).read_to_end(&mut head)?;
    let found = COMPRESSIONS.iter().find(|compression| head.starts_with(compression.magic));
    let whole: Reader = Box::new(Cursor::new(head).chain(input));
    match found {
        Some(compression) => Ok(((compression.open)(whole)?, Some(compression.name))),
        None => Ok((whole, None)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read(bytes: &[u8]) -> (io::Result<Vec<u8>>, Option<&'static str>) {
        let (mut reader, name) = decompressed(bytes).unwrap();
        let mut content = Vec::new();
        (reader.read_to_end(&mut content).map(|_| content), name)
    }

    #[test]
    fn each_is_told_by_its_first_bytes_and_truncation_is_an_error() {
        let content = b"1,hm,0,Read,0,512,1\n".repeat(1_000);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&content).unwrap();
        let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
        xz.write_all(&content).unwrap();
        let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        bzip2.write_all(&content).unwrap();
        let files = [
            ("gzip", gzip.finish().unwrap()),
            ("xz", xz.finish().unwrap()),
            ("zstd", zstd::encode_all(&content[..], 1).unwrap()),
            ("bzip2", bzip2.finish().unwrap()),
        ];
        for (name, file) in &files {
            let (read_back, found) = read(file);
            assert_eq!((read_back.unwrap(), found), (content.clone(), Some(*name)));
            assert!(read(&file[..file.len() - 9]).0.is_err(), "{name} cut short");
        }
        assert_eq!(read(&content).1, None);
        assert_eq!(read(b"").0.unwrap(), b"");
    }
}
