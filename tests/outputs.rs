//! What a command writes replaces nothing that it reads.

mod common;

use std::fs;
use std::path::Path;

use common::{idlewise, run, stderr};

const LINES: &str = "0,hm,0,Read,0,4096,100\n500000,hm,0,Write,4096,4096,100\n900000,hm,0,Read,8192,4096,100\n";

/// In each command F stands for the folder.
const REFUSED: &[&str] = &[
    "trace convert F/a.csv --out F/a.csv",
    "trace convert F/a.csv --out F/./hard.csv",
    "trace convert F/traces --out F/traces/b.csv",
    "trace convert F/x.hm_0.csv --by-volume --out F/x.csv",
    "trace cut F/a.csv --from 10ms --out F/a.csv",
    "trace cut F/sda --until 1ms --format msr --out F/sda.blktrace.1",
    "idle F/sda --report F/sda.blktrace.0",
    "tune F/sda --mean-slowdown 1ms --max-slowdown 50ms --out F/sda.blktrace.1",
    "sample F/sda --out F/sda.blktrace.0",
    "idle F/a.csv F/sda --report F/sda.blktrace.0",
    "compare F/a.csv --train F/sda --report F/sda.blktrace.0",
    "trace cut - --until 1s --out F/a.csv --format msr",
    "trace convert - --out F/hard.csv",
    "tune F/a.csv --mean-slowdown 1ms --max-slowdown 50ms --out F/new --report F/dangling",
    "tune F/a.csv --mean-slowdown 1ms --max-slowdown 50ms --out F/dangling --report F/traces/dangling",
    "trace cut F/a.csv --until 10ms --out F/link.csv",
    "trace merge F/a.csv F/traces/b.csv --out F/traces/b.csv",
    "trace stats F/a.csv --report F/a.csv",
    "idle F/a.csv --report F/a.csv",
    "idle F/traces --report F/traces/b.csv",
    "idle F/a.csv --disk F/disk.toml --report F/disk.toml",
    "tune F/traces --mean-slowdown 1ms --max-slowdown 50ms --out F/traces/b.csv",
    "tune F/a.csv --mean-slowdown 1ms --max-slowdown 50ms --out F/new --report F/new",
    "tune F/a.csv --mean-slowdown 1ms --max-slowdown 50ms --out F/new --report F/traces/../new",
    "tune F/x.hm_0.csv --by-volume --mean-slowdown 1ms --max-slowdown 50ms --out F/x.csv",
    "simulate F/a.csv --plan F/plan.toml --report F/plan.toml",
    "compare F/a.csv --train F/traces/b.csv --report F/traces/b.csv",
    "reliability F/a.csv --plan F/plan.toml --report F/plan.toml",
    "sample F/a.csv --out F/a.csv",
    "probe F/disk.img --out F/disk.img",
    "probe F/disk.img --report F/disk.img",
];

fn contents(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = entries
        // A link to nothing has nothing in it.
        .flat_map(|path| {
            if path.is_dir() { contents(&path) } else { vec![(path.clone(), fs::read(&path).unwrap_or_default())] }
        })
        .collect();
    found.sort();
    found
}

#[test]
fn no_result_replaces_what_is_read() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("traces")).unwrap();
    for name in ["a.csv", "x.hm_0.csv", "traces/b.csv"] {
        fs::write(path(name), LINES).unwrap();
    }
    fs::hard_link(path("a.csv"), path("hard.csv")).unwrap();
    let link = |to, name| std::os::unix::fs::symlink(to, path(name)).unwrap();
    link("a.csv", "link.csv");
    link("new", "dangling");
    link("../dangling", "traces/dangling");
    // What is refused is not looked at.
    for name in ["sda.blktrace.0", "sda.blktrace.1"] {
        fs::write(path(name), name).unwrap();
    }
    fs::write(path("disk.img"), vec![7; 8 << 20]).unwrap();
    fs::write(path("disk.toml"), idlewise::disk::DiskModel::ultrastar_15k450().to_toml()).unwrap();
    let of = |command: &str| command.replace('F', folder.path().to_str().unwrap());
    let plan = of("tune F/a.csv --mean-slowdown 1ms --max-slowdown 50ms --out F/plan.toml");
    let planned = run(&plan.split(' ').collect::<Vec<_>>());
    assert!(planned.status.success(), "{}", stderr(&planned));
    let before = contents(folder.path());
    for command in REFUSED {
        let arguments = of(command);
        let mut command = idlewise(&arguments.split(' ').collect::<Vec<_>>());
        let output = command.stdin(fs::File::open(path("a.csv")).unwrap()).output().unwrap();
        let command = arguments;
        assert_eq!(output.status.code(), Some(64), "{command}: {}", stderr(&output));
        assert!(stderr(&output).contains("would be replaced"), "{command}: {}", stderr(&output));
        assert!(contents(folder.path()) == before, "{command}");
    }
    // Beside what is read there is room.
    let beside = of("trace convert F/traces --out F/traces/new.csv");
    assert!(run(&beside.split(' ').collect::<Vec<_>>()).status.success());
}
