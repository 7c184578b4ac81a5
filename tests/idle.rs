//! `idle` through the command: its numbers against scipy and statsmodels, and its page in a browser.

mod common;

use std::path::Path;
use std::process::Command;

use common::{json, real_trace, repository, run, stderr, stdout};

/// Those whose requests all have response times, so that the oracle needs no disk model.
const RECORDED: [&str; 5] = [
    "hplajw.1week.srt",
    "msr/wdev_1.csv",
    "msr/hm_0.excerpt.csv",
    "nexus5/log186_twitter.txt.xz",
    "nexus5/log131_music.txt.xz",
];

/// A synthetic trace, in a folder that lasts as long as the test.
fn synthetic(folder: &Path, name: &str, arguments: &[&str]) -> String {
    let path = folder.join(name).display().to_string();
    let output = run(&[&["trace", "synth", "--out", &path], arguments].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    path
}

fn against_oracle(traces: &[String]) {
    let python = repository().join("target/oracle/bin/python");
    if !python.exists() {
        eprintln!("SKIPPED: no scipy and statsmodels; tests/oracle/setup.sh installs them");
        return;
    }
    let check = repository().join("tests/oracle/check.py");
    let mut command = Command::new(python);
    let output = command.arg(check).arg(env!("CARGO_BIN_EXE_idlewise")).args(traces).output().unwrap();
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    println!("{}", stdout(&output));
}

#[test]
fn statistics_are_scipys_on_synthetic_traces() {
    let folder = tempfile::tempdir().unwrap();
    let tail = ["--idle-mean", "80ms", "--idle-cov", "4", "--burstiness", "0.4", "--requests-per-busy", "2.5"];
    let tail = [&tail[..], &["--requests", "20000", "--seed", "7"]].concat();
    against_oracle(&[
        synthetic(folder.path(), "tail.parquet", &tail),
        synthetic(folder.path(), "exponential.csv.gz", &["--load", "random", "--for", "30min", "--seed", "3"]),
    ]);
}

#[test]
fn statistics_are_scipys_on_real_traces() {
    let traces = RECORDED.iter().filter_map(|name| real_trace(name)).map(|path| path.display().to_string());
    let traces: Vec<String> = traces.collect();
    if !traces.is_empty() {
        against_oracle(&traces);
    }
}

#[test]
fn several_traces_give_one_page_that_a_browser_shows() {
    let folder = tempfile::tempdir().unwrap();
    let week = ["--idle-mean", "60s", "--idle-cov", "5", "--requests", "10000"];
    let (a, b) = (
        synthetic(folder.path(), "week.csv", &week),
        synthetic(folder.path(), "pvr.csv", &["--like", "sigmetrics2009-t1"]),
    );
    let page = folder.path().join("page.html");
    let output = run(&["idle", &a, &b, "--report", page.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("week") && stdout(&output).contains("pvr"), "{}", stdout(&output));
    let html = std::fs::read_to_string(&page).unwrap();
    for fetched in ["src=", "href=", "url(", "@import", "<script"] {
        assert!(!html.contains(fetched), "the page needs a network: {fetched}");
    }

    if Command::new("chromium").arg("--version").output().is_err() {
        eprintln!("SKIPPED: no chromium; tests/oracle/setup.sh installs it");
        return;
    }
    let shot = folder.path().join("page.png");
    let browser = |arguments: &[&str]| {
        let mut command = Command::new("timeout");
        command.args(["60", "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1000,6000"]);
        let output = command.args(arguments).arg(format!("file://{}", page.display())).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        output
    };
    let dom = stdout(&browser(&["--dump-dom"]));
    assert_eq!(dom.matches("<svg").count(), html.matches("<svg").count());
    assert!(dom.contains("(DSN 2012, figure 13)") && dom.matches("<polyline").count() > 15);
    for scheme in ["0", "1"] {
        let preferred = format!("--blink-settings=preferredColorScheme={scheme}");
        browser(&[&preferred, &format!("--screenshot={}", shot.display())]);
        let size = shot.metadata().unwrap().len();
        assert!(size > 50_000, "a page of {size} bytes is blank");
    }
}

#[test]
fn traces_stand_side_by_side_or_are_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let monday = file("monday.csv", "0,a,0,Read,0,512,10\n1000,b,0,Read,0,512,10\n");
    let tuesday = file("tuesday.csv", "500,a,0,Read,0,512,10\n9000,a,0,Read,0,512,10\n");
    let apart = json(&["idle", &monday, &tuesday, "--json"]);
    assert_eq!((&apart[0]["requests"], &apart[1]["requests"]), (&2.into(), &2.into()));
    let joined = json(&["idle", "--join", &monday, &tuesday, "--json"]);
    assert_eq!((&joined["requests"], &joined["idle_intervals"]), (&4.into(), &2.into()));
    let folder = json(&["idle", folder.path().to_str().unwrap(), "--json"]);
    assert_eq!(folder["requests"], 4);
    let volumes = json(&["idle", "--join", "--by-volume", &monday, &tuesday, "--json"]);
    let of = |index: usize| (volumes[index]["sequence_volume"].clone(), volumes[index]["requests"].clone());
    assert_eq!((of(0), of(1)), (("a_0".into(), 3.into()), ("b_0".into(), 1.into())));
}

/// Twelve volumes, of which each has as many requests more than a hundred as its number says.
fn many_volumes(folder: &Path) -> String {
    let mut rows: Vec<(u64, String)> = Vec::new();
    for volume in (0..12u64).rev() {
        let at = |k: u64| (k * 1_000_003 + k * k * 7 % 900_000) * 10 + volume;
        rows.extend((0..=100 + volume).map(|k| (at(k), format!("{},v,{volume},Read,{},512,10\n", at(k), k * 512))));
    }
    rows.sort();
    let path = folder.join("many.csv");
    std::fs::write(&path, rows.into_iter().map(|(_, row)| row).collect::<String>()).unwrap();
    path.display().to_string()
}

#[test]
fn volumes_are_rows_in_the_order_of_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let trace = many_volumes(folder.path());
    let text = stdout(&run(&["idle", &trace, "--by-volume"]));
    let rows: Vec<_> = text.lines().filter(|line| line.starts_with("many v_")).collect();
    let named = (0..12).zip(&rows).all(|(volume, row)| row.starts_with(&format!("many v_{volume} ")));
    assert!(rows.len() == 12 && named && text.lines().all(|line| line.len() < 200), "{text}");

    let chosen = ["idle", &trace, "--by-volume", "--volume", "v_3", "--volume", "v_1?", "--csv"];
    let csv = stdout(&run(&chosen));
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let rows: Vec<_> = lines.collect();
    assert_eq!((head[1], head[2], head[9]), ("volume", "requests", "longer_than_100ms"));
    let (names, requests): (Vec<_>, Vec<_>) = rows.iter().map(|row| (row[1], row[2])).unzip();
    assert_eq!((names, requests), (vec!["v_3", "v_10", "v_11"], vec!["104", "111", "112"]));
    assert!(rows.iter().all(|row| row.len() == head.len() && row[9].parse::<f64>().unwrap() > 0.5), "{csv}");
    let none = run(&["idle", &trace, "--volume", "v_3", "--volume", "w_*"]);
    assert!(!none.status.success() && stderr(&none).contains("no volume 'w_*' in the trace"), "{}", stderr(&none));

    let page = folder.path().join("page.html");
    assert!(run(&["idle", &trace, "--by-volume", "--report", page.to_str().unwrap()]).status.success());
    let html = std::fs::read_to_string(page).unwrap();
    assert!(
        html.contains("Of the 12 traces the 8 with the most requests are drawn.")
            && html.matches("<td>many v_").count() == 12
    );
}

#[test]
fn what_too_few_intervals_cannot_say_is_not_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("few.csv");
    std::fs::write(&path, "0,a,0,Read,0,512,10\n1000,a,0,Read,0,512,10\n9000,a,0,Read,0,512,10\n").unwrap();
    let path = path.display().to_string();
    let text = stdout(&run(&["idle", &path]));
    assert!(text.contains("2 idle intervals are too few to say which part of them to use"), "{text}");
    let few = text.lines().filter(|line| line.ends_with("too few")).count();
    assert!(few >= 7 && !text.contains("e0") && !text.contains(" - "), "{text}");
    let report = json(&["idle", &path, "--json"]);
    assert!(report["autocorrelation"].is_null() && report["verdict"].is_null(), "{report}");
}
