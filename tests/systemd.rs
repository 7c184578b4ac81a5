//! The units of the packages, under a real systemd in a container.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use common::bench::{Bench, MIB};
use common::{stderr, stdout};

fn units() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd")
}

/// Whether there is a systemd, of Debian; else it is said.
fn has_systemd() -> bool {
    let is_there = ["/lib/systemd/systemd", "/usr/bin/dpkg-deb"].iter().all(|path| Path::new(path).exists());
    if !is_there {
        eprintln!("SKIPPED: it needs systemd and dpkg");
    }
    is_there
}

/// Two versions of the .deb, as `make dist` makes it but for the command, which is the one that is tested.
fn packages(folder: &Path, out: &Path) {
    let tree = folder.join("tree");
    fs::create_dir_all(out).unwrap();
    fs::create_dir_all(tree.join("usr/bin")).unwrap();
    let run = |command: &mut Command| {
        let output = command.env("SOURCE_DATE_EPOCH", "0").env("COMPRESSION", "gzip").output().unwrap();
        assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    };
    run(Command::new("strip").arg("-o").arg(tree.join("usr/bin/idlewise")).arg(env!("CARGO_BIN_EXE_idlewise")));
    let packaging = units().join("..");
    run(Command::new(packaging.join("files.sh")).arg(&tree));
    for version in ["1.0", "1.1"] {
        let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
        run(Command::new(packaging.join("deb.sh")).arg(&tree).args([version, architecture]).arg(out));
    }
}

/// As systemd itself rates it, in tenths: 0 is no exposure, 100 is all of it.
#[test]
fn units_expose_little() {
    if !has_systemd() {
        return;
    }
    for (unit, most) in [("idlewised.service", 17), ("idlewise-notify.service", 35)] {
        let threshold = format!("--threshold={most}");
        let unit = units().join(unit);
        let arguments = ["security", "--offline=true", &threshold, "--no-pager", unit.to_str().unwrap()];
        let output = Command::new("systemd-analyze").args(arguments).output().unwrap();
        assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    }
}

#[test]
fn root_the_service_lives_under_systemd() {
    if !has_systemd() {
        return;
    }
    let Some(bench) = Bench::new(64 * MIB, std::slice::from_ref(&(5000..5002)), true) else { return };
    let Some(used) = Bench::new(64 * MIB, &[], true) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (files, out) = (folder.path().join("files"), folder.path().join("out.txt"));
    let put = |path: &str, text: &str| {
        let path = files.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let unit = |name: &str, text: &str| put(&format!("etc/systemd/system/{name}"), text);
    // It is a container here, and nobody waits half a minute for it.
    unit(
        "idlewised.service.d/test.conf",
        "[Unit]\nConditionVirtualization=\n[Service]\nRestartSec=1s\nExecStart=\nExecStart=/usr/bin/idlewise daemon --look-every 200ms\n",
    );
    unit("itest.target", "[Unit]\nWants=life.service\n");
    unit("life.service", &format!("[Service]\nType=oneshot\nExecStart=/life.sh {} {}\n", bench.path(), used.path()));
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/service");
    put("life.sh", &fs::read_to_string(here.join("life.sh")).unwrap());
    // As a mailer and a chat would take it.
    put("usr/sbin/sendmail", "#!/bin/sh\n[ \"$*\" = '-t -i' ] && cat >> /tmp/mail\n");
    put(
        "usr/local/bin/hook",
        "#!/bin/sh\nread -r line\necho \"$IDLEWISE_FAILTYPE $IDLEWISE_DEVICE $line\" >> /tmp/hook\n",
    );
    let told = "[notify]\nmail = [\"root\"]\ncommand = [\"/usr/local/bin/hook\"]\nwebhook = { url_file = \"/etc/idlewise/url\" }\n";
    put("etc/idlewise/url", "http://127.0.0.1:8099/hook\n");
    let config = told.to_string()
        + &format!(
            "[defaults]\nverify_every = \"1d\"\n[[disk]]\nmatch = \"{}\"\n[[disk]]\nmatch = \"{}\"\n[[disk]]\nmatch = \"*\"\nignore = true\n",
            bench.path(),
            used.path()
        );
    put("etc/idlewise/idlewise.toml", &config);
    packages(folder.path(), &files.join("packages"));
    let began = Instant::now();
    let output =
        Command::new(here.join("boot.sh")).args([&files, &out]).args([bench.path(), used.path()]).output().unwrap();
    let told = fs::read_to_string(&out).unwrap_or_default();
    if told.is_empty() && began.elapsed() < Duration::from_secs(10) {
        eprintln!("SKIPPED: no container can be made here: {}", stderr(&output));
        return;
    }
    let seen: BTreeMap<&str, &str> = told.lines().filter_map(|line| line.split_once(": ")).collect();
    let all = || format!("{told}\n{}{}", stdout(&output), stderr(&output));
    assert_eq!(seen.get("result"), Some(&"success"), "{}", all());
    for (step, expected) in [
        ("running", "yes"),
        ("page before it is wanted", "0"),
        ("may write", "Operation not permitted"),
        ("page", "1"),
        ("network orders", "403"),
        ("paused", "yes"),
        ("status of it", "\"state\":\"paused\""),
        ("resumed", "yes"),
        ("wrong file refused", "yes"),
        ("status of the file", "goes on with its configuration as it was before"),
        ("cannot be told", "yes"),
        ("messages are stuck", "yes"),
        ("told later", "yes"),
        ("file read again", "yes"),
        ("goes on after a kill", "yes"),
        ("the same pass", "yes"),
        ("complete", "yes"),
        ("complete beside a load", "yes"),
        ("found", "\"lba\":5000,\"blocks\":2"),
        ("history", "1"),
        ("mailed", "yes"),
        ("mail says", "1"),
        ("commanded", "yes"),
        ("posted", "yes"),
        ("waiting", "0"),
        ("status", "1"),
        ("left running", "0"),
        ("started by who asks", "inactive"),
        ("started again", "yes"),
        ("page again", "1"),
        ("installed", "idlewise"),
        ("ready for another version", "yes"),
        ("upgraded", "yes"),
        ("passes kept", "1"),
        ("left running after the purge", "0"),
        ("left behind", ""),
    ] {
        assert_eq!(seen.get(step), Some(&expected), "{step}: {}", all());
    }
    let cost = seen["what it cost"].trim_start_matches("\"foreground_requests\":").split_once(",\"mean_slowdown_s\":");
    let (requests, mean_s) = cost.unwrap_or_else(|| panic!("{}", all()));
    // As many are seen first, so the goal is one of hundreds.
    assert!(requests.parse::<u32>().unwrap() > 300 && mean_s.parse::<f64>().unwrap() <= 1e-3, "{}", all());
    let slowed: Vec<u64> = seen["by slowdown"].split(',').map(|count| count.parse().unwrap()).collect();
    let sum = |counts: &[u64]| counts.iter().sum::<u64>();
    // The ninth is up to the maximum of 50 ms. A machine that others use as well may hold up a request of the emulated disk.
    assert!(sum(&slowed[9..]) * 100 <= sum(&slowed) && sum(&slowed) > 300, "{}", all());
    assert!(seen["metrics"].parse::<u32>().unwrap() >= 5, "{}", all());
}
