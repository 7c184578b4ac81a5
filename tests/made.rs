//! What says how a result was made: the version, the JSON, the page, and the files of a package.

mod common;

use common::{json, run, stdout};
use serde_json::json;

const SYNTH: [&str; 6] = ["trace", "synth", "--requests", "2000", "--idle-mean", "20ms"];

#[test]
fn every_json_says_the_version_the_command_and_the_seed() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.csv");
    let trace = trace.to_str().unwrap();
    assert!(run(&[&SYNTH[..], &["--seed", "7", "-o", trace, "--json"]].concat()).status.success());
    let made = &json(&["trace", "info", trace, "--json"])["idlewise"];
    let version = stdout(&run(&["--version"]));
    assert_eq!(version.trim(), format!("idlewise {}", made["version"].as_str().unwrap()));
    assert_eq!(
        made["command"].as_array().unwrap()[1..],
        [json!("trace"), json!("info"), json!(trace), json!("--json")]
    );
    assert_eq!(made.get("seed"), None);
    let rows = json(&["trace", "head", trace, "--json"]);
    assert_eq!(rows[1]["idlewise"]["command"][2], "head", "each of a list");
    let sample = json(&["sample", trace, "--interval", "1s", "--json"]);
    assert!(sample["idlewise"]["seed"].is_u64(), "the default is said too: {sample}");

    let page = folder.path().join("page.html");
    assert!(run(&["idle", trace, "--report", page.to_str().unwrap()]).status.success());
    let html = std::fs::read_to_string(page).unwrap();
    let footer = html.split("<footer>").nth(1).expect("a footer");
    assert!(footer.starts_with(version.trim()) && footer.contains(&format!(" idle {trace} --report ")), "{footer}");
}

#[test]
fn each_subcommand_has_a_manual_page_and_shells_their_completions() {
    let folder = tempfile::tempdir().unwrap();
    assert!(run(&["generate-files", folder.path().to_str().unwrap(), "2026-01-31"]).status.success());
    let help = stdout(&run(&["--help"]));
    assert!(!help.contains("generate-files"), "it is for packagers");
    let commands = help.split("Usage:").nth(1).unwrap().split("Options:").next().unwrap();
    let names: Vec<&str> = commands
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next().filter(|_| !line.starts_with("   ")))
        .filter(|&name| name != "help")
        .collect();
    assert!(names.len() >= 14, "{names:?}");
    for name in names {
        let page = std::fs::read_to_string(folder.path().join(format!("idlewise-{name}.1"))).expect(name);
        assert!(page.contains(&format!(".TH idlewise-{name} 1 2026-01-31 \"idlewise ")), "{page}");
    }
    for file in ["idlewise.1", "idlewise-trace-info.1", "idlewise.bash", "idlewise.fish", "_idlewise"] {
        assert!(folder.path().join(file).exists(), "{file}");
    }
    assert!(!folder.path().join("idlewise-generate-files.1").exists());
    for file in ["idlewise.bash", "idlewise.fish", "_idlewise"] {
        let text = std::fs::read_to_string(folder.path().join(file)).unwrap();
        assert!(text.contains("fixed-delay") && text.contains("restrained"), "the names of policies are in {file}");
    }
}

#[test]
fn a_value_below_zero_is_called_that() {
    let output = run(&["tune", "x.csv", "--mean-slowdown", "-1ms"]);
    assert_eq!(output.status.code(), Some(64));
    assert!(common::stderr(&output).starts_with("error: a value that begins with '-1' is below zero"));
}
