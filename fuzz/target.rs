//! Whatever the bytes, reading them ends, without a panic and in bounded memory.
//!
//! A target named after a format feeds that format's parser, in pieces as a file would come; `columns` the parser of tables,
//! `parquet` the reader of Parquet, `trace` everything from decompression and archives on.
#![no_main]

use idlewise::trace::formats::{FORMATS, Parser};
use idlewise::trace::{Columns, CsvLayout, ReadOptions, parse_bytes};
use libfuzzer_sys::fuzz_target;

const TARGET: &str = env!("CARGO_BIN_NAME");

fuzz_target!(init: init(), |bytes: &[u8]| {
    match TARGET {
        "trace" => whole(bytes),
        "parquet" => whole(&[b"PAR1", bytes].concat()),
        "columns" => {
            let layout = "separator=semicolon,time=1:s,op=2:0/1,offset=3:sectors512,length=4:KiB,volume=5,completion=6:us";
            let layout: CsvLayout = layout.parse().expect("the layout is right");
            parser(layout.parser(), bytes);
        }
        name => {
            let format = FORMATS.iter().find(|format| format.name == name).expect("a format of this name");
            (format.detect)(bytes);
            parser((format.parser)(), bytes);
        }
    }
});

/// The reader of Parquet panics on damaged files, which the library catches; libFuzzer would end at the panic itself.
fn init() {
    if matches!(TARGET, "parquet" | "trace") {
        std::panic::set_hook(Box::new(|_| ()));
    }
}

fn whole(bytes: &[u8]) {
    let options = ReadOptions { skip_bad: true, ..ReadOptions::default() };
    if let Ok(trace) = parse_bytes("fuzzed", bytes, &options) {
        assert!(trace.columns.arrival.is_sorted());
    }
}

/// The first byte says in pieces of which size the others come.
fn parser(mut parser: Box<dyn Parser>, bytes: &[u8]) {
    let Some((&size, bytes)) = bytes.split_first() else { return };
    let size = usize::from(size) + 1;
    let (mut columns, mut start, mut end) = (Columns::default(), 0, 0);
    // Each step uses bytes or asks for more; a parser that does neither at the end is done.
    loop {
        let last = end == bytes.len();
        match parser.parse(&bytes[start..end], last, &mut columns) {
            Ok(0) if last => break,
            Ok(0) => end = (end + size).min(bytes.len()),
            Ok(used) => start += used,
            Err(bad) => {
                assert!(bad.consumed > 0 && start + bad.consumed <= end, "an error that uses nothing is met for ever");
                start += bad.consumed;
            }
        }
    }
    assert!(columns.requests().all(|request| usize::from(request.volume) < columns.volumes.len()));
}
