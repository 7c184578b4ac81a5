//! `idlewise run`: the command is as if it ran alone, but for when it runs.

mod common;

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::bench::{Bench, Loop, MIB, Mounted, Running, system};
use common::held::{PATIENCE, count, counting, in_memory, signal, until};
use common::{ends_within, idlewise, json, run, stderr, stdout};
use rustix::process::Signal;
use serde_json::Value;

#[test]
fn streams_folder_and_exit_code_are_the_commands_own() {
    let folder = tempfile::tempdir().unwrap();
    let mut command =
        idlewise(&["run", "--quiet", "--", "sh", "-c", "read a; echo \"$a $WORD $PWD\"; echo bad >&2; exit 7"]);
    command.env("WORD", "word").current_dir(folder.path()).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"line\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(stdout(&output), format!("line word {}\n", folder.path().display()));
    let told = stderr(&output);
    assert!(told.ends_with("bad\n"), "{told}");
    assert_eq!(output.status.code(), Some(7));
}

#[test]
fn what_ends_it_is_said_as_a_shell_does() {
    let code = |arguments: &[&str]| {
        let output = run(&[&["run", "--quiet"], arguments].concat());
        (output.status.code(), stderr(&output))
    };
    let (exit, told) = code(&["no-such-command-here"]);
    assert!(exit == Some(127) && told.ends_with("idlewise: no-such-command-here: no such command\n"), "{told}");
    // Where a folder of PATH may not be searched, or has another file of that name that is none.
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("no-such-command-here")).unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let output = idlewise(&["run", "--quiet", "no-such-command-here"]).env("PATH", path).output().unwrap();
    assert_eq!(output.status.code(), Some(127), "{}", stderr(&output));
    let (exit, told) = code(&["/etc/passwd"]);
    assert!(exit == Some(126) && told.contains("/etc/passwd: it cannot be executed: Permission denied"), "{told}");
    assert_eq!(code(&["--", "sh", "-c", "kill -9 $$"]).0, Some(128 + 9));
    assert_eq!(code(&["--", "sh", "-c", "kill -TERM $$"]).0, Some(128 + 15));
    let (exit, told) = code(&["--device", "/no/such/disk", "true"]);
    assert!(exit == Some(125) && told.contains("/no/such/disk: No such file"), "{told}");
    let (exit, told) = code(&["--device", "/proc/version", "true"]);
    assert!(exit == Some(125) && told.contains("does not tell on which disks it lies"), "{told}");
    // Options of the command are its own, also without the dashes.
    assert_eq!(code(&["sh", "-c", "exit 9", "--quiet"]).0, Some(9));
    for wrong in [
        vec![],
        vec!["--pid", "1", "true"],
        vec!["--unit", "a", "--pid", "1"],
        vec!["--mean", "1ms", "true"],
        vec!["--mean-slowdown", "0ms", "true"],
        vec!["--mean-slowdown", "2ms", "--max-slowdown", "1ms", "true"],
        vec!["--json", "-", "true"],
    ] {
        assert_eq!(code(&wrong).0, Some(64), "{wrong:?}");
    }
    assert_eq!(code(&["--unit", "a", "--memory-high", "1GiB"]).0, Some(64));
    let (exit, told) = code(&["--unit", "no-such-unit.service"]);
    assert!(exit == Some(125) && told.contains("no-such-unit.service"), "{told}");
    let (exit, told) = code(&["--pid", "2147483647"]);
    assert!(exit == Some(125) && told.contains("process 2147483647: no such process"), "{told}");
    let (exit, told) = code(&["--pid", &std::process::id().to_string()]);
    assert!(exit == Some(125) && told.contains("idlewise itself comes from it"), "{told}");
}

/// What a shell, and nohup, set for a command is so under idlewise as well.
#[test]
fn limits_and_ignored_signals_stay_as_they_were() {
    let show = "ulimit -n; ulimit -s; cat /proc/self/timerslack_ns; grep -E 'SigIgn|SigBlk' /proc/self/status";
    let script = |within: &str| format!("ulimit -S -n 200; trap '' HUP USR1; {within} sh -c \"{show}\"");
    let shown = |within: &str| {
        let output = Command::new("sh").args(["-c", &script(within)]).output().unwrap();
        let masked = |line: &str| match line.split_once(":\t") {
            // Signals from 32 on are the C library's own.
            Some((name, mask)) => format!("{name} {:x}", u64::from_str_radix(mask, 16).unwrap() & 0x7fff_ffff),
            None => line.into(),
        };
        stdout(&output).lines().map(masked).collect::<Vec<_>>()
    };
    let alone = shown("");
    assert!(alone[0] == "200" && alone.len() == 5, "{alone:?}");
    assert_eq!(shown(&format!("{} run --quiet --", env!("CARGO_BIN_EXE_idlewise"))), alone);
}

/// Whoever wants to hear of no child hears nothing, but idlewise does; and so it is in the command.
#[test]
fn who_ignores_the_end_of_children_gets_the_exit_code() {
    let idlewise = env!("CARGO_BIN_EXE_idlewise");
    let run = format!("{idlewise} run --quiet --");
    let script = format!("trap '' CHLD; {run} grep SigIgn /proc/self/status; {run} sh -c 'exit 7'; echo code $?");
    let output = ends_within(PATIENCE, Command::new("bash").args(["-c", &script]));
    let told = stdout(&output);
    let mask = told.lines().find_map(|line| line.strip_prefix("SigIgn:")).map(|mask| mask.trim().to_string());
    let mask = u64::from_str_radix(&mask.unwrap(), 16).unwrap();
    assert!(told.ends_with("code 7\n") && mask >> 16 & 1 == 1, "{told} {}", stderr(&output));
}

/// Two works of idlewise on one disk are nobody's foreground: each would earn what others then pay.
#[test]
fn root_works_on_one_disk_do_not_count_each_other() {
    let Some(bench) = Bench::new(1024 * MIB, &[], true) else { return };
    let pace = ["--request-size", "64KiB", "--idle-wait", "2ms", "--mean-slowdown", "100ms", "--for", "1min"];
    let scrub = bench.start(&[&pace[..], &["--max-slowdown", "1s"]].concat());
    let read = format!("timeout 60 dd if={} of=/dev/null bs=64k iflag=direct", bench.path());
    let limits = ["run", "--quiet", "--mean-slowdown", "100ms", "--max-slowdown", "1s", "--", "sh", "-c", &read];
    let command = Running::new(idlewise(&limits));
    let name = bench.path().trim_start_matches("/dev/");
    // What each of them has told last: foreground requests, and how much it has done.
    let read = |path: &Path| serde_json::from_slice::<Value>(&fs::read(path).ok()?).ok();
    let told = || {
        let scrub =
            read(Path::new(&format!("/run/idlewise/7-{}.note", name.trim_start_matches("loop")))).unwrap_or_default();
        let notes = fs::read_dir("/run/idlewise").unwrap().flatten().filter_map(|entry| read(&entry.path()));
        let disk = notes.map(|note| note["disks"][0].clone()).find(|disk| disk["name"] == name).unwrap_or_default();
        [
            [&scrub["run"]["foreground_requests"], &scrub["verified_bytes"]].map(Value::as_u64),
            [&disk["foreground_requests"], &disk["moved_bytes"]].map(Value::as_u64),
        ]
    };
    let begun = Instant::now();
    while told()[0][0].is_none() || (told()[1][0].is_none() && begun.elapsed() < Duration::from_secs(10)) {
        assert!(begun.elapsed() < PATIENCE, "{:?}", told());
        std::thread::sleep(Duration::from_millis(100));
    }
    // Until they have heard of each other.
    std::thread::sleep(Duration::from_secs(5));
    let before = told();
    std::thread::sleep(Duration::from_secs(5));
    let after = told();
    drop((scrub, command));
    if after[1][0].is_none() {
        eprintln!("SKIPPED: it needs control groups, version 2");
        return;
    }
    for (before, after) in before.iter().zip(&after) {
        assert!(before[0] == after[0] && before[1].unwrap() + MIB < after[1].unwrap(), "{before:?} {after:?}");
    }
}

/// What the kernel writes later holds a command back that fills pages, and is said to be in no account; a disk that was named holds it back
/// whoever uses it.
#[test]
fn root_what_is_written_later_is_said() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: a group needs root");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = Loop::of_size(&folder.path().join("disk"), 64 * MIB, &[]) else { return };
    let script = format!("dd if=/dev/zero of={} bs=1M count=40 2>/dev/null; sleep 3", disk.path());
    let json = folder.path().join("run.json");
    let arguments = ["run", "--device", disk.path(), "--json", json.to_str().unwrap(), "--", "sh", "-c", &script];
    let output = ends_within(PATIENCE, &mut idlewise(&arguments));
    let report: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    let told = stderr(&output);
    assert!(output.status.success() && report["disks"].as_array().unwrap().len() == 1, "{report} {told}");
    let known = report["writes_later_known"] == true;
    assert!(known || told.contains("what they cost others is in no account"), "{told}");
}

/// The disk's cache is flushed, and a journal written, by threads of the kernel which say for nobody whom: they would hold the command back, earn
/// what others then pay, and be in no account.
#[test]
fn root_what_is_flushed_for_the_command_is_its_own() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: loop devices need root");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for make in [&[][..], &["mkfs.ext4", "-q", "-E", "lazy_itable_init=0"], &["mkfs.xfs", "-q"]] {
        let name = make.first().copied().unwrap_or("raw");
        let Some(disk) = Loop::of_size(&folder.path().join(format!("{name}.disk")), 512 * MIB, &[]) else { return };
        let at = folder.path().join(name);
        let mounted = (!make.is_empty()).then(|| {
            system(make[0], &[&make[1..], &[disk.path()]].concat());
            Mounted::new(&[disk.path()], &at)
        });
        let script = match mounted {
            None => format!("dd if=/dev/zero of={} bs=4k count=150 oflag=direct,dsync 2>/dev/null", disk.path()),
            Some(_) => {
                let new = "dd if=/dev/zero of=$i bs=4k count=1 conv=fsync 2>/dev/null";
                format!("cd {} && i=0; while [ $i -lt 50 ]; do i=$((i+1)); {new}; done", at.display())
            }
        };
        let json = folder.path().join("run.json");
        let arguments = ["run", "--device", disk.path(), "--idle-wait", "1ms", "--json", json.to_str().unwrap()];
        let output = ends_within(PATIENCE, &mut idlewise(&[&arguments[..], &["--", "sh", "-c", &script]].concat()));
        let report: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
        if report["disks"][0]["monitor"] != "bpf" {
            eprintln!("SKIPPED: it needs BPF and control groups, version 2");
            return;
        }
        let others = report["disks"][0]["foreground_requests"].as_u64().unwrap();
        assert!(output.status.success() && others < 15, "{make:?}: {others} {report} {}", stderr(&output));
    }
}

/// A pipe that nobody reads keeps no command, and a file that cannot be written changes no exit code.
#[test]
fn what_idlewise_says_is_in_nobodys_way() {
    let folder = in_memory();
    let gone = folder.path().join("gone");
    fs::create_dir(&gone).unwrap();
    let (file, script) = (gone.join("run.json"), format!("sleep 1.5; rmdir {}; exit 7", gone.display()));
    let (reader, writer) = std::io::pipe().unwrap();
    let mut full = writer.try_clone().unwrap();
    rustix::fs::fcntl_setfl(&full, rustix::fs::OFlags::NONBLOCK).unwrap();
    while std::io::Write::write(&mut full, &[b'x'; 4096]).is_ok() {}
    rustix::fs::fcntl_setfl(&full, rustix::fs::OFlags::empty()).unwrap();
    let mut command = idlewise(&["run", "--json", file.to_str().unwrap(), "--", "sh", "-c", &script]);
    let mut child = command.stderr(writer).spawn().unwrap();
    let began = Instant::now();
    until("over", || child.try_wait().unwrap().is_some());
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert_eq!(child.wait().unwrap().code(), Some(7));
    drop((full, reader));
}

#[test]
fn signals_go_to_the_command() {
    let script = "trap 'echo usr1' USR1; trap 'echo hup; exit 5' HUP; trap 'echo int' INT; trap 'echo term; exit 3' TERM; \
        echo ready; while :; do sleep 0.02; done";
    for (first, second, expected, exit) in
        [(Signal::USR1, Signal::TERM, "ready\nusr1\nterm\n", 3), (Signal::INT, Signal::HUP, "ready\nint\nhup\n", 5)]
    {
        // A shell traps no signal that was ignored when it began, as under nohup.
        let mut command = Command::new("env");
        command.args([
            "--default-signal=HUP,INT",
            env!("CARGO_BIN_EXE_idlewise"),
            "run",
            "--quiet",
            "--",
            "sh",
            "-c",
            script,
        ]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        let mut seen = String::new();
        let mut read_until = |end: &str| {
            let mut byte = [0; 1];
            while !seen.ends_with(end) && out.read(&mut byte).unwrap() > 0 {
                seen.push(char::from(byte[0]));
            }
            seen.clone()
        };
        read_until("ready\n");
        signal(&child, first);
        let lines = expected.split_inclusive('\n').collect::<Vec<_>>();
        read_until(lines[1]);
        signal(&child, second);
        assert_eq!(read_until(lines[2]), expected);
        assert_eq!(child.wait().unwrap().code(), Some(exit));
    }
}

/// A command in a terminal of its own, and the terminal's other end.
fn in_a_terminal(script: &str) -> (Child, fs::File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use std::os::unix::process::CommandExt;
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let terminal = fs::File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut command = idlewise(&["run", "--quiet", "--", "sh", "-c", script]);
    command.stdin(terminal.try_clone().unwrap()).stdout(terminal.try_clone().unwrap()).stderr(terminal);
    let lead = || {
        // Where the tests run in the background of a shell, they ignore what is typed.
        for signal in [libc::SIGINT, libc::SIGQUIT] {
            // SAFETY: to set a signal's default installs no handler.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        rustix::process::setsid()?;
        rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
        Ok(())
    };
    // SAFETY: between the fork and the program nothing is done but these system calls.
    unsafe { command.pre_exec(lead) };
    (command.spawn().unwrap(), master.into())
}

/// What is typed, and the size of the window, reach the command as they do without idlewise.
#[test]
fn the_terminal_is_the_commands() {
    let played = |script: &str, act: &dyn Fn(&mut fs::File)| {
        let (mut child, mut master) = in_a_terminal(script);
        let (mut seen, mut acted) = (String::new(), false);
        let mut byte = [0; 1];
        // The last of the other ends is closed at the end, which is an error to whoever reads.
        while master.read(&mut byte).is_ok_and(|count| count > 0) {
            seen.push(char::from(byte[0]));
            if !acted && seen.ends_with("ready\r\n") {
                acted = true;
                act(&mut master);
            }
        }
        (seen, child.wait().unwrap().code())
    };
    let typed = |what: &'static [u8]| move |master: &mut fs::File| std::io::Write::write_all(master, what).unwrap();
    let loops = "echo ready; while :; do sleep 0.05; done";
    let (seen, code) = played(&format!("trap 'echo told; exit 9' INT; {loops}"), &typed(b"\x03"));
    assert_eq!((seen.matches("told").count(), code), (1, Some(9)), "{seen}");
    assert_eq!(played(loops, &typed(b"\x03")).1, Some(128 + 2));
    assert_eq!(played(loops, &typed(b"\x1c")).1, Some(128 + 3));
    let larger = |master: &mut fs::File| {
        let size = rustix::termios::Winsize { ws_row: 40, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(master, size).unwrap();
    };
    let (seen, code) = played(&format!("trap 'stty size; exit 0' WINCH; {loops}"), &larger);
    assert!(seen.ends_with("40 100\r\n") && code == Some(0), "{seen}");
    let (seen, code) = played("echo ready; read a; echo got $a", &typed(b"a line\n"));
    assert!(seen.ends_with("got a line\r\n") && code == Some(0), "{seen}");
}

/// By SIGTSTP it is held until SIGCONT.
#[test]
fn it_pauses_as_a_scrub_does() {
    let folder = in_memory();
    let file = folder.path().join("count");
    let mut child = idlewise(&["run", "--quiet", "--", "sh", "-c", &counting(&file)]).spawn().unwrap();
    until("begun", || count(&file) > 2);
    // Everyone sees root's, and their own where there is a folder for it.
    let is_root = rustix::process::geteuid().is_root();
    let shown = || {
        let runs: Value = serde_json::from_slice(&run(&["status", "--runs", "--json"]).stdout).unwrap();
        let ours = |one: &&Value| one["process"]["pid"] == child.id();
        runs.as_array().unwrap().iter().find(ours).map(|one| one["name"].clone())
    };
    until("shown", || !is_root || shown() == Some("sh".into()));
    signal(&child, Signal::TSTP);
    until("stopped", || fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap().contains(") T "));
    std::thread::sleep(Duration::from_millis(50));
    let before = count(&file);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(count(&file), before);
    let runs: Value = serde_json::from_slice(&run(&["status", "--runs", "--json"]).stdout).unwrap();
    let ours = runs.as_array().unwrap().iter().find(|one| one["process"]["pid"] == child.id());
    assert!(ours.map_or(!is_root, |one| one["doing"] == "paused"), "{runs}");
    signal(&child, Signal::CONT);
    until("going on", || count(&file) > before + 2);
    signal(&child, Signal::TERM);
    let pid = child.id();
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    let runs: Value = serde_json::from_slice(&run(&["status", "--runs", "--json"]).stdout).unwrap();
    assert!(runs.as_array().unwrap().iter().all(|one| one["process"]["pid"] != pid), "{runs}");
}

/// The prediction takes what a run measured, and is refused where it could not be true.
#[test]
fn what_it_would_cost_is_simulated() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (trace, ran) = (path("t.csv"), path("run.json"));
    json(&[
        "trace", "synth", "--load", "random", "--think", "100ms", "--for", "10min", "--seed", "5", "--out", &trace,
        "--json",
    ]);
    let simulated = |run: &str| {
        json(&[
            "simulate",
            &trace,
            "--policy",
            "waiting",
            "--idle-wait",
            "20ms",
            "--request-size",
            "64KiB",
            "--run",
            run,
            "--json",
        ])
    };
    let of = |value: &Value, name: &str| value[name].as_f64().unwrap_or_else(|| panic!("{name} of {value}"));
    // Whatever is used ends in a collision, and each costs at least that.
    let late = simulated("8ms");
    let [collisions, mean, ran_s] = ["collision_rate", "mean_slowdown_s", "ran_s"].map(|name| of(&late, name));
    assert!(collisions > 0.5 && mean >= 0.008 * collisions && of(&late, "max_slowdown_s") >= 0.008, "{late}");
    let never = simulated("0s");
    assert!(of(&never, "mean_slowdown_s") == 0.0 && of(&never, "ran_s") >= ran_s && ran_s > 60.0, "{never}");
    // Half of the uses measured ended without an overrun.
    let measured = r#"{"disks": [{"overruns": {"count": 50, "uses": 100, "percentiles_s": [0.008, 0.008]}}]}"#;
    fs::write(&ran, measured).unwrap();
    let half = simulated(&ran);
    assert!((of(&half, "mean_slowdown_s") / mean - 0.5).abs() < 0.1, "{half} {late}");
    let refused = |arguments: &[&str]| {
        let output = run(&[&["simulate", &trace], arguments].concat());
        (output.status.code(), stderr(&output))
    };
    let restrained = ["--policy", "restrained", "--idle-wait", "20ms", "--busy-period", "1s", "--run", "8ms"];
    let (exit, told) = refused(&restrained);
    assert!(exit == Some(64) && told.contains("no end but the foreground's coming"), "{told}");
    assert_eq!(refused(&["--run", "8 parsecs"]).0, Some(64));
    assert_eq!(refused(&["--run", "8ms", "--verify-writes"]).0, Some(64));
    fs::write(&ran, "{}").unwrap();
    let (exit, told) = refused(&["--idle-wait", "1ms", "--run", &ran]);
    assert!(exit == Some(1) && told.contains("not what `idlewise run --json` writes"), "{told}");
    let (exit, told) = refused(&["--idle-wait", "1ms", "--run", &ran, "--report", &ran]);
    assert!(exit == Some(64) && told.contains("would be replaced"), "{told}");
}
