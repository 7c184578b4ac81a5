//! `idlewise run` holds what it should, and whatever happens, lets it go.

mod common;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::bench::{Bench, Loop, MIB};
use common::held::{PATIENCE, count, counting, end, groups, hierarchy, in_memory, is_held, members, signal, until};
use common::{ends_within, idlewise, run, stderr, stdout};
use rustix::process::Signal;
use serde_json::Value;

/// While others use the disk it stands still, and moves on when they have gone.
#[test]
fn root_it_runs_in_the_gaps_of_the_disk_that_it_uses() {
    let Some(bench) = Bench::new(256 * MIB, &[], true) else { return };
    let (file, done) = (bench.folder.path().join("run.json"), bench.folder.path().join("done"));
    let read = format!(
        "i=0; while [ $i -lt 400 ]; do dd if={} of=/dev/null bs=64k count=4 skip=$((i*4)) iflag=direct 2>/dev/null; i=$((i+1)); \
         echo $i > {}; done",
        bench.path(),
        done.display()
    );
    let arguments = ["run", "--idle-wait", "400ms", "--device", bench.path(), "--json", file.to_str().unwrap(), "--"];
    let mut command = idlewise(&[&arguments[..], &["sh", "-c", &read]].concat());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    until("begun", || count(&done) > 3);
    let disk = fs::File::open(bench.path()).unwrap();
    let (mut moved, mut slow) = (0, 0);
    for place in 0..40u64 {
        let (before, began) = (count(&done), Instant::now());
        // Past the page cache, whatever it holds.
        rustix::fs::fadvise(&disk, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        let mut block = [0; 512];
        rustix::io::pread(&disk, &mut block, 128 * MIB + place * 2 * MIB).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        // A machine that stands still leaves a gap.
        if began.elapsed() > Duration::from_millis(300) {
            slow += 1;
        } else if place > 0 {
            moved += count(&done) - before;
        }
    }
    assert!(moved <= 2 + 40 * slow, "{moved} steps between requests that leave no gap, {slow} of which were late");
    until("over", || child.try_wait().unwrap().is_some());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let disk = &report["disks"][0];
    assert_eq!((&report["held_by"], &disk["monitor"]), (&"group".into(), &"bpf".into()), "{report}");
    assert_eq!(disk["name"], bench.path().trim_start_matches("/dev/"));
    assert!(disk["moved_bytes"].as_u64().unwrap() >= 400 * 4 * 65_536, "{report}");
    assert!((35..60).contains(&disk["foreground_requests"].as_u64().unwrap()), "{report}");
    assert!(report["spent_s"]["idle-wait"].as_f64().unwrap() > 1.0, "{report}");
    let told = stderr(&output);
    assert!(told.contains("idlewise: ran for ") && told.contains(" foreground requests"), "{told}");
}

/// Killed at any of 100 moments it leaves nobody held, and no group.
#[test]
fn root_killed_at_any_moment_it_leaves_nobody_held() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: a group needs root");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = Loop::of_size(&folder.path().join("disk"), 16 * MIB, &[]) else { return };
    let seed = 19u64;
    eprintln!("seed {seed}");
    let mut random = seed;
    std::thread::scope(|threads| {
        for row in 0..4u64 {
            let moments: Vec<u64> = (0..25)
                .map(|_| {
                    // A linear congruence (Knuth, MMIX).
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (random >> 33) % 900
                })
                .collect();
            let (disk, folder) = (&disk, &folder);
            threads.spawn(move || {
                for (round, moment) in moments.into_iter().enumerate() {
                    let file = folder.path().join(format!("{row}-{round}"));
                    // It is held in the same rhythm as its own first requests are seen.
                    let script = format!(
                        "echo $$ > {}; while :; do dd if={} of=/dev/null bs=4k count=64 iflag=direct 2>/dev/null; sleep 0.01; done",
                        file.display(),
                        disk.path()
                    );
                    let arguments = ["run", "--quiet", "--device", disk.path(), "--idle-wait", "30ms", "--", "sh", "-c"];
                    let mut child = idlewise(&[&arguments[..], &[&script]].concat()).spawn().unwrap();
                    std::thread::sleep(Duration::from_millis(moment));
                    let pid = child.id();
                    child.kill().unwrap();
                    child.wait().unwrap();
                    until("rid of its group", || groups(pid).is_empty());
                    let script = fs::read_to_string(&file).ok();
                    if let Some(script) = script.and_then(|text| text.trim().parse::<u32>().ok()) {
                        until("free", || !is_held(script));
                        let alive = Path::new(&format!("/proc/{script}")).exists();
                        assert!(alive, "it goes on");
                        end(script);
                    }
                }
            });
        }
    });
    // Some began only when nobody looked any more.
    std::thread::sleep(Duration::from_millis(500));
    for file in fs::read_dir(folder.path()).unwrap().flatten().filter(|file| file.file_name() != "disk") {
        fs::read_to_string(file.path()).unwrap().trim().parse().into_iter().for_each(end);
    }
}

/// Those that any thread of a process has started.
fn children(process: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let lists = tasks.map(|task| fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()).collect()
}

/// Where the guard was killed as well, the next run lets go what was left.
#[test]
fn root_what_a_killed_guard_left_is_let_go_by_the_next_run() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: a group needs root");
        return;
    }
    let mut child = idlewise(&["run", "--quiet", "--", "sleep", "1000"]).spawn().unwrap();
    until("begun", || groups(child.id()).first().is_some_and(|group| !members(group).is_empty()));
    let group = groups(child.id()).remove(0);
    let sleeper = members(&group)[0];
    fs::write(group.join("cgroup.freeze"), "1").unwrap();
    until("held", || is_held(sleeper));
    let guard = children(child.id()).into_iter().find(|pid| *pid != sleeper).unwrap();
    // While its maker is there, though stopped, no other run lets the group go.
    signal(&child, Signal::STOP);
    end(guard);
    until("without a guard", || {
        fs::read_to_string(format!("/proc/{guard}/stat")).is_ok_and(|stat| stat.contains(") Z "))
    });
    assert!(group.exists() && is_held(sleeper));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(ends_within(PATIENCE, &mut idlewise(&["run", "--quiet", "true"])).status.success());
    assert!(!group.exists() && !is_held(sleeper));
    end(sleeper);
}

/// A process that runs is taken over with those that come from it, held, and let go however it ends.
#[test]
fn root_a_process_and_a_unit_are_taken_over_and_let_go() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: a group needs root");
        return;
    }
    let folder = in_memory();
    let file = folder.path().join("count");
    let mut shell = Command::new("sh").args(["-c", &counting(&file)]).spawn().unwrap();
    until("begun", || count(&file) > 2);
    let home = fs::read_to_string(format!("/proc/{}/cgroup", shell.id())).unwrap();
    for (end, exit) in [(Signal::TERM, Some(4)), (Signal::KILL, None)] {
        let mut child = idlewise(&["run", "--quiet", "--pid", &shell.id().to_string()]).spawn().unwrap();
        until("taken over", || groups(child.id()).first().is_some_and(|group| members(group).contains(&shell.id())));
        signal(&child, Signal::TSTP);
        until("held", || is_held(shell.id()));
        // It stops itself after that: to go on before would mean nothing.
        until("stopped", || fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap().contains(") T "));
        // A signal to one that is stopped waits until it goes on.
        if end != Signal::KILL {
            signal(&child, Signal::CONT);
        }
        signal(&child, end);
        assert_eq!(child.wait().unwrap().code(), exit);
        until("rid of its group", || groups(child.id()).is_empty());
        until("free", || !is_held(shell.id()));
        assert_eq!(fs::read_to_string(format!("/proc/{}/cgroup", shell.id())).unwrap(), home);
        let before = count(&file);
        until("going on", || count(&file) > before + 2);
    }
    // Whoever owns it may take it out again, which is said.
    let report = folder.path().join("report.json");
    let mut command = idlewise(&["run", "--quiet", "--pid", &shell.id().to_string(), "--json"]);
    let said = folder.path().join("said");
    let mut child = command.arg(&report).stderr(fs::File::create(&said).unwrap()).spawn().unwrap();
    until("taken over", || groups(child.id()).first().is_some_and(|group| members(group).contains(&shell.id())));
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let root = mounts.lines().find(|line| line.contains(" - cgroup2 ")).unwrap().split(' ').nth(4).unwrap();
    let above = Path::new(root).join(home.lines().find_map(|line| line.strip_prefix("0::/")).unwrap());
    let warning = format!("process {} is in another control group, and is not held", shell.id());
    until("said", || {
        // What comes too early is taken over once more.
        fs::write(above.join("cgroup.procs"), shell.id().to_string()).unwrap();
        fs::read_to_string(&said).unwrap().contains(&warning)
    });
    signal(&child, Signal::TERM);
    child.wait().unwrap();
    let report: Value = serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap();
    assert!(report["warnings"][0].as_str().unwrap().contains(&warning), "{report}");
    let unit = format!("idlewise-test-{}.service", std::process::id());
    let group = Path::new(root).join(&unit);
    fs::create_dir(&group).unwrap();
    fs::write(group.join("cgroup.procs"), shell.id().to_string()).unwrap();
    fs::write(group.join("cgroup.freeze"), "1").unwrap();
    let output = run(&["run", "--unit", &unit]);
    let told = stderr(&output);
    assert!(
        output.status.code() == Some(125) && told.contains(&format!("{unit}: it is frozen by somebody else")),
        "{told}"
    );
    fs::write(group.join("cgroup.freeze"), "0").unwrap();
    let mut child = idlewise(&["run", "--quiet", "--unit", &unit]).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(1));
    signal(&child, Signal::TSTP);
    until("held", || is_held(shell.id()));
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    until("free", || !is_held(shell.id()));
    // Killed together with its guard, it leaves a note, by which the next one lets the unit go.
    let mut child = idlewise(&["run", "--quiet", "--unit", &unit]).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(1));
    signal(&child, Signal::TSTP);
    until("held", || is_held(shell.id()));
    let guard = children(child.id());
    signal(&child, Signal::STOP);
    guard.into_iter().for_each(end);
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert!(is_held(shell.id()), "nobody is left to let it go");
    // Even where that one is run for the same unit, as a timer does every night.
    let mut child = idlewise(&["run", "--quiet", "--unit", &unit]).spawn().unwrap();
    until("free again", || !is_held(shell.id()));
    std::thread::sleep(Duration::from_millis(300));
    // Nor does one end that is so deep in it that no path leads there.
    let deep = "import os, sys\nos.chdir(sys.argv[1])\nfor _ in range(20): os.mkdir('a' * 250); os.chdir('a' * 250)\n\
                open('cgroup.procs', 'w').write(sys.argv[2])";
    let mut command = Command::new("python3");
    command.args(["-c", deep]).arg(&group).arg(shell.id().to_string());
    assert!(command.status().unwrap().success());
    std::thread::sleep(Duration::from_secs(3));
    assert!(child.try_wait().unwrap().is_none(), "it is in it still");
    shell.kill().unwrap();
    shell.wait().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "the unit has ended");
    let mut command = Command::new("find");
    command.arg(&group).args(["-depth", "-type", "d", "-delete"]);
    until("empty", || command.status().is_ok() && !group.exists());
}

/// Names that others choose, of mounts and programs, are of any bytes.
#[test]
fn root_no_name_keeps_it_from_working() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join(OsStr::from_bytes(b"m\xff"));
    fs::create_dir(&place).unwrap();
    let script = "mount -t tmpfs none \"$1\" && exec \"$2\" run --unit no-such.service";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, "sh"]).arg(&place).arg(env!("CARGO_BIN_EXE_idlewise"));
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: a mount needs root");
        return;
    }
    let told = stderr(&ends_within(PATIENCE, &mut command));
    assert!(told.contains("no such unit is running"), "{told}");
    let program = folder.path().join(OsStr::from_bytes(b"sleep\xff"));
    fs::copy("/bin/sleep", &program).unwrap();
    let mut sleeper = Command::new(&program).arg("100").spawn().unwrap();
    let mut child = idlewise(&["run", "--quiet", "--pid", &sleeper.id().to_string()]).spawn().unwrap();
    until("taken over", || groups(child.id()).first().is_some_and(|group| members(group).contains(&sleeper.id())));
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    // Nor the name of the group that it is in itself.
    let Some(home) = hierarchy().map(|root| root.join(OsStr::from_bytes(b"g\xff"))) else { return };
    fs::create_dir(&home).unwrap();
    let script = "echo $$ > \"$1\"/cgroup.procs && exec \"$2\" run --quiet sh -c 'exit 7'";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).arg(&home).arg(env!("CARGO_BIN_EXE_idlewise"));
    let output = ends_within(PATIENCE, &mut command);
    until("empty", || fs::remove_dir(&home).is_ok());
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
}

const COMMAND: &str = env!("CARGO_BIN_EXE_idlewise");

/// Run by a user who may nothing special.
fn by_another_user(arguments: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).args(arguments).current_dir("/");
    command
}

/// Whether that is possible; else it is said.
fn has_another_user() -> bool {
    let reachable = by_another_user(&[COMMAND, "--version"]).output();
    let is_there = rustix::process::geteuid().is_root() && reachable.is_ok_and(|output| output.status.success());
    if !is_there {
        eprintln!("SKIPPED: another user needs root, setpriv, and a folder that others may enter");
    }
    is_there
}

/// Without root the processes of one's own are held by signals, which is said, and let go by the guard.
#[test]
fn root_another_user_runs_commands_held_by_signals() {
    if !has_another_user() {
        return;
    }
    let setpriv = |arguments: &[&str]| by_another_user(&[&[COMMAND, "run"], arguments].concat());
    let output = ends_within(PATIENCE, &mut setpriv(&["sh", "-c", "echo out; (exit 6)"]));
    let told = stderr(&output);
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("out\n", Some(6)), "{told}");
    assert!(
        told.contains("the goal may not be kept: it is held by signals") && told.contains("told apart by counters"),
        "{told}"
    );
    // A child whose parent has ended is meant too.
    let folder = in_memory();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(folder.path(), mode).unwrap();
    let file = folder.path().join("count");
    let script = format!("({}) & wait", counting(&file));
    for end in [Signal::CONT, Signal::KILL] {
        let mut child = setpriv(&["--quiet", "sh", "-c", &script]).spawn().unwrap();
        until("begun", || count(&file) > 2);
        signal(&child, Signal::TSTP);
        until("stopped", || fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap().contains(") T "));
        std::thread::sleep(Duration::from_millis(50));
        let before = count(&file);
        std::thread::sleep(Duration::from_millis(200));
        assert!(count(&file) <= before + 1, "held");
        signal(&child, end);
        let before = count(&file);
        until("going on", || count(&file) > before + 2);
        // Whose parent was killed goes on, as it would without idlewise.
        let _ = Command::new("pkill").args(["-KILL", "-u", "65534", "-f", &file.display().to_string()]).status();
        child.wait().unwrap();
        fs::remove_file(&file).unwrap();
    }
}

/// Held by signals, a command that is alone on a slow disk is not taken for somebody else.
#[test]
fn root_held_by_signals_its_own_reads_are_its_own() {
    let Some(bench) = Bench::new(256 * MIB, &[], true) else { return };
    if !has_another_user() {
        return;
    }
    let folder = in_memory();
    let mode = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
    fs::set_permissions(folder.path(), mode(0o777)).unwrap();
    fs::set_permissions(bench.path(), mode(0o666)).unwrap();
    let file = folder.path().join("run.json");
    // Each from another place: a seek and a rotation.
    let read = format!(
        "i=0; while [ $i -lt 150 ]; do dd if={} of=/dev/null bs=64k count=2 skip=$((i*1103%4000)) iflag=direct 2>/dev/null; i=$((i+1)); done",
        bench.path()
    );
    let arguments = ["--quiet", "--device", bench.path(), "--json", file.to_str().unwrap(), "--", "sh", "-c", &read];
    let mut command = by_another_user(&[&[COMMAND, "run"][..], &arguments].concat());
    let output = ends_within(2 * PATIENCE, &mut command);
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let disk = &report["disks"][0];
    assert_eq!((&report["held_by"], &disk["monitor"]), (&"signals".into(), &"shares".into()), "{report}");
    // Of 300; on a busy machine one may be counted later than it is looked for.
    assert!(disk["foreground_requests"].as_u64() < Some(10), "{report}");
    assert!(disk["moved_bytes"].as_u64() > Some(290 * 65_536), "{report}");
}

/// Held by signals, who was stopped by its owner stays so, and who was in the background before is none of the command's.
#[test]
fn root_held_by_signals_nobody_else_is_touched() {
    let Some(bench) = Bench::new(64 * MIB, &[], true) else { return };
    if !has_another_user() {
        return;
    }
    let of_user = |arguments: &[&str]| {
        let mut command = by_another_user(arguments);
        command.stderr(Stdio::null());
        command
    };
    let disk = fs::File::open(bench.path()).unwrap();
    let foreground = || {
        rustix::fs::fadvise(&disk, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        rustix::io::pread(&disk, &mut [0; 512], 0).unwrap();
    };
    let state = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())
    };
    let mut sleeper = of_user(&["sleep", "100"]).spawn().unwrap();
    let pid = sleeper.id().to_string();
    let mut held = of_user(&[COMMAND, "run", "--quiet", "--idle-wait", "1s", "--device", bench.path(), "--pid", &pid])
        .spawn()
        .unwrap();
    until("held", || {
        foreground();
        state(sleeper.id()) == Some('T')
    });
    until("let go", || state(sleeper.id()) == Some('S'));
    signal(&sleeper, Signal::STOP);
    signal(&held, Signal::TERM);
    held.wait().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(state(sleeper.id()), Some('T'), "let go on though its owner has stopped it");
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();

    // A shell that is replaced by idlewise leaves it its children.
    let folder = in_memory();
    fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let (before, file) = (folder.path().join("before"), folder.path().join("count"));
    let script = format!(
        "sleep 100 & echo $! > {}; exec {COMMAND} run --quiet --idle-wait 1s --device {} -- sh -c '{}'",
        before.display(),
        bench.path(),
        counting(&file)
    );
    let mut whole = of_user(&["sh", "-c", &script]).spawn().unwrap();
    until("begun", || count(&file) > 2);
    let before = u32::try_from(count(&before)).unwrap();
    let mut stood = 0;
    until("held", || {
        foreground();
        let first = count(&file);
        std::thread::sleep(Duration::from_millis(60));
        assert_eq!(state(before), Some('S'), "what was in the background before is held");
        stood += u32::from(count(&file) == first);
        stood > 5
    });
    signal(&whole, Signal::TERM);
    end(before);
    whole.wait().unwrap();
}

/// Process 1 of a container becomes the parent of whoever is left alone there: those are none of the command's.
#[test]
fn root_held_by_signals_strangers_of_a_container_are_not_touched() {
    let Some(bench) = Bench::new(64 * MIB, &[], true) else { return };
    if !has_another_user() {
        return;
    }
    let folder = in_memory();
    fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let file = folder.path().join("count");
    let user = by_another_user(&[COMMAND, "run", "--quiet", "--idle-wait", "1s", "--device", bench.path(), "--"]);
    let mut container = Command::new("unshare");
    container.args(["--pid", "--fork", "--kill-child", "--mount-proc"]).arg(user.get_program()).args(user.get_args());
    let mut container = container.args(["sh", "-c", &counting(&file)]).stderr(Stdio::null()).spawn().unwrap();
    until("begun", || count(&file) > 2);
    let children = |pid: u32| -> Vec<u32> {
        let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        list.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
    };
    let first = children(container.id())[0];
    // With it ends whoever is in there.
    let all = Ends(first);
    let own = children(first);
    let target = first.to_string();
    let enter = ["--target", &target, "--pid", "--mount", "setpriv", "--reuid=65534", "--clear-groups"];
    let mut entered = Command::new("nsenter");
    assert!(entered.args(enter).args(["sh", "-c", "sleep 100 & exit"]).status().unwrap().success());
    let strangers = || children(first).into_iter().filter(|child| !own.contains(child)).collect::<Vec<_>>();
    until("left alone", || !strangers().is_empty());
    let disk = fs::File::open(bench.path()).unwrap();
    let mut stood = 0;
    until("held", || {
        rustix::fs::fadvise(&disk, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        rustix::io::pread(&disk, &mut [0; 512], 0).unwrap();
        let before = count(&file);
        std::thread::sleep(Duration::from_millis(60));
        assert!(!strangers().into_iter().any(is_held), "one is held that is none of the command's");
        stood += u32::from(count(&file) == before);
        stood > 5
    });
    assert_eq!(strangers().len(), 1);
    drop(all);
    container.wait().unwrap();
}

/// Kills a process in the end.
struct Ends(u32);

impl Drop for Ends {
    fn drop(&mut self) {
        end(self.0);
    }
}
