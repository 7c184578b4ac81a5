//! `idle`, `simulate` and `tune` through the command, on small traces worked out by hand and on real ones.

mod common;

use common::{close, json, real_trace, run, stderr, stdout};

/// Two volumes. On a_0: busy 0-10 ms, idle to 100, busy to 110 (two requests), idle to 400, busy to 405.
const TRACE: &str = "0,a,0,Read,0,4096,100000
500000,b,1,Write,0,4096,10000
1000000,a,0,Write,8192,4096,50000
1020000,a,0,Read,8192,4096,80000
4000000,a,0,Read,0,65536,50000
";

const DISK: &str = r#"name = "by hand"
[[verify]]
size = "64KiB"
time = "8ms"
[[verify]]
size = "4MiB"
time = "60ms"
"#;

fn folder() -> (tempfile::TempDir, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("trace.csv"), TRACE).unwrap();
    std::fs::write(path("disk.toml"), DISK).unwrap();
    let (trace, disk) = (path("trace.csv"), path("disk.toml"));
    (folder, trace, disk)
}

#[test]
fn idle_by_hand() {
    let (_folder, trace, _) = folder();
    let report = json(&["idle", &trace, "--volume", "a_0", "--json"]);
    assert_eq!(report["requests"], 4);
    assert_eq!(report["idle_intervals"], 2);
    close(&report["span_s"], 0.405);
    close(&report["utilisation"], 0.025 / 0.405);
    close(&report["idle_mean_s"], 0.19);
    close(&report["idle_variance_s2"], 0.01);
    close(&report["idle_cov"], 0.1 / 0.19);
    close(&report["idle_share_longest_15pct"], 0.29 / 0.38);
    close(&report["usable_after_10ms"], 0.36 / 0.38);
    close(&report["usable_after_100ms"], 0.19 / 0.38);
    close(&report["usable_after_1s"], 0.0);
    let both = json(&["idle", &trace, "--json"]);
    assert_eq!((both["requests"].as_u64(), both["volumes"].as_array().unwrap().len()), (Some(5), 2));
}

#[test]
fn simulate_by_hand() {
    let (_folder, trace, disk) = folder();
    let report = json(&[
        "simulate",
        &trace,
        "--volume",
        "a_0",
        "--disk",
        &disk,
        "--policy",
        "waiting",
        "--idle-wait",
        "70ms",
        "--request-size",
        "64KiB",
        "--json",
    ]);
    // First interval, 90 ms: at 70, 78 and 86 ms, W = 4 ms for two requests. Second, 290 - 4 = 286 ms: 27 requests,
    // the last ends exactly as the foreground arrives.
    assert_eq!(report["background_requests"], 3 + 27);
    assert_eq!(report["scrubbed_bytes"], 30 * 65_536);
    assert_eq!(report["collisions"], 1);
    close(&report["collision_rate"], 0.25);
    close(&report["mean_slowdown_s"], 0.002);
    close(&report["max_slowdown_s"], 0.004);
    close(&report["throughput_bytes_per_s"], 30.0 * 65_536.0 / 0.405);
    close(&report["utilised_idle"], (0.02 + 0.216) / 0.38);
    close(&report["relative_delay"], 0.008 / 0.028);
}

#[test]
fn tune_keeps_its_goal_in_simulation_and_writes_a_plan() {
    let (folder, trace, disk) = folder();
    let plan = folder.path().join("plan.toml");
    let goal = ["--mean-slowdown", "3ms", "--max-slowdown", "20ms", "--disk", &disk, "--capacity", "1GB"];
    let report = json(&[&["tune", &trace, "--json", "--out", plan.to_str().unwrap()], &goal[..]].concat());
    assert!(report["mean_slowdown_s"].as_f64().unwrap() <= 0.003);
    assert!(report["max_slowdown_s"].as_f64().unwrap() <= 0.020);
    close(&report["full_pass_s"], 1e9 / report["throughput_bytes_per_s"].as_f64().unwrap());
    let names: Vec<_> = report["baselines"].as_array().unwrap().iter().map(|b| b["name"].as_str().unwrap()).collect();
    assert_eq!(names[..4], ["cfq-idle", "back-to-back", "fixed-delay-16ms", "fixed-delay-64ms"]);
    assert_eq!(names[4..], ["cfq-idle-plan-size", "back-to-back-plan-size", "fixed-delay-plan-slowdown"]);
    let wait = format!("{}ns", (report["idle_wait_s"].as_f64().unwrap() * 1e9).round());
    let size = format!("{}B", report["request_size_bytes"]);
    let again = json(&["simulate", &trace, "--disk", &disk, "--idle-wait", &wait, "--request-size", &size, "--json"]);
    for field in ["scrubbed_bytes", "collisions", "mean_slowdown_s", "max_slowdown_s", "utilised_idle"] {
        assert_eq!(again[field], report[field], "{field}");
    }
    let text = std::fs::read_to_string(plan).unwrap();
    assert!(text.contains("version = 1") && text.contains("mean_slowdown = \"3ms\""), "{text}");
}

#[test]
fn mistakes_are_one_line_with_the_right_code() {
    let (folder, trace, disk) = folder();
    let cases: &[(&[&str], i32, &str)] = &[
        (&["idle", "/no/such/trace"], 1, "idlewise: /no/such/trace: No such file"),
        (&["idle", "/etc/hostname"], 1, "not a trace that idlewise reads; it reads msr, msr-short, blkreplay"),
        (&["idle", &disk], 1, "not a trace"),
        (&["idle", &trace, "--volume", "c"], 1, "no volume 'c' in the trace; it has a_0, b_1"),
        (
            &["idle", &trace, "--disk", "/no/such/disk"],
            1,
            "--disk /no/such/disk: neither a file nor one of 15k, nearline",
        ),
        (&["idle", &trace, "--disk", &trace], 1, "not a disk model: line 1"),
        (&["simulate", &trace], 64, "policy 'waiting' needs --idle-wait"),
        (&["simulate", &trace, "--policy", "wating"], 64, "no policy 'wating'; there is waiting"),
        (&["tune", &trace, "--mean-slowdown", "1", "--max-slowdown", "50ms"], 64, "'1' is not a time"),
        (&["tune", &trace, "--mean-slowdown", "1ms", "--max-slowdown", "1ms"], 1, "allow at least 4.80 ms"),
        (&["tun", &trace], 64, "tune"),
        (&["simulate", &trace, "--policy", "cfq-idle", "--idle-wait", "1s"], 64, "takes no --idle-wait"),
        (&["tune", &trace, "--mean-slowdown", "1ms", "--max-slowdown", "9ms", "--out", "/no/p"], 1, "no folder /no"),
    ];
    for (arguments, code, text) in cases {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(*code), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(text), "{arguments:?}: {}", stderr(&output));
    }
    let bad = folder.path().join("bad.csv");
    std::fs::write(&bad, format!("{TRACE}6,a,0,Read,zero,1,1\n")).unwrap();
    let bad = bad.display().to_string();
    let output = run(&["idle", &bad]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("bad.csv: line 6, column 12: expected an offset in bytes, found 'zero'"));
    let output = run(&["idle", &bad, "--skip-bad", "--json"]);
    assert!(output.status.success() && stderr(&output).contains("1 bad records left out"), "{}", stderr(&output));
    assert!(stdout(&output).contains("\"bad_records\": 1"));
}

#[test]
fn help_says_enough() {
    let simulate = stdout(&run(&["simulate", "--help"]));
    for name in ["cfq-idle", "fixed-delay", "idlewise trace formats"] {
        assert!(simulate.contains(name), "{simulate}");
    }
    let formats = stdout(&run(&["trace", "formats"]));
    for name in ["blkreplay", "srt", "parquet"] {
        assert!(formats.contains(name), "{formats}");
    }
    for command in ["idle", "simulate", "tune", "scrub", "probe", "capture", "replay"] {
        let output = run(&[command, "--help"]);
        assert!(output.status.success());
        let text = stdout(&output);
        assert!(
            text.contains("Usage:") && text.contains("such as") || text.contains("lists the formats"),
            "{command}: {text}"
        );
    }
}

#[test]
fn trace_info_by_hand() {
    let (_folder, trace, _) = folder();
    let report = json(&["trace", "info", &trace, "--json"]);
    assert_eq!((&report["format"], &report["compression"]), (&"msr".into(), &serde_json::Value::Null));
    assert_eq!((&report["requests"], &report["sorted"]), (&5.into(), &true.into()));
    assert_eq!(report["volumes"], serde_json::json!(["a_0", "b_1"]));
    assert_eq!((&report["has_response_times"], &report["gaps"]), (&true.into(), &serde_json::json!([])));
    close(&report["read_share"], 0.6);
    close(&report["span_s"], 0.405);
    close(&report["resolution_s"], 1e-7);
}

#[test]
fn holes_of_real_traces_are_found() {
    for (name, holes) in [
        ("pixel6a/telegram_exec.csv.gz", 0),
        ("nexus5/log176_Booting.txt.xz", 2),
        ("hplajw.1week.srt", 0),
        ("msr/wdev_1.csv", 0),
        ("blkreplay_linux-mysql.load.gz", 0),
    ] {
        let Some(path) = real_trace(name) else { return };
        let report = json(&["trace", "info", path.to_str().unwrap(), "--json"]);
        assert_eq!(report["gaps"].as_array().unwrap().len(), holes, "{name}: {}", report["gaps"]);
    }
}

/// Figures read off the files by other means: record counts, first and last arrival, disks.
#[test]
fn real_traces_have_their_known_sizes() {
    for (name, requests, span_s, tolerance) in [
        ("blkreplay_linux-mysql.load.gz", 80_794, 3_600.0, 1.0),
        ("blkreplay_windows-mssql.load.gz", 42_976, 3_062.3, 0.1),
        ("blkreplay_windows-shared-server.load.gz", 1_371, 3_597.1, 0.1),
        ("hplajw.1week.srt", 44_519, 603_064.6, 1.0),
        ("msr/hm_0.excerpt.csv", 7_016, 148.4, 0.1),
        ("msr/wdev_1.csv", 1_055, 595_003.2, 0.1),
        ("cloudPhysicsIO.vscsi", 113_872, 7_200.0, 1.0),
        ("nexus5/log186_twitter.txt.xz", 13_807, 855.8, 0.1),
        ("pixel6a/telegram_exec.csv.gz", 251_879, 7_474.1, 0.1),
    ] {
        let Some(path) = real_trace(name) else { return };
        let report = json(&["idle", path.to_str().unwrap(), "--json"]);
        assert_eq!(report["requests"], requests, "{name}");
        let span = report["span_s"].as_f64().unwrap();
        assert!((span - span_s).abs() < tolerance, "{name}: {span}");
    }
}

/// The issue of the whole product: more scrub throughput than the idle class of CFQ at a part of its slowdown.
#[test]
fn plans_for_real_traces_beat_the_idle_class() {
    for name in ["blkreplay_linux-mysql.load.gz", "hplajw.1week.srt"] {
        let Some(path) = real_trace(name) else { return };
        let report =
            json(&["tune", path.to_str().unwrap(), "--mean-slowdown", "1ms", "--max-slowdown", "50ms", "--json"]);
        let cfq = &report["baselines"][0];
        let of = |value: &serde_json::Value, field: &str| value[field].as_f64().unwrap();
        assert!(of(&report, "mean_slowdown_s") <= 0.001, "{name}");
        assert!(of(&report, "max_slowdown_s") <= 0.050, "{name}");
        assert!(of(&report, "throughput_bytes_per_s") > 2.0 * of(cfq, "throughput_bytes_per_s"), "{name}");
        assert!(of(&report, "mean_slowdown_s") < 0.8 * of(cfq, "mean_slowdown_s"), "{name}");
    }
}

#[test]
fn compare_puts_policies_beside_the_oracle() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (trace, page) = (path("trace.parquet"), path("page.html"));
    let shape = ["--idle-mean", "200ms", "--idle-cov", "5", "--requests", "20000"];
    assert!(run(&[&["trace", "synth", "-o", &trace], &shape[..]].concat()).status.success());
    let report = json(&["compare", &trace, "--json", "--report", &page]);
    let points = report["points"].as_array().unwrap();
    for policy in ["waiting", "lossless-waiting", "oracle"] {
        assert!(points.iter().filter(|point| point["policy"] == policy).count() > 10, "{policy}");
    }
    let used = |point: &serde_json::Value| point["utilised_idle"].as_f64().unwrap();
    assert!(points.iter().all(|point| (0.0..=1.0).contains(&used(point))));
    // A point is what `simulate` says of its parameters.
    let point =
        points.iter().find(|point| point["policy"] == "waiting" && used(point) > 0.3 && used(point) < 0.9).unwrap();
    let wait = format!("{}ns", (point["parameters"]["idle_wait_s"].as_f64().unwrap() * 1e9).round());
    let again = json(&["simulate", &trace, "--idle-wait", &wait, "--request-size", "64KiB", "--json"]);
    assert_eq!(
        (&again["utilised_idle"], &again["collision_rate"]),
        (&point["utilised_idle"], &point["collision_rate"])
    );
    assert!(std::fs::read_to_string(&page).unwrap().contains("(DSN 2012, figure 14)"));
}

#[test]
fn a_budget_holds_any_policy_on_every_shared_trace() {
    for name in
        ["blkreplay_linux-mysql.load.gz", "blkreplay_windows-mssql.load.gz", "hplajw.1week.srt", "cloudPhysicsIO.vscsi"]
    {
        let Some(path) = real_trace(name) else { return };
        let greedy = ["--policy", "back-to-back", "--request-size", "1MiB", "--json"];
        let simulate = |budget: &[&str]| {
            json(&[&["simulate", path.to_str().unwrap()], &greedy[..], budget].concat())["mean_slowdown_s"]
                .as_f64()
                .unwrap()
        };
        let (without, within) = (simulate(&[]), simulate(&["--budget", "500us"]));
        // The bound leaves the earnings of 1,000 requests and one collision, over all requests.
        assert!(without > 0.001 && within < 0.000_53, "{name}: {within} within, {without} without");
        // A collision with many requests behind it spends the earnings of a while.
        assert!(within > 0.000_5 / 3.0, "{name}: {within} does not use its budget");
    }
}
