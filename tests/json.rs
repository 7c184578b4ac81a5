//! docs/json.md says of each member of what `--json` prints what it is, as the types say, and what is printed is that.
//! `IDLEWISE_WRITE_DOCS=1` writes the page.

mod common;
#[path = "common/json_types.rs"]
mod json_types;
#[path = "common/json_words.rs"]
mod json_words;

use std::collections::BTreeSet;
use std::fmt::Write;

use common::bench::{Loop, MIB, PACE};
use common::{json, repository, run};
use json_types::{Line, Types};
use json_words::word;
use serde_json::Value;

/// A command, the file and the type of what it prints, and whether that is a list of such.
const PRINTED: [(&str, &str, &str, &str); 26] = [
    (
        "scrub",
        "scrub/result.rs",
        "Result",
        "One object for one disk, a list for several. A disk that could not be scrubbed has `device`, `state` and `failure` only.",
    ),
    ("scrub --dry-run", "scrub/many.rs", "Prospect", "A list: an object for each disk."),
    ("status", "status.rs", "Status", "A list: an object for each disk."),
    ("status --runs", "status/runs.rs", "Held", "A list: an object for each run."),
    ("check-config", "daemon.rs", "Gets", "A list: an object for each disk of the machine."),
    ("history", "history.rs", "Pass", "A list: an object for each pass."),
    ("run", "run/report.rs", "Report", "One object, in the file that `--json` names."),
    ("owner-scrub", "owner_scrub/report.rs", "Report", "One object."),
    ("repair", "repair.rs", "Repaired", "One object."),
    ("probe", "probe/json.rs", "Json", "One object."),
    ("capture", "capture.rs", "Report", "One object."),
    ("replay", "replay.rs", "Report", "One object."),
    ("idle", "idle.rs", "Report", "One object for one trace, a list for several, or with `--by-volume`."),
    ("tune", "tune.rs", "Report", "One object for one trace, a list for several, or with `--by-volume`."),
    ("fleet", "fleet.rs", "Report", "One object, which is also `fleet.json` in the folder."),
    ("simulate", "simulate.rs", "Report", "One object."),
    ("simulate --grid", "simulate/grid.rs", "Report", "One object."),
    ("simulate --service", "simulate/service.rs", "Report", "One object."),
    ("compare", "compare.rs", "Report", "One object."),
    ("explore", "explore.rs", "Report", "One object."),
    ("sample", "sample.rs", "Report", "One object."),
    ("reliability", "reliability.rs", "Reliability", "One object."),
    ("array", "array.rs", "Report", "One object."),
    ("trace info", "trace/info.rs", "Report", "One object."),
    ("trace stats", "trace/stats.rs", "Report", "One object."),
    ("trace convert, trace cut, trace synth", "trace/convert.rs", "Written", "One object."),
];

fn lines(types: &Types, file: &str, name: &str) -> Vec<Line> {
    types.lines(&repository().join("crates/idlewise-cli/src").join(file), name)
}

fn types() -> Types {
    Types::read(&repository().join("crates"))
}

#[test]
fn the_page_about_json_is_what_the_types_say() {
    let types = types();
    let mut page = String::from(
        "# What `--json` prints\n\n\
         Every object begins with `idlewise`: the `version`, the `command` as it was called, and its `seed` where it has one. Names\n\
         end in the unit: `_s` is seconds, `_bytes` bytes, `_unix_s` seconds since 1970; what has no unit is a number of things, a\n\
         share from 0 to 1, or a text. Members are added in later versions; they are neither renamed nor removed without a line in the\n\
         change log. In the lists below, `[]` stands for each element of a list, and *may be left out* for a member that is only there when\n\
         there is something to say. A number without end, such as the time to data loss where none is ever lost, is null.\n",
    );
    let mut unsaid = Vec::new();
    for (command, file, name, how) in PRINTED {
        let _ = write!(page, "\n## {command}\n\n{how}\n\n| Member | Value | What it is |\n|---|---|---|\n");
        for Line { path, kind, mut about, may_miss } in lines(&types, file, name) {
            if about.is_empty() {
                about = word(command, &path).unwrap_or_default().into();
            }
            if about.is_empty() {
                unsaid.push(format!("{command}: {path}"));
            }
            let missing = if may_miss { "; *may be left out*" } else { "" };
            let _ = writeln!(page, "| `{path}` | {kind}{missing} | {} |", about.replace('|', "\\|"));
        }
    }
    assert!(unsaid.is_empty(), "nothing is said about {}: {unsaid:#?}", unsaid.len());
    let file = repository().join("docs/json.md");
    if std::env::var_os("IDLEWISE_WRITE_DOCS").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(written == page, "docs/json.md is not what the types say: IDLEWISE_WRITE_DOCS=1 writes it");
}

/// The members that a value has, as the page writes them; members of an object of any names are left out.
fn paths(value: &Value, prefix: &str, objects: &BTreeSet<&str>, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) if !objects.contains(prefix) => {
            for (name, value) in members {
                let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                paths(value, &path, objects, found);
                found.insert(path);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| paths(value, &format!("{prefix}[]"), objects, found)),
        _ => {}
    }
}

#[test]
fn what_is_printed_is_what_the_page_says() {
    let types = types();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (trace, state) = (path("t.csv"), path("state"));
    let written = json(&[
        "trace", "synth", "--load", "random", "--think", "100ms", "--for", "10min", "--seed", "5", "--out", &trace,
        "--json",
    ]);
    let mut outputs = vec![
        ("trace convert, trace cut, trace synth", written),
        ("idle", json(&["idle", &trace, "--json"])),
        ("tune", json(&["tune", &trace, "--mean-slowdown", "1ms", "--max-slowdown", "50ms", "--json"])),
        (
            "tune",
            json(&[
                "tune",
                &trace,
                "--mean-slowdown",
                "1ms",
                "--p99-slowdown",
                "9ms",
                "--max-slowdown",
                "50ms",
                "--shaped",
                "--json",
            ]),
        ),
        (
            "simulate",
            json(&[
                "simulate",
                &trace,
                "--policy",
                "waiting",
                "--idle-wait",
                "50ms",
                "--request-size",
                "64KiB",
                "--json",
            ]),
        ),
        ("simulate --grid", json(&["simulate", &trace, "--grid", "64KiB,1MiB", "10ms..100ms", "--json"])),
        ("simulate --service", json(&["simulate", &trace, "--service", "--disk-size", "1TB", "--json"])),
        ("compare", json(&["compare", &trace, "--json"])),
        ("sample", json(&["sample", &trace, "--json"])),
        ("trace info", json(&["trace", "info", &trace, "--json"])),
        ("trace stats", json(&["trace", "stats", &trace, "--json"])),
    ];
    let ran = path("run.json");
    assert!(run(&["run", "--quiet", "--json", &ran, "true"]).status.success());
    outputs.push(("run", serde_json::from_slice(&std::fs::read(&ran).unwrap()).unwrap()));
    // Without root there is no disk to scrub.
    if let Some(disk) = Loop::of_size(&folder.path().join("disk"), MIB, &[]) {
        let scrub = ["scrub", disk.path(), "--state-dir", &state, "--json", "--quiet"];
        outputs.push(("scrub", json(&[&scrub[..], &PACE].concat())));
        outputs.push(("status", json(&["status", "--state-dir", &state, "--json"])));
    }
    for (command, output) in &outputs {
        let (_, file, name, _) = PRINTED.iter().find(|(name, ..)| name == command).unwrap();
        let lines = lines(&types, file, name);
        let objects: BTreeSet<&str> =
            lines.iter().filter(|line| line.kind == "object").map(|line| &*line.path).collect();
        let leaves =
            objects.iter().copied().filter(|path| !lines.iter().any(|line| line.path.starts_with(&format!("{path}."))));
        let leaves: BTreeSet<&str> = leaves.chain(["idlewise"]).collect();
        let mut printed = BTreeSet::new();
        let values = output.as_array().map_or_else(|| vec![output], |list| list.iter().collect());
        values.into_iter().for_each(|value| paths(value, "", &leaves, &mut printed));
        printed.remove("idlewise");
        let said: BTreeSet<String> = lines.iter().map(|line| line.path.clone()).collect();
        let unsaid: Vec<_> = printed.difference(&said).collect();
        assert!(unsaid.is_empty(), "{command} prints what the page does not say: {unsaid:?}");
        // What is always there, at the top.
        let missing =
            lines.iter().filter(|line| !line.may_miss && !line.path.contains('.') && !printed.contains(&line.path));
        let missing: Vec<_> = missing.map(|line| &line.path).collect();
        assert!(missing.is_empty(), "{command} does not print {missing:?}");
    }
    assert!(run(&["trace", "formats", "--json"]).status.success());
}
