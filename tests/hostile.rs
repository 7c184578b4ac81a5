//! Files made to hurt: every command that reads traces ends on each of them, in little memory, and says what was wrong in a line.

mod common;
#[path = "common/crafted.rs"]
mod crafted;
#[path = "common/hostile_files.rs"]
mod hostile_files;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

use common::stderr;
use hostile_files::{Hostile, TABLE, files, names, repeated, slow, table, tar};

/// Address space of a command, in KiB: as documented, and what its code and its threads' stacks take.
const MEMORY: u32 = 640 << 10;
/// Blocks of 512 bytes of any file that it writes.
const FILE: u32 = 64 << 11;
/// Files that it has open.
const FILES: u32 = 256;
/// Seconds; far more than any takes on a busy machine.
const TIME: &str = "120";
/// What a command may end with: well, with an error, with an answer that is no, or with a wrong argument.
const CODES: [i32; 4] = [0, 1, 2, 64];

/// Every command that reads traces; F stands for the file, O for a file to write.
const COMMANDS: &[&str] = &[
    "trace info F",
    "trace head F",
    "trace stats F",
    "trace stats F --by-volume --json",
    "trace convert F --out O.parquet",
    "trace convert F --out O.spc",
    "trace cut F --from 1us --out O.csv",
    "trace merge F F --by-file --out O.iolog",
    "idle F",
    "trace cut F --at-gaps 1s --out O.csv",
    "idle F --report O.html",
    "idle F --by-volume",
    "simulate F --policy fixed-delay --delay 16ms --request-size 64KiB --budget 1ms",
    "simulate F --policy waiting --idle-wait 1ms --request-size 64KiB --service-time 1ms",
    "simulate F --policy waiting --idle-wait 1ms --request-size 64KiB --parity",
    "compare F",
    "explore F --report O.html",
    "tune F --mean-slowdown 1ms --max-slowdown 50ms",
    "tune F --mean-slowdown 1ns --max-slowdown 50ms",
    "tune F --mean-slowdown 1ms --max-slowdown 50ms --any-moment",
    "reliability F",
    "reliability F --policy waiting --idle-wait 1ms --request-size 64KiB",
    "sample F -o O.toml",
    "sample F --interval 1ns",
];

fn run(folder: &Path, command: &str, file: &Hostile) -> Output {
    let path = |word: &str| match word.strip_prefix('O') {
        _ if word == "F" => folder.join(file.name).display().to_string(),
        Some(end) => folder.join(format!("out{end}")).display().to_string(),
        None => word.to_string(),
    };
    let limits = format!("ulimit -v {MEMORY} -f {FILE} -n {FILES} -c 0; exec \"$@\"");
    Command::new("timeout")
        .args(["-s", "KILL", TIME, "bash", "-c", &limits, "bash", env!("CARGO_BIN_EXE_idlewise")])
        .args(command.split(' ').map(path))
        .args(file.options)
        // As many threads as on a small machine: each reserves addresses.
        .envs([("RAYON_NUM_THREADS", "2"), ("MALLOC_ARENA_MAX", "2")])
        .output()
        .expect("the command starts")
}

fn check(file: &Hostile, commands: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(file.name), &file.bytes).unwrap();
    for command in commands {
        let output = run(folder.path(), command, file);
        let (code, said) = (output.status.code(), stderr(&output));
        let what = format!("{command} of {}: {}, {said}", file.name, output.status);
        assert!(code.is_some_and(|code| CODES.contains(&code)), "{what}");
        assert!(!said.contains("panicked"), "{what}");
        assert!(said.lines().all(|line| line.len() < 2_000), "{what}");
        if file.error.is_empty() && command.starts_with("trace info") {
            assert_eq!(code, Some(0), "{what}");
        }
        // The first requests may well be whole.
        let may_pass = command.starts_with("trace head") && code == Some(0);
        if !file.error.is_empty() && !may_pass {
            let last = said.lines().last().unwrap_or_default();
            // What is kept of each volume may be too much before that.
            let of_each = command.starts_with("trace stats F --by-volume");
            let said_why = last.contains(file.error) || of_each && last.contains("too many volumes for the memory");
            assert!(code != Some(0) && last.starts_with("idlewise: ") && said_why, "{what}");
        }
    }
}

#[test]
fn every_command_ends_on_every_hostile_file() {
    let (files, next) = (files(), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from).min(8) {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let began = std::time::Instant::now();
                    check(file, COMMANDS);
                    eprintln!("{}: {:.1?}", file.name, began.elapsed());
                }
            });
        }
    });
}

/// Files on which some commands took minutes, or gigabytes, each with those.
#[test]
fn what_took_minutes_takes_seconds() {
    slow().iter().for_each(|(file, commands)| check(file, commands));
}

/// Plans and models of which a few letters make a table of their own.
#[test]
fn tables_without_end_take_bounded_memory() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.csv"), "0,0,4096,R\n").unwrap();
    let trace = folder.path().join("t.csv").display().to_string();
    let long = |one: &str| format!("version = 2\na=[{}]", one.repeat((15 << 20) / one.len()));
    // The largest of those that are not refused for that, too.
    let most = [
        format!("version = 2\na=[{}]", "{a.b.c.d.e.f.g=1},".repeat(25_000)),
        format!("version = 2\na=[{}]", "1,".repeat(1_500_000)),
        (0..500_000).map(|at| format!("a{at}=1\n")).collect(),
        "\n".repeat(1_500_000),
    ];
    let long = [long("{a.b.c.d.e.f.g=1},"), long("[],"), long("{},"), long("1,"), long("\n")];
    for text in long.into_iter().chain(most) {
        let file = Hostile { name: "x.toml", bytes: text.into_bytes(), options: &[], error: "" };
        std::fs::write(folder.path().join(file.name), &file.bytes).unwrap();
        for command in [format!("idle {trace} --disk F"), format!("simulate {trace} --plan F")] {
            let output = run(folder.path(), &command, &file);
            let said = stderr(&output);
            assert!([Some(1), Some(64)].contains(&output.status.code()), "{command}: {} {said}", output.status);
            assert!(said.lines().count() <= 2 && !said.contains("panicked"), "{command}: {said}");
        }
    }
}

/// What is kept of each WRITE, as parity updates need it, counts as what is kept of idle intervals does.
#[test]
fn writes_of_one_busy_period_take_bounded_memory() {
    let folder = tempfile::tempdir().unwrap();
    let line = b"1,4096,512,W\n";
    let file = Hostile {
        name: "writes.csv.gz",
        bytes: repeated(&line.repeat(10_000), 600),
        options: &["--columns", TABLE],
        error: "",
    };
    std::fs::write(folder.path().join(file.name), &file.bytes).unwrap();
    let simulate = "simulate F --policy waiting --idle-wait 1ms --request-size 64KiB";
    assert_eq!(run(folder.path(), simulate, &file).status.code(), Some(0));
    let output = run(folder.path(), &format!("{simulate} --parity"), &file);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("half of the memory that is free"), "{}", stderr(&output));
}

#[test]
fn parts_of_a_trace_are_not_all_open_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let holes: String = (0..600u64).map(|at| format!("{},0,4096,R\n", at * 3_600_000_000_000)).collect();
    let file = Hostile { name: "holes.csv", bytes: holes.into_bytes(), options: &["--columns", TABLE], error: "" };
    std::fs::write(folder.path().join(file.name), &file.bytes).unwrap();
    let output = run(folder.path(), "trace cut F --at-gaps 30min --out O.csv", &file);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 601);

    let path = folder.path().join("many.csv.gz");
    std::fs::write(&path, names(901, |at| format!("h{at}"))).unwrap();
    let out = folder.path().join("volumes").join("v.csv");
    std::fs::create_dir(out.parent().unwrap()).unwrap();
    let paths = [path.display().to_string(), out.display().to_string()];
    let output = common::run(&["trace", "convert", &paths[0], "--by-volume", "--out", &paths[1]]);
    assert!(stderr(&output).contains("more than 900 files"), "{}", stderr(&output));
    assert_eq!(std::fs::read_dir(out.parent().unwrap()).unwrap().count(), 0);
}

#[test]
fn temporary_files_keep_to_their_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("t.tar");
    std::fs::write(&path, tar(std::iter::once(("hm.csv".into(), table(5))))).unwrap();
    let read = |limit: &str| {
        let path = path.display().to_string();
        common::run(&["trace", "info", &path, "--columns", TABLE, "--spool-limit", limit])
    };
    assert!(read("1KiB").status.success());
    let refused = read("10B");
    assert!(stderr(&refused).contains("more than 10 B of temporary files in /"), "{}", stderr(&refused));
    assert_eq!(refused.status.code(), Some(1));
}

/// What a terminal would obey, and what would pass for a line of ours.
const NAME: &str = "a\u{1b}]0;PWNED\u{7}\u{1b}[2J\ridlewise: all is well\u{9b}1m\u{202e}<b>";

#[test]
fn no_name_reaches_a_terminal_or_a_page_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let text: String = (0..50u64)
        .map(|at| {
            format!("{},{NAME},{},Read,{at}000448,4096,100\n", 128_166_372_003_061_629 + at * at * 90_000, at % 2)
        })
        .collect();
    let plain = folder.path().join(format!("{NAME}.csv"));
    std::fs::write(&plain, &text).unwrap();
    let archive = folder.path().join("t.tar");
    let members = [(format!("{NAME}.csv"), text.into_bytes()), (format!("{NAME}.txt"), b"no trace".to_vec())];
    std::fs::write(&archive, tar(members.into_iter())).unwrap();
    let [plain, archive] = [plain, archive].map(|path| path.display().to_string());
    let page = folder.path().join("page.html").display().to_string();
    let goal = ["--mean-slowdown", "1ms", "--max-slowdown", "50ms"];
    let one = ["--volume", &format!("{NAME}_0")].map(String::from);
    let mut commands: Vec<Vec<&str>> = Vec::new();
    for file in [&*plain, &*archive] {
        for json in [&[][..], &["--json"]] {
            commands.push([&["trace", "info", file], json].concat());
            commands.push([&["trace", "head", file], json].concat());
            commands.push([&["idle", file, "--report", &page], json].concat());
            commands.push([&["tune", file, "--report", &page], &goal[..], json].concat());
            commands.push([&["explore", file, "--volume", &one[1], "--report", &page], json].concat());
            commands.push([&["compare", file], json].concat());
            commands.push([&["sample", file, "--report", &page], json].concat());
        }
        // Errors: of a volume that is not there, of a record, of a file, of what was typed.
        commands.push(vec!["idle", file, "--volume", NAME]);
        commands.push(vec!["trace", "info", file, "--columns", TABLE, "--skip-bad"]);
        commands.push(vec!["trace", "convert", file, "--out", NAME]);
        commands.push(vec!["idle", file, NAME]);
        commands.push(vec!["idle", file, "--policy", NAME]);
    }
    // What ends a line in a name begins no line of ours.
    let forged = folder.path().join("x\nidlewise: all is well");
    std::fs::copy(&plain, &forged).unwrap();
    let model = folder.path().join("model.toml").display().to_string();
    let named =
        idlewise::disk::DiskModel::ultrastar_15k450().to_toml().replacen("Hitachi", "\\nidlewise: all is well", 1);
    std::fs::write(&model, named).unwrap();
    let forged = forged.to_str().unwrap();
    for command in
        [&["idle"][..], &["trace", "info"], &["trace", "stats"], &["sample"], &["explore", "--volume", &one[1]]]
    {
        commands.push([command, &[forged]].concat());
    }
    for command in [&["tune"][..], &["simulate", "--policy", "back-to-back"], &["compare"]] {
        let more: &[&str] = if command[0] == "tune" { &goal } else { &[] };
        commands.push([command, &[forged, "--disk", &model], more].concat());
    }
    let obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    for command in commands {
        let _ = std::fs::remove_file(&page);
        let output = common::run(&command);
        let page = std::fs::read_to_string(&page).unwrap_or_default();
        assert_eq!(page.is_empty(), !command.contains(&"--report"), "{command:?}: {}", stderr(&output));
        for shown in [common::stdout(&output), stderr(&output), page] {
            assert!(!shown.contains(obeyed), "{command:?}: {shown:?}");
            assert!(!shown.lines().any(|line| line.starts_with("idlewise: all is well")), "{command:?}: {shown}");
            assert!(!shown.contains("<html") || !shown.contains("202e}<b>"), "{command:?}: {shown}");
        }
    }
}
