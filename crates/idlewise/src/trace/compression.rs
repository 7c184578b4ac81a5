//! Compressed files, told by their first bytes, and what memory unpacking them takes.

use std::io::{self, BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use liblzma::stream::{Action, CONCATENATED, Stream};

use super::spool::written;

/// Read at a time from the file.
const CHUNK: usize = 64 << 10;
/// First bytes, in which all headers are that say how much memory unpacking takes.
const FIRST: u64 = 4 << 10;
const MIB: u64 = 1 << 20;
/// Memory for the decoders of all inputs that are read at once; one alone may take all of it.
pub const MEMORY: u64 = 256 * MIB;
/// Zlib's window and tables, a chunk, and the first bytes of its content, which thousands of inputs keep as well.
const GZIP: u64 = 256 << 10;
/// Blocks of 900 kB, each of whose bytes takes four, and a chunk.
const BZIP2: u64 = 4 * MIB;
/// An .xz or .zst file is given no less, as its later parts may be larger than its first: all but the highest levels need no more.
const LEAST: u64 = 9 * MIB;
/// No .xz file takes more: its dictionary has at most 4 GiB.
const MOST_XZ: u64 = 4_200 * MIB;
/// Of zstd without its window: tables, blocks and a chunk.
const ZSTD: u64 = MIB;
/// Beyond so many bytes, what unpacks to more than so many times its size is no trace: gzip reaches a thousandfold at most, and
/// traces some tenfold.
const PATIENT: u64 = 256 * MIB;
const MOST_TIMES: u64 = 2_000;
/// How the decoders say that they would need more than they are given.
const TOO_MUCH: [&str; 2] = ["memory limit reached", "Frame requires too much memory for decoding"];

type Reader<'a> = Box<dyn Read + Send + 'a>;

/// One way to compress a file.
struct Compression {
    name: &'static str,
    magic: &'static [u8],
    /// Bytes of memory that unpacking takes, by the first bytes.
    memory: fn(&[u8]) -> io::Result<u64>,
    /// Unpacks in so much memory.
    open: for<'a> fn(Reader<'a>, u64) -> io::Result<Reader<'a>>,
}

const COMPRESSIONS: &[Compression] = &[
    Compression {
        name: "gzip",
        magic: b"\x1f\x8b",
        memory: |_| Ok(GZIP),
        open: |input, _| Ok(Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(CHUNK, input)))),
    },
    Compression {
        name: "xz",
        magic: b"\xfd7zXZ\0",
        memory: xz_memory,
        open: |input, memory| {
            let stream = Stream::new_stream_decoder(memory, CONCATENATED)?;
            Ok(Box::new(liblzma::read::XzDecoder::new_stream(BufReader::with_capacity(CHUNK, input), stream)))
        },
    },
    Compression {
        name: "zstd",
        magic: b"\x28\xb5\x2f\xfd",
        memory: |first| Ok(zstd_memory(first)),
        open: |input, memory| {
            let mut decoder = zstd::stream::read::Decoder::new(input)?;
            decoder.window_log_max((memory - ZSTD).ilog2())?;
            Ok(Box::new(decoder))
        },
    },
    Compression {
        name: "bzip2",
        magic: b"BZh",
        memory: |_| Ok(BZIP2),
        open: |input, _| Ok(Box::new(bzip2::bufread::MultiBzDecoder::new(BufReader::with_capacity(CHUNK, input)))),
    },
];

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compressed {
    pub name: &'static str,
    /// Bytes of memory that unpacking takes.
    pub memory: u64,
}

/// How much of a trace's files was read, and how much that became where it was unpacked, of all of them together.
#[derive(Debug, Default)]
pub struct Volume {
    packed: AtomicU64,
    unpacked: AtomicU64,
}

impl Volume {
    /// Counts what is read of a file itself.
    pub fn of_file<R: Read>(self: &Arc<Self>, input: R) -> Counted<R> {
        Counted { input, volume: self.clone() }
    }

    fn is_endless(&self) -> bool {
        let unpacked = self.unpacked.load(Ordering::Relaxed);
        unpacked > PATIENT && unpacked / MOST_TIMES > self.packed.load(Ordering::Relaxed)
    }
}

/// The content of `input`, unpacked in no more than `most` bytes of memory, and how it was compressed, if it was.
pub fn decompressed<'a>(
    mut input: impl Read + Send + 'a,
    most: u64,
    volume: &Arc<Volume>,
) -> io::Result<(Reader<'a>, Option<Compressed>)> {
    let mut first = Vec::new();
    input.by_ref().take(FIRST).read_to_end(&mut first)?;
    let Some(found) = COMPRESSIONS.iter().find(|compression| first.starts_with(compression.magic)) else {
        return Ok((Box::new(Cursor::new(first).chain(input)), None));
    };
    let memory = (found.memory)(&first)?;
    if memory > most {
        let (memory, most) = (memory / MIB, most / MIB);
        let problem = format!("takes {memory} MiB of memory to unpack; at most {most} MiB are given: unpack it first");
        return Err(io::Error::other(problem));
    }
    let content = (found.open)(Box::new(Cursor::new(first).chain(input)), memory)?;
    Ok((Box::new(Plain { content, volume: volume.clone() }), Some(Compressed { name: found.name, memory })))
}

/// Asks the decoder itself: given next to nothing, it stops behind the first headers and knows what would be enough.
fn xz_memory(first: &[u8]) -> io::Result<u64> {
    let mut stream = Stream::new_stream_decoder(1, CONCATENATED)?;
    // That it stopped is no news, and what is damaged is found again by whoever reads it.
    let _ = stream.process(first, &mut [], Action::Run);
    let mut limits = (LEAST..MOST_XZ).step_by(MIB as usize);
    Ok(limits.find(|&limit| stream.set_memlimit(limit).is_ok()).unwrap_or(MOST_XZ))
}

/// As the header of the first frame says (RFC 8878, 3.1.1.1), for a window of a power of two.
fn zstd_memory(first: &[u8]) -> u64 {
    let byte = |at: usize| u64::from(first.get(at).copied().unwrap_or(0));
    let descriptor = byte(4);
    let window = if descriptor & 0x20 == 0 {
        let base = 1 << (10 + (byte(5) >> 3));
        base + base / 8 * (byte(5) & 7)
    } else {
        // The whole content is the window; its size stands behind the number of the dictionary.
        let at = 5 + [0, 1, 2, 4][(descriptor & 3) as usize];
        let length = 1 << (descriptor >> 6);
        (0..length).rev().fold(0, |size, next| (size << 8) | byte(at + next))
    };
    window.checked_next_power_of_two().unwrap_or(u64::MAX).saturating_add(ZSTD).max(LEAST)
}

/// Counts what is read.
pub struct Counted<R> {
    input: R,
    volume: Arc<Volume>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        // A hole of a file pays for nothing.
        self.volume.packed.fetch_add(written(&buffer[..read]), Ordering::Relaxed);
        Ok(read)
    }
}

/// Says in plain words that a later part needs more memory than the first, and stops where there is no end to unpacking.
struct Plain<'a> {
    content: Reader<'a>,
    volume: Arc<Volume>,
}

impl Read for Plain<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.content.read(buffer).map_err(|error| {
            let plain = "needs more memory to unpack than its first bytes say: unpack it first";
            if TOO_MUCH.contains(&&*error.to_string()) { io::Error::other(plain) } else { error }
        })?;
        self.volume.unpacked.fetch_add(read as u64, Ordering::Relaxed);
        if self.volume.is_endless() {
            return Err(io::Error::other("unpacks to more than 2,000 times its size: unpack it first"));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read(bytes: &[u8]) -> (io::Result<Vec<u8>>, Option<&'static str>) {
        let (mut reader, found) = decompressed(bytes, MEMORY, &Arc::default()).unwrap();
        let mut content = Vec::new();
        (reader.read_to_end(&mut content).map(|_| content), found.map(|found| found.name))
    }

    /// With a dictionary of so many bytes.
    fn xz(content: &[u8], dictionary: u32) -> Vec<u8> {
        let mut options = liblzma::stream::LzmaOptions::new_preset(0).unwrap();
        let mut filters = liblzma::stream::Filters::new();
        filters.lzma2(options.dict_size(dictionary));
        let stream = Stream::new_stream_encoder(&filters, liblzma::stream::Check::Crc32).unwrap();
        let mut xz = liblzma::write::XzEncoder::new_stream(Vec::new(), stream);
        xz.write_all(content).unwrap();
        xz.finish().unwrap()
    }

    /// With a window of two to so many.
    fn zstd(content: &[u8], window_log: u32) -> Vec<u8> {
        let mut zstd = zstd::Encoder::new(Vec::new(), 1).unwrap();
        zstd.window_log(window_log).unwrap();
        zstd.write_all(content).unwrap();
        zstd.finish().unwrap()
    }

    #[test]
    fn each_is_told_by_its_first_bytes_and_truncation_is_an_error() {
        let content = b"1,hm,0,Read,0,512,1\n".repeat(1_000);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&content).unwrap();
        let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        bzip2.write_all(&content).unwrap();
        let files = [
            ("gzip", gzip.finish().unwrap()),
            ("xz", xz(&content, 1 << 20)),
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

    #[test]
    fn first_bytes_say_what_memory_is_needed() {
        let memory =
            |file: &[u8], most| decompressed(file, most, &Arc::default()).map(|(_, found)| found.unwrap().memory / MIB);
        let needs = |file: &[u8], mib| {
            assert_eq!(memory(file, mib * MIB).unwrap(), mib);
            let refused = memory(file, mib * MIB - 1).unwrap_err().to_string();
            assert!(refused.starts_with(&format!("takes {mib} MiB of memory to unpack; at most ")), "{refused}");
        };
        for (log, mib) in [(20, 9), (23, 9), (24, 17), (27, 129)] {
            needs(&zstd(b"content", log), mib);
        }
        for (dictionary, mib) in [(1, 9), (8, 9), (12, 13), (32, 33)] {
            needs(&xz(b"content", dictionary << 20), mib);
        }
        // The content is the window: 2 MiB in four bytes, 65,535 in two, and more than there is memory in eight.
        let window = |header: &[u8]| zstd_memory(&[b"\x28\xb5\x2f\xfd", header].concat());
        assert_eq!(window(&[0xa1, 7, 0, 0, 32, 0]), LEAST);
        assert_eq!(window(&[0xa0, 0, 0, 0, 2]), 33 * MIB);
        assert_eq!(window(&[0x60, 0xff, 0xff]), LEAST);
        assert_eq!(window(&[0xe3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff]), u64::MAX);
        assert_eq!(window(&[]), LEAST);
    }

    #[test]
    fn what_unpacks_to_thousands_of_times_its_size_is_left() {
        let blank = vec![b'\n'; 64 << 20];
        let mut once = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
        once.write_all(&blank).unwrap();
        let once = once.finish().unwrap();
        let unpacked = |times: usize| {
            let packed = once.repeat(times);
            let volume = Arc::default();
            let (mut reader, _) = decompressed(Volume::of_file(&volume, &packed[..]), MEMORY, &volume).unwrap();
            io::copy(&mut reader, &mut io::sink())
        };
        assert_eq!(unpacked(4).unwrap(), PATIENT);
        let error = unpacked(5).unwrap_err().to_string();
        assert_eq!(error, "unpacks to more than 2,000 times its size: unpack it first");
        // What was never written of a file is no size.
        let volume = Arc::<Volume>::default();
        io::copy(&mut volume.of_file(&[0; 1 << 20][..]), &mut io::sink()).unwrap();
        assert_eq!(volume.packed.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_later_part_takes_no_more_memory_than_the_first() {
        let content = b"1,hm,0,Read,0,512,1\n".repeat(100);
        let most = [&content[..], &content].concat();
        for (small, fits, large) in [
            (xz(&content, 1 << 20), xz(&content, 8 << 20), xz(&content, 16 << 20)),
            (zstd(&content, 20), zstd(&content, 23), zstd(&content, 24)),
        ] {
            assert_eq!(read(&[&small[..], &fits].concat()).0.unwrap(), most);
            assert_eq!(read(&[&large[..], &small].concat()).0.unwrap(), most);
            let error = read(&[&small[..], &large].concat()).0.unwrap_err().to_string();
            assert_eq!(error, "needs more memory to unpack than its first bytes say: unpack it first");
        }
    }
}
