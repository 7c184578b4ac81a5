//! What another user of the machine may try against a command that root runs. `N` is that user.

mod common;

use std::fs;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::bench::{Bench, Loop, MIB, PACE, Running};
use common::{ends_within, idlewise, run, stderr};
use rustix::process::Signal;

const N: u32 = 65_534;
const TRACE: &str = "128166372003061629,hm,0,Read,0,65536,100\n128166372013071629,hm,0,Write,65536,65536,100\n";

/// A folder like /tmp, in which N and root are, and a file of root's that N would like to have written.
struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    fn new() -> Option<Self> {
        if let Some(missing) = idlewise_testbed::missing() {
            eprintln!("SKIPPED: another user's view needs {missing}");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let machine = Self { folder };
        fs::set_permissions(machine.folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(machine.path("sticky")).unwrap();
        fs::set_permissions(machine.path("sticky"), fs::Permissions::from_mode(0o1777)).unwrap();
        fs::write(machine.path("victim"), "root's").unwrap();
        fs::set_permissions(machine.path("victim"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(machine.path("trace.csv"), TRACE).unwrap();
        Some(machine)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// What N does.
    fn n(&self, script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-ec", script]).current_dir(self.path("sticky")).uid(N).gid(N);
        command
    }

    #[track_caller]
    fn n_does(&self, script: &str) {
        let output = self.n(script).output().unwrap();
        assert!(output.status.success(), "{script}: {}", stderr(&output));
    }

    /// Runs the command, which must end by itself.
    #[track_caller]
    fn ends(&self, arguments: &[&str]) -> Output {
        ends_within(Duration::from_secs(60), &mut idlewise(arguments))
    }

    #[track_caller]
    fn refused(&self, arguments: &[&str], why: &str) {
        let output = self.ends(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(why), "{arguments:?}: {}", stderr(&output));
        assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
        self.victim_is_whole();
    }

    #[track_caller]
    fn victim_is_whole(&self) {
        assert_eq!(fs::read_to_string(self.path("victim")).unwrap(), "root's");
        let metadata = self.path("victim").metadata().unwrap();
        assert_eq!((metadata.uid(), metadata.mode() & 0o7777), (0, 0o600));
    }
}

/// Links of N's, to files and to folders, in the path of each thing that is written.
#[test]
fn root_nothing_is_written_through_anothers_link() {
    let Some(machine) = Machine::new() else { return };
    machine.n_does("ln -s ../victim report.html; ln -s ../victim out.csv; ln -s .. folder; ln -s ../new ahead.html");
    machine.n_does("ln -s report.html again.html");
    let trace = machine.text("trace.csv");
    let link = "is a link of another user";
    for name in ["report.html", "folder/victim", "folder/other.html", "ahead.html", "again.html"] {
        machine.refused(&["idle", &trace, "--report", &machine.text(&format!("sticky/{name}"))], link);
    }
    machine.refused(&["trace", "convert", &trace, "--out", &machine.text("sticky/out.csv")], link);
    machine.refused(&["sample", &trace, "--out", &machine.text("sticky/report.html")], link);
    machine.n_does(
        "mkdir pages; ln -s ../../victim pages/idlewise.1; mkdir shells; ln -s ../../victim shells/idlewise.bash",
    );
    for folder in ["pages", "shells"] {
        machine.refused(&["generate-files", &machine.text(&format!("sticky/{folder}")), "2026-01-31"], link);
    }
    assert!(!machine.path("new").exists() && !machine.path("other.html").exists());
    let disk = Loop::of_size(&machine.path("disk"), MIB, &[]).unwrap();
    let scrub = ["scrub", disk.path(), "--state-dir", &machine.text("sticky/folder/state")];
    machine.refused(&[&scrub[..], &PACE].concat(), link);
    machine.refused(&["probe", disk.path(), "--out", &machine.text("sticky/report.html")], link);
    // A link of root's is followed, and one in N's path that is none of N's.
    std::os::unix::fs::symlink(machine.path("mine.html"), machine.path("sticky/mine")).unwrap();
    assert!(run(&["idle", &trace, "--report", &machine.text("sticky/mine")]).status.success());
    assert!(machine.path("sticky/mine").is_symlink() && machine.path("mine.html").is_file());
}

/// Files of N's: special bits, pipes, hard links, and a folder that changes while it is written to.
#[test]
fn root_what_n_put_there_gives_n_nothing() {
    let Some(machine) = Machine::new() else { return };
    let trace = machine.text("trace.csv");
    machine.n_does("echo x > out.csv; chmod 4777 out.csv; mkfifo pipe.csv");
    let out = machine.text("sticky/out.csv");
    assert!(run(&["trace", "convert", &trace, "--out", &out]).status.success());
    let metadata = Path::new(&out).metadata().unwrap();
    assert_eq!((metadata.uid(), metadata.mode() & 0o7777), (0, 0o644));
    // A pipe that nobody reads would hang whoever opens it.
    machine
        .refused(&["trace", "convert", &trace, "--out", &machine.text("sticky/pipe.csv")], "belongs to another user");
    assert!(machine.path("sticky/pipe.csv").metadata().unwrap().file_type().is_fifo());
    // A hard link is a name: it is replaced, and what else is called so stays.
    let hard = machine.path("sticky/hard.html");
    fs::hard_link(machine.path("victim"), &hard).unwrap();
    assert!(run(&["idle", &trace, "--report", hard.to_str().unwrap()]).status.success());
    machine.victim_is_whole();
    // A folder of N's that is a link every other moment.
    machine.n_does("mkdir real");
    let flip =
        "for i in $(seq 100000); do mv -T real dir; ln -s .. real; mv -T real gone; mv -T dir real; rm gone; done";
    let mut flipping = machine.n(flip).stderr(Stdio::null()).spawn().unwrap();
    for _ in 0..200 {
        let output = machine.ends(&["idle", &trace, "--report", &machine.text("sticky/real/victim")]);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
        machine.victim_is_whole();
    }
    flipping.kill().unwrap();
    flipping.wait().unwrap();
}

/// A state folder is root's alone: N can neither prepare it nor change it, nor leave anything in its way.
#[test]
fn root_a_state_folder_of_n_is_refused() {
    let Some(machine) = Machine::new() else { return };
    let disk = Loop::of_size(&machine.path("disk"), MIB, &[]).unwrap();
    machine.n_does("mkdir mine open; chmod 777 open; mkdir -p deep/er");
    fs::create_dir(machine.path("everyones")).unwrap();
    fs::set_permissions(machine.path("everyones"), fs::Permissions::from_mode(0o777)).unwrap();
    fs::create_dir(machine.path("groups")).unwrap();
    std::os::unix::fs::chown(machine.path("groups"), None, Some(N)).unwrap();
    fs::set_permissions(machine.path("groups"), fs::Permissions::from_mode(0o775)).unwrap();
    // An access list: version 2; the owner, N, the group, the mask and all others, each with what they may.
    fs::create_dir(machine.path("listed")).unwrap();
    let entry = |tag: u16, may: u16, id: u32| [&tag.to_le_bytes()[..], &may.to_le_bytes(), &id.to_le_bytes()].concat();
    let entries = [(1, 7, u32::MAX), (2, 7, N), (4, 5, u32::MAX), (0x10, 7, u32::MAX), (0x20, 5, u32::MAX)];
    let list = entries.iter().fold(vec![2, 0, 0, 0], |list, &(tag, may, id)| [list, entry(tag, may, id)].concat());
    let flags = rustix::fs::XattrFlags::empty();
    let listed = rustix::fs::setxattr(machine.path("listed"), c"system.posix_acl_access", &list, flags).is_ok();
    if !listed {
        eprintln!("skipped: this file system has no access lists");
        fs::set_permissions(machine.path("listed"), fs::Permissions::from_mode(0o777)).unwrap();
    }
    let by_list = if listed { "an access list lets others write" } else { "others may write to this folder" };
    for (folder, why) in [
        ("listed", by_list),
        ("listed/state", "listed: others may write to it"),
        ("groups", "others may write to this folder"),
        ("sticky/mine", "belongs to another user"),
        ("sticky/mine/state", "belongs to another user"),
        ("sticky/open", "belongs to another user"),
        ("sticky/deep/er/state", "belongs to another user"),
        ("sticky", "others may write to this folder"),
        ("everyones/state", "everyones: others may write to it"),
    ] {
        let scrub = ["scrub", disk.path(), "--state-dir", &machine.text(folder)];
        machine.refused(&[&scrub[..], &PACE].concat(), why);
    }
    // The present folder is on the way as well.
    let scrub = ["scrub", disk.path(), "--state-dir", "state"];
    let output = idlewise(&[&scrub[..], &PACE].concat()).current_dir(machine.path("sticky/deep")).output().unwrap();
    let told = stderr(&output);
    assert!(output.status.code() == Some(1) && told.contains("sticky/deep: belongs to another user"), "{told}");
    assert!(!machine.path("sticky/deep/state").exists());
    // One that was removed is asked for nothing where no path begins there, and is no folder without scrubs.
    let gone = |arguments: &[&str]| {
        let folder = machine.path("sticky/gone");
        fs::create_dir(&folder).unwrap();
        let here = "rmdir \"$PWD\"; exec \"$@\"";
        let arguments = [&["-c", here, "sh", env!("CARGO_BIN_EXE_idlewise")], arguments].concat();
        Command::new("sh").args(arguments).current_dir(&folder).output().unwrap()
    };
    let roots = machine.text("sticky/roots");
    let output = gone(&[&["scrub", disk.path(), "--state-dir", &roots], &PACE[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let output = gone(&[&scrub[..], &PACE].concat());
    let told = stderr(&output);
    assert!(output.status.code() == Some(1) && told.contains("the present folder is not there any more"), "{told}");
    // In a folder like /tmp, where names are protected, one of root's own is safe.
    let scrub = ["scrub", disk.path(), "--state-dir", &machine.text("sticky/roots")];
    assert_eq!(run(&[&scrub[..], &PACE].concat()).status.code(), Some(0));
    // A file of N's that came there in another way is not believed.
    let entries = || fs::read_dir(machine.path("sticky/roots")).unwrap().map(|entry| entry.unwrap().path());
    let checkpoint = entries().find(|path| path.extension().is_some_and(|end| end == "json")).unwrap();
    std::os::unix::fs::chown(&checkpoint, Some(N), None).unwrap();
    machine.refused(&[&scrub[..], &PACE].concat(), "belongs to another user");
    // What a kill left on its way is gone with the next checkpoint, and an old lock makes room.
    fs::remove_file(&checkpoint).unwrap();
    let name = checkpoint.file_name().unwrap().to_str().unwrap();
    fs::write(checkpoint.with_file_name(format!(".{name}")), "left").unwrap();
    fs::set_permissions(checkpoint.with_extension("lock"), fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(run(&[&scrub[..], &PACE].concat()).status.code(), Some(0));
    assert_eq!(entries().count(), 2);
}

/// Whatever the umask, nobody but root can write what a scrub leaves, and everyone can read how it stands.
#[test]
fn root_the_umask_opens_nothing() {
    let Some(machine) = Machine::new() else { return };
    let disk = Loop::of_size(&machine.path("disk"), MIB, &[]).unwrap();
    for umask in ["000", "077"] {
        let state = machine.path(&format!("state{umask}/deep"));
        let script = format!("umask {umask}; exec \"$@\"");
        let scrub = ["scrub", disk.path(), "--state-dir", state.to_str().unwrap()];
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_idlewise")]).args(scrub).args(PACE);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o7777;
        assert_eq!((mode(&state), mode(state.parent().unwrap())), (0o755, 0o755), "{umask}");
        for entry in fs::read_dir(&state).unwrap() {
            let path = entry.unwrap().path();
            let expected = if path.extension().unwrap() == "json" { 0o644 } else { 0o600 };
            assert_eq!(mode(&path), expected, "{}", path.display());
        }
        let trace = machine.text("trace.csv");
        let out = machine.text(&format!("out{umask}.html"));
        let command = ["-c", &script, "sh", env!("CARGO_BIN_EXE_idlewise"), "idle", &trace, "--report", &out];
        assert!(Command::new("sh").args(command).output().unwrap().status.success());
        assert_eq!(mode(Path::new(&out)), if umask == "000" { 0o644 } else { 0o600 });
    }
    assert_eq!(Path::new("/run/idlewise").metadata().unwrap().mode() & 0o7777, 0o755);
}

/// Sockets, locks and leases of N's on whatever N can name or open stop no scrub, and hang none.
#[test]
fn root_n_can_neither_refuse_nor_hang_a_scrub() {
    let Some(machine) = Machine::new() else { return };
    let Some(bench) = Bench::new(64 * MIB, &[], true) else { return };
    let state = machine.path("state");
    let arguments = ["scrub", bench.path(), "--state-dir", state.to_str().unwrap(), "--quiet"];
    let slow = ["--request-size", "64KiB", "--idle-wait", "20ms"];
    let start = || Running::new(idlewise(&[&arguments[..], &slow].concat()));
    let first = start();
    let until = Instant::now() + Duration::from_secs(10);
    while fs::read_dir(&state).map_or(0, Iterator::count) < 2 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    first.signal(Signal::INT);
    first.end();
    // Everything that N can open is locked in all the ways that there are, by processes that stay.
    let numbers =
        fs::read_to_string(format!("/sys/block/{}/dev", bench.disk.path().file_name().unwrap().to_str().unwrap()));
    let hold = format!(
        "import fcntl,socket,os,sys,time\n\
         held=[]\n\
         for folder in ['{}','/run/idlewise']:\n\
         \x20 for name in os.listdir(folder):\n\
         \x20  for flags in (os.O_RDWR,os.O_RDONLY):\n\
         \x20   try:\n\
         \x20    f=os.open(folder+'/'+name,flags|os.O_NONBLOCK)\n\
         \x20   except OSError: continue\n\
         \x20   held.append(f)\n\
         \x20   for lock in (lambda: fcntl.flock(f,fcntl.LOCK_EX|fcntl.LOCK_NB), lambda: fcntl.lockf(f,fcntl.LOCK_SH|fcntl.LOCK_NB), lambda: fcntl.fcntl(f,fcntl.F_SETLEASE,fcntl.F_RDLCK)):\n\
         \x20    try: lock()\n\
         \x20    except OSError: pass\n\
         s=socket.socket(socket.AF_UNIX); s.bind('\\0idlewise/{}'); s.listen(0)\n\
         print(len(held),flush=True)\n\
         time.sleep(60)\n",
        state.display(),
        numbers.unwrap().trim()
    );
    let mut holder = Command::new("python3");
    let spawned = holder.args(["-c", &hold]).uid(N).gid(N).stdout(Stdio::piped()).spawn();
    let Ok(mut holder) = spawned else {
        eprintln!("SKIPPED in part: there is no python3 to hold locks with");
        return;
    };
    let mut said = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(holder.stdout.take().unwrap()), &mut said).unwrap();
    assert_ne!(said.trim(), "", "the other user holds nothing: {said}");
    let output = machine.ends(&[&arguments[..], &PACE].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // `status`, by anyone and at any moment, is in nobody's way.
    let mut looking = machine.n(&format!(
        "while :; do '{}' status --state-dir '{}'; done",
        env!("CARGO_BIN_EXE_idlewise"),
        state.display()
    ));
    let mut looking = looking.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    for _ in 0..10 {
        let output = machine.ends(&[&arguments[..], &PACE, &["--restart"]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    for child in [&mut looking, &mut holder] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

/// Two scrubs of one disk are refused across network name spaces, as of containers and hardened services.
#[test]
fn root_a_claim_holds_across_network_name_spaces() {
    let Some(bench) = Bench::new(256 * MIB, &[], true) else { return };
    let first = bench.start(&PACE);
    let until = Instant::now() + Duration::from_secs(5);
    while bench.checkpoint().is_none() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let mut second = Command::new("unshare");
    second.args(["--net", env!("CARGO_BIN_EXE_idlewise"), "scrub", bench.path(), "--state-dir"]);
    let output = second.arg(elsewhere.path()).args(PACE).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("another idlewise is scrubbing it"), "{}", stderr(&output));
    first.signal(Signal::INT);
    assert_eq!(first.end().status.code(), Some(4));
}

/// Where a repair is logged is a file and nothing else.
#[test]
fn root_a_repair_log_is_no_device() {
    let Some(bench) = Bench::new(4 * MIB, std::slice::from_ref(&(64..65)), false) else { return };
    assert_eq!(bench.scrub(&PACE).0, 3);
    let mirror = Loop::of_size(&bench.folder.path().join("mirror"), 4 * MIB, &[]).unwrap();
    // Data by which one is known to be the mirror of the other.
    let data: Vec<u8> = (0..MIB).map(|at| (at * at / 512 % 251) as u8).collect();
    for device in [bench.path(), mirror.path()] {
        let file = fs::File::options().write(true).open(device).unwrap();
        file.write_all_at(&data, 128 * 512).unwrap();
        file.sync_all().unwrap();
    }
    let log = Loop::of_size(&bench.folder.path().join("log"), MIB, &[]).unwrap();
    let state = bench.folder.path().to_str().unwrap();
    let repair = ["repair", bench.path(), "--mirror", mirror.path(), "--allow-writes", "--state-dir", state];
    let output = run(&[&repair[..], &["--log", log.path()]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("is a block device, which is never written"), "{}", stderr(&output));
    // Before anything is measured.
    let output = ends_within(Duration::from_secs(10), &mut idlewise(&["probe", log.path(), "--out", log.path()]));
    assert!(stderr(&output).contains("it cannot be written there: is a block device"), "{}", stderr(&output));
    assert!(fs::read(bench.folder.path().join("log")).unwrap().iter().all(|byte| *byte == 0));
}

/// Results go to standard output and to pipes by name as well, whole and alone, with root's privileges or without.
#[test]
fn what_is_no_file_is_written_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    fs::write(file("trace.csv"), TRACE).unwrap();
    let trace = file("trace.csv").display().to_string();
    for out in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/proc/thread-self/fd/1", "-"] {
        for more in [&[][..], &["--json"]] {
            let result = fs::File::create(file("out")).unwrap();
            let arguments = [&["trace", "convert", &trace, "--format", "msr", "--out", out], more].concat();
            assert!(idlewise(&arguments).stdout(result).status().unwrap().success());
            assert_eq!(fs::read_to_string(file("out")).unwrap(), TRACE, "{arguments:?}");
        }
    }
    let begins = |arguments: &[&str], text: &str| {
        let output = Command::new("bash").args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let said = common::stdout(&output);
        assert!(said.contains(text), "{said}");
    };
    let script = "\"$0\" idle \"$1\" --report >(cat; echo) | cat; \"$0\" idle \"$1\" --report /dev/null";
    begins(&["-c", script, env!("CARGO_BIN_EXE_idlewise"), &trace], "<!doctype html>");
}

/// What lies in a folder of checkpoints is read in bounded time, whatever it is.
#[test]
fn status_neither_hangs_nor_believes_everything() {
    let folder = tempfile::tempdir().unwrap();
    let status = ["status", "--json", "--state-dir", folder.path().to_str().unwrap()];
    let status = || ends_within(Duration::from_secs(20), &mut idlewise(&status));
    let text = |errors: &str| {
        format!(
            r#"{{"version":2,"identity":"wwn-1","device":"/dev/x\u001b[2J","device_bytes":1048576,"block_bytes":512,
            "order":{{"name":"sequential"}},"place":{{"visited_bytes":0,"course_bytes":0}},"state":"interrupted","errors":[],
            "errors_before":[{errors}],"started_unix_s":1,"saved_unix_s":2,"completed_unix_s":null}}"#
        )
    };
    let file = |name: &str| folder.path().join(name);
    Command::new("mkfifo").arg(file("pipe.json")).status().unwrap();
    std::os::unix::fs::symlink("/dev/zero", file("zero.json")).unwrap();
    fs::create_dir(file("folder.json")).unwrap();
    fs::write(file("huge.json"), text(r#"{"lba":0,"blocks":1099511627776,"kind":"io"}"#)).unwrap();
    let two = r#"{"lba":0,"blocks":18446744073709551615,"kind":"io"},{"lba":9,"blocks":2,"kind":"io"}"#;
    fs::write(file("wraps.json"), text(two)).unwrap();
    fs::write(file("good.json"), text(r#"{"lba":9,"blocks":2,"kind":"io"}"#)).unwrap();
    let output = status();
    assert_eq!(output.status.code(), Some(1), "files that cannot be read");
    let listed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    assert_eq!((&listed[0]["errors"][0]["blocks"], &listed[0]["state"]), (&2.into(), &"interrupted".into()));
    let said = stderr(&output);
    assert_eq!(said.lines().count(), 5, "{said}");
    assert!(!output.stdout.contains(&0x1b) && !said.contains('\u{1b}'), "{said}");
    let output = run(&["status", "--state-dir", file("nowhere").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("nowhere: there is no such folder"), "{}", stderr(&output));
}

/// In a folder of traces, links of N's are named and passed over, and so is what is no file but looks like one.
#[test]
fn root_what_lies_among_traces_is_read_only_if_n_has_not_planted_it() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: another user's links need root");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(file("sticky")).unwrap();
    fs::set_permissions(file("sticky"), fs::Permissions::from_mode(0o1777)).unwrap();
    for name in ["secret", "sticky/own.csv", "sda.blktrace.0"] {
        fs::write(file(name), TRACE).unwrap();
    }
    // Its arguments are a trace, as far as reading /proc goes.
    let mut process = Command::new("sleep").arg0(TRACE).arg("60").spawn().unwrap();
    std::os::unix::fs::symlink(format!("/proc/{}/cmdline", process.id()), file("sticky/proc.csv")).unwrap();
    std::os::unix::fs::symlink("../secret", file("sticky/roots.csv")).unwrap();
    std::os::unix::fs::symlink("ns.csv", file("sticky/twice.csv")).unwrap();
    let script = "ln -s ../secret ns.csv; ln -s ../secret sda.blktrace.1";
    let n = Command::new("sh").args(["-ec", script]).current_dir(file("sticky")).uid(N).gid(N).status().unwrap();
    assert!(n.success());
    fs::rename(file("sda.blktrace.0"), file("sticky/sda.blktrace.0")).unwrap();
    let info = |path: PathBuf| {
        let output = ends_within(Duration::from_secs(20), &mut idlewise(&["trace", "info", path.to_str().unwrap()]));
        assert!(output.status.success(), "{}", stderr(&output));
        common::stdout(&output) + &stderr(&output)
    };
    let read = info(file("sticky"));
    let said = info(file("sticky/sda"));
    process.kill().unwrap();
    process.wait().unwrap();
    for name in ["ns.csv", "proc.csv", "sda.blktrace.1", "twice.csv"] {
        assert!(read.contains(&format!("sticky/{name}")), "{name}: {read}");
    }
    assert!(!read.contains("roots.csv") && !read.contains("own.csv"), "{read}");
    assert!(said.contains("sda.blktrace.1") && !said.contains("sda.blktrace.0, "), "{said}");
}

/// An interrupted command leaves nothing beside what it was to write.
#[test]
fn what_is_interrupted_leaves_nothing() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (pipe, out) = (folder.path().join("trace"), folder.path().join("out"));
    fs::create_dir(&out).unwrap();
    Command::new("mkfifo").arg(&pipe).status().unwrap();
    let (pipe_name, target) = (pipe.to_str().unwrap(), out.join("out.csv"));
    let mut convert = idlewise(&["trace", "convert", pipe_name, "--out", target.to_str().unwrap()]).spawn().unwrap();
    let mut writer = fs::File::options().write(true).open(&pipe).unwrap();
    let lines = (0..1_200_000u64).map(|at| format!("{},hm,0,Read,0,65536,100\n", 128_166_372_003_061_629 + at));
    std::io::Write::write_all(&mut writer, lines.collect::<String>().as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    // A shell lets what it runs in the background ignore SIGINT.
    rustix::process::kill_process(rustix::process::Pid::from_child(&convert), Signal::TERM).unwrap();
    assert!(!convert.wait().unwrap().success());
    assert_eq!(fs::read_dir(&out).unwrap().count(), 0);
}
