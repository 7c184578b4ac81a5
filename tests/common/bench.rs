//! A real block device to scrub: a loop device over the emulated disk, or over a file.

use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use idlewise::Bytes;
use idlewise_testbed::{EmulatedDisk, Options, Timing};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{idlewise, run, stderr};

pub const MIB: u64 = 1 << 20;

/// An emulated disk and a folder for checkpoints; `None`, said aloud, where the machine cannot have one.
pub struct Bench {
    pub disk: EmulatedDisk,
    pub folder: tempfile::TempDir,
}

impl Bench {
    pub fn new(size: u64, bad_blocks: &[Range<u64>], timing: bool) -> Option<Self> {
        let timing = if timing { Timing::HardDisk { queue: 1 } } else { Timing::Instant };
        Self::of(&Options { size: Bytes(size), bad_blocks: bad_blocks.to_vec(), timing, ..Options::default() })
    }

    pub fn of(options: &Options) -> Option<Self> {
        if let Some(missing) = idlewise_testbed::missing() {
            eprintln!("SKIPPED: the emulated disk needs {missing}");
            return None;
        }
        Some(Self { disk: EmulatedDisk::new(options).unwrap(), folder: tempfile::tempdir().unwrap() })
    }

    pub fn path(&self) -> &str {
        self.disk.path().to_str().unwrap()
    }

    pub fn arguments<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        let state = self.folder.path().to_str().unwrap();
        [&["scrub", self.path(), "--state-dir", state, "--json", "--quiet"], more].concat()
    }

    pub fn scrub(&self, more: &[&str]) -> (i32, Value) {
        let output = run(&self.arguments(more));
        let value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        (output.status.code().unwrap(), value)
    }

    pub fn start(&self, more: &[&str]) -> Running {
        Running::new(idlewise(&self.arguments(more)))
    }

    /// Started, and watching the disk: the first checkpoint is saved after the monitor has begun.
    pub fn start_and_watch(&self, more: &[&str]) -> Running {
        let (mut scrub, began) = (self.start(more), Instant::now());
        while self.checkpoint().is_none_or(|checkpoint| checkpoint["state"] != "running") {
            assert!(!scrub.is_over(), "{}", stderr(&scrub.end()));
            assert!(began.elapsed() < Duration::from_secs(30), "no checkpoint yet");
            std::thread::sleep(Duration::from_millis(5));
        }
        scrub
    }

    /// Waits until the scrub has verified so much, whatever a machine takes to start it.
    pub fn until_verified(&self, bytes: u64) {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let output = run(&["status", "--state-dir", self.folder.path().to_str().unwrap(), "--json"]);
            let status = serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default();
            if status[0]["verified_bytes"].as_u64() >= Some(bytes) {
                return;
            }
            assert!(Instant::now() < until, "{status}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn checkpoint(&self) -> Option<Value> {
        let files = std::fs::read_dir(self.folder.path()).unwrap().filter_map(|entry| Some(entry.ok()?.path()));
        // What begins with a dot is on its way to replace the checkpoint.
        let hidden = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        let files = files.filter(|path| !hidden(path));
        let json: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|e| e == "json")).collect();
        serde_json::from_slice(&std::fs::read(json.first()?).unwrap()).ok()
    }
}

/// Unreadable blocks of a whole disk, as `--json` says it.
pub fn bad_block(lba: u64, blocks: u64) -> Value {
    serde_json::json!({
        "lba": lba, "blocks": blocks, "kind": "io", "offset_bytes": lba * 512, "length_bytes": blocks * 512,
        "block_bytes": 512, "disk_lba": lba,
    })
}

/// A scrub in the background; killed if the test fails.
pub struct Running(Option<Child>);

impl Running {
    pub fn new(mut command: Command) -> Self {
        Self(Some(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()))
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(self.0.as_ref().unwrap()), signal).unwrap();
    }

    pub fn kill(mut self) {
        let mut child = self.0.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub fn is_over(&mut self) -> bool {
        self.0.as_mut().is_none_or(|child| child.try_wait().unwrap().is_some())
    }

    pub fn end(mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A pace that suits a disk that nobody else uses.
pub const PACE: [&str; 4] = ["--request-size", "512KiB", "--idle-wait", "1ms"];

/// A loop device on a file, until it is dropped.
pub struct Loop {
    path: PathBuf,
    folder: PathBuf,
}

impl Loop {
    /// `None`, said aloud, where the machine cannot have one.
    pub fn new(file: &Path, options: &[&str]) -> Option<Self> {
        if let Some(missing) = idlewise_testbed::missing() {
            eprintln!("SKIPPED: a loop device needs {missing}");
            return None;
        }
        let output = Command::new("losetup").args(["--find", "--show"]).args(options).arg(file).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let path = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
        Some(Self { path, folder: file.parent().unwrap().into() })
    }

    /// On a new sparse file of this size.
    pub fn of_size(file: &Path, size: u64, options: &[&str]) -> Option<Self> {
        std::fs::File::create(file).unwrap().set_len(size).unwrap();
        Self::new(file, options)
    }

    pub fn path(&self) -> &str {
        self.path.to_str().unwrap()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // A test that let go of it may have lost it to another one.
        let backing = Path::new("/sys/block").join(self.path.file_name().unwrap()).join("loop/backing_file");
        if std::fs::read_to_string(backing).is_ok_and(|file| Path::new(&file).starts_with(&self.folder)) {
            let detached = Command::new("losetup").arg("-d").arg(&self.path).status().unwrap().success();
            assert!(detached || std::thread::panicking());
        }
    }
}

/// A folder or a file that a file system is mounted on, until it is dropped.
pub struct Mounted<'a>(&'a Path);

impl<'a> Mounted<'a> {
    pub fn new(what: &[&str], folder: &'a Path) -> Self {
        if !folder.exists() {
            std::fs::create_dir_all(folder).unwrap();
        }
        system("mount", &[what, &[folder.to_str().unwrap()]].concat());
        Self(folder)
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        // Processes that were killed may still be on their way out.
        let began = Instant::now();
        let unmounted =
            || Command::new("umount").arg(self.0).stderr(Stdio::null()).status().is_ok_and(|code| code.success());
        while !unmounted() {
            if began.elapsed() > Duration::from_secs(10) {
                assert!(std::thread::panicking(), "{} cannot be unmounted", self.0.display());
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Runs a command of the system, which must succeed.
#[track_caller]
pub fn system(command: &str, arguments: &[&str]) {
    let output = Command::new(command).args(arguments).output().unwrap_or_else(|error| panic!("{command}: {error}"));
    assert!(output.status.success(), "{command} {arguments:?}: {}", stderr(&output));
}

/// An emulated disk that is served by a process of its own, which can be stopped as a disk that hangs.
pub struct Emulated {
    pub process: Child,
    path: String,
}

impl Emulated {
    /// With these arguments; `None`, said aloud, where the machine cannot have one.
    pub fn new(arguments: &[&str]) -> Option<Self> {
        let program = Path::new(env!("CARGO_BIN_EXE_idlewise")).with_file_name("emulated-disk");
        let missing = idlewise_testbed::missing();
        let missing = missing.or((!program.exists()).then(|| "emulated-disk (make test builds it)".into()));
        if let Some(missing) = missing {
            eprintln!("SKIPPED: the emulated disk needs {missing}");
            return None;
        }
        let mut process = Command::new(program).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        let named = |line: String| line.split_whitespace().find(|word| word.starts_with("/dev/loop")).map(String::from);
        let path = { lines }.find_map(named).expect("it says where it is");
        Some(Self { process, path: path.trim_end_matches([':', ',', '.']).into() })
    }

    pub fn path(&self) -> &str {
        &self.path
    }
}

impl Drop for Emulated {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = Command::new("losetup").args(["--detach", &self.path]).status();
    }
}
