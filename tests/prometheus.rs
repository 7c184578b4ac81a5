//! Metrics and alerts of the daemon, as Prometheus takes them.

mod common;

#[path = "common/web.rs"]
mod web;

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::bench::{Bench, MIB};
use serde_json::Value;
use web::{Ends, Served, asked, listener, until};

/// A program of Prometheus; `None`, said aloud, where it is not there.
fn program(name: &str) -> Option<PathBuf> {
    let target =
        PathBuf::from(env!("CARGO_BIN_EXE_idlewise")).parent()?.parent()?.join("prometheus/usr/bin").join(name);
    let found = target.exists().then_some(target);
    if found.is_none() {
        eprintln!("SKIPPED: it needs Prometheus (tests/prometheus/fetch.sh)");
    }
    found
}

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn alerts_say_what_they_should() {
    let Some(promtool) = program("promtool") else { return };
    let folder = tempfile::tempdir().unwrap();
    for file in ["packaging/prometheus/idlewise.rules.yml", "tests/prometheus/alerts.yml"] {
        let file = project().join(file);
        fs::copy(&file, folder.path().join(file.file_name().unwrap())).unwrap();
    }
    for arguments in [["check", "rules", "idlewise.rules.yml"], ["test", "rules", "alerts.yml"]] {
        let output = Command::new(&promtool).args(arguments).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{}{}", common::stdout(&output), common::stderr(&output));
    }
}

/// What the dashboard and the alerts ask for.
fn expressions() -> Vec<String> {
    let board = fs::read_to_string(project().join("packaging/prometheus/idlewise-dashboard.json")).unwrap();
    let board: Value = serde_json::from_str(&board).unwrap();
    let panels = board["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let of = |target: &Value| target["expr"].as_str().unwrap().replace("$job", ".*").replace("$instance", ".*");
    targets.map(of).collect()
}

#[test]
fn root_prometheus_reads_the_metrics() {
    let (Some(promtool), Some(prometheus)) = (program("promtool"), program("prometheus")) else { return };
    let Some(bench) = Bench::new(16 * MIB, &[], true) else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let config = format!(
        "[[disk]]\nmatch = \"{}\"\n[[disk]]\nmatch = \"*\"\nignore = true\n[web]\nhosts = [\"store1\"]\n",
        bench.path()
    );
    fs::write(at("idlewise.toml"), config).unwrap();
    let served = Served::begin(folder.path());
    let port = served.port;
    let ask = |request: &str, host: &str| asked(port, request, host);
    let (_, metrics) = until("verifying", || {
        ask("GET /metrics", "localhost")
            .filter(|(status, text)| *status == 200 && text.contains("state=\"running\"} 1"))
    });
    let mut check =
        Command::new(promtool).args(["check", "metrics"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    check.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let output = check.wait_with_output().unwrap();
    assert!(output.status.success() && common::stderr(&output).is_empty(), "{}", common::stderr(&output));

    // The same in a file, for who opens no port.
    let output = common::run(&["metrics", "--output", &at("idlewise.prom"), "--socket", &at("control")]);
    assert!(output.status.success(), "{}", common::stderr(&output));
    let names =
        |text: &str| text.lines().filter_map(|line| Some(line.split_once(' ')?.0.to_string())).collect::<Vec<_>>();
    assert_eq!(names(&fs::read_to_string(at("idlewise.prom")).unwrap()), names(&metrics));
    assert!(metrics.contains("le=\"+Inf\"") && metrics.contains("slowdown_seconds_bucket"), "{metrics}");

    // From the network it is only read, and by the names of this machine.
    let status = |request: &str, host: &str| ask(request, host).map(|(status, _)| status);
    assert_eq!((status("GET /", "127.0.0.1"), status("GET /", "store1:9927")), (Some(200), Some(200)));
    assert_eq!((status("GET /", "evil.example"), status("GET /metrics", "[::2]")), (Some(421), Some(421)));
    assert_eq!(status("POST /v1/pause", "localhost"), Some(403));

    // Whoever sends nothing keeps nobody else out for long, and leaves nothing behind.
    let mut held = Vec::new();
    for _ in 0..4 {
        let idle: Vec<_> = (0..1000).filter_map(|_| TcpStream::connect(("127.0.0.1", port)).ok()).collect();
        assert!(idle.len() > 500, "{}", idle.len());
        for order in ["pause", "resume"] {
            let output = common::run(&[order, "--socket", &at("control")]);
            assert!(output.status.success(), "beside them: {}", common::stderr(&output));
        }
        drop(idle);
        until("answered again", || ask("GET /metrics", "localhost").filter(|(status, _)| *status == 200));
        held.push(served.memory_kib());
    }
    let grown = held[3].saturating_sub(held[0]);
    assert!(grown < 4096, "3,000 connections later it holds {grown} KiB more: {held:?}");
    until("closed", || (served.open_files() < 40).then_some(()));

    let (free, its_port) = listener();
    drop(free);
    let config = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs: [{{job_name: idlewise, static_configs: [{{targets: ['127.0.0.1:{port}']}}]}}]\n"
    );
    fs::write(at("prometheus.yml"), config).unwrap();
    let files = [format!("--config.file={}", at("prometheus.yml")), format!("--storage.tsdb.path={}", at("data"))];
    let mut server = Command::new(prometheus);
    server.args(files).arg(format!("--web.listen-address=127.0.0.1:{its_port}"));
    let _server = Ends(server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let query = |expression: &str| {
        let escaped: String = expression.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let (_, body) = asked(its_port, &format!("GET /api/v1/query?query={escaped}"), "localhost")?;
        serde_json::from_str::<Value>(&body).ok()
    };
    until("scraped", || query("up").filter(|answer| answer["data"]["result"][0]["value"][1] == "1"));
    for expression in expressions() {
        // Rates need two values; a forecast is known only after an hour.
        let found = until(&expression, || {
            let answer = query(&expression)?;
            assert_eq!(answer["status"], "success", "{expression}: {answer}");
            let count = answer["data"]["result"].as_array()?.len();
            (count > 0).then_some(count)
        });
        assert!(found > 0, "{expression}");
    }
}
