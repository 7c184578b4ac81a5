//! Writes the sample of each format where its target, and that of whole traces, begin.

use std::path::Path;

// Holds what the compiler's coverage calls.
use libfuzzer_sys as _;
use idlewise::disk::DiskModel;
use idlewise::sample::Plan;
use idlewise::tune::PlanFile;
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
    write("files", "model", DiskModel::ultrastar_15k450().to_toml().as_bytes())?;
    write("files", "sampling-plan", SAMPLING_PLAN.as_bytes())?;
    write("files", "plan", PLAN.as_bytes())?;
    assert!(PlanFile::from_toml(PLAN).is_ok() && Plan::from_toml(SAMPLING_PLAN).is_ok());
    let mut shape = PUBLISHED[0].shape();
    shape.requests = 20;
    let trace = shape.trace(1).expect("a published trace has a stand-in");
    let mut writer = TraceWriter::new(Target::Parquet, Vec::new(), &trace.provenance)?;
    writer.write(&trace.columns)?;
    write("parquet", "sample", &writer.finish()?[4..])
}

const SAMPLING_PLAN: &str = r#"version = 1
trace = "t.csv"
volume = "hm_0"
interval = "10s"
features = "CntArq"
rule = "bic"
seed = 1
requests = 12
span = "74.5s"
representatives = [
    { index = 0, begin = "0s", requests = 2, weight = 8 },
    { index = 3, begin = "30s", requests = 4, weight = 4 },
]
"#;

const PLAN: &str = r#"version = 2
request_size = "512KiB"
idle_wait = "426.093654ms"
trace = "t.csv"
disk = "Hitachi Ultrastar 15K450"
goal = { mean_slowdown = "1ms", max_slowdown = "50ms" }
predicted = { mean_slowdown = "982us", max_slowdown = "9.8ms", throughput = "43579215B/s", utilised_idle = 0.8 }
[steps]
border = "5ms"
after_short = [{ from = "0s", service = "0s" }, { from = "10ms", size = "64KiB", service = "4ms" }]
after_long = [{ from = "1ms", size = "128KiB", service = "5ms" }, { from = "2s", service = "0s" }]
"#;
