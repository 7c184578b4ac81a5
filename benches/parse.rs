//! How fast an MSR CSV trace is read into columns, and reduced to idle intervals. `benches/parse.py` runs it beside polars and
//! libCacheSim.
//!
//! `cargo bench -p idlewise --bench parse -- FILE` prints one JSON line: rows; seconds that reading took at first, and the
//! median of three more times; of reducing to idle intervals; the most memory used in bytes.

use std::path::PathBuf;
use std::time::Instant;

use idlewise::disk::DiskModel;
use idlewise::idle::Reducer;
use idlewise::trace::{ReadOptions, Reader, TraceError};

const ROUNDS: usize = 3;

fn main() {
    let Some(path) = std::env::args().skip(1).find(|argument| !argument.starts_with('-')) else {
        println!("SKIPPED: name a trace, or run benches/parse.py, which makes one");
        return;
    };
    let paths = [PathBuf::from(path)];
    let model = DiskModel::ultrastar_15k450();
    let (mut rows, mut read, mut reduce) = (0, Vec::new(), Vec::new());
    for _ in 0..=ROUNDS {
        let began = Instant::now();
        let mut reader = Reader::open(&paths, &ReadOptions::default()).expect("the trace opens");
        rows = 0;
        while let Some(columns) = reader.next().expect("the trace is readable") {
            rows += columns.len();
        }
        read.push(began.elapsed().as_secs_f64());
    }
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let mut reader = Reader::open(&paths, &ReadOptions::default()).expect("the trace opens");
        let mut reducer = Reducer::new(&model, reader.provenance().resolution).expect("the clock is fine enough");
        let mut reduce_all = |columns, _: &_| -> Result<(), TraceError> {
            reducer.requests(&columns).expect("the model has both times");
            Ok(())
        };
        reader.each(&mut reduce_all).expect("the trace is readable");
        std::hint::black_box(reducer.finish(reader.provenance().origin));
        reduce.push(began.elapsed().as_secs_f64());
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")).and_then(|kib| kib.split_whitespace().next());
    let peak = peak.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024;
    let (first, read, reduce) = (read[0], median(&mut read[1..]), median(&mut reduce));
    println!(
        "{{\"rows\": {rows}, \"first_s\": {first:.4}, \"read_s\": {read:.4}, \"idle_s\": {reduce:.4}, \"peak_bytes\": {peak}}}"
    );
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
