//! The daemon's page in a real browser: what it shows, at any width, light and dark, without script, and to whoever cannot see it.

#[path = "common/chromium.rs"]
mod chromium;
mod common;
#[path = "common/web.rs"]
#[allow(dead_code, reason = "not all of it is used here")]
mod web;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use chromium::Page;
use common::bench::{Bench, MIB};
use idlewise::Nanos;
use idlewise::report::{FleetVolume, fleet_page};
use serde_json::{Value, json};
use web::{Served, asked, until};

/// The rules of axe-core; `None`, said aloud, where they are not there.
fn axe() -> Option<String> {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/oracle/bin/python");
    let script = "import axe_core_python, os; print(os.path.dirname(axe_core_python.__file__))";
    let found = Command::new(python).args(["-c", script]).output().ok().filter(|output| output.status.success());
    let read =
        found.and_then(|output| fs::read_to_string(Path::new(common::stdout(&output).trim()).join("axe.min.js")).ok());
    if read.is_none() {
        eprintln!("SKIPPED: it needs axe-core (tests/oracle/setup.sh)");
    }
    read
}

#[test]
fn root_the_page_can_be_read_by_everyone() {
    let Some(axe) = axe() else { return };
    let Some(bench) = Bench::new(16 * MIB, std::slice::from_ref(&(5000..5003)), true) else { return };
    let folder = tempfile::tempdir().unwrap();
    let Some(mut page) = Page::open(folder.path()) else { return };
    let config = format!("[[disk]]\nmatch = \"{}\"\n[[disk]]\nmatch = \"*\"\nignore = true\n", bench.path());
    fs::write(folder.path().join("idlewise.toml"), config).unwrap();
    let served = Served::begin(folder.path());
    until("verified", || {
        let (_, metrics) = asked(served.port, "GET /metrics", "localhost")?;
        metrics.contains("state=\"complete\"} 1").then_some(())
    });
    let name = bench.path().trim_start_matches("/dev/");
    let home = format!("http://localhost:{}", served.port);
    for address in [format!("{home}/"), format!("{home}/disks/{name}")] {
        for (width, scheme) in [(1100, "light"), (390, "dark"), (390, "light"), (1100, "dark")] {
            page.shown(width, scheme);
            page.load(&address);
            let text = page.run("document.body.innerText").as_str().unwrap().to_string();
            assert!(text.contains(name) && text.contains("3 of them new"), "{address}: {text}");
            let wide = page.run("document.documentElement.scrollWidth").as_u64().unwrap();
            assert!(wide <= u64::from(width), "{address} at {width}: {wide}");
            page.run(&axe);
            let found = page.run(
                "axe.run().then(found => found.violations.filter(one => ['serious', 'critical'].includes(one.impact)))",
            );
            let told = |one: &Value| format!("{}: {}", one["id"], one["nodes"][0]["html"]);
            let found: Vec<String> = found.as_array().unwrap().iter().map(told).collect();
            assert!(found.is_empty(), "{address} at {width}, {scheme}: {found:#?}");
        }
    }
    // What is verified is all of it in the end, and nobody used it.
    page.load(&format!("{home}/disks/{name}"));
    let widths = "[...document.querySelectorAll('.map .done')].map(one => one.getAttribute('width') * one.getAttribute('fill-opacity'))";
    assert_eq!(page.run(&format!("Math.round({widths}.reduce((sum, width) => sum + width, 0))")), json!(1000));
    // It follows what happens, and asks nobody else.
    page.load(&home);
    let before = page.run("document.body.innerText");
    let output = common::run(&[
        "pause",
        "--why",
        "a test of the page",
        "--socket",
        folder.path().join("control").to_str().unwrap(),
    ]);
    assert!(output.status.success(), "{}", common::stderr(&output));
    until("seen", || {
        let text = page.run("document.body.innerText").as_str().unwrap().to_string();
        text.contains("a test of the page").then_some(())
    });
    assert_ne!(page.run("document.body.innerText"), before);
    let others: Vec<&String> = page.asked.iter().filter(|asked| !asked.starts_with(&home)).collect();
    assert!(others.is_empty() && page.asked.len() > 8, "{others:?}");
    // Without script it is a page all the same.
    page.ask("Emulation.setScriptExecutionDisabled", json!({"value": true}));
    page.load(&home);
    page.ask("Emulation.setScriptExecutionDisabled", json!({"value": false}));
    assert!(page.run("document.body.innerText").as_str().unwrap().contains("a test of the page"));
}

/// The page of a fleet: its table is sorted by a click, up and down, and searched.
#[test]
fn the_table_of_a_fleet_is_sorted_and_searched() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut page) = Page::open(folder.path()) else { return };
    let volume = |number: u64| FleetVolume {
        volume: format!("vol{number}"),
        requests: Some(number * 7 % 100),
        full_pass_s: (number != 3).then_some(number as f64 * 1000.0),
        error: (number == 3).then(|| "no idle time: none".into()),
        ..FleetVolume::default()
    };
    let volumes: Vec<_> = (1..=120).map(volume).collect();
    let file = folder.path().join("fleet.html");
    fs::write(&file, fleet_page(&volumes, &BTreeMap::new(), Nanos::from_secs(60_000)).html()).unwrap();
    for (width, scheme) in [(1100, "light"), (390, "dark")] {
        page.shown(width, scheme);
        page.load(&format!("file://{}", file.display()));
        let wide = page.run("document.documentElement.scrollWidth").as_u64().unwrap();
        assert!(wide <= u64::from(width), "at {width}: {wide}");
    }
    let mut shown = |script: &str| {
        let rows = "[...document.querySelector('table.listing').tBodies[0].rows].filter(row => !row.hidden)";
        page.run(&format!("(() => {{ {script}; return {rows}.map(row => row.cells[0].textContent).join(' ') }})()"))
            .as_str()
            .unwrap()
            .to_string()
    };
    let click = |column: u64| format!("document.querySelectorAll('table.listing th button')[{column}].click()");
    assert!(shown("").starts_with("vol1 vol2 vol3"));
    // By number; what has none is last.
    let up = shown(&click(2));
    assert!(up.starts_with("vol1 vol2 vol4") && up.ends_with("vol120 vol3"), "{up}");
    let down = shown(&click(2));
    assert!(down.starts_with("vol3 vol120 vol119"), "{down}");
    assert!(shown(&click(0)).starts_with("vol1 vol2 vol3"), "names are sorted as people do");
    let search = |words: &str| {
        format!(
            "const search = document.querySelector('input.listing'); search.value = '{words}'; search.dispatchEvent(new Event('input'))"
        )
    };
    assert_eq!(shown(&search("NO idle")), "vol3");
    assert_eq!(page.run("document.querySelector('output').textContent"), json!("1 of 120"));
}
