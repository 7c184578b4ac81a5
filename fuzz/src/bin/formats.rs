//! Whatever the bytes, parsing them ends, without a panic and in bounded memory. A target a format, fed in pieces as a file would
//! come, and `columns` for tables.
#![no_main]

use idlewise::trace::formats::{FORMATS, Parser};
use idlewise::trace::{Columns, CsvLayout};
use idlewise_fuzz::targets::{self, Run};
use libfuzzer_sys::fuzz_target;

const LAYOUT: &str = "separator=semicolon,time=1:s,op=2:0/1,offset=3:sectors512,length=4:KiB,volume=5,completion=6:us";

fuzz_target!(init: targets::begin(all()), |bytes: &[u8]| targets::run(bytes));

fn all() -> Vec<(&'static str, Run)> {
    let layout: CsvLayout = LAYOUT.parse().expect("the layout is right");
    let columns: Run = Box::new(move |bytes| in_pieces(layout.parser(), bytes));
    let formats = FORMATS.iter().map(|format| {
        let run: Run = Box::new(|bytes| {
            (format.detect)(bytes);
            in_pieces((format.parser)(), bytes);
        });
        (format.name, run)
    });
    formats.chain([("columns", columns)]).collect()
}

/// The first byte says in pieces of which size the others come.
fn in_pieces(mut parser: Box<dyn Parser + '_>, bytes: &[u8]) {
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
    // Of a format that names no volumes, all are of one.
    let volumes = columns.volumes.len().max(1);
    assert!(columns.requests().all(|request| usize::from(request.volume) < volumes));
}
