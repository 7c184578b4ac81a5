//! Writes the sample of each format, and a file of each other kind, where their targets begin.

use std::path::Path;

use idlewise::disk::DiskModel;
use idlewise::sample::SamplingPlan;
use idlewise::trace::formats::FORMATS;
use idlewise::trace::synth::PUBLISHED;
use idlewise::trace::write::Target;
use idlewise::tune::PlanFile;
use idlewise_fuzz::load::written;
// Holds what the compiler's coverage calls.
use libfuzzer_sys as _;

/// The first byte of a parser's input is the size of the pieces.
const PIECES: u8 = 40;
/// More options than any command takes, of middle size, before its file.
const OPTIONS: [u8; 96] = [0x40; 96];
const COMMANDS: [&str; 9] =
    ["idle", "trace", "simulate", "compare", "explore", "tune", "reliability", "sample", "replay"];

fn main() -> std::io::Result<()> {
    let write = |target: &str, name: &str, bytes: &[u8]| {
        let folder = Path::new("found").join(target);
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join(name), bytes)
    };
    for format in FORMATS.iter() {
        let sample = (format.sample)();
        write(format.name, "sample", &[&[PIECES], &sample[..]].concat())?;
        write("trace", format.name, &[&[0; 16], &sample[..]].concat())?;
    }
    let mut shape = PUBLISHED[0].shape();
    shape.requests = 20;
    let trace = shape.trace(1).expect("a published trace has a stand-in");
    write("parquet", "sample", &written(&trace, Target::Parquet)?[4..])?;
    for name in COMMANDS.into_iter().chain(["parquet-pages", "srt-records", "tar", "compressed"]) {
        for kind in 0..8u8 {
            let load: Vec<u8> = (0..180u8).map(|at| at.wrapping_mul(37 + kind).wrapping_add(kind)).collect();
            write(name, &format!("load-{kind}"), &[&OPTIONS[..usize::from(kind) * 12], &load[..]].concat())?;
        }
    }
    write("columns", "sample", b"\x28a;b;c;d;e;f\n1.5;0;8;4;x;1600000\n2;1;9;4;y;\n")?;
    write("model", "sample", DiskModel::ultrastar_15k450().to_toml().as_bytes())?;
    write("sampling-plan", "sample", SAMPLING_PLAN.as_bytes())?;
    write("plan", "sample", PLAN.as_bytes())?;
    write("checkpoint", "sample", CHECKPOINT.as_bytes())?;
    write("note", "sample", NOTE.as_bytes())?;
    write("mounts", "sample", b"36 35 0:41 / /mnt rw,noatime master:1 - tmpfs tmpfs rw\n")?;
    write("sense", "sample", &[0x72, 3, 0x11, 4, 0, 0, 0, 14, 9, 12, 1, 64, 0, 8, 68, 17, 85, 34, 102, 51, 224, 81])?;
    let post = b"\x40POST /v1/disks/a%2Fb/pause HTTP/1.1\r\nHost: a\r\nContent-Length: 16\r\n\r\n{\"until_unix_s\":1}";
    for (name, request) in [
        ("page", &b"\x40GET / HTTP/1.1\r\nHost: localhost:80\r\n\r\n"[..]),
        ("disk", b"\x40GET /disks/%2Fdev%2F%3Cscript%3E%22%5C%0A%7B%7D%27%26%252F HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("metrics", b"\x40GET /metrics HTTP/1.1\r\nHost: [::1]\r\n\r\n"),
        ("status", b"\x40HEAD /v1/status HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("post", post),
    ] {
        write("request", name, request)?;
    }
    write(
        "config",
        "sample",
        b"[defaults]\nverify_every = \"14d\"\nwindows = [\"Mon..Fri 19:00-07:00\", \"Sat,Sun\"]\n[[disk]]\nmatch = \"/dev/nvme*\"\n\
          mean_slowdown = \"200us\"\n[notify]\nmail = [\"root\"]\n[web]\nhosts = [\"a\"]\n",
    )?;
    write("schedule", "sample", br#"{"a":{"since_unix_s":1.0,"seen_unix_s":2.0,"week":[{"weight":1.0,"rate":5.0,"squares":0.0}],"paused":{"since_unix_s":1.0,"why":"x"}}}"#)?;
    write("message", "sample", br#"{"version":1,"unix_s":1.0,"kind":"Behind","device":"a","identity":"b","subject":"c","text":"d","before":2,"first_unix_s":0.5}"#)?;
    for (name, text) in [("time", "1.5ms"), ("size", "64KiB"), ("rate", "40MB/s"), ("features", "ArqWslRnd")] {
        write("arguments", name, text.as_bytes())?;
    }
    write(
        "arguments",
        "columns",
        b"separator=tab,time=1:us,offset=3:sectors512,length=4:bytes,op=2:R/W,response=6:us",
    )?;
    assert!(PlanFile::from_toml(PLAN).is_ok() && SamplingPlan::from_toml(SAMPLING_PLAN).is_ok());
    assert!(idlewise_linux::fuzzing::pass(CHECKPOINT.as_bytes()).is_ok());
    assert!(serde_json::from_str::<idlewise_linux::scrub::Note>(NOTE).is_ok());
    Ok(())
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

const CHECKPOINT: &str = r#"{"version":3,"identity":"wwn-1","device":"/dev/sda","device_bytes":1048576,"block_bytes":512,
"marks":{"start_bytes":0,"partition_uuid":null,"boot_id":"b","diskseq":7},
"left":{"narrowing":[[4096,8192]],"skipped":[[16384,20480]]},
"order":{"name":"staggered","regions":7,"visit_bytes":"64KiB"},
"place":{"visited_bytes":65536,"course_bytes":65536,"ahead":[3],"detour":[[460800,491520]],"again":[[450560,460800]]},
"state":"running","errors":[{"lba":900,"blocks":2,"kind":"medium"}],
"errors_before":[{"lba":890,"blocks":20,"kind":"io"},{"lba":2000,"blocks":1,"kind":"io"}],
"started_unix_s":1,"saved_unix_s":2,"completed_unix_s":null,"run":null}"#;

const NOTE: &str = r#"{"version":1,"process":{"pid":1,"start_ticks":2,"pid_namespace":3,"boot_id":"b"},"identity":"wwn-1",
"verified_bytes":4096,"run":{"doing":"verifying","elapsed_s":1.5,"verified_bytes":4096,"retries":0,"foreground_requests":7,
"mean_slowdown_s":0.001,"max_slowdown_s":0.02,"request_size_bytes":65536,"idle_wait_s":0.1}}"#;
