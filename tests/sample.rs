//! `sample` through the command: its numbers against numpy and scikit-learn, its plan, its page, and what it says of traces that
//! are too short, silent or of several volumes.

mod common;

use std::path::Path;
use std::process::Command;

use common::{close, json, real_trace, run, stderr, stdout};
use idlewise::Nanos;
use idlewise::sample::SamplingPlan;

/// Writes a trace in MSR's format: rows of `(ms, disk, kind, offset, length, response in us)`.
fn msr(folder: &Path, name: &str, rows: &[(u64, u32, &str, u64, u32, u64)]) -> String {
    let line = |(ms, disk, kind, offset, length, us): &(u64, u32, &str, u64, u32, u64)| {
        format!("{},host,{disk},{kind},{offset},{length},{}\n", ms * 10_000, us * 10)
    };
    let path = folder.join(name);
    std::fs::write(&path, rows.iter().map(line).collect::<String>()).unwrap();
    path.display().to_string()
}

/// `count` intervals of three kinds: few small reads, many writes in sequence, random reads; every fourth one is empty.
fn three_kinds(folder: &Path, count: u64) -> String {
    let mut rows = Vec::new();
    for interval in (0..count).filter(|interval| interval % 4 != 3) {
        for request in 0..[5, 80, 40][(interval % 4) as usize] {
            let at = interval * 10_000 + request * 100;
            rows.push(match interval % 4 {
                0 => (at, 0, "Read", request * 1_000_000, 512, 200),
                1 => (at, 0, "Write", (1 << 30) + request * 65_536, 65_536, 900),
                _ => (at, 0, "Read", request * 7_919 % 40 * 4_000_000_000, 8_192, 8_000),
            });
        }
    }
    msr(folder, "kinds.csv", &rows)
}

#[test]
fn the_plan_holds_what_is_printed_and_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, plan) = (three_kinds(folder.path(), 80), folder.path().join("plan.toml"));
    let page = folder.path().join("page.html");
    let files = ["-o", plan.to_str().unwrap(), "--report", page.to_str().unwrap()];
    // Not by travel distance: the first interval has nothing before it, and would be a fourth kind.
    let report = json(&[&["sample", &trace, "--features", "CntRdMss", "--json"][..], &files].concat());
    assert_eq!(
        (&report["k"], &report["intervals"], &report["intervals_with_requests"]),
        (&3.into(), &79.into(), &60.into())
    );
    close(&report["share_of_time"], 3.0 / 79.0);
    let truth = (5.0 * 200e-6 + 80.0 * 900e-6 + 40.0 * 8e-3) / 125.0;
    close(&report["true_mean_response_s"], truth);
    close(&report["estimate_mean_response_s"], truth);
    assert!(report["error"].as_f64().unwrap() < 1e-9);

    let plan = SamplingPlan::from_toml(&std::fs::read_to_string(plan).unwrap()).unwrap();
    let segments = plan.segments();
    let listed = report["representatives"].as_array().unwrap();
    assert_eq!((segments.len(), listed.len()), (3, 3));
    for (segment, listed) in segments.iter().zip(listed) {
        close(&listed["begin_s"], segment.begin.as_secs_f64());
        assert_eq!(segment.end.since(segment.begin), Nanos::from_secs(10));
        close(&listed["weight"], segment.weight);
    }
    assert_eq!(segments.iter().map(|segment| segment.weight).sum::<f64>(), report["requests"].as_f64().unwrap());
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.matches("<svg").count() == 5 && page.contains("systematic") && !page.contains("<script"));
}

#[test]
fn the_same_seed_gives_the_same_plan() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.csv").display().to_string();
    let synth = run(&["trace", "synth", "--out", &trace, "--load", "random", "--for", "30min", "--seed", "3"]);
    assert!(synth.status.success(), "{}", stderr(&synth));
    let of = |seed: &str| stdout(&run(&["sample", &trace, "--seed", seed]));
    assert_eq!(of("7"), of("7"));
    assert!(of("7").contains("seed 7"));
}

#[test]
fn volumes_are_never_confused() {
    let folder = tempfile::tempdir().unwrap();
    // The same sectors of two disks, one after the other.
    let rows: Vec<_> = (0..40).map(|k| (k * 1_000, (k % 2) as u32, "Read", k / 2 * 4096, 4096, 100)).collect();
    let trace = msr(folder.path(), "two.csv", &rows);
    let both = json(&["sample", &trace, "--features", "Wsl,Rnd", "--json"]);
    assert_eq!(both["volumes"], serde_json::json!(["host_0", "host_1"]));
    assert_eq!((&both["requests"], &both["intervals"]), (&40.into(), &4.into()));
    let one = json(&["sample", &trace, "--volume", "host_1", "--json"]);
    assert_eq!((&one["requests"], &one["volumes"]), (&20.into(), &serde_json::json!(["host_1"])));
    let none = run(&["sample", &trace, "--volume", "host_7"]);
    assert!(!none.status.success() && stderr(&none).contains("host_0, host_1"), "{}", stderr(&none));
}

#[test]
fn degenerate_traces_have_sensible_answers() {
    let folder = tempfile::tempdir().unwrap();
    let one = msr(folder.path(), "one.csv", &[(0, 0, "Read", 0, 4096, 700)]);
    let report = json(&["sample", &one, "--json"]);
    assert_eq!((&report["k"], &report["share_of_time"], &report["error"]), (&1.into(), &1.0.into(), &0.0.into()));
    // All alike: one stands for all.
    let rows: Vec<_> = (0..30).map(|k| (k * 10_000, 0, "Read", 0, 4096, 700)).collect();
    let alike = json(&["sample", &msr(folder.path(), "alike.csv", &rows[1..]), "--features", "CntRdMss", "--json"]);
    assert_eq!((&alike["k"], &alike["representatives"][0]["weight"]), (&1.into(), &29.0.into()));
    // No response times: representatives all the same.
    let silent = folder.path().join("silent.load");
    let lines: String = (0..50).map(|k| format!("{k}.000 ; {} ; 8 ; R\n", k * k * 640 % 99_000)).collect();
    std::fs::write(&silent, lines).unwrap();
    let silent = silent.to_str().unwrap();
    let report = json(&["sample", silent, "--json"]);
    assert_eq!(
        (&report["true_mean_response_s"], &report["response_times"]),
        (&serde_json::Value::Null, &"none".into())
    );
    assert!(!report["representatives"].as_array().unwrap().is_empty());
    assert!(stdout(&run(&["sample", silent])).contains("a replay of the plan measures"));
    let sessions: Vec<_> = (0..200).map(|k| (k * 1_000 + k / 100 * 36_000_000, 0, "Read", 0, 4096, 700)).collect();
    let output = run(&["sample", &msr(folder.path(), "sessions.csv", &sessions)]);
    assert!(output.status.success() && stderr(&output).contains("jumps of the clock (1)"), "{}", stderr(&output));
}

#[test]
fn wrong_arguments_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let trace = msr(folder.path(), "t.csv", &[(0, 0, "Read", 0, 4096, 700)]);
    for (arguments, why) in [
        (["--interval", "0s"], "longer than zero"),
        (["--features", "ArqXyz"], "'Xyz'"),
        (["--features", "RdRd"], "twice"),
        (["--rule", "best"], "bic, bic90, fk"),
        (["--error", "0%"], "such as 5%"),
        (["--intervals", "0"], "--intervals"),
        (["--out", &trace], "name another file"),
    ] {
        let output = run(&[&["sample", &trace][..], &arguments].concat());
        assert_eq!(output.status.code(), Some(64), "{arguments:?}");
        assert!(stderr(&output).contains(why), "{arguments:?}: {}", stderr(&output));
    }
}

/// Every feature, the weighted means and each clustering, computed anew.
#[test]
fn numbers_are_numpys_and_scikit_learns() {
    let repository = common::repository();
    let python = repository.join("target/oracle/bin/python");
    let has = |module: &str| Command::new(&python).args(["-c", module]).output().is_ok_and(|o| o.status.success());
    if !has("import sklearn") {
        eprintln!("SKIPPED: no scikit-learn; tests/oracle/setup.sh installs it");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut traces = vec![three_kinds(folder.path(), 200)];
    for name in ["hplajw.1week.srt", "msr/hm_0.excerpt.csv", "nexus5/log186_twitter.txt.xz"] {
        traces.extend(real_trace(name).map(|path| path.display().to_string()));
    }
    let output = Command::new(python)
        .arg(repository.join("tests/oracle/sample.py"))
        .arg(env!("CARGO_BIN_EXE_idlewise"))
        .args(&traces)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    println!("{}", stdout(&output));
}
