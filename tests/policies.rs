//! `explore`, plans with steps, training parts, jobs that WRITEs make and the online policies, through the command.

mod common;

use common::{json, real_trace, run, stderr, stdout};

/// A made-up trace, the same for the same arguments.
fn trace(folder: &tempfile::TempDir, name: &str, arguments: &[&str]) -> String {
    let path = folder.path().join(name).to_str().unwrap().to_string();
    let output = run(&[&["trace", "synth", "-o", &path], arguments].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    path
}

fn number(value: &serde_json::Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn explore_marks_a_pair_that_keeps_the_delay_and_draws_the_plane() {
    let folder = tempfile::tempdir().unwrap();
    let t1 = trace(&folder, "t1.parquet", &["--like", "sigmetrics2009-t1", "--requests", "8000"]);
    let page = folder.path().join("plane.html");
    let report = json(&["explore", &t1, "--service-time", "6ms", "--json", "--report", page.to_str().unwrap()]);
    let (chosen, no_wait) = (&report["chosen"], &report["no_wait"]);
    assert!(number(&chosen["relative_delay"]) <= 0.07 && number(&no_wait["relative_delay"]) > 0.1, "{report}");
    let points = report["plane"]["points"].as_array().unwrap();
    let within = points.iter().filter(|point| number(&point["relative_delay"]) <= 0.07);
    let best = within.map(|point| number(&point["completed"])).fold(0.0, f64::max);
    assert!(number(&chosen["completed"]) >= 0.9 * best, "{chosen} {best}");
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.matches("<svg").count() == 2 && html.contains("figure 4"), "{}", html.len());
    // The same pair, through `simulate`.
    let time = |field: &str| format!("{}ns", (number(&chosen[field]) * 1e9).round());
    let (wait, period) = (time("idle_wait_s"), time("busy_period_s"));
    let pair =
        ["--policy", "restrained", "--idle-wait", &wait, "--busy-period", &period, "--service-time", "6ms", "--json"];
    let again = json(&[&["simulate", &t1], &pair[..]].concat());
    assert_eq!(again["background_requests"], chosen["completed"]);
}

#[test]
fn jobs_come_with_writes_and_those_without_a_place_are_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(&folder, "t.parquet", &["--idle-mean", "50ms", "--requests", "4000", "--requests-per-busy", "5"]);
    let waiting = ["simulate", &path, "--idle-wait", "5ms", "--request-size", "64KiB", "--verify-writes", "--json"];
    let all = json(&[&waiting[..], &["--write-share", "0.5"]].concat());
    let few = json(&[&waiting[..], &["--write-share", "0.5", "--buffer", "1"]].concat());
    assert!((number(&all["jobs"]["came"]) / 2_000.0 - 1.0).abs() < 0.1 && all["jobs"]["lost"] == 0, "{all}");
    assert!(number(&few["jobs"]["lost"]) > 100.0 && few["jobs"]["came"] == all["jobs"]["came"], "{few}");
    assert_eq!(all["jobs"]["completed"], all["background_requests"]);
    assert!(number(&all["slowdown_p90_s"]) <= number(&all["slowdown_p99_s"]));
    assert!(number(&all["slowdown_p99_s"]) <= number(&all["max_slowdown_s"]));
    // Parity: an update for each WRITE or for several of one segment; stopped ones begin again and cost requests.
    let parity = [
        "simulate",
        &path,
        "--request-size",
        "64KiB",
        "--idle-wait",
        "5ms",
        "--parity",
        "--segment",
        "64MiB",
        "--write-share",
        "0.5",
        "--json",
    ];
    let parity = json(&parity);
    let (jobs, of_jobs) = (&parity["jobs"], &parity["jobs"]["parity"]);
    assert_eq!(jobs["came"], all["jobs"]["came"]);
    let hits: Vec<f64> = of_jobs["writes_before_update"].as_array().unwrap().iter().map(number).collect();
    assert!((hits.iter().sum::<f64>() - 1.0).abs() < 1e-9 && hits.len() > 1, "{of_jobs}");
    let mean_hits: f64 = hits.iter().enumerate().map(|(index, share)| (index + 1) as f64 * share).sum();
    let updates = number(&jobs["completed"]) / mean_hits;
    assert!(number(&parity["background_requests"]) > 2.0 * updates - 1.0, "{parity}");
    assert!(number(&of_jobs["update_p50_s"]) <= number(&of_jobs["update_p99_s"]), "{of_jobs}");
    // Without --write-share the trace's own.
    let own = json(&waiting);
    assert!((number(&own["jobs"]["came"]) / 1_200.0 - 1.0).abs() < 0.1, "{own}");
    for (wrong, text) in [
        (&["--buffer", "3"][..], "--verify-writes"),
        (&["--write-share", "0.5"], "--verify-writes or --parity"),
        (&["--segment", "1MiB"], "--parity"),
        (&["--verify-writes", "--write-share", "7"], "a share above 0"),
        (&["--service-time", "0"], "above zero"),
    ] {
        let output = run(&[&waiting[..6], wrong].concat());
        assert_eq!(output.status.code(), Some(64), "{wrong:?}");
        assert!(stderr(&output).contains(text), "{wrong:?}: {}", stderr(&output));
    }
}

#[test]
fn online_policies_keep_what_they_are_told() {
    let folder = tempfile::tempdir().unwrap();
    // On T2 the body delays by more: docs/papers.md says why.
    let bursty = trace(&folder, "bursty.parquet", &["--like", "dsn2008-t3", "--requests", "60000"]);
    let path = trace(&folder, "t.parquet", &["--like", "dsn2008-t2", "--requests", "60000"]);
    for policy in ["monitoring", "body", "tail", "tail-bursty"] {
        let report = json(&[
            "simulate",
            &bursty,
            "--policy",
            policy,
            "--relative-delay",
            "0.07",
            "--service-time",
            "6ms",
            "--json",
        ]);
        let delay = number(&report["relative_delay"]);
        assert!((0.03..0.085).contains(&delay), "{policy}: {delay}");
    }
    let adaptive = ["--policy", "adaptive", "--mean-slowdown", "300us", "--max-slowdown", "50ms", "--json"];
    let report = json(&[&["simulate", &path], &adaptive[..]].concat());
    assert!((250e-6..=310e-6).contains(&number(&report["mean_slowdown_s"])), "{report}");
}

#[test]
fn steps_are_a_plan_that_simulates_as_it_was_tuned() {
    let Some(youtube) = real_trace("nexus5/log152_YouTube.txt.xz") else { return };
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.toml");
    let (youtube, path) = (youtube.to_str().unwrap(), plan.to_str().unwrap());
    let goal = ["--mean-slowdown", "2ms", "--max-slowdown", "20ms", "--shaped", "--out", path, "--json"];
    let report = json(&[&["tune", youtube], &goal[..]].concat());
    assert_eq!(report["validation"]["chosen"], true, "{report}");
    assert!(number(&report["mean_slowdown_s"]) <= 2e-3 && report["steps"].as_array().unwrap().len() > 2);
    let again = json(&["simulate", youtube, "--plan", path, "--json"]);
    for field in ["scrubbed_bytes", "collisions", "mean_slowdown_s", "max_slowdown_s"] {
        assert_eq!(again[field], report[field], "{field}");
    }
    let clash = run(&["simulate", youtube, "--plan", path, "--idle-wait", "1ms"]);
    assert_eq!(clash.status.code(), Some(64));
}

#[test]
fn a_plan_explains_itself_and_says_what_a_goal_would_have_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(&folder, "t.parquet", &["--idle-mean", "80ms", "--idle-cov", "3", "--requests", "3000"]);
    let page = folder.path().join("tune.html");
    let goal = ["--mean-slowdown", "1ms", "--max-slowdown", "30ms", "--report", page.to_str().unwrap()];
    let text = stdout(&run(&[&["tune", &path], &goal[..]].concat()));
    assert!(text.contains("stays idle for another") && text.contains(" foreground requests collides with"), "{text}");
    assert!(text.contains("Note: the trace covers"), "{text}");
    assert!(std::fs::read_to_string(page).unwrap().contains("figure 15"));
    let nothing = ["--mean-slowdown", "1ns", "--max-slowdown", "30ms", "--json"];
    let report = json(&[&["tune", &path], &nothing[..]].concat());
    if report["background_requests"] == 0 {
        assert!(number(&report["goal_needed_s"]) > 1e-9, "{report}");
    }
    let trained = ["--mean-slowdown", "1ms", "--max-slowdown", "30ms", "--train", "0.5", "--json"];
    let report = json(&[&["tune", &path], &trained[..]].concat());
    let (plan, exact) = (number(&report["throughput_bytes_per_s"]), number(&report["exact"]["throughput_bytes_per_s"]));
    assert!(plan > 0.3 * exact && number(&report["exact"]["mean_slowdown_s"]) <= 1e-3, "{plan} {exact}");
    let wrong = run(&[&["tune", &path], &trained[..4], &["--train", "1.5"]].concat());
    assert!(wrong.status.code() == Some(64) && stderr(&wrong).contains("between 0 and 1"));
}

/// At most one foreground request in a hundred is slowed by more than the 99th percentile of the goal, which costs throughput.
#[test]
fn a_plan_keeps_a_99th_percentile() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(&folder, "t.parquet", &["--idle-mean", "60ms", "--idle-cov", "3", "--requests", "6000"]);
    let plan = folder.path().join("plan.toml");
    let goal = ["--mean-slowdown", "2ms", "--max-slowdown", "30ms", "--json"];
    let tuned = |more: &[&str]| json(&[&["tune", &path], &goal[..], more].concat());
    let loose = tuned(&[]);
    assert!(number(&loose["slowdown_p99_s"]) > 4e-3 && loose["goal"].get("p99_slowdown_s").is_none(), "{loose}");
    let kept = ["--p99-slowdown", "4ms", "--out", plan.to_str().unwrap()];
    let report = tuned(&kept);
    assert!(number(&report["slowdown_p99_s"]) <= 4e-3 && number(&report["max_slowdown_s"]) > 4e-3, "{report}");
    let scrubbed = |report: &serde_json::Value| number(&report["scrubbed_bytes"]);
    assert!(scrubbed(&report) > 0.0 && scrubbed(&report) < 0.9 * scrubbed(&loose), "{report} {loose}");
    assert_eq!(number(&report["goal"]["p99_slowdown_s"]), 4e-3);
    let text = std::fs::read_to_string(&plan).unwrap();
    assert!(text.contains("version = 3") && text.contains("p99_slowdown = \"4ms\""), "{text}");
    let again = json(&["simulate", &path, "--plan", plan.to_str().unwrap(), "--json"]);
    assert_eq!(again["collisions"], report["collisions"]);
    let text = stdout(&run(&[&["tune", &path], &goal[..4], &kept].concat()));
    assert!(text.contains("mean slowdown 2.00 ms, p99 slowdown 4.00 ms, max slowdown 30.0 ms"), "{text}");
    assert!(text.contains("  p99  "), "{text}");
}

/// Every cell of a grid is what `simulate` says of its pair.
#[test]
fn a_grid_has_a_row_for_each_size_and_wait() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(&folder, "t.parquet", &["--idle-mean", "60ms", "--idle-cov", "3", "--requests", "2000"]);
    let grid = ["simulate", &path, "--grid", "64KiB,1MiB", "10ms..100ms"];
    let report = json(&[&grid[..], &["--json"]].concat());
    let cells = report["cells"].as_array().unwrap();
    let sizes: Vec<_> = cells.iter().map(|cell| (&cell["request_size_bytes"], number(&cell["idle_wait_s"]))).collect();
    let waits = [0.01, 0.02, 0.05, 0.1];
    let (small, large) = (65_536.into(), 1_048_576.into());
    assert_eq!(
        sizes,
        waits.map(|wait| (&small, wait)).into_iter().chain(waits.map(|wait| (&large, wait))).collect::<Vec<_>>()
    );
    let one = json(&["simulate", &path, "--request-size", "1MiB", "--idle-wait", "50ms", "--json"]);
    for field in ["throughput_bytes_per_s", "mean_slowdown_s", "slowdown_p99_s", "max_slowdown_s", "collisions"] {
        assert_eq!(cells[6][field], one[field], "{field}");
    }
    let csv = stdout(&run(&[&grid[..], &["--csv"]].concat()));
    assert!(csv.starts_with("request_size_bytes,idle_wait_s,") && csv.lines().count() == 9, "{csv}");
    assert_eq!(csv.lines().nth(7).unwrap().split(',').nth(4), Some(&*one["mean_slowdown_s"].to_string()), "{csv}");
    let text = stdout(&run(&grid));
    assert!(text.contains("mean, p99, max: slowdown") && text.matches("1.00 MiB").count() == 4, "{text}");
    for (wrong, why) in [
        (&["--grid", "64KiB", "0ms..1s"][..], "--grid: 0ms..1s: a range goes up"),
        (&["--grid", "64KiB", "1s", "--policy", "oracle"], "cannot be used with"),
        (&["--csv"], "--grid"),
    ] {
        let output = run(&[&["simulate", &path], wrong].concat());
        assert!(output.status.code() == Some(64) && stderr(&output).contains(why), "{}", stderr(&output));
    }
}

/// Volumes are rows, in the order of their names, and the same numbers as in JSON.
#[test]
fn plans_of_volumes_are_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volumes.csv").display().to_string();
    let line = |k: u64| {
        format!(
            "{},{},{},4096,{}\n",
            [10, 2, 1][(k % 3) as usize],
            "RW".chars().nth((k % 2) as usize).unwrap(),
            k * 8192,
            k * k % 97 * 1_000 + k * 90_000
        )
    };
    std::fs::write(&path, (0..1_500).map(line).collect::<String>()).unwrap();
    let tune =
        ["tune", &path, "--mean-slowdown", "1ms", "--max-slowdown", "30ms", "--p99-slowdown", "9ms", "--by-volume"];
    let text = stdout(&run(&tune));
    let reports = json(&[&tune[..], &["--json"]].concat());
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let head = rows.iter().position(|row| row.first() == Some(&"volume")).unwrap_or_else(|| panic!("{text}"));
    let names: Vec<&str> = rows[head + 1..]
        .iter()
        .map_while(|row| row.first().copied())
        .filter(|name| name.parse::<u8>().is_ok())
        .collect();
    assert_eq!(names, ["1", "2", "10"], "{text}");
    assert!(text.contains("mean, p99, max: slowdown") && text.contains("*: there are notes; --volume NAME"), "{text}");
    let csv = stdout(&run(&[&tune[..], &["--csv"]].concat()));
    let volumes: Vec<&str> = csv.lines().skip(1).map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(volumes, names, "{csv}");
    for (line, report) in csv.lines().skip(1).zip(reports.as_array().unwrap()) {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells[1], report["request_size_bytes"].to_string(), "{csv}");
        assert_eq!(cells[6], report["slowdown_p99_s"].to_string(), "{csv}");
    }
    let alone = run(&["tune", &path, "--mean-slowdown", "1ms", "--max-slowdown", "30ms", "--csv"]);
    assert!(alone.status.code() == Some(64) && stderr(&alone).contains("--by-volume"), "{}", stderr(&alone));
}

/// Idle times in multiples of a timer tick: slowdown does not fall as the wait grows, and no pair of a grid that keeps the goal may do
/// better than the plan.
#[test]
fn timer_ticks_do_not_mislead_the_tuner() {
    let folder = tempfile::tempdir().unwrap();
    let ticks = ["--idle-mean", "90ms", "--idle-cov", "1.5", "--tick", "15.625ms", "--requests", "1500"];
    let path = trace(&folder, "t.parquet", &ticks);
    let plan = json(&["tune", &path, "--mean-slowdown", "400us", "--max-slowdown", "8ms", "--json"]);
    assert!(number(&plan["mean_slowdown_s"]) <= 400e-6, "{plan}");
    let mut rises = 0;
    for size in ["64KiB", "192KiB", "320KiB"] {
        let mut last = f64::MAX;
        for wait in (0..60).map(|k| format!("{}us", k * 2_500)) {
            let one = json(&["simulate", &path, "--idle-wait", &wait, "--request-size", size, "--json"]);
            let slowdown = number(&one["mean_slowdown_s"]);
            rises += u32::from(slowdown > last);
            last = slowdown;
            if slowdown <= 400e-6 {
                let (plan, one) = (number(&plan["scrubbed_bytes"]), number(&one["scrubbed_bytes"]));
                assert!(plan >= 0.99 * one, "{size} after {wait}: {one} above {plan}");
            }
        }
    }
    assert!(rises > 20, "slowdown falls with the wait on this trace: {rises}");
}

#[test]
fn policies_are_compared_on_what_they_were_not_fitted_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (trace, other) = (path("a.parquet"), path("b.parquet"));
    for (out, seed) in [(&trace, "1"), (&other, "2")] {
        let shape =
            ["--idle-mean", "50ms", "--idle-cov", "3", "--burstiness", "0.3", "--requests", "3000", "--seed", seed];
        let output = run(&[&["trace", "synth", "--out", out], &shape[..]].concat());
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let compared =
        |more: &[&str]| json(&[&["compare", &trace, "--policies", "ar,waiting,fixed-delay", "--json"], more].concat());
    let [own, half, of_other] = [&[][..], &["--train", "0.5"], &["--train", &other]].map(compared);
    assert_eq!((&own["train"], &half["train"]), (&serde_json::Value::Null, &"0.5".into()));
    let used = |report: &serde_json::Value, policy: &str| {
        let points = report["points"].as_array().unwrap().iter().filter(|point| point["policy"] == policy);
        points.map(|point| point["utilised_idle"].to_string()).collect::<Vec<_>>()
    };
    assert!(used(&own, "fixed-delay").len() > 10 && used(&own, "oracle").is_empty());
    assert_ne!(used(&own, "ar"), used(&of_other, "ar"));
    assert_ne!(used(&own, "waiting"), used(&half, "waiting"));
    let text = stdout(&run(&["compare", &trace, "--train", "0.5"]));
    assert!(text.contains("fitted to the first 0.5 of the time and run on the rest"), "{text}");
    let text = stdout(&run(&["compare", &trace]));
    assert!(text.contains("parameters are chosen on the trace that policies run on"), "{text}");
    // Each point says what it did on the first part, by which it is chosen; only the oracle knows the rest.
    let all = json(&["compare", &trace, "--train", "0.5", "--json"]);
    let points = all["points"].as_array().unwrap();
    assert!(points.iter().all(|point| point["trained"].is_null() == (point["policy"] == "oracle")), "{all}");
    let waits = points.iter().filter(|point| point["policy"] == "waiting");
    let within = waits.filter(|point| number(&point["trained"]["collision_rate"]) <= 0.05);
    let used_before = |point: &serde_json::Value| number(&point["trained"]["utilised_idle"]);
    let chosen = within.max_by(|a, b| used_before(a).total_cmp(&used_before(b))).unwrap();
    let [used, collisions] = ["utilised_idle", "collision_rate"]
        .map(|field| idlewise::report::percent(number(&chosen[field])).trim_end_matches(" %").to_string());
    let cell = format!("{used} ({collisions})");
    let text = stdout(&run(&["compare", &trace, "--train", "0.5"]));
    let row = text.lines().find(|line| line.starts_with("5.00 %")).unwrap_or_else(|| panic!("{text}"));
    assert!(row.contains(&cell), "{row}: {cell}");
    let wrong = run(&["compare", &trace, "--policies", "ar,wating"]);
    assert_eq!(wrong.status.code(), Some(64));
    assert!(stderr(&wrong).contains("--policies wating: no such policy; there are waiting, ar"), "{}", stderr(&wrong));
}

/// It knows more than any policy whose intervals are the longest, so at no rate of collisions it uses less idle time.
#[test]
fn no_lossless_waiting_is_above_the_oracle_on_real_traces() {
    for name in ["hplajw.1week.srt", "msr/hm_0.excerpt.csv", "msr/wdev_1.csv", "cloudPhysicsIO.vscsi"] {
        let Some(trace) = real_trace(name) else { return };
        for size in ["64KiB", "512KiB"] {
            let report = json(&["compare", trace.to_str().unwrap(), "--request-size", size, "--json"]);
            let points = report["points"].as_array().unwrap();
            let of = |policy: &str| points.iter().filter(|point| point["policy"] == policy).collect::<Vec<_>>();
            for point in of("lossless-waiting") {
                let within =
                    |oracle: &&serde_json::Value| number(&oracle["collision_rate"]) <= number(&point["collision_rate"]);
                let used = of("oracle").into_iter().filter(within).map(|oracle| number(&oracle["utilised_idle"]));
                let best = used.fold(0.0, f64::max);
                assert!(number(&point["utilised_idle"]) <= best, "{name}, {size}: {point} above the oracle's {best}");
            }
        }
    }
}
