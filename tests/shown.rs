//! What is said and delivered, whoever reads it and wherever it finds room.

mod common;

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::bench::{Loop, MIB, PACE};
use common::{idlewise, stderr};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A pipe that takes nothing more, with its reader, which must be kept.
fn full_pipe() -> (std::io::PipeReader, Stdio) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    while writer.write(&[b'.'; 512]).is_ok() {}
    rustix::io::ioctl_fionbio(&writer, false).unwrap();
    (reader, Stdio::from(OwnedFd::from(writer)))
}

fn ends(child: &mut Child) -> bool {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(60) {
        if child.try_wait().unwrap().is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    false
}

fn states(folder: &std::path::Path) -> Vec<Value> {
    let output = common::run(&["status", "--json", "--state-dir", folder.to_str().unwrap()]);
    let all: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    all.into_iter().map(|one| one["state"].clone()).collect()
}

#[test]
fn root_a_full_standard_error_stops_no_scrub() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = Loop::of_size(&folder.path().join("disk"), 64 * MIB, &[]) else { return };
    let state = folder.path().join("state");
    let (_reader, full) = full_pipe();
    let mut scrub = idlewise(&["scrub", disk.path(), "--json", "--state-dir", state.to_str().unwrap()]);
    // It has something to say as it begins.
    scrub.args(PACE).args(["--monitor", "diskstats"]).stderr(full).stdout(Stdio::piped());
    let mut scrub = scrub.spawn().unwrap();
    assert!(ends(&mut scrub));
    let output = scrub.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&result["state"], states(&state)), (&"complete".into(), vec!["complete".into()]));
}

/// The results of several disks wait for their reader, the scrubs do not, and who waits can be ended.
#[test]
fn root_a_full_standard_output_stops_no_scrub() {
    let folder = tempfile::tempdir().unwrap();
    let disk = |name: &str| Loop::of_size(&folder.path().join(name), 64 * MIB, &[]);
    let Some(disks) = ["a", "b", "c"].map(disk).into_iter().collect::<Option<Vec<_>>>() else { return };
    let state = folder.path().join("state");
    let (_reader, full) = full_pipe();
    let mut scrub = idlewise(&["scrub", "--quiet", "--jobs", "1", "--state-dir", state.to_str().unwrap()]);
    scrub.args(PACE).args(disks.iter().map(Loop::path)).stdout(full).stderr(Stdio::piped());
    let mut scrub = scrub.spawn().unwrap();
    let began = Instant::now();
    while !state.exists() || states(&state) != vec![Value::from("complete"); 3] {
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", states(&state));
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_millis(500));
    assert!(scrub.try_wait().unwrap().is_none());
    kill_process(Pid::from_child(&scrub), Signal::TERM).unwrap();
    assert!(ends(&mut scrub));
}

/// Who gives a pipe that makes no writer wait, as a program's event loop does, gets all of it.
#[test]
fn a_result_is_whole_in_a_pipe_that_makes_no_writer_wait() {
    use std::io::Read;
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.csv").to_str().unwrap().to_string();
    let made = common::run(&["trace", "synth", "--like", "dsn2008-t3", "--requests", "20000", "--out", &trace]);
    assert!(made.status.success(), "{}", stderr(&made));
    let told = || idlewise(&["idle", &trace, "--json"]);
    let (mut reader, writer) = std::io::pipe().unwrap();
    rustix::pipe::fcntl_setpipe_size(&writer, 4_096).unwrap();
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    let mut writing = told().stdout(Stdio::from(OwnedFd::from(writer))).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert!(writing.wait().unwrap().success());
    let whole = told().output().unwrap();
    // More than the pipe holds.
    assert!(text.len() > 4_096 && text.as_bytes() == whole.stdout, "{} of {}", text.len(), whole.stdout.len());
}

/// Such as one on which Ctrl-S was pressed, or whose window hangs.
#[test]
fn root_a_terminal_that_takes_nothing_more_stops_no_scrub() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = Loop::of_size(&folder.path().join("disk"), 64 * MIB, &[]) else { return };
    let (state, out) = (folder.path().join("state"), folder.path().join("out.json"));
    let path = |path: &std::path::Path| path.to_str().unwrap().to_string();
    // What fills the terminal goes on trying to.
    let shell = format!(
        "yes & sleep 1; {} scrub {} --json --for 4s --max-rate 4MB/s --state-dir {} {} > {}; kill %1",
        env!("CARGO_BIN_EXE_idlewise"),
        disk.path(),
        path(&state),
        PACE.join(" "),
        path(&out)
    );
    let (_reader, full) = full_pipe();
    let mut terminal = Command::new("script");
    terminal.args(["--quiet", "--command", &format!("bash -c '{shell}'"), "/dev/null"]);
    let mut terminal =
        terminal.stdin(File::open("/dev/null").unwrap()).stdout(full).stderr(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    while fs::read(&out).map_or(true, |text| text.is_empty()) {
        assert!(began.elapsed() < Duration::from_secs(60), "no result");
        std::thread::sleep(Duration::from_millis(50));
    }
    terminal.kill().unwrap();
    terminal.wait().unwrap();
    let result: Value = serde_json::from_slice(&fs::read(&out).unwrap()).unwrap();
    assert_eq!((&result["state"], states(&state)), (&"interrupted".into(), vec!["interrupted".into()]));
}

/// What took minutes to measure is told even where the file that was to hold it cannot be written.
#[test]
fn root_what_was_measured_is_told_before_its_file_fails() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = Loop::of_size(&folder.path().join("disk"), 64 * MIB, &[]) else { return };
    let out = folder.path().join("disk.toml");
    // No file may have any byte, as on a full file system.
    let shell =
        format!("ulimit -f 0; {} probe {} --json --out {}", env!("CARGO_BIN_EXE_idlewise"), disk.path(), out.display());
    let output = Command::new("bash").args(["-c", &shell]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains(&format!("{}: File too large", out.display())), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(found["service"].as_array().is_some_and(|sizes| sizes.len() > 3), "{found}");
}

/// A recording of weeks is not lost because its file system becomes full.
#[test]
fn root_a_recording_ends_before_its_file_system_is_full() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = Loop::of_size(&folder.path().join("disk"), 64 * MIB, &[]) else { return };
    let (command, disk, folder) = (env!("CARGO_BIN_EXE_idlewise"), disk.path(), folder.path().display());
    // More requests than are held back, into a file system that has little more than the reserve.
    let shell = format!(
        "mkdir {folder}/small && mount -t tmpfs -o size=66m none {folder}/small || exit 77; \
         {command} capture {disk} --for 600s --out {folder}/small/trace.csv & \
         for _ in 1 2 3 4; do dd if={disk} of=/dev/null bs=512 count=70000 iflag=direct status=none; done; \
         wait $!; code=$?; {command} trace info {folder}/small/trace.csv --json; exit $code"
    );
    let output = Command::new("unshare").args(["--mount", "bash", "-c", &shell]).output().unwrap();
    if output.status.code() == Some(77) || stderr(&output).starts_with("unshare:") {
        eprintln!("SKIPPED: this needs a mount name space");
        return;
    }
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("MiB were left on its file system; what was recorded is there"),
        "{}",
        stderr(&output)
    );
    let text = common::stdout(&output);
    let info: Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
    assert!(info["requests"].as_u64() > Some(100_000), "{info}");
}

#[test]
fn root_a_machine_without_room_for_threads_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let trace = folder.path().join("trace.csv");
    fs::write(&trace, "1,hm,0,Read,0,4096,100\n100000,hm,0,Read,65536,4096,100\n").unwrap();
    // A user of whom there is no other process.
    let user = ["--reuid", "3141592", "--regid", "3141592", "--clear-groups"];
    let command = fs::read(env!("CARGO_BIN_EXE_idlewise")).unwrap();
    let copy = folder.path().join("idlewise");
    fs::write(&copy, command).unwrap();
    fs::set_permissions(&copy, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let shell = |limit: &str| {
        let shell = format!("ulimit -u {limit}; exec {} idle {}", copy.display(), trace.display());
        Command::new("setpriv").args(user).args(["bash", "-c", &shell]).output().unwrap()
    };
    if !shell("1000").status.success() {
        eprintln!("SKIPPED: this needs root, for a user of its own");
        return;
    }
    let output = shell("1");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).starts_with("idlewise: no threads to compute with"), "{}", stderr(&output));
    assert_eq!(stderr(&output).lines().count(), 1);
}

#[test]
fn root_a_recording_into_a_pipe_without_a_reader_can_be_ended() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = Loop::of_size(&folder.path().join("disk"), 4 * MIB, &[]) else { return };
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut capture =
        idlewise(&["capture", disk.path(), "--for", "1h", "--format", "msr", "--out", pipe.to_str().unwrap()]);
    let mut capture = capture.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    assert!(capture.try_wait().unwrap().is_none());
    kill_process(Pid::from_child(&capture), Signal::TERM).unwrap();
    assert!(ends(&mut capture));
}
