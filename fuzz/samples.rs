//! Writes the sample of each format where its target, and that of whole traces, begin.

use std::path::Path;

// Holds what the compiler's coverage calls.
use libfuzzer_sys as _;
use idlewise::trace::formats::FORMATS;
use idlewise::trace::synth::PUBLISHED;
use idlewise::trace::write::{Target, TraceWriter};

/// The first byte of a parser's input is the size of the pieces.
const PIECES: u8 = 40;

fn main() -> std::io::Result<()> {
    let write = |target: &str, name: &str, bytes: &[u8]| {
        let folder = Path::new("corpus").join(target);
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join(name), bytes)
    };
    for format in FORMATS {
        let sample = (format.sample)();
        write(format.name, "sample", &[&[PIECES], &sample[..]].concat())?;
        write("trace", format.name, &sample)?;
    }
    write("columns", "sample", b"\x28a;b;c;d;e;f\n1.5;0;8;4;x;1600000\n2;1;9;4;y;\n")?;
    let mut shape = PUBLISHED[0].shape();
    shape.requests = 20;
    let trace = shape.trace(1).expect("a published trace has a stand-in");
    let mut writer = TraceWriter::new(Target::Parquet, Vec::new(), &trace.provenance)?;
    writer.write(&trace.columns)?;
    write("parquet", "sample", &writer.finish()?[4..])
}
