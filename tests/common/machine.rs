//! Scripts that are run in an emulated machine, and what they print step by step.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Condvar, Mutex};

use serde_json::Value;

/// What one step of a script printed.
#[derive(Debug, Default)]
pub struct Step {
    pub output: String,
    pub errors: String,
    pub exit: i32,
}

impl Step {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.output).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The unreadable blocks that a scrub found: first block and how many.
    pub fn bad(&self) -> Vec<(u64, u64)> {
        bad(&self.json())
    }
}

pub fn bad(result: &Value) -> Vec<(u64, u64)> {
    let number = |value: &Value| value.as_u64().unwrap();
    result["errors"].as_array().unwrap().iter().map(|run| (number(&run["lba"]), number(&run["blocks"]))).collect()
}

/// How often the scripts that kill do so, where not as often as they say themselves: the environment variable `IDLEWISE_KILLS`.
pub fn kills() -> Option<usize> {
    std::env::var("IDLEWISE_KILLS").ok().map(|kills| kills.parse().expect("IDLEWISE_KILLS is a number"))
}

/// The steps of a script run in the emulated machine; `None`, said aloud, where there is none.
pub fn steps(script: &str) -> Option<BTreeMap<String, Step>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let idlewise = PathBuf::from(env!("CARGO_BIN_EXE_idlewise"));
    let fault_disk = idlewise.with_file_name("fault-disk");
    let needed = [
        ("mkfs.ext4", "e2fsprogs"),
        ("mkfs.xfs", "xfsprogs"),
        ("qemu-system-x86_64", "QEMU"),
        ("busybox", "busybox"),
        ("cpio", "cpio"),
        ("dmsetup", "dmsetup"),
    ];
    let found = |program: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).chain(["/usr/sbin".into()]).any(|folder| folder.join(program).exists())
    };
    // It writes to arrays while they are scrubbed.
    let writes = ["arrays.sh", "mapped.sh"].contains(&script);
    let fio = writes.then_some(("fio", "fio"));
    let missing = needed.iter().chain(&fio).find(|(program, _)| !found(program)).map(|(_, name)| *name);
    let missing = missing.or((!fault_disk.exists()).then_some("fault-disk (make test builds it)"));
    let kernel = root.join("target/vm/linux-image-amd64/package");
    if let Some(missing) = missing.or((!kernel.exists()).then_some("a kernel (testbed/vm/vm.sh --fetch)")) {
        eprintln!("SKIPPED: the emulated machine needs {missing}");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let disk = |kind: &str, name: &str, bad: &str| format!("{kind}:{}{bad}", folder.path().join(name).display());
    let mut command = Command::new(root.join("testbed/vm/vm.sh"));
    // All disks of a script lie in its memory.
    command.env("VM_MEMORY", "640");
    let mut arguments = Vec::new();
    if script == "zfs.sh" {
        let zfs = root.join("target/zfs");
        if !zfs.join("modules").exists() {
            eprintln!("SKIPPED: it needs ZFS (testbed/zfs.sh)");
            return None;
        }
        let zfs = zfs.canonicalize().unwrap();
        command.env("VM_MEMORY", "1536").env("LD_LIBRARY_PATH", zfs.join("lib"));
        command.arg("-k").arg(zfs.join("modules")).args(["-l", "zfs"]);
        for (program, disk) in [("zpool", "left"), ("zfs", "right"), ("zinject", "none")] {
            command.arg("-b").arg(zfs.join("sbin").join(program));
            let image = folder.path().join(disk);
            std::fs::File::create(&image).unwrap().set_len(512 << 20).unwrap();
            command.arg("-d").arg(format!("scsi:{}", image.display()));
        }
        arguments = [zfs.to_str().unwrap(), "/dev/vm/0", "/dev/vm/1"].map(String::from).to_vec();
    }
    let limit = if kills().is_some() { "7200" } else { "900" };
    if ["owners.sh", "zfs.sh"].contains(&script) {
        arguments.extend(kills().map(|kills| kills.to_string()));
    }
    for program in [idlewise.to_str().unwrap(), fault_disk.to_str().unwrap(), "dmsetup", "setpriv"] {
        command.args(["-b", program]);
    }
    if writes {
        command.args(["-b", "fio"]);
    }
    for module in ["target_core_user", "tcm_loop", "sd_mod", "sg"] {
        command.args(["-l", module]);
    }
    // The first disk has a file system, where a script has use for one.
    if script == "command.sh" {
        let image = folder.path().join("scsi");
        std::fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
        let made = Command::new("/usr/sbin/mkfs.ext4").args(["-q", "-F"]).arg(&image).status();
        assert!(made.unwrap().success());
    }
    if script == "xfs.sh" {
        command.args(["-l", "xfs"]);
        let image = folder.path().join("nvme");
        std::fs::File::create(&image).unwrap().set_len(320 << 20).unwrap();
        assert!(Command::new("/usr/sbin/mkfs.xfs").arg("-q").arg(&image).status().unwrap().success());
    }
    for module in [
        "scsi_debug",
        "raid1",
        "raid10",
        "raid456",
        "loop",
        "dm-mod",
        "dm-integrity",
        "crc32c_generic",
        "ext4",
        "dm-raid",
        "dm-verity",
        "sha256_generic",
        "dm-crypt",
        "dm-snapshot",
        "dm-writecache",
        "xts",
    ] {
        command.args(["-m", module]);
    }
    let shared = format!("{}:/lib/steps.sh", root.join("tests/machine/steps.sh").display());
    let layouts = format!("{}:/lib/layouts.sh", root.join("tests/machine/layouts.sh").display());
    command.args(["-f", &shared, "-f", &layouts, "-d", &disk("scsi", "scsi", ""), "-d", &disk("sata", "sata", "")]);
    command.args(["-d", &disk("nvme", "nvme", ":5000,5001,100000"), "-t", limit]);
    command.arg("-o").arg(folder.path().join("out")).arg(root.join("tests/machine").join(script)).args(arguments);
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let output = {
        let _turn = Turn::wait();
        command.env("PATH", path).output().unwrap()
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}\n{text}", String::from_utf8_lossy(&output.stderr));
    Some(parse(&text))
}

/// Two machines at a time: more of them are emulated so slowly that what they wait for comes too late.
struct Turn;

static TURNS: (Mutex<usize>, Condvar) = (Mutex::new(2), Condvar::new());

impl Turn {
    fn wait() -> Self {
        let mut left = TURNS.1.wait_while(TURNS.0.lock().unwrap(), |left| *left == 0).unwrap();
        *left -= 1;
        Self
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *TURNS.0.lock().unwrap() += 1;
        TURNS.1.notify_one();
    }
}

fn parse(text: &str) -> BTreeMap<String, Step> {
    let mut steps = BTreeMap::new();
    let (mut name, mut step, mut errors) = (String::new(), Step::default(), false);
    for line in text.lines() {
        match line.strip_prefix("@@ ").map(|mark| mark.split_once(' ').unwrap_or((mark, ""))) {
            Some(("errors", _)) => errors = true,
            Some(("exit", code)) => {
                step.exit = code.parse().unwrap_or_else(|_| panic!("{name}: exit {code}"));
                steps.insert(std::mem::take(&mut name), std::mem::take(&mut step));
                errors = false;
            }
            Some((begins, _)) => (name, step) = (begins.into(), Step::default()),
            None if errors => step.errors += &(line.to_string() + "\n"),
            None => step.output += &(line.to_string() + "\n"),
        }
    }
    steps
}
