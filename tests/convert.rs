//! `trace` through the command: head, convert, cut, merge, synth, and what cannot be read.

mod common;

use std::io::Write;
use std::process::Stdio;

use common::{close, idlewise, json, real_trace, repository, run, stderr, stdout};

/// Two sessions, an hour apart, of two volumes.
const TRACE: &str = "0,a,0,Read,0,4096,100
5000,b,1,Write,8192,512,20
36000000000,a,0,Write,4096,4096,50
36000001000,a,0,Read,8192,4096,80
";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        std::fs::write(folder.path("trace.csv"), TRACE).unwrap();
        folder
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn run(&self, arguments: &[&str]) {
        let output = run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    }

    fn info(&self, name: &str) -> serde_json::Value {
        json(&["trace", "info", &self.path(name), "--json"])
    }
}

#[test]
fn parquet_keeps_everything_and_text_what_it_can() {
    let folder = Folder::new();
    let trace = folder.path("trace.csv");
    for name in ["t.parquet", "t.csv.gz", "t.csv.zst", "t.spc", "t.iolog"] {
        folder.run(&["trace", "convert", &trace, "-o", &folder.path(name)]);
        let info = folder.info(name);
        assert_eq!((&info["requests"], &info["bytes"]), (&4.into(), &12_800.into()), "{name}");
        assert_eq!(info["volumes"].as_array().unwrap().len(), 2, "{name}");
        assert_eq!(info["has_response_times"], name.contains("csv") || name.contains("parquet"), "{name}");
    }
    // There and back again, to the byte.
    folder.run(&["trace", "convert", &folder.path("t.parquet"), "-o", &folder.path("back.csv")]);
    assert_eq!(std::fs::read_to_string(folder.path("back.csv")).unwrap(), TRACE);
    let lost = run(&["trace", "convert", &trace, "-o", &folder.path("t.spc")]);
    assert!(stderr(&lost).contains("spc does not keep response times"), "{}", stderr(&lost));
}

#[test]
fn parquet_is_what_pyarrow_reads_and_what_it_writes_is_read() {
    let python = repository().join("target/oracle/bin/python");
    let check = repository().join("tests/oracle/parquet_check.py");
    let pyarrow =
        |arguments: &[&str]| std::process::Command::new(&python).arg(&check).args(arguments).output().unwrap();
    if !std::process::Command::new(&python).args(["-c", "import pyarrow"]).status().is_ok_and(|status| status.success())
    {
        eprintln!("SKIPPED: no pyarrow; tests/oracle/setup.sh installs it");
        return;
    }
    let folder = Folder::new();
    let written = folder.path("t.parquet");
    folder.run(&["trace", "convert", &folder.path("trace.csv"), "-o", &written]);
    let read: serde_json::Value = serde_json::from_str(&stdout(&pyarrow(&["check", &written]))).unwrap();
    assert_eq!(read["types"], serde_json::json!(["int64", "int64", "int64", "uint64", "uint32", "string", "string"]));
    let metadata = ["version", "origin_ns", "unit.arrival", "unit.offset"];
    let metadata = metadata.map(|key| read["metadata"][format!("idlewise.{key}")].as_str().unwrap());
    assert_eq!(metadata, ["1", "0", "ns", "bytes"]);
    let rows: Vec<String> = read["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let number = |name: &str| row[name].as_u64().unwrap();
            let op = if row["op"] == "read" { "Read" } else { "Write" };
            let (volume, disk) = row["volume"].as_str().unwrap().split_once('_').unwrap();
            let (at, end) = (number("arrival"), number("completion"));
            let (offset, length) = (number("offset"), number("length"));
            format!("{},{volume},{disk},{op},{offset},{length},{}\n", at / 100, (end - at) / 100)
        })
        .collect();
    assert_eq!(rows.concat(), TRACE);

    let ways = folder.path("ways");
    std::fs::create_dir(&ways).unwrap();
    let wrote = pyarrow(&["write", &written, &ways]);
    assert!(wrote.status.success(), "{}", stderr(&wrote));
    let mut read = 0;
    for entry in std::fs::read_dir(&ways).unwrap() {
        let path = entry.unwrap().path().display().to_string();
        let back = folder.path("back.csv");
        folder.run(&["trace", "convert", &path, "-o", &back]);
        assert_eq!(std::fs::read_to_string(&back).unwrap(), TRACE, "{path}");
        read += 1;
    }
    assert_eq!(read, 8);
}

#[test]
fn one_volume_formats_take_volumes_one_by_one() {
    let folder = Folder::new();
    let (trace, out) = (folder.path("trace.csv"), folder.path("t.load"));
    let refused = run(&["trace", "convert", &trace, "-o", &out]);
    assert!(!refused.status.success() && stderr(&refused).contains("--by-volume"), "{}", stderr(&refused));
    assert!(!std::path::Path::new(&out).exists(), "a part of a file was left behind");
    folder.run(&["trace", "convert", &trace, "-o", &out, "--by-volume"]);
    assert_eq!(
        (&folder.info("t.a_0.load")["requests"], &folder.info("t.b_1.load")["requests"]),
        (&3.into(), &1.into())
    );
}

#[test]
fn cutting_at_gaps_gives_sessions_and_merging_gives_them_back() {
    let folder = Folder::new();
    let trace = folder.path("trace.csv");
    folder.run(&["trace", "cut", &trace, "--at-gaps", "30min", "-o", &folder.path("s.parquet")]);
    let (first, second) = (folder.path("s.1.parquet"), folder.path("s.2.parquet"));
    assert_eq!(
        (&folder.info("s.1.parquet")["requests"], &folder.info("s.2.parquet")["requests"]),
        (&2.into(), &2.into())
    );
    close(&folder.info("s.2.parquet")["span_s"], 0.000_108);
    // Parts know when they were.
    folder.run(&["trace", "merge", &second, &first, "-o", &folder.path("m.csv")]);
    assert_eq!(std::fs::read_to_string(folder.path("m.csv")).unwrap(), TRACE);
    folder.run(&["trace", "merge", "--align", "--by-file", &first, &second, "-o", &folder.path("a.parquet")]);
    assert_eq!(
        folder.info("a.parquet")["volumes"],
        serde_json::json!(["s.1.parquet:a_0", "s.2.parquet:a_0", "s.1.parquet:b_1"])
    );
    folder.run(&["trace", "cut", &trace, "--from", "1h", "-o", &folder.path("late.csv")]);
    assert_eq!(folder.info("late.csv")["requests"], 2);
    let nothing = run(&["trace", "cut", &trace, "--from", "2h", "-o", &folder.path("no.csv")]);
    assert_eq!(nothing.status.code(), Some(2));
}

#[test]
fn standard_input_and_head() {
    let mut child = idlewise(&["trace", "head", "-n", "2", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(TRACE.as_bytes()).unwrap();
    let rows: serde_json::Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!((rows.as_array().unwrap().len(), &rows[1]["volume"]), (2, &"b_1".into()));
    close(&rows[1]["arrival_s"], 0.0005);
    close(&rows[1]["completion_s"], 0.000_502);
    assert_eq!(rows[1]["issue_s"], serde_json::Value::Null);
}

#[test]
fn any_table_reads_when_its_columns_are_named() {
    let folder = Folder::new();
    let table = folder.path("table.txt");
    std::fs::write(&table, "when\twhere\thow_much\twhat\n10\t8\t1\tR\n30\t16\t2\tW\n").unwrap();
    let unknown = run(&["trace", "info", &table]);
    assert!(stderr(&unknown).contains("--columns"), "{}", stderr(&unknown));
    let columns = "separator=tab,time=1:ms,offset=2:sectors512,length=3:sectors512,op=4";
    let info = json(&["trace", "info", &table, "--columns", columns, "--json"]);
    assert_eq!((&info["requests"], &info["bytes"], &info["extent_bytes"]), (&2.into(), &1536.into(), &9216.into()));
    close(&info["span_s"], 0.02);
    let wrong = run(&["trace", "info", &table, "--columns", "time=1"]);
    assert_eq!(wrong.status.code(), Some(64));
}

#[test]
fn synthetic_traces_are_as_asked_for_and_reproducible() {
    let folder = Folder::new();
    for name in ["one.parquet", "two.parquet"] {
        folder.run(&["trace", "synth", "--like", "dsn2008-t3", "--requests", "30000", "-o", &folder.path(name)]);
    }
    let bytes = |name: &str| std::fs::read(folder.path(name)).unwrap();
    assert_eq!(bytes("one.parquet"), bytes("two.parquet"));
    let idle = json(&["idle", &folder.path("one.parquet"), "--json"]);
    assert!((idle["idle_mean_s"].as_f64().unwrap() / 0.76084 - 1.0).abs() < 1e-4);
    assert!((idle["idle_cov"].as_f64().unwrap() / 3.79 - 1.0).abs() < 1e-3);
    assert_eq!(idle["verdict"]["character"], "tail-bursty");
    for (arguments, hint) in [
        (&["--like", "t9"][..], "dsn2008-t1"),
        (&["--idle-mean", "1s", "--idle-cov", "50", "--requests", "20"], "ask for more requests"),
        (&[], "--idle-mean"),
    ] {
        let refused = run(&[&["trace", "synth", "-o", &folder.path("x.csv")], arguments].concat());
        assert_eq!(refused.status.code(), Some(64));
        assert!(stderr(&refused).contains(hint), "{}", stderr(&refused));
    }
}

#[test]
fn a_fleet_is_written_as_it_is_made() {
    let folder = Folder::new();
    let path = folder.path("fleet.parquet");
    folder.run(&["trace", "synth", "--fleet", "60", "--requests", "200000", "--for", "2d", "-o", &path]);
    let info = json(&["trace", "info", &path, "--json"]);
    assert_eq!((&info["format"], &info["requests"]), (&"parquet".into(), &200_000.into()));
    assert_eq!(info["volumes"].as_array().map(Vec::len), Some(60), "{info}");
    let refused = run(&["trace", "synth", "--fleet", "60", "--for", "1s", "-o", &path]);
    assert_eq!(refused.status.code(), Some(64));
    assert!(stderr(&refused).contains("an hour to 100 days"), "{}", stderr(&refused));
}

#[test]
fn every_shared_trace_loads() {
    for (name, format, requests, left_out) in [
        ("hplajw.1week.srt", "srt", 44_519, 0),
        ("msr/wdev_1.csv", "msr", 1_055, 0),
        ("msr/wdev_3.csv", "msr", 682, 0),
        ("msr/hm_0.excerpt.csv", "msr", 7_016, 0),
        ("msr/web_3.damaged.txt.xz", "msr-short", 31_294, 86),
        ("blkreplay_linux-mysql.load.gz", "blkreplay", 80_794, 0),
        ("blkreplay_windows-mssql.load.gz", "blkreplay", 42_976, 0),
        ("blkreplay_windows-shared-server.load.gz", "blkreplay", 1_371, 0),
        ("cloudPhysicsIO.vscsi", "vscsi1", 113_872, 0),
        ("nexus5/log176_Booting.txt.xz", "nexus", 18_417, 0),
        ("pixel6a/telegram_exec.csv.gz", "pixel", 251_879, 0),
        ("pixel6a/genshin_impact_exec.csv.gz", "pixel", 91_317, 0),
        ("blktrace-hadoop/nvme.blkparse.txt.xz", "blkparse", 1_695, 0),
        ("blktrace-hadoop/e9.cpu0-3.tar.xz", "blktrace", 17_205, 0),
    ] {
        let Some(path) = real_trace(name) else { return };
        let info = json(&["trace", "info", path.to_str().unwrap(), "--skip-bad", "--json"]);
        assert_eq!((&info["format"], &info["requests"]), (&format.into(), &requests.into()), "{name}");
        assert_eq!(info["bad_records"], left_out, "{name}");
    }
}

#[test]
fn a_trace_that_is_none_is_one_line_of_error() {
    let folder = Folder::new();
    for (name, content, hint) in [
        ("empty", &b""[..], "empty"),
        ("prose", b"once upon a time\n", "not a trace that idlewise reads"),
        ("torn.parquet", b"PAR1 and nothing else", "torn.parquet"),
        ("torn.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\xff", "torn.gz"),
    ] {
        std::fs::write(folder.path(name), content).unwrap();
        let output = run(&["trace", "info", &folder.path(name)]);
        assert_eq!(output.status.code(), Some(1), "{name}");
        let error = stderr(&output);
        assert!(error.contains(hint) && error.trim_end().lines().count() == 1, "{error}");
        assert_eq!(stdout(&output), "");
    }
}

/// Percentiles, rates, depth and working set against the rows themselves, sorted and counted.
#[test]
fn statistics_are_those_of_the_rows() {
    let folder = Folder::new();
    let (path, page) = (folder.path("synth.parquet"), folder.path("stats.html"));
    let shape = ["--idle-mean", "20ms", "--idle-cov", "3", "--requests-per-busy", "4", "--sequential", "0.3"];
    folder.run(&[&["trace", "synth", "--out", &path, "--requests", "5000", "--seed", "4"], &shape[..]].concat());
    let stats = json(&["trace", "stats", &path, "--json", "--by-volume", "--report", &page]);
    let rows = json(&["trace", "head", "--requests", "1000000", &path, "--json"]);
    let rows = rows.as_array().unwrap();
    let numbers = |name: &str| rows.iter().map(|row| row[name].as_f64().unwrap()).collect::<Vec<_>>();
    let (arrivals, completions) = (numbers("arrival_s"), numbers("completion_s"));
    let near = |found: &serde_json::Value, mut exact: Vec<f64>| {
        exact.sort_by(f64::total_cmp);
        let mean = exact.iter().sum::<f64>() / exact.len() as f64;
        assert!((found["mean"].as_f64().unwrap() / mean - 1.0).abs() < 1e-6, "{found}: mean {mean}");
        for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
            let exact = exact[(share * exact.len() as f64).ceil() as usize - 1];
            let found = found[name].as_f64().unwrap();
            assert!(
                found <= exact * 1.000_001 + 1e-9 && exact <= found * (1.0 + 1.0 / 256.0) + 2e-9,
                "{name}: {found} for {exact}"
            );
        }
    };
    let responses: Vec<f64> =
        arrivals.iter().zip(&completions).map(|(arrival, completion)| completion - arrival).collect();
    near(&stats["q2c_s"], responses.clone());
    near(&stats["between_arrivals_s"], arrivals.windows(2).map(|pair| pair[1] - pair[0]).collect());
    let span = completions.iter().copied().fold(0.0, f64::max) - arrivals[0];
    let depth = stats["queue_depth"]["mean"].as_f64().unwrap();
    assert!((depth / (responses.iter().sum::<f64>() / span) - 1.0).abs() < 1e-6, "{depth} is not by Little's law");
    let blocks = |op: &str| {
        let of = rows.iter().filter(|row| op.is_empty() || row["op"] == op);
        let blocks = of.flat_map(|row| {
            let (offset, length) = (row["offset_bytes"].as_u64().unwrap(), row["length_bytes"].as_u64().unwrap());
            offset / 4096..(offset + length).div_ceil(4096)
        });
        4096 * blocks.collect::<std::collections::HashSet<_>>().len() as u64
    };
    let set = &stats["working_set"];
    assert_eq!((&set["exact"], &set["touched_bytes"]), (&true.into(), &blocks("").into()));
    assert_eq!((&set["read_bytes"], &set["written_bytes"]), (&blocks("read").into(), &blocks("write").into()));
    assert_eq!(stats["volumes"][0]["requests"], 5000);
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.matches("<svg").count() == 5 && html.contains("working set touched"), "{html}");
    let text = stdout(&run(&["trace", "stats", &path]));
    assert!(text.contains("response time (Q2C)") && text.contains("The working set is exact"), "{text}");
}

#[test]
fn statistics_of_volumes_stand_in_the_order_of_their_names() {
    let folder = Folder::new();
    let text = stdout(&run(&["trace", "stats", &folder.path("trace.csv"), "--by-volume"]));
    let names: Vec<_> = text.lines().filter(|line| line.starts_with("a_0 ") || line.starts_with("b_1 ")).collect();
    assert!(names.len() == 2 && names[0].starts_with("a_0") && names[0].contains("66.7 %"), "{text}");
    let sequential = text.lines().find(|line| line.starts_with("sequential ")).unwrap();
    assert!(sequential.ends_with(" 50.0 %"), "{text}");
}
